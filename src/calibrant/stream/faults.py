"""Bad rows: what is wrong with them, and what becomes of them."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from calibrant.stream.failure import BadRow, naming

FIELDS: Final = ("source", "row", "column", "value", "rule", "content")
"""Columns of a quarantine."""
LEAVING: Final = "--on-error skip"
LEAVE_OUT: Final = "; --on-error skip leaves such rows out"
"""What is said where no other option makes a bad row a good one."""
MOST_REASONS: Final = 20
"""Reasons that are distinguished."""


class Fault(NamedTuple):
    """A bad row: which one, what is wrong with it, and all of it."""

    source: str
    row: int
    column: str | None
    value: str | None
    rule: str
    content: str
    told: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.source}: row {self.row}: {self.told}{_trying(self.advice)}"


@dataclass
class Reason:
    """Why rows were refused: how many, and the first value among them."""

    example: str | None
    rows: int = 0


class OnFault(ABC):
    """What to do about bad rows; ``skipped`` counts those that were passed over."""

    def __init__(self) -> None:
        self.skipped, self.advice = 0, ""
        self.reasons: dict[str, Reason] = {}

    @abstractmethod
    def take(self, fault: Fault) -> None:
        """Deal with a bad row."""

    def count(self, fault: Fault) -> None:
        """Count a bad row that is passed over."""
        self.skipped += 1
        # To leave rows out is done already.
        self.advice = self.advice or fault.advice.partition(LEAVING)[0].strip()
        rule = fault.rule if fault.column is None else f"{fault.column} must be {fault.rule}"
        if rule not in self.reasons and len(self.reasons) >= MOST_REASONS:
            rule = "other reasons"
        self.reasons.setdefault(rule, Reason(fault.value)).rows += 1

    def told(self, played: int) -> list[str]:
        """Return how many rows were refused beside those that were played, and why.

        Examples
        --------
        >>> skip = Skip()
        >>> skip.take(Fault("a.csv", 1, "won", "no", "0 or 1", "", ""))
        >>> skip.told(9)
        ["1 of 10 rows refused: won must be 0 or 1, e.g. 'no'"]
        """
        if not self.skipped:
            return []
        first = f"{self.skipped:,} of {self.skipped + played:,} rows refused"
        ranked = sorted(self.reasons.items(), key=lambda pair: -pair[1].rows)
        lines = [f"{rule}{_example(why.example)}" for rule, why in ranked]
        if len(lines) == 1:
            return [f"{first}: {lines[0]}{_trying(self.advice)}"]
        pairs = zip(ranked, lines, strict=True)
        listed = [f"  {why.rows:,} x {line}" for (_, why), line in pairs]
        return [f"{first}{_trying(self.advice)}:", *listed]


def _example(value: str | None) -> str:
    return "" if value is None else f", e.g. {value!r}" if value else ", e.g. an empty cell"


def _trying(advice: str) -> str:
    return f"; try {advice}" if advice else ""


class Stop(OnFault):
    """End at the first bad row."""

    def take(self, fault: Fault) -> None:
        raise BadRow(str(fault) + ("" if fault.advice else LEAVE_OUT))


class Skip(OnFault):
    """Pass bad rows over, and count them."""

    def take(self, fault: Fault) -> None:
        self.count(fault)


class Quarantine(OnFault):
    """Set bad rows aside, with what is wrong, onto a stream of CSV, TSV or JSON Lines."""

    def __init__(self, stream: Any, format: str, name: str = "quarantine") -> None:
        super().__init__()
        self._stream, self._format, self._name = stream, format, name
        if format != "jsonl":
            self._write_fields(FIELDS)

    def take(self, fault: Fault) -> None:
        self.count(fault)
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
