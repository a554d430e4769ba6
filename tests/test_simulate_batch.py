"""Batches of games: the same games as one by one, compiled or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant import Recalibrator
from calibrant.calibrators import FosterHart
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import games
from calibrant.registry import calibrators
from calibrant.simulate import (
    Adversary,
    Announcement,
    Coins,
    Games,
    GreedyAccuracy,
    GreedyCalibration,
    Informed,
    Record,
    adversaries,
    forecasters,
    play,
    play_many,
)
from calibrant.simulate import games as batch
from calibrant.simulate.adversary import BuiltInAdversary
from calibrant.simulate.forecaster import BuiltInForecaster

MEASURES = ("c1", "c2", "pseudo_c1", "pseudo_c2", "loss", "mean_loss", "raw_loss")
KERNELS = [
    name for name in adversaries.names() if issubclass(adversaries.get(name), BuiltInAdversary)
]


def one_by_one(method: str, forecaster: Any, adversary: Any, rounds: int, seed: int) -> Record:
    fresh = Recalibrator(method, resolution=5, buckets=3, seed=seed)
    return play(fresh, forecaster, adversary, rounds, seed=seed)


def together(method: str, forecaster: Any, adversary: Any, **options: Any) -> Games:
    sizes = {"resolution": 5, "buckets": 3, "rounds": 60, "seeds": [4, 9]}
    return play_many(method, forecaster, adversary, **(sizes | options))


def assert_equal_games(batched: Games, records: list[Record]) -> None:
    for row, record in enumerate(records):
        for name in MEASURES:
            assert getattr(batched, name)[row, -1] == pytest.approx(
                getattr(record, name), rel=1e-12, abs=1e-15
            )


@pytest.mark.parametrize("adversary", KERNELS)
@pytest.mark.parametrize("method", calibrators.names())
def test_a_batch_is_the_games_one_by_one(method: str, adversary: str) -> None:
    batched = together(method, "uniform", adversary)
    assert_equal_games(batched, [one_by_one(method, "uniform", adversary, 60, s) for s in (4, 9)])


@pytest.mark.parametrize("forecaster", ["constant", "noise", "informed", Informed(0.0, 1.0)])
def test_a_batch_has_the_same_raw_forecasts(forecaster: Any) -> None:
    batched = together("foster_hart", forecaster, "noisy", checkpoints=[1, 2, 59, 60])
    record = one_by_one("foster_hart", forecaster, "noisy", 60, 9)
    for column, mark in enumerate((1, 2, 59, 60)):
        expected = record.running_loss("raw")[mark - 1]
        assert batched.raw_loss[1, column] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("adversary", [GreedyAccuracy("loss"), GreedyCalibration(2)])
def test_settings_reach_the_kernel(adversary: Any) -> None:
    batched = together("regret_matching", "uniform", adversary)
    records = [one_by_one("regret_matching", "uniform", adversary, 60, s) for s in (4, 9)]
    assert_equal_games(batched, records)


def test_an_adversary_in_python_is_played_one_by_one_and_gives_the_same_game() -> None:
    class Copy(Adversary):
        def choose(self, announcement: Announcement, coins: Coins) -> int:
            return GreedyCalibration().choose(announcement, coins)

    plain = together("foster_hart", "uniform", Copy(), checkpoints=[7, 60])
    kernel = together("foster_hart", "uniform", "greedy_calibration", checkpoints=[7, 60])
    for name in MEASURES:
        assert getattr(plain, name).tolist() == getattr(kernel, name).tolist()


def test_a_learner_can_be_played_in_batches() -> None:
    batched = together("foster_hart", "logistic", "linear")
    assert_equal_games(batched, [one_by_one("foster_hart", "logistic", "linear", 60, 4)])


def test_the_compiled_game_is_the_plain_one_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    for adversary in KERNELS:
        plain = together("foster_hart", "uniform", adversary, checkpoints=[1, 30, 60])
        with monkeypatch.context() as patch:
            patch.setattr(batch, "SHORT", 0)
            compiled = together("foster_hart", "uniform", adversary, checkpoints=[1, 30, 60])
        for name in MEASURES:
            assert getattr(plain, name).tolist() == getattr(compiled, name).tolist()


def test_a_compiled_game_is_made_of_the_plain_one_once() -> None:
    rule = FosterHart.kernels
    compiled = games.compiled_game_of(rule)
    assert compiled is games.compiled_game_of(rule)
    assert compiled.py_func is games.game_of(rule)  # type: ignore[attr-defined]


def test_rows_are_seeds_and_columns_are_checkpoints() -> None:
    result = together("foster_hart", "uniform", "bernoulli", seeds=4, checkpoints=[10, 20, 40])
    assert (result.seeds, result.checkpoints) == ((0, 1, 2, 3), (10, 20, 40))
    assert all(getattr(result, name).shape == (4, 3) for name in MEASURES)
    assert len(result) == 4
    single = together("foster_hart", "uniform", "bernoulli", seeds=[2], rounds=20)
    assert single.c1.tolist() == [[result.c1[2, 1]]]
    assert len({tuple(row) for row in result.c1}) == 4


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SHORT", 0)
    one = together("foster_hart", "uniform", "threshold", seeds=6, threads=1)
    many = together("foster_hart", "uniform", "threshold", seeds=6, threads=3)
    assert one.c1.tolist() == many.c1.tolist()


def test_progress_counts_games() -> None:
    told: list[tuple[int, int]] = []
    together("foster_hart", "uniform", "bernoulli", progress=lambda *said: told.append(said))
    assert told == [(1, 2), (2, 2)]


def test_a_rule_itself_and_its_parameters_pass_through() -> None:
    rule = FosterHart(resolution=5, grid="midpoints")
    by_rule = play_many(rule, "uniform", "threshold", rounds=50, seeds=2)
    by_name = play_many(
        "foster_hart", "uniform", "threshold",
        rounds=50, seeds=2, resolution=5, grid="midpoints",
    )  # fmt: skip
    assert by_rule.c1.tolist() == by_name.c1.tolist()
    without = play_many(rule, "uniform", "threshold", rounds=50, seeds=2, prior=0)
    assert by_rule.mean_loss.tolist() != without.mean_loss.tolist()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"rounds": 0}, InvalidInput, "rounds must be a whole number of at least 1, got 0"),
        ({"seeds": 0}, InvalidInput, "seeds must be a whole number of at least 1, got 0"),
        ({"seeds": []}, InvalidInput, "seeds must be at least one, got none"),
        ({"seeds": ["x"]}, InvalidType,
         f"seeds must be a whole number from {-(1 << 127)} to {1 << 127}, got 'x'"),
        ({"checkpoints": []}, InvalidInput,
         "checkpoints must be increasing and not empty, got []"),
        ({"checkpoints": [5, 5]}, InvalidInput,
         "checkpoints must be increasing and not empty, got [5, 5]"),
        ({"checkpoints": [61]}, InvalidInput,
         "checkpoints must be a whole number from 1 to 60, got 61"),
        ({"threads": 0}, InvalidInput, "threads must be a whole number of at least 1, got 0"),
        ({"buckets": 0}, InvalidInput,
         "buckets must be a whole number from 1 to 1048576, got 0"),
        ({"forecaster": "informed"}, InvalidInput,
         "features must hold what the informed forecaster passes on, got (): "
         "this adversary reveals nothing"),
    ],
)  # fmt: skip
def test_bad_options_are_named(options: dict[str, Any], error: type[Exception], text: str) -> None:
    sizes = {"forecaster": "uniform", "adversary": "threshold", "rounds": 60, "seeds": 2}
    with pytest.raises(error) as caught:
        play_many("foster_hart", **(sizes | options))
    assert str(caught.value) == text


def test_every_code_of_the_kernels_is_taken_once() -> None:
    kinds = [adversaries.get(name) for name in KERNELS]
    assert sorted(kind.code for kind in kinds) == list(range(len(kinds)))
    makers = [forecasters.get(name) for name in forecasters.names()]
    codes = [kind.code for kind in makers if issubclass(kind, BuiltInForecaster)]
    assert sorted(codes) == list(range(len(codes)))


def test_losses_of_draws_and_means_differ() -> None:
    result = together("foster_hart", "uniform", "greedy_calibration")
    assert not np.allclose(result.loss, result.mean_loss)
