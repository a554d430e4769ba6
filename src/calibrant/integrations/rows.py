"""Tables of raw forecasts: what is expected of each row now, and what would be drawn."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from calibrant.classes import OneVsRest, TopLabel, recalibrator
from calibrant.classes.vectors import shared_out
from calibrant.core.arrays import Reals, Words
from calibrant.integrations.live import make_untimed
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.preview import Preview

Engine: TypeAlias = Recalibrator | OneVsRest | TopLabel


def engine_for(classes: int, method: str, seed: int | None, options: dict[str, Any]) -> Engine:
    """Return a binary recalibrator for two classes, and one over classes for more.

    >>> engine_for(3, "foster_hart", 7, {})
    OneVsRest(classes=3, engine='recalibrator', renormalise='project', rounds=0)
    """
    binary = make_untimed(method, seed, options)
    if classes == 2:
        return binary
    if method == "calibrant":
        return recalibrator(classes, engine="calibrant", seed=seed, **options)
    return recalibrator(classes, engine="recalibrator", seed=seed, method=method, **options)


def learn_rows(engine: Engine, rows: Reals, outcomes: Words) -> None:
    """Play rows in their order; the outcome is the number of a column."""
    engine.replay(rows[:, 1] if isinstance(engine, Recalibrator) else rows, outcomes)


def preview_rows(engine: Engine, rows: Reals) -> tuple[Reals, Reals]:
    """Return draws and means of every row as the very next round; nothing is learned.

    >>> rows = np.array([[0.17, 0.83]])
    >>> [made.round(3).tolist() for made in preview_rows(engine_for(2, "foster_hart", 7, {}), rows)]
    [[[0.15, 0.85]], [[0.175, 0.825]]]
    """
    if isinstance(engine, Recalibrator):
        drawn, mean = Preview(engine).many(rows[:, 1])
        return np.column_stack([1.0 - drawn, drawn]), np.column_stack([1.0 - mean, mean])
    if isinstance(engine, OneVsRest):
        return engine.preview(rows)
    drawn, mean = engine.preview(rows)
    tops = rows.argmax(axis=1)
    return shared_out(rows, tops, drawn), shared_out(rows, tops, mean)
