"""``calibrant play``."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from calibrant.cli import screen
from calibrant.cli.options import (
    Buckets,
    Epsilon,
    Force,
    GridName,
    Json,
    LossName,
    Method,
    Plots,
    Prior,
    ReportFile,
    Resolution,
    Seed,
    SummaryFile,
)
from calibrant.cli.products import Products, tell_story
from calibrant.stream import Drafts, Options, Session
from calibrant.summary import Story, tell

__all__ = ["play"]


def _adversaries() -> list[str]:
    from calibrant.simulate import adversaries

    return list(adversaries.names())


def _forecasters() -> list[str]:
    from calibrant.simulate import forecasters

    return list(forecasters.names())


def play(
    adversary: Annotated[
        str,
        typer.Option(
            "--adversary",
            metavar="NAME",
            help="Who chooses the outcomes: --list names them.",
            autocompletion=_adversaries,
        ),
    ] = "threshold",
    forecaster: Annotated[
        str,
        typer.Option(
            "--forecaster",
            metavar="NAME",
            help="Who makes the raw forecasts: --list names them.",
            autocompletion=_forecasters,
        ),
    ] = "noise",
    rounds: Annotated[int, typer.Option("--rounds", metavar="T", help="How many.")] = 10_000,
    method: Method = None,
    resolution: Resolution = None,
    buckets: Buckets = None,
    grid: GridName = None,
    epsilon: Epsilon = None,
    loss: LossName = None,
    prior: Prior = None,
    seed: Seed = None,
    summary: SummaryFile = None,
    report: ReportFile = None,
    plots: Plots = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Name all adversaries and forecasters.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Play against an adversary that sees the announced mixture, but never the draw.

    The same seed serves the draws and, apart from them, the other two players.

    \b
    Example:
      calibrant play --adversary threshold --rounds 1000 --resolution 10 --buckets 10
    """
    if listed:
        _list(as_json)
        return
    options = Options(method, resolution, buckets, grid, epsilon, loss, prior, seed)
    products = Products(summary, report, plots)
    with Drafts(force=force) as drafts:
        places = products.reserve(drafts)
        story = _play(options.session(), forecaster, adversary, rounds)
        products.write(story, places)
        drafts.commit()
    tell_story(story, as_json=as_json)


def _play(session: Session, forecaster: str, adversary: str, rounds: int) -> Story:
    from calibrant.simulate import play as play_game

    recalibrator, seed, began = session.recalibrator, session.seed or 0, time.perf_counter()
    with screen.progress((adversary,)) as show:
        record = play_game(
            recalibrator, forecaster, adversary, rounds, seed=seed,
            progress=lambda done, total: show(done, done, total),
        )  # fmt: skip
    seconds = time.perf_counter() - began
    session.collector.update(record.raw, record.forecast, record.mean, record.outcomes)
    words = ["calibrant", "play", "--adversary", adversary, "--forecaster", forecaster]
    words += ["--rounds", str(rounds), *recalibrator_words(session)]
    return tell(
        session.collector,
        recalibrator,
        seed=seed,
        settings={"command": shlex.join(words), "inputs": [f"{forecaster} against {adversary}"]},
        timing={"seconds": seconds, "rounds_per_second": rounds / seconds},
    )


def recalibrator_words(session: Session) -> list[str]:
    """Return the options that make a session's recalibrator again."""
    recalibrator = session.recalibrator
    rule = recalibrator.calibrator
    words = ["--method", rule.name, "--resolution", str(rule.resolution), "--grid", rule.grid]
    words += ["--buckets", str(recalibrator.buckets), "--prior", str(recalibrator.prior)]
    loss = recalibrator.certificate().loss_name
    words += [] if loss == "squared" else ["--loss", loss]
    return words + ([] if session.seed is None else ["--seed", str(session.seed)])


def _list(as_json: bool) -> None:
    from calibrant.simulate import adversaries, forecasters

    found = {
        noun: {name: (registry.get(name).__doc__ or "").partition("\n")[0]
               for name in registry.names()}
        for noun, registry in (("adversaries", adversaries), ("forecasters", forecasters))
    }  # fmt: skip
    if as_json:
        screen.tell_json(found)
        return
    for noun, entries in found.items():
        print(f"{noun}:")
        for name, line in entries.items():
            print(f"  {name:20} {line}")
