"""The pictures of a report, with the words that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibrant.plot import Drawing, save_drawings
from calibrant.plot.canvas import svg
from calibrant.plot.save import inline
from calibrant.report.view import view_of
from calibrant.summary import AnySummary


@dataclass(frozen=True)
class Figure:
    """A picture as an element of the page, its title and its caption."""

    title: str
    caption: str
    image: str


def figure(drawing: Drawing, ids: str, words: tuple[str, str], told: str) -> Figure:
    """Return a picture as an element of a page.

    Parameters
    ----------
    drawing
        What to draw.
    ids
        What its ids begin with.
    words
        Title and caption.
    told
        What to read to those who cannot see it.
    """
    title, caption = words
    return Figure(title, caption, inline(svg(drawing.draw().figure), ids, title, told))


def figures(summary: AnySummary, prefix: str = "f") -> dict[str, Figure]:
    """Return the pictures that a summary calls for, by name.

    Parameters
    ----------
    summary
        What to draw.
    prefix
        What ids begin with; must differ between the summaries of a page.
    """
    view = view_of(summary)
    return {
        name: figure(each, f"{prefix}-{name}", view.WORDS[name], view.describe(name, summary))
        for name, each in view.chosen(summary).items()
    }


def save_pictures(summary: AnySummary, directory: Path) -> None:
    """Write every picture of a summary as PNG and SVG."""
    save_drawings(view_of(summary).drawings(summary), directory)
