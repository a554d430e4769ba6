"""A recalibrator in use: previews and rounds, compiled once that is worth it."""

from __future__ import annotations

from typing import Any

from calibrant.errors import InvalidInput
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.preview import Preview
from calibrant.recalibrate.rows import SHORT


def make(
    method: str, seed: int | None, options: dict[str, Any], key: str | int | None = None
) -> Recalibrator:
    """Return the default for ``"calibrant"``, and otherwise Algorithm 1 with that calibrator.

    >>> make("foster_hart", 7, {"buckets": 10})
    Recalibrator('foster_hart', resolution=20, grid='endpoints', buckets=10, prior=1, rounds=0)
    """
    if method == "calibrant":
        return Calibrant(seed=seed, key=key, **options)
    return Recalibrator(method, seed=seed, key=key, **options)


def make_untimed(
    method: str, seed: int | None, options: dict[str, Any], key: str | int | None = None
) -> Recalibrator:
    """Return a recalibrator for rounds without times; refuse a rule that needs times."""
    engine = make(method, seed, options, key)
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

    __slots__ = ("engine", "left", "look")

    def __init__(self, engine: Recalibrator) -> None:
        self.engine, self.look, self.left = engine, Preview(engine).seen, SHORT

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
