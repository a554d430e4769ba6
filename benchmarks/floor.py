"""What the floor costs: rows, bodies, objects, a desk with many tickets, and late batches.

The prompt paths of another commit, the last one before there was a floor, and of this one are
played in turns, each in a process of its own, and compared: with the streams that each of them
makes, and with states that the other commit wrote, which go on with its experts and its coins.
``CALIBRANT_BEFORE`` names a third commit.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Row
from calibrant import Calibrant, Recalibrator
from calibrant.kernels.compile import available

__all__ = ["run"]

OPEN = 1_000_000
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEFORE = "2d7022e7db2a88aed54eb521ebe08270cef1a21f"
"""The last commit at which each kind had objects and states of its own."""
BARS = {
    "row of the default, bytes": 4_200.0,
    "row of foster_hart, N = M = 10, bytes": 2_400.0,
    "body of the default after ten rounds, bytes": 900.0,
    "live default over its row": 3.0,
    "the same, by the sizes of its objects": 3.0,
    "the same after 1,000 rounds of plain Python": 3.0,
    "live foster_hart, N = M = 10, over its row": 3.0,
    "live foster_hart after 1,000 rounds of plain Python": 3.0,
    "live default over its row, compiled": 3.0,
    "live foster_hart over its row, compiled": 3.0,
    "forecast + observe by id, a million open, to none": 2.0,
    "to_bytes, a ticket of a million": 200.0,
    "to_bytes, a million open": 0.3,
    "from_bytes, a million open": 1.0,
    "slowest observe of a million": 1.0,
    "late batch of 1,000 rows, 100,000 open, to none": 1.5,
    "the same with raw_safe": 1.5,
}
BEFORE_BARS = {
    "plain default, forecast + observe": 2.0 / 3.0,
    "plain default of then, forecast + observe": 2.0 / 3.0,
    "plain default, load, one round, save": 0.1,
    "from disk default, load, one round, save": 0.1,
    "compiled default, load, one round, save": 0.1,
}


def run(*, repeats: int = 7) -> list[Row]:
    """Return a row for each figure."""
    rows = [*sizes(), live_object(), *live_objects()]
    rows += desk(repeats) if available() else []
    rows += million()
    with tempfile.TemporaryDirectory() as folder:
        return rows + (against(folder + "/src", repeats) if unpacked(folder) else [])


def unpacked(folder: str) -> bool:
    """Put the package as it was at another commit there, if the history is at hand."""
    wanted = os.environ.get("CALIBRANT_BEFORE", BEFORE)
    git = ["git", "-C", ROOT, "archive", f"--output={folder}/then.tar", wanted, "src"]
    if subprocess.run(git, stderr=subprocess.DEVNULL).returncode:
        return False
    subprocess.run(["tar", "-xf", f"{folder}/then.tar", "-C", folder], check=True)
    return True


def held(what: str, ours: float, unit: str) -> Row:
    """Return a row that is held against its bar."""
    bar = BARS[what]
    return Row(what, ours, unit, bar=f"<= {bar:g}", met=ours <= bar)


def sizes() -> list[Row]:
    """Measure rows and bodies."""
    default = Calibrant(seed=1)
    coarse = Recalibrator(resolution=10, buckets=10)
    documents = [
        _ten_rounds(Calibrant(seed=1), np.random.default_rng(seed))._document()
        for seed in range(40)
    ]
    # Without the magic and the length of the shape; on average over raw forecasts all over [0, 1].
    body = statistics.mean(len(each.to_bytes()) - len(each.shape) - 12 for each in documents)
    return [
        held("row of the default, bytes", default.spec.layout.fresh.nbytes, "B"),
        held("row of foster_hart, N = M = 10, bytes", coarse.spec.layout.fresh.nbytes, "B"),
        held("body of the default after ten rounds, bytes", body, "B"),
    ]


def live_object(count: int = 200) -> Row:
    """Measure the memory of default streams after ten rounds each, over that of a row."""
    rng = np.random.default_rng(1)
    _ten_rounds(Calibrant(seed=0), rng)
    tracemalloc.start()
    kept = [_ten_rounds(Calibrant(seed=k), rng) for k in range(count)]
    used = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    return held("live default over its row", used / kept[0].spec.layout.fresh.nbytes, "")


def live_objects() -> list[Row]:
    """Measure what streams have that no other of their spec has, over their rows."""
    coarse = functools.partial(Recalibrator, resolution=10, buckets=10)
    rows = [
        held("the same, by the sizes of its objects", live_size(Calibrant), ""),
        held("the same after 1,000 rounds of plain Python", live_size(Calibrant, 1_000), ""),
        held("live foster_hart, N = M = 10, over its row", live_size(coarse), ""),
        held("live foster_hart after 1,000 rounds of plain Python", live_size(coarse, 1_000), ""),
    ]
    if available():
        for name, made in (("default", Calibrant), ("foster_hart", coarse)):
            taken = live_size(functools.partial(_compiled, made), 1_000)
            rows.append(held(f"live {name} over its row, compiled", taken, ""))
    return rows


def live_size(make: Callable[..., Recalibrator], rounds: int = 10, pairs: int = 20) -> float:
    """Return how many rows a stream takes after so many rounds, on average."""
    rng, taken = np.random.default_rng(1), list[float]()
    for pair in range(pairs):
        one, other = (_rounds(make(seed=2 * pair + k), rng, rounds) for k in range(2))
        taken.append(of_its_own(one, other) / one.spec.layout.fresh.nbytes)
    return statistics.mean(taken)


def of_its_own(one: Any, other: Any) -> int:
    """Return the bytes of all that an object leads to and another one of its kind does not."""
    shared = _reached(other)
    return sum(sys.getsizeof(made) for key, made in _reached(one).items() if key not in shared)


def _reached(root: Any) -> dict[int, Any]:
    """Return everything that an object leads to, code apart, by identity."""
    found, stack = dict[int, Any](), [root]
    while stack:
        made = stack.pop()
        # Not isinstance: a proxy of something that is gone answers nothing.
        kind = type(made)
        if id(made) in found or issubclass(kind, CODE):
            continue
        found[id(made)] = made
        stack += gc.get_referents(made)
        if issubclass(kind, np.ndarray) and made.base is not None:
            stack.append(made.base)
    return found


CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def _compiled(made: Callable[..., Any], seed: int) -> Any:
    return made(seed=seed).compile()


def _rounds(model: Any, rng: np.random.Generator, rounds: int) -> Any:
    for raw in rng.random(rounds).tolist():
        model.observe(model.forecast(raw), int(rng.random() < raw))
    return model


def _ten_rounds(model: Calibrant, rng: np.random.Generator) -> Calibrant:
    made: Calibrant = _rounds(model, rng, 10)
    return made


def desk(repeats: int) -> list[Row]:
    """Measure rounds by id with a million tickets open, and what storing them costs."""
    few, many = (Recalibrator(seed=1, max_open=1 << 22).compile() for _ in range(2))
    raws = np.random.default_rng(1).random(OPEN)
    many.forecast_many(raws)
    costs: dict[str, list[float]] = {"few": [], "many": []}
    for _ in range(repeats):
        for name, model in (("few", few), ("many", many)):
            costs[name].append(_timed(lambda model=model: _by_id(model), 2_000))
    ratio = statistics.median(m / f for m, f in zip(costs["many"], costs["few"], strict=True))
    stored = min(_timed(many.to_bytes, 1) for _ in range(3)) / OPEN
    return [
        held("forecast + observe by id, a million open, to none", ratio, ""),
        held("to_bytes, a ticket of a million", stored * 1e9, "ns"),
        held("late batch of 1,000 rows, 100,000 open, to none", late_batches(repeats), ""),
        held("the same with raw_safe", late_batches(repeats, raw_safe=0.1), ""),
    ]


def million(turns: int = 3) -> list[Row]:
    """Measure what a million open tickets cost whoever waits for one call.

    The slowest call is that whose least time over all turns is largest: the same calls are played
    in each, and what else the machine does hits others.
    """
    many = Recalibrator(seed=1, max_open=1 << 22)
    if available():
        many.compile()
    opened = []
    for _ in range(turns):
        model = many.copy()
        opened.append(_each(lambda k, made=model: made.forecast(k % 1000 / 999), OPEN))
    stored = model.to_bytes()
    closed, loaded = [], []
    for _ in range(turns):
        start = time.thread_time()
        again = Recalibrator.from_bytes(stored)
        loaded.append(time.thread_time() - start)
        closed.append(_each(lambda k, made=again: made.observe(7919 * k % OPEN, k & 1), OPEN))
    saved = min(_timed(model.to_bytes, 1) for _ in range(turns))
    slowest = [float(np.min(times, axis=0).max()) * 1e3 for times in (opened, closed)]
    return [
        held("to_bytes, a million open", saved, "s"),
        held("from_bytes, a million open", min(loaded), "s"),
        Row("slowest forecast of a million", slowest[0], "ms"),
        held("slowest observe of a million", slowest[1], "ms"),
    ]


def _each(call: Callable[[int], Any], count: int) -> NDArray[np.float64]:
    """Return how long each of so many calls takes."""
    times, clock = np.empty(count), time.thread_time
    for k in range(count):
        start = clock()
        call(k)
        times[k] = clock() - start
    return times


def late_batches(repeats: int, raw_safe: float | None = None) -> float:
    """Return how much longer a late batch takes with many tickets open that it does not touch."""
    made: Callable[..., Recalibrator] = Recalibrator
    if raw_safe is not None:
        made = functools.partial(Calibrant, raw_safe=raw_safe)
    none, many = (made(seed=1, max_open=1 << 22).compile() for _ in range(2))
    many.forecast_many(np.random.default_rng(1).random(100_000))
    plays = [_late_player(model) for model in (none, many)]
    turns = [[_timed(play, 1) for play in plays] for _ in range(2 + 3 * repeats)]
    return statistics.median(m / f for f, m in turns[2:])


def _late_player(model: Recalibrator, rows: int = 1_000) -> Callable[[], Any]:
    """Return what plays one late batch after the other, each going on where the last ended."""
    raw = np.random.default_rng(2).random(rows)
    outcomes, time = (raw < 0.5).astype(np.uint8), np.arange(rows, dtype=np.float64)
    state: dict[str, Any] = {"carry": None, "start": 0.0}

    def play() -> None:
        when = time + state["start"]
        run = model.replay(raw, outcomes, available=when + 5, time=when, carry=state["carry"])
        state.update(carry=run.pending, start=state["start"] + rows)

    return play


def _by_id(model: Recalibrator) -> None:
    model.observe(model.forecast(0.37).number, 1)


def _timed(job: Callable[[], Any], count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        job()
    return (time.thread_time() - start) / count


# ------------------------------------------------------------------- beside another commit


def against(before: str, repeats: int) -> list[Row]:
    """Play the prompt paths of both commits in turns; report the median ratio of turns."""
    here = os.path.join(ROOT, "src")
    with tempfile.TemporaryDirectory() as states:
        _run(before, "off", WRITE, states)
        turns = [(_played(here, states), _played(before, states)) for _ in range(repeats)]
    rows = []
    for what in turns[0][0]:
        ratio = statistics.median(ours[what] / its[what] for ours, its in turns)
        bar = BEFORE_BARS.get(what, 1.1)
        cost = min(ours[what] for ours, _ in turns), min(its[what] for _, its in turns)
        told = Row(f"{what}, to the commit before", cost[0] * 1e9, "ns", cost[1] * 1e9, ratio)
        rows.append(Row(**told.to_dict() | {"bar": f"<= {bar:.3g}", "met": ratio <= bar}))
    return rows


def _played(source: str, states: str) -> dict[str, float]:
    """Return what the paths of a commit cost: without a compiler, and then with one."""
    found = dict[str, float]()
    for compile in ("off", "on") if available() else ("off",):
        found |= json.loads(_run(source, compile, PATHS, states))
    return found


def _run(source: str, compile: str, program: str, states: str) -> str:
    """Return what a program prints that imports the package from a folder."""
    settings = os.environ | {"PYTHONPATH": source, "CALIBRANT_COMPILE": compile}
    command = [sys.executable, "-W", "ignore", "-c", program, states]
    told = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    return told.stdout


WRITE = """
import pathlib, sys
from calibrant import Calibrant, Recalibrator

for name, made in (("default", Calibrant), ("foster_hart", Recalibrator)):
    pathlib.Path(sys.argv[1], name).write_bytes(made(seed=1).to_bytes())
"""

PATHS = """
import json, pathlib, random, sys, time
import numpy as np
from calibrant import Calibrant, Recalibrator
from calibrant.kernels.compile import available

def best(job, count, repeats=20):
    job(count)
    least = 1e9
    for _ in range(repeats):
        start = time.thread_time()
        job(count)
        least = min(least, (time.thread_time() - start) / count)
    return least

rng = random.Random(1)
raws = [rng.random() for _ in range(1000)]

def pairs(model):
    def play(count):
        for raw in raws[:count]:
            model.observe(model.forecast(raw), 1 if raw > 0.4 else 0)
    return play

def nexts(model):
    def play(count):
        earlier = model.forecast(0.5)
        for raw in raws[:count]:
            ticket = model.forecast(raw)
            model.observe(earlier, 1 if raw > 0.4 else 0)
            earlier = ticket
        model.observe(earlier, 1)
    return play

def numbers(model):
    def play(count):
        earlier = model.forecast(0.5).number
        for raw in raws[:count]:
            number = model.forecast(raw).number
            model.observe(earlier, 1 if raw > 0.4 else 0)
            earlier = number
        model.observe(earlier, 1)
    return play

def learns(model):
    def play(count):
        for raw in raws[:count]:
            model.predict_one(raw)
            model.learn_one(raw, 1 if raw > 0.4 else 0)
    return play

def now(name, kind):
    return kind(seed=1)

def then(name, kind):
    return kind.from_bytes(pathlib.Path(sys.argv[1], name).read_bytes())

told = {}
# Where there is a compiler, machine code that is on disk is taken over on the way.
plain = "from disk" if available() else "plain"
for name, kind, count in (("default", Calibrant, 100), ("foster_hart", Recalibrator, 1000)):
    for when, made in (("", now), (" of then", then)):
        what = f"{plain} {name}{when}"
        told[f"{what}, forecast + observe"] = best(pairs(made(name, kind)), count)
        told[f"{what}, predict_one + learn_one"] = best(learns(made(name, kind)), count)
model = Calibrant(seed=1)
pairs(model)(50)
stored = model.to_bytes()

def cycle(count):
    for _ in range(count):
        again = Calibrant.from_bytes(stored)
        again.observe(again.forecast(0.3), 1)
        again.to_bytes()

told[f"{plain} default, load, one round, save"] = best(cycle, 100)
if available():
    raw = np.random.default_rng(1).random(200_000)
    outcomes = (np.random.default_rng(2).random(200_000) < raw).astype(np.uint8)
    for name, kind in (("default", Calibrant), ("foster_hart", Recalibrator)):
        for when, made in (("", now), (" of then", then)):
            model = made(name, kind).compile()
            told[f"compiled {name}{when}, forecast + observe"] = best(pairs(model), 1000)
            told[f"compiled {name}{when}, predict_one + learn_one"] = best(learns(model), 1000)
            model.replay(raw, outcomes)
            batch = lambda count: model.replay(raw, outcomes)
            told[f"batch {name}{when}"] = best(batch, 200_000, 5)
    told["compiled default, load, one round, save"] = best(cycle, 20)
print(json.dumps(told))
"""

if __name__ == "__main__":
    from benchmarks.bars import show

    show("The floor", run())
