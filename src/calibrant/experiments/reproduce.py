"""Run experiments by name, and write down what came of them."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from calibrant.errors import InvalidInput
from calibrant.experiments.experiment import (
    Claim,
    Columns,
    Experiment,
    Result,
    Setting,
    experiments,
)
from calibrant.experiments.page import Chapter, render
from calibrant.plot.canvas import png, svg
from calibrant.plot.files import put
from calibrant.plot.vector import settled
from calibrant.stream.failure import Unreadable

ALL = "all"


def reproduce(names: Iterable[str], setting: Setting) -> list[Chapter]:
    """Run experiments, in the paper's order.

    Parameters
    ----------
    names
        Which; ``"all"`` stands for every one.  If it is among them, an experiment whose data
        are missing says so in its result; otherwise that is an error.
    setting
        How.

    Examples
    --------
    >>> reproduce(["chess"], Setting(Path("data")))
    Traceback (most recent call last):
    calibrant.errors.UnknownName: experiment must be one of 'adversary', 'bernoulli',
    ... 'theory', got 'chess'
    """
    asked = list(names)
    chosen = in_order(asked)
    return [_run(each, setting, lenient=ALL in asked) for each in chosen]


def in_order(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments of these names, in the paper's order."""
    if not names:
        raise InvalidInput(f"experiments must be at least one, got {names!r}")
    known = experiments.names() if ALL in names else dict.fromkeys(names)
    found = [experiments.get(name) for name in known]
    return sorted(found, key=lambda each: each.place)


def _run(each: Experiment, setting: Setting, *, lenient: bool) -> Chapter:
    began = time.perf_counter()
    setting.tell(f"{each.name}: {each.title}")
    try:
        result = each.run(setting)
    except Unreadable as error:
        if not lenient:
            raise
        result = Result((), missing=(str(error),))
    return Chapter(each, result, time.perf_counter() - began)


def write(
    done: Sequence[Chapter], directory: str | os.PathLike[str], *, command: str | None = None
) -> list[Path]:
    """Write figures, numbers and the page ``index.html``; return the paths, the page last.

    Parameters
    ----------
    done
        What was run.
    directory
        Where to; made if it is not there.  Files of the same names are replaced, each in one
        step.
    command
        What makes it again, for the page.
    """
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    written = [put(place / "claims.csv", _csv(claims_columns(done)))]
    for each in done:
        written += _write_numbers(each.result, place)
    return [*written, put(place / "index.html", render(done, command=command).encode())]


def _write_numbers(result: Result, place: Path) -> list[Path]:
    written = [put(place / f"{name}.csv", _csv(table)) for name, table in result.columns.items()]
    for name, panels in result.figures.items():
        figure = panels.draw()
        written.append(put(place / f"{name}.png", png(figure)))
        written.append(put(place / f"{name}.svg", settled(svg(figure)).encode()))
    return written


def claims_columns(done: Sequence[Chapter]) -> Columns:
    """Return all claims as columns."""
    pairs = [(each.experiment.name, claim) for each in done for claim in each.result.claims]
    told: list[Claim] = [claim for _, claim in pairs]
    return {
        "experiment": [name for name, _ in pairs],
        "key": [claim.key for claim in told],
        "claim": [claim.said for claim in told],
        "source": [claim.source for claim in told],
        "bar": [claim.bar for claim in told],
        "value": [claim.value for claim in told],
        "verdict": [claim.verdict for claim in told],
    }


def _csv(columns: Columns) -> bytes:
    """Return columns as a comma-separated file; numbers are written in full."""
    held = io.StringIO(newline="")
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return held.getvalue().encode()
