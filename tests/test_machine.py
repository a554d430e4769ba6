"""Every kind of recalibrator, every call, in any order: nothing is lost, nothing is invented."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_kinds import COMPILED, KINDS
from machine_play import Machine

from calibrant import Calibrant


def play(name: str, compiling: bool, examples: int, steps: int) -> None:
    """Play one kind for so many examples of so many steps."""
    tried = settings(
        max_examples=examples // KINDS[name].cost,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: Machine(KINDS[name], compiling), settings=tried)


@pytest.mark.once
@pytest.mark.parametrize("name", KINDS)
def test_any_calls_in_any_order_keep_the_books_right(name: str) -> None:
    play(name, compiling=False, examples=24, steps=15)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_more_calls_keep_the_books_right(name: str) -> None:
    play(name, compiling=False, examples=18, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_any_calls_in_any_order_keep_the_books_right_when_compiled(name: str) -> None:
    play(name, compiling=True, examples=18, steps=20)


# Found by such a machine, or near where it found something.


@pytest.mark.once
@pytest.mark.parametrize("way", ["forecast_many", "replay"])
@pytest.mark.parametrize("seed", range(6))
def test_what_expires_on_the_way_through_a_batch_gives_back_its_reserve(
    way: str, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    rec = Calibrant(raw_safe=0.02, seed=seed, max_open=3)
    rec.replay(draw.random(30), draw.integers(0, 2, 30))
    for raw in draw.random(3):
        rec.forecast(float(raw), id=f"{raw}")
    lone, raws = rec.copy(), draw.random(12)
    if way == "replay":
        found = rec.replay(raws, np.ones(12, int), available=np.full(12, np.inf)).forecast
    else:
        found = rec.forecast_many(raws).value
    assert found.tolist() == [lone.forecast(raw).value for raw in raws.tolist()]
    assert rec == lone
