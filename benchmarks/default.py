"""The default against part one's C loop in batches, and against River one by one.

The loop plays the paper's rule alone, without experts: the ratio is what the experts, their
mixture and the anchored last stage cost together.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bars import Row, at_least, at_most
from benchmarks.kernels import c_replay
from benchmarks.measure import Job, Run, interleave
from benchmarks.one_step import logistic_regression
from benchmarks.reference import c_compiler, c_loops, game
from calibrant import Calibrant
from calibrant.kernels.compile import available
from calibrant.recalibrate.binary import OFTEN

__all__ = ["run"]

RULE, SIZE, SEED = "foster_hart", 20, 1
LOOP_BAR, RIVER_BAR = 12.0, 1.5
STEPS = 20_000


def run(*, rounds: int = 1_000_000, repeats: int = 15) -> list[Row]:
    """Return a row for batches and one for each way to play one by one."""
    batches = [against_c(rounds, repeats)] if c_compiler() is not None else []
    return batches + (against_river(min(rounds, STEPS), repeats) if available() else [])


def against_c(rounds: int, repeats: int) -> Row:
    """Compare ``Calibrant.replay`` with the C loop of Algorithm 1."""
    raw, outcomes = game(rounds)
    loop = c_loops(RULE)[RULE]
    jobs: dict[str, Job] = {
        "replay": partial(replay, raw, outcomes),
        "loop": partial(c_replay, RULE, SIZE, loop, raw, outcomes),
    }
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    costs = times.nanoseconds("replay"), times.nanoseconds("loop")
    what = f"replay the default, to C with {RULE}, N = M = {SIZE}"
    return at_most(what, *costs, times.ratio("replay", "loop"), LOOP_BAR)


def against_river(rounds: int, repeats: int) -> list[Row]:
    """Compare single steps with River's logistic regression on one feature."""
    raw, outcomes = (array.tolist() for array in game(rounds))
    jobs: dict[str, Job] = {
        "river": partial(logistic_regression, raw, outcomes),
        "predict_one + learn_one": partial(at_once, raw, outcomes),
        "forecast + observe": partial(by_ticket, raw, outcomes),
    }
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    river = times.nanoseconds("river")
    rows = [
        at_least(
            f"fast: {job}, the default, to River",
            times.nanoseconds(job),
            river,
            times.ratio("river", job),
            RIVER_BAR,
        )
        for job in list(jobs)[1:]
    ]
    return rows


def replay(raw: NDArray[np.float64], outcomes: NDArray[np.uint8]) -> Run:
    """Measure a batch."""
    made = Calibrant(seed=SEED)
    return lambda: made.replay(raw, outcomes)


def gone_over() -> Any:
    """Return a stream that goes on with machine code without having been asked to compile."""
    Calibrant(seed=SEED).compile()
    made = Calibrant(seed=SEED)
    for _ in range(OFTEN + 1):
        made.observe(made.forecast(0.5), 1)
    return made


def at_once(raw: list[float], outcomes: list[int]) -> Run:
    """Measure rounds whose outcome is learned at once."""
    made = gone_over()

    def play() -> None:
        predict, learn = made.predict_one, made.learn_one
        for p, y in zip(raw, outcomes, strict=True):
            predict(p)
            learn(p, y)

    return play


def by_ticket(raw: list[float], outcomes: list[int]) -> Run:
    """Measure rounds with a ticket, whose outcome might come later."""
    made = gone_over()

    def play() -> None:
        forecast, observe = made.forecast, made.observe
        for p, y in zip(raw, outcomes, strict=True):
            observe(forecast(p), y)

    return play
