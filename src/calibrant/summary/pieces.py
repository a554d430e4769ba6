"""The pieces of a summary: plain data, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calibrant.core.arrays import Reals, Words
from calibrant.metrics import CalibrationCurve
from calibrant.summary.collector import Part

NAMES: Final = ("raw", "forecast", "mean")
"""The three kinds of forecasts that a summary compares."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Averages from the first round up to each of at most 512 later ones.

    Attributes
    ----------
    rounds
        How many rounds each point covers.
    brier_raw, brier_forecast, brier_mean
        Brier scores.
    c1_forecast, c2_forecast
        Calibration errors of the drawn forecasts over their exact values.
    c2_raw, c2_mean
        Calibration errors over 20 equal buckets.
    bound_c1, bound_c2
        What the theorem promises after that many rounds; nan where there is none.
    """

    rounds: Words
    brier_raw: Reals
    brier_forecast: Reals
    brier_mean: Reals
    c1_forecast: Reals
    c2_raw: Reals
    c2_forecast: Reals
    c2_mean: Reals
    bound_c1: Reals
    bound_c2: Reals


@dataclass(frozen=True, eq=False)
class Windows:
    """Calibration errors of consecutive windows of rounds, over 20 equal buckets.

    Attributes
    ----------
    window
        Rounds in a window; 0 if there were too few rounds for one.
    first, last
        The rounds that each of at most 512 points covers, counted from 1.  A point covers
        one window or, on a long stream, several, and shows the largest error among them.
    c2_raw, c2_forecast, c2_mean
        The errors.
    worst
        For each kind of forecast the first and the last round of its worst window, and the
        error there.  Empty if there were too few rounds.
    """

    window: int
    first: Words
    last: Words
    c2_raw: Reals
    c2_forecast: Reals
    c2_mean: Reals
    worst: dict[str, tuple[int, int, float]]

    @property
    def latest(self) -> dict[str, tuple[int, int, float]]:
        """The last point of each kind of forecast, as in ``worst``.

        Up to 256 windows it is the last window; on a longer stream it may cover several, and
        tells the largest error among them.
        """
        series = dict(zip(NAMES, (self.c2_raw, self.c2_forecast, self.c2_mean), strict=True))
        if not len(self.last):
            return {}
        first, last = int(self.first[-1]), int(self.last[-1])
        return {name: (first, last, float(errors[-1])) for name, errors in series.items()}


@dataclass(frozen=True, eq=False)
class Histogram:
    """How often forecasts fell into each of 50 equal intervals; the last one is closed."""

    edges: Reals
    raw: Words
    forecast: Words
    mean: Words


@dataclass(frozen=True)
class BucketRow:
    """What became of the raw forecasts in one of 20 equal intervals.

    Attributes
    ----------
    low, high
        The interval.
    count
        Rounds.
    mean_raw, rate, mean_forecast
        The average raw forecast, the frequency of outcome 1, and the average of the
        forecasts drawn in those same rounds; nan without rounds.
    """

    low: float
    high: float
    count: int
    mean_raw: float
    rate: float
    mean_forecast: float


@dataclass(frozen=True)
class Headline:
    """One region of probabilities, before and after.

    The region is the one of 20 equal intervals that raw and drawn forecasts both used
    often and in which raw forecasts added most to the calibration error.

    Attributes
    ----------
    low, high
        The region.
    raw_said, raw_meant, raw_low, raw_high, raw_count
        Average raw forecast there, frequency of outcome 1, its exact binomial 95 % band,
        and rounds.
    now_said, now_means, now_low, now_high, now_count
        The same for the drawn forecasts; nan if none fell there.
    """

    low: float
    high: float
    raw_said: float
    raw_meant: float
    raw_low: float
    raw_high: float
    raw_count: int
    now_said: float
    now_means: float
    now_low: float
    now_high: float
    now_count: int


@dataclass(frozen=True, eq=False)
class Parts:
    """A run apart by group or class.

    Attributes
    ----------
    kind
        What the parts are: ``"group"`` or ``"class"``.
    rows
        What was measured in each.
    curves
        Reliability before and after, of the largest ones.
    """

    kind: str
    rows: list[Part]
    curves: dict[str, tuple[CalibrationCurve, ...]]
