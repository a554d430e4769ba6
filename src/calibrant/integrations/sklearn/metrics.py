"""Calibration metrics, scorers and the reliability diagram, in scikit-learn's words."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from calibrant import metrics
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.core.place import buckets_of
from calibrant.errors import InvalidInput
from calibrant.metrics import calibration_error as error_of_cells
from calibrant.metrics.buckets import _mass_index
from calibrant.plot.canvas import as_axes, matplotlib
from calibrant.plot.reliability import Reliability


def as_rounds(y_true: Any, y_proba: Any, pos_label: Any, labels: Any) -> tuple[Reals, Mask]:
    """Return forecasts in [0, 1] and whether each came true.

    A column of two is the positive class's; of a table over more classes, the forecast is the
    largest number of each row, and it comes true if its class does.

    >>> forecasts, happened = as_rounds(["a", "c"], [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], None, "abc")
    >>> forecasts.tolist(), happened.tolist()
    ([0.5, 0.6], [True, False])
    """
    told, table = column_or_1d(y_true), np.asarray(y_proba)
    check_consistent_length(told, table)
    if table.ndim == 2:
        names = np.unique(told) if labels is None else np.asarray(list(labels))
        if len(names) != table.shape[1]:
            listed = f"{table.shape[1]} labels, a column each, got {names.tolist()}"
            raise ValueError(f"labels must be {listed}")
        if len(names) > 2:
            first = names[table.argmax(axis=1)]
            return check.probabilities(table.max(axis=1), "y_proba"), np.asarray(first == told)
        pos_label, table = names[1] if pos_label is None else pos_label, table[:, 1]
    return check.probabilities(table, "y_proba"), np.asarray(told == _positive(told, pos_label))


def _positive(told: NDArray[Any], pos_label: Any) -> Any:
    found = np.unique(told).tolist()
    if pos_label is not None:
        return pos_label
    if not any(set(found) <= usual for usual in ({0, 1}, {-1, 1})):
        raise ValueError(f"pos_label must be given where labels are not 0 and 1, got {found}")
    return 1


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
) -> metrics.Decomposition:
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
    return metrics.decomposition(forecasts, happened, buckets=n_bins, strategy=kind)


def _reliability(y_true: Any, y_proba: Any, **options: Any) -> float:
    return brier_decomposition(y_true, y_proba, **options).reliability


SCORED: Final[dict[str, Any]] = {"greater_is_better": False, "response_method": "predict_proba"}

neg_calibration_error_scorer = make_scorer(calibration_error, **SCORED)
"""Minus :func:`calibration_error`, for searches and cross-validation."""

neg_reliability_scorer = make_scorer(_reliability, **SCORED)
"""Minus the reliability part of the Brier score."""


def _cells(
    forecasts: Reals, happened: Mask, n_bins: int, shape: str, sample_weight: Any
) -> metrics.Cells:
    """Return a cell for each bin that counts, at its mean forecast."""
    bins = check.whole(n_bins, "n_bins", low=1)
    check.choice(shape, "strategy", tuple(STRATEGIES))
    place = buckets_of if shape == "uniform" else _mass_index
    index, weights = place(forecasts, bins), _weights(sample_weight, forecasts)
    sums = (weights, weights * happened, weights * forecasts)
    counts, ones, totals = (np.bincount(index, each, bins).astype(np.float64) for each in sums)
    used = counts > 0.0
    counts = counts[used]
    # Neighbouring means may be equal to the last bit; rounding must not swap them.
    means = np.maximum.accumulate(totals[used] / counts)
    return metrics.Cells(means, counts, np.minimum(ones[used], counts))


def _weights(sample_weight: Any, forecasts: Reals) -> Reals:
    if sample_weight is None:
        return np.ones(len(forecasts))
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64)
    check_consistent_length(weights, forecasts)
    if weights.ndim != 1 or (weights < 0.0).any() or not weights.any():
        rule = "a flat array of weights, none negative and not all 0"
        raise InvalidInput(f"sample_weight must be {rule}, got {sample_weight!r}")
    return np.asarray(weights)


class ReliabilityDisplay:
    """How often it happened against how likely it was said to be, with bands and counts.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    curve : CalibrationCurve
        Mean forecast, mean outcome, count and exact binomial band of each bin.
    name : str, default=None
        What the legend says.

    Attributes
    ----------
    line_ : matplotlib Artist
        The curve.
    ax_ : matplotlib Axes
        Axes with the curve; the counts are in a strip below.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> made = ReliabilityDisplay.from_predictions([0, 1, 1, 1], [0.1, 0.2, 0.8, 1.0], n_bins=2)
    >>> made.curve.count.tolist(), made.curve.mean_outcome.tolist()
    ([2, 2], [0.5, 1.0])
    >>> made.ax_.get_ylabel()
    'how often it happened'
    """

    def __init__(self, curve: metrics.CalibrationCurve, *, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        confidence: float = 0.95,
        pos_label: Any = None,
        labels: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        ax: Any = None,
    ) -> Self:
        """Draw the diagram of probabilities that were made already.

        Parameters
        ----------
        y_true, y_proba, n_bins, strategy, pos_label, labels
            As in :func:`calibrant.integrations.sklearn.calibration_error`.
        confidence : float, default=0.95
            Level of each band by itself.
        name : str, default=None
            What the legend says.
        ref_line : bool, default=True
            Draw the diagonal of perfect calibration.
        ax : matplotlib Axes, default=None
            Where to draw; by default on a new figure of pyplot's.
        """
        kind = STRATEGIES[check.choice(strategy, "strategy", tuple(STRATEGIES))]
        rounds = as_rounds(y_true, y_proba, pos_label, labels)
        options: dict[str, Any] = {"strategy": kind, "confidence": confidence}
        curve = metrics.calibration_curve(*rounds, buckets=n_bins, **options)
        return cls(curve, name=name).plot(ax=ax, ref_line=ref_line)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the diagram of a fitted classifier's probabilities.

        Parameters
        ----------
        estimator : estimator instance
            A fitted classifier with ``predict_proba``.
        X, y : array-like
            Features and labels.
        **options
            As in :meth:`from_predictions`.
        """
        named = {"labels": estimator.classes_, "name": type(estimator).__name__}
        return cls.from_predictions(y, estimator.predict_proba(X), **(named | options))

    def plot(self, *, ax: Any = None, name: str | None = None, ref_line: bool = True) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default on a new figure of pyplot's.
        name : str, default=None
            What the legend says, if something else than before.
        ref_line : bool, default=True
            Draw the diagonal of perfect calibration.
        """
        if ax is None:
            pyplot = matplotlib("pyplot")
            ax = pyplot.subplots(figsize=Reliability.size, layout="constrained")[1]
        ax = as_axes(ax)
        before = len(ax.lines)
        Reliability({name or self.name or "classifier": self.curve}).draw(ax)
        diagonal, self.line_ = ax.lines[before : before + 2]
        if not ref_line:
            diagonal.remove()
        self.ax_, self.figure_ = ax, ax.figure
        return self
