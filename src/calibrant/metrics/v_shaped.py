"""V-calibration: the worst regret over all decisions with one threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Reals
from calibrant.metrics.cells import Cells, as_cells


def v_calibration(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the largest regret under V-shaped losses, summed over rounds.

    The loss of threshold v is ``-sign(p - v) * (y - v)``; the regret compares with the
    best constant forecast in hindsight.  The supremum over v is not divided by the
    number of rounds, and limits from either side count.
    Takes forecasts and outcomes as :func:`~calibrant.metrics.as_cells` does.

    Returns
    -------
    float
        At least 0; 0 without rounds.

    Notes
    -----
    With b the mean outcome, a threshold below b costs ``2 sum (y - v)`` over the
    rounds with forecasts below v, which falls in v between two forecasts: only limits
    from above at forecasts matter, and the mirror image above b.  On the wrong side of
    b either sum is below the other one, so neither need be left out there.  Twice the
    result bounds the regret under every proper loss with values in [-1, 1]
    (U-calibration).

    References
    ----------
    Kleinberg, Paes Leme, Schneider and Teng (2023).

    Examples
    --------
    >>> round(v_calibration([0.3] * 10, [0, 1] * 5), 12)
    4.0
    >>> v_calibration([0.5] * 10, [0, 1] * 5)
    0.0
    """
    cells = as_cells(forecasts, outcomes)
    v = cells.values
    from_below = np.cumsum(cells.ones) - v * np.cumsum(cells.counts)
    from_above = v * _suffix_sums(cells.counts) - _suffix_sums(cells.ones)
    return 2.0 * float(np.concatenate(([0.0], from_below, from_above)).max())


def _suffix_sums(array: Reals) -> Reals:
    return np.cumsum(array[::-1])[::-1]
