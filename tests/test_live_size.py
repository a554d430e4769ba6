"""How much memory a live stream takes: all that no other stream of its spec has, over its row."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.floor import of_its_own
from calibrant import Calibrant, Recalibrator
from calibrant.kernels.compile import available

MOST = 3.0
STREAMS: dict[str, Callable[[int], Any]] = {
    "default": lambda seed: Calibrant(seed=seed),
    "default, with a secret of the system": lambda seed: Calibrant(),
    "foster_hart": lambda seed: Recalibrator(resolution=10, buckets=10, seed=seed),
}


def lived(model: Any, seed: int, rounds: int) -> Any:
    """Return a stream after so many rounds with raw forecasts all over [0, 1]."""
    rng = np.random.default_rng(seed)
    for raw in rng.random(rounds).tolist():
        model.observe(model.forecast(raw), int(rng.random() < raw))
    return model


def rows_taken(make: Callable[[int], Any], rounds: int, streams: int = 6) -> float:
    """Return how many rows a stream takes, on average over some."""
    made = [lived(make(seed), seed, rounds) for seed in range(2 * streams)]
    taken = [of_its_own(*pair) for pair in zip(made[::2], made[1::2], strict=True)]
    return statistics.mean(taken) / made[0].spec.layout.fresh.nbytes


@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rounds", [0, 10])
def test_a_young_stream_takes_less_than_three_rows(name: str, rounds: int) -> None:
    assert rows_taken(STREAMS[name], rounds) < MOST


@pytest.mark.plain
def test_a_rule_alone_takes_less_than_three_rows_after_many_rounds() -> None:
    assert rows_taken(STREAMS["foster_hart"], 1_000) < MOST


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs the compiler")
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rounds", [0, 10, 2_000])
def test_a_compiled_stream_takes_less_than_three_rows_at_any_age(name: str, rounds: int) -> None:
    # Two streams are enough, since words of an array are not boxed: walking over all takes a while.
    assert rows_taken(lambda seed: STREAMS[name](seed).compile(), rounds, streams=1) < 2.5


@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
def test_no_part_of_a_stream_has_a_dictionary_of_its_own(name: str) -> None:
    model = lived(STREAMS[name](1), 1, 10)
    parts = (model, model._rows, model._arena, model._counter, model._secret, model._issuer)
    assert [hasattr(part, "__dict__") for part in parts] == [False] * 6


@pytest.mark.plain
def test_what_streams_share_is_counted_for_none() -> None:
    shared = [0.5] * 100
    assert of_its_own([shared, "a" * 1_000], [shared, "b"]) < 1_200
    assert of_its_own([shared, [0.25] * 100], [shared]) > 800
