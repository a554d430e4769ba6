"""The histogram method: a baseline without a guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base import Calibrator
from calibrant.kernels import running_mean, two_point
from calibrant.kernels.layout import HEAD, LEARNED, TOTAL
from calibrant.kernels.rounds import assemble
from calibrant.registry import calibrators

__all__ = ["RunningMean"]


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

    name = "running_mean"
    program = assemble(
        "running_mean",
        draw=two_point.make_draw(running_mean.lean, running_mean.weigh),
        update=running_mean.update,
        amend=running_mean.amend,
        mean=two_point.mean,
        recall=two_point.recall,
    )
    prior_in_cells = False
    reference = "Zadrozny and Elkan 2001"
    guarantee = "none"
    assumption = "independent outcomes, and then only in the limit"
    cost = "O(1) a round"

    def _set_block(
        self,
        words: NDArray[np.int64],
        reals: NDArray[np.float64],
        prior: int,
        centre: int,
        numerators: NDArray[np.int64],
        scale: int,
    ) -> None:
        # One mean for the whole bucket, so the prior is one set of pseudo-rounds, not one a cell;
        # the cells only count.
        words[LEARNED] = prior
        words[TOTAL] = prior * centre
        words[HEAD + 1 : HEAD + 2 * len(numerators) : 2] = 0
