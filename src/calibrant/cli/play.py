"""``calibrant play``."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibrant.cli import screen
from calibrant.cli.options import Ending, Making, among, spread
from calibrant.cli.products import Products, command, refuse_two_voices, reserve_rows, show_summary
from calibrant.core.arrays import Words
from calibrant.core.place import buckets_of
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.secret import chosen_seed
from calibrant.stream.columns import Columns
from calibrant.stream.drafts import Drafts
from calibrant.stream.pieces import ArrowPiece
from calibrant.stream.session import ADDED, Answers, Options, Session
from calibrant.stream.source import format_of
from calibrant.stream.writers import open_output, open_writer
from calibrant.summary import Summary, summarise_collected

if TYPE_CHECKING:
    from calibrant.simulate import Record


def _known(players: str) -> list[str]:
    return list(getattr(importlib.import_module("calibrant.simulate"), players).names())


@dataclass(frozen=True)
class Players:
    """Who plays, for how long, and where the rounds go.

    adversary NAME
        Who chooses the outcomes: --list names them.
    forecaster NAME
        Who makes the raw forecasts: --list names them.
    rounds T
        Number of rounds.
    out FILE
        Write the rounds, as replay does; - is stdout.
    listed, --list
        Name all adversaries and forecasters.
    """

    adversary: str = among(lambda: _known("adversaries"), "threshold")
    forecaster: str = among(lambda: _known("forecasters"), "noise")
    rounds: int = 10_000
    out: str | None = None
    listed: bool = False


@spread
def play(*, players: Players, making: Making, products: Products, ending: Ending) -> None:
    """Play against an adversary that sees all but the draw.

    One seed determines the draws and, independently, the other two players.

    \b
    Example:
      calibrant play --adversary threshold --rounds 1000
    """
    out, as_json = players.out, ending.as_json
    if players.listed:
        _list(as_json)
        return
    refuse_two_voices(out, as_json)
    with Drafts(force=ending.force) as drafts:
        place = reserve_rows(drafts, out)
        places = products.reserve(drafts)
        # A game is over when it ends: its seed may be told.
        seed = chosen_seed() if making.seed is None else making.seed
        session = Options(**{**vars(making), "seed": seed}).session()
        told = _play(session, players, place)
        products.write(told, places, drafts)
        drafts.commit()
    show_summary(told, as_json=as_json, details=products.details, error=out == "-")


def _play(session: Session, players: Players, place: Path | None) -> Summary:
    """Play all rounds and write them; tell what the game amounts to."""
    from calibrant.simulate import play as play_game

    fresh, began = session.recalibrator.copy(), time.perf_counter()
    with screen.progress((players.adversary,)) as show:
        record = play_game(
            session.recalibrator, players.forecaster, players.adversary, players.rounds,
            seed=session.seed or 0, progress=lambda done, total: show(done, done, total),
        )  # fmt: skip
    seconds = time.perf_counter() - began
    # A mean is a sum of products and may round to just above 1.
    mean = np.minimum(record.mean, 1.0)
    session.collector.update(record.raw, record.forecast, mean, record.outcomes)
    if players.out is not None:
        numbers = _buckets(fresh, record), np.arange(len(record))
        _write(record, Answers(record.forecast, mean, *numbers), place, players.out)
    options = {name: getattr(players, name) for name in ("adversary", "forecaster", "rounds")}
    again = command(["play"], options, *session.words())
    settings = {"command": again, "inputs": [f"{players.forecaster} against {players.adversary}"]}
    timing = {"seconds": seconds, "rounds_per_second": players.rounds / seconds}
    made: Summary = summarise_collected(
        session.collector, session.recalibrator, seed=session.seed, settings=settings, timing=timing
    )
    return made


def _buckets(fresh: Recalibrator, record: Record) -> Words:
    """Return the bucket of each round; those of a chain depend on what its experts said."""
    if isinstance(fresh, Calibrant) and fresh.buckets > 1:
        return fresh.replay(record.raw, record.outcomes).bucket
    return buckets_of(record.raw, fresh.buckets)


def _write(record: Record, answers: Answers, place: Path | None, name: str) -> None:
    """Write the rounds as ``calibrant replay`` would if it were given the first two columns."""
    table = pa.record_batch([record.raw, record.outcomes], names=["raw", "outcome"])
    with open_output(place, name) as stream:
        columns = Columns("raw", "outcome")
        writer = open_writer(stream, format_of(name) or "csv", columns, ADDED)
        writer.write(ArrowPiece(table, text=False), answers)
        writer.close()


def _list(as_json: bool) -> None:
    from calibrant.simulate import adversaries, forecasters

    found = {
        noun: {name: _first_line(registry.get(name)) for name in registry.names()}
        for noun, registry in (("adversaries", adversaries), ("forecasters", forecasters))
    }
    if as_json:
        screen.tell_json(found)
        return
    for noun, entries in found.items():
        print(f"{noun}:")
        for name, line in entries.items():
            print(f"  {name:20} {line}")


def _first_line(player: type) -> str:
    return (player.__doc__ or "").partition("\n")[0].replace("``", "`")
