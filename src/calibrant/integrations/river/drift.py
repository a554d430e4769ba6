"""The monitor as a River drift detector."""

from __future__ import annotations

from typing import Any, Final

from river import base

from calibrant.core import check
from calibrant.monitor import Monitor

DIGITS: Final = 12


class CalibrationDrift(base.DriftAndWarningDetector):
    """Notice when probabilities stop meaning what they say.

    Update it with the outcome minus its probability, a number from -1 to 1.  `drift_detected`
    is True in the round in which the change alarm rings, and the next update begins anew;
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
