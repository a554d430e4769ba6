"""Rounds one at a time from Python, against River's logistic regression on one feature.

With the extra ``fast`` the steps are compiled; the base install runs them as plain
Python, which is measured in a process of its own with the compiler switched off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.bars import Row, at_least
from benchmarks.measure import Job, Run, interleave
from benchmarks.reference import game
from calibrant import Recalibrator
from calibrant.kernels.compile import available

__all__ = ["run"]

RULES = ("foster_hart", "regret_matching", "blackwell", "anchored", "growing")
DEFAULT = RULES[0]
FAST_BARS = {"predict_one + learn_one": 3.0, "forecast + observe": 2.0}
BASE_BARS = {"predict_one + learn_one": 1.1, "forecast + observe": 1.1}


def run(*, rounds: int = 20_000, repeats: int = 31) -> list[Row]:
    """Return rows for both installs."""
    fast = here(rounds=rounds, repeats=repeats) if available() else []
    return fast + without_compiler(rounds, repeats)


def without_compiler(rounds: int, repeats: int) -> list[Row]:
    """Return what :func:`here` gives where nothing is compiled."""
    command = [sys.executable, "-m", "benchmarks.one_step", str(rounds), str(repeats)]
    settings = os.environ | {"CALIBRANT_COMPILE": "off"}
    told = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
    return [Row(**row) for row in json.loads(told.stdout)]


def here(*, rounds: int, repeats: int) -> list[Row]:
    """Return rows for this process; only the default rule is held against a bar."""
    raw, outcomes = (array.tolist() for array in game(rounds))
    jobs: dict[str, Job] = {"river": partial(logistic_regression, raw, outcomes)}
    for rule in RULES:
        jobs[f"predict_one + learn_one, {rule}"] = partial(at_once, rule, raw, outcomes)
        jobs[f"forecast + observe, {rule}"] = partial(by_ticket, rule, raw, outcomes)
    times = interleave(jobs, rounds=rounds, repeats=repeats)
    install, bars = ("fast", FAST_BARS) if available() else ("base", BASE_BARS)
    rows = []
    for job in list(jobs)[1:]:
        calls, rule = job.split(", ")
        costs = times.nanoseconds(job), times.nanoseconds("river")
        row = at_least(
            f"{install}: {job}, to River", *costs, times.ratio("river", job), bars[calls]
        )
        rows.append(row if rule == DEFAULT else row.without_bar())
    return rows


def logistic_regression(raw: list[float], outcomes: list[int]) -> Run:
    """Measure River's predict and learn."""
    from river.linear_model import LogisticRegression

    model: Any = LogisticRegression()
    features, labels = [{"x": p} for p in raw], [bool(y) for y in outcomes]

    def play() -> None:
        predict, learn = model.predict_proba_one, model.learn_one
        for x, y in zip(features, labels, strict=True):
            predict(x)
            learn(x, y)

    return play


def at_once(rule: str, raw: list[float], outcomes: list[int]) -> Run:
    """Measure rounds whose outcome is learned at once."""
    made = fresh(rule)

    def play() -> None:
        predict, learn = made.predict_one, made.learn_one
        for p, y in zip(raw, outcomes, strict=True):
            predict(p)
            learn(p, y)

    return play


def by_ticket(rule: str, raw: list[float], outcomes: list[int]) -> Run:
    """Measure rounds with a ticket, whose outcome might come later."""
    made = fresh(rule)

    def play() -> None:
        forecast, observe = made.forecast, made.observe
        for p, y in zip(raw, outcomes, strict=True):
            observe(forecast(p), y)

    return play


def fresh(rule: str) -> Recalibrator:
    """Return a recalibrator with the default sizes, its steps compiled where that is possible."""
    return Recalibrator(rule, seed=1).compile()


def main(rounds: str, repeats: str) -> None:
    """Print the rows of this process as JSON."""
    rows: list[dict[str, Any]] = [
        row.to_dict() for row in here(rounds=int(rounds), repeats=int(repeats))
    ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
