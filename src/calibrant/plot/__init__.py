"""Pictures of calibration: numbers first, ink second.

Each function takes arrays or the parts of a :class:`~calibrant.summary.Summary`, draws on
``ax`` or on a figure of its own, and returns an object that holds the numbers it drew.
``prepare_...`` returns the same object without ink, and needs no matplotlib.

>>> from calibrant.plot import prepare_reliability
>>> prepare_reliability([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2).curves["forecast"].count
array([2, 2])
"""

from calibrant.plot.buckets import BucketMap, buckets, prepare_buckets
from calibrant.plot.coverage import (
    CoverageOverTime,
    QuantileReliability,
    coverage_over_time,
    prepare_coverage_over_time,
    prepare_quantile_reliability,
    quantile_reliability,
)
from calibrant.plot.decomposition import BrierParts, decomposition, prepare_decomposition
from calibrant.plot.drawing import Drawing
from calibrant.plot.groups import GroupPanels, groups, prepare_groups
from calibrant.plot.histogram import Spread, histogram, prepare_histogram
from calibrant.plot.over_time import OverTime, over_time, prepare_over_time
from calibrant.plot.palette import Look, looks
from calibrant.plot.pareto import Pareto, pareto, prepare_pareto
from calibrant.plot.pit import PitBars, pit_histogram, prepare_pit_histogram
from calibrant.plot.reliability import Reliability, exact_curve, prepare_reliability, reliability
from calibrant.plot.save import PICTURES, prepare_all, save_all, save_drawings
from calibrant.plot.windows import WindowErrors, prepare_windows, windows

__all__ = [
    "PICTURES",
    "BrierParts",
    "BucketMap",
    "CoverageOverTime",
    "Drawing",
    "GroupPanels",
    "Look",
    "OverTime",
    "Pareto",
    "PitBars",
    "QuantileReliability",
    "Reliability",
    "Spread",
    "WindowErrors",
    "buckets",
    "coverage_over_time",
    "decomposition",
    "exact_curve",
    "groups",
    "histogram",
    "looks",
    "over_time",
    "pareto",
    "pit_histogram",
    "prepare_all",
    "prepare_buckets",
    "prepare_coverage_over_time",
    "prepare_decomposition",
    "prepare_groups",
    "prepare_histogram",
    "prepare_over_time",
    "prepare_pareto",
    "prepare_pit_histogram",
    "prepare_quantile_reliability",
    "prepare_reliability",
    "prepare_windows",
    "quantile_reliability",
    "reliability",
    "save_all",
    "save_drawings",
    "windows",
]
