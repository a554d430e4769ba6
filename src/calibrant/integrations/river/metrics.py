"""Calibration metrics for River, and an alarm when calibration is lost."""

from __future__ import annotations

from typing import Any, Final

from river import base, metrics

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.metrics import BucketedCells, CalibrationCurve, Decomposition, ExactCells
from calibrant.metrics.calibration import checked_power
from calibrant.monitor import Monitor


class Probabilistic(metrics.base.BinaryMetric):
    """What the metrics here share: a forecast is a number, or one of a dictionary's."""

    _fmt = ".6f"
    bigger_is_better = requires_labels = works_with_weights = False

    def __init__(self, pos_val: Any = True) -> None:
        super().__init__(pos_val=pos_val)
        self._cells = self._fresh()

    def _fresh(self) -> Any:
        return BucketedCells(1)

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Add one round: the outcome, and its forecast as a number or by label."""
        self._cells.update(*self._round(y_true, y_pred, w))

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Take back one round, as if it had never been."""
        self._cells.revert(*self._round(y_true, y_pred, w))

    def _round(self, y_true: Any, y_pred: Any, w: float) -> tuple[float, int]:
        if w != 1.0:
            raise InvalidInput(f"w must be 1: rounds are counted, not weighed, got {w!r}")
        chance = y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, dict) else y_pred
        return check.probability(chance, "y_pred"), int(y_true == self.pos_val)


class Brier(Probabilistic):
    """Mean squared distance of the probability of ``pos_val`` and what happened.

    Sums are exact: a rolling metric does not lose its way, and `revert` leaves no trace.

    Parameters
    ----------
    pos_val
        Value to treat as "positive".

    Examples
    --------
    >>> metric = Brier()
    >>> metric.update(True, 0.5)
    >>> metric.update(True, {False: 0.0, True: 1.0})
    >>> metric
    Brier: 0.125
    """

    def get(self) -> float:
        """Return the score so far; 0 without rounds."""
        return float(self._cells.brier()) if self._cells.rounds else 0.0


class CalibrationError(Probabilistic):
    """How far what happened was from what was said, on average over buckets of forecasts.

    Parameters
    ----------
    buckets
        How many buckets of equal width; None keeps every distinct forecast apart, which suits
        draws from a grid.
    power
        The distance is taken to this power, at least 1; no root is taken.
    pos_val
        Value to treat as "positive".

    Examples
    --------
    >>> metric = CalibrationError(buckets=10)
    >>> for outcome in (True, False, True, False):
    ...     metric.update(outcome, 0.3)
    >>> metric
    CalibrationError: 0.2
    """

    def __init__(self, buckets: int | None = 20, power: float = 1.0, pos_val: Any = True) -> None:
        self.buckets = buckets
        self.power = checked_power(power)
        super().__init__(pos_val)

    def _fresh(self) -> Any:
        return ExactCells() if self.buckets is None else BucketedCells(self.buckets)

    def get(self) -> float:
        """Return the error so far; 0 without rounds."""
        return float(self._cells.calibration_error(power=self.power)) if self._cells.rounds else 0.0


class Reliability(Probabilistic):
    """The calibration part of the Brier score, with the diagram behind it.

    Parameters
    ----------
    buckets
        How many buckets of equal width.
    pos_val
        Value to treat as "positive".

    Examples
    --------
    >>> metric = Reliability(buckets=2)
    >>> for outcome, chance in [(False, 0.0), (False, 0.25), (True, 0.75), (True, 1.0)]:
    ...     metric.update(outcome, chance)
    >>> metric
    Reliability: 0.015625
    >>> metric.curve().mean_forecast.tolist(), metric.curve().mean_outcome.tolist()
    ([0.125, 0.875], [0.0, 1.0])
    """

    def __init__(self, buckets: int = 20, pos_val: Any = True) -> None:
        self.buckets = buckets
        super().__init__(pos_val)

    def _fresh(self) -> Any:
        return BucketedCells(self.buckets)

    def get(self) -> float:
        """Return the mean squared distance of frequency and forecast; 0 without rounds."""
        return self.decomposition().reliability if self._cells.rounds else 0.0

    def curve(self, confidence: float = 0.95) -> CalibrationCurve:
        """Return the reliability diagram as numbers, with counts and bands."""
        made: CalibrationCurve = self._cells.curve(confidence=confidence)
        return made

    def decomposition(self) -> Decomposition:
        """Return the Brier score and all its parts."""
        made: Decomposition = self._cells.decomposition()
        return made


DIGITS: Final = 12


class CalibrationDrift(base.DriftAndWarningDetector):
    """Notice when probabilities stop meaning what they say.

    Update it with the outcome minus its probability, a number from -1 to 1.  `drift_detected`
    is True in the round in which the change alarm rings, and the next update starts afresh;
    `warning_detected` says that by now the forecasts cannot all have been right.

    Parameters
    ----------
    run_length
        Rounds, at least, that pass on average before a false drift.
    alpha
        The chance, at most, of a false warning.
    buckets, tolerance, clip, lag
        As in :class:`calibrant.monitor.Monitor`.

    Notes
    -----
    Outcome minus probability tells both apart: it is positive for outcome 1 and negative
    for 0.  At 0 the forecast was certain and right, which is evidence of nothing; such rounds
    count in the highest bucket.

    References
    ----------
    Shin, Ramdas and Rinaldo, "E-detectors" (2022).

    Examples
    --------
    >>> import random
    >>> rng = random.Random(1)
    >>> detector = CalibrationDrift(run_length=10_000)
    >>> for t in range(2_000):
    ...     outcome = rng.random() < (0.1 if t < 1_000 else 0.3)
    ...     detector.update(outcome - 0.1)
    ...     if detector.drift_detected:
    ...         print(f"drift in round {t}, since about {detector.monitor.since}")
    ...         break
    drift in round 1057, since about 1001
    """

    def __init__(
        self,
        run_length: float = 1e6,
        alpha: float = 0.01,
        buckets: int = 20,
        tolerance: float = 0.0,
        clip: float = 1e-6,
        lag: int = 1,
    ) -> None:
        super().__init__()
        self.run_length = run_length
        self.alpha = alpha
        self.buckets = buckets
        self.tolerance = tolerance
        self.clip = clip
        self.lag = lag
        options: dict[str, Any] = {"tolerance": tolerance, "clip": clip, "lag": lag}
        self._monitor = Monitor(alpha, buckets=buckets, run_length=run_length, **options)

    @property
    def monitor(self) -> Monitor:
        """The monitor inside: evidence, buckets, and since when."""
        return self._monitor

    def update(self, x: float) -> None:
        """Add one round: its outcome, 0 or 1, minus its forecast."""
        rule = "an outcome minus its probability, from -1 to 1"
        residual = check.real(x, "x", low=-1.0, high=1.0, rule=rule)
        if self.drift_detected:
            self._monitor.restart()
        outcome = int(residual >= 0.0)
        # 1 - (1 - p) is not always p: without rounding, the forecasts at a bucket's edge would
        # fall to either side of it depending on their outcome.
        self._monitor.update(round(outcome - residual, DIGITS), outcome)
        self._drift_detected = self._monitor.change is not None
        self._warning_detected = self._monitor.alarm
