"""Averaged two-bin calibration error (ATB), a truthful relative of the smooth error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InvalidInput
from calibrant.metrics.cells import Cells, as_cells


def atb(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, power: int = 2
) -> float:
    """Return the calibration error of two bins, averaged over where they meet.

    Split the forecasts at a threshold q, sum forecast minus outcome on either side,
    add the squares (or the absolute values) of the two sums per round, and average
    over q uniform in [0, 1].

    Parameters
    ----------
    forecasts, outcomes
        As in :func:`~calibrant.metrics.as_cells`.
    power : {2, 1}
        2 for squares, which makes the metric truthful; 1 for absolute values, which
        makes it comparable with the smooth calibration error.

    Returns
    -------
    float
        A number from 0 to 1; nan without rounds.

    Notes
    -----
    Between two neighbouring values the split does not change, so the average is a
    finite sum over the gaps between sorted values.  With ``power=1``,
    ``2/3 smCE <= ATB <= 6 smCE``.

    References
    ----------
    Hartline, Hu and Wu (2026).

    Examples
    --------
    >>> round(atb([0.3] * 10, [0, 1] * 5), 12)
    0.04
    >>> round(atb([0.3] * 10, [0, 1] * 5, power=1), 12)
    0.2
    """
    if power not in (1, 2):
        raise InvalidInput(f"power must be 1 or 2, got {power!r}")
    cells = as_cells(forecasts, outcomes)
    below = np.concatenate(([0.0], np.cumsum(-cells.excess)))
    gaps = np.diff(cells.values, prepend=0.0, append=1.0)
    sides = np.abs(below) ** power + np.abs(below[-1] - below) ** power
    return cells.average(cells.average(gaps @ sides) if power == 2 else gaps @ sides)
