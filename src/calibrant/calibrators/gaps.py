"""Calibrators that look at gaps alone: average gap, Foster (1999) and regret matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator
from calibrant.core.arrays import Reals
from calibrant.kernels import gaps, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators

draw_average = two_point.make_draw(gaps.score_with_slack, gaps.weigh_average)
draw_cumulative = two_point.make_draw(gaps.score_with_slack, gaps.weigh_cumulative)


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

    kernels = Rule("foster_hart", gaps.draw, gaps.update, gaps.amend, play=gaps.play)
    reference = "Foster and Hart 2021; Foster 1999"
    guarantee = "E C2 <= h^2 + K(1 + ln(T/K))/T"
    late = True

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C2."""
        grid, named = self.lattice, {"buckets": buckets, "prior": prior, "delay": delay}
        return bounds.foster_hart(rounds, grid.cells, grid.half_cell, failure=failure, **named)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C2 with the counts that were seen."""
        with np.errstate(invalid="ignore"):
            means = np.where(account.counts > 0, account.ones / account.counts, 0.5)
        named: dict[str, Any] = {"prior": account.prior, "delay": account.delay}
        named["failure"] = failure
        centre, h = account.centres[:, None], self.lattice.half_cell
        return bounds.foster_hart_measured(account.counts, h, means=means, centre=centre, **named)

    _probable = _measured


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

    kernels = Rule("foster99", draw_average, gaps.update, gaps.amend)
    reference = "Foster 1999"
    guarantee = "E C1 <= h + sqrt(K(1 + ln(T/K))/T); midpoints: h + 2 sqrt(K/T)"

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C1."""
        grid, named = self.lattice, {"buckets": buckets, "prior": prior}
        return bounds.foster99(rounds, grid.cells, grid.half_cell, failure=failure, **named)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C1 for the cells that were used."""
        scores, grid = scores_before(self, account), self.lattice
        named = {"buckets": account.buckets, "prior": account.prior, "visited": len(scores)}
        sizes = account.rounds, grid.cells, grid.half_cell
        return bounds.foster99(*sizes, prior_scores=scores, failure=failure, **named)

    _probable = _measured


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

    kernels = Rule("regret_matching", draw_cumulative, gaps.update, gaps.amend)
    reference = "Hart and Mas-Colell 2000; Mannor and Stoltz 2010"
    guarantee = "E C1 <= h + (1 + h) sqrt(K/T)"
    late = True

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C1."""
        grid, named = self.lattice, {"buckets": buckets, "prior": prior, "delay": delay}
        return bounds.regret_matching(rounds, grid.cells, grid.half_cell, failure=failure, **named)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C1 for the cells that were used."""
        scores = scores_before(self, account)
        named = {"prior": account.prior, "delay": account.delay}
        sizes = account.rounds, len(scores), self.lattice.half_cell
        return bounds.regret_matching(*sizes, prior_scores=scores, failure=failure, **named)

    def _probable(self, account: Account, failure: float) -> bounds.Bound | None:
        """Return the bound on C1 for the cells used, or for all where a prior moved them."""
        if account.delay:
            return None
        if account.prior == 0:
            return self._measured(account, failure)
        return self._bound(account.rounds, account.buckets, account.prior, 0, failure)


def scores_before(rule: Calibrator, account: Account) -> Reals:
    """Return the gaps with which the prior started the cells that were used since."""
    used = account.counts > 0
    scores = account.prior * (account.centres[:, None] - rule.lattice.values)
    return np.broadcast_to(scores, used.shape)[used]
