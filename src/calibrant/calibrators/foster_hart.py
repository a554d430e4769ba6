"""Average-gap hedging: the default calibrator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator
from calibrant.kernels import gaps
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators


@calibrators.add("foster_hart")
@dataclass(frozen=True, kw_only=True)
class FosterHart(Calibrator):
    """Hedge between two neighbours in inverse proportion to their average gaps.

    A cell whose mean outcome so far is exactly its value is announced alone;
    otherwise there are two neighbours of which the lower one was too low and the
    upper one too high, and the coin that decides between them is biased so that
    neither outcome can make matters worse on average.  No step size, no horizon.

    Notes
    -----
    With ``K = sum_i S_i**2 / n_i`` the expected growth in a round is at most the
    square of half a cell plus ``1 / (n_i + 1)`` for the cell drawn, so
    ``E[C2] <= h**2 + (1/T) sum_i H(n_i)`` against any adversary that does not see
    the coin of the round it chooses the outcome for.

    References
    ----------
    Foster and Hart (2021), "Forecast hedging and calibration"; Foster (1999), "A proof
    of calibration via Blackwell's approachability theorem".

    Examples
    --------
    >>> rule = FosterHart(resolution=10)
    >>> state = rule.start()
    >>> rule.forecast(state).values
    (0.5,)
    >>> state = rule.update(state, 5, 1)
    >>> rule.forecast(state).values
    (0.6,)
    >>> state = rule.update(state, 6, 0)
    >>> mixture = rule.forecast(state)
    >>> mixture.values, [round(w, 3) for w in mixture.weights]
    ((0.5, 0.6), [0.545, 0.455])
    """

    name = "foster_hart"
    kernels = Rule("foster_hart", gaps.draw, gaps.update, gaps.amend)
    reference = "Foster and Hart 2021; Foster 1999"
    guarantee = "E C2 <= h^2 + K(1 + ln(T/K))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    late = True
    cost = "O(1) a round, O(log K) after late outcomes"

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C2 in expectation."""
        grid = self.lattice
        return bounds.foster_hart(
            rounds, grid.cells, grid.half_cell, buckets=buckets, prior=prior, delay=delay
        )

    def _measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C2 with the counts that were seen."""
        with np.errstate(invalid="ignore"):
            means = np.where(account.counts > 0, account.ones / account.counts, 0.5)
        return bounds.foster_hart_measured(
            account.counts,
            self.lattice.half_cell,
            prior=account.prior,
            delay=account.delay,
            means=means,
            centre=account.centres[:, None],
        )
