"""Foster's 1999 rule: average excess over half a cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator
from calibrant.kernels import gaps, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators


@calibrators.add("foster99")
@dataclass(frozen=True, kw_only=True)
class Foster99(Calibrator):
    """Hedge in inverse proportion to the average excess beyond half a cell.

    Between the average-gap rule and regret matching: it announces a cell alone
    when the mean outcome lies within the cell, as the latter does, and otherwise
    weighs by averages, as the former does.  ``grid="midpoints"`` is the published form.

    Notes
    -----
    ``E[C1] <= h + sqrt(K (1 + ln(T/K)) / T)`` against any adversary that does not see the
    coin of its round; on midpoints also ``h + 2 sqrt(K / T)``, as quoted by Gupta and Ramdas
    (2023, appendix C).

    References
    ----------
    Foster (1999), "A proof of calibration via Blackwell's approachability theorem".

    Examples
    --------
    >>> rule = Foster99(resolution=10, grid="midpoints")
    >>> state = rule.update(rule.start(), 5, 1)
    >>> rule.forecast(state).values
    (0.65,)
    """

    name = "foster99"
    kernels = Rule(
        "foster99",
        two_point.make_draw(gaps.score_with_slack, gaps.weigh_average),
        gaps.update,
        gaps.amend,
    )
    reference = "Foster 1999"
    guarantee = "E C1 <= h + sqrt(K(1 + ln(T/K))/T); midpoints: h + 2 sqrt(K/T)"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(1) a round, O(log K) after late outcomes"

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C1 in expectation."""
        grid = self.lattice
        return bounds.foster99(rounds, grid.cells, grid.half_cell, buckets=buckets, prior=prior)

    def _measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C1 for the cells that were used."""
        used, grid = account.counts > 0, self.lattice
        scores = account.prior * (account.centres[:, None] - grid.values)
        return bounds.foster99(
            account.rounds,
            grid.cells,
            grid.half_cell,
            buckets=account.buckets,
            visited=int(used.sum()),
            prior=account.prior,
            prior_scores=np.broadcast_to(scores, used.shape)[used],
        )
