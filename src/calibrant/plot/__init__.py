"""Pictures of calibration: numbers first, ink second.

Each function takes arrays or the parts of a :class:`~calibrant.summary.Summary`, draws on
``ax`` or on a figure of its own, and returns an object that holds the numbers it drew.
``prepare_...`` returns the same object without ink, and needs no matplotlib.

>>> from calibrant.plot import prepare_reliability
>>> prepare_reliability([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2).curves["forecast"].count
array([2, 2])
"""

from calibrant.plot.buckets import (
    BucketMap,
    Spread,
    buckets,
    histogram,
    prepare_buckets,
    prepare_histogram,
)
from calibrant.plot.canvas import Drawing, Look, looks
from calibrant.plot.coverage import (
    CoverageOverTime,
    PitBars,
    QuantileReliability,
    coverage_over_time,
    pit_histogram,
    prepare_coverage_over_time,
    prepare_pit_histogram,
    prepare_quantile_reliability,
    quantile_reliability,
)
from calibrant.plot.over_time import (
    OverTime,
    WindowErrors,
    over_time,
    prepare_over_time,
    prepare_windows,
    windows,
)
from calibrant.plot.pareto import Pareto, pareto, prepare_pareto
from calibrant.plot.reliability import (
    BrierParts,
    GroupPanels,
    Reliability,
    decomposition,
    exact_curve,
    groups,
    prepare_decomposition,
    prepare_groups,
    prepare_reliability,
    reliability,
)
from calibrant.plot.save import PICTURES, prepare_all, save_all, save_drawings

__all__ = [
    "PICTURES", "BrierParts", "BucketMap", "CoverageOverTime", "Drawing", "GroupPanels", "Look",
    "OverTime", "Pareto", "PitBars", "QuantileReliability", "Reliability", "Spread", "WindowErrors",
    "buckets", "coverage_over_time", "decomposition", "exact_curve", "groups", "histogram", "looks",
    "over_time", "pareto", "pit_histogram", "prepare_all", "prepare_buckets",
    "prepare_coverage_over_time", "prepare_decomposition", "prepare_groups", "prepare_histogram",
    "prepare_over_time", "prepare_pareto", "prepare_pit_histogram", "prepare_quantile_reliability",
    "prepare_reliability", "prepare_windows", "quantile_reliability", "reliability", "save_all",
    "save_drawings", "windows",
]  # fmt: skip
