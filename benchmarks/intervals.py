"""Intervals on series whose errors change: interval score, coverage, and the worst block.

``python -m benchmarks.intervals`` prints tables; ``--rounds`` and ``--seeds`` say how much is
played, ``--data`` where real series are (by default what came along).

The default was chosen by one half of the series, and is judged by the other and by the real ones.
*ratio* is the interval score over that of the best method in hindsight, *error* how far coverage
is from 0.9, *block* the same in the worst block of 250 rounds.  The first 100 rounds are not
scored.  An end at infinity is taken for twice the largest error so far, or no score were finite.

``--choose`` plays the default alone with other steps, and with ends that move otherwise with the
level, on series of both halves with other seeds: on some to choose by, on others to confirm.
``--late`` plays it around normal errors that come late, with two steps.  ``--store`` keeps what
is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.interval_series import CHOICE, JUDGED, Pair, Series, real
from benchmarks.store import storing
from calibrant.kernels import blend
from calibrant.regression import ConformalInterval, interval_method, interval_methods, metrics

__all__ = ["Result", "measured", "played", "table"]

Reals = NDArray[np.float64]
COVERAGE = 0.9
BLOCK = 250
WARM = 100
BARS = 1.03, 0.005, 0.03
"""The most for the mean ratio, the mean error of coverage, and the error in the worst block."""
FRESH = {"to choose": 2_000, "to confirm": 3_000}
"""First seeds of series that no table of methods has."""
SHAPES = (
    (0.2, 1.0, 0.0),
    (0.22, 1.0, 0.0),
    (0.25, 1.0, 0.0),
    (0.2, 1.0, 2.0),
    (0.2, 0.85, 2.0),
    (0.2, 0.7, 2.0),
    (0.2, 0.7, 3.0),
)
"""Steps, and how far ends move with the level: see ``calibrant.kernels.blend.BENT``."""


class Result(NamedTuple):
    """What a method made of a series."""

    score: float
    error: float
    block: float


def finite_ends(low: Reals, high: Reals, errors: Reals) -> tuple[Reals, Reals]:
    """Return ends around 0 without infinite ones, and in order."""
    largest = np.maximum.accumulate(np.abs(errors))
    most = 2.0 * np.concatenate([largest[:1], largest[:-1]])
    low, high = np.clip(low, -most, most), np.clip(high, -most, most)
    middle = (low + high) / 2.0
    return np.minimum(low, middle), np.maximum(high, middle)


def measured(low: Reals, high: Reals, errors: Reals, covered: NDArray[np.bool_]) -> Result:
    """Return the score, and how far coverage was off."""
    ends = (end[WARM:] for end in finite_ends(low, high, errors))
    score = metrics.interval_score(*ends, errors[WARM:], COVERAGE)
    blocks = metrics.windowed_coverage(covered, window=BLOCK)
    off = abs(float(covered.mean()) - COVERAGE)
    return Result(score, off, float(np.abs(blocks - COVERAGE).max()))


def played(method: str, series: Pair, **options: float) -> Result:
    """Play a series, and measure it."""
    centres, outcomes = series
    run = ConformalInterval(method, coverage=COVERAGE, seed=1, **options).replay(centres, outcomes)
    return measured(run.low - centres, run.high - centres, outcomes - centres, run.covered)


def made(half: dict[str, Series], rounds: int, seeds: range) -> dict[str, Pair]:
    """Return the series of a half."""
    return {
        f"{name} {seed}": make(np.random.default_rng([seed, place]), rounds)
        for place, (name, make) in enumerate(half.items())
        for seed in seeds
    }


def table(title: str, given: dict[str, Pair]) -> Generator[str, None, list[str]]:
    """Yield the ratios of each series; return a line of means for each method."""
    names = interval_methods.names()
    yield f"\n{title}\n| series | " + " | ".join(names) + " |"
    yield "|---" * (1 + len(names)) + "|"
    ratios, rest = [], []
    for name, series in given.items():
        results = [played(method, series) for method in names]
        scores = np.array([result.score for result in results])
        ratios.append(scores / scores.min())
        rest.append([result[1:] for result in results])
        yield f"| {name} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios[-1]) + " |"
    lines = []
    for k, method in enumerate(names):
        column, (error, block) = np.array(ratios)[:, k], np.array(rest)[:, k].T
        found = column.mean(), error.mean(), block.max()
        kept = all(one <= bar + 1e-12 for one, bar in zip(found, BARS, strict=True))
        told = [column.mean(), column.max(), error.mean(), block.mean(), block.max()]
        listed = " | ".join(f"{number:.4f}" for number in told)
        lines.append(f"| {title} | `{method}` | {listed} | {'kept' if kept else 'missed'} |")
    return lines


def tables(halves: dict[str, dict[str, Pair]]) -> Iterator[str]:
    """Yield the ratios of each half, and the means of all methods on all halves."""
    lines = []
    for title, given in halves.items():
        lines += yield from table(title, given)
    head = "ratio, mean | ratio, worst | error | block, mean | block, worst | bars"
    yield f"\n| series | method | {head} |"
    yield "|---" * 8 + "|"
    yield from lines


def choose(halves: dict[str, dict[str, Pair]]) -> Iterator[str]:
    """Yield what steps and shapes do to the default's score, coverage and worst block."""
    head = "score, over the first | error | block, mean | block, worst | above 0.03 | where"
    yield f"| series | step | slack | bend | {head} |"
    yield "|---" * 10 + "|"
    for title, given in halves.items():
        usual = None
        for step, slack, bend in SHAPES:
            with patch.object(blend, "BENT", (slack, bend)):
                found = [played("blend", series, step=step) for series in given.values()]
            scores, errors, blocks = np.array(found).T
            usual = scores if usual is None else usual
            told = (scores / usual).mean(), errors.mean(), blocks.mean(), blocks.max()
            listed = " | ".join(f"{number:.4f}" for number in told)
            over = int((blocks > BARS[2] + 1e-12).sum())
            where = list(given)[int(blocks.argmax())]
            yield f"| {title} | {step} | {slack} | {bend} | {listed} | {over} | {where} |"


def late(rounds: int) -> Iterator[str]:
    """Yield the table of errors that come late: interval score and coverage, by step."""
    rng, now = np.random.default_rng(5), np.arange(rounds) * 1.0
    plain = rng.normal(size=rounds)
    shared = {n: plain[np.arange(rounds) // n] for n in (10, 100)}
    streams = {
        "at once": (plain, now),
        "all late by 100": (plain, now + 100.0),
        "large ones late by 200": (plain, now + np.where(np.abs(plain) > 1.0, 200.0, 0.0)),
        "high ones late by 200": (plain, now + np.where(plain > 0.0, 200.0, 0.0)),
        **{f"crowds of {n}": (y, (now // n + 1.0) * n - 0.5) for n, y in shared.items()},
    }
    yield "| errors | best fixed interval | step 0.2 | 0.02 | covered, 0.2 | covered, 0.02 |"
    yield "|---|---|---|---|---|---|"
    for name, (y, known) in streams.items():
        scores, inside = [], []
        for step in (0.2, 0.02):
            band = ConformalInterval("blend", coverage=COVERAGE, seed=1, step=step)
            run = band.replay(np.zeros(rounds), y, time=now, available=known)
            low, high = (np.clip(end, -8.0, 8.0)[WARM:] for end in (run.low, run.high))
            scores.append(interval_score(low, high, y[WARM:]))
            inside.append(float(((low <= y[WARM:]) & (y[WARM:] <= high)).mean()))
        ends = np.full(rounds - WARM, 1.645)
        cells = [interval_score(-ends, ends, y[WARM:]), *scores]
        told = [f"{x:.2f}" for x in cells] + [f"{x:.3f}" for x in inside]
        yield f"| {name} | " + " | ".join(told) + " |"


def interval_score(low: Reals, high: Reals, y: Reals) -> float:
    """Return the mean width, and 20 times how far outcomes lay outside."""
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float((high - low + 2.0 / (1.0 - COVERAGE) * outside).mean())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--fresh", type=int, default=100, help="seeds of --choose")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--store", action="store_true")
    told = parser.parse_args()
    name = "intervals" + ("_late" if told.late else "_choose" if told.choose else "")
    words = ["benchmarks.intervals", *(word for word in sys.argv[1:] if word != "--store")]
    # Thousands of short series: to compile pays.
    with storing(name, wanted=told.store, words=words), patch.object(interval_method, "SHORT", 0):
        for row in rows(told):
            print(row, flush=True)


def rows(told: argparse.Namespace) -> Iterator[str]:
    """Yield what is asked for."""
    if told.late:
        yield from late(told.rounds)
        return
    halves = {
        "choice": made(CHOICE, told.rounds, range(told.seeds)),
        "judged": made(JUDGED, told.rounds, range(1_000, 1_000 + told.seeds)),
        "real": real(told.data),
    }
    if told.choose:
        both = CHOICE | JUDGED
        fresh = {
            title: made(both, told.rounds, range(first, first + told.fresh))
            for title, first in FRESH.items()
        }
        yield from choose(fresh | halves)
        return
    yield f"{told.rounds} rounds, coverage {COVERAGE}, bars {BARS}"
    yield from tables(halves)


if __name__ == "__main__":
    main()
