"""Calibrators that weigh all pairs of grid points, and announce a law over the whole grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from calibrant import bounds
from calibrant.calibrators.base import Calibrator, check_rate
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import pairs
from calibrant.kernels.layout import POSITION
from calibrant.kernels.portable import log
from calibrant.registry import calibrators

UPDATES: Final = ("expected", "realised")


@dataclass(frozen=True, kw_only=True)
class AllPairs(Calibrator, ABC):
    """What the rules with a regret for each ordered pair of cells share.

    Parameters
    ----------
    updates
        ``"expected"``: every cell learns by its weight in the mixture, as in the book.
        ``"realised"``: the drawn cell alone.  An outcome that comes after other rounds of
        its bucket is learned as a realised one, whose mean is the expected one.
    """

    updates: str = "expected"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self.updates, "updates", UPDATES)
        if self.lattice.cells < 2:
            raise InvalidInput(f"resolution must give two grid points, got {self.resolution!r}")

    @property
    def weighted(self) -> bool:
        """All-pairs rules keep their mixture in the scratch room, whatever they learn from it."""
        return True

    def scratch(self, cells: int) -> int:
        """Return how many words of scratch room the law and its rates need."""
        return 2 * cells + cells * cells

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write the rule's parameters into the header."""
        words[pairs.EXPECTED] = self.updates == "expected"

    def begin(self, block: Words, reals: Reals, prior: int, centre: Fraction, scale: int) -> None:
        """Write a block before its first round: the prior in gaps, counts and weights."""
        super().begin(block, reals, prior, centre, scale)
        block[pairs.HOME], block[pairs.FRESH] = block[POSITION], -1
        cells = self.cells_of(reals)
        cells[:, pairs.PLAYED] = prior
        cells[:, pairs.ONES] = prior * (int(centre * scale) / scale)

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        # What is said about mixtures holds surely.
        chance = failure if self.updates == "realised" else None
        return self._stated(rounds, buckets, prior, chance)

    @abstractmethod
    def _stated(self, rounds: int, buckets: int, prior: int, failure: float | None) -> bounds.Bound:
        """Return what the rule's theorem says."""


@calibrators.add("exponential_regret")
@dataclass(frozen=True, kw_only=True)
class ExponentialRegret(AllPairs):
    """Play the stationary law of exponentially weighted swaps between all pairs of cells.

    Every ordered pair "play j wherever i was played" is an expert, weighted by the
    exponential of its regret; the mixture is the one that none of their weighted
    majority would change.  Squared-loss regrets follow from two sums a cell, so the
    memory is O(K); the law is found by an elimination without subtractions.

    Parameters
    ----------
    eta
        A fixed learning rate; None for the any-time schedule
        ``sqrt(8 ln(K(K - 1)) / t)`` in a bucket's t-th round.
    horizon
        Instead of ``eta``: the rounds in all, for the best fixed rate.
    updates
        ``"expected"``, as in the book, or ``"realised"``.

    Notes
    -----
    The error of the mixtures obeys ``C2 <= h**2 + K max R / T`` on every path, with
    ``max R`` of order ``sqrt(T ln K)``: slower than the two-point rules, and the reason
    why they are preferred.

    References
    ----------
    Cesa-Bianchi and Lugosi (2006), "Prediction, Learning, and Games", chapter 4;
    Grassmann, Taksar and Heyman (1985) for the elimination.

    Examples
    --------
    >>> rule = ExponentialRegret(resolution=2)
    >>> mixture = rule.forecast(rule.start())
    >>> mixture.values, [round(w, 3) for w in mixture.weights]
    ((0.0, 0.5, 1.0), [0.333, 0.333, 0.333])
    >>> state = rule.update(rule.start(), 1, 1)
    >>> [round(w, 3) for w in rule.forecast(state).weights]
    [0.093, 0.354, 0.553]
    """

    kernels = pairs.make_rule("exponential_regret", pairs.exponential_rates)
    reference = "Cesa-Bianchi and Lugosi 2006, chapter 4"
    guarantee = "pseudo C2 <= h^2 + K sqrt(ln(K(K-1))/(2T)) (fixed rate)"
    assumption = "none for the mixtures; for the draws, no sight of the round's coin"
    cost = "O(K^3) a round, O(K) memory"

    eta: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self)
        if self.eta is not None and self.horizon is not None:
            raise InvalidInput(
                f"eta must be None where horizon is given, got {self.eta!r} and {self.horizon!r}"
            )

    def _stated(self, rounds: int, buckets: int, prior: int, failure: float | None) -> bounds.Bound:
        """Return the bound on C2, of the mixtures or of the draws."""
        grid, realised = self.lattice, self.updates == "realised"
        sizes, step = (rounds, grid.cells, grid.half_cell), self._rate(buckets) or "any-time"
        return bounds.exponential_regret(
            *sizes, buckets=buckets, step=step, prior=prior, realised=realised, failure=failure
        )

    @property
    def _schedule(self) -> float:
        cells = self.lattice.cells
        return 8.0 * log(float(cells * (cells - 1)))

    def _rate(self, buckets: int) -> float:
        if self.horizon is not None:
            return math.sqrt(buckets * self._schedule / self.horizon)
        return self.eta or 0.0

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write the rule's parameters into the header."""
        super().set_parameters(words, reals, buckets)
        reals[pairs.RATE] = self._rate(buckets)
        reals[pairs.SCHEDULE] = self._schedule


@calibrators.add("polynomial_regret")
@dataclass(frozen=True, kw_only=True)
class PolynomialRegret(AllPairs):
    """Play the stationary law of the positive regrets between all pairs of cells.

    The form in which Foster and Vohra first proved calibration.  Restricted to
    neighbours it is ``regret_matching``, which needs O(1) instead of O(K^3) a round.
    A cell that regrets nothing is announced alone.

    Parameters
    ----------
    updates
        ``"realised"`` (default): the drawn cell learns.  ``"expected"``: every cell learns
        by its weight in the mixture.

    Notes
    -----
    Blackwell's condition holds with equality for the stationary law, so the sum of
    squared positive regrets grows by at most a constant a round; the bound follows
    by Cauchy-Schwarz over cells.

    References
    ----------
    Foster and Vohra (1998), "Asymptotic calibration"; Hart and Mas-Colell (2000).

    Examples
    --------
    >>> rule = PolynomialRegret(resolution=10)
    >>> state = rule.update(rule.start(), 5, 1)
    >>> rule.forecast(state).values
    (0.4,)
    """

    kernels = pairs.make_rule("polynomial_regret", pairs.polynomial_rates)
    reference = "Foster and Vohra 1998; Hart and Mas-Colell 2000"
    guarantee = "E C2 <= h^2 + sqrt(K(K-1)/T)"
    cost = "O(K^3) a round, O(K) memory"

    updates: str = "realised"

    def _stated(self, rounds: int, buckets: int, prior: int, failure: float | None) -> bounds.Bound:
        """Return the bound on C2, of the draws or of the mixtures."""
        grid, realised = self.lattice, self.updates == "realised"
        sizes = rounds, grid.cells, grid.half_cell
        return bounds.polynomial_regret(
            *sizes, buckets=buckets, prior=prior, realised=realised, failure=failure
        )
