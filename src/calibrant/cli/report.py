"""``calibrant report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import screen
from calibrant.cli.options import Force, Json
from calibrant.errors import CorruptState
from calibrant.stream import Drafts, Unreadable
from calibrant.stream.failure import naming
from calibrant.summary import AnyStory, NumberStory, read_story

__all__ = ["report"]


def report(
    summaries: Annotated[
        list[str], typer.Argument(help="Files that --summary wrote.", metavar="SUMMARY")
    ],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="The HTML file to write.")
    ] = "report.html",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make one report from summaries that were written before.

    \b
    Example:
      calibrant report monday.json tuesday.json --out week.html
    """
    from calibrant.report import write_many

    stories = [_story(name) for name in summaries]
    with Drafts(force=force) as drafts:
        place = drafts.reserve(out)
        with naming(out):
            write_many(stories, place)
        drafts.commit()
    told = [
        {"summary": name, "headline": _headline(story)}
        for name, story in zip(summaries, stories, strict=True)
    ]
    if as_json:
        screen.tell_json({"report": out, "summaries": told})
        return
    for row in told:
        print(f"{row['summary']}: {row['headline']}")
    screen.say(f"wrote {out}")


def _headline(story: AnyStory) -> str:
    from calibrant.report import headline, number_headline

    return number_headline(story) if isinstance(story, NumberStory) else headline(story)


def _story(name: str) -> AnyStory:
    try:
        data: Any = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise Unreadable(f"{name}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CorruptState(f"{name}: must be JSON, got something else") from error
    try:
        return read_story(data)
    except CorruptState as problem:
        raise CorruptState(f"{name}: {problem}") from problem
