"""``calibrant compare``."""

from __future__ import annotations

import importlib.util
import os
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from calibrant.cli import screen
from calibrant.cli.gather import Gathered, gather
from calibrant.cli.options import Ending, Inputs, Reading, among, spread
from calibrant.compare import KEYS, KINDS, Comparison, methods_by_name, write
from calibrant.compare import compare as compare_methods
from calibrant.compare.comparison import headline
from calibrant.core import check
from calibrant.core.grid import GRIDS
from calibrant.errors import MissingExtra
from calibrant.report.tables import printed
from calibrant.stream import Columns, Drafts, Job, Skip, Stop
from calibrant.stream.failure import naming

NEEDED: Final = ("jinja2", "matplotlib")
"""What the page is made with."""


@dataclass(frozen=True)
class Field:
    """Who takes part, in how many rounds.

    methods A,B
        Only these, and the raw forecasts. [default: all]
    peers, --peers/--no-peers
        With methods of River and scikit-learn if installed.
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

    @property
    def limit(self) -> int | None:
        """How many rounds to read at most."""
        return None if self.rounds is None else check.whole(self.rounds, "--rounds", low=1)


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

    by KEY
        Rank by one of: {}.
    skip
        Pass bad rows over.
    html FILE
        Write the page, one HTML file.
    """

    by: str = among(lambda: list(KEYS), "brier")
    skip: bool = False
    html: str | None = None


@spread
def compare(
    inputs: Inputs,
    *,
    reading: Reading,
    field: Field,
    sizes: Sizes,
    telling: Telling,
    ending: Ending,
) -> None:
    """Run every method on one stream: accuracy, calibration, safety and price of each.

    Each method sees an outcome only after its forecast. With a plot of accuracy against
    calibration in the page.

    \b
    Example:
      calibrant compare games.csv --raw prob --outcome won --html games.html
    """
    check.choice(telling.by, "--by", tuple(KEYS))
    made = Contest(
        reading.job(inputs),
        reading.scale,
        telling.skip,
        field.limit,
        field.names,
        field.peers,
        check.whole(field.adversarial, "--adversarial"),
        {"seed": 0} | {name: value for name, value in vars(sizes).items() if value is not None},
    ).go(telling.html, ending.force)
    _tell(made, telling.by, ending.as_json)


@dataclass(frozen=True)
class Contest:
    """One comparison from its options to its page."""

    job: Job
    scale: str | None
    skip: bool
    limit: int | None
    methods: list[str] | None
    peers: bool
    adversarial: int
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
        on_fault = Skip() if self.skip else Stop()
        with screen.progress(self.job.inputs) as show:
            found = gather(self.job, self.scale, on_fault, limit=self.limit, progress=show)
        if on_fault.skipped:
            screen.say(f"bad rows passed over: {on_fault.skipped:,}")
        return found

    def _play(self, found: Gathered) -> Comparison:
        rounds = found.rounds
        with screen.progress(("methods",)) as show:
            return compare_methods(
                rounds.raw, rounds.outcomes, **found.delivery, methods=self.methods,
                peers=self.peers, adversarial_rounds=self.adversarial,
                title=self._title(), **self.sizes,
                progress=lambda done, total, name: show(done * len(rounds), done, total),
            )  # fmt: skip

    def _title(self) -> str:
        inputs = self.job.inputs
        names = ["standard input" if name == "-" else os.path.basename(name) for name in inputs]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    def _command(self, columns: Columns) -> str:
        """Return the command that makes these numbers again."""
        names = None if self.methods is None else ",".join(self.methods)
        options = {"format": self.job.format, **columns.options, "rounds": self.limit}
        options["methods"] = names
        options |= {"adversarial": self.adversarial, **self.sizes}
        words = ["calibrant", "compare", *self.job.inputs]
        for name, value in options.items():
            words += [] if value is None else [f"--{name}", str(value)]
        flags = {f"--{self.scale}": self.scale is not None, "--skip": self.skip}
        flags["--no-peers"] = not self.peers
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
            *(printed(getattr(row, key)) for key in KEYS),
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
