"""Fast worlds: outcomes in runs, jumping base rates, raw forecasts that come and go, new models.

``python -m benchmarks.fast`` prints two tables: the Brier score of the mean forecast beside the
best outsider's, and C2 of the 500 draws after a swap of models, beside the earlier default.
``--panel DIR`` adds what the present default costs or saves on every stream of the quality panel,
``--swaps`` prints the second table alone, and ``--cost`` how much longer a round takes than it
did.  All kinds of streams were looked at when the experts
were chosen, with other random numbers; see docs/quality.md for the halves of the panel.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Job, Run, interleave
from benchmarks.quality import comparators, rivals, score
from benchmarks.quality.streams import Stream, bits, panel
from benchmarks.reference import game
from calibrant import Calibrant
from calibrant.transforms import ExpertMixture, HatMeans, Identity, OnlineBeta, OnlinePlatt

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
ROUNDS = 10_000
SEEDS = {"chosen on": 1, "held out": 3}
SWAPS = range(300, 308)
BLOCK = 500
DRAWS = 8
"""Seeds of the draws on the panel: on short streams one run tells little."""
WORSE = 0.002
"""By how much a stream of the panel may be worse than before."""
BEFORE = ExpertMixture(
    (
        Identity(),
        OnlineBeta(clip=1e-3),
        OnlinePlatt(gamma=0.3, rho=10.0, clip=1e-3, memory=500.0),
        HatMeans(cells=20),
        HatMeans(cells=20, memory=50.0),
        HatMeans(cells=1, scale="logit"),
        HatMeans(cells=1, scale="logit", memory=100.0),
    ),
    share=3e-4,
    start=(6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
)
"""The experts of earlier versions, none of which looks back or remembers less than 50 visits."""
STAGE: dict[str, Any] = {"method": "anchored", "grid": "endpoints", "resolution": 20}
"""The last stage of these versions."""


def sigmoid(x: Floats) -> Floats:
    """Return the probabilities of log-odds."""
    return 1.0 / (1.0 + np.exp(-x))


def weak(rng: np.random.Generator, outcomes: Truth) -> Floats:
    """Return raw forecasts that tell a little of the outcomes."""
    return sigmoid(0.7 * np.where(outcomes, 1.0, -1.0) + rng.normal(0.0, 1.2, len(outcomes)))


def none(rng: np.random.Generator, outcomes: Truth) -> Floats:
    """Return raw forecasts that tell nothing."""
    return rng.random(len(outcomes))


def runs(rng: np.random.Generator, rounds: int) -> Truth:
    """Return outcomes in runs of 5 to 50."""
    lengths = rng.integers(5, 51, rounds // 5 + 1)
    return np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)[:rounds]


def repeats(rng: np.random.Generator, rounds: int) -> Truth:
    """Return outcomes that repeat the last one with probability 0.9."""
    return np.cumsum(rng.random(rounds) >= 0.9) % 2 == 0


def every(rng: np.random.Generator, values: Floats, length: int, rounds: int) -> Floats:
    """Return values that change every so many rounds."""
    return np.repeat(values, length)[:rounds]


def streams(rounds: int, seed: int) -> Iterator[Stream]:
    """Yield the fast worlds."""
    rng = np.random.default_rng(seed)
    for what, make in (("runs of 5 to 50", runs), ("labels repeat with 0.9", repeats)):
        for told, raw in (("uninformed", none), ("weak", weak)):
            outcomes = make(rng, rounds)
            yield Stream(f"{what}, {told}", "fast", raw(rng, outcomes), bits(outcomes))
    rate = every(rng, rng.random(rounds // 30 + 1), 30, rounds)
    outcomes = rng.random(rounds) < rate
    yield Stream(
        "base rate jumps every 30, uninformed", "fast", none(rng, outcomes), bits(outcomes)
    )
    odds, shift = rng.normal(0.0, 1.5, rounds), rng.normal(0.0, 2.0, rounds // 30 + 1)
    outcomes = rng.random(rounds) < sigmoid(odds + every(rng, shift, 30, rounds))
    yield Stream("base rate jumps every 30, informed", "fast", sigmoid(odds), bits(outcomes))
    for length in (50, 500):
        yield halved(rng, rounds, length)


def halved(rng: np.random.Generator, rounds: int, length: int) -> Stream:
    """Make raw forecasts that are right in every other stretch, and shuffled in the others."""
    chance = np.clip(rng.beta(0.7, 0.7, rounds), 0.001, 0.999)
    outcomes = rng.random(rounds) < chance
    right = (np.arange(rounds) // length) % 2 == 0
    raw = np.where(right, chance, rng.permutation(chance))
    return Stream(f"informed half of the time, by {length}", "fast", raw, bits(outcomes))


Model = Callable[[Floats], Floats]
MODELS: dict[str, tuple[Model, Model]] = {
    "calibrated, then too sure and shifted": (lambda x: x, lambda x: 2.5 * x - 1.5),
    "shifted, then upside down": (lambda x: 2.0 * x + 1.0, lambda x: -x),
    "calibrated, then shifted": (lambda x: x, lambda x: x + 3.0),
    "too sure, then not sure enough": (lambda x: 3.0 * x, lambda x: x / 3.0),
    "too high, then too low": (lambda x: x + 2.0, lambda x: x - 2.0),
}
"""What two models make of the true log-odds."""


def swapped(before: Model, after: Model, rounds: int, seed: int) -> tuple[Stream, Floats]:
    """Make a stream whose model is swapped half-way, and the true chances."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.0, 1.5, rounds)
    outcomes = rng.random(rounds) < sigmoid(odds)
    first = np.arange(rounds) < rounds // 2
    raw = sigmoid(np.where(first, before(odds), after(odds)))
    return Stream("swap", "fast", raw, bits(outcomes)), sigmoid(odds)


def model(experts: ExpertMixture | None, seed: int) -> Calibrant:
    """Return the default, or with experts of earlier versions the default of these."""
    return Calibrant(experts, seed=seed, **({} if experts is None else STAGE)).compile()


def played(experts: ExpertMixture | None, stream: Stream, seed: int = 0) -> tuple[Floats, Floats]:
    """Return mean forecasts and draws of a stream."""
    timing = {"time": stream.issued, "available": stream.available} if stream.delayed else {}
    run = model(experts, seed).replay(stream.raw, stream.outcomes, **timing)
    return run.mean, run.forecast


def brier(experts: ExpertMixture | None, stream: Stream, seeds: int = 1) -> float:
    """Return the Brier score of the mean forecast, over so many seeds of the draws."""
    runs = (played(experts, stream, seed)[0] for seed in range(seeds))
    return float(np.mean([score.brier(mean, stream.outcomes) for mean in runs]))


def outsiders(stream: Stream) -> dict[str, float]:
    """Return the Brier scores of the frozen outsiders, and of some made for fast worlds."""
    found = {
        rival.name: comparators.scores(rival, stream)["brier"]
        for rival in comparators.competitors()
        if not rival.ours
    }
    for step in (0.1, 0.001):
        told = np.empty(len(stream))
        rivals.river_sgd(stream.raw, stream.outcomes, *stream.arrivals, told, step, 0.001)
        found[f"River LogisticRegression, SGD({step})"] = score.brier(told, stream.outcomes)
    for memory in (5, 10, 30):
        told = recent(stream.outcomes, memory)
        found[f"running mean of outcomes, {memory}"] = score.brier(told, stream.outcomes)
    found["chain of the last outcome"] = score.brier(markov(stream.outcomes), stream.outcomes)
    return found


def recent(outcomes: NDArray[np.uint8], memory: int) -> Floats:
    """Return a running mean of the outcomes before each round."""
    told, mean = np.empty(len(outcomes)), 0.5
    for t, y in enumerate(outcomes.tolist()):
        told[t] = mean
        mean += (y - mean) / memory
    return told


def markov(outcomes: NDArray[np.uint8]) -> Floats:
    """Return how often a one followed what came last, from one of each on."""
    told, last, counts = np.empty(len(outcomes)), 0, [[1, 1], [1, 1]]
    for t, y in enumerate(outcomes.tolist()):
        told[t] = counts[last][1] / sum(counts[last])
        counts[last][y] += 1
        last = y
    return told


def brier_rows(rounds: int) -> Iterator[str]:
    """Yield the first table."""
    yield "| stream | | raw | before | now | best outsider | bar | |"
    yield "|---|---|---|---|---|---|---|---|"
    for half, seed in SEEDS.items():
        for stream in streams(rounds, seed):
            name, best = min(outsiders(stream).items(), key=lambda item: item[1])
            bar, now = 1.01 * best + 2.0 / rounds, brier(None, stream)
            raw, before = score.brier(stream.raw, stream.outcomes), brier(BEFORE, stream)
            told = f"{raw:.4f} | {before:.4f} | {now:.4f} | {best:.4f}, {name} | {bar:.4f}"
            yield f"| {stream.name} | {half} | {told} | {verdict(now <= bar)} |"


def verdict(met: bool) -> str:
    """Return what the last column says."""
    return "met" if met else "missed"


def swap_rows(rounds: int) -> Iterator[str]:
    """Yield the second table."""
    yield "| swap | before | now | ratio | true, before | now | excess, ratio | at most 0.5 |"
    yield "|---|---|---|---|---|---|---|---|"
    totals = np.zeros(4)
    for name, models in MODELS.items():
        c2 = np.mean([after_swap(*models, rounds, seed) for seed in SWAPS], axis=0)
        totals += c2 / len(MODELS)
        yield swap_row(name, *c2)
    yield swap_row("mean", *totals)


def swap_row(name: str, before: float, now: float, least: float, finer: float) -> str:
    """Return a line of the second table; the excess is what true chances do not explain."""
    ratio, excess = now / before, (now - finer) / (before - least)
    told = f"{before:.4f} | {now:.4f} | {ratio:.2f} | {least:.4f} | {finer:.4f} | {excess:.2f}"
    return f"| {name} | {told} | {verdict(ratio <= 0.5)} |"


def after_swap(first: Model, then: Model, rounds: int, seed: int) -> tuple[float, ...]:
    """Return C2 after the swap, before and now, and of true chances on the grids of both."""
    stream, chance = swapped(first, then, rounds, seed)
    block = slice(rounds // 2, rounds // 2 + BLOCK)
    coins = np.random.default_rng(seed + 1).random(BLOCK)
    drawn = [played(experts, stream, seed)[1][block] for experts in (BEFORE, None)]
    drawn += [rounded(chance[block], np.unique(draw), coins) for draw in drawn]
    return tuple(score.c2(draw, stream.outcomes[block]) for draw in drawn)


def rounded(chances: Floats, values: Floats, coins: Floats) -> Floats:
    """Return chances rounded at random to the values around them, right on average."""
    inside = np.clip(chances, values[0], values[-1])
    above = np.clip(np.searchsorted(values, inside), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    return np.where(coins < (inside - low) / (high - low), high, low)


def panel_rows(data: pathlib.Path) -> Iterator[str]:
    """Yield what the experts save on the panel, worst first."""
    ratios = [
        (brier(None, stream, DRAWS) / brier(BEFORE, stream, DRAWS) - 1.0, stream.name, k % 2)
        for k, stream in enumerate(panel(data)[0])
    ]
    yield "| half of the panel | streams | mean | worst | best |"
    yield "|---|---|---|---|---|"
    for half, name in enumerate(SEEDS):
        lines = sorted(line for line in ratios if line[2] == half)
        mean = float(np.mean([line[0] for line in lines]))
        ends = (f"{100.0 * line[0]:+.2f} %, {line[1]}" for line in (lines[-1], lines[0]))
        yield f"| {name} | {len(lines)} | {100.0 * mean:+.2f} % | {' | '.join(ends)} |"
    for ratio, name, _ in sorted(line for line in ratios if line[0] > WORSE)[::-1]:
        yield f"| {name} | | {100.0 * ratio:+.2f} % | | |"


def cost_rows(rounds: int) -> Iterator[str]:
    """Yield what a round costs with both sets of experts, played in turns, and the ratio."""
    raw, outcomes = game(rounds)

    def job(experts: ExpertMixture | None) -> Run:
        made = model(experts, 1)
        return lambda: made.replay(raw, outcomes)

    jobs: dict[str, Job] = {"before": partial(job, BEFORE), "now": partial(job, None)}
    times = interleave(jobs, rounds=rounds, repeats=15)
    costs = " | ".join(f"{times.nanoseconds(name):.0f}" for name in jobs)
    yield "| ns a round, before | now | ratio |"
    yield "|---|---|---|"
    yield f"| {costs} | {times.ratio('now', 'before'):.2f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fast", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--panel", type=pathlib.Path, help="directory of real data")
    parser.add_argument("--swaps", action="store_true", help="the block after a swap alone")
    parser.add_argument("--cost", action="store_true", help="what a round costs")
    given = parser.parse_args()
    tables = [panel_rows(given.panel)] if given.panel is not None else []
    tables += [brier_rows(given.rounds), swap_rows(given.rounds)]
    if given.swaps:
        tables = [swap_rows(given.rounds)]
    if given.cost:
        tables = [cost_rows(given.rounds)]
    for rows in tables:
        for row in rows:
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
