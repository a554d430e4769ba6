"""Excel files: the first sheet, a few rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from calibrant.errors import MissingExtra, requirement
from calibrant.stream.dialect import MOST_TITLES
from calibrant.stream.failure import Unreadable
from calibrant.stream.pieces import ArrowPiece, Piece
from calibrant.stream.readers import LOOKED, Reader, told_apart
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
            with warnings.catch_warnings():
                # About looks that a file has and its numbers do not need.
                warnings.simplefilter("ignore", UserWarning)
                book: Any = import_module("openpyxl").load_workbook(
                    self.source.stream, read_only=True, data_only=True
                )
            sheet = book.worksheets[0]
            self.size = sheet.max_row
            rows = (
                row for row in sheet.iter_rows(values_only=True) if any(_is_cell(v) for v in row)
            )
            self._rows_of(rows)
        except (KeyError, IndexError, ValueError, ParseError) as error:
            raise Unreadable(f"{self.source.name}: cannot be read: {error}") from error
        if not self.names:
            told = "must begin with the names of its columns, got nothing"
            raise Unreadable(f"{self.source.name}: {told}")
        self._schema = pa.schema([(name, pa.string()) for name in self.names])

    def _rows_of(self, rows: Iterator[tuple[Any, ...]]) -> None:
        """Read the names of the columns and the first rows."""
        first = list(islice(rows, LOOKED))
        asked = self.source.asked.header
        above = _titles(first) if asked is None else 0
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
        cells = [cell_text(value) for value in row[: len(self.names)]]
        return cells + [""] * (len(self.names) - len(cells))

    def _pieces(self, wanted: list[str] | None) -> Iterator[Piece]:
        while found := list(islice(self._all, self._batch_rows)):
            columns = [pa.array(cells, pa.string()) for cells in zip(*found, strict=True)]
            yield ArrowPiece(pa.record_batch(columns, names=self.names), text=True)


def _titles(rows: list[tuple[Any, ...]]) -> int:
    """Return how many rows of one cell stand above the first one that has more."""
    widths = [sum(map(_is_cell, row)) for row in rows[: MOST_TITLES + 1]]
    above = next((k for k, width in enumerate(widths) if width > 1), 0)
    return above if above < len(rows) - 1 else 0


def _is_cell(value: Any) -> bool:
    return value is not None and value != ""


def cell_text(value: Any) -> str:
    """Return what a cell holds as text.

    >>> cell_text(None), cell_text(1.0), cell_text(True), cell_text(datetime(2024, 1, 31))
    ('', '1', 'true', '2024-01-31T00:00:00')
    """
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, (datetime, date)) else shown(value)
