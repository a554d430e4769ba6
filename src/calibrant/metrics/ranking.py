"""How well forecasts rank outcomes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.cells import Cells, as_cells


def auc(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the chance that a round with outcome 1 has the higher forecast.

    One round with outcome 1 and one with outcome 0 are drawn; equal forecasts count
    one half.  This is the area under the ROC curve.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        A number from 0 to 1; nan unless both outcomes occurred.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.4, 0.9], [0, 0, 1, 1])
    0.875
    """
    cells = as_cells(forecasts, outcomes)
    zeros, ones = cells.zeros, cells.ones
    pairs = float(zeros.sum() * ones.sum())
    halves = ones @ (2.0 * np.cumsum(zeros) - zeros)
    return float(halves / 2.0) / pairs if pairs else math.nan
