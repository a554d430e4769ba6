"""Alarms: after how many rounds errors of all forecasts, of some, and of some groups are found.

``python -m benchmarks.alarms`` prints five tables; ``--rounds``, ``--seeds`` and ``--groups``
say how much is played, ``--only`` which table is wanted.  Forecasts are uniform from 0.02 to 0.98;
a delay is the median over seeds of the rounds from the error to the alarm, or ``-`` if less than
half of the streams had one.  ``--only unlike`` plays forecasts of other shapes, on which nothing
was chosen, beside a rule that follows the sum of the residuals.

Detectors of River follow the residuals, outcome less forecast.  Their settings are the most
sensitive ones of a list that ring in at most alpha of right streams of the same length; ours
promise that for streams of any length.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from river.drift import ADWIN, PageHinkley

from benchmarks.store import add_store, storing
from calibrant.groups import GroupRecalibrator
from calibrant.kernels import evidence as kernel
from calibrant.kernels.compile import available, compiled
from calibrant.monitor import GroupWatch, Monitor

Floats = NDArray[np.float64]
Bits = NDArray[np.uint8]
Chance = Callable[[Floats], Floats]
Alarm = Callable[[Floats, Bits], float]

ALPHA: Final = 0.01
BUCKETS: Final = 20
BEFORE: Final = 2000
"""Right rounds before the error, in the second table."""


def line(slope: float, intercept: float) -> Chance:
    """Return chances whose log-odds are a line of the forecast's."""
    return lambda p: 1.0 / (1.0 + np.exp(-intercept) * ((1.0 - p) / p) ** slope)


def between(low: float, high: float, off: float) -> Chance:
    """Return chances that are off the forecast by so much between two forecasts alone."""
    return lambda p: np.where((p > low) & (p < high), p + off, p)


ERRORS: Final[dict[str, Chance]] = {
    "global shift 0.4": line(1.0, 0.4),
    "global shift -0.2": line(1.0, -0.2),
    "global shift 1": line(1.0, 1.0),
    "global slope 0.75": line(0.75, 0.0),
    "global slope 1.3": line(1.3, 0.0),
    "global slope 0.8, shift 0.25": line(0.8, 0.25),
    "upside down": lambda p: 1.0 - p,
    "local, 0.40 to 0.45: 0.45 higher": between(0.40, 0.45, 0.45),
    "local, 0.3 to 0.4: 0.25 higher": between(0.3, 0.4, 0.25),
    "local, above 0.9: 0.2 lower": between(0.9, 1.0, -0.2),
    "wave of 0.1": lambda p: np.clip(p + 0.1 * np.sin(4.0 * np.pi * p), 0.0, 1.0),
}


def stream(chance: Chance, before: int, rounds: int, seed: int) -> tuple[Floats, Bits]:
    """Return forecasts and outcomes: right ones, and then as many rounds with the error."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, before + rounds)
    truth = np.concatenate([p[:before], chance(p[before:])])
    return p, (rng.random(len(p)) < truth).astype(np.uint8)


# ------------------------------------------------------------------------- detectors


def monitored(p: Floats, y: Bits, *, grid: bool, word: int = kernel.ALARM) -> float:
    """Return after how many rounds a monitor with these stakes rings."""
    state = np.array(kernel.fresh(BUCKETS, 0.0, 1e-6, math.log(1.0 / ALPHA), 1e6, grid))
    follow = compiled(kernel.follow_many, "evidence", nogil=True)
    (follow if available() else kernel.follow_many)(state, p, y)
    return float(state[word]) or math.inf


def mixture(p: Floats, y: Bits) -> float:
    """Return after how many rounds the fixed lines alone ring, a static mixture of equal parts."""
    x = np.log(p / (1.0 - p))[:, None]
    powers = np.array([1.0, 1 / 2, 3 / 4, 7 / 8, 9 / 8, 5 / 4, 3 / 2])[list(kernel.POWERS[1:])]
    q = 1.0 / (1.0 + np.exp(-powers * x) / np.array(kernel.FACTORS[1:]))
    paid = np.log(np.where(y[:, None] == 1, q / p[:, None], (1.0 - q) / (1.0 - p[:, None])))
    wealth = np.exp(np.minimum(np.cumsum(paid, axis=0), 600.0)).mean(axis=1)
    return first(wealth >= 1.0 / ALPHA)


def first(hit: NDArray[np.bool_]) -> float:
    """Return the number of the first round that is true, from 1 on."""
    return float(hit.argmax()) + 1.0 if hit.any() else math.inf


def residuals(make: Callable[[], Any], p: Floats, y: Bits) -> float:
    """Return after how many rounds a detector of River rings on the residuals."""
    detector = make()
    for t, residual in enumerate((y - p).tolist(), 1):
        detector.update(residual)
        if detector.drift_detected:
            return float(t)
    return math.inf


LISTED: Final[dict[str, list[Callable[[], Any]]]] = {
    "ADWIN": [partial(ADWIN, delta=10.0**-k) for k in (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6)],
    "Page-Hinkley": [
        partial(PageHinkley, threshold=float(limit), delta=0.02, mode="both")
        for limit in (10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150)
    ],
}


def tuned(name: str, rounds: int, seeds: int) -> Alarm:
    """Return the most sensitive setting that rings in at most alpha of right streams."""
    right = [stream(line(1.0, 0.0), 0, rounds, 10_000 + seed) for seed in range(seeds)]
    return next(
        partial(residuals, make) for make in LISTED[name] if seldom(partial(residuals, make), right)
    )


def seldom(alarm: Alarm, right: list[tuple[Floats, Bits]]) -> bool:
    """Say whether an alarm rings in at most alpha of these streams."""
    rung = 0
    for p, y in right:
        rung += alarm(p, y) < math.inf
        if rung > ALPHA * len(right):
            return False
    return True


# ---------------------------------------------------------------------------- tables


def median_delay(alarm: Alarm, chance: Chance, before: int, rounds: int, seeds: int) -> str:
    """Return the median delay; an alarm before there was anything to find finds nothing."""
    found = [alarm(*stream(chance, before, rounds, seed)) for seed in range(seeds)]
    delays = [after - before if after > before else math.inf for after in found]
    return shown(delays)


def shown(delays: list[float]) -> str:
    """Return the median as text."""
    delay = float(np.median(delays))
    return "-" if math.isinf(delay) else f"{delay:,.0f}"


def delays(before: int, rounds: int, seeds: int) -> Iterator[str]:
    """Yield the table of delays after so many right rounds."""
    detectors: dict[str, Alarm] = {
        "today's monitor": partial(monitored, grid=True),
        "earlier stakes": partial(monitored, grid=False),
        "mixture alone": mixture,
        "change alarm": partial(monitored, grid=True, word=kernel.CHANGE),
        **{name: tuned(name, before + rounds, seeds) for name in LISTED},
    }
    yield from header("error", detectors)
    for name, chance in ERRORS.items():
        told = [median_delay(alarm, chance, before, rounds, seeds) for alarm in detectors.values()]
        yield f"| {name} | {' | '.join(told)} |"
    right = [stream(line(1.0, 0.0), before, rounds, 20_000 + seed) for seed in range(seeds)]
    rung = [sum(alarm(p, y) < math.inf for p, y in right) for alarm in detectors.values()]
    yield f"| none: streams with an alarm | {' | '.join(f'{k / seeds:.1%}' for k in rung)} |"


def header(what: str, columns: Iterable[str]) -> Iterator[str]:
    """Yield the first two lines of a table."""
    names = [what, *columns]
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"


# ------------------------------------------------------------ streams that chose nothing

Shape = Callable[[np.random.Generator, int], Floats]


def normal(spread: float) -> Shape:
    """Return what makes forecasts whose log-odds are normal with this spread."""
    return lambda rng, rounds: 1.0 / (1.0 + np.exp(-rng.normal(0.0, spread, rounds)))


def rare(rng: np.random.Generator, rounds: int) -> Floats:
    """Make forecasts of rare events, 2 % on average."""
    return np.clip(rng.beta(0.4, 19.6, rounds), 1e-5, 0.999)


def two(rng: np.random.Generator, rounds: int) -> Floats:
    """Make forecasts that are 0.1 or 0.9."""
    return np.where(rng.random(rounds) < 0.5, 0.1, 0.9)


UNLIKE: Final[dict[str, tuple[Shape, Chance]]] = {
    "rare, odds 2.5 times as high": (rare, line(1.0, math.log(2.5))),
    "rare, odds 1.5 times as high": (rare, line(1.0, math.log(1.5))),
    "log-odds spread by 2, slope 0.7": (normal(2.0), line(0.7, 0.0)),
    "log-odds spread by 0.3, slope 0": (normal(0.3), line(0.0, 0.0)),
    "two values, 0.9 is 0.8": (two, between(0.85, 0.95, -0.1)),
    "log-odds spread by 1.5, one label in ten wrong": (normal(1.5), lambda p: 0.1 + 0.8 * p),
}


def residual_sum(p: Floats, y: Bits) -> float:
    """Return when the sum of residuals leaves the bound of a normal mixture.

    The bound holds ever for normal residuals of their variance; of rare outcomes it is an
    approximation.
    """
    total, spare = np.cumsum(y - p), np.cumsum(p * (1.0 - p)) + 1.0
    return first(np.abs(total) > np.sqrt(spare * np.log(spare / ALPHA**2)))


def other_shapes(rounds: int, seeds: int) -> Iterator[str]:
    """Yield the table of delays on forecasts of other shapes."""
    detectors: dict[str, Alarm] = {
        "today's monitor": partial(monitored, grid=True),
        "mixture alone": mixture,
        "sum of residuals": residual_sum,
    }
    yield from header("error", [*detectors, "right streams with an alarm: monitor", "sum"])
    for name, (shape, chance) in UNLIKE.items():
        wrong = [shaped(shape, chance, rounds, seed) for seed in range(seeds)]
        right = [shaped(shape, line(1.0, 0.0), rounds, 20_000 + seed) for seed in range(seeds)]
        told = [shown([alarm(*each) for each in wrong]) for alarm in detectors.values()]
        judged = detectors["today's monitor"], residual_sum
        rung = [sum(alarm(*each) < math.inf for each in right) / seeds for alarm in judged]
        yield f"| {name} | {' | '.join([*told, *(f'{share:.1%}' for share in rung)])} |"


def shaped(shape: Shape, chance: Chance, rounds: int, seed: int) -> tuple[Floats, Bits]:
    """Return forecasts of a shape, and outcomes."""
    rng = np.random.default_rng([seed, 7])
    p = shape(rng, rounds)
    return p, (rng.random(rounds) < chance(p)).astype(np.uint8)


# ---------------------------------------------------------------------------- groups

SHARED: Final = 0.05
"""The error rate over all groups."""
GOOD, BAD = 300, 700
"""Rounds of each group before one of them is off, and after."""


def of_groups(groups: int, wrong: int | None, seed: int) -> tuple[NDArray[np.int64], Floats, Bits]:
    """Return keys, forecasts and outcomes; one group becomes over-confident."""
    rng = np.random.default_rng([seed, groups])
    keys = np.concatenate([rng.permutation(groups) for _ in range(GOOD + BAD)])
    p = rng.uniform(0.02, 0.98, len(keys))
    off = (keys == wrong) & (np.arange(len(keys)) >= GOOD * groups)
    truth = np.where(off, line(0.4, 0.0)(p), p)
    return keys, p, (rng.random(len(p)) < truth).astype(np.uint8)


def watched(keys: NDArray[np.int64], p: Floats, y: Bits, known: bool) -> dict[Any, int]:
    """Return the groups that a watch names, and after how many of their rounds."""
    watch = GroupWatch(SHARED, keys=np.unique(keys) if known else ())
    watch.update_many(keys, p, y)
    return {alarm.key: alarm.after for alarm in watch.alarms}


def one_each(keys: NDArray[np.int64], p: Floats, y: Bits) -> dict[Any, int]:
    """Return the groups that monitors name which know nothing of one another."""
    found = {}
    for key in np.unique(keys).tolist():
        monitor = Monitor(SHARED, buckets=10)
        monitor.update_many(p[keys == key], y[keys == key])
        found |= {key: monitor.alarm_after} if monitor.alarm else {}
    return found


def by_group(groups: int, seeds: int) -> Iterator[str]:
    """Yield the table of groups: false alarms in right streams, and the delay of a true one."""
    yield from header(
        f"{groups} groups", ("right streams with an alarm", "found after", "named alone")
    )
    ways: dict[str, Callable[..., dict[Any, int]]] = {
        "`GroupWatch`, names known beforehand": partial(watched, known=True),
        "`GroupWatch`, names as they come": partial(watched, known=False),
        "a `Monitor` for each": one_each,
    }
    wrong = groups - 1
    for name, way in ways.items():
        false = np.mean([bool(way(*of_groups(groups, None, seed))) for seed in range(seeds)])
        runs = [way(*of_groups(groups, wrong, seed)) for seed in range(seeds)]
        found = [run.get(wrong, math.inf) - GOOD for run in runs]
        alone = np.mean([set(run) == {wrong} for run in runs])
        yield f"| {name} | {false:.0%} | {shown(found)} | {alone:.0%} |"


def while_learning(seeds: int, rounds: int = 4000) -> Iterator[str]:
    """Yield the table of a recalibrator that learns in four groups, by what is not judged."""
    waits = 0, 100, 250, 500
    yield from header("tolerance", [f"learning={wait}" for wait in waits])
    runs = [learned(rounds, seed) for seed in range(seeds)]
    for tolerance in (0.0, 0.02, 0.05):
        told = []
        for wait in waits:
            watches = [GroupWatch(SHARED, learning=wait, tolerance=tolerance) for _ in runs]
            for watch, run in zip(watches, runs, strict=True):
                watch.update_many(*run)
            told.append(f"{np.mean([watch.alarm for watch in watches]):.0%}")
        yield f"| {tolerance:g} | {' | '.join(told)} |"


def learned(rounds: int, seed: int) -> tuple[Any, Floats, Bits]:
    """Return groups, mean forecasts and outcomes; the raw forecasts are far off."""
    rng = np.random.default_rng([seed, 4])
    raw, groups = rng.uniform(0.02, 0.98, rounds), rng.integers(0, 4, rounds)
    truth = line(0.4, 0.0)(raw)
    odds = truth / (1.0 - truth) * np.where(groups == 1, 1.5, 1.0)
    outcomes = (rng.random(rounds) < odds / (1.0 + odds)).astype(np.uint8)
    return groups, GroupRecalibrator(seed=seed).replay(raw, outcomes, groups=groups).mean, outcomes


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alarms", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--only", choices=("start", "later", "unlike", "groups", "learning"))
    add_store(parser)
    given = parser.parse_args()
    fewer = max(given.seeds // 5, 2)
    tables = {
        "start": ("Errors from the start", delays(0, given.rounds, given.seeds)),
        "later": (f"After {BEFORE:,} right rounds", delays(BEFORE, given.rounds, given.seeds)),
        "unlike": ("Forecasts of other shapes", other_shapes(given.rounds, given.seeds)),
        "groups": (f"One group after {GOOD} right rounds", by_group(given.groups, fewer)),
        "learning": ("Streams with an alarm while a recalibrator learns", while_learning(fewer)),
    }
    chosen = [given.only] if given.only else list(tables)
    with storing("alarms", part=given.only or "", wanted=given.store):
        for title, lines in (tables[name] for name in chosen):
            print(f"{title}\n")
            for told in lines:
                print(told, flush=True)
            print()


if __name__ == "__main__":
    main()
