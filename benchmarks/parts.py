"""What makes streams of the panel worse than the earlier default made them: experts or last stage.

``python -m benchmarks.parts`` plays the panel with many seeds of the draws, and prints four tables:
the change of both parts together, and of experts alone, whose forecasts no draw moves; the streams
above +0.1 % with standard errors; what last stages and weights that were tried do to the panel; and
what they do to other bars.  ``--own 240`` plays so many short streams instead, of our own and on
which nothing was chosen, with the same settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import fast, late, rare
from benchmarks.quality import score
from benchmarks.quality.streams import Stream, panel, spf
from benchmarks.store import add_store, storing
from calibrant import Calibrant
from calibrant.calibrators.refining import Refining
from calibrant.transforms import ExpertMixture

Floats = NDArray[np.float64]
NOW: ExpertMixture = Calibrant(seed=0).transform  # type: ignore[assignment]
STAGE = Refining()
EVEN = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""First weights of all experts but the raw forecast."""


@dataclass(frozen=True)
class Setting:
    """A last stage, and first weights, rate and share of the experts: the default's if not told."""

    name: str
    stage: Refining = STAGE
    start: tuple[float, ...] | None = NOW.start
    eta: float | None = NOW.eta
    share: float = NOW.share

    @property
    def experts(self) -> ExpertMixture:
        """The experts with these first weights, this rate and this share."""
        return replace(NOW, start=self.start, eta=self.eta, share=self.share)

    def model(self, seed: int) -> Calibrant:
        """Return the model, compiled."""
        return Calibrant(self.experts, method=self.stage, seed=seed).compile()


def tried(
    strength: float,
    *start: float,
    steps: int = 15,
    eta: float = 2.0,
    share: float = 3e-4,
) -> Setting:
    """Return a setting; what is not told is as in the default before."""
    told = [f"pull {strength:g}"] + [f"{steps} steps"] * (steps != 15)
    told += [f"weights {', '.join(f'{w:g}' for w in start)}"] * bool(start)
    told += [f"rate {eta}"] * (eta != 2.0) + [f"share {share:g}"] * (share != 3e-4)
    stage = Refining(strength=strength, resolution=steps)
    return Setting("; ".join(told), stage, start or (7.0, *EVEN), eta, share)


TRIED = (
    Setting("the default"),
    replace(tried(4.0), name="the default before"),
    tried(6.0),
    tried(8.0),
    tried(6.5, steps=14),
    tried(7.0, steps=16),
    tried(5.0, steps=17),
    tried(8.0, steps=13),
    tried(4.0, 6.0, 0.1, 1.0, 0.1, 1.0, 1.0, 1.0, 1.0),
    tried(8.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 1.5),
    tried(7.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0),
    tried(5.5, 5.4, *EVEN, eta=1.5),
    tried(5.5, 5.5, 1.0, 1.0, 1.0, 1.2, 1.0, 1.0, 1.0, eta=1.5, share=4e-4),
    tried(5.0, 5.5, 1.0, 1.0, 0.9, 1.4, 1.0, 1.0, 1.0, eta=1.7, share=4.3e-4),
)
"""Of some 1,000 settings that were tried on streams below 3,000 rounds, those that tell most."""


def scores(made: Any, stream: Stream, seeds: int, first: int = 0) -> Floats:
    """Return the Brier score of the mean for each seed, of what ``made`` returns for it."""
    timing = {"time": stream.issued, "available": stream.available} if stream.delayed else {}
    runs = (
        made(k).replay(stream.raw, stream.outcomes, **timing) for k in range(first, first + seeds)
    )
    return np.array([score.brier(run.mean, stream.outcomes) for run in runs])


def mixed(experts: ExpertMixture, stream: Stream) -> float:
    """Return the Brier score of the experts' mixture alone."""
    told = np.asarray(experts.online().replay(stream.raw, stream.outcomes))
    return score.brier(told, stream.outcomes)


@dataclass(frozen=True)
class Compared:
    """A stream with both defaults; changes are in percent."""

    stream: Stream
    half: int
    before: Floats
    now: Floats
    experts: float

    @property
    def change(self) -> float:
        """The change of the Brier score, over all seeds."""
        return self.against(self.now)

    def against(self, now: Floats) -> float:
        """Return the change where these are the scores now."""
        return 100.0 * float(now.mean() / self.before.mean() - 1.0)

    @property
    def error(self) -> float:
        """The standard error of the change."""
        spread = [each.std(ddof=1) / each.mean() for each in (self.before, self.now)]
        return 100.0 * float(np.hypot(*spread) / np.sqrt(len(self.now)))

    def stage(self, now: bool) -> float:
        """Return what the last stage does to the mixture's score."""
        experts, scores = (NOW, self.now) if now else (fast.BEFORE, self.before)
        return 100.0 * float(scores.mean() / mixed(experts, self.stream) - 1.0)


def compared(seeds: int) -> list[Compared]:
    """Play the panel with the default before and now."""
    found = []
    for k, stream in enumerate(panel()[0]):
        many = seeds if len(stream) <= fast.SHORT else min(seeds, fast.DRAWS)
        before, now = (
            scores(lambda seed, e=e: fast.model(e, seed), stream, many) for e in (fast.BEFORE, None)
        )
        ratio = float("nan")
        if not stream.delayed:
            ratio = 100.0 * (mixed(NOW, stream) / mixed(fast.BEFORE, stream) - 1.0)
        found.append(Compared(stream, k % 2, before, now, ratio))
    return found


def part_rows(lines: list[Compared]) -> Iterator[str]:
    """Yield the first two tables."""
    bar = 100.0 * fast.WORSE
    prompt = [line for line in lines if not line.stream.delayed]
    parts = {
        "experts alone, prompt streams": [(line.experts, line.stream.name) for line in prompt],
        "experts and last stage": [(line.change, line.stream.name) for line in lines],
    }
    yield f"| what is compared | streams | mean | above +{bar:g} % | worst |"
    yield "|---|---|---|---|---|"
    for name, changes in parts.items():
        mean, worst = float(np.mean([c for c, _ in changes])), max(changes)
        above = sum(c > bar for c, _ in changes)
        told = f"{len(changes)} | {mean:+.2f} % | {above} | {worst[0]:+.2f} %, {worst[1]}"
        yield f"| {name} | {told} |"
    heads = "change | standard error | experts alone | last stage now | before"
    yield f"\n| stream | rounds | {heads} |"
    yield "|---|---|---|---|---|---|---|"
    for line in sorted(lines, key=lambda line: -line.change):
        if line.change <= 0.5 * bar or line.stream.delayed:
            continue
        stages = " | ".join(f"{line.stage(now):+.2f} %" for now in (True, False))
        told = f"{len(line.stream):,} | {line.change:+.2f} % | {line.error:.2f} %"
        yield f"| {line.stream.name} | {told} | {line.experts:+.2f} % | {stages} |"


def tried_rows(lines: list[Compared], seeds: int) -> Iterator[str]:
    """Yield what each setting does to the panel, and then to other bars."""
    bar = 100.0 * fast.WORSE
    yield f"| tried | mean | above +{bar:g} %, chosen on | held out | worst, chosen on | held out |"
    yield "|---|---|---|---|---|---|"
    for setting in TRIED:
        changes = []
        for line in lines:
            many = seeds if len(line.stream) <= fast.SHORT else min(seeds, 2)
            # Other seeds than the default before had.
            told = line.against(scores(setting.model, line.stream, many, 1_000))
            changes.append((told, line.stream.name, line.half))
        halves = [[c for c in changes if c[2] == half] for half in range(2)]
        above = " | ".join(str(sum(c[0] > bar for c in half)) for half in halves)
        worst = " | ".join(f"{max(half)[0]:+.2f} %, {max(half)[1]}" for half in halves)
        mean = float(np.mean([c[0] for c in changes]))
        yield f"| {setting.name} | {mean:+.2f} % | {above} | {worst} |"


def bar_rows(rounds: int) -> Iterator[str]:
    """Yield what each setting does to the bars that it may cost."""
    recessions = next(spf(None))
    made = [late.crowd(30_000, 1_000, seed) for seed in range(4 * DRAWN)]
    before = swap_of(lambda seed: fast.model(fast.BEFORE, seed), rounds)
    yield (
        "| tried | C2 after swaps, of before | draw's Brier, less mean's, at 50 % "
        "| mean's Brier, less raw's, in crowds of 1,000 | C2 of recessions, less raw's "
        "| fast worlds, worst change | bars missed |"
    )
    yield "|---|---|---|---|---|---|---|"
    worlds = [s for seed in fast.SEEDS.values() for s in fast.streams(rounds, seed)]
    usual = [scores(TRIED[0].model, s, 1)[0] for s in worlds]
    for setting in TRIED:
        swap = swap_of(setting.model, rounds) / before
        lost = float(np.mean([lost_of(setting, seed) for seed in range(DRAWN)]))
        crowd = float(np.mean([crowd_of(setting, s, seed) for seed, s in enumerate(made)]))
        pairs = zip(worlds, usual, strict=True)
        world = max(100.0 * (scores(setting.model, s, 1)[0] / u - 1.0) for s, u in pairs)
        slump = float(np.mean([slump_of(setting, recessions, seed) for seed in range(DRAWN)]))
        missed = sum((swap > 0.5, lost > 0.0003, crowd > 0.001, slump > 0.0))
        told = f"{swap:.3f} | {lost:+.6f} | {crowd:+.5f} | {slump:+.5f} | {world:+.2f} %"
        yield f"| {setting.name} | {told} | {missed} |"


def short_stream(seed: int) -> Stream:
    """Return a stream of some hundred rounds: its base rate, and what is wrong with it, by chance.

    True log-odds are normal around a base rate, one after the other independent or slowly moving.
    Raw forecasts have them right, too steep, too flat, shifted, with noise, or off in slope and
    shift; some are rounded, or stay away from 0 and 1.
    """
    rng = np.random.default_rng([OWN, seed])
    rounds = int(np.exp(rng.uniform(np.log(200.0), np.log(2_500.0))))
    base, spread, moves = rng.choice(BASES), rng.uniform(0.4, 1.8), rng.random() < 0.3
    steps, carried = rng.normal(size=rounds), 0.95 if moves else 0.0
    for t in range(1, rounds):
        steps[t] = carried * steps[t - 1] + np.sqrt(1.0 - carried**2) * steps[t]
    truth = np.log(base / (1.0 - base)) + spread * steps
    kinds = (
        (1.0, 0.0, 0.0),
        (rng.uniform(1.3, 2.5), 0.0, 0.0),
        (rng.uniform(0.4, 0.8), 0.0, 0.0),
        (1.0, rng.choice([-1.0, 1.0]) * rng.uniform(0.2, 0.8), 0.0),
        (1.0, 0.0, rng.uniform(0.3, 1.0)),
        (rng.uniform(0.7, 1.4), 0.3 * rng.normal(), 0.0),
    )
    slope, shift, noise = kinds[seed % len(kinds)]
    told = slope * (truth - truth.mean()) + truth.mean() + shift + noise * rng.normal(size=rounds)
    raw = 1.0 / (1.0 + np.exp(-told))
    form = rng.integers(4)
    raw = np.round(raw, form + 1) if form < 2 else np.clip(raw, 0.01, 0.99) if form == 2 else raw
    outcomes = (rng.random(rounds) < 1.0 / (1.0 + np.exp(-truth))).astype(np.uint8)
    return Stream(f"our own, {seed}", "synthetic", raw, outcomes)


OWN = 77
UNSEEN = 1_000
"""The default was chosen with a look at streams before this one."""
BASES = (0.05, 0.1, 0.2, 0.35, 0.5)


def own_rows(count: int, seeds: int) -> Iterator[str]:
    """Yield what each setting does to short streams of our own."""
    bar = 100.0 * fast.WORSE
    made = [short_stream(seed) for seed in range(UNSEEN, UNSEEN + count)]
    before = [scores(lambda k: fast.model(fast.BEFORE, k), s, seeds).mean() for s in made]
    yield f"| tried | mean | above +{bar:g} %, of {count} | 95 of 100 below | worst |"
    yield "|---|---|---|---|---|"
    for setting in TRIED:
        told = np.array([scores(setting.model, s, seeds, 1_000).mean() for s in made])
        change = 100.0 * (told / np.array(before) - 1.0)
        ends = f"{np.quantile(change, 0.95):+.2f} % | {change.max():+.2f} %"
        yield f"| {setting.name} | {change.mean():+.2f} % | {(change > bar).sum()} | {ends} |"


DRAWN = 10
"""Seeds of the streams of which half are ones, as in ``benchmarks.rare``; crowds have four times
as many."""


def swap_of(made: Any, rounds: int) -> float:
    """Return C2 of the block after a swap, on average over all kinds."""
    block, found = slice(rounds // 2, rounds // 2 + fast.BLOCK), []
    for models in fast.MODELS.values():
        for seed in fast.SWAPS:
            stream = fast.swapped(*models, rounds, seed)[0]
            drawn = made(seed).replay(stream.raw, stream.outcomes).forecast
            found.append(score.c2(drawn[block], stream.outcomes[block]))
    return float(np.mean(found))


def lost_of(setting: Setting, seed: int) -> float:
    """Return the Brier score of draws less that of means, where half of the outcomes are 1."""
    raw, outcomes = rare.stream(0.5, 50_000, seed)
    run = setting.model(seed).replay(raw, outcomes)
    return score.brier(run.forecast, outcomes) - score.brier(run.mean, outcomes)


def crowd_of(setting: Setting, stream: late.Late, seed: int) -> float:
    """Return the mean's Brier score less the raw forecast's, where outcomes are late."""
    time = np.arange(len(stream.raw), dtype=np.float64)
    model = setting.model(seed)
    run = model.replay(stream.raw, stream.outcomes, time=time, available=stream.known)
    return score.brier(run.mean, stream.outcomes) - score.brier(stream.raw, stream.outcomes)


def slump_of(setting: Setting, stream: Stream, seed: int) -> float:
    """Return C2 of the draws less that of raw forecasts in bins, where outcomes are late."""
    timing = {"time": stream.issued, "available": stream.available}
    run = setting.model(seed).replay(stream.raw, stream.outcomes, **timing)
    raw = score.c2_in_bins(stream.raw, stream.outcomes)
    return score.c2(run.forecast, stream.outcomes) - raw


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=fast.MANY, help="of the draws, on short streams"
    )
    parser.add_argument("--rounds", type=int, default=fast.ROUNDS, help="of fast worlds and swaps")
    parser.add_argument("--own", type=int, metavar="STREAMS", help="short streams of our own alone")
    add_store(parser)
    given = parser.parse_args()
    if given.own:
        with storing("parts", part="own", wanted=given.store):
            for row in own_rows(given.own, max(2, given.seeds // 4)):
                print(row, flush=True)
        return
    with storing("parts", wanted=given.store):
        lines = compared(given.seeds)
        found = (
            part_rows(lines),
            tried_rows(lines, max(2, given.seeds // 4)),
            bar_rows(given.rounds),
        )
        for rows in found:
            for row in rows:
                print(row, flush=True)
            print()


if __name__ == "__main__":
    main()
