"""``calibrant replay``."""

from __future__ import annotations

import time as clock
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from calibrant.cli import screen
from calibrant.cli.options import Ending, Inputs, KindOptions, Making, Reading, refuse, spread
from calibrant.cli.products import Products, command, refuse_two_voices, reserve_rows, show_summary
from calibrant.core import check
from calibrant.core.seal import sealed
from calibrant.stream.columns import Columns
from calibrant.stream.drafts import Drafts, locked, replace_file
from calibrant.stream.failure import StateMismatch, StreamFailure, insist, naming, uninterrupted
from calibrant.stream.faults import OnFault, Quarantine, Skip, Stop
from calibrant.stream.readers import BATCH_ROWS
from calibrant.stream.replay import Job, Progress
from calibrant.stream.replay import replay as replay_job
from calibrant.stream.session import Options, Session, dump, key_of, open_session, read, read_secret
from calibrant.stream.source import Source, digest_of, format_of
from calibrant.stream.writers import open_output, open_writer
from calibrant.summary import AnySummary

MOST_DIGESTS: Final = 10_000
"""Files that a state remembers, the latest."""


@dataclass(frozen=True)
class Safely(Making):
    """How far forecasts may fall behind.

    raw_safe EPSILON
        Never lose more than this to the raw forecasts, on average: announce the raw
        forecast where a draw might. Only with calibrant.
    """

    raw_safe: float | None = None


@dataclass(frozen=True)
class Outputs:
    """Where rows and state go.

    state FILE
        Resume from this file if it exists, and write it at the end.
    journal FILE
        Resume from this journal, which several runs may write at once: each row is on disk before
        it is answered, and none is learned twice.
    secret_file FILE
        Draw by the secret in this file, 16 bytes or more, and keep it out of the state; or by
        that in the variable CALIBRANT_SECRET.
    authenticate_file FILE
        Seal the state with the key in this file; refuse any other.
    out FILE
        Write the rows and their forecasts; - is stdout.
    prefix TEXT
        Prefix for the names of new columns.
    by COL
        Treat every value of this column as a stream of its own, and list those with the largest
        errors.
    jobs N
        With --by, number of threads; the forecasts do not depend on it.
    alarm ALPHA
        With --by, name keys whose mean forecasts cannot be right; the chance of naming any wrongly
        is at most this, over all keys. Not judged are the first 100 rounds of a key, and
        keys beyond the first 10,000.
    """

    state: str | None = None
    journal: str | None = None
    secret_file: str | None = None
    authenticate_file: str | None = None
    out: str | None = None
    prefix: str = ""
    by: str | None = None
    jobs: int = 1
    alarm: float | None = None

    @property
    def key(self) -> bytes | None:
        """The key of the state's digest, if it shall have one."""
        if self.authenticate_file is None:
            return None
        refuse(self.state is None, "--authenticate-file needs --state")
        return key_of(self.authenticate_file)


@dataclass(frozen=True)
class Manner:
    """What to do about bad rows, and how many rows to read at a time.

    on_error RULE
        Bad rows: stop, skip, or quarantine=FILE.
    flush
        Answer each line before the next is read; with --out -.
    checkpoint SECONDS
        With --flush, seconds between writes of the state; 0 writes it after each row.
    id COL
        Column that identifies forecasts: an outcome in a later row or file finds its forecast,
        and no id is learned twice.
    again
        Learn a file that the state has learned before.
    """

    on_error: str = "stop"
    flush: bool = False
    checkpoint: float = 10.0
    id: str | None = None
    again: bool = False
    batch_rows: int = BATCH_ROWS

    @property
    def quarantine(self) -> str | None:
        """The file for bad rows, None if they have none; refuse what is no such option."""
        kind, _, name = self.on_error.partition("=")
        if kind == "quarantine" and name:
            told = "--on-error quarantine= must be a CSV, TSV or JSON Lines file"
            refuse(format_of(name) == "parquet", told)
            return name
        check.choice(self.on_error, "--on-error", ("stop", "skip", "quarantine=FILE"))
        return None


@spread
def replay(
    inputs: Inputs,
    *,
    reading: Reading,
    kind: KindOptions,
    making: Safely,
    outputs: Outputs,
    products: Products,
    manner: Manner,
    ending: Ending,
) -> None:
    """Recalibrate a stream of forecasts, and report what it gained.

    Each row gets the forecast that calibrant would have made at that moment, knowing
    only the rows before it.

    \b
    Example:
      calibrant replay games.csv --raw prob --outcome won --out games.parquet --report games.html
    """
    how = {"one_by_one": manner.flush, "batch_rows": manner.batch_rows, "id": manner.id}
    job = reading.job(inputs, **how)
    check.real(manner.checkpoint, "--checkpoint", low=0.0, rule="0 seconds or more")
    refuse(manner.flush and outputs.out != "-", "--flush needs --out -")
    named = kind.named(reading.raw)
    refuse_two_voices(outputs.out, ending.as_json)
    secret = read_secret(outputs.secret_file)
    options = Options(**vars(making), **named, secret=secret, scale=reading.scale)
    told = job, options, outputs, products, manner, ending.force, reading.words
    check.whole(outputs.jobs, "--jobs", low=1)
    refuse(outputs.jobs > 1 and outputs.by is None, "--jobs needs --by")
    refuse(outputs.alarm is not None and outputs.by is None, "--alarm needs --by")
    if outputs.journal is not None:
        from calibrant.cli.journaled import JournaledRun

        JournaledRun(*told).go(ending.as_json)
    elif outputs.by is None:
        Run(*told).go(ending.as_json)
    else:
        from calibrant.cli.keyed import KeyedRun

        KeyedRun(*told, by=outputs.by).go(ending.as_json)


@dataclass
class Run:
    """One replay from its options to its last file."""

    job: Job
    options: Options
    outputs: Outputs
    products: Products
    manner: Manner
    force: bool
    written: list[str]
    places: dict[str, Path] = field(default_factory=dict)
    rows: Path | None = None
    key: bytes | None = None
    columns: Columns | None = None
    ended: BaseException | None = None
    learned: tuple[str, ...] = ()

    def go(self, as_json: bool) -> None:
        """Read, play, write, tell."""
        name, self.key = self.outputs.state, self.outputs.key
        with nullcontext() if name is None else locked(name):
            stored = None if name is None else read(name, self.options.secret, self.key)
            session = open_session(self.options, stored)
            self.learned = () if name is None else self._digests(session, name)
            summary = self._made(session)
        self._tell(summary, as_json)

    def _tell(self, summary: AnySummary, as_json: bool) -> None:
        """Show what the replay was worth; then end as the rows ended."""
        told = {"as_json": as_json, "details": self.products.details}
        show_summary(summary, **told, error=self.outputs.out == "-")
        if self.ended is not None:
            raise self.ended

    def _digests(self, session: Session, state: str) -> tuple[str, ...]:
        """Return the digests of all files that the state has learned; refuse to learn one twice."""
        new = [(name, digest_of(name)) for name in self.job.inputs]
        for name, digest in new:
            if digest is not None and digest in session.inputs and not self.manner.again:
                told = f"has already been learned, according to {state}; --again learns it again"
                raise StateMismatch(f"{name}: {told}")
        first: dict[str, str] = {}
        for name, digest in new:
            if digest in first and not self.manner.again:
                told = f"has the same content as {first[digest]}; --again learns it again"
                raise StateMismatch(f"{name}: {told}")
            if digest is not None:
                first.setdefault(digest, name)
        return tuple(dict.fromkeys((*session.inputs, *first)))[-MOST_DIGESTS:]

    def _made(self, session: Session) -> AnySummary:
        """Play, and put all files in their places; return what it was worth."""
        kept: Any = session.kept_columns
        self.job = replace(self.job, **kept)
        files = *self.job.inputs, self.outputs.secret_file, self.outputs.authenticate_file
        with Drafts(force=self.force, inputs=files) as drafts:
            self._reserve(drafts)
            summary = self._summary(session, self._play(session))
            # A second signal must not cost what the first one left to be kept.
            with nullcontext() if self.ended is None else uninterrupted():
                self.products.write(summary, self.places, drafts, keep=self.job.one_by_one)
                if self.outputs.state is not None:
                    with naming(self.outputs.state):
                        self.places["state"].write_bytes(sealed(self._dumped(session), self.key))
                drafts.commit()
        return summary

    def _dumped(self, session: Any) -> bytes:
        """Return what the state holds."""
        return dump(session)

    def _reserve(self, drafts: Drafts) -> None:
        """Find out before the work whether everything can be written after it."""
        to, aside = self.outputs, self.manner.quarantine
        self.rows = reserve_rows(drafts, to.out)
        if aside is not None:
            self.places["quarantine"] = drafts.reserve(aside)
        self.places |= self.products.reserve(drafts)
        if to.state is not None:
            # The last to be put in its place: if it is there, so is everything else.
            self.places["state"] = drafts.reserve(to.state, replace=True, secret=True)

    def _play(self, session: Session) -> dict[str, float]:
        """Play all rounds; return how long it took."""
        before, began = session.recalibrator.issued, clock.perf_counter()
        try:
            with ExitStack() as stack:
                on_fault = self._on_fault(stack)
                show = stack.enter_context(screen.progress(self.job.inputs))
                start = partial(self._start, stack, session)
                told = self._keeping(session, on_fault, show)
                replay_job(self.job, session, on_fault, start=start, progress=told)
                insist()
                session.inputs = self.learned
                screen.say_refused(on_fault, session.recalibrator.issued - before)
                screen.say_known(session.book)
        except (KeyboardInterrupt, SystemExit, StreamFailure, OSError) as error:
            # What a filter has answered is out of the house: its state must say so.
            if not self.job.one_by_one or session.recalibrator.issued == before:
                raise
            self.ended = error
        seconds = clock.perf_counter() - began
        rows = session.recalibrator.issued - before
        return {"seconds": seconds, "rounds_per_second": rows / seconds}

    def _keeping(self, session: Session, on_fault: OnFault, show: Progress) -> Progress:
        """Return what shows the progress of a filter, and writes its state now and then."""
        name, every, before = self.outputs.state, self.manner.checkpoint, session.skipped
        due = clock.monotonic() + every
        if name is None or not self.job.one_by_one:
            return show

        def told(rounds: int, done: int, size: int | None) -> None:
            nonlocal due
            show(rounds, done, size)
            if clock.monotonic() >= due:
                session.skipped = before + on_fault.skipped
                replace_file(name, sealed(dump(session), self.key))
                session.skipped, due = before, clock.monotonic() + every

        return told

    def _on_fault(self, stack: ExitStack) -> OnFault:
        name = self.manner.quarantine
        if name is None:
            return Stop() if self.manner.on_error == "stop" else Skip()
        stream = stack.enter_context(open_output(self.places["quarantine"], name))
        return Quarantine(stream, format_of(name) or "csv", name)

    def _start(self, stack: ExitStack, session: Session, source: Source, columns: Columns) -> Any:
        """Return who writes the rows; None if nobody asked for them."""
        self.columns = columns
        screen.say_guesses(self.job, columns, source.notes)
        name = self.outputs.out
        if name is None:
            return None
        stream = stack.enter_context(open_output(self.rows, name))
        names = [self.outputs.prefix + added for added in session.added(columns)]
        return open_writer(stream, format_of(name) or source.format, columns, names)

    def _summary(self, session: Session, timing: dict[str, float]) -> AnySummary:
        columns = {} if self.columns is None else self.columns.options
        words = list(self.written)
        words += [] if session.scale.kind == "probability" else [f"--{session.scale.kind}"]
        words += session.words()
        words += [] if self.manner.on_error == "stop" else ["--on-error", "skip"]
        words += [] if self.outputs.state is None else ["--state", self.outputs.state]
        words += [] if self.outputs.journal is None else ["--journal", self.outputs.journal]
        kept = self.outputs.secret_file
        words += [] if kept is None else ["--secret-file", kept]
        sealing = self.outputs.authenticate_file
        words += [] if sealing is None else ["--authenticate-file", sealing]
        inputs = list(self.job.inputs)
        again = command(["replay", *inputs], columns, *words)
        return session.summary({"command": again, "inputs": inputs, "columns": columns}, timing)
