"""What to do about bad rows: stop, skip them, or set them aside in a file."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import msgspec

from calibrant.stream.failure import BadRow, naming

FIELDS: Final = ("source", "row", "column", "value", "rule", "content")
"""Columns of a quarantine."""


class Fault(NamedTuple):
    """A bad row: which one, what is wrong with it, and all of it."""

    source: str
    row: int
    column: str | None
    value: str | None
    rule: str
    content: str
    told: str

    def __str__(self) -> str:
        return f"{self.source}: row {self.row}: {self.told}"


class OnFault(ABC):
    """What to do about bad rows; ``skipped`` counts those that were passed over."""

    def __init__(self) -> None:
        self.skipped = 0

    @abstractmethod
    def take(self, fault: Fault) -> None:
        """Deal with a bad row."""


class Stop(OnFault):
    """End at the first bad row."""

    def take(self, fault: Fault) -> None:
        raise BadRow(str(fault))


class Skip(OnFault):
    """Pass bad rows over, and count them."""

    def take(self, fault: Fault) -> None:
        self.skipped += 1


class Quarantine(OnFault):
    """Set bad rows aside, with what is wrong, onto a stream of CSV, TSV or JSON Lines."""

    def __init__(self, stream: Any, format: str, name: str = "quarantine") -> None:
        super().__init__()
        self._stream, self._format, self._name = stream, format, name
        if format != "jsonl":
            self._write_fields(FIELDS)

    def take(self, fault: Fault) -> None:
        self.skipped += 1
        if self._format == "jsonl":
            row = dict(zip(FIELDS, fault, strict=False))
            self._write(msgspec.json.encode(row) + b"\n")
        else:
            self._write_fields(fault[: len(FIELDS)])

    def _write_fields(self, fields: tuple[Any, ...]) -> None:
        text = io.StringIO()
        delimiter = "\t" if self._format == "tsv" else ","
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(fields)
        self._write(text.getvalue().encode())

    def _write(self, content: bytes) -> None:
        # The reader of the rows must not take a full disk for a broken input.
        with naming(self._name):
            self._stream.write(content)
