"""Half way between Foster's rule and regret matching: excesses over the roots of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.bounds import Bound
from calibrant.bounds.game import game, over_draws, prior_costs
from calibrant.calibrators.base import Calibrator
from calibrant.kernels import gaps, root_slack, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators

__all__ = ["RootSlack"]


@calibrators.add("root_slack")
@dataclass(frozen=True, kw_only=True)
class RootSlack(Calibrator):
    """Hedge in inverse proportion to the excess beyond half a cell over the root of the count.

    Notes
    -----
    ``E[C1] <= h + (1 + h) sqrt(2 K / T)`` against any adversary that does not see the coin of
    its round.  With ``x_i`` the excess of a cell, ``Q = sum_i x_i^2 / sqrt(n_i)`` grows on
    average by at most ``(1 + h)^2 / sqrt(n_i)`` at the cell drawn, so that
    ``E Q <= 2 (1 + h)^2 sum_i sqrt(n_i)``; the rest is the inequality of Cauchy and Schwarz.

    References
    ----------
    Foster (1999), "A proof of calibration via Blackwell's approachability theorem".

    Examples
    --------
    >>> rule = RootSlack(resolution=10)
    >>> state = rule.update(rule.start(), 5, 1)
    >>> rule.forecast(state).values
    (0.6,)
    """

    name = "root_slack"
    kernels = Rule(
        "root_slack",
        two_point.make_draw(gaps.score_with_slack, root_slack.weigh),
        gaps.update,
        gaps.amend,
    )
    reference = "after Foster 1999"
    guarantee = "E C1 <= h + (1 + h) sqrt(2K/T)"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(1) a round, O(log K) after late outcomes"

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> Bound | None:
        sizes = game(rounds, self.lattice.cells, self.lattice.half_cell, buckets)
        shift, before = prior_costs(sizes, prior, None)
        weight = sizes.T + prior * sizes.visited
        roots = math.sqrt(sizes.visited * weight)
        grown = 2.0 * (1.0 + sizes.h) ** 2 * math.sqrt(sizes.visited * sizes.T)
        grown += before / math.sqrt(prior) if prior else 0.0
        total = sizes.h * weight + math.sqrt(grown * roots) + shift
        return over_draws(total / sizes.T, "C1", "excess over roots", sizes.T, failure)
