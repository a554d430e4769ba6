"""Reading inputs, playing their rounds, writing the answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.arrays import Mask
from calibrant.errors import InvalidInput
from calibrant.stream.advice import (
    Sample,
    advice,
    advice_on,
    check_percents,
    guesses,
    other_value,
    time_format,
)
from calibrant.stream.columns import Columns, KindColumns, choose
from calibrant.stream.dialect import Asked
from calibrant.stream.failure import NoColumn, StateMismatch, Unreadable, uninterrupted
from calibrant.stream.faults import Fault, OnFault
from calibrant.stream.ids import Book, number_of, runs
from calibrant.stream.inputs import open_reader
from calibrant.stream.offers import check_lists, has_outcomes, offer
from calibrant.stream.pieces import Piece
from calibrant.stream.readers import BATCH_ROWS, Reader
from calibrant.stream.rows import Problem, Rounds, Rules, outcomes_of, value_at
from calibrant.stream.session import Feed
from calibrant.stream.source import TEXT, Source, open_source
from calibrant.stream.values import listed
from calibrant.stream.wording import Wording, shown
from calibrant.stream.writers import JsonLinesWriter, Writer

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
    format, dialect
        Of all inputs; by default as their names or first bytes say.
    one_by_one
        Whether each row is to be answered before the next one is read.
    batch_rows
        About how many rows to read at a time otherwise; changes no result.
    positive, time_format
        How outcomes and times are worded, as in :class:`~calibrant.stream.wording.Wording`.
    id
        Name of the column that forecasts are known by, if outcomes come in later rows.
    """

    inputs: tuple[str, ...]
    raw: str | None = None
    outcome: str | None = None
    time: str | None = None
    available: str | None = None
    format: str | None = None
    one_by_one: bool = False
    batch_rows: int = BATCH_ROWS
    dialect: Asked = field(default_factory=Asked)
    positive: str | None = None
    time_format: str | None = None
    id: str | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """The columns that are named, by what they mean."""
        names = [each.name for each in fields(Columns) if each.name != "wording"]
        return {name: getattr(self, name) for name in names}

    @property
    def named(self) -> list[str]:
        """The names of columns that are told."""
        told = [(text,) if isinstance(text, str) else text for text in self.asked.values()]
        return [name for names in filter(None, told) for name in names]


def replay(
    job: Job,
    session: Feed,
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
    session : Feed
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
        self, job: Job, session: Feed, on_fault: OnFault, start: Start, progress: Progress
    ) -> None:
        self.job, self.session, self.on_fault = job, session, on_fault
        self._start, self._progress = start, progress
        self._columns: Columns | None = None
        self._names: list[str] = []
        self._writer: Writer | None = None
        self._advice = ""
        self._sample: Sample = {}
        self._words = Wording(
            percent=session.scale.kind == "percent",
            positive=job.positive,
            time_format=job.time_format,
        )
        if job.id is not None:
            if not session.settles:
                told = "--id needs one probability per row, without groups, classes and numbers"
                raise InvalidInput(told)
            session.book = session.read_book()

    def play(self, name: str) -> None:
        """Play one input from start to end."""
        source = open_source(name, self.job.format, self.job.dialect, self.job.named)
        source.later = self.job.outcome
        with closing(source):
            reader = open_reader(
                source,
                lambda misfit: self.on_fault.take(_of_misfit(name, *misfit)),
                batch_rows=self.job.batch_rows,
                one_by_one=self.job.one_by_one,
            )
            columns = self._columns or self._begin(source, reader)
            self.session.begin(name)
            columns = self._with_outcomes(source, reader, columns)
            self._check_names(reader, columns)
            worded = replace(columns.wording, decimal=source.dialect.decimal)
            columns = replace(columns, wording=worded)
            self.session.long = self.session.long or reader.long
            part = _Part(reader, self.session.rules(columns), columns)
            there = [column for column in columns.names if column in reader.known]
            wanted = there if self._writer is None else None
            guard = uninterrupted if self.job.one_by_one else nullcontext
            for piece in reader.pieces(wanted):
                with guard():
                    self._take(part, piece)

    def finish(self) -> Columns:
        """Close the output; refuse a job that came to nothing."""
        if self._columns is None or self.session.recalibrator.issued == 0:
            listed = ", ".join(self.job.inputs)
            first, *reasons = self.on_fault.told(0) or ["must have at least one row, got none"]
            told = " ".join([first, "; ".join(map(str.strip, reasons))]).strip()
            raise Unreadable(f"{listed}: {told}")
        if self._writer is not None:
            self._writer.close()
        return self._columns

    def _begin(self, source: Source, reader: Reader) -> Columns:
        sample = reader.sample()
        columns = self._chosen(source, reader, sample)
        self._check_time(source, columns)
        if not self.session.recalibrator.issued:
            check_percents(source.name, sample, columns, self.session.scale.kind)
            check_lists(source.name, sample, columns)
        self._sample = sample
        self._advice = advice(sample, columns, self.session.scale.kind)
        source.notes += guesses(source, self.job.dialect, sample, columns)
        if columns.outcome and columns.outcome not in reader.known:
            source.notes.append(f"no column {columns.outcome!r}: outcomes come later")
        self._columns, self._names = columns, reader.names
        self._writer = self._start(source, columns)
        if self._writer is not None:
            if clash := [column for column in self._writer.names if column in self._names]:
                told = "already exists; rename it, or name the new columns with --prefix"
                raise Unreadable(f"{source.name}: column {clash[0]!r} {told}")
            self._writer.write(reader.empty(), self.session.none())
        return columns

    def _chosen(self, source: Source, reader: Reader, sample: Sample) -> Columns:
        """Return the columns, with what the first rows say about their wording."""
        words = replace(self._words, decimal=source.dialect.decimal)
        book = self.session.book
        late = self.job.id is not None and bool(book)
        early = self.job.id is not None and not has_outcomes(sample, self.job.asked)
        try:
            told = {"late": late, "early": early, "text": source.format in TEXT}
            columns = choose(source.name, reader.known, **told, **self.job.asked)
        except NoColumn as problem:
            offered = "" if self.job.vector else offer(sample, self.job.asked, words)
            raise Unreadable(f"{problem}; {offered}" if offered else str(problem)) from problem
        columns = replace(columns, wording=words)
        if words.positive is not None and not words.other:
            words.other.extend(other_value(sample.get(columns.outcome, ()), words.positive))
        if columns.time is None or words.time_format is not None:
            return columns
        form = time_format(source.name, sample, columns)
        return replace(columns, wording=replace(words, time_format=form))

    def _take(self, part: _Part, piece: Piece) -> None:
        if self.job.id is None or self.session.book is None:
            self._issue(part, piece, None)
        else:
            self._take_known(part, piece, self.session.book)
        reader = part.reader
        self._progress(self.session.recalibrator.issued, reader.done, reader.size)

    def _issue(self, part: _Part, piece: Piece, rows: list[int] | None) -> Issued | None:
        """Forecast the rows of a piece; ``rows`` are their places in the piece that was read."""
        rounds, good, problems = part.rules.read(piece)
        for problem in problems:
            self.on_fault.take(self._fault(part, piece, problem, rows))
        if not len(rounds):
            return None
        if self.job.id is not None:
            names = listed(piece.column(self.job.id))
            self.session.call([shown(names[row]) for row in np.flatnonzero(good).tolist()])
        answers = self.session.play(rounds)
        # A row that was played counts, even if nobody takes its answer.
        self.session.last = part.rules.last
        if self._writer is not None:
            self._writer.write(piece.take(good) if problems else piece, answers)
            if self.job.one_by_one:
                self._writer.stream.flush()
        return rounds, good, answers

    def _take_known(self, part: _Part, piece: Piece, book: Book) -> None:
        """Forecast rows whose id is new, and let the outcomes of others find their forecast."""
        ids = [number_of(value) for value in listed(piece.column(str(self.job.id)))]
        told = outcomes_of(piece, part.columns)
        outcomes = [None if gap else y for y, gap in zip(*map(list, told), strict=True)]
        for new, rows in runs(ids, book):
            if new:
                self._issue_known(part, piece, ids, rows, book)
                continue
            for row in rows:
                if ids[row] in book:
                    self._settle(part, piece, row, ids[row], outcomes[row], book)
                else:
                    # Nothing came of the row that had this id before.
                    self._issue_known(part, piece, ids, [row], book)

    def _issue_known(
        self, part: _Part, piece: Piece, ids: list[int | None], rows: list[int], book: Book
    ) -> None:
        strange = part.columns.raw not in part.reader.known
        rule = "an id of a forecast that was made" if strange else "an id"
        kept = []
        for row in rows:
            if strange or ids[row] is None:
                self._refuse(part, piece, row, str(self.job.id), rule)
            else:
                kept.append(row)
        if not kept:
            return
        wanted = np.zeros(len(piece), np.bool_)
        wanted[kept] = True
        issued = self._issue(part, piece.take(wanted), kept)
        if issued is not None:
            rounds, good, answers = issued
            numbers: Any = [ids[kept[k]] for k in np.flatnonzero(good).tolist()]
            book.note(numbers, rounds, answers)

    def _settle(
        self, part: _Part, piece: Piece, row: int, known: Any, outcome: float | None, book: Book
    ) -> None:
        """Learn the outcome of an open forecast; a row that says nothing new is passed over."""
        if known in book.learned or outcome is None:
            book.repeated += 1
        elif outcome in (0.0, 1.0):
            # Only a session that settles has a book.
            settling: Any = self.session
            settling.settle(book.settle(known), int(outcome))
        else:
            columns = part.columns
            self._refuse(part, piece, row, columns.outcome, columns.wording.outcome_rule)

    def _refuse(self, part: _Part, piece: Piece, row: int, column: str, rule: str) -> None:
        problem = Problem(row, column, value_at(piece, column, row), rule)
        self.on_fault.take(self._fault(part, piece, problem, None))

    def _fault(self, part: _Part, piece: Piece, problem: Problem, rows: list[int] | None) -> Fault:
        """Return a bad row, with the options that would make it a good one."""
        row, column, value, rule = problem
        shown = None if value is None else str(value)
        number = part.reader.number(row if rows is None else rows[row])
        kind = self.session.scale.kind
        hint = self._advice or advice_on(value, column, part.columns, kind, self._sample)
        told = part.reader.source.name, number, column, shown, rule
        return Fault(*told, piece.content(row), str(problem), hint)

    def _check_time(self, source: Source, columns: Columns) -> None:
        timed = columns.time is not None
        if self.session.timed not in (None, timed) and len(self.session.pending):
            how = "with" if self.session.timed else "without"
            told = f"outcomes that the state still expects were read {how} --time"
            raise StateMismatch(f"{source.name}: {told}; continue in the same way")
        self.session.timed = timed

    def _with_outcomes(self, source: Source, reader: Reader, columns: Columns) -> Columns:
        """Return the columns of an input, without outcomes if they come in a later one."""
        if columns.id is None or columns.outcome in reader.known:
            return columns
        if not columns.outcome:
            # The first input had none: this one may.
            asked = {**self.job.asked, "raw": columns.raw}
            found = choose(source.name, reader.known, late=True, early=True, **asked)
            self._columns = columns = replace(columns, outcome=found.outcome)
        if columns.outcome in reader.known or columns.raw not in reader.known:
            return columns
        return replace(columns, outcome="")

    def _check_names(self, reader: Reader, columns: Columns) -> None:
        name = reader.source.name
        told = columns.outcome or columns.raw
        needed = [columns.id, told] if columns.id else columns.names
        missing = [column for column in needed if column not in reader.known]
        if missing:
            raise Unreadable(f"{name}: no column {missing[0]!r} as in the first input")
        tabular = self._writer is not None and not isinstance(self._writer, JsonLinesWriter)
        if tabular and columns.raw in reader.known and reader.names != self._names:
            raise Unreadable(f"{name}: must have the columns of the first input to join it")


@dataclass
class _Part:
    """An input that is being read: by which rules, and which columns of it."""

    reader: Reader
    rules: Rules
    columns: Columns


Issued: TypeAlias = tuple[Rounds, Mask, Any]
"""Rounds that were forecast, which rows of their piece they are, and the answers."""


def _of_misfit(name: str, number: int, wrong: str, text: str) -> Fault:
    return Fault(name, number, None, None, wrong, text, wrong)
