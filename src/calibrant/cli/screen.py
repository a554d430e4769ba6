"""What is seen while a command runs, and what is told at its end."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from rich.console import Console, Group
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table as Grid
from rich.text import Text

from calibrant.report.tables import Table
from calibrant.stream import Columns, Job, OnFault
from calibrant.stream.failure import settled
from calibrant.stream.ids import Book
from calibrant.summary import AnySummary

LINE: Final = 80
"""Columns of the sentence at the end."""


class Rate(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        seconds = task.elapsed or 0.0
        rounds = int(task.fields["rounds"])
        rate = f"{rounds / seconds:,.0f}/s" if seconds else ""
        return Text(f"{rounds:,} rounds {rate}")


@contextmanager
def progress(names: tuple[str, ...]) -> Iterator[Callable[[int, int, int | None], None]]:
    """Show a bar on a terminal, as long as there is one; elsewhere nothing."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), Rate(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, disable=not console.is_terminal)
    task = bar.add_task(names[0] if len(names) == 1 else f"{len(names)} inputs", rounds=0)

    def show(rounds: int, done: int, size: int | None) -> None:
        with suppress(OSError):
            bar.update(task, completed=done, total=size, rounds=rounds)

    try:
        with suppress(OSError):
            bar.start()
        yield show
    finally:
        with suppress(OSError):
            bar.stop()


def say(text: str) -> None:
    """Tell something on standard error, if there is one and anybody listens."""
    if sys.stderr is None:
        return
    try:
        print(f"calibrant: {text}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: Any) -> None:
    """Let what nobody takes go nowhere: Python would complain once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def telling() -> Iterator[None]:
    """Warn if the result cannot be printed, once files are in their places."""
    try:
        yield
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError as error:
        if not settled():
            raise
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                give_up(stream)
        say(f"all files were written, but the result cannot be printed: {error.strerror}")


def say_guesses(job: Job, columns: Columns, notes: Iterable[str] = ()) -> None:
    """Tell which columns were guessed, and what of how they are written."""
    for note in notes:
        say(note)
    told = []
    if job.raw is None and columns.raw and not columns.vector:
        told.append(f"raw forecasts from column {columns.raw!r}")
    if not columns.outcome:
        told.append("no column of outcomes: they come later")
    elif job.outcome is None:
        told.append(f"outcomes from column {columns.outcome!r}")
    if told:
        say(" and ".join(told))


def say_renamed(old: str, new: str) -> None:
    """Tell that an option has another name now."""
    say(f"{old} is called {new} here; the earlier name still works")


def say_refused(on_fault: OnFault, played: int) -> None:
    """Tell how many rows were refused, and why."""
    for line in on_fault.told(played):
        say(line)


def say_known(book: Book | None) -> None:
    """Tell what ids were good for."""
    if book is None:
        return
    told = [f"{book.found:,} outcomes found their forecast"] if book.found else []
    if book.repeated:
        told.append(
            f"{book.repeated:,} rows had an id that was seen before, and were not learned again"
        )
    if told:
        say("; ".join(told))


def tell_json(data: Any) -> None:
    """Print data as JSON on standard output."""
    print(json.dumps(data, indent=2, allow_nan=False))


def table(title: str | None, columns: Mapping[str, str], rows: list[list[str]]) -> Group:
    """Return a table; ``columns`` maps headings to ``"left"`` or ``"right"``."""
    made = Grid(box=None, pad_edge=False)
    for heading, justify in columns.items():
        # Where room is short, words go on below; a number that is cut says something else.
        right = justify == "right"
        made.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        # Cells are text on one line: brackets in a formula or a name are no markup.
        made.add_row(*(Text(cell.replace("\n", " ")) for cell in row))
    if title is None:
        return Group(made)
    # A title of rich's own would be broken at the width of the table.
    return Group(Text(title, style="italic", no_wrap=True, overflow="ignore"), made)


def show(
    columns: Mapping[str, str],
    rows: list[list[str]],
    title: str | None = None,
    *,
    width: int,
    error: bool = False,
) -> None:
    """Print a table, as wide as it may be; on standard error if standard output holds the rows."""
    _print(Console(width=width, stderr=error), [table(title, columns, rows)])


def tell_lines(lines: Iterable[str], *, error: bool = False) -> None:
    """Print lines as they are; on standard error if standard output holds the rows."""
    _print(Console(stderr=error), map(escape, lines))


def _print(console: Console, parts: Iterable[Any]) -> None:
    """Print as others do: rich itself would end the process where nobody reads it."""
    with console.capture() as captured:
        for part in parts:
            plain = isinstance(part, str)
            console.print(part, highlight=False if plain else None, soft_wrap=plain)
    print(captured.get(), end="", file=console.file)


def before_after(summary: AnySummary, *, details: bool, error: bool = False) -> None:
    """Print what a run amounts to; on standard error if standard output holds the rows."""
    from calibrant.report import headline, view_of

    (first, *more), lines = view_of(summary).screen(summary, details)
    wide = sys.stdout is not None and sys.stdout.isatty()
    console = Console(stderr=error, width=None if wide else 100)
    parts = [_of_report(first), *(part for each in more for part in ("", _of_report(each), ""))]
    _print(console, [*parts, *lines, "", textwrap.fill(headline(summary), LINE)])


def _of_report(made: Table) -> Group:
    sides = ("left" if k in made.words else "right" for k in range(len(made.header)))
    columns = dict(zip(made.header, sides, strict=True))
    return table(made.caption or None, columns, [list(row) for row in made.rows])
