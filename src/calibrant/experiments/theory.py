"""The paper's theory as numbers: Table 1, the lemmas and theorems, and horizons."""

from __future__ import annotations

from typing import Final

from calibrant.experiments.experiment import Result, Setting, experiment
from calibrant.experiments.horizons import check_horizons
from calibrant.experiments.lemmas import check_lemmas
from calibrant.experiments.measured_table import measure

NOTES: Final = (
    "Time O(1/ε) of regret minimisation needs swaps between neighbours only. The textbook's rule, "
    "which the paper ran, looks at all pairs of cells and solves a linear system of that size: "
    "its time grows faster. Neighbours suffice, because then a cell or two are played, and the "
    "search for them starts where the last one ended.",
    "Memory is O(1/ε²) because each of 1/ε buckets keeps 1/ε cells; neither subroutine needs a "
    "table of pairs.",
)


@experiment("theory", "The theory as numbers", 5)
def run(setting: Setting) -> Result:
    """Measure Table 1, evaluate each inequality, compare horizons."""
    parts = measure(setting) + check_lemmas(setting) + check_horizons(setting)
    return Result((), notes=NOTES) + parts
