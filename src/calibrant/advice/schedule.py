"""The learning rate of exponential weights, and the bound that comes with it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from calibrant.advice.rule import Rule
from calibrant.core import check
from calibrant.errors import InvalidInput

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

    def __post_init__(self) -> None:
        eta, horizon = _checked_rate(self.eta, self.horizon)
        object.__setattr__(self, "experts", checked_experts(self.experts))
        object.__setattr__(self, "eta", eta)
        object.__setattr__(self, "horizon", horizon)
        object.__setattr__(self, "loss_bound", checked_loss_bound(self.loss_bound))

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


def checked_experts(experts: Any) -> int:
    """Return ``experts`` as an int of at least 2."""
    return check.whole(experts, "experts", low=2)


def checked_loss_bound(loss_bound: Any) -> float:
    """Return ``loss_bound`` as a positive float."""
    return check.real(loss_bound, "loss_bound", low=SMALLEST, high=LARGEST, rule=SIZE)


def _checked_rate(eta: Any, horizon: Any) -> tuple[float | None, int | None]:
    if eta is not None and horizon is not None:
        raise InvalidInput(f"eta must be None when a horizon is given, got {eta!r}")
    if eta is not None:
        eta = check.real(eta, "eta", low=SMALLEST, high=LARGEST, rule=SIZE)
    if horizon is not None:
        horizon = check.whole(horizon, "horizon", low=1)
    return eta, horizon
