"""Excel files: the first sheet, a few rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import date, datetime
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any, ClassVar
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from calibrant.errors import MissingExtra, requirement
from calibrant.stream.failure import Unreadable
from calibrant.stream.pieces import ArrowPiece, Piece
from calibrant.stream.readers import LOOKED, Reader
from calibrant.stream.wording import shown


class SheetReader(Reader):
    """The first sheet of an Excel file: its first row names the columns; all becomes text.

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
            header = next(rows, ())
        except (KeyError, IndexError, ValueError, ParseError) as error:
            raise Unreadable(f"{self.source.name}: cannot be read: {error}") from error
        self.names = [cell_text(value) for value in header]
        while self.names and not self.names[-1]:
            self.names.pop()
        if not self.names:
            told = "must begin with the names of its columns, got nothing"
            raise Unreadable(f"{self.source.name}: {told}")
        self._schema = pa.schema([(name, pa.string()) for name in self.names])
        self._first = [self._fitted(row) for row in islice(rows, LOOKED)]
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
