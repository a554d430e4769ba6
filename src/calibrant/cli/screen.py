"""What is seen while a command runs, and what is told at its end."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from calibrant.summary import Story

__all__ = ["before_after", "progress", "say", "table", "tell_json"]

SCORES: Final = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "calibration_l1": "calibration error C1",
    "calibration_l2": "calibration error C2",
    "ece": "binned error (ECE)",
    "smooth": "smooth error",
    "worst_window_l2": "C2 of the worst window",
    "sharpness": "sharpness",
}
"""Rows of the table before and after."""

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
    """Show a bar on a terminal; elsewhere nothing."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(names[0] if len(names) == 1 else f"{len(names)} inputs", rounds=0)

        def show(rounds: int, done: int, size: int | None) -> None:
            bar.update(task, completed=done, total=size, rounds=rounds)

        yield show


def say(text: str) -> None:
    """Tell something on standard error."""
    print(f"calibrant: {text}", file=sys.stderr)


def tell_json(data: Any) -> None:
    """Print data as JSON on standard output."""
    print(json.dumps(data, indent=2, allow_nan=False))


def table(title: str | None, columns: Mapping[str, str], rows: list[list[str]]) -> Group:
    """Return a table; ``columns`` maps headings to ``"left"`` or ``"right"``."""
    made = Table(box=None, pad_edge=False)
    for heading, justify in columns.items():
        made.add_column(heading, justify="right" if justify == "right" else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    if title is None:
        return Group(made)
    # A title of rich's own would be broken at the width of the table.
    return Group(Text(title, style="italic", no_wrap=True, overflow="ignore"), made)


def before_after(story: Story, *, error: bool = False) -> None:
    """Print what a run amounts to; on standard error if standard output holds the rows."""
    from calibrant.report import headline

    told = story.summary
    console = Console(stderr=error, width=None if sys.stdout.isatty() else 100)
    headings = {"": "left", "raw": "right", "forecast": "right", "mean": "right"}
    rows = [
        [title, *(number(told[name][key]) for name in ("raw", "forecast", "mean"))]
        for key, title in SCORES.items()
    ]
    rows.append(["AUC", *(number(told["auc"][name]) for name in ("raw", "forecast", "mean"))])
    title = f"{told['n_rounds']:,} rounds, {told['method']}, seed {told['seed']}"
    console.print(table(title, headings, rows))
    for line in [*closing_lines(told), "", textwrap.fill(headline(story), LINE)]:
        console.print(line, highlight=False, soft_wrap=True)


def closing_lines(told: Mapping[str, Any]) -> list[str]:
    """Return what the table cannot say, a sentence each."""
    regret = told["regret_brier"]
    interval = f"[{number(regret['low'])}, {number(regret['high'])}]"
    lines = [f"Brier, forecast minus raw: {number(regret['value'])}, 95 % interval {interval}"]
    bounds = told["bound"]
    if bounds["c2"] is not None or bounds["c1"] is not None:
        holds = {True: "holds", False: "is exceeded", None: "is not known"}
        parts = [f"{key} {number(bounds[key])}" for key in ("c1", "c2", "regret")]
        verdict = holds[told["certificate_holds"]]
        lines.append(f"guarantee after these rounds: {', '.join(parts)}; it {verdict}")
    counts = {"n_skipped": "bad rows passed over", "n_unresolved": "rows without an outcome"}
    lines += [f"{what}: {told[key]:,}" for key, what in counts.items() if told[key]]
    return lines


def number(value: float | None) -> str:
    """Return a number for a table.

    >>> number(0.21534), number(-0.0001234), number(None), number(float("nan"))
    ('0.21534', '-0.00012', '-', '-')
    """
    if value is None or value != value:
        return "-"
    return f"{value:.5f}"
