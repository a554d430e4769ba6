"""``calibrant replay``."""

from __future__ import annotations

import shlex
import time as clock
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import screen
from calibrant.cli.again import recalibrator_words
from calibrant.cli.options import (
    Available,
    Buckets,
    Epsilon,
    Force,
    Format,
    GridName,
    GroupColumns,
    Inputs,
    Json,
    Levels,
    Logit,
    LossName,
    Method,
    NormalColumns,
    OutcomeColumn,
    Percent,
    Plots,
    Prior,
    ProbaColumns,
    QuantileColumns,
    RawColumn,
    ReportFile,
    Resolution,
    Score,
    Seed,
    SummaryFile,
    TimeColumn,
    scale_of,
)
from calibrant.cli.outputs import (
    Outputs,
    levels_of,
    listed,
    quarantine_of,
    refuse,
    refuse_two_ways,
)
from calibrant.cli.products import Products, refuse_two_voices, reserve_rows, tell_story
from calibrant.core import check
from calibrant.stream import (
    FORMATS,
    Columns,
    Drafts,
    Job,
    OnFault,
    Options,
    Quarantine,
    Session,
    Skip,
    Stop,
    Writer,
    format_of,
    open_output,
    open_session,
    open_writer,
)
from calibrant.stream import replay as replay_job
from calibrant.stream.failure import naming
from calibrant.stream.interrupts import insist
from calibrant.stream.readers import BATCH_ROWS
from calibrant.stream.source import Source
from calibrant.stream.state import dump, read
from calibrant.summary import AnyStory

__all__ = ["replay"]


def replay(
    inputs: Inputs,
    raw: RawColumn = None,
    outcome: OutcomeColumn = None,
    time: TimeColumn = None,
    available: Available = None,
    logit: Logit = False,
    percent: Percent = False,
    score: Score = False,
    format: Format = None,
    group: GroupColumns = None,
    proba: ProbaColumns = None,
    quantiles: QuantileColumns = None,
    normal: NormalColumns = None,
    levels: Levels = None,
    method: Method = None,
    resolution: Resolution = None,
    buckets: Buckets = None,
    grid: GridName = None,
    epsilon: Epsilon = None,
    loss: LossName = None,
    prior: Prior = None,
    raw_safe: Annotated[
        float | None,
        typer.Option(
            "--raw-safe",
            metavar="EPSILON",
            help="Never lose more than this to the raw forecasts, on average: announce them where "
            "a draw might. Only with calibrant.",
        ),
    ] = None,
    seed: Seed = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="FILE", help="Go on from this file if it is there; write it."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="Write the rows and their forecasts; - is stdout."
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option("--prefix", metavar="TEXT", help="Put this before the names of new columns."),
    ] = "",
    summary: SummaryFile = None,
    report: ReportFile = None,
    plots: Plots = None,
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", metavar="RULE", help="Bad rows: stop, skip, or quarantine=FILE."
        ),
    ] = "stop",
    flush: Annotated[
        bool,
        typer.Option("--flush", help="Answer each line before the next is read; with --out -."),
    ] = False,
    force: Force = False,
    as_json: Json = False,
    batch_rows: Annotated[int, typer.Option("--batch-rows", hidden=True)] = BATCH_ROWS,
) -> None:
    """Recalibrate a stream of raw forecasts and outcomes, and say what it was worth.

    Each row gets the forecast that calibrant would have made at that moment, knowing
    only the rows before it.

    \b
    Example:
      calibrant replay games.csv --raw prob --outcome won --out games.parquet --report games.html
    """
    check.choice(format or "csv", "--format", FORMATS)
    refuse(available is not None and time is None, "--available needs --time")
    refuse(flush and out != "-", "--flush needs --out -")
    ways = {"--raw": raw, "--proba": proba, "--quantiles": quantiles, "--normal": normal}
    refuse_two_ways([option for option, given in ways.items() if given is not None])
    groups, classes = listed(group, "--group"), listed(proba, "--proba")
    refuse_two_voices(out, as_json)
    scale = scale_of(logit, percent, score)
    Run(
        Job(tuple(inputs), raw, outcome, time, available, format, flush, batch_rows),
        Options(
            *(method, resolution, buckets, grid, epsilon, loss, prior, seed, scale),
            *(groups, classes, raw_safe),
            *(listed(quantiles, "--quantiles"), listed(normal, "--normal"), levels_of(levels)),
        ),
        Outputs(out, state, on_error, prefix, force),
        Products(summary, report, plots),
    ).go(as_json)


@dataclass
class Run:
    """One replay from its options to its last file."""

    job: Job
    options: Options
    outputs: Outputs
    products: Products
    places: dict[str, Path] = field(default_factory=dict)
    rows: Path | None = None
    columns: Columns | None = None
    interrupted: bool = False

    def go(self, as_json: bool) -> None:
        """Read, play, write, tell."""
        stored = None if self.outputs.state is None else read(self.outputs.state)
        session = open_session(self.options, stored)
        kept: Any = session.kept_columns
        self.job = replace(self.job, **kept)
        with Drafts(force=self.outputs.force) as drafts:
            self._reserve(drafts)
            story = self._story(session, self._play(session))
            self.products.write(story, self.places)
            if self.outputs.state is not None:
                with naming(self.outputs.state):
                    self.places["state"].write_bytes(dump(session))
            drafts.commit()
        tell_story(story, as_json=as_json, error=self.outputs.out == "-")
        if self.interrupted:
            raise KeyboardInterrupt

    def _reserve(self, drafts: Drafts) -> None:
        """Find out before the work whether everything can be written after it."""
        to = self.outputs
        aside = quarantine_of(to.on_error)
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
        with ExitStack() as stack:
            on_fault = self._on_fault(stack)
            show = stack.enter_context(screen.progress(self.job.inputs))
            start = self._starter(stack, session)
            try:
                replay_job(self.job, session, on_fault, start=start, progress=show)
                insist()
            except KeyboardInterrupt:
                # What a filter has answered is out of the house: its state must say so.
                if not self.job.one_by_one or session.recalibrator.issued == before:
                    raise
                self.interrupted = True
        seconds = clock.perf_counter() - began
        rows = session.recalibrator.issued - before
        return {"seconds": seconds, "rounds_per_second": rows / seconds}

    def _on_fault(self, stack: ExitStack) -> OnFault:
        name = quarantine_of(self.outputs.on_error)
        if name is None:
            return Stop() if self.outputs.on_error == "stop" else Skip()
        stream = stack.enter_context(open_output(self.places["quarantine"], name))
        return Quarantine(stream, format_of(name) or "csv", name)

    def _starter(
        self, stack: ExitStack, session: Session
    ) -> Callable[[Source, Columns], Writer | None]:
        def start(source: Source, columns: Columns) -> Writer | None:
            self.columns = columns
            self._say_guesses(columns)
            name = self.outputs.out
            if name is None:
                return None
            stream = stack.enter_context(open_output(self.rows, name))
            names = [self.outputs.prefix + added for added in session.added(columns)]
            return open_writer(stream, format_of(name) or source.format, columns, names)

        return start

    def _say_guesses(self, columns: Columns) -> None:
        told = []
        if self.job.raw is None and not columns.vector:
            told.append(f"raw forecasts from column {columns.raw!r}")
        if self.job.outcome is None:
            told.append(f"outcomes from column {columns.outcome!r}")
        if told:
            screen.say(" and ".join(told))

    def _story(self, session: Session, timing: dict[str, float]) -> AnyStory:
        columns = {} if self.columns is None else self.columns.options
        settings = {
            "command": self._command(session, columns),
            "inputs": list(self.job.inputs),
            "columns": columns,
        }
        return session.story(settings, timing)

    def _command(self, session: Session, columns: dict[str, str]) -> str:
        """Return the command that makes these numbers again."""
        words = ["calibrant", "replay", *self.job.inputs]
        words += [word for name, value in columns.items() for word in (f"--{name}", value)]
        words += [] if session.scale.kind == "probability" else [f"--{session.scale.kind}"]
        words += recalibrator_words(session)
        words += [] if self.outputs.on_error == "stop" else ["--on-error", "skip"]
        words += [] if self.outputs.state is None else ["--state", self.outputs.state]
        return shlex.join(words)
