"""Late outcomes: Brier score and C2 where the delay depends on the outcome, and in crowds.

``python -m benchmarks.late`` prints a table; ``--rounds`` and ``--seeds`` say how much is played,
``--only crowds`` plays the streams whose name has this word, and ``--before`` adds what it is if
experts learn as if no outcomes were alike.  ``--unlike`` plays streams of other kinds instead, on
which nothing was chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import score as scores
from benchmarks.store import add_store, storing
from calibrant import Calibrant
from calibrant.transforms import ExpertMixture

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Lags = Callable[[np.random.Generator, Bits], Floats]
Make = Callable[[int, int], "Iterator[Late]"]


@dataclass(frozen=True)
class Late:
    """A stream with its delays: outcome t comes before the first forecast from ``known[t]`` on."""

    name: str
    raw: Floats
    outcomes: Bits
    known: Floats


def by_class(zero: float, one: float) -> Lags:
    """Return delays of so many rounds for each of the two outcomes."""
    return lambda rng, outcomes: np.where(outcomes == 1, one, zero)


def heavy(zero: float, one: float) -> Lags:
    """Return delays with a heavy tail, of these scales."""

    def lags(rng: np.random.Generator, outcomes: Bits) -> Floats:
        scale = np.where(outcomes == 1, one, zero)
        return np.minimum(np.floor(scale * (rng.random(len(outcomes)) ** (-1 / 1.5) - 1.0)), 5000.0)

    return lags


def uniform(most: int) -> Lags:
    """Return delays up to so many rounds that do not depend on the outcome."""
    return lambda rng, outcomes: rng.integers(0, most + 1, len(outcomes)).astype(np.float64)


BALANCED = 2.0, 2.0
RARE = 0.4, 19.6
CASES: dict[str, tuple[Lags, tuple[float, float], float]] = {
    **{f"ones late by {n}": (by_class(0, n), BALANCED, 1.0) for n in (2, 10, 20, 200)},
    **{f"zeros late by {n}": (by_class(n, 0), BALANCED, 1.0) for n in (2, 10, 20, 200)},
    "rare ones late by 300": (by_class(0, 300), RARE, 1.0),
    "heavy tail, ones later": (heavy(1, 20), BALANCED, 1.0),
    "heavy tail, zeros later": (heavy(20, 1), BALANCED, 1.0),
    **{f"all late by {n}": (by_class(n, n), BALANCED, 1.0) for n in (10, 100)},
    "late by up to 20": (uniform(20), BALANCED, 1.0),
    **{f"all late by {n}, tempered": (by_class(n, n), BALANCED, 0.4) for n in (10, 100)},
    "late by up to 20, tempered": (uniform(20), BALANCED, 0.4),
    "ones late by 20, tempered": (by_class(0, 20), BALANCED, 0.4),
    "heavy tail, ones later, tempered": (heavy(1, 20), BALANCED, 0.4),
    "half never, tempered": (
        lambda rng, y: np.where(rng.random(len(y)) < 0.5, np.inf, 0.0),
        BALANCED,
        0.4,
    ),
    "none late, tempered": (by_class(0, 0), BALANCED, 0.4),
}
"""Delays, shape of the raw forecasts, and the slope of the true log-odds on theirs."""
CROWDS = 10, 100, 1_000


def streams(rounds: int, seed: int) -> Iterator[Late]:
    """Yield all streams."""
    for number, (name, (lags, shape, slope)) in enumerate(CASES.items()):
        rng = np.random.default_rng([seed, 0, number])
        raw = np.clip(rng.beta(*shape, rounds), 0.001, 0.999)
        odds = (raw / (1.0 - raw)) ** slope
        outcomes = (rng.random(rounds) < odds / (1.0 + odds)).astype(np.uint8)
        yield Late(name, raw, outcomes, np.arange(rounds) + 1.0 + lags(rng, outcomes))
    yield shifted(rounds, 100, seed)
    yield runs(rounds, 100, seed)
    for size in CROWDS:
        yield crowd(rounds, size, seed)
    for size in CROWDS:
        yield crowd(rounds, size, seed, slope=0.5)


def shifted(rounds: int, lag: int, seed: int) -> Late:
    """Make forecasts whose log-odds are all too high by 1, and outcomes that are all late."""
    rng = np.random.default_rng([seed, lag])
    chance = rng.beta(*BALANCED, rounds)
    outcomes = (rng.random(rounds) < chance).astype(np.uint8)
    odds = np.exp(1.0) * chance / (1.0 - chance)
    raw = np.clip(odds / (1.0 + odds), 0.001, 0.999)
    known = np.arange(rounds, dtype=np.float64) + 1.0 + lag
    return Late(f"all late by {lag}, shifted", raw, outcomes, known)


def runs(rounds: int, lag: int, seed: int) -> Late:
    """Make runs of 20 equal outcomes, whose chance was told before, and which are all late."""
    rng = np.random.default_rng([seed, lag, 20])
    chance = rng.beta(*BALANCED, rounds // 20 + 1)
    outcomes = np.repeat(rng.random(len(chance)) < chance, 20)[:rounds].astype(np.uint8)
    known = np.arange(rounds, dtype=np.float64) + 1.0 + lag
    return Late(f"runs of 20, late by {lag}", np.repeat(chance, 20)[:rounds], outcomes, known)


def crowd(rounds: int, size: int, seed: int, slope: float = 1.0) -> Late:
    """Make games whose rows wait for one result: the chance wanders while the game is on.

    The true log-odds are those of the raw forecasts, which are right with a slope of 1, times it.
    """
    rng = np.random.default_rng([seed, size])
    games = rounds // size
    # A random walk ends on one side of 0: the chance of that, given where it is, is a martingale.
    steps = rng.normal(size=(games, 2 * size)) / np.sqrt(2 * size)
    start = rng.normal(0.0, 0.5, (games, 1))
    walk = start + np.cumsum(steps, axis=1)
    left = 1.0 - np.arange(size) / (2 * size)
    before = np.hstack([start, walk[:, : size - 1]])
    chance = np.clip(_normal(before / np.sqrt(left)), 0.001, 0.999).ravel()
    odds = (chance / (1.0 - chance)) ** (1.0 / slope)
    raw = chance if slope == 1.0 else np.clip(odds / (1.0 + odds), 0.001, 0.999)
    outcomes = np.repeat(walk[:, -1] > 0.0, size).astype(np.uint8)
    ends = np.repeat(np.arange(1, games + 1) * float(size), size)
    told = "" if slope == 1.0 else ", tempered"
    return Late(f"crowds of {size}{told}", raw, outcomes, ends)


# ------------------------------------------------------------------ streams that chose nothing


def unlike(rounds: int, seed: int) -> Iterator[Late]:
    """Yield streams of kinds that were not there when the weights were chosen."""
    for told, slope in (("", 1.0), (", tempered", 0.4)):
        for number, make in enumerate((hidden, by_both, weekly, timed_out, uneven, beside, steady)):
            rng = np.random.default_rng([seed, 1, number])
            name, raw, outcomes, known = make(rng, rounds, slope)
            yield Late(name + told, raw, outcomes.astype(np.uint8), known)


Made = tuple[str, Floats, NDArray[np.bool_], Floats]


def happen(rng: np.random.Generator, raw: Floats, slope: float) -> NDArray[np.bool_]:
    """Return outcomes whose log-odds are those of raw forecasts times a slope."""
    odds = (raw / (1.0 - raw)) ** slope
    return np.asarray(rng.random(len(raw)) < odds / (1.0 + odds))


def hidden(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make lags by a third variable that the outcome depends on, and the raw forecast not."""
    raw, third = rng.beta(*BALANCED, rounds), rng.random(rounds)
    mixed = np.clip(raw + (third - 0.5) * np.minimum(raw, 1.0 - raw), 0.001, 0.999)
    outcomes = happen(rng, mixed, slope)
    lags = np.where(third > 0.75, rng.integers(50, 400, rounds), rng.integers(0, 5, rounds))
    return "lag by a hidden cause", raw, outcomes, np.arange(rounds) + 1.0 + lags


def by_both(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make lags by raw forecast and outcome together: sure hits are the latest."""
    raw = rng.beta(*BALANCED, rounds)
    outcomes = happen(rng, raw, slope)
    lags = np.floor(np.where(outcomes, 300.0 * raw**2, 5.0 * rng.random(rounds)))
    return "lag by forecast and outcome", raw, outcomes, np.arange(rounds) + 1.0 + lags


def weekly(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make outcomes that come in files of 700, those that are one a file later."""
    raw, now = rng.beta(*BALANCED, rounds), np.arange(rounds)
    outcomes = happen(rng, raw, slope)
    known = (now // 700 + 1.0) * 700.0 + 700.0 * outcomes
    return "files of 700, ones in the next", raw, outcomes, known


def timed_out(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make rare ones that are reported when they happen, and zeros once 200 rounds are over."""
    raw = np.clip(rng.beta(0.4, 8.0, rounds), 0.001, 0.999)
    outcomes = happen(rng, raw, slope)
    soon = np.floor(np.minimum(rng.exponential(40.0, rounds), 200.0))
    known = np.arange(rounds) + 1.0 + np.where(outcomes, soon, 200.0)
    return "zeros by a time-out of 200", raw, outcomes, known


def uneven(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make crowds of 1 to 200, few of which have most of the forecasts."""
    sizes = np.minimum(np.floor(3.0 * rng.pareto(1.0, rounds) + 1.0), 200.0).astype(np.int64)
    crowd = np.repeat(np.arange(rounds), sizes)[:rounds]
    raw = rng.beta(*BALANCED, rounds)
    outcomes = happen(rng, raw, slope)
    return "crowds of 1 to 200", raw[crowd], outcomes[crowd], np.cumsum(sizes)[crowd] * 1.0


def beside(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make crowds of about 100 between which every other forecast has its own prompt outcome."""
    now, within = np.arange(rounds), rng.random(rounds) < 0.5
    row = np.where(within, now // 200 * 200, now)
    raw = rng.beta(*BALANCED, rounds)
    outcomes = happen(rng, raw, slope)
    known = np.where(within, (now // 200 + 1.0) * 200.0, now + 1.0)
    return "crowds of 100 among prompt ones", raw[row], outcomes[row], known


def steady(rng: np.random.Generator, rounds: int, slope: float) -> Made:
    """Make crowds of 170 whose forecasts are all the same."""
    raw = rng.beta(*BALANCED, rounds // 170 + 1)
    outcomes = happen(rng, raw, slope)
    crowd = np.arange(rounds) // 170
    return "crowds of 170, one forecast", raw[crowd], outcomes[crowd], (crowd + 1.0) * 170.0


def _normal(x: Floats) -> Floats:
    grid = np.linspace(-8.0, 8.0, 16_001)
    weight = np.cumsum(np.exp(-grid * grid / 2.0))
    return np.interp(x, grid, weight / weight[-1])


def score(stream: Late, seed: int, before: bool = False) -> tuple[float, float, float, float]:
    """Return the Brier scores of raw and mean forecasts, and C2 of raw ones in bins and of draws.

    C2 of the draws is over their exact values: their grid becomes finer.
    """
    model, rounds = Calibrant(seed=seed), len(stream.raw)
    if before and isinstance(model.spec.transform, ExpertMixture):
        model = Calibrant(replace(model.spec.transform, alike=False), seed=seed)
    time = np.arange(rounds, dtype=np.float64)
    run = model.compile().replay(stream.raw, stream.outcomes, time=time, available=stream.known)
    raw, mean = (scores.brier(p, stream.outcomes) for p in (stream.raw, run.mean))
    binned = scores.c2_in_bins(stream.raw, stream.outcomes)
    return raw, mean, binned, scores.c2(run.forecast, stream.outcomes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="play streams with this in their name")
    parser.add_argument("--before", action="store_true", help="and as if no outcomes were alike")
    parser.add_argument("--unlike", action="store_true", help="play streams that chose nothing")
    add_store(parser)
    given = parser.parse_args()
    with storing("late", part="unlike" if given.unlike else "", wanted=given.store):
        make = unlike if given.unlike else streams
        for row in rows(make, given.rounds, given.seeds, given.only, before=given.before):
            print(row, flush=True)


def rows(make: Make, rounds: int, seeds: int, only: str, *, before: bool) -> Iterator[str]:
    """Yield the table, with columns of how it was before if these are wanted."""
    also, last = (" | before", "|---|---") if before else ("", "")
    heads = f"| stream | raw Brier | mean's, less raw | most{also} | raw C2, binned"
    yield f"{heads} | C2 of the draw{also} |"
    yield f"|---|---|---|---|---|---{last}|"
    played = [list(make(rounds, seed)) for seed in range(seeds)]
    for same in zip(*played, strict=True):
        if only in same[0].name:
            yield row(same[0].name, *(scored(same, old) for old in (False, True)[: 1 + before]))


def scored(same: Iterable[Late], before: bool) -> Floats:
    """Return the scores of the same stream with all seeds."""
    return np.array([score(stream, seed, before) for seed, stream in enumerate(same)])


def row(name: str, found: Floats, *old: Floats) -> str:
    """Return a line of the table: how it is, and how it was if that is known."""
    raw, mean, binned, c2 = found.mean(axis=0).tolist()
    most = float((found[:, 1] - found[:, 0]).max())
    was = [(f" | {m - r:+.5f}", f" | {c:.5f}") for r, m, _, c in (o.mean(axis=0) for o in old)]
    brier, draw = was[0] if was else ("", "")
    told = f"{raw:.4f} | {mean - raw:+.5f} | {most:+.4f}{brier} | {binned:.5f} | {c2:.5f}{draw}"
    return f"| {name} | {told} |"


if __name__ == "__main__":
    main()
