"""The calibrator with an anchor whose cells split where they are visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.bounds.refining import most_retreats, most_variance
from calibrant.calibrators.anchored import Finer
from calibrant.calibrators.base import Account
from calibrant.core.arrays import Reals, Words
from calibrant.core.grid import MAX_SPACED
from calibrant.kernels import refine
from calibrant.kernels.layout import INDEX, SCRATCH
from calibrant.registry import calibrators

NESTED: Final = ("graded", "endpoints")
"""Grids that have all points of their coarser versions."""


@calibrators.add("refining")
@dataclass(frozen=True, kw_only=True)
class Refining(Finer):
    """Play as ``anchored`` does, on a grid that follows the stream: cells split where visited.

    The grid is fine where forecasts are extreme, and never says 0 or 1.  It begins with
    ``resolution`` steps; two neighbours get a point between them once half their distance is the
    larger error, beside that of the mean of as many outcomes as they were drawn for.  What was
    learned is kept, since no point is ever left out.

    Parameters
    ----------
    resolution
        The steps of the first grid, N.
    doublings
        How often a step can be halved, up to 7; the state has room for all points, a word
        each.
    grid
        ``"graded"``, or ``"endpoints"`` to say 0 and 1 too.
    strength, patience
        As in ``anchored``; stronger by default, which costs less while little is known.

    Notes
    -----
    The bound has the variance of the announced pairs where that of ``anchored`` has the square of
    half the widest step: what is measured of them is at most half the distance of the neighbours
    visited, squared, and falls as they come closer.  The proof is at
    :func:`calibrant.bounds.refining`.  Late outcomes cost as in ``anchored``.  Each cell begins as
    one draw without a gap, which costs the bound nothing.  A prior is not needed and not used.

    References
    ----------
    The average gap: Foster (1999), Foster and Hart (2021).

    Examples
    --------
    >>> rule = Refining(resolution=4, doublings=1)
    >>> state = rule.start(centre=0.3)
    >>> [round(value, 3) for value in rule.forecast(state).values]
    [0.026, 0.5]
    >>> for k in range(3):
    ...     state = rule.update(state, rule.forecast(state).indices[-1], k % 2)
    >>> [round(value, 3) for value in rule.forecast(state).values]
    [0.193, 0.5]
    """

    kernels = refine.REFINING
    nested = NESTED
    most_steps = MAX_SPACED
    most_rounds = INDEX
    reference = "Foster and Hart 2021, with an anchor and cells that split"
    guarantee = "E C2 <= (c R0 + sum_t Var_t + K(1 + ln(T/K)))/T, Var_t <= h_t^2 of the pair"
    cost = "O(log K) near the anchor, at most O(K)"

    strength: float = 5.3
    resolution: int = 15
    grid: str = "graded"
    doublings: int = 2

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C2, where nothing in front asks for the first grid."""
        return self._promise(rounds, buckets=buckets, delay=delay, failure=failure)

    def _bound_with_swaps(self, *told: Any) -> bounds.Bound | None:
        rounds, buckets, _, delay, failure = told
        named = {"buckets": buckets, "delay": delay, "failure": failure}
        return self._promise(rounds, **named, swaps=True)

    def _foreseen(
        self, account: Account, rounds: int, failure: float | None
    ) -> bounds.Bound | None:
        """Return the bound on C2, with what a watch for swaps costs where there is one."""
        told = {"buckets": account.buckets, "delay": account.delay, "swaps": account.swaps}
        return self._promise(rounds, **told, fallbacks=account.fallbacks, failure=failure)

    def _promise(self, rounds: int, **told: Any) -> bounds.Bound:
        named: dict[str, Any] = {"strength": self.strength, "patience": self.patience}
        return bounds.refining(rounds, self.lattice.values, self.doublings, **named, **told)

    @property
    def waits(self) -> bool:
        """Whether there is a theorem about late outcomes in one bucket."""
        return True

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C2 with the counts and variances, and the delays, that were seen."""
        told = account.counts, _variance(account)
        found = bounds.refining_measured(*told, failure=failure, **self._settings)
        return self._dearer(found, account)

    def _regret(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if self.strength == 0.0:
            return None
        told = account.counts, _variance(account)
        found = bounds.refining_regret(*told, failure=failure, **self._settings)
        return self._dearer(found, account, 1.0 / self.strength)

    def tallies_of(self, blocks: Words, scale: int) -> tuple[Words, Words]:
        """Return rounds and ones of each block (row) and grid point (column)."""
        tallies = self.cells_of(blocks)[..., 0]
        ones = tallies >> refine.ONES
        return ones + (tallies & INDEX), ones

    def counted(self, now: Any, begun: Any, value: int, scale: int) -> tuple[int, int]:
        """Return rounds and ones of one cell, by its tally."""
        ones = now[0] >> refine.ONES
        return ones + (now[0] & INDEX), ones

    def worst_blocks(self, counts: Words, *, swaps: bool = False) -> Any:
        """Return blocks whose pairs had the largest variances that can be."""
        blocks = np.zeros((len(counts), len(self.kernels.head) + counts.shape[-1]))
        told, rounds = (self.lattice.values, self.doublings), counts.sum(-1)
        most = [most_variance(float(each), *told) for each in rounds]
        if swaps:
            # The first grid is asked for by the stream, not by a block: it counts once.
            again = most_retreats(int(rounds.sum()))
            most[0] = most_variance(float(rounds[0]), *told, retreats=again)
        blocks[:, refine.VARIANCE] = np.array(most) * refine.UNIT
        return blocks

    def scratch(self, cells: int) -> int:
        """Return room for how often the neighbours of each point must be drawn."""
        return cells

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write strength, patience and doublings into the header, and when points come into use."""
        super().set_parameters(words, reals, buckets)
        words[refine.DOUBLINGS] = self.doublings
        table, first = int(words[SCRATCH]), self.lattice.values
        reals[table : table + len(first)] = refine.thresholds(first.tolist(), self.doublings)


def _variance(account: Account) -> float:
    """Return the sum of the variances of all pairs whose outcomes were learned."""
    return float(np.atleast_2d(account.blocks)[:, refine.VARIANCE].sum()) / refine.UNIT
