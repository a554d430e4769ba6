"""The histogram method: a baseline without a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from calibrant.calibrators.base import Calibrator
from calibrant.core.arrays import Reals, Words
from calibrant.kernels import running_mean, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators


@calibrators.add("running_mean")
@dataclass(frozen=True, kw_only=True)
class RunningMean(Calibrator):
    """Announce the grid point nearest to the mean of all outcomes so far.

    Within each bucket of raw forecasts this is histogram binning.  It converges
    faster than any other rule on independent outcomes and promises nothing
    otherwise: being deterministic, it can be made wrong in every single round.

    References
    ----------
    Zadrozny and Elkan (2001), "Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers"; Oakes (1985) for the impossibility.

    Examples
    --------
    >>> rule = RunningMean(resolution=10)
    >>> state = rule.start()
    >>> for outcome in (1, 0, 0):
    ...     state = rule.update(state, rule.forecast(state).indices[0], outcome)
    >>> rule.forecast(state).values
    (0.3,)
    """

    kernels = Rule(
        "running_mean",
        two_point.make_draw(running_mean.score, running_mean.weigh),
        running_mean.update,
        running_mean.amend,
        head=running_mean.OWN_HEAD,
    )
    prior_in_cells = False
    reference = "Zadrozny and Elkan 2001"
    guarantee = "none"
    assumption = "independent outcomes, and then only in the limit"
    cost = "O(1) a round"

    def begin(self, block: Words, reals: Reals, prior: int, centre: Fraction, scale: int) -> None:
        """Write a block before its first round.

        One mean for the whole bucket, so the prior is one set of pseudo-rounds, not one a cell;
        the cells only count.
        """
        super().begin(block, reals, prior, centre, scale)
        block[running_mean.LEARNED] = prior
        block[running_mean.TOTAL] = prior * int(centre * scale)
