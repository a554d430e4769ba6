"""Rows of a benchmark, and the bars they are held against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["Row", "at_least", "at_most", "listed", "plain", "show"]

WIDTH = 110
HEADINGS = ("what", "ours", "reference", "ratio", "bar", "")


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    what
        What was measured.
    ours, reference
        Cost of both sides, in ``unit``; the reference may be missing.
    ratio
        The median ratio, turned so that ``bar`` speaks about it.
    bar
        ``"<= 1.5"`` or ``">= 3"``, or nothing where the row only informs.
    """

    what: str
    ours: float
    unit: str = "ns"
    reference: float | None = None
    ratio: float | None = None
    bar: str = ""
    met: bool | None = None

    def without_bar(self) -> Row:
        """Return the row as mere information."""
        return replace(self, bar="", met=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON-ready data."""
        return asdict(self)

    def cells(self) -> tuple[str, ...]:
        """Return the row as it is printed."""
        told = {None: "", True: "met", False: "MISSED"}[self.met]
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return self.what, self._cost(self.ours), self._cost(self.reference), ratio, self.bar, told

    def _cost(self, cost: float | None) -> str:
        return "" if cost is None else f"{cost:,.{1 if cost < 1000 else 0}f} {self.unit}"


def listed(rows: Iterable[Row]) -> dict[str, Any]:
    """Return rows as a table of a page: the unit in the head if all have the same."""
    kept = list(rows)
    units = {row.unit for row in kept}
    unit = f", {kept[0].unit}" if len(units) == 1 else ""
    head = ["what", f"ours{unit}", f"reference{unit}", "ratio", "bar"]
    cells = [list(row.cells()) for row in kept]
    for row in cells:
        row[4:] = [", ".join(filter(None, (row[4], row[5].lower())))]
        if unit:
            row[1:3] = [cost.removesuffix(unit[1:]) for cost in row[1:3]]
    return {"head": head, "rows": cells}


def at_most(what: str, ours: float, reference: float, ratio: float, bar: float) -> Row:
    """Return a row whose ratio, our cost over the reference's, must not exceed ``bar``."""
    return Row(what, ours, "ns", reference, ratio, f"<= {bar:g}", ratio <= bar)


def at_least(what: str, ours: float, reference: float, ratio: float, bar: float) -> Row:
    """Return a row whose ratio, the reference's cost over ours, must reach ``bar``."""
    return Row(what, ours, "ns", reference, ratio, f">= {bar:g}", ratio >= bar)


def show(title: str, rows: Iterable[Row]) -> None:
    """Print a table, with rich where it is installed."""
    lines = [row.cells() for row in rows]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(f"\n{title}\n{plain(lines)}")
        return
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in {"what", ""} else "right")
    for line in lines:
        table.add_row(*line, style="red" if line[-1] == "MISSED" else None)
    console = Console()
    console.width = max(console.width, WIDTH)
    console.print(table)


def plain(lines: list[tuple[str, ...]]) -> str:
    """Return the table as text in columns."""
    rows = [HEADINGS, *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    text = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows)  # fmt: skip
    return "\n".join(line.rstrip() for line in text)
