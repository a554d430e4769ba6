"""Summary, report and pictures: what several commands make of a story."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.cli import screen
from calibrant.stream import Drafts, open_output
from calibrant.stream.writers import naming
from calibrant.summary import Story

__all__ = ["Products", "short"]


@dataclass(frozen=True)
class Products:
    """Where the products of a story go, None for those that nobody asked for."""

    summary: str | None
    report: str | None
    plots: str | None

    def reserve(self, drafts: Drafts) -> dict[str, Path]:
        """Find out before the work whether everything can be written after it."""
        files = {"summary": self.summary, "report": self.report}
        places = {name: drafts.reserve(path) for name, path in files.items() if path is not None}
        if self.plots is not None:
            places["plots"] = drafts.reserve_directory(self.plots)
        return places

    def write(self, story: Story, places: dict[str, Path]) -> None:
        """Write the products to the places that were reserved for them."""
        if self.summary is not None:
            text = json.dumps(story.to_dict(), indent=1, allow_nan=False) + "\n"
            with open_output(places["summary"], self.summary) as stream:
                stream.write(text.encode())
        if self.report is not None:
            from calibrant.report import write

            with naming(self.report):
                write(story, places["report"])
        if self.plots is not None:
            from calibrant.plot import save_all

            with naming(self.plots):
                save_all(story, places["plots"])


def tell_story(story: Story, *, as_json: bool, error: bool = False) -> None:
    """Tell a story as JSON or as a table."""
    if as_json:
        screen.tell_json(short(story))
    else:
        screen.before_after(story, error=error)


def short(story: Story) -> dict[str, Any]:
    """Return the summary without its detail."""
    told = story.to_dict()
    del told["detail"]
    return told
