"""Recalibrators behind other libraries' verbs: by row, one at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel, recalibrator
from calibrant.classes.vectors import shared_out
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels.compile import SHORT
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.context import Known
from calibrant.recalibrate.preview import Preview

Key: TypeAlias = str | int | None


def make(method: str, seed: int | None, options: dict[str, Any], key: Key = None) -> Recalibrator:
    """Return the default for ``"calibrant"``, and otherwise Algorithm 1 with that calibrator.

    >>> make("foster_hart", 7, {"buckets": 10})
    Recalibrator('foster_hart', resolution=20, grid='endpoints', buckets=10, prior=1, rounds=0)
    """
    if method == "calibrant":
        return Calibrant(seed=seed, key=key, **options)
    return Recalibrator(method, seed=seed, key=key, **options)


def make_untimed(
    method: str, seed: int | None, options: dict[str, Any], key: Key = None
) -> Recalibrator:
    """Return a recalibrator for rounds without times; refuse a rule that needs times."""
    engine = _untimed(make(method, seed, options, key))
    if engine.spec.slots:
        raise InvalidInput("experts must read no context: none is told here, got one that does")
    return engine


def make_told(names: int, method: str, seed: int | None, options: dict[str, Any]) -> Calibrant:
    """Return a recalibrator of which an expert reads that many features, for rounds without times.

    >>> make_told(2, "calibrant", 7, {}).spec.slots
    64
    """
    if method != "calibrant":
        told = "context must be left out: only experts of method 'calibrant' read it"
        raise InvalidInput(f"{told}, got method {method!r}")
    engine = Calibrant(seed=seed, **options)
    if not engine.spec.slots:
        engine = Calibrant(seed=seed, **options | {"context": True})
    if names > engine.spec.slots:
        raise InvalidInput(f"context must name at most {engine.spec.slots} features, got {names}")
    _untimed(engine)
    return engine


def _untimed(engine: Recalibrator) -> Recalibrator:
    if getattr(engine.calibrator, "timed", False):
        raise InvalidInput("unit must be 'rounds': there are no times here, got 'time'")
    return engine


class Live:
    """One stream of a host library: looks change nothing, rounds are learned.

    Steps are compiled by themselves once so many rounds were learned that it is worth while
    (see :meth:`calibrant.Recalibrator.compile`); what is announced stays the same to the bit.

    Attributes
    ----------
    engine
        The recalibrator.
    look
        Return the mean of the next round (True), or its draw (False), for a raw forecast that was
        checked.
    mean
        Return the mean alone, with a call less.
    left
        After how many rounds the steps will be compiled.

    Examples
    --------
    >>> live = Live(make("calibrant", 7, {}))
    >>> live.look(0.83, True) == live.look(0.83, True)
    True
    >>> live.learn(0.83, 1)
    >>> live.engine.rounds
    1
    """

    __slots__ = ("engine", "left", "look", "mean")

    def __init__(self, engine: Recalibrator) -> None:
        self.engine, self.left = engine, SHORT
        self.look, self.mean = Preview(engine).seen, engine._mean_one

    def learn(self, raw: float, outcome: int) -> None:
        """Make a round of what a look shows now."""
        self.engine.learn_one(raw, outcome)
        self.left -= 1
        if self.left == 0:
            self.engine.compile()

    def __getstate__(self) -> Recalibrator:
        return self.engine

    def __setstate__(self, engine: Recalibrator) -> None:
        self.__init__(engine)  # type: ignore[misc]


Engine: TypeAlias = Recalibrator | ClassCalibrant | OneVsRest | TopLabel


def engine_for(
    classes: int, method: str, seed: int | None, options: dict[str, Any], names: int = 0
) -> Engine:
    """Return a binary recalibrator for two classes, and one over classes for more.

    Of two classes an expert may read features, if there are names of some.

    >>> engine_for(3, "foster_hart", 7, {})
    ClassCalibrant(classes=3, engine='recalibrator', rounds=0)
    """
    if names:
        return make_told(names, method, seed, options)
    binary = make_untimed(method, seed, options)
    if classes == 2:
        return binary
    if method == "calibrant":
        return recalibrator(classes, engine="calibrant", seed=seed, **options)
    return recalibrator(classes, engine="recalibrator", seed=seed, method=method, **options)


def learn_rows(engine: Engine, rows: Reals, outcomes: Words, context: Known = None) -> None:
    """Play rows in their order; the outcome is the number of a column."""
    if context is not None:
        assert isinstance(engine, Calibrant)
        engine.replay(rows[:, 1], outcomes, context=context)
        return
    engine.replay(rows[:, 1] if isinstance(engine, Recalibrator) else rows, outcomes)


def pairs(chances: Reals) -> Reals:
    """Return probabilities of no and of yes, a row each.

    >>> pairs(np.array([0.25, 1.0])).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    return np.column_stack([1.0 - chances, chances])


def preview_rows(engine: Engine, rows: Reals, context: Known = None) -> tuple[Reals, Reals]:
    """Return draws and means of every row as the very next round; nothing is learned.

    >>> rows = np.array([[0.17, 0.83]])
    >>> [made.round(3).tolist() for made in preview_rows(engine_for(2, "foster_hart", 7, {}), rows)]
    [[[0.15, 0.85]], [[0.175, 0.825]]]
    """
    if isinstance(engine, Recalibrator):
        drawn, mean = Preview(engine).many(rows[:, 1], context)
        return pairs(drawn), pairs(mean)
    if isinstance(engine, (ClassCalibrant, OneVsRest)):
        return engine.preview(rows)
    drawn, mean = engine.preview(rows)
    tops = rows.argmax(axis=1)
    return shared_out(rows, tops, drawn), shared_out(rows, tops, mean)
