"""A rule that holds its own state and keeps count of its regrets."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.advice.regret import external_of, internal_of, pair_regrets, swap_of
from calibrant.advice.rule import Rule, State
from calibrant.core.arrays import Reals


class OnlineExperts:
    """Play a rule round by round; memory is O(N^2), however many rounds there are.

    Parameters
    ----------
    rule
        Any rule of :mod:`calibrant.advice`.

    Examples
    --------
    >>> from calibrant.advice import ExponentialWeights
    >>> online = OnlineExperts(ExponentialWeights(experts=2))
    >>> for losses in ([0, 1], [0, 1], [1, 0]):
    ...     online.update(losses)
    >>> online.weights.round(2)
    array([0.76, 0.24])
    >>> round(online.external_regret, 3), round(online.bound, 3)
    (0.597, 1.53)
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._state = rule.start()
        self._pairs = np.zeros((rule.experts, rule.experts))

    @property
    def state(self) -> State:
        """The rule's state."""
        return self._state

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return self._state.rounds

    @property
    def weights(self) -> Reals:
        """The weights of the next round."""
        return self.rule.weights(self._state)

    def update(self, losses: Any) -> None:
        """Take in the losses of the round that was played with ``weights``."""
        state = self.rule.update(self._state, losses)
        self._pairs += pair_regrets(self.weights[None], np.asarray(losses)[None])
        self._state = state

    @property
    def external_regret(self) -> float:
        """The external regret so far."""
        return external_of(self._pairs)

    @property
    def internal_regret(self) -> float:
        """The internal regret so far."""
        return internal_of(self._pairs)

    @property
    def swap_regret(self) -> float:
        """The swap regret so far."""
        return swap_of(self._pairs)

    @property
    def bound(self) -> float:
        """What the regret named by ``rule.regret`` cannot exceed after so many rounds."""
        return self.rule.bound(self.rounds)
