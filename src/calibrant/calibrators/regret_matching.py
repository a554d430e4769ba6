"""Regret matching on adjacent swaps: RegMin with the quadratic potential, in O(1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator
from calibrant.kernels import gaps, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators


@calibrators.add("regret_matching")
@dataclass(frozen=True, kw_only=True)
class RegretMatching(Calibrator):
    """Play the stationary law of the positive regrets for moving one cell up or down.

    A cell whose mean outcome lies within half a cell of its value regrets neither
    neighbour and is announced alone.  No cell regrets both, so the law has at most
    two points, and detailed balance gives their weights: inversely proportional
    to the cumulative regrets.  Once calibrated within its cells the rule mostly
    announces a single value and stops improving there.

    Notes
    -----
    With ``Phi = sum_i max(|S_i| - h n_i, 0)**2`` the first-order drift vanishes, so
    ``E[C1] <= h + (1 + h) sqrt(K / T)`` against any adversary that does not see the
    coin of its round.

    References
    ----------
    Hart and Mas-Colell (2000), "A simple adaptive procedure leading to correlated
    equilibrium"; Mannor and Stoltz (2010), "A geometric proof of calibration".

    Examples
    --------
    >>> rule = RegretMatching(resolution=10)
    >>> state = rule.update(rule.start(), 5, 1)
    >>> state = rule.update(state, 6, 0)
    >>> mixture = rule.forecast(state)
    >>> mixture.values, [round(w, 3) for w in mixture.weights]
    ((0.5, 0.6), [0.55, 0.45])
    """

    name = "regret_matching"
    kernels = Rule(
        "regret_matching",
        two_point.make_draw(gaps.score_with_slack, gaps.weigh_cumulative),
        gaps.update,
        gaps.amend,
    )
    reference = "Hart and Mas-Colell 2000; Mannor and Stoltz 2010"
    guarantee = "E C1 <= h + (1 + h) sqrt(K/T)"
    assumption = "the outcome is chosen without sight of the round's coin"
    late = True
    cost = "O(1) a round, O(log K) after late outcomes"

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C1 in expectation."""
        grid = self.lattice
        return bounds.regret_matching(
            rounds, grid.cells, grid.half_cell, buckets=buckets, prior=prior, delay=delay
        )

    def _measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C1 for the cells that were used."""
        used = account.counts > 0
        scores = account.prior * (account.centres[:, None] - self.lattice.values)
        return bounds.regret_matching(
            account.rounds,
            int(used.sum()),
            self.lattice.half_cell,
            prior=account.prior,
            delay=account.delay,
            prior_scores=np.broadcast_to(scores, used.shape)[used],
        )
