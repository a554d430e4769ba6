"""Reading inputs, playing their rounds, writing the answers; and what becomes of bad rows."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from calibrant.stream.columns import Columns, KindColumns, choose
from calibrant.stream.failure import BadRow, StateMismatch, Unreadable, naming, uninterrupted
from calibrant.stream.readers import BATCH_ROWS, Piece, Reader, open_reader
from calibrant.stream.rows import Problem, Rules
from calibrant.stream.session import Session
from calibrant.stream.source import Source, open_source
from calibrant.stream.writers import JsonLinesWriter, Writer

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

    skipped: int = 0

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


Progress: TypeAlias = Callable[[int, int, int | None], None]
"""Called with rounds so far, and how much of how much of the present input is read."""

Start: TypeAlias = Callable[[Source, Columns], Writer | None]
"""Called with the first input and its columns; opens the output."""


@dataclass(frozen=True)
class Job(KindColumns):
    """What to read and how; the columns of :class:`KindColumns` among it.

    Attributes
    ----------
    inputs
        Names of files; ``-`` is standard input.
    raw, outcome, time, available
        Names of columns; the first two are guessed where not told.
    format
        Of all inputs; by default as their names or first bytes say.
    one_by_one
        Whether each row is to be answered before the next one is read.
    batch_rows
        About how many rows to read at a time otherwise; changes no result.
    """

    inputs: tuple[str, ...]
    raw: str | None = None
    outcome: str | None = None
    time: str | None = None
    available: str | None = None
    format: str | None = None
    one_by_one: bool = False
    batch_rows: int = BATCH_ROWS

    @property
    def asked(self) -> dict[str, Any]:
        """The columns that are named, by what they mean."""
        return {each.name: getattr(self, each.name) for each in fields(Columns)}


def replay(
    job: Job,
    session: Session,
    on_fault: OnFault,
    *,
    start: Start = lambda source, columns: None,
    progress: Progress = lambda rounds, done, size: None,
) -> Columns:
    """Play all rounds of a job; return the columns that were read.

    Parameters
    ----------
    job : Job
        What to read.
    session : Session
        Who plays; goes on from wherever it stands.
    on_fault : OnFault
        What to do about bad rows.
    start : callable, optional
        Called once with the first input and its columns; returns who writes the answers, if
        anybody does.
    progress : callable, optional
        Called after each batch.
    """
    before = session.skipped
    replaying = _Replay(job, session, on_fault, start, progress)
    try:
        for name in job.inputs:
            replaying.play(name)
    finally:
        session.skipped = before + on_fault.skipped
    return replaying.finish()


class _Replay:
    """The inputs of a job, one after the other."""

    def __init__(
        self, job: Job, session: Session, on_fault: OnFault, start: Start, progress: Progress
    ) -> None:
        self.job, self.session, self.on_fault = job, session, on_fault
        self._start, self._progress = start, progress
        self._columns: Columns | None = None
        self._names: list[str] = []
        self._writer: Writer | None = None

    def play(self, name: str) -> None:
        """Play one input from start to end."""
        with closing(open_source(name, self.job.format)) as source:
            reader = open_reader(
                source,
                lambda misfit: self.on_fault.take(_of_misfit(name, *misfit)),
                batch_rows=self.job.batch_rows,
                one_by_one=self.job.one_by_one,
            )
            columns = self._columns or self._begin(source, reader)
            self._check_names(reader, columns)
            self.session.long = self.session.long or reader.long
            rules = self.session.rules(columns)
            wanted = columns.names if self._writer is None else None
            guard = uninterrupted if self.job.one_by_one else nullcontext
            for piece in reader.pieces(wanted):
                with guard():
                    self._take(reader, rules, piece)

    def finish(self) -> Columns:
        """Close the output; refuse a job that came to nothing."""
        if self._columns is None or self.session.recalibrator.issued == 0:
            listed = ", ".join(self.job.inputs)
            raise Unreadable(f"{listed}: must have one row at least, got none")
        if self._writer is not None:
            self._writer.close()
        return self._columns

    def _begin(self, source: Source, reader: Reader) -> Columns:
        columns = choose(source.name, reader.names, **self.job.asked)
        self._check_time(source, columns)
        self._columns, self._names = columns, reader.names
        self._writer = self._start(source, columns)
        if self._writer is not None:
            if clash := [column for column in self._writer.names if column in self._names]:
                told = "is there already; rename it, or name the new columns with --prefix"
                raise Unreadable(f"{source.name}: column {clash[0]!r} {told}")
            self._writer.write(reader.empty(), self.session.none())
        return columns

    def _take(self, reader: Reader, rules: Rules, piece: Piece) -> None:
        rounds, good, problems = rules.read(piece)
        for problem in problems:
            self.on_fault.take(_of_problem(reader, piece, problem))
        if len(rounds):
            answers = self.session.play(rounds)
            # A row that was played counts, even if nobody takes its answer.
            self.session.last = rules.last
            if self._writer is not None:
                self._writer.write(piece.take(good) if problems else piece, answers)
                if self.job.one_by_one:
                    self._writer.stream.flush()
        self._progress(self.session.recalibrator.issued, reader.done, reader.size)

    def _check_time(self, source: Source, columns: Columns) -> None:
        timed = columns.time is not None
        if self.session.timed not in (None, timed) and len(self.session.pending):
            how = "with" if self.session.timed else "without"
            told = f"outcomes that the state still expects were read {how} --time"
            raise StateMismatch(f"{source.name}: {told}; go on in the same way")
        self.session.timed = timed

    def _check_names(self, reader: Reader, columns: Columns) -> None:
        name = reader.source.name
        missing = [column for column in columns.names if column not in reader.names]
        if missing:
            raise Unreadable(f"{name}: no column {missing[0]!r} as in the first input")
        tabular = self._writer is not None and not isinstance(self._writer, JsonLinesWriter)
        if tabular and reader.names != self._names:
            raise Unreadable(f"{name}: must have the columns of the first input to join it")


def _of_misfit(name: str, number: int, wrong: str, text: str) -> Fault:
    return Fault(name, number, None, None, wrong, text, wrong)


def _of_problem(reader: Reader, piece: Piece, problem: Problem) -> Fault:
    row, column, value, rule = problem
    shown = None if value is None else str(value)
    place = reader.source.name, reader.number(row)
    return Fault(*place, column, shown, rule, piece.content(row), str(problem))
