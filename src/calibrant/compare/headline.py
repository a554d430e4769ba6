"""A comparison in a sentence or two."""

from __future__ import annotations

from typing import Final

from calibrant.compare.comparison import Comparison, Row
from calibrant.report.tables import shown

NOTHING: Final = "No round has an outcome: there is nothing to compare."
BROKEN: Final = 0.1
"""C2 of forecasts that are off by a third on average: they mean nothing any more."""


def headline(comparison: Comparison) -> str:
    """Return who was the most accurate, who the best calibrated, and who withstood.

    Examples
    --------
    >>> from calibrant.compare import compare
    >>> outcomes = [1, 0, 1, 1] * 30
    >>> print(headline(compare([0.9, 0.2] * 60, outcomes, methods=["running_mean"])))
    running_mean is the most accurate, Brier 0.1359 (raw 0.1750), and the best calibrated, C2
    0.0329. Against the adversary, running_mean has the least C2, 0.2759; 2 of 2 methods exceed
    0.1.
    """
    return " ".join(sentences(comparison))


def sentences(comparison: Comparison) -> list[str]:
    """Return what is to be said about the stream and, if there was a game, about the game."""
    if not comparison.rounds:
        return [NOTHING]
    told = [_on_the_stream(comparison)]
    return [*told, _against(comparison)] if comparison.adversarial_rounds else told


def _on_the_stream(comparison: Comparison) -> str:
    best, calm = (comparison.ranked(key)[0] for key in ("brier", "calibration_l2"))
    raw = "" if best.kind == "raw" else f" (raw {shown(comparison.row('raw').brier)})"
    told = f"{best.name} is the most accurate, Brier {shown(best.brier)}{raw}"
    if calm is best:
        told += f", and the best calibrated, C2 {shown(best.calibration_l2)}"
    else:
        told += f"; {calm.name} is the best calibrated, C2 {shown(calm.calibration_l2)}"
    ours = [row for row in comparison.rows if row.kind == "default" and row not in (best, calm)]
    return told + "".join(f"; {_pair(row)}" for row in ours) + "."


def _pair(row: Row) -> str:
    return f"{row.name} has Brier {shown(row.brier)} and C2 {shown(row.calibration_l2)}"


def _against(comparison: Comparison) -> str:
    """Return who withstood the adversary."""
    safe = comparison.ranked("adversarial_l2")[0]
    told = f"Against the adversary, {safe.name} has the least C2, {shown(safe.adversarial_l2)}"
    for row in comparison.rows:
        if row.kind == "default" and row is not safe:
            told += f"; {row.name} has {shown(row.adversarial_l2)}"
    broken = sum(row.adversarial_l2 > BROKEN for row in comparison.rows)
    return f"{told}; {broken} of {len(comparison.rows)} methods exceed {BROKEN}."
