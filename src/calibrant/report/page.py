"""One self-contained page: no script, no network, light and dark, on screen and on paper."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from calibrant.errors import InvalidInput, MissingExtra
from calibrant.plot.files import put
from calibrant.plot.palette import DARK, LIGHT
from calibrant.registry import calibrators
from calibrant.report import numbers, tables
from calibrant.report.figures import Figure, figures
from calibrant.report.headline import headline
from calibrant.report.judge import number
from calibrant.report.tables import Table, shown
from calibrant.summary import AnyStory, NumberStory, Story

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["render", "write", "write_many"]

BOTH: Final = ("raw", "forecast")
MANY: Final = 3

GUARANTEE: Final = (
    "The drawn forecasts are promised to be calibrated, on average over the draws and whatever "
    "the outcomes, as long as nobody knows a draw before its outcome is settled. Raw and mean "
    "forecasts are promised nothing."
)
NO_GUARANTEE: Final = (
    "Nothing is promised here. Forecasts that are calibrated on this stream may not be on the next."
)
OWN: Final = ("resolution", "grid", "buckets", "seed")
MAKERS: Final = {
    "groups": ("GroupRecalibrator", ("form", "prior", *OWN)),
    "one-vs-rest": ("OneVsRest", ("classes", "engine", *OWN)),
    "top-label": ("TopLabel", ("classes", "engine", *OWN)),
}
"""Who is made in Python by what a summary calls its method, and with which settings."""
LATE: Final = (
    "Outcomes came late here, at most {:,} outstanding at a forecast, and no theorem of this "
    "method speaks of late outcomes. What was measured stands; nothing is promised."
)
WITHDRAWN: Final = (
    "The announced forecasts never lost more than {:g} to yours on average, as was asked. To keep "
    "that, your own forecast was announced in {:,} rounds, so the promise of calibration is "
    "withdrawn."
)
OTHERS: Final = " Of the other rounds C2 is promised to be at most {}."
CHAIN: Final = (
    "Nor do they lose much accuracy: their loss exceeds that of the mixture of experts by little, "
    "and the mixture's that of any expert, the raw forecast included."
)


@dataclass(frozen=True)
class Chapter:
    """What the page says about one story.

    Attributes
    ----------
    anchor, name
        Where to find it, and what it is called.
    headline, facts, promise, guarantee
        The sentence on top, what stands below it, how the guarantee fared, and what it is.
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
    figures: dict[str, Figure]
    tables: dict[str, Table | None]
    command: str | None
    code: str


def write(story: AnyStory, path: str | os.PathLike[str]) -> Path:
    """Write the report of one story; return the path.

    Parameters
    ----------
    story : Story
        What to tell.
    path : path
        An HTML file.  It is written beside and then moved there, so that no half of it is
        ever seen; one that is there already is replaced.
    """
    return write_many([story], path)


def write_many(stories: Sequence[AnyStory], path: str | os.PathLike[str]) -> Path:
    """Write one report of several stories: a table to compare them, then one after the other."""
    return put(path, render(stories).encode())


def render(stories: Sequence[AnyStory]) -> str:
    """Return the page that :func:`write_many` writes."""
    if not stories:
        raise InvalidInput(f"stories must be at least one, got {stories!r}")
    _refuse_mixed(stories)
    chapters = [_any_chapter(story, place) for place, story in enumerate(stories, 1)]
    return _template().render(
        title=f"Calibration of {enumerated([chapter.name for chapter in chapters])}",
        chapters=chapters,
        overview=_overview(chapters, stories) if len(chapters) > 1 else None,
        light=_variables(LIGHT),
        dark=_variables(DARK),
    )


def _refuse_mixed(stories: Sequence[AnyStory]) -> None:
    """Refuse to compare what has no score in common."""
    if len({isinstance(story, NumberStory) for story in stories}) > 1:
        raise InvalidInput(
            "stories must be all of probabilities or all of numbers, got both; "
            "write a report of each kind"
        )


def _template() -> Template:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError as error:
        told = 'reports need jinja2, which is not installed: pip install "calibrant[plot]"'
        raise MissingExtra(told) from error
    return Environment(
        loader=PackageLoader("calibrant.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("page.html")


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{role}: {colour};" for role, colour in colours.items())


def _any_chapter(story: AnyStory, place: int) -> Chapter:
    return _numbers(story, place) if isinstance(story, NumberStory) else _chapter(story, place)


def _numbers(story: NumberStory, place: int) -> Chapter:
    return Chapter(
        anchor=f"run{place}",
        name=_name(story),
        headline=unbroken(numbers.number_headline(story)),
        facts=numbers.number_facts(story),
        promise=numbers.number_promise(story),
        guarantee=numbers.number_guarantee(story),
        figures=numbers.number_figures(story, f"run{place}") if story.summary["n_rounds"] else {},
        tables=numbers.number_tables(story),
        command=_command(story.settings.get("command")),
        code=numbers.number_code(story),
    )


def _chapter(story: Story, place: int) -> Chapter:
    return Chapter(
        anchor=f"run{place}",
        name=_name(story),
        headline=unbroken(headline(story)),
        facts=_facts(story),
        promise=promise(story),
        guarantee=guarantee(story),
        figures=figures(story, f"run{place}") if story.summary["n_rounds"] else {},
        tables={
            "scores": tables.scores(story),
            "buckets": tables.buckets(story),
            "brier": tables.brier_parts(story),
            "parts": tables.parts(story),
            "windows": tables.windows(story),
            "promises": tables.promises(story),
            "chain": tables.chain(story),
            "settings": tables.settings(story),
        },
        command=_command(story.settings.get("command")),
        code=_code(story),
    )


def _name(story: AnyStory) -> str:
    inputs = story.settings.get("inputs") or []
    listed = [inputs] if isinstance(inputs, str) else [str(each) for each in inputs]
    names = ["standard input" if each == "-" else os.path.basename(each) for each in listed]
    return enumerated(names) if names else f"a run of {story.summary['method']}"


def enumerated(names: Sequence[str]) -> str:
    """Return up to three names in words, and how many more there are.

    >>> enumerated(["a"]), enumerated(["a", "b"]), enumerated(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    told = list(names) if len(names) <= MANY else [*names[:MANY], f"{len(names) - MANY} more"]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def _facts(story: Story) -> tuple[str, ...]:
    told = story.summary
    counts = [f"{int(told['n_rounds']):,} rounds", f"base rate {shown(told['base_rate'], 3)}"]
    for key, words in (("n_skipped", "rows skipped"), ("n_unresolved", "without an outcome yet")):
        if told.get(key):
            counts.append(f"{int(told[key]):,} {words}")
    seed = "no seed" if told["seed"] is None else f"seed {told['seed']}"
    many = "1 bucket" if told["buckets"] == 1 else f"{told['buckets']} buckets"
    size = f"resolution {told['resolution']}, {many}"
    return (*counts, f"{told['method']}, {size}, {seed}")


def unbroken(sentence: str) -> str:
    """Return ``sentence`` with spaces that no line ends at around its signs.

    >>> unbroken("0.79 ± 0.02").split(" ")
    ['0.79\\xa0±\\xa00.02']
    """
    return re.sub(" ([±→]) ", "\u00a0\\1\u00a0", sentence)


def promise(story: Story) -> str:
    """Return a sentence on whether the guarantee was kept."""
    holds, told = story.summary["certificate_holds"], story.summary["bound"]
    if not story.summary["n_rounds"]:
        return "What was promised will be checked once there are rounds."
    if (spent := (story.summary.get("chain") or {}).get("budget")) and spent["aside"]:
        told_so = WITHDRAWN.format(spent["epsilon"], int(spent["aside"]))
        rest = "" if spent["c2_bound"] is None else OTHERS.format(shown(spent["c2_bound"]))
        return told_so + rest
    if late(story):
        return LATE.format(int(story.summary["certificate"]["delay"]))
    if holds is None:
        return f"{story.summary['method']} makes no promise that could be checked here."
    measured, c2 = number(story.summary["certificate"]["c2"]), told["c2"]
    pair = "" if c2 is None else f" C2 is {shown(measured)}, and the bound is {shown(c2)}."
    if holds:
        return f"The guarantee, which holds against any adversary, was kept.{pair}"
    return (
        f"A bound was exceeded in this run.{pair} Bounds hold on average over the draws, so a "
        "single run may exceed a tight one."
    )


def late(story: Story) -> bool:
    """Return whether nothing is promised because outcomes came late."""
    told = story.summary
    return told["certificate_holds"] is None and bool(told["certificate"].get("delay"))


def guarantee(story: Story) -> str:
    """Return what is promised at all."""
    if story.summary["certificate_holds"] is None:
        return NO_GUARANTEE
    return f"{GUARANTEE} {CHAIN}" if story.summary.get("chain") else GUARANTEE


def _command(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    return shlex.join(str(word) for word in given)


def _code(story: Story) -> str:
    """Return the Python that makes the same recalibrator."""
    told, method = story.settings, story.summary["method"]
    if story.parts is not None:
        names = [name for name in MAKERS[method][1] if name in told]
        return f"{MAKERS[method][0]}({', '.join(f'{name}={told[name]!r}' for name in names)})"
    calibrator = told.get("calibrator", method)
    rule = calibrators.get(calibrator) if calibrator in calibrators.names() else None
    names = [*getattr(rule, "__dataclass_fields__", ()), "buckets", "prior", "loss", "seed"]
    words = [f"{name}={told[name]!r}" for name in names if name in told]
    if story.summary.get("chain") is None:
        return f"Recalibrator({', '.join([repr(method), *words])})"
    experts = [told["experts"]] if "experts" in told else []
    words += [f"raw_safe={told['raw_safe']!r}"] if "raw_safe" in told else []
    return f"Calibrant({', '.join([*experts, f'method={calibrator!r}', *words])})"


def _overview(chapters: Sequence[Chapter], stories: Sequence[AnyStory]) -> Table:
    first, second = (name for name, _ in _compared(stories[0]))
    header = ("run", "rounds", f"{first} before", "now", f"{second} before", "now", "promise")
    return Table("All runs", header, tuple(map(_line, chapters, stories)), (0, 6))


def _compared(story: AnyStory) -> tuple[tuple[str, str], ...]:
    """Return the two scores that runs are compared by."""
    if isinstance(story, NumberStory):
        return ("CRPS", "crps"), ("coverage error", "coverage_error")
    return ("Brier", "brier"), ("C2", "calibration_l2")


def _line(chapter: Chapter, story: AnyStory) -> tuple[str, ...]:
    told = story.summary
    pairs = [shown(told[name][key]) for _, key in _compared(story) for name in BOTH]
    kept = {True: "kept", False: "exceeded", None: "none"}[told["certificate_holds"]]
    return (chapter.name, f"{int(told['n_rounds']):,}", *pairs, kept)
