"""How a kind's summaries are shown: what every page and screen asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from calibrant.plot import Drawing
from calibrant.report.tables import Table
from calibrant.summary import AnySummary, kinds


@dataclass(frozen=True)
class Section:
    """A part of a chapter: its key, its title, and what stands below, by name.

    ``guarantee`` says whether the promise in words stands first.  Pictures and tables that a
    summary does not have are left out, and so is a section without any.
    """

    key: str
    title: str
    pictures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    guarantee: bool = False


class View(Protocol):
    """A module that shows the summaries of a kind.

    Attributes
    ----------
    WORDS
        Title and caption of each picture.
    SECTIONS
        What a chapter of a report shows, in order.
    COMPARED
        Title and key of the two scores that runs are compared by.
    FAMILY
        What summaries that can be compared have in common.
    """

    WORDS: Mapping[str, tuple[str, str]]
    SECTIONS: tuple[Section, ...]
    COMPARED: tuple[tuple[str, str], tuple[str, str]]
    FAMILY: str

    def headline(self, summary: Any) -> str:
        """Return the run in one sentence."""

    def facts(self, summary: Any) -> tuple[str, ...]:
        """Return what stands below the headline."""

    def promise(self, summary: Any) -> str:
        """Return whether the guarantee was kept."""

    def guarantee(self, summary: Any) -> str:
        """Return what is promised at all."""

    def drawings(self, summary: Any) -> dict[str, Drawing]:
        """Return every picture by name."""

    def chosen(self, summary: Any) -> dict[str, Drawing]:
        """Return the pictures that a report shows."""

    def describe(self, name: str, summary: Any) -> str:
        """Return a picture in words, for those who cannot see it."""

    def tables(self, summary: Any) -> dict[str, Table | None]:
        """Return the tables of a report by name."""

    def code(self, summary: Any) -> str:
        """Return the Python that makes the same recalibrator."""

    def screen(self, summary: Any) -> tuple[list[Table], list[str]]:
        """Return the tables of a screen, and the lines below them."""


def view_of(summary: AnySummary) -> View:
    """Return how a summary is shown."""
    view: View = kinds.summarised(summary.summary).view
    return view


def headline(summary: AnySummary) -> str:
    """Tell in one sentence what forecasts meant, what they mean now, and what it cost."""
    return view_of(summary).headline(summary)
