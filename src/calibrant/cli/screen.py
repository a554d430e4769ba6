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

__all__ = ["before_after", "chain_table", "count_lines", "progress", "say", "table", "tell_json"]

SCORES: Final = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "calibration_l1": "calibration error C1",
    "calibration_l2": "calibration error C2",
    "ece": "binned error (ECE)",
    "smooth": "smooth error",
    "last_window_l2": "C2 of the last window",
    "worst_window_l2": "C2 of the worst window",
    "sharpness": "sharpness",
}
"""Rows of the table before and after."""

LINE: Final = 80
"""Columns of the sentence at the end."""
PARTS: Final = 20
"""Groups or classes that are shown."""
TITLE: Final = 43
"""Columns of an expert's name."""
LATE: Final = "late outcomes, at most {:,} outstanding: no theorem here speaks of them"


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
        # Cells are text: brackets in a formula or a name are no markup.
        made.add_row(*map(Text, row))
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
        [title, *(number(told[name].get(key)) for name in ("raw", "forecast", "mean"))]
        for key, title in SCORES.items()
    ]
    rows.append(["AUC", *(number(told["auc"][name]) for name in ("raw", "forecast", "mean"))])
    title = f"{told['n_rounds']:,} rounds, {told['method']}, seed {told['seed']}"
    console.print(table(title, headings, rows))
    if (chain := told.get("chain")) is not None and chain["links"]:
        console.print("", chain_table(told), "")
    if told.get("breakdown") is not None:
        console.print("", parts_table(told["breakdown"]), "")
    for line in [*closing_lines(told), "", textwrap.fill(headline(story), LINE)]:
        console.print(line, highlight=False, soft_wrap=True)


def closing_lines(told: Mapping[str, Any]) -> list[str]:
    """Return what the table cannot say, a sentence each."""
    regret = told["regret_brier"]
    interval = f"[{number(regret['low'])}, {number(regret['high'])}]"
    lines = [f"Brier, forecast minus raw: {number(regret['value'])}, 95 % interval {interval}"]
    lines += [*_window_lines(told), *_budget(told), *_guarantee(told)]
    return [*lines, *count_lines(told)]


def count_lines(told: Mapping[str, Any]) -> list[str]:
    """Return how many rows made no round, a line each."""
    counts = {"n_skipped": "bad rows passed over", "n_unresolved": "rows without an outcome"}
    return [f"{what}: {told[key]:,}" for key, what in counts.items() if told[key]]


def _window_lines(told: Mapping[str, Any]) -> list[str]:
    """Return where the last and the worst window of the forecasts lie, if there is any."""
    places = told.get("windows") or {"last": None}
    if places["last"] is None:
        return []
    last, worst = places["last"], places["worst"]["forecast"]
    spans = [f"{each['first']:,}-{each['last']:,}" for each in (last, worst)]
    return [f"windows: {told['window']:,} rounds; last {spans[0]}, worst forecasts {spans[1]}"]


def _budget(told: Mapping[str, Any]) -> list[str]:
    """Return what was spent of a budget, and what that costs."""
    found = (told.get("chain") or {}).get("budget")
    if found is None:
        return []
    lines = [f"loss beyond raw: {number(found['excess'])}, never above {found['epsilon']:g}"]
    if found["aside"]:
        part = f"{found['aside']:,} of {found['rounds']:,} rounds"
        lines.append(f"raw forecasts announced in {part}: calibration is not promised")
        if found["c2_bound"] is not None:
            lines.append(f"but of the other rounds: c2 at most {number(found['c2_bound'])}")
    return lines


def _guarantee(told: Mapping[str, Any]) -> list[str]:
    bounds, late = told["bound"], told["certificate"].get("delay")
    holds = {True: "holds", False: "is exceeded", None: "is not known"}
    verdict = holds[told["certificate_holds"]]
    if bounds["c2"] is None and bounds["c1"] is None:
        if told["breakdown"] is not None and told["certificate_holds"] is not None:
            return [f"guarantee, group by group: the bounds above; it {verdict}"]
        return [LATE.format(late)] if late else []
    parts = [f"{key} {number(bounds[key])}" for key in ("c1", "c2", "regret")]
    return [f"guarantee after these rounds: {', '.join(parts)}; it {verdict}"]


def chain_table(told: Mapping[str, Any]) -> Group:
    """Return the chain of the default, link by link: measured, and what the theorems say."""
    chain, bounds, found = told["chain"], told["bound"], told["certificate"]
    rows = [
        ["calibration error C2 of the draws", "", found["c2"], bounds["c2"]],
        [
            "extra loss of the draws over the mixture",
            "",
            chain["middle_regret"],
            chain["middle_bound"],
        ],
        ["extra loss of the mixture over each expert", "", "", ""],
        *([f"  {_cut(each['expert'])}", *_weighed(each)] for each in chain["links"]),
        ["extra loss of the draws over the raw forecast", "", found["regret"], bounds["regret"]],
    ]
    headings = {f"chain, {found['loss']} loss": "left", "weight": "right", "measured": "right"}
    cells = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    return table(None, {**headings, "bound": "right"}, cells)


def parts_table(told: Mapping[str, Any]) -> Group:
    """Return the largest groups or classes: what was said, what happened, and the errors."""
    kind, rows = told["kind"], told["rows"]
    shown = sorted(rows, key=lambda row: -row["rounds"])[:PARTS]
    headings = {f"{kind} by {kind}": "left", "rounds": "right", "happened": "right"}
    headings |= dict.fromkeys(("raw said", "raw C2", "said", "C2", "bound"), "right")
    keys = ("mean_raw", "c2_raw", "mean_forecast", "c2_forecast", "bound")
    cells = [
        [_cut(row["name"]), f"{row['rounds']:,}", *(number(row[key]) for key in ("rate", *keys))]
        for row in shown
    ]
    if len(rows) > PARTS:
        cells.append([f"{len(rows) - PARTS:,} more in --json", *[""] * 7])
    return table(None, headings, cells)


def _weighed(link: Mapping[str, Any]) -> tuple[str, Any, Any]:
    return f"{link['weight']:.3f}", link["regret"], link["bound"]


def _cut(title: str) -> str:
    return title if len(title) <= TITLE else f"{title[: TITLE - 3]}..."


def number(value: float | None) -> str:
    """Return a number for a table.

    >>> number(0.21534), number(-0.0001234), number(None), number(float("nan"))
    ('0.21534', '-0.00012', '-', '-')
    """
    if value is None or value != value:
        return "-"
    return f"{value:.5f}"
