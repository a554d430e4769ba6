"""Excel files: the first sheet, a few rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from calibrant.errors import MissingExtra, requirement
from calibrant.stream.dialect import MOST_TITLES, are_names
from calibrant.stream.failure import Unreadable
from calibrant.stream.pieces import ArrowPiece, Piece
from calibrant.stream.readers import BROKEN, LOOKED, Reader, told_apart
from calibrant.stream.wording import shown


class SheetReader(Reader):
    """The first sheet of an Excel file: its first row names the columns; all becomes text.

    Rows of one cell above rows with more are titles, and left out.
    Numbers, times and truth are written as in CSV; a cell shown as 83 % holds 0.83.
    """

    unit: ClassVar[int] = 1

    def _open(self) -> None:
        if find_spec("openpyxl") is None:
            told = "Excel files need openpyxl, not installed here"
            raise MissingExtra(f"{self.source.name}: {told}: pip install {requirement('excel')}")
        try:
            sheet, *others = self._sheets()
            self.size = sheet.max_row
            rows = (
                row for row in sheet.iter_rows(values_only=True) if any(_is_cell(v) for v in row)
            )
            self._rows_of(rows)
            self._note_formulas()
        except (KeyError, IndexError, ValueError, ParseError, *BROKEN) as error:
            raise Unreadable(f"{self.source.name}: cannot be read: {error}") from error
        if len(self.names) < 2 and others:
            told = f"the first sheet must be the table, got {sheet.title!r} without one"
            named = ", ".join(other.title for other in others)
            told = f"{told}; move another one to the front: {named}"
            raise Unreadable(f"{self.source.name}: {told}")
        if not self.names:
            told = "must begin with the names of its columns, got an empty sheet"
            raise Unreadable(f"{self.source.name}: {told}")
        self._schema = pa.schema([(name, pa.string()) for name in self.names])

    def _sheets(self, *, values: bool = True) -> Any:
        """Return the sheets, with stored values or else with formulas."""
        with warnings.catch_warnings():
            # About looks that a file has and its numbers do not need.
            warnings.simplefilter("ignore", UserWarning)
            load = import_module("openpyxl").load_workbook
            return load(self.source.stream, read_only=True, data_only=values).worksheets

    def _note_formulas(self) -> None:
        """Tell of columns of formulas whose values no spreadsheet program has stored."""
        bare = [k for k, name in enumerate(self.names) if not any(r[k] for r in self._first)]
        if not bare:
            return
        first = list(islice(self._sheets(values=False)[0].iter_rows(values_only=True), LOOKED))
        for k in bare:
            if any(str(row[k]).startswith("=") for row in first if k < len(row)):
                told = "has formulas without stored values"
                told = f"{told}; save the file in a spreadsheet program first"
                self.source.notes.append(f"{self.names[k]} {told}")

    def _rows_of(self, rows: Iterator[tuple[Any, ...]]) -> None:
        """Read the names of the columns and the first rows."""
        first = list(islice(rows, LOOKED))
        asked = self.source.asked.header
        above = _titles(first, self.source.columns) if asked is None else 0
        self.source.dialect = replace(self.source.dialect, titles=above)
        names = [cell_text(value) for value in (first or [()])[above]]
        while names and not names[-1].strip():
            names.pop()
        if asked is False:
            names = [str(k) for k in range(1, len(names) + 1)]
        self.names = told_apart([name.strip() for name in names])
        self._first = [self._fitted(row) for row in first[above + (asked is not False) :]]
        self._all = chain(self._first, map(self._fitted, rows))

    @property
    def done(self) -> int:
        return self._rows

    def sample(self) -> dict[str, list[Any]]:
        return {name: [row[k] for row in self._first] for k, name in enumerate(self.names)}

    def _fitted(self, row: tuple[Any, ...]) -> list[str]:
        """Return the cells under the names of columns, as text."""
        point = self.source.dialect.decimal
        cells = [cell_text(value, point) for value in row[: len(self.names)]]
        return cells + [""] * (len(self.names) - len(cells))

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        while found := list(islice(self._all, self._batch_rows)):
            columns = [pa.array(cells, pa.string()) for cells in zip(*found, strict=True)]
            yield ArrowPiece(pa.record_batch(columns, names=self.names), text=True)


def _titles(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> int:
    """Return how many rows stand above the names: of any words, or of one cell each."""
    for above, row in enumerate(rows[: MOST_TITLES + 1]):
        if are_names([cell_text(value) for value in row], columns):
            return above
    widths = [sum(map(_is_cell, row)) for row in rows[: MOST_TITLES + 1]]
    above = next((k for k, width in enumerate(widths) if width > 1), 0)
    return above if above < len(rows) - 1 else 0


def _is_cell(value: Any) -> bool:
    return value is not None and value != ""


def cell_text(value: Any, point: str = ".") -> str:
    """Return what a cell holds as text, with a point or a comma before decimals.

    >>> cell_text(None), cell_text(1.0), cell_text(True), cell_text(datetime(2024, 1, 31))
    ('', '1', 'true', '2024-01-31T00:00:00')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return shown(value).replace(".", point)
    return value.isoformat() if isinstance(value, (datetime, date)) else shown(value)
