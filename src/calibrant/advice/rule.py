"""What every rule over experts is: pure methods over an explicit state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.advice.tables import loss_row
from calibrant.core.arrays import Reals


class State(NamedTuple):
    """What a rule remembers; the arrays cannot be written to.

    ``scores`` is what the rule accumulates: losses per expert, regrets per pair of
    experts, or losses per copy and expert.  ``weights`` is what it plays next.
    """

    rounds: int
    scores: Reals
    weights: Reals


class Rule(ABC):
    """The part that all rules share; a subclass says what to add up and what to play.

    ``regret`` names the regret that ``bound`` bounds: external, internal or swap.
    """

    experts: int
    loss_bound: float
    regret: ClassVar[str]

    def start(self) -> State:
        """Return the state before the first round: all weights equal."""
        even = np.full(self.experts, 1.0 / self.experts)
        nothing = self._added(even, np.zeros(self.experts))
        return State(0, _frozen(nothing), _frozen(even))

    def weights(self, state: State) -> Reals:
        """Return the weights to play in the next round."""
        return state.weights

    def update(self, state: State, losses: Any) -> State:
        """Return the state after a round with these losses; ``state`` is left alone."""
        seen = loss_row(losses, self.experts, self.loss_bound)
        scores = state.scores + self._added(state.weights, seen)
        law = self._law(State(state.rounds + 1, scores, state.weights))
        return State(state.rounds + 1, _frozen(scores), _frozen(law))

    @abstractmethod
    def bound(self, rounds: int) -> float:
        """Return a number that the regret after ``rounds`` never exceeds."""

    @abstractmethod
    def _added(self, weights: Reals, losses: Reals) -> Reals:
        """Return what a round with these weights and losses adds to the scores."""

    @abstractmethod
    def _law(self, state: State) -> Reals:
        """Return the next weights, given new scores and the weights of the last round."""


def _frozen(array: Reals) -> Reals:
    array.flags.writeable = False
    return array
