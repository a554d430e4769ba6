"""Run experiments by name, and write down what came of them: files, and one page."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calibrant.core.files import FilePath, put
from calibrant.errors import InvalidInput
from calibrant.experiments.claims import VERDICTS, Claim
from calibrant.experiments.experiment import Experiment, Result, Setting, attempt, experiments
from calibrant.experiments.figures import Columns, columns_of
from calibrant.plot.canvas import svg
from calibrant.plot.save import inline, save_figure
from calibrant.report.page import Figure, filled

WHOSE: Final = {"paper": "the paper's", "ours": "our own"}
"""Whose claims are counted apart, by their source."""
MARKS: Final = {True: "yes", False: "no", None: "open"}
"""Classes of the page for the verdicts."""


@dataclass(frozen=True, eq=False)
class Chapter:
    """An experiment that was run.

    Attributes
    ----------
    experiment, result
        Which, and what came of it.
    seconds
        How long it took.
    """

    experiment: Experiment
    result: Result
    seconds: float

    @property
    def headline(self) -> str:
        """How many claims hold, in words."""
        return headline([self])

    def figures(self) -> list[Figure]:
        """Return the pictures as elements of the page."""
        return [
            Figure(p.title, p.caption, inline(svg(p.draw()), name, p.title, p.caption))
            for name, p in self.result.figures.items()
        ]


def headline(chapters: Sequence[Chapter]) -> str:
    """Return how many claims hold, do not, and could not be looked at: the paper's, and ours.

    Examples
    --------
    >>> from calibrant.experiments import experiments
    >>> from calibrant.experiments.claims import below, unmeasured
    >>> claims = (below("a", "", 1.0, 2.0), below("b", "", 3.0, 2.0), unmeasured("c", "", ""))
    >>> headline([Chapter(experiments.get("qa"), Result(claims), 1.0)])
    "1 of the paper's 3 claims holds, 1 does not, 1 was not measured"
    """
    claims = [claim for each in chapters for claim in each.result.claims]
    told = [
        _count(whose, [claim for claim in claims if claim.source == source])
        for source, whose in WHOSE.items()
    ]
    return "; ".join(filter(None, told)) or "nothing could be measured here"


def failures(chapters: Sequence[Chapter]) -> list[str]:
    """Return a line for each claim that does not hold: number, bar, and the seeds that miss it."""
    return [
        f"{each.experiment.name}: {claim.failure}"
        for each in chapters
        for claim in each.result.claims
        if claim.holds is False
    ]


def _count(whose: str, claims: Sequence[Claim]) -> str:
    """Return how many of somebody's claims hold; nothing if there are none."""
    found = Counter(claim.holds for claim in claims)
    if not claims:
        return ""
    many = f"{found[True]} of {whose} {len(claims)}"
    told = [f"{many} claims hold{'s' if found[True] == 1 else ''}"]
    if found[False]:
        told.append(f"{found[False]} {'does' if found[False] == 1 else 'do'} not")
    if found[None]:
        told.append(f"{found[None]} {'was' if found[None] == 1 else 'were'} not measured")
    return ", ".join(told)


def render(chapters: Sequence[Chapter], *, command: str | None = None) -> str:
    """Return the page."""
    return filled(
        "the page needs",
        "calibrant.experiments",
        "reproduction.html",
        extra="experiments",
        title="Estimating uncertainty online against an adversary, run again",
        headline=headline(chapters),
        chapters=chapters,
        seconds=sum(each.seconds for each in chapters),
        command=command,
        marks=MARKS,
        verdicts=VERDICTS,
    )


ALL = "all"


def reproduce(names: Iterable[str], setting: Setting) -> list[Chapter]:
    """Run experiments, in the paper's order.

    Parameters
    ----------
    names
        Which; ``"all"`` stands for every one.  If it is among them, an experiment whose data
        are missing says so in its result; otherwise that is an error.
    setting
        How.

    Examples
    --------
    >>> reproduce(["chess"], Setting(Path("data")))
    Traceback (most recent call last):
    calibrant.errors.UnknownName: experiment must be one of 'adversary', 'bernoulli',
    ... 'theory', got 'chess'
    """
    asked = list(names)
    chosen = in_order(asked)
    return [_run(each, setting, lenient=ALL in asked) for each in chosen]


def in_order(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments of these names, in the paper's order."""
    if not names:
        raise InvalidInput(f"experiments must be at least one, got {names!r}")
    known = experiments.names() if ALL in names else dict.fromkeys(names)
    found = [experiments.get(name) for name in known]
    return sorted(found, key=lambda each: each.place)


def _run(each: Experiment, setting: Setting, *, lenient: bool) -> Chapter:
    began = time.perf_counter()
    setting.tell(f"{each.name}: {each.title}")
    result = attempt(each.run, setting) if lenient else each.run(setting)
    return Chapter(each, result, time.perf_counter() - began)


def write(
    done: Sequence[Chapter], directory: FilePath, *, command: str | None = None
) -> list[Path]:
    """Write figures, numbers and the page ``index.html``; return the paths, the page last.

    Parameters
    ----------
    done
        What was run.
    directory
        Where to; made if it is not there.  Files of the same names are replaced, each in one
        step.
    command
        What makes it again, for the page.
    """
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    written = [put(place / "claims.csv", _csv(claims_columns(done)))]
    for each in done:
        written += _write_numbers(each.result, place)
    return [*written, put(place / "index.html", render(done, command=command).encode())]


def _write_numbers(result: Result, place: Path) -> list[Path]:
    written = [put(place / f"{name}.csv", _csv(table)) for name, table in result.columns.items()]
    for name, panels in result.figures.items():
        written += save_figure(panels.draw(), place / name)
    return written


def claims_columns(done: Sequence[Chapter]) -> Columns:
    """Return all claims as columns."""
    names = [each.experiment.name for each in done for _ in each.result.claims]
    claims = [claim for each in done for claim in each.result.claims]
    told = columns_of(claims, "key", "claim=said", "source", "bar", "value", "verdict")
    return {"experiment": names, **told}


def _csv(columns: Columns) -> bytes:
    """Return columns as a comma-separated file; numbers are written in full."""
    held = io.StringIO(newline="")
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return held.getvalue().encode()
