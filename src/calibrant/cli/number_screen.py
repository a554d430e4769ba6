"""What is told at the end of a replay of numbers."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console, Group

from calibrant.cli import screen
from calibrant.summary import NumberStory

__all__ = ["number_table", "numbers_before_after"]

SCORES: Final = {
    "crps": "CRPS",
    "pinball": "pinball loss, mean of levels",
    "quantile_calibration_error": "quantile calibration error",
    "coverage_error": "coverage off by, on average",
    "pit_error": "PIT histogram, squared error",
    "infinite": "share of infinite quantiles",
}
HOLDS: Final = {True: "holds", False: "is exceeded", None: "is not known"}


def numbers_before_after(story: NumberStory, *, error: bool = False) -> None:
    """Print what a run on numbers amounts to."""
    from calibrant.report import number_headline

    told = story.summary
    console = Console(stderr=error, width=None if sys.stdout.isatty() else 100)
    headings = {"": "left", "raw": "right", "forecast": "right"}
    rows = [
        [title, *(screen.number(told[name][key]) for name in ("raw", "forecast"))]
        for key, title in SCORES.items()
    ]
    title = f"{told['n_rounds']:,} rounds, {told['method']}, seed {told['seed']}"
    console.print(screen.table(title, headings, rows), "", number_table(told), "")
    lines = [f"guarantee, level by level: the bounds above; it {HOLDS[told['certificate_holds']]}"]
    lines += screen.count_lines(told)
    for line in [*lines, "", textwrap.fill(number_headline(story), screen.LINE)]:
        console.print(line, highlight=False, soft_wrap=True)


def number_table(told: Mapping[str, Any]) -> Group:
    """Return each level: how often it was covered, its loss, and what is promised."""
    quantity = told["levels"][0]["quantity"]
    names = ("raw covered", "covered", "raw pinball", "pinball", quantity, "bound")
    keys = ("coverage_raw", "coverage_forecast", "pinball_raw", "pinball_forecast")
    rows = [
        [f"{row['level']:g}", *(screen.number(row[key]) for key in (*keys, "measured", "bound"))]
        for row in told["levels"]
    ]
    return screen.table(None, {"level": "left", **dict.fromkeys(names, "right")}, rows)
