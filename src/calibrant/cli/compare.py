"""``calibrant compare``."""

from __future__ import annotations

import contextlib
import os
import textwrap
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from calibrant.cli import screen
from calibrant.cli.options import Ending, Inputs, Reading, among, require, spread
from calibrant.cli.products import check_page, command
from calibrant.compare import KEYS, KINDS, Comparison, methods_by_name, write
from calibrant.compare import compare as compare_methods
from calibrant.compare.comparison import headline
from calibrant.core import check
from calibrant.core.grid import GRIDS
from calibrant.report.tables import printed
from calibrant.stream import Answers, Columns, Drafts, Job, OnFault, Scale, Skip, Stop
from calibrant.stream.failure import insist, naming
from calibrant.stream.replay import Progress, replay
from calibrant.stream.rows import Rounds
from calibrant.stream.session import Feed
from calibrant.stream.source import Source
from calibrant.summary import Collector

RULES: Final = ("stop", "skip")
"""What may become of bad rows."""
NEEDED: Final = ("jinja2", "matplotlib")
"""What the page is made with."""


@dataclass(frozen=True)
class Field:
    """Who takes part, in how many rounds.

    methods A,B
        Only these, and the raw forecasts. [default: all]
    peers, --peers/--no-peers
        Include methods of River and scikit-learn if installed.
    rounds N
        Only the first N. [default: all]
    adversarial T
        Rounds against the paper's adversary; 0 for none.
    """

    methods: str | None = None
    peers: bool = True
    rounds: int | None = None
    adversarial: int = 2_000

    @property
    def names(self) -> list[str] | None:
        """The methods that are asked for; unknown ones are refused before anything is read."""
        if self.methods is None:
            return None
        names = [name.strip() for name in self.methods.split(",") if name.strip()]
        known = tuple(methods_by_name())
        return [check.choice(name, "--methods", known) for name in names]


@dataclass(frozen=True)
class Sizes:
    """What recalibrators are made with."""

    resolution: int | None = None
    buckets: int | None = None
    grid: str | None = among(lambda: list(GRIDS))
    prior: int | None = None
    seed: int | None = 0


@dataclass(frozen=True)
class Telling:
    """What is told of methods.

    rank_by KEY
        Rank by one of: {}.
    on_error RULE
        Bad rows: stop or skip.
    report FILE
        Write the page, one HTML file.

    ``--by``, ``--skip`` and ``--html`` are earlier names of these.
    """

    rank_by: str = among(lambda: list(KEYS), "brier")
    on_error: str = "stop"
    report: str | None = None
    skip: bool = False
    html: str | None = None
    by: str | None = None

    @property
    def key(self) -> str:
        """What methods are ranked by; elsewhere ``--by`` names the column of keys."""
        if self.by is None:
            return check.choice(self.rank_by, "--rank-by", tuple(KEYS))
        screen.say_renamed("--by", "--rank-by")
        return check.choice(self.by, "--by", tuple(KEYS))

    @property
    def rule(self) -> str:
        """What becomes of bad rows."""
        return check.choice("skip" if self.skip else self.on_error, "--on-error", RULES)

    @property
    def page(self) -> str | None:
        """Where the page goes."""
        name = self.html if self.report is None else self.report
        check_page(name)
        return name


@spread
def compare(
    inputs: Inputs, *, reading: Reading, who: Field, sizes: Sizes, telling: Telling, ending: Ending
) -> None:
    """Compare all methods on one stream: accuracy, safety and cost.

    Each method sees an outcome only after its forecast. The page plots accuracy against
    calibration.

    \b
    Example:
      calibrant compare games.csv --raw prob --outcome won --report games.html
    """
    key = telling.key
    job, scale, asked = reading.job(inputs), reading.scale, who.rounds
    limit = None if asked is None else check.whole(asked, "--rounds", low=1)
    methods, adversarial = who.names, check.whole(who.adversarial, "--adversarial")
    own = {"seed": 0} | {name: value for name, value in vars(sizes).items() if value is not None}
    page, on_error = telling.page, telling.rule
    with Drafts(force=ending.force, inputs=inputs) as drafts:
        place = None if page is None else _reserve(drafts, page)
        rounds, columns = _read(job, scale, on_error == "skip", limit)
        with screen.progress(("methods",)) as show:
            made = compare_methods(
                rounds.raw, rounds.outcomes, **_delivery(rounds), methods=methods,
                peers=who.peers, adversarial_rounds=adversarial, title=_title(inputs), **own,
                progress=lambda done, total, name: show(done * len(rounds), done, total),
            )  # fmt: skip
        if page is not None and place is not None:
            options = {"format": job.format, **columns.options, "rounds": limit}
            options["methods"] = None if methods is None else ",".join(methods)
            options |= {"adversarial": adversarial, **own}
            options["on-error"] = None if on_error == "stop" else on_error
            flags = {f"--{scale}": scale is not None, "--no-peers": not who.peers}
            told = [flag for flag in flags if flags[flag]]
            again = command(["compare", *inputs, *reading.words], options, *told)
            with naming(page):
                write(made, place, command=again)
        drafts.commit()
    with screen.telling():
        _tell(made, key, ending.as_json)


def _reserve(drafts: Drafts, page: str) -> Path:
    """Find out before the work whether the page can be written after it."""
    require("--report", NEEDED)
    return drafts.reserve(page)


def _read(job: Job, scale: str | None, skip: bool, limit: int | None) -> tuple[Rounds, Columns]:
    on_fault = Skip() if skip else Stop()
    with screen.progress(job.inputs) as show:
        found = gather(job, scale, on_fault, limit=limit, progress=show)
    screen.say_refused(on_fault, len(found[0]))
    return found


def _delivery(rounds: Rounds) -> dict[str, Any]:
    """Return when forecasts were made and outcomes became known; empty if all were at once."""
    return {} if rounds.available is None and rounds.known.all() else rounds.delivery()


def _title(inputs: list[str]) -> str:
    names = ["standard input" if name == "-" else os.path.basename(name) for name in inputs]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _tell(made: Comparison, by: str, as_json: bool) -> None:
    for kind in made.absent:
        screen.say(f"{KINDS[kind]} is not installed here: its methods are missing")
    if as_json:
        screen.tell_json({"headline": headline(made), **made.to_dict()})
        return
    _print(made, by)
    for line in textwrap.wrap(headline(made), screen.LINE):
        print(line)


def _print(made: Comparison, by: str) -> None:
    front = made.front()
    headings = {"": "right", "method": "left", "kind": "left"}
    scores = [f"{title}{' *' if key == by else ''}" for key, title in KEYS.items()]
    headings |= dict.fromkeys((*scores, "µs", "bytes"), "right")
    cells = []
    for rank, row in enumerate(made.ranked(by), 1):
        place = f"{rank}{'.' if row.name in front else ' '}"
        measured = [printed(getattr(row, key)) for key in KEYS]
        price = [f"{made.microseconds(row.name):.1f}", f"{row.state_bytes:,}"]
        cells.append([place, row.name, row.kind, *measured, *price])
    what = "* ranked by; a dot: not beaten in Brier and C2"
    screen.show(headings, cells, f"{made.rounds:,} rounds, seed {made.seed}; {what}", width=170)
    print()


def gather(
    job: Job, scale: str | None, on_fault: OnFault, *, limit: int | None, progress: Progress
) -> tuple[Rounds, Columns]:
    """Read the rounds of a job, at most ``limit`` of them, by the rules of a replay.

    Columns that were guessed are told.
    """
    session, found = _Gathering(scale, limit), []

    def begin(source: Source, columns: Columns) -> None:
        found.append(columns)
        screen.say_guesses(job, columns, source.notes)

    with contextlib.suppress(_Enough):
        replay(job, session, on_fault, start=begin, progress=progress)
    insist()
    return session.all(), found[0]


class _Enough(Exception):
    """There are as many rounds as were asked for."""


class _Gathering(Feed):
    """A feed that keeps rounds instead of playing them."""

    def __init__(self, scale: str | None, limit: int | None) -> None:
        count: Any = SimpleNamespace(issued=0)
        super().__init__(count, Collector([0.0]), Scale(scale or "probability"), None)
        self._limit, self._pieces = limit, list[Rounds]()

    def play(self, rounds: Rounds) -> Answers:
        counted: Any = self.recalibrator
        counted.issued += len(rounds)
        self._pieces.append(rounds)
        if self._limit is not None and counted.issued >= self._limit:
            raise _Enough
        return Answers.none()

    def all(self) -> Rounds:
        """Return what was kept, as one piece."""
        names = [each.name for each in fields(Rounds)]
        columns = ([getattr(piece, name) for piece in self._pieces] for name in names)
        joined: Any = (None if c[0] is None else np.concatenate(c)[: self._limit] for c in columns)
        return Rounds(*joined)
