"""What a wrapped River classifier costs more than the bare one, a round at a time.

The reference is River's logistic regression on the nine features of its Phishing stream:
``predict_proba_one`` and ``learn_one``.  A row's ratio is what the wrapper adds, over that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bars import Row, at_most
from benchmarks.measure import Run, Times, interleave
from calibrant.integrations.river import RecalibratedClassifier
from calibrant.kernels.compile import available

__all__ = ["run"]

BARS = {"foster_hart": 0.6, "calibrant": 1.2}


def run(*, passes: int = 4, repeats: int = 31) -> list[Row]:
    """Return a row for each method, with the extra ``fast`` held against its bar."""
    from river import datasets

    stream = list(datasets.Phishing()) * passes
    jobs = {"bare": partial(play, bare, stream)}
    jobs |= {name: partial(play, partial(wrapped, name), stream) for name in BARS}
    times = interleave(jobs, rounds=len(stream), repeats=repeats)
    install = "fast" if available() else "base"
    return [row(f"{install}: {name}", times, name, bar) for name, bar in BARS.items()]


def row(told: str, times: Times, name: str, bar: float) -> Row:
    """Return what a method adds to the bare model's round."""
    added = times.ratio(name, "bare") - 1.0
    cost = times.nanoseconds(name) - times.nanoseconds("bare")
    made = at_most(told, cost, times.nanoseconds("bare"), added, bar)
    return made if available() else made.without_bar()


def bare() -> Any:
    """Return River's own model."""
    from river import linear_model

    return linear_model.LogisticRegression()


def wrapped(method: str) -> Any:
    """Return the same, recalibrated, its steps compiled where that is possible."""
    return RecalibratedClassifier(bare(), method=method, seed=1).compile()


def play(make: Callable[[], Any], stream: list[Any]) -> Run:
    """Measure rounds whose outcome comes at once."""
    model = make()

    def rounds() -> None:
        predict, learn = model.predict_proba_one, model.learn_one
        for x, y in stream:
            predict(x)
            learn(x, y)

    return rounds
