"""Pages and their fragments: what is asked of the source, how often, and what has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from calibrant.errors import UnknownName
from calibrant.kernels.tallies import LEVELS, WINDOW
from calibrant.live import fragments
from calibrant.live.fragments import NEEDS, Fragment
from calibrant.live.source import Source
from calibrant.report.page import filled

QUICK: Final = 1.0
SLOW: Final = 10.0
Seen: TypeAlias = frozenset[str] | None
"""Streams that may be seen; None for all."""


def level_of(window: str | None) -> int | None:
    """Return the level of windows of that many rounds; None where no such ones are followed.

    >>> level_of("1250"), level_of(None), level_of("7")
    (1, None, None)
    """
    known = {str(WINDOW << level): level for level in range(LEVELS)}
    return known.get(window or "")


@dataclass
class _Kept:
    """Fragments and when they were made."""

    made: float
    parts: list[Fragment]


class Pages:
    """The pages of a source, whole or in fragments.

    Parameters
    ----------
    source
        What there is to see.
    quick, slow
        Seconds for which counts, scores and alarms, and all that takes a summary, are good.  All
        who look at a stream share one answer.
    clock
        What the time is.
    leave
        Where one logs in and out; None where nobody needs to.

    Examples
    --------
    >>> from calibrant.live import Memory
    >>> "No streams yet." in Pages(Memory()).overview()
    True
    """

    def __init__(
        self,
        source: Source,
        *,
        quick: float = QUICK,
        slow: float = SLOW,
        clock: Callable[[], float] = time.monotonic,
        leave: str | None = None,
    ) -> None:
        self.source, self.quick, self.slow, self._clock = source, quick, slow, clock
        self._leave = leave
        self._kept: dict[Any, _Kept] = {}

    # --------------------------------------------------------------------- whole

    def overview(self, root: str = "", seen: Seen = None) -> str:
        """Return the page of all streams, or of those that may be seen.

        ``root`` is where the application is mounted.
        """
        parts = self.all_streams(root, seen)
        return self._shell("All streams", root, f"{root}/events", parts, False)

    def stream(
        self, name: str, root: str = "", window: str | None = None, seen: Seen = None
    ) -> str:
        """Return the page of one stream."""
        query = "" if window is None else f"?window={quote(window)}"
        events = f"{root}/events/{quote(name, safe='')}{query}"
        return self._shell(name, root, events, self.one_stream(name, root, window, seen), True)

    def _shell(self, title: str, root: str, events: str, parts: list[Fragment], home: bool) -> str:
        values = {"title": title, "root": root, "events": events, "fragments": parts, "home": home}
        leave = None if self._leave is None else root + self._leave
        return filled(NEEDS, "calibrant.live", "shell.html", extra="serve", leave=leave, **values)

    def style(self) -> str:
        """Return the style sheet: the report's own, and the page's."""
        return filled(NEEDS, "calibrant.live", "live.css", extra="serve")

    # ----------------------------------------------------------------- fragments

    def all_streams(self, root: str = "", seen: Seen = None) -> list[Fragment]:
        """Return the fragments of the page of all streams."""
        return self._recent(("all", root, seen), self.quick, lambda: [self._all(root, seen)])

    def _all(self, root: str, seen: Seen) -> Fragment:
        names = [name for name in self.source.streams() if seen is None or name in seen]
        links = [f"{root}/streams/{quote(name, safe='')}" for name in names]
        found = [(self.source.glance(name), self.source.board(name)) for name in names]
        rows = zip(names, links, found, strict=True)
        return fragments.overview([(name, link, *pair) for name, link, pair in rows])

    def one_stream(
        self, name: str, root: str = "", window: str | None = None, seen: Seen = None
    ) -> list[Fragment]:
        """Return the fragments of a stream, in order."""
        if seen is not None and name not in seen:
            raise UnknownName(f"stream must be one that is there, got {name!r}")
        level = level_of(window)
        link = f"{root}/streams/{quote(name, safe='')}"
        quick = self._recent(("quick", name), self.quick, lambda: self._quick(name))
        key = "slow", name, root, level
        slow = self._recent(key, self.slow, lambda: self._slow(name, level, link))
        return [*quick[:3], *slow[:2], *quick[3:], *slow[2:]]

    def _quick(self, name: str) -> list[Fragment]:
        seen, board = self.source.glance(name), self.source.board(name)
        first = fragments.verdict(seen, board), fragments.facts(seen), fragments.reliability(seen)
        return [*first, fragments.alarms(board), fragments.late(seen)]

    def _slow(self, name: str, level: int | None, link: str) -> list[Fragment]:
        source = self.source
        summary, found = source.story(name), source.windows(name, level)
        return [
            fragments.over_time(summary),
            fragments.windows(found, level, link),
            fragments.spread(summary),
            fragments.parts(summary, source.keys(name)),
            fragments.trust(summary, source.certificate(name)),
            fragments.settings(source.settings(name)),
        ]

    def _recent(self, key: Any, good: float, make: Callable[[], list[Fragment]]) -> list[Fragment]:
        """Return fragments that were made a short time ago, or make them."""
        now, kept = self._clock(), self._kept.get(key)
        if kept is None or now - kept.made >= good:
            self._kept[key] = kept = _Kept(now, make())
            for old in [k for k, each in self._kept.items() if now - each.made > 60 * self.slow]:
                self._kept.pop(old, None)
        return kept.parts
