"""A reliability diagram with bands and counts, as a scikit-learn display."""

from __future__ import annotations

from typing import Any, Self

from calibrant.core import check
from calibrant.errors import MissingExtra
from calibrant.integrations.sklearn.metrics import STRATEGIES
from calibrant.integrations.sklearn.rounds import as_rounds
from calibrant.metrics import CalibrationCurve, calibration_curve
from calibrant.plot.canvas import as_axes
from calibrant.plot.reliability import Reliability


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

    def __init__(self, curve: CalibrationCurve, *, name: str | None = None) -> None:
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
        curve = calibration_curve(*rounds, buckets=n_bins, **options)
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
        ax = _new_axes() if ax is None else as_axes(ax)
        before = len(ax.lines)
        Reliability({name or self.name or "classifier": self.curve}).draw(ax)
        diagonal, self.line_ = ax.lines[before : before + 2]
        if not ref_line:
            diagonal.remove()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        told = 'plots need matplotlib, which is not installed: pip install "calibrant[plot]"'
        raise MissingExtra(told) from error
    return pyplot.subplots(figsize=Reliability.size, layout="constrained")[1]
