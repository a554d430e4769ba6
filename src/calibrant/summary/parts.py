"""From what was seen in each group or class to the parts of a story."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from calibrant.classes import OneVsRest
from calibrant.groups import GroupRecalibrator
from calibrant.metrics import CalibrationCurve
from calibrant.summary.breakdown import Breakdown, Part
from calibrant.summary.promise import Engine
from calibrant.summary.story import Parts

__all__ = ["SHOWN", "parts_of"]

SHOWN: Final = 12
"""Parts that are drawn: those with the most rounds."""


def parts_of(breakdown: Breakdown, engine: Engine) -> Parts:
    """Return the parts of a story; of groups with the engine's own account and bounds."""
    rows = breakdown.parts()
    if isinstance(engine, GroupRecalibrator):
        rows = _certified(rows, engine)
    elif isinstance(engine, OneVsRest):
        rows = _by_class(rows, engine)
    curves: dict[str, tuple[CalibrationCurve, ...]] = {
        name: (breakdown.curve(name, 0), breakdown.curve(name, 1))
        for name in breakdown.largest(SHOWN)
    }
    return Parts(breakdown.kind, rows, curves)


def _certified(rows: list[Part], engine: GroupRecalibrator) -> list[Part]:
    """Put the errors over exact values, of outcomes learned, in place of those in buckets."""
    known = {row.group: row for row in engine.certificate().groups}
    found = []
    for row in rows:
        own = known[row.name]
        told = replace(row, c1_forecast=own.c1, c2_forecast=own.c2, bound=own.bound)
        found.append(told if own.rounds else row)
    return found


def _by_class(rows: list[Part], engine: OneVsRest) -> list[Part]:
    """Do the same for classes that have a recalibrator each, numbered in order."""
    found = []
    for row, own in zip(rows, engine.certificate().parts.values(), strict=True):
        errors = replace(row, c1_forecast=own.c1, c2_forecast=own.c2, bound=own.bound("C2"))
        found.append(errors if own.rounds else row)
    return found
