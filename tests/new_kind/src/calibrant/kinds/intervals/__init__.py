"""Intervals: a point forecast a row, and intervals around them that cover outcomes."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final

from calibrant.kinds.intervals.summary import IntervalCollector, IntervalSummary

from calibrant.regression import ConformalInterval
from calibrant.summary import Engine, Told, kinds, read_if

__all__ = ["IntervalCollector", "IntervalSummary", "Intervals"]

REFUSED: Final = dict.fromkeys(
    ("buckets", "grid", "epsilon", "loss", "scale", "group", "raw_safe", "context", "levels"),
    "it is not for intervals",
)


@kinds.add
class Intervals:
    """Point forecasts in a column; outcomes are numbers.

    centre COL
        Instead of --raw: column of point forecasts; outcomes are numbers, and intervals cover them.
    coverage P
        Part of outcomes that intervals with --centre should cover. [default: 0.9]
    """

    name: ClassVar[str] = "intervals"
    precedence: ClassVar[int] = 40
    options: ClassVar[dict[str, str]] = {"centre": "raw", "coverage": "numbers"}
    words: ClassVar[tuple[str | None, ...]] = ("interval", "intervals")
    summary_type: ClassVar[type[IntervalSummary]] = IntervalSummary
    service: ClassVar[None] = None

    @property
    def session_type(self) -> type[Any]:
        """Return the class of its sessions; needs the extra ``cli``."""
        from calibrant.kinds.intervals.session import IntervalSession

        return IntervalSession

    def wants(self, asked: Any) -> bool:
        """Say whether point forecasts are named."""
        return bool(asked.centre)

    def types(self, columns: Any) -> dict[str, str]:
        """Return which columns hold numbers: all that are read."""
        return dict.fromkeys((*columns.centre, columns.outcome), "double")

    def make(self, options: Any, seed: int | None) -> ConformalInterval:
        """Return intervals with the coverage asked for."""
        options.refuse(REFUSED)
        told = {"coverage": options.coverage[0]} if options.coverage else {}
        return ConformalInterval(options.method or "blend", **told, **options.drawn(seed))

    def session(self, options: Any, seed: int | None) -> Any:
        """Return a new session."""
        return self.session_type.start(self.make(options, seed), seed, options.centre)

    def read(self, data: bytes, secret: bytes | None = None) -> ConformalInterval:
        """Return what was stored."""
        return ConformalInterval.from_bytes(data, secret=secret)

    def around(self, data: bytes, secret: bytes | None = None) -> Any | None:
        """Return a session of intervals that were stored alone."""
        made = read_if(partial(self.read, secret=secret), data)
        return None if made is None else self.session_type.start(made, None, ("centre",))

    def makes(self, recalibrator: Engine) -> bool:
        """Say whether these are intervals."""
        return isinstance(recalibrator, ConformalInterval)

    def collector(self, recalibrator: Engine) -> IntervalCollector:
        """Return who can follow the intervals."""
        return IntervalCollector()

    def summarise(self, collector: Any, recalibrator: Engine, told: Told) -> IntervalSummary:
        """Return what was collected as a summary."""
        return IntervalSummary.of(collector, recalibrator, told)

    @property
    def view(self) -> Any:
        """Return how summaries are shown."""
        from calibrant.kinds.intervals import view

        return view
