"""Fast worlds: outcomes in runs, jumping base rates, raw forecasts that come and go, new models.

``python -m benchmarks.fast`` prints two tables: the Brier score of the mean forecast beside the
best outsider's, and C2 of the 500 draws after a swap of models, beside the earlier default.
``--panel [DIR]`` prints instead what the present default costs or saves on every stream of the
quality panel, ``--swaps`` the second table alone, ``--told`` what C2 would be if the moment of the
swap were known, ``--later`` what it is where cells split later, ``--noticed`` what it is if draws
come from the first grid from some time after the swap on, the last two also for the panel if that
is named, and ``--cost`` how much longer a round takes than it did.  All kinds of streams were
looked at when the experts were chosen, with other random numbers; see docs/quality.md for the
halves of the panel.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import rare
from benchmarks.measure import Job, Run, interleave
from benchmarks.quality import comparators, rivals, score
from benchmarks.quality.streams import Stream, bits, panel
from benchmarks.reference import game
from benchmarks.store import add_store, storing
from calibrant import Calibrant
from calibrant.calibrators.refining import Refining
from calibrant.core.grid import Grid
from calibrant.kernels import swaps
from calibrant.kernels.layout import SCRATCH
from calibrant.kernels.transforms.mixture import WATCH
from calibrant.transforms import ExpertMixture, HatMeans, Identity, OnlineBeta, OnlinePlatt

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
ROUNDS = 10_000
SEEDS = {"chosen on": 1, "held out": 3}
SWAPS = range(300, 308)
BLOCK = 500
DRAWS, MANY, SHORT = 8, 128, 5_000
"""Seeds of the draws on the panel, and where streams are no longer than that: one run tells little.
"""
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
UNWATCHED: ExpertMixture = replace(Calibrant(seed=0).transform, swaps=False)  # type: ignore[type-var]
"""The experts of the default, which do not watch for swaps."""
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


DELAYS = (0, 20, 40, 60)
"""So many rounds after a swap it is known."""
STEPS = (15, 30, 60)


def told_rows(rounds: int) -> Iterator[str]:
    """Yield C2 after a swap that is known, by when it is known and by the grid from then on."""
    yield f"| known after | {' | '.join(f'{steps} steps' for steps in STEPS)} |"
    yield f"|---|{'---|' * len(STEPS)}"
    cases = {f"{delay} rounds": (delay, newton) for delay in DELAYS}
    cases |= {"0 rounds, refitted in each": (0, refitted), "true chances": (0, None)}
    for name, case in cases.items():
        runs = (after_told(*m, rounds, seed, *case) for m in MODELS.values() for seed in SWAPS)
        found = np.mean(list(runs), axis=0)
        yield f"| {name} | {' | '.join(f'{c2:.4f}' for c2 in found)} |"


Scaling = Callable[[Floats, Floats], Floats]


def after_told(
    first: Model, then: Model, rounds: int, seed: int, delay: int, scaling: Scaling | None
) -> list[float]:
    """Return C2 of the block on each grid: as if nothing had changed, then scaled anew.

    The scaling begins at the swap; its forecasts are drawn from when that is known on, and before
    them the old model's on the finest grid.
    """
    stream, chance = swapped(first, then, rounds, seed)
    block = slice(rounds // 2, rounds // 2 + BLOCK)
    outcomes, chances = stream.outcomes[block], chance[block]
    odds = then(np.log(chances / (1.0 - chances)))
    new = chances if scaling is None else scaling(odds, outcomes.astype(np.float64))
    slope = first(np.ones(1))[0] - first(np.zeros(1))[0]
    old = sigmoid((odds - first(np.zeros(1))[0]) / slope)
    coins = np.random.default_rng(seed + 1).random(BLOCK)
    grids = [Grid("graded", steps).values for steps in STEPS]
    early, late = rounded(old, grids[-1], coins), [rounded(new, grid, coins) for grid in grids]
    known = np.arange(BLOCK) >= delay
    return [score.c2(np.where(known, drawn, early), outcomes) for drawn in late]


def newton(odds: Floats, outcomes: Floats) -> Floats:
    """Return the forecasts of a Platt scaling by Newton steps, as the default has, begun anew."""
    online = OnlinePlatt(gamma=0.3, rho=3.0, clip=1e-3).online()
    told = np.empty(len(odds))
    for t, (raw, y) in enumerate(zip(sigmoid(odds).tolist(), outcomes.tolist(), strict=True)):
        told[t] = online.predict_one(raw)
        online.learn_one(raw, int(y))
    return told


def refitted(odds: Floats, outcomes: Floats) -> Floats:
    """Return the forecasts of a Platt scaling that is fitted anew to all rounds in each.

    Slope and intercept are likeliest under normal priors around 1 and 0, of spreads 1 and 2.
    """
    x = np.column_stack([odds, np.ones(len(odds))])
    start, precision = np.array([1.0, 0.0]), np.diag([1.0, 0.25])
    told, line = np.empty(len(odds)), start
    for t in range(len(odds)):
        told[t] = sigmoid(x[t : t + 1] @ line)[0]
        seen, y = x[: t + 1], outcomes[: t + 1]

        def loss(at: Floats, seen: Floats = seen, y: Floats = y) -> float:
            lost = np.logaddexp(0.0, seen @ at).sum() - y @ (seen @ at)
            return float(lost + 0.5 * (at - start) @ precision @ (at - start))

        for _ in range(6):
            p = sigmoid(seen @ line)
            slope = seen.T @ (p - y) + precision @ (line - start)
            bend = (seen * (p * (1.0 - p))[:, None]).T @ seen + precision
            step = np.linalg.solve(bend, slope)
            while loss(line - step) > loss(line) and np.abs(step).max() > 1e-4:
                step = step / 2.0
            line = line - step
    return told


@dataclass(frozen=True, kw_only=True)
class Later(Refining):
    """The last stage of the default, whose cells split later: at so many times as many draws.

    ``waits`` has a number for each time that a step is halved, the first one first.
    """

    waits: tuple[float, ...] = (1.0, 1.0)

    def set_parameters(self, words: Any, reals: Any, buckets: int) -> None:
        """Write the settings, and when points come into use."""
        super().set_parameters(words, reals, buckets)
        table = int(words[SCRATCH])
        for k, wait in enumerate(reversed(self.waits)):
            reals[table + (1 << k) : table + self.lattice.cells : 2 << k] *= wait


WAITS = (
    (1.0, 1.0),
    (4.0, 4.0),
    (1.0, 4.0),
    (1.0, 8.0),
    (1.0, 12.0),
    (1.0, 16.0),
    (1.0, 18.0),
    (1.0, 32.0),
    (1.0, 32.0, 8.0),
)
NAMED = {WAITS[0]: ["the default"], WAITS[-1]: ["with a third"]}
ENOUGH = Later(waits=(1.0, 18.0))
"""The first of these that meets the bar after a swap without finer grids."""


def later_rows(rounds: int, seeds: int = 10) -> Iterator[str]:
    """Yield what it gives after a swap to split later, and what the draws of 50,000 rounds lose."""
    told = f"C2, swap after {rounds // 2:,} | after {5 * rounds:,}"
    yield f"| times as many draws for each halving | {told} | draw's Brier, less mean's |"
    yield "|---|---|---|---|"
    for waits in WAITS:
        rule = Later(waits=waits, doublings=len(waits))
        blocks = [
            [_block(rule, *m, length, seed) for m in MODELS.values() for seed in SWAPS]
            for length in (rounds, 10 * rounds)
        ]
        lost = np.mean([_lost(rule, seed) for seed in range(seeds)])
        found = " | ".join(f"{np.mean(each):.4f}" for each in blocks)
        name = ", ".join([f"{wait:g}" for wait in waits] + NAMED.get(waits, []))
        yield f"| {name} | {found} | {lost:+.6f} |"


def _block(rule: Later, first: Model, then: Model, rounds: int, seed: int) -> float:
    """Return C2 of the block after a swap."""
    stream = swapped(first, then, rounds, seed)[0]
    block = slice(rounds // 2, rounds // 2 + BLOCK)
    made = Calibrant(UNWATCHED, method=rule, seed=seed).compile()
    drawn = made.replay(stream.raw, stream.outcomes).forecast
    return score.c2(drawn[block], stream.outcomes[block])


def _lost(rule: Later, seed: int) -> float:
    """Return the Brier score of draws less that of means, where half of the outcomes are 1."""
    raw, outcomes = rare.stream(0.5, 50_000, seed)
    run = Calibrant(UNWATCHED, method=rule, seed=seed).compile().replay(raw, outcomes)
    return score.brier(run.forecast, outcomes) - score.brier(run.mean, outcomes)


def later_panel_rows(data: pathlib.Path | None) -> Iterator[str]:
    """Yield what it costs or saves on the panel to split as late as the swap asks for."""
    changes = []
    for stream in panel(data)[0]:
        timing = {"time": stream.issued, "available": stream.available} if stream.delayed else {}
        runs = [
            Calibrant(UNWATCHED, method=rule, seed=seed)
            .compile()
            .replay(stream.raw, stream.outcomes, **timing)
            for rule in (ENOUGH, Later())
            for seed in range(DRAWS)
        ]
        losses = [score.brier(run.mean, stream.outcomes) for run in runs]
        later, usual = sum(losses[:DRAWS]), sum(losses[DRAWS:])
        changes.append((later / usual - 1.0, stream.name))
    changes.sort()
    told = ", ".join(f"{wait:g}" for wait in ENOUGH.waits)
    yield f"| {told} on the panel | mean | worst | best |"
    yield "|---|---|---|---|"
    ends = (f"{100.0 * change:+.2f} %, {name}" for change, name in (changes[-1], changes[0]))
    mean = 100.0 * float(np.mean([change for change, _ in changes]))
    yield f"| {len(changes)} streams | {mean:+.2f} % | {' | '.join(ends)} |"


NOTICED = (0, 5, 10, 20, 40, 60)
"""So many rounds after a swap draws come from the first grid."""


def noticed_rows(rounds: int) -> Iterator[str]:
    """Yield C2 after a swap by when draws come from the first grid, and as the default has it."""
    yield "| draws from the first grid | C2 of the 500 draws |"
    yield "|---|---|"
    whens: dict[str, int | None] = {f"after {delay} rounds": delay for delay in NOTICED}
    for name, delay in (whens | {"never": BLOCK, "as the default notices": None}).items():
        runs = [_retreated(*m, rounds, seed, delay) for m in MODELS.values() for seed in SWAPS]
        yield f"| {name} | {np.mean(runs):.4f} |"


def _retreated(first: Model, then: Model, rounds: int, seed: int, delay: int | None) -> float:
    """Return C2 of the block after a swap that is noticed after so many rounds."""
    stream, half = swapped(first, then, rounds, seed)[0], rounds // 2
    made, drawn = Calibrant(seed=seed).compile(), []
    made.replay(stream.raw[:half], stream.outcomes[:half])
    ages = [(0, BLOCK, None)] if delay is None else [(0, delay, swaps.HOLD), (delay, BLOCK, 0)]
    for begin, end, age in ages:
        part, arena = slice(half + begin, half + end), made._arena
        words, at = arena.flat(), arena.place(0) + made.spec.layout.transform + WATCH
        if age is not None:
            words[at] = words[at] & ~swaps.AGE | age
        drawn.append(made.replay(stream.raw[part], stream.outcomes[part]).forecast)
    return score.c2(np.concatenate(drawn), stream.outcomes[half : half + BLOCK])


def noticed_panel_rows(data: pathlib.Path | None, seeds: int = 2) -> Iterator[str]:
    """Yield what the watch costs on prompt streams of the panel that are long enough for it."""
    yield "| forecast | streams | another | mean | worst | best |"
    yield "|---|---|---|---|---|---|"
    played = [s for s in panel(data)[0] if len(s) > swaps.WARM and not s.delayed]
    changes = np.array([_watched(stream, seeds) for stream in played])
    for k, name in enumerate(("mean", "draw")):
        told = 100.0 * changes[:, k]
        ends = (f"{told[i]:+.2f} %, {played[i].name}" for i in (told.argmax(), told.argmin()))
        other = int((changes[:, 1] != 0.0).sum())
        yield f"| {name} | {len(played)} | {other} | {told.mean():+.2f} % | {' | '.join(ends)} |"


def _watched(stream: Stream, seeds: int) -> Floats:
    """Return by which part the watch changes the Brier scores of mean and draw."""
    scores = [
        [
            (score.brier(run.mean, stream.outcomes), score.brier(run.forecast, stream.outcomes))
            for seed in range(seeds)
            for made in [Calibrant(experts, seed=seed).compile()]
            for run in [made.replay(stream.raw, stream.outcomes)]
        ]
        for experts in (None, UNWATCHED)
    ]
    watched, plain = np.mean(scores, axis=1)
    change: Floats = watched / plain - 1.0
    return change


def panel_rows(data: pathlib.Path | None) -> Iterator[str]:
    """Yield what the experts save on the panel, worst first."""
    ratios = []
    for k, stream in enumerate(panel(data)[0]):
        many = MANY if len(stream) <= SHORT else DRAWS
        ratio = brier(None, stream, many) / brier(BEFORE, stream, many) - 1.0
        ratios.append((ratio, stream.name, k % 2))
    yield "| half of the panel | streams | mean | worst | best |"
    yield "|---|---|---|---|---|"
    for half, name in enumerate(SEEDS):
        lines = sorted(line for line in ratios if line[2] == half)
        mean = float(np.mean([line[0] for line in lines]))
        ends = (f"{100.0 * line[0]:+.2f} %, {line[1]}" for line in (lines[-1], lines[0]))
        yield f"| {name} | {len(lines)} | {100.0 * mean:+.2f} % | {' | '.join(ends)} |"
    yield f"\n| above +{100.0 * WORSE:g} % | change |\n|---|---|"
    for ratio, name, _ in sorted(line for line in ratios if line[0] > WORSE)[::-1]:
        yield f"| {name} | {100.0 * ratio:+.2f} % |"


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
    parser.add_argument(
        "--panel",
        type=pathlib.Path,
        nargs="?",
        default=NO_PANEL,
        help="the panel, with a directory of real data if it is not what came along",
    )
    parser.add_argument("--swaps", action="store_true", help="the block after a swap alone")
    parser.add_argument("--told", action="store_true", help="what knowing the swap would give")
    parser.add_argument("--later", action="store_true", help="what it gives to split later")
    parser.add_argument("--noticed", action="store_true", help="what noticing it gives")
    parser.add_argument("--cost", action="store_true", help="what a round costs")
    add_store(parser)
    given = parser.parse_args()
    part = next((name for name in MODES if getattr(given, name)), "")
    part = part or ("panel" if given.panel is not NO_PANEL else "")
    with storing("fast", part=part, wanted=given.store):
        for rows in asked(part, given):
            for row in rows:
                print(row, flush=True)
            print()


NO_PANEL: Any = object()
"""In place of a directory, where the panel is not wanted; None is what came along."""
MODES: dict[str, tuple[Callable[[int], Iterator[str]], Any]] = {
    "cost": (cost_rows, None),
    "noticed": (noticed_rows, noticed_panel_rows),
    "later": (later_rows, later_panel_rows),
    "told": (told_rows, None),
    "swaps": (swap_rows, None),
}
"""Options that print a table of their own, and one of the panel where there is one."""


def asked(part: str, given: argparse.Namespace) -> Iterator[Iterator[str]]:
    """Yield the tables that the command line asks for."""
    if part == "panel":
        yield panel_rows(given.panel)
    elif part:
        alone, on_panel = MODES[part]
        yield alone(given.rounds)
        if on_panel is not None and given.panel is not NO_PANEL:
            yield on_panel(given.panel)
    else:
        yield brier_rows(given.rounds)
        yield swap_rows(given.rounds)


if __name__ == "__main__":
    main()
