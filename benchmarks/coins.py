"""What coins from SipHash cost, beside those of earlier versions: alone, and as part of a round."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.bars import Row, at_most
from benchmarks.measure import Job, Run, interleave
from benchmarks.reference import game
from calibrant import Calibrant, Recalibrator
from calibrant.core.codec import Document
from calibrant.kernels.compile import available
from calibrant.recalibrate.secret import OLD, SAFE, coin_at, coins_from

__all__ = ["run"]

SECRET = bytes(range(16))
STEPS = 20_000
BATCH_BAR, DEFAULT_BAR, STEP_BAR = 1.5, 1.05, 1.1


def run(*, rounds: int = 1_000_000, repeats: int = 15) -> list[Row]:
    """Return a row for coins alone, and one for each way to play with them."""
    few = min(rounds, STEPS)
    rows = [
        compared("coins in bulk, plain", partial(in_bulk, rounds), rounds, repeats, None),
        compared("coins one by one, plain", partial(singly, few // 10), few // 10, repeats, None),
    ]
    if available():
        batch = partial(replay, Recalibrator(), *game(rounds))
        rows.append(compared("replay foster_hart", batch, rounds, repeats, BATCH_BAR))
        whole = partial(replay, Calibrant(), *game(rounds))
        rows.append(compared("replay the default", whole, rounds, repeats, DEFAULT_BAR))
    raw, outcomes = (array.tolist() for array in game(few))
    for way, fast in (("fast", True), ("base", False)):
        if available() or not fast:
            job = partial(steps, fast, raw, outcomes)
            rows.append(compared(f"{way}: forecast + observe", job, few, repeats, STEP_BAR))
    return rows


def compared(what: str, job: Any, rounds: int, repeats: int, bar: float | None) -> Row:
    """Measure a job with both kinds of coins."""
    jobs: dict[str, Job] = {how: partial(job, how) for how in (SAFE, OLD)}
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    costs = times.nanoseconds(SAFE), times.nanoseconds(OLD)
    row = at_most(f"{what}, to earlier coins", *costs, times.ratio(SAFE, OLD), bar or np.inf)
    return row if bar is not None else row.without_bar()


def in_bulk(rounds: int, how: str) -> Run:
    """Measure coins that NumPy makes 2,048 at a time."""
    starts = range(0, rounds, 2048)
    return lambda: [coins_from(SECRET, how, 0, start, 2048) for start in starts]


def singly(rounds: int, how: str) -> Run:
    """Measure coins that Python makes one at a time."""
    return lambda: [coin_at(SECRET, how, 0, clock) for clock in range(rounds)]


def made(model: Any, how: str) -> Any:
    """Return a fresh model that throws coins so."""
    stored = Document.read(model.to_bytes())
    settings = stored.settings | {"coins": how}
    told = Document(stored.kind, settings, stored.arrays, stored.version)
    return type(model).from_bytes(told.to_bytes())


def replay(model: Any, raw: Any, outcomes: Any, how: str) -> Run:
    """Measure a batch."""
    fresh = made(model, how)
    return lambda: fresh.replay(raw, outcomes)


def steps(fast: bool, raw: list[float], outcomes: list[int], how: str) -> Run:
    """Measure rounds one by one, compiled or not."""
    model = made(Recalibrator(), how)
    if fast:
        model.compile()

    def play() -> None:
        forecast, observe = model.forecast, model.observe
        for p, y in zip(raw, outcomes, strict=True):
            observe(forecast(p), y)

    return play
