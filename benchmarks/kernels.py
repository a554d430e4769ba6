"""Batch replay against a C loop of the same rule, and its cost as the grid gets finer."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Row, at_most
from benchmarks.measure import Job, Run, interleave
from benchmarks.reference import Loop, c_compiler, c_loops, game
from calibrant import Recalibrator
from calibrant.calibrators import Calibrator
from calibrant.kernels.layout import ROWS
from calibrant.kernels.rounds import Program
from calibrant.recalibrate.secret import secret_of
from calibrant.registry import calibrators

__all__ = ["run"]

RULES = ("foster_hart", "regret_matching", "blackwell")
SIZES = (10, 20, 100)
COARSE, FINE = 10, 1000
SEED = 1
LOOP_BAR, GROWTH_BAR = 1.5, 2.5


def run(*, rounds: int = 1_000_000, repeats: int = 15) -> list[Row]:
    """Return two rows for each rule and size, then one for each rule's growth."""
    rows = []
    if c_compiler() is not None:
        loops = c_loops(*RULES)
        for rule in RULES:
            for size in SIZES:
                rows += against_c(rule, size, loops[rule], rounds, repeats)
    return rows + [growth(rule, rounds, repeats) for rule in RULES]


def against_c(rule: str, size: int, loop: Loop, rounds: int, repeats: int) -> list[Row]:
    """Compare ``replay``, and the kernel inside it, with the C loop; all give the same bits."""
    raw, outcomes = game(rounds)
    check_same(rule, size, loop, raw, outcomes)
    jobs: dict[str, Job] = {
        "replay": partial(replay, rule, size, raw, outcomes),
        "kernel": partial(kernel, rule, size, raw, outcomes),
        "loop": partial(c_replay, rule, size, loop, raw, outcomes),
    }
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    loop_cost = times.nanoseconds("loop")
    return [
        at_most(
            f"{job} {rule}, N = M = {size}, to C",
            times.nanoseconds(job),
            loop_cost,
            times.ratio(job, "loop"),
            LOOP_BAR,
        )
        for job in ("replay", "kernel")
    ]


def growth(rule: str, rounds: int, repeats: int) -> Row:
    """Compare a round on the finest grid with one on the coarsest."""
    raw, outcomes = game(rounds)
    jobs: dict[str, Job] = {
        str(size): partial(replay, rule, size, raw, outcomes) for size in (COARSE, FINE)
    }
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    fine, coarse = str(FINE), str(COARSE)
    costs = times.nanoseconds(fine), times.nanoseconds(coarse)
    what = f"replay {rule}, N = M = {FINE}, to N = M = {COARSE}"
    return at_most(what, *costs, times.ratio(fine, coarse), GROWTH_BAR)


def fresh(rule: str, size: int) -> Recalibrator:
    """Return a recalibrator of that size that has seen nothing."""
    return Recalibrator(rule, resolution=size, buckets=size, seed=SEED)


def state(rule: str, size: int) -> NDArray[np.int64]:
    """Return the flat state with which :func:`fresh` begins."""
    return fresh(rule, size).spec.arena(secret_of(SEED, None)).flat()


def compiled(rule: str) -> Program:
    """Return the rule's kernels as machine code."""
    made: Calibrator = calibrators.get(rule)()
    machine = made.program.machine
    if machine is None:
        raise RuntimeError("batches must be compiled to be measured, got no Numba")
    return machine


def replay(rule: str, size: int, raw: Any, outcomes: Any) -> Run:
    """Measure the public call: checks, rounds, and the arrays that it returns."""
    return partial(fresh(rule, size).replay, raw, outcomes)


def kernel(rule: str, size: int, raw: Any, outcomes: Any) -> Run:
    """Measure the compiled rounds alone, as the C loop is measured."""
    machine, words = compiled(rule), state(rule, size)
    play = partial(machine.replay, words, words.view(np.float64), int(words[ROWS]))
    return partial(fill, play, raw, outcomes, np.empty(0))


def c_replay(rule: str, size: int, loop: Loop, raw: Any, outcomes: Any) -> Run:
    """Measure the C loop."""
    return partial(fill, partial(loop, state(rule, size)), raw, outcomes)


def fill(
    play: Loop, raw: Any, outcomes: Any, *more: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Play all rounds; return forecasts and means in arrays of their own."""
    forecast, mean = np.empty(len(raw)), np.empty(len(raw))
    play(raw, outcomes, forecast, mean, *more)
    return forecast, mean


def check_same(rule: str, size: int, loop: Loop, raw: Any, outcomes: Any) -> None:
    """Raise unless C, kernel and ``replay`` agree in forecasts, means and state, to the bit."""
    run = fresh(rule, size).replay(raw, outcomes)
    ours, its = state(rule, size), state(rule, size)
    play = partial(compiled(rule).replay, ours, ours.view(np.float64), int(ours[ROWS]))
    mine = fill(play, raw, outcomes, np.empty(0))
    theirs = fill(partial(loop, its), raw, outcomes)
    pairs = [*zip(mine, theirs, strict=True), *zip((run.forecast, run.mean), theirs, strict=True)]
    if not all(np.array_equal(one, other) for one, other in [*pairs, (ours, its)]):
        raise AssertionError(f"{rule} at N = M = {size} must play as its C loop does")
