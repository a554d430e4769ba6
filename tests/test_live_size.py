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


def waited(model: Any, seed: int, rounds: int) -> Any:
    """Return a stream after so many rounds whose outcomes came late, and the last of them too."""
    rng, tickets = np.random.default_rng(seed), []
    for raw in rng.random(rounds).tolist():
        tickets.append((model.forecast(raw), int(rng.random() < raw)))
        if len(tickets) > 9:
            model.observe(*tickets.pop(seed % 7))
    for ticket in tickets:
        model.observe(*ticket)
    return model


def rows_taken(
    make: Callable[[int], Any], rounds: int, streams: int = 6, play: Callable[..., Any] = lived
) -> float:
    """Return how many rows a stream takes, on average over some."""
    made = [play(make(seed), seed, rounds) for seed in range(2 * streams)]
    taken = [of_its_own(*pair) for pair in zip(made[::2], made[1::2], strict=True)]
    return statistics.mean(taken) / made[0].spec.layout.fresh.nbytes


@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("rounds", [0, 10, 1_000])
def test_a_plain_stream_takes_less_than_three_rows(name: str, rounds: int) -> None:
    assert rows_taken(STREAMS[name], rounds) < MOST


@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
def test_a_plain_stream_whose_outcomes_come_late_takes_less_than_three_rows(name: str) -> None:
    assert rows_taken(STREAMS[name], 1_000, 3, waited) < MOST


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
def test_an_old_plain_stream_takes_less_than_three_rows(name: str) -> None:
    assert rows_taken(STREAMS[name], 10_000, streams=1) < MOST


@pytest.mark.plain
@pytest.mark.parametrize("name", STREAMS)
def test_a_plain_stream_that_is_loaded_takes_less_than_three_rows(name: str) -> None:
    def loaded(model: Any, seed: int, rounds: int) -> Any:
        again = type(model).from_bytes(lived(model, seed, rounds).to_bytes())
        return lived(again, seed + 1, 1)

    for _ in range(2):
        # The first one is read with its shape, the next ones without.
        assert rows_taken(STREAMS[name], 500, 1, loaded) < MOST


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
