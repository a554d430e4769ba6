"""Guarantees as numbers: one function per theorem.

A grid is described by ``cells``, the number of its points, and ``half_cell``, the largest
distance from a point of [0, 1] to the grid (``half_cell(grid)`` computes it); Algorithm 1 by
the number of ``buckets`` on top.  Everything is an average per round.  A ``Bound`` carries
its value, what it bounds, and when it holds.

>>> from calibrant.bounds import foster_hart, regret_bound
>>> calibration = foster_hart(rounds=100_000, cells=11, half_cell=0.05, buckets=20)
>>> round(calibration.value, 4), round(regret_bound(calibration, "squared", 20).value, 4)
(0.0182, 0.0425)
"""

from calibrant.bounds.accuracy import (
    accuracy_at_the_edge,
    accuracy_at_the_midpoint,
    accuracy_paper,
    brier_bound,
    regret_bound,
    swap_regret_bound,
)
from calibrant.bounds.algorithm1 import algorithm1, algorithm1_measured, theorem, theorem_names
from calibrant.bounds.anchored import (
    anchored,
    anchored_measured,
    anchored_regret,
    growing,
    growing_measured,
    growing_regret,
)
from calibrant.bounds.blackwell import (
    blackwell_adaptive,
    blackwell_fixed,
    blackwell_measured,
    blackwell_sqrt,
)
from calibrant.bounds.game import Bound, azuma, drawn, half_cell, harmonic, pinelis, probable
from calibrant.bounds.gaps import foster99, foster_hart, foster_hart_measured, regret_matching
from calibrant.bounds.groups import (
    group_average_gap,
    group_average_gap_measured,
    group_excess,
    multivalid,
    multivalid_gap,
    multivalid_rate,
)
from calibrant.bounds.horizon import (
    Rate,
    Shape,
    best_shape,
    horizon,
    horizon_regret_matching,
    paper_table,
    regret_limit,
    resolution_paper,
    resolution_sharp,
    smallest_shape,
)
from calibrant.bounds.intervals import (
    aci,
    conformal_pid,
    quantile_tracker,
    saocp,
    sf_ogd,
    step_sizes,
)
from calibrant.bounds.late import (
    anchored_late,
    anchored_late_regret,
    late_by,
    late_cost,
    mixture_in_crowds,
)
from calibrant.bounds.mixture import mixture
from calibrant.bounds.pairs import exponential_regret, internal_regret, polynomial_regret
from calibrant.bounds.refining import refining, refining_measured, refining_regret

__all__ = [
    "Bound", "Rate", "Shape", "accuracy_at_the_edge", "accuracy_at_the_midpoint", "accuracy_paper",
    "aci", "algorithm1", "algorithm1_measured", "anchored", "anchored_late", "anchored_late_regret",
    "anchored_measured", "anchored_regret", "azuma", "best_shape", "blackwell_adaptive",
    "blackwell_fixed", "blackwell_measured", "blackwell_sqrt", "brier_bound", "conformal_pid",
    "drawn", "exponential_regret", "foster99", "foster_hart", "foster_hart_measured",
    "group_average_gap", "group_average_gap_measured", "group_excess", "growing",
    "growing_measured", "growing_regret", "half_cell", "harmonic", "horizon",
    "horizon_regret_matching", "internal_regret", "late_by", "late_cost", "mixture",
    "mixture_in_crowds", "multivalid", "multivalid_gap", "multivalid_rate", "paper_table",
    "pinelis", "polynomial_regret", "probable", "quantile_tracker", "refining",
    "refining_measured", "refining_regret", "regret_bound", "regret_limit", "regret_matching",
    "resolution_paper", "resolution_sharp", "saocp", "sf_ogd", "smallest_shape", "step_sizes",
    "swap_regret_bound", "theorem", "theorem_names",
]  # fmt: skip
