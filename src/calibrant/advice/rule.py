"""What a rule for expert advice is: states, learning rates, and rules for input."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.errors import InvalidInput, InvalidType

SUM_TOLERANCE = 1e-9


def numbers(values: Any, name: str, dimensions: int) -> Reals:
    """Return ``values`` as a finite ``float64`` array of that many dimensions."""
    kind = f"an array of finite numbers with {dimensions} dimension(s)"
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidType(f"{name} must be {kind}, got ragged rows") from None
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be {kind}, got dtype {array.dtype}")
    if array.ndim != dimensions:
        raise InvalidInput(f"{name} must be {kind}, got shape {array.shape}")
    array = array.astype(np.float64)
    refuse(~np.isfinite(array), array, name, "a finite number")
    return array


def row(values: Any, name: str, length: int) -> Reals:
    """Return ``values`` as a flat array of ``length`` finite numbers."""
    array = numbers(values, name, 1)
    if len(array) != length:
        raise InvalidInput(f"{name} must be of length {length}, got length {len(array)}")
    return array


def loss_row(losses: Any, experts: int, loss_bound: float) -> Reals:
    """Return one round's losses, one per expert, each in [0, loss_bound].

    >>> loss_row([0.5, 2.0], 2, 1.0)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: losses[1] must be a number in [0, 1.0], got 2.0
    """
    array = row(losses, "losses", experts)
    outside = (array < 0.0) | (array > loss_bound)
    refuse(outside, array, "losses", f"a number in [0, {loss_bound!r}]")
    return array


def laws(weights: Any, dimensions: int) -> Reals:
    """Return ``weights`` as rows that are non-negative and sum to one, within 1e-9."""
    array = numbers(weights, "weights", dimensions)
    refuse(array < 0.0, array, "weights", "a number of at least 0")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if np.any(off):
        told = np.atleast_1d(sums)[np.atleast_1d(off)][0].item()
        raise InvalidInput(f"weights must be rows that sum to 1, got a sum of {told!r}")
    return array


def refuse(bad: Mask, array: Reals, name: str, rule: str) -> None:
    """Raise about the first entry of ``array`` that is ``bad``."""
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        shown = ", ".join(str(i) for i in place)
        raise InvalidInput(f"{name}[{shown}] must be {rule}, got {array[place].item()!r}")


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

    def __post_init__(self) -> None:
        kept = self._checked()
        kept["experts"] = check.whole(self.experts, "experts", low=2)
        size: dict[str, Any] = {"low": SMALLEST, "high": LARGEST, "rule": SIZE}
        kept["loss_bound"] = check.real(self.loss_bound, "loss_bound", **size)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _checked(self) -> dict[str, Any]:
        """Return the parameters of the rule's own, as they are kept."""
        return {}

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


# Beyond these, products of rates, losses and squares of them might leave the range of doubles.
SMALLEST = 1e-100
LARGEST = 1e100
SIZE = "a number from 1e-100 to 1e100"


@dataclass(frozen=True)
class Schedule:
    """A learning rate per round: fixed, tuned to a horizon, or falling with time.

    Parameters
    ----------
    log_comparators
        The logarithm of the number of things competed with: N experts, N(N - 1) swaps of
        one expert for another, N^N maps of experts to experts.
    eta
        The rate itself.
    horizon
        The number of rounds to tune a constant rate for.  With neither, the rate of
        round t is what a horizon of t would give.
    loss_bound
        Losses lie in [0, loss_bound].

    Notes
    -----
    Write K for ``log_comparators`` and B for ``loss_bound``.  By Hoeffding's lemma the loss
    of a round at rate eta is at most eta B^2 / 8 more than the fall, in that round, of
    the potential (1/eta) log(mean exp(-eta total loss)), the mean over comparators.  It
    starts at 0 and ends no lower than -K/eta - (the best comparator's total).  Being the
    log of a power mean it is monotone in eta, so lowering the rate between two rounds
    only lowers it more, and the falls still add up to no more than the whole.  Hence

        regret <= K / eta_T + (B^2 / 8) (eta_1 + ... + eta_T).

    A horizon T gives eta = sqrt(8 K / T) / B and the bound B sqrt(T K / 2).  The any-time
    rate sqrt(8 K / t) / B gives at most 3/2 of that at every T, since the sum of 1/sqrt(t)
    stays below 2 sqrt(T): a little less than the textbook's
    2 B sqrt(T K / 2) + B sqrt(K / 8) for the same weights.

    References
    ----------
    Cesa-Bianchi and Lugosi, Prediction, Learning, and Games (2006), Theorems 2.2 and 2.3.

    Examples
    --------
    >>> Schedule(math.log(2), horizon=100).rate(7) == Schedule(math.log(2)).rate(100)
    True
    >>> round(Schedule(math.log(2), horizon=100).bound(100), 3)
    5.887
    >>> round(Schedule(math.log(2)).bound(100), 3)
    8.831
    """

    log_comparators: float
    eta: float | None = None
    horizon: int | None = None
    loss_bound: float = 1.0

    def rate(self, round_number: int) -> float:
        """Return the rate of that round; the first round has number 1."""
        if self.eta is not None:
            return self.eta
        rounds = round_number if self.horizon is None else self.horizon
        return math.sqrt(8.0 * self.log_comparators / rounds) / self.loss_bound

    def bound(self, rounds: int) -> float:
        """Return a number that the regret after ``rounds`` never exceeds."""
        rounds = check.whole(rounds, "rounds")
        if self.eta is None and self.horizon is None:
            return 1.5 * self.loss_bound * math.sqrt(rounds * self.log_comparators / 2.0)
        eta = self.rate(1)
        return self.log_comparators / eta + eta * rounds * self.loss_bound**2 / 8.0


@dataclass(frozen=True)
class ScheduledRule(Rule):
    """The part shared by the rules that have a learning rate."""

    experts: int
    eta: float | None = None
    horizon: int | None = None
    loss_bound: float = 1.0

    def _checked(self) -> dict[str, Any]:
        eta, horizon = self.eta, self.horizon
        if eta is not None and horizon is not None:
            raise InvalidInput(f"eta must be None when a horizon is given, got {eta!r}")
        if eta is not None:
            eta = check.real(eta, "eta", low=SMALLEST, high=LARGEST, rule=SIZE)
        if horizon is not None:
            horizon = check.whole(horizon, "horizon", low=1)
        return {"eta": eta, "horizon": horizon}

    @property
    def schedule(self) -> Schedule:
        """The learning rate and its bound."""
        return Schedule(self._log_comparators(), self.eta, self.horizon, self.loss_bound)

    def bound(self, rounds: int) -> float:
        """Return a number that the regret after ``rounds`` never exceeds."""
        return self.schedule.bound(rounds)

    @abstractmethod
    def _log_comparators(self) -> float:
        """Return the logarithm of the number of things competed with."""
