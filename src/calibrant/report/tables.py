"""How summaries are shown: tables, numbers as they are printed, and what every page asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

from calibrant.plot import Drawing
from calibrant.summary import AnySummary, kinds

NOTHING: Final = "n/a"
"""What stands where a number is not defined."""


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows.

    Attributes
    ----------
    caption
        What it shows.
    header
        Names of the columns.
    rows
        Cells as text.
    words
        Which columns hold words; the others are numbers.
    notes
        Sentences below it.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, caption: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> Self:
        """Return a table of numbers whose rows are named."""
        return cls(caption, tuple(header), tuple(map(tuple, rows)))


def number(value: Any) -> float:
    """Return a number of a summary; what JSON keeps as null is nan."""
    return math.nan if value is None else float(value)


def too_early(told: Mapping[str, Any]) -> int | None:
    """Return from about which round on something is promised, where nothing is yet.

    That the draws lose little to the mixture, which a chain may promise alone, says nothing of
    their errors.
    """
    bound, kept = told.get("bound") or {}, told["certificate_holds"]
    alone = told.get("chain") and all(bound.get(key) is None for key in ("c1", "c2", "regret"))
    return bound.get("from_round") if kept is None or (kept and alone) else None


def rounds_told(count: int) -> str:
    """Return a number of rounds in words.

    >>> rounds_told(1), rounds_told(1200)
    ('1 round', '1,200 rounds')
    """
    return f"{count:,} round{'' if count == 1 else 's'}"


def printed(value: float | None) -> str:
    """Return a number for a table on a screen.

    >>> printed(0.21534), printed(-0.0001234), printed(None), printed(float("nan"))
    ('0.21534', '-0.00012', '-', '-')
    """
    return "-" if value is None or value != value else f"{value:.5f}"


def shown(value: Any, digits: int = 4) -> str:
    """Return a number as text, with more digits where it is small.

    Examples
    --------
    >>> shown(0.25), shown(0.00012345), shown(None), shown(0)
    ('0.2500', '0.00012', 'n/a', '0.0000')
    """
    x = number(value)
    if not math.isfinite(x):
        return NOTHING if math.isnan(x) else ("∞" if x > 0 else "-∞")
    small = 0.0 < abs(x) < 10.0 ** (2 - digits)
    places = 1 - math.floor(math.log10(abs(x))) if small else digits
    return f"{x:.{min(places, 8)}f}"


def signed(value: Any) -> str:
    """Return a number with its sign.

    >>> signed(0.01), signed(-0.01), signed(None)
    ('+0.0100', '-0.0100', 'n/a')
    """
    text = shown(value)
    return text if text[0] in "-n" else f"+{text}"


def count_lines(told: Mapping[str, Any]) -> list[str]:
    """Return how many rows made no round, a line each."""
    counts = {"n_skipped": "bad rows passed over", "n_unresolved": "rows without an outcome"}
    return [f"{what}: {told[key]:,}" for key, what in counts.items() if told[key]]


def settings(summary: AnySummary) -> Table:
    """Return what is needed to repeat the run."""
    rows = [(name, plainly(value)) for name, value in summary.settings.items() if name != "command"]
    rows.append(("calibrant", str(summary["calibrant"])))
    timing = summary.summary.get("timing") or {}
    rows += [(f"timing: {name}", plainly(value)) for name, value in timing.items()]
    return Table("Settings", ("setting", "value"), tuple(rows), (0, 1))


def plainly(value: Any) -> str:
    """Return a setting as text.

    >>> plainly(None), plainly(["a", "b"]), plainly({"raw": "p"}), plainly(0.12345), plainly(1e6)
    ('none', 'a, b', 'raw = p', '0.1235', '1,000,000')
    """
    if isinstance(value, dict):
        return ", ".join(f"{key} = {plainly(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(plainly(item) for item in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
    return "none" if value is None else str(value)


@dataclass(frozen=True)
class Section:
    """A part of a chapter: its key, its title, and what stands below, by name.

    ``guarantee`` says whether the promise in words stands first, ``wide`` whether pictures take
    the whole width, one below the other.  Pictures and tables that a
    summary does not have are left out, and so is a section without any.
    """

    key: str
    title: str
    pictures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    guarantee: bool = False
    wide: bool = False


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

    def opening(self, summary: Any) -> tuple[str, ...]:
        """Return what is said first, a sentence or two each: what changed, then what it cost."""

    def words(self, name: str, summary: Any) -> tuple[str, str]:
        """Return title and caption of a picture, about what it shows here."""

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

    def screen(self, summary: Any, details: bool = False) -> tuple[list[Table], list[str]]:
        """Return the tables of a screen, and the lines below them; more with ``details``."""


def view_of(summary: AnySummary) -> View:
    """Return how a summary is shown."""
    view: View = kinds.summarised(summary.summary).view
    return view


def headline(summary: AnySummary) -> str:
    """Say in plain sentences what changed, what it cost, and whether the guarantee was kept."""
    view = view_of(summary)
    told = [view.promise(summary)] if summary["n_rounds"] else []
    return " ".join([*view.opening(summary), *told])
