"""Calibration metrics and scorers in scikit-learn's order of arguments."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils import check_array, check_consistent_length

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.integrations.sklearn.rounds import as_rounds
from calibrant.metrics import Cells, Decomposition, decomposition
from calibrant.metrics import calibration_error as error_of_cells
from calibrant.metrics.buckets import _mass_index

POWERS: Final = {"l1": 1.0, "l2": 2.0}
STRATEGIES: Final = {"uniform": "width", "quantile": "mass"}
"""scikit-learn's words for buckets of equal width and of equal mass."""


def calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    norm: str = "l2",
    n_bins: int = 10,
    strategy: str = "uniform",
    squared: bool = False,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
) -> float:
    """Return how far frequencies were from probabilities, over bins of the latter.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class; or of all classes, of which with more than two
        the largest of each row is judged as that of being right.
    norm : {"l1", "l2", "max"}, default="l2"
        The mean distance (known as ECE), the root of the mean squared one, or the largest.
    n_bins : int, default=10
        How many bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or with equally many samples.
    squared : bool, default=False
        With ``norm="l2"``, leave out the root.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each sample counts.
    pos_label : int, float, bool or str, default=None
        The positive class; 1 by default, where labels are 0 and 1 or -1 and 1.
    labels : array-like of shape (n_classes,), default=None
        The classes of the columns, if not all of them are in ``y_true``.

    Examples
    --------
    >>> calibration_error([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3], norm="l1")
    0.2
    >>> calibration_error([0, 0, 1, 1], [0.0, 0.25, 0.75, 1.0], n_bins=2, squared=True)
    0.015625
    """
    check.choice(norm, "norm", (*POWERS, "max"))
    forecasts, happened = as_rounds(y_true, y_proba, pos_label, labels)
    cells = _cells(forecasts, happened, n_bins, strategy, sample_weight)
    if norm == "max":
        return float(np.abs(cells.rho - cells.values).max())
    error = error_of_cells(cells, power=POWERS[norm])
    return error if norm == "l1" or squared else float(np.sqrt(error))


def brier_decomposition(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int | None = 10,
    strategy: str = "uniform",
    pos_label: Any = None,
    labels: Any = None,
) -> Decomposition:
    """Return the Brier score and its parts: reliability, resolution, uncertainty, ...

    Parameters
    ----------
    y_true, y_proba, strategy, pos_label, labels
        As in :func:`calibration_error`.
    n_bins : int or None, default=10
        How many bins; None keeps every distinct probability apart.

    Examples
    --------
    >>> parts = brier_decomposition([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    >>> parts.brier, parts.reliability, parts.resolution, parts.uncertainty
    (0.0625, 0.0625, 0.25, 0.25)
    """
    kind = STRATEGIES[check.choice(strategy, "strategy", tuple(STRATEGIES))]
    forecasts, happened = as_rounds(y_true, y_proba, pos_label, labels)
    return decomposition(forecasts, happened, buckets=n_bins, strategy=kind)


def _reliability(y_true: Any, y_proba: Any, **options: Any) -> float:
    return brier_decomposition(y_true, y_proba, **options).reliability


neg_calibration_error_scorer = make_scorer(
    calibration_error, greater_is_better=False, response_method="predict_proba"
)
"""Minus :func:`calibration_error`, for searches and cross-validation."""

neg_reliability_scorer = make_scorer(
    _reliability, greater_is_better=False, response_method="predict_proba"
)
"""Minus the reliability part of the Brier score."""


def _cells(
    forecasts: Reals, happened: Mask, n_bins: int, strategy: str, sample_weight: Any
) -> Cells:
    """Return a cell for each bin that counts, at its mean forecast."""
    bins = check.whole(n_bins, "n_bins", low=1)
    check.choice(strategy, "strategy", tuple(STRATEGIES))
    place = buckets_of if strategy == "uniform" else _mass_index
    index, weights = place(forecasts, bins), _weights(sample_weight, forecasts)
    sums = (weights, weights * happened, weights * forecasts)
    counts, ones, totals = (np.bincount(index, each, bins).astype(np.float64) for each in sums)
    used = counts > 0.0
    counts = counts[used]
    # Neighbouring means may be equal to the last bit; rounding must not swap them.
    means = np.maximum.accumulate(totals[used] / counts)
    return Cells(means, counts, np.minimum(ones[used], counts))


def _weights(sample_weight: Any, forecasts: Reals) -> Reals:
    if sample_weight is None:
        return np.ones(len(forecasts))
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64)
    check_consistent_length(weights, forecasts)
    if weights.ndim != 1 or (weights < 0.0).any() or not weights.any():
        rule = "a flat array of weights, none negative and not all 0"
        raise InvalidInput(f"sample_weight must be {rule}, got {sample_weight!r}")
    return np.asarray(weights)
