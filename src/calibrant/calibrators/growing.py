"""Average-gap hedging with an anchor, on a grid that becomes finer as it learns."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from calibrant import bounds
from calibrant.calibrators.anchored import Anchored
from calibrant.calibrators.base import Account
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.grid import GRIDS, MAX_RESOLUTION, Grid
from calibrant.errors import InvalidInput
from calibrant.kernels import anchor, growing
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators

MAX_DOUBLINGS: Final = 7
"""A place has three bits for the width of its pair."""


@calibrators.add("growing")
@dataclass(frozen=True, kw_only=True)
class Growing(Anchored):
    """Play as ``anchored`` does, and double the resolution when a finer grid is worth it.

    A grid of N steps cannot announce better than 1/(2N) from the truth.  This rule begins with
    ``resolution`` steps and puts a point between each two as soon as what is left to learn costs
    less than that floor, ``K (1 + ln(T/K))/T <= 1/(4 N^2)`` with K = N + 1: after 361,299 outcomes
    for N = 20.  What was learned is kept, since the finer grid has all points of the coarser one.

    Parameters
    ----------
    resolution
        The first N.
    doublings
        How often it is doubled at most, up to 7; the state has room for the finest grid.
    grid
        ``"endpoints"``: the others do not have the points of their coarser versions.
    strength, patience
        As in ``anchored``.

    Notes
    -----
    The bound needs neither T nor N beforehand: as long as doublings are left it falls like
    ``(ln T/T)^(2/3)``, against any adversary that does not see the coin; the proof is at
    :func:`calibrant.bounds.growing`.  Each bucket grows by its own outcomes.  Nothing is said about
    late outcomes.  A prior is not needed and not used.

    References
    ----------
    The average gap: Foster (1999), Foster and Hart (2021).

    Examples
    --------
    >>> rule = Growing(resolution=1, doublings=2)
    >>> state = rule.start(centre=0.3)
    >>> rule.forecast(state).values
    (0.0, 1.0)
    >>> for k in range(30):
    ...     state = rule.update(state, rule.forecast(state).indices[k % 2], k % 2)
    >>> rule.forecast(state).values
    (0.0, 0.5)
    """

    name = "growing"
    kernels = Rule(
        "growing",
        growing.draw,
        growing.update,
        growing.amend,
        growing.mean,
        head=growing.OWN_HEAD,
        cell=anchor.OWN_CELL,
        settings=anchor.SETTINGS,
        anchored=True,
    )
    reference = "Foster and Hart 2021, with an anchor and a grid that grows"
    guarantee = "E C2 <= (c R0 + sum_t h_t^2 + K(1 + ln(T/K)))/T, without a floor while N grows"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(1) near the anchor, at most O(K)"

    doublings: int = 5

    def __post_init__(self) -> None:
        if self.grid != "endpoints":
            check.choice(self.grid, "grid", GRIDS)
            raise InvalidInput(f"grid must be 'endpoints' to be refined, got {self.grid!r}")
        first = Grid(self.grid, self.resolution).resolution
        doublings = check.whole(self.doublings, "doublings", high=MAX_DOUBLINGS)
        if first << doublings > MAX_RESOLUTION:
            most = MAX_RESOLUTION >> doublings
            told = f"resolution must be at most {most} with {doublings} doublings"
            raise InvalidInput(f"{told}, got {first!r}")
        object.__setattr__(self, "doublings", doublings)
        super().__post_init__()
        object.__setattr__(self, "resolution", first)

    @functools.cached_property
    def lattice(self) -> Grid:
        """The finest grid."""
        return Grid("endpoints", self.resolution << self.doublings)

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C2 in expectation."""
        c, R0 = self.strength, self.patience
        return bounds.growing(rounds, *self._sizes, buckets=buckets, strength=c, patience=R0)

    def _measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C2 with the counts that were seen."""
        c, R0 = self.strength, self.patience
        return bounds.growing_measured(account.counts, *self._sizes, strength=c, patience=R0)

    def _regret(self, account: Account) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if self.strength == 0.0:
            return None
        c, R0 = self.strength, self.patience
        return bounds.growing_regret(account.counts, *self._sizes, strength=c, patience=R0)

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.resolution, self.doublings

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return the limits of every rule, and that no step is wider than the first."""
        return super().limits() | {growing.STEP: (0, self.doublings)}

    def begin(self, block: Words, reals: Reals, prior: int, *where: Any) -> None:
        """Write a block before its first round, with the widest step."""
        super().begin(block, reals, prior, *where)
        block[growing.STEP] = self.doublings
        block[growing.NEXT] = growing.due(self.resolution) if self.doublings else 0
