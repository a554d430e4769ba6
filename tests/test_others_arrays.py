"""Whoever changes an array while a batch plays it changes nothing of the batch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.recalibrate.delivery import moments
from calibrant.regression.distribution import table

pytestmark = pytest.mark.base

ROUNDS = 2000
Checked = Callable[[Any], Any]
CHECKS: list[tuple[Checked, Any]] = [
    (check.probabilities, np.full(3, 0.5)),
    (check.outcomes, np.ones(3, np.uint8)),
    (check.as_array, np.full((3, 2), 0.5)),
    (lambda values: table(values, "samples"), np.full((3, 2), 0.5)),
    (lambda values: moments(values, "time", 3), np.arange(3.0)),
]


@pytest.mark.parametrize(("checked", "given"), CHECKS)
def test_what_was_checked_is_a_copy(checked: Checked, given: Any) -> None:
    found = checked(given)
    assert not np.shares_memory(found, given)
    assert found.tolist() == given.tolist()


@contextlib.contextmanager
def changing(raw: np.ndarray, outcomes: np.ndarray) -> Iterator[None]:
    """Let another thread put into the arrays what no batch may play, and take it out again."""
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            raw[:], outcomes[:] = 1e18, 200
            raw[:], outcomes[:] = 0.5, 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


PLAYS: dict[str, Callable[[Any, Any], Any]] = {
    "binary": lambda raw, outcomes: Recalibrator(seed=1).replay(raw, outcomes).forecast,
    "calibrant": lambda raw, outcomes: Calibrant(seed=1).replay(raw, outcomes).forecast,
    "many": lambda raw, outcomes: Recalibrator(seed=1).forecast_many(raw).value,
    "groups": lambda raw, outcomes: (
        GroupRecalibrator(lambda context, history: ("all",), seed=1).replay(raw, outcomes).forecast
    ),
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_a_batch_plays_what_it_checked(play: Callable[[Any, Any], Any]) -> None:
    raw, outcomes = np.full(ROUNDS, 0.5), np.ones(ROUNDS, np.uint8)
    with changing(raw, outcomes):
        for _ in range(5):
            with contextlib.suppress(InvalidInput):
                found = play(raw, outcomes)
                assert ((found >= 0.0) & (found <= 1.0)).all()
