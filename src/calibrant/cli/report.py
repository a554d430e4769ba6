"""``calibrant report``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import screen
from calibrant.cli.options import Ending, spread
from calibrant.errors import CorruptState
from calibrant.stream import Drafts, Unreadable
from calibrant.stream.failure import naming
from calibrant.summary import AnySummary, read_summary


@dataclass(frozen=True)
class Page:
    """Where the report goes.

    out FILE
        The HTML file to write.
    """

    out: str = "report.html"


@spread
def report(
    summaries: Annotated[
        list[str], typer.Argument(help="Files that --summary wrote.", metavar="SUMMARY")
    ],
    *,
    page: Page,
    ending: Ending,
) -> None:
    """Make one report from summaries that were written before.

    \b
    Example:
      calibrant report monday.json tuesday.json --out week.html
    """
    from calibrant.report import headline, write_many

    found, out = [_summary(name) for name in summaries], page.out
    with Drafts(force=ending.force) as drafts:
        place = drafts.reserve(out)
        with naming(out):
            write_many(found, place)
        drafts.commit()
    told = [
        {"summary": name, "headline": headline(summary)}
        for name, summary in zip(summaries, found, strict=True)
    ]
    if ending.as_json:
        screen.tell_json({"report": out, "summaries": told})
        return
    for row in told:
        print(f"{row['summary']}: {row['headline']}")
    screen.say(f"wrote {out}")


def _summary(name: str) -> AnySummary:
    try:
        data: Any = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CorruptState(f"{name}: must be JSON, got something else") from error
    try:
        return read_summary(data)
    except CorruptState as problem:
        raise CorruptState(f"{name}: {problem}") from problem
