"""Kinds of outcomes: what every kind answers, and where the kinds are found.

Whatever depends on what outcomes are (events, events in groups, classes, numbers) stands
together in a module of :mod:`calibrant.kinds`.  Streams, summaries, reports and commands ask the
kind, and know none by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Protocol, TypeVar

from calibrant.errors import CorruptState, InvalidType
from calibrant.summary.collector import Breakdown
from calibrant.summary.summary import AnySummary, Engine, Told, check_version

LAYER: Final = "calibrant.kinds"
"""A layer above this one, so looked up by name and only when somebody asks for that."""


class Kind(Protocol):
    """All that depends on what outcomes are.

    Attributes
    ----------
    name
        What the kind is called.
    precedence
        Kinds with more are asked first whether options and columns are theirs; the default has 0.
    options
        What only this kind is asked for with, and what that holds: ``"raw"`` are columns of raw
        forecasts, given instead of ``--raw``, ``"columns"`` are others, ``"numbers"`` are numbers.
        Each has an entry in the docstring of the class, which is its help on the command line.
    words
        What stored sessions and summaries call it; None where they say nothing.
    summary_type, session_type
        The classes of its summaries and of its sessions; the latter need the extra ``cli``.
    view
        How its summaries are shown: see :class:`calibrant.report.View`.
    service
        How a service makes its models, what is told of a ticket by itself, and what followers
        take of it: see ``kinds/binary/service.py``; None where no service has them.
    """

    name: ClassVar[str]
    precedence: ClassVar[int]
    options: ClassVar[dict[str, str]]
    words: ClassVar[tuple[str | None, ...]]

    @property
    def summary_type(self) -> type[AnySummary]: ...

    @property
    def session_type(self) -> type[Any]: ...

    @property
    def view(self) -> Any: ...

    @property
    def service(self) -> Any: ...

    def wants(self, asked: Any) -> bool:
        """Say whether options or columns are those of this kind."""

    def types(self, columns: Any) -> dict[str, str]:
        """Return which columns hold numbers, with the names of their Arrow types."""

    def make(self, options: Any, seed: int | None) -> Engine:
        """Return a new recalibrator as options ask for it."""

    def session(self, options: Any, seed: int | None) -> Any:
        """Return a new session, with a recalibrator and who follows it."""

    def read(self, data: bytes, secret: bytes | None = None) -> Engine:
        """Return a recalibrator that was stored; with its secret, if that was kept apart."""

    def around(self, data: bytes, secret: bytes | None = None) -> Any | None:
        """Return a session of a recalibrator that was stored alone; None if it is no such one."""

    def makes(self, recalibrator: Engine) -> bool:
        """Say whether a recalibrator is of this kind."""

    def collector(self, recalibrator: Engine) -> Any:
        """Return who can follow a recalibrator's forecasts, in constant memory."""

    def summarise(self, collector: Any, recalibrator: Engine, told: Told) -> AnySummary:
        """Return what was collected as a summary; see :func:`summarise_collected`."""


KindT = TypeVar("KindT", bound=Kind)


class Kinds:
    """The registry of kinds; the last one takes whatever no other wants.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> kinds.of(Recalibrator()).name, list(kinds)[-1].name
    ('binary', 'binary')
    """

    def __init__(self) -> None:
        self._found: list[Kind] = []

    def add(self, kind: type[KindT]) -> type[KindT]:
        """Enter the kind whose class is decorated, by its precedence."""
        self._found = sorted([*self._found, kind()], key=lambda each: -each.precedence)
        return kind

    def __iter__(self) -> Iterator[Kind]:
        importlib.import_module(LAYER)
        return iter(self._found)

    @property
    def options(self) -> dict[str, str]:
        """The options of all kinds: first those that name columns, and the default's last."""
        *others, default = self
        told = [each for kind in (*reversed(others), default) for each in kind.options.items()]
        return dict(sorted(told, key=lambda each: each[1] == "numbers"))

    def wanted(self, asked: Any) -> Kind:
        """Return the kind that options or columns are of."""
        return next(kind for kind in self if kind.wants(asked))

    def of(self, recalibrator: Engine) -> Kind:
        """Return the kind of a recalibrator."""
        for kind in self:
            if kind.makes(recalibrator):
                return kind
        raise InvalidType(f"recalibrator must be one of calibrant's, got {recalibrator!r}")

    def known_as(self, word: str | None) -> Kind:
        """Return the kind that stored data call so."""
        for kind in self:
            if word in kind.words:
                return kind
        raise CorruptState(f"kind must be a known one, got {word!r}")

    def summarised(self, told: Mapping[str, Any]) -> Kind:
        """Return the kind of the numbers of a summary."""
        parts = told.get("breakdown")
        return self.known_as(told.get("kind", parts["kind"] if isinstance(parts, dict) else None))


kinds: Final = Kinds()
"""Every kind of outcomes."""


def collector_for(recalibrator: Engine) -> Any:
    """Return who can follow the forecasts of a recalibrator.

    With a budget for losses beyond the raw forecast, raw forecasts may be announced as well,
    which are any numbers: they are followed to three digits (see :meth:`.Collector.nearest`).

    Examples
    --------
    >>> from calibrant import Calibrant
    >>> len(collector_for(Calibrant()).values), len(collector_for(Calibrant(raw_safe=0.1)).values)
    (61, 1061)
    """
    return kinds.of(recalibrator).collector(recalibrator)


def summarise_collected(
    collector: Any,
    recalibrator: Engine,
    *,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
    timing: Mapping[str, float] | None = None,
    breakdown: Breakdown | None = None,
) -> Any:
    """Return the summary of everything a collector has seen.

    Parameters
    ----------
    collector : Collector or NumberCollector
        What was seen.
    recalibrator
        Who made the forecasts, of any kind.
    seed : int, optional
        What the recalibrator was made with.
    settings : mapping, optional
        More of what it takes to repeat the run.
    counts : mapping, optional
        ``n_skipped`` and ``n_unresolved``, rows that make no round; 0 by default.
    timing : mapping, optional
        Seconds and rates: the only part that two equal runs may differ in.
    breakdown : Breakdown, optional
        What was seen in each group or class.
    """
    rows = {"n_skipped": 0, "n_unresolved": 0, **(counts or {})}
    told = Told(seed, settings or {}, rows, timing or {}, breakdown)
    return kinds.of(recalibrator).summarise(collector, recalibrator, told)


def read_summary(data: Any) -> AnySummary:
    """Read back a summary of any kind.

    >>> read_summary({"version": 0})
    Traceback (most recent call last):
    calibrant.errors.CorruptState: summary must be of version 1, got 0; it was written by another
    release of calibrant
    """
    check_version(data)
    return kinds.summarised(data).summary_type.from_dict(data)
