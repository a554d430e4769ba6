"""``calibrant compare``."""

from __future__ import annotations

import importlib.util
import os
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console

from calibrant.cli import screen
from calibrant.cli.gather import Gathered, gather
from calibrant.cli.options import (
    Available,
    Buckets,
    Force,
    Format,
    GridName,
    Inputs,
    Json,
    Logit,
    OutcomeColumn,
    Percent,
    Prior,
    RawColumn,
    Resolution,
    Score,
    Seed,
    TimeColumn,
    scale_of,
)
from calibrant.compare import KEYS, KINDS, Comparison, methods_by_name, write
from calibrant.compare import compare as compare_methods
from calibrant.compare.headline import headline
from calibrant.core import check
from calibrant.errors import MissingExtra
from calibrant.stream import FORMATS, Columns, Drafts, Job, Skip, Stop
from calibrant.stream.failure import naming

__all__ = ["compare"]

NEEDED: Final = ("jinja2", "matplotlib")
"""What the page is made with."""


def compare(
    inputs: Inputs,
    raw: RawColumn = None,
    outcome: OutcomeColumn = None,
    time: TimeColumn = None,
    available: Available = None,
    logit: Logit = False,
    percent: Percent = False,
    score: Score = False,
    format: Format = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", metavar="A,B", help="Only these, and the raw forecasts. [default: all]"
        ),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers/--no-peers", help="With methods of River and scikit-learn if installed."
        ),
    ] = True,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", help="Only the first N. [default: all]")
    ] = None,
    adversarial: Annotated[
        int,
        typer.Option(
            "--adversarial", metavar="T", help="Rounds against the paper's adversary; 0 for none."
        ),
    ] = 2_000,
    resolution: Resolution = None,
    buckets: Buckets = None,
    grid: GridName = None,
    prior: Prior = None,
    seed: Seed = 0,
    by: Annotated[
        str, typer.Option("--by", metavar="KEY", help=f"Rank by one of: {', '.join(KEYS)}.")
    ] = "brier",
    skip: Annotated[bool, typer.Option("--skip", help="Pass bad rows over.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write the page, one HTML file.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run every method on one stream: accuracy, calibration, safety and price of each.

    Each method sees an outcome only after its forecast. With a plot of accuracy against
    calibration in the page.

    \b
    Example:
      calibrant compare games.csv --raw prob --outcome won --html games.html
    """
    check.choice(by, "--by", tuple(KEYS))
    check.choice(format or "csv", "--format", FORMATS)
    if available is not None and time is None:
        raise typer.BadParameter("--available needs --time")
    sizes = {"resolution": resolution, "buckets": buckets, "grid": grid, "prior": prior}
    made = Contest(
        Job(tuple(inputs), raw, outcome, time, available, format),
        Reading(scale_of(logit, percent, score), _limit(rounds), skip),
        None if methods is None else _names(methods),
        peers,
        check.whole(adversarial, "--adversarial"),
        0 if seed is None else seed,
        {name: value for name, value in sizes.items() if value is not None},
    ).go(html, force)
    _tell(made, by, as_json)


def _limit(rounds: int | None) -> int | None:
    return None if rounds is None else check.whole(rounds, "--rounds", low=1)


def _names(listed: str) -> list[str]:
    """Return the methods that are asked for; refuse unknown ones before anything is read."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    known = tuple(methods_by_name())
    return [check.choice(name, "--methods", known) for name in names]


class Reading(NamedTuple):
    """How rows are read: on which scale, how many at most, and whether bad ones are skipped."""

    scale: str | None
    limit: int | None
    skip: bool


@dataclass(frozen=True)
class Contest:
    """One comparison from its options to its page."""

    job: Job
    reading: Reading
    methods: list[str] | None
    peers: bool
    adversarial: int
    seed: int
    sizes: dict[str, Any]

    def go(self, html: str | None, force: bool) -> Comparison:
        """Read, play, write."""
        with Drafts(force=force) as drafts:
            place = None if html is None else _reserve(drafts, html)
            found = self._read()
            made = self._play(found)
            if html is not None and place is not None:
                with naming(html):
                    write(made, place, command=self._command(found.columns))
            drafts.commit()
        return made

    def _read(self) -> Gathered:
        scale, limit, skip = self.reading
        on_fault = Skip() if skip else Stop()
        with screen.progress(self.job.inputs) as show:
            found = gather(
                self.job, scale, on_fault, limit=limit, start=self._say_guesses, progress=show
            )
        if on_fault.skipped:
            screen.say(f"bad rows passed over: {on_fault.skipped:,}")
        return found

    def _say_guesses(self, columns: Columns) -> None:
        told = []
        if self.job.raw is None:
            told.append(f"raw forecasts from column {columns.raw!r}")
        if self.job.outcome is None:
            told.append(f"outcomes from column {columns.outcome!r}")
        if told:
            screen.say(" and ".join(told))

    def _play(self, found: Gathered) -> Comparison:
        rounds = found.rounds
        with screen.progress(("methods",)) as show:
            return compare_methods(
                rounds.raw, rounds.outcomes, **found.delivery, methods=self.methods,
                peers=self.peers, adversarial_rounds=self.adversarial, seed=self.seed,
                title=self._title(), **self.sizes,
                progress=lambda done, total, name: show(done * len(rounds), done, total),
            )  # fmt: skip

    def _title(self) -> str:
        inputs = self.job.inputs
        names = ["standard input" if name == "-" else os.path.basename(name) for name in inputs]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def _command(self, columns: Columns) -> str:
        """Return the command that makes these numbers again."""
        scale, limit, skip = self.reading
        names = None if self.methods is None else ",".join(self.methods)
        options = {"format": self.job.format, **columns.options, "rounds": limit, "methods": names}
        options |= {"adversarial": self.adversarial, "seed": self.seed, **self.sizes}
        words = ["calibrant", "compare", *self.job.inputs]
        for name, value in options.items():
            words += [] if value is None else [f"--{name}", str(value)]
        flags = {f"--{scale}": scale is not None, "--skip": skip, "--no-peers": not self.peers}
        return shlex.join([*words, *(flag for flag, on in flags.items() if on)])


def _reserve(drafts: Drafts, html: str) -> Path:
    """Find out before the work whether the page can be written after it."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        told = f"--html needs {', '.join(missing)}, not installed here"
        raise MissingExtra(f'{told}: pip install "calibrant[plot]"')
    return drafts.reserve(html)


def _tell(made: Comparison, by: str, as_json: bool) -> None:
    for kind in made.absent:
        screen.say(f"{KINDS[kind]} is not installed here: its methods are missing")
    if as_json:
        screen.tell_json(made.to_dict())
        return
    _print(made, by)
    for line in textwrap.wrap(headline(made), screen.LINE):
        print(line)


def _print(made: Comparison, by: str) -> None:
    front = made.front()
    headings = {"": "right", "method": "left", "kind": "left"}
    headings |= {f"{title}{' *' if key == by else ''}": "right" for key, title in KEYS.items()}
    headings |= {"µs": "right", "bytes": "right"}
    cells = [
        [
            f"{rank}{'.' if row.name in front else ' '}",
            row.name,
            row.kind,
            *(screen.number(getattr(row, key)) for key in KEYS),
            f"{made.microseconds(row.name):.1f}",
            f"{row.state_bytes:,}",
        ]
        for rank, row in enumerate(made.ranked(by), 1)
    ]
    title = (
        f"{made.rounds:,} rounds, seed {made.seed}; * ranked by; a dot: not beaten in Brier and C2"
    )
    Console(width=170).print(screen.table(title, headings, cells))
    print()
