"""One self-contained page: no script, no network, light and dark, on screen and on paper."""

from __future__ import annotations

import functools
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibrant.core.files import put
from calibrant.errors import InvalidInput, needed
from calibrant.plot import Drawing, save_drawings
from calibrant.plot.canvas import DARK, LIGHT, svg
from calibrant.plot.save import inline
from calibrant.report.tables import Section, Table, shown, too_early, view_of
from calibrant.summary import AnySummary

BOTH: Final = ("raw", "forecast")
MANY: Final = 3


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
    names = [chapter["name"] for chapter in chapters]
    return filled(
        "reports need",
        "calibrant.report",
        "page.html",
        title=f"Calibration of {enumerated(names)}",
        chapters=chapters,
        overview=_overview(chapters, summaries) if len(chapters) > 1 else None,
    )


def _refuse_mixed(summaries: Sequence[AnySummary]) -> None:
    """Refuse to compare what has no score in common."""
    families = list(dict.fromkeys(view_of(summary).FAMILY for summary in summaries))
    if len(families) > 1:
        known = " or all of ".join(sorted(families, reverse=True))
        told = "got both; write a report of each kind"
        raise InvalidInput(f"summaries must be all of {known}, {told}")


def _chapter(summary: AnySummary, place: int) -> dict[str, Any]:
    """Return what the page says about one summary: how it is called, fared, looks and is made."""
    view, anchor, some = view_of(summary), f"run{place}", bool(summary["n_rounds"])
    tables, drawn = view.tables(summary), figures(summary, anchor) if some else {}
    given = summary.settings.get("command")
    return {
        "anchor": anchor,
        "name": _name(summary),
        "headline": unbroken(" ".join(view.opening(summary))),
        "opening": [unbroken(told) for told in view.opening(summary)],
        "facts": view.facts(summary),
        "promise": view.promise(summary),
        "guarantee": view.guarantee(summary),
        "sections": [each for each in view.SECTIONS if some and _has(each, tables | drawn)],
        "figures": drawn,
        "tables": tables,
        "command": shlex.join(map(str, given)) if isinstance(given, (list, tuple)) else given,
        "code": view.code(summary),
    }


def _has(section: Section, made: dict[str, Any]) -> bool:
    """Say whether there is a picture or a table to show."""
    return any(made.get(name) for name in (*section.pictures, *section.tables))


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

    >>> unbroken("0.79 ± 0.02, AUC 0.8").split(" ")
    ['0.79\\xa0±\\xa00.02,', 'AUC\\xa00.8']
    """
    return re.sub(" ([±→]) | (?=%)|(?<=AUC) |(?<=Brier) (?=[0-9])", _kept_together, sentence)


def _kept_together(found: re.Match[str]) -> str:
    return found[0].replace(" ", "\u00a0")


def _overview(chapters: Sequence[dict[str, Any]], summaries: Sequence[AnySummary]) -> Table:
    first, second = (name for name, _ in view_of(summaries[0]).COMPARED)
    header = ("run", "rounds", f"{first} before", "now", f"{second} before", "now", "promise")
    return Table("All runs", header, tuple(map(_line, chapters, summaries)), (0, 6))


def _line(chapter: dict[str, Any], summary: AnySummary) -> tuple[str, ...]:
    compared = view_of(summary).COMPARED
    pairs = [shown(summary[name][key]) for _, key in compared for name in BOTH]
    kept = {True: "kept", False: "exceeded", None: "none"}[summary["certificate_holds"]]
    kept = kept if too_early(summary.summary) is None else "too early"
    return (chapter["name"], f"{int(summary['n_rounds']):,}", *pairs, kept)


@dataclass(frozen=True)
class Figure:
    """A picture as an element of the page, its title and its caption."""

    title: str
    caption: str
    image: str


def figure(drawing: Drawing, ids: str, words: tuple[str, str], told: str) -> Figure:
    """Return a picture as an element of a page.

    Parameters
    ----------
    drawing
        What to draw.
    ids
        What its ids begin with.
    words
        Title and caption.
    told
        What to read to those who cannot see it.
    """
    title, caption = words
    return Figure(title, caption, inline(svg(drawing.draw().figure), ids, title, told))


def figures(summary: AnySummary, prefix: str = "f") -> dict[str, Figure]:
    """Return the pictures that a summary calls for, by name.

    Parameters
    ----------
    summary
        What to draw.
    prefix
        What ids begin with; must differ between the summaries of a page.
    """
    view = view_of(summary)
    return {
        name: figure(
            each, f"{prefix}-{name}", view.words(name, summary), view.describe(name, summary)
        )
        for name, each in view.chosen(summary).items()
    }


def save_pictures(summary: AnySummary, directory: Path) -> None:
    """Write every picture of a summary as PNG and SVG."""
    save_drawings(view_of(summary).drawings(summary), directory)


def filled(who: str, package: str, template: str, *, extra: str = "plot", **values: Any) -> str:
    """Return a package's template with values in their places.

    Parameters
    ----------
    who
        Who needs jinja2, to be told where it is not installed.
    package, template
        Where the template lies; this package's templates can be included.
    extra
        What installs jinja2.
    **values
        What it asks for, beside the colours.
    """
    needed("jinja2", f"{who} jinja2, which is not installed", extra)
    made = _templates(package).get_template(template)
    page: str = made.render(light=_variables(LIGHT), dark=_variables(DARK), **values)
    return page


@functools.cache
def _templates(package: str) -> Any:
    """Return a package's templates, and this one's; each is read once."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("calibrant.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["unbroken"] = unbroken
    return made


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{role}: {colour};" for role, colour in colours.items())
