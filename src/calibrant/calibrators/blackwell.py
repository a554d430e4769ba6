"""Blackwell approachability by online gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator, check_rate, numerators_at
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import blackwell, two_point
from calibrant.kernels.layout import POSITION
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators

STEPS: Final = ("fixed", "sqrt", "adaptive")
"""The steps in the order of the kernel's codes."""
UPDATES: Final = ("realised", "expected")


@calibrators.add("blackwell")
@dataclass(frozen=True, kw_only=True)
class Blackwell(Calibrator):
    """Steer the vector of gaps into the l1 ball by gradient steps in its dual.

    Each cell has a coordinate in [-1, 1] that says in which direction, and how
    strongly, its gap should be pushed.  Two neighbours whose coordinates point
    towards each other make a halfspace that the next gap cannot leave by much.

    Parameters
    ----------
    step
        ``"adaptive"``: each coordinate's own, sqrt(2 / sum of its squared moves).
        ``"sqrt"``: sqrt(2 K / t) in a bucket's t-th round.  ``"fixed"``: one
        ``eta`` for ever, or the best one for ``horizon`` rounds in all.
    eta, horizon
        For the fixed step.
    updates
        ``"realised"``: the drawn cell learns; controls the error of the draws in
        expectation.  ``"expected"``: both cells learn by their weights; controls
        the error of the mixtures on every path, even against an adversary that sees
        the coin, and does not depend on the seed.

    Notes
    -----
    ``C1 <= h + sqrt(K/T)`` (fixed), ``h + 2 sqrt(2K/T)`` (sqrt) and
    ``h + (2 sqrt 2 / T) sum_i sqrt(V_i)`` (adaptive).  The step is *plus* the gap:
    Algorithm 4 as printed has a minus, and diverges.

    References
    ----------
    Abernethy, Bartlett and Hazan (2011), "Blackwell approachability and no-regret
    learning are equivalent".

    Examples
    --------
    >>> rule = Blackwell(resolution=10)
    >>> state = rule.update(rule.start(), 5, 1)
    >>> rule.forecast(state).values
    (0.6,)
    """

    kernels = Rule(
        "blackwell",
        two_point.make_draw(blackwell.score, blackwell.weigh, blackwell.start),
        blackwell.update,
        blackwell.amend,
        head=blackwell.OWN_HEAD,
        cell=blackwell.OWN_CELL,
        settings=blackwell.SETTINGS,
    )
    reference = "Abernethy, Bartlett and Hazan 2011"
    guarantee = "E C1 <= h + sqrt(K/T) (fixed step), h + 2 sqrt(2K/T) (any time)"

    step: str = "adaptive"
    eta: float | None = None
    horizon: int | None = None
    updates: str = "realised"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self.step, "step", STEPS)
        check.choice(self.updates, "updates", UPDATES)
        check_rate(self)
        given = (self.eta is not None) + (self.horizon is not None)
        if self.step == "fixed" and given != 1:
            raise InvalidInput("step 'fixed' needs one of eta and horizon, got " + self._told())
        if self.step != "fixed" and given:
            raise InvalidInput(
                f"step {self.step!r} takes neither eta nor horizon, got " + self._told()
            )

    @property
    def weighted(self) -> bool:
        """Whether both cells of the mixture learn."""
        return self.updates == "expected"

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C1, of the draws or of the mixtures."""
        grid = self.lattice
        told: dict[str, Any] = {"expected": self.updates == "expected", "failure": failure}
        sizes = rounds, grid.cells, grid.half_cell
        if self.step == "fixed":
            start = np.full(grid.cells * buckets, 1.0 if prior else 0.0)
            eta = self._rate(buckets)
            return bounds.blackwell_fixed(*sizes, buckets=buckets, step=eta, start=start, **told)
        theorem = bounds.blackwell_sqrt if self.step == "sqrt" else bounds.blackwell_adaptive
        return theorem(*sizes, buckets=buckets, **told)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C1 with the squared moves that were seen (adaptive step)."""
        if self.step != "adaptive":
            return None
        squares = self.cells_of(account.blocks)[..., blackwell.SQUARES]
        increments = np.ascontiguousarray(squares).view(np.float64)
        return bounds.blackwell_measured(
            increments,
            account.rounds,
            self.lattice.half_cell,
            expected=self.updates == "expected",
            failure=failure,
        )

    def _probable(self, account: Account, failure: float) -> bounds.Bound | None:
        """Return the bound on C1 for the moves that were seen, or the one for all runs."""
        sizes = account.rounds, account.buckets, account.prior, account.delay
        return self._measured(account, failure) or self._bound(*sizes, failure)

    def _told(self) -> str:
        return f"eta={self.eta!r}, horizon={self.horizon!r}"

    def _rate(self, buckets: int) -> float:
        if self.eta is not None:
            return self.eta
        return math.sqrt(buckets * self.lattice.cells / (self.horizon or 1))

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write step, rate and kind of updates into the header."""
        words[blackwell.STEP] = STEPS.index(self.step)
        words[blackwell.EXPECTED] = self.updates == "expected"
        fixed = self.step == "fixed"
        reals[blackwell.RATE] = self._rate(buckets) if fixed else 2.0 * self.lattice.cells

    def begin(self, block: Words, reals: Reals, prior: int, centre: Fraction, scale: int) -> None:
        """Write a block before its first round: the prior in the gaps and in the coordinates."""
        super().begin(block, reals, prior, centre, scale)
        block[blackwell.HOME] = block[POSITION]
        pull = prior * (int(centre * scale) - numerators_at(self.lattice, scale)) / scale
        self.cells_of(reals)[:, blackwell.THETA] = np.clip(pull, -1.0, 1.0)
