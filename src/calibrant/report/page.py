"""One self-contained page: no script, no network, light and dark, on screen and on paper."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibrant.errors import InvalidInput
from calibrant.plot.save import put
from calibrant.report.figures import Figure, figures
from calibrant.report.tables import Table, shown
from calibrant.report.template import filled
from calibrant.report.view import Section, view_of
from calibrant.summary import AnySummary

BOTH: Final = ("raw", "forecast")
MANY: Final = 3


@dataclass(frozen=True)
class Chapter:
    """What the page says about one summary.

    Attributes
    ----------
    anchor, name
        Where to find it, and what it is called.
    headline, facts, promise, guarantee
        The sentence on top, what stands below it, how the guarantee fared, and what it is.
    sections
        What it shows, in order.
    figures, tables
        By name.
    command, code
        How to make it again: on the command line, if it was made there, and in Python.
    """

    anchor: str
    name: str
    headline: str
    facts: tuple[str, ...]
    promise: str
    guarantee: str
    sections: tuple[Section, ...]
    figures: dict[str, Figure]
    tables: dict[str, Table | None]
    command: str | None
    code: str


def write(summary: AnySummary, path: str | os.PathLike[str]) -> Path:
    """Write the report of one summary; return the path.

    Parameters
    ----------
    summary : Summary
        What to tell.
    path : path
        An HTML file.  It is written beside and then moved there, so that no half of it is
        ever seen; one that is there already is replaced.
    """
    return write_many([summary], path)


def write_many(summaries: Sequence[AnySummary], path: str | os.PathLike[str]) -> Path:
    """Write one report of several summaries: a table to compare them, then one after the other."""
    return put(path, render(summaries).encode())


def render(summaries: Sequence[AnySummary]) -> str:
    """Return the page that :func:`write_many` writes."""
    if not summaries:
        raise InvalidInput(f"summaries must be at least one, got {summaries!r}")
    _refuse_mixed(summaries)
    chapters = [_chapter(summary, place) for place, summary in enumerate(summaries, 1)]
    return filled(
        "reports need",
        "calibrant.report",
        "page.html",
        title=f"Calibration of {enumerated([chapter.name for chapter in chapters])}",
        chapters=chapters,
        overview=_overview(chapters, summaries) if len(chapters) > 1 else None,
    )


def _refuse_mixed(summaries: Sequence[AnySummary]) -> None:
    """Refuse to compare what has no score in common."""
    families = list(dict.fromkeys(view_of(summary).FAMILY for summary in summaries))
    if len(families) > 1:
        known = " or all of ".join(sorted(families, reverse=True))
        raise InvalidInput(
            f"summaries must be all of {known}, got both; write a report of each kind"
        )


def _chapter(summary: AnySummary, place: int) -> Chapter:
    view, anchor, some = view_of(summary), f"run{place}", bool(summary["n_rounds"])
    tables = view.tables(summary)
    return Chapter(
        anchor=anchor,
        name=_name(summary),
        headline=unbroken(view.headline(summary)),
        facts=view.facts(summary),
        promise=view.promise(summary),
        guarantee=view.guarantee(summary),
        sections=tuple(each for each in view.SECTIONS if some and _has(each, tables)),
        figures=figures(summary, anchor) if some else {},
        tables=tables,
        command=_command(summary.settings.get("command")),
        code=view.code(summary),
    )


def _has(section: Section, tables: dict[str, Table | None]) -> bool:
    """Say whether there is anything to show; a section of pictures alone always has one."""
    return not section.tables or any(tables[name] for name in section.tables)


def _name(summary: AnySummary) -> str:
    inputs = summary.settings.get("inputs") or []
    listed = [inputs] if isinstance(inputs, str) else [str(each) for each in inputs]
    names = ["standard input" if each == "-" else os.path.basename(each) for each in listed]
    return enumerated(names) if names else f"a run of {summary['method']}"


def enumerated(names: Sequence[str]) -> str:
    """Return up to three names in words, and how many more there are.

    >>> enumerated(["a"]), enumerated(["a", "b"]), enumerated(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    told = list(names) if len(names) <= MANY else [*names[:MANY], f"{len(names) - MANY} more"]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def unbroken(sentence: str) -> str:
    """Return ``sentence`` with spaces that no line ends at around its signs.

    >>> unbroken("0.79 ± 0.02").split(" ")
    ['0.79\\xa0±\\xa00.02']
    """
    return re.sub(" ([±→]) ", "\u00a0\\1\u00a0", sentence)


def _command(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    return shlex.join(str(word) for word in given)


def _overview(chapters: Sequence[Chapter], summaries: Sequence[AnySummary]) -> Table:
    first, second = (name for name, _ in view_of(summaries[0]).COMPARED)
    header = ("run", "rounds", f"{first} before", "now", f"{second} before", "now", "promise")
    return Table("All runs", header, tuple(map(_line, chapters, summaries)), (0, 6))


def _line(chapter: Chapter, summary: AnySummary) -> tuple[str, ...]:
    compared = view_of(summary).COMPARED
    pairs = [shown(summary[name][key]) for _, key in compared for name in BOTH]
    kept = {True: "kept", False: "exceeded", None: "none"}[summary["certificate_holds"]]
    return (chapter.name, f"{int(summary['n_rounds']):,}", *pairs, kept)
