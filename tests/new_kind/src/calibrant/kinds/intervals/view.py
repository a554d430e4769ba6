"""What a report says about intervals."""

from __future__ import annotations

from typing import Any, Final

from calibrant.kinds.intervals.summary import NAMES, IntervalSummary

from calibrant.plot import Drawing
from calibrant.report.tables import Section, Table, count_lines, rounds_told, settings, shown

FAMILY: Final = "intervals"
COMPARED: Final = (("covered", "covered"), ("width", "width"))
SECTIONS: Final = (
    Section("cover", "Do intervals cover?", tables=("scores",)),
    Section("trust", "Can it be trusted?", guarantee=True),
)
WORDS: Final[dict[str, tuple[str, str]]] = {}
SCORES: Final = {"covered": "part of outcomes inside", "width": "mean width"}
PROMISES: Final = {None: "It is too early.", True: "It was kept.", False: "It was not kept."}


def words(name: str, summary: IntervalSummary) -> tuple[str, str]:
    """Return title and caption of a picture."""
    return WORDS[name]


def opening(summary: IntervalSummary) -> tuple[str, ...]:
    """Return how often intervals covered, and how wide they were."""
    told = summary["forecast"]
    return (f"Intervals cover {told['covered']:.1%}; they are {told['width']:.4g} wide.",)


def facts(summary: IntervalSummary) -> tuple[str, ...]:
    """Return what stands below the headline."""
    return rounds_told(int(summary["n_rounds"])), f"{summary['method']}, {summary['aim']:.0%}"


def promise(summary: IntervalSummary) -> str:
    """Return whether the guarantee was kept."""
    return PROMISES[summary["certificate_holds"]]


def guarantee(summary: IntervalSummary) -> str:
    """Return what is promised at all."""
    return "Coverage in the long run, for every sequence of outcomes."


def _rows(summary: IntervalSummary) -> list[tuple[str, ...]]:
    return [
        (title, *(shown(summary[name][key]) for name in NAMES)) for key, title in SCORES.items()
    ]


def tables(summary: IntervalSummary) -> dict[str, Table | None]:
    """Return the tables by name."""
    scores = Table("Scores", ("", *NAMES), tuple(_rows(summary)), (0,))
    return {"scores": scores, "settings": settings(summary)}


def drawings(summary: IntervalSummary) -> dict[str, Drawing]:
    """Return no pictures."""
    return {}


chosen = drawings


def describe(name: str, summary: IntervalSummary) -> str:
    """Return a picture in words."""
    return WORDS[name][1]


def code(summary: IntervalSummary) -> str:
    """Return the Python that makes the same intervals."""
    own: dict[str, Any] = dict(summary.settings)
    return f"ConformalInterval({own['method']!r}, coverage={own['coverage']!r})"


def screen(summary: IntervalSummary, details: bool = False) -> tuple[list[Table], list[str]]:
    """Return the table before and after, and the lines below."""
    title = f"{rounds_told(summary['n_rounds'])}, {summary['method']}"
    return [Table.of(title, ("", *NAMES), _rows(summary))], count_lines(summary.summary)
