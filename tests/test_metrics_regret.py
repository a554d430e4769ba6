from __future__ import annotations

import math

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InvalidInput, UnknownName
from calibrant.losses import get_loss
from calibrant.metrics import (
    as_cells,
    calibration_error,
    external_regret,
    internal_regret,
    mean_loss,
    proper_swap_regret,
    regret,
    squared_swap_regret,
    swap_regret,
)

grid = [k / 8 for k in range(9)]
inner = [(k + 0.5) / 8 for k in range(8)]
rounds = st.lists(st.tuples(st.sampled_from(inner), st.integers(0, 1)), min_size=1, max_size=30)
losses = st.sampled_from(["squared", "absolute", "log", "misclassification"])
alternatives = st.one_of(st.none(), st.lists(st.sampled_from(inner), min_size=1, max_size=4))


def columns(run: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [p for p, _ in run], [y for _, y in run]


@pytest.mark.parametrize("kind", ["external_regret", "internal_regret", "swap_regret"])
@given(run=rounds, loss=losses, others=alternatives)
def test_regrets_are_their_definitions(
    kind: str, run: list, loss: str, others: list | None
) -> None:
    forecasts, outcomes = columns(run)
    choices = sorted(set(forecasts)) if others is None else others
    expected = getattr(naive, kind)(forecasts, outcomes, get_loss(loss), choices)
    found = getattr(regret, kind)(forecasts, outcomes, loss=loss, alternatives=others)
    assert found == pytest.approx(expected, abs=1e-9)


@given(rounds, losses, alternatives)
def test_internal_regret_is_at_most_swap_regret(run: list, loss: str, others: list | None) -> None:
    forecasts, outcomes = columns(run)
    internal = internal_regret(forecasts, outcomes, loss=loss, alternatives=others)
    swap = swap_regret(forecasts, outcomes, loss=loss, alternatives=others)
    external = external_regret(forecasts, outcomes, loss=loss, alternatives=others)
    assert 0 <= internal <= swap + 1e-12
    assert swap <= len(set(forecasts)) * internal + 1e-9
    assert external <= swap + 1e-9


@given(rounds)
def test_the_squared_swap_regret_is_rounds_times_c2(run: list[tuple[float, int]]) -> None:
    forecasts, outcomes = columns(run)
    closed = squared_swap_regret(forecasts, outcomes)
    assert closed == pytest.approx(len(run) * calibration_error(forecasts, outcomes, power=2))
    frequencies = as_cells(forecasts, outcomes).rho
    exact = swap_regret(forecasts, outcomes, alternatives=frequencies)
    assert closed == pytest.approx(exact, abs=1e-9)
    assert closed == pytest.approx(proper_swap_regret(forecasts, outcomes), abs=1e-9)


@given(rounds, st.sampled_from(["squared", "log", "misclassification", "spherical"]))
def test_no_swap_beats_the_frequency_under_a_proper_loss(run: list, loss: str) -> None:
    forecasts, outcomes = columns(run)
    everything = np.linspace(0.001, 0.999, 500)
    on_grid = swap_regret(forecasts, outcomes, loss=loss, alternatives=everything)
    assert on_grid <= proper_swap_regret(forecasts, outcomes, loss=loss) + 1e-9


@given(rounds)
def test_fact_10_swap_regret_is_at_most_twice_the_bound_times_c1(run: list) -> None:
    forecasts, outcomes = columns(run)
    limit = 2 * len(run) * calibration_error(forecasts, outcomes)
    for loss, bound in (("squared", 1.0), ("log", math.log(16)), ("misclassification", 1.0)):
        found = swap_regret(forecasts, outcomes, loss=loss, alternatives=inner)
        assert found <= bound * limit + 1e-9


def test_an_infinite_loss_that_never_happened_costs_nothing() -> None:
    assert mean_loss([0.0, 1.0], [0, 1], loss="log") == 0.0
    assert mean_loss([0.0, 1.0], [1, 1], loss="log") == math.inf


def test_infinite_losses_are_compared_as_totals() -> None:
    assert external_regret([0.0], [1], loss="log", alternatives=[0.5]) == math.inf
    assert external_regret([0.0], [1], loss="log", alternatives=[0.0]) == 0.0
    assert swap_regret([0.0, 0.5], [1, 0], loss="log") == math.inf
    assert internal_regret([0.0, 1.0], [0, 1], loss="log") == 0.0


def test_a_run_can_beat_every_constant() -> None:
    assert external_regret([0.0, 1.0], [0, 1]) == -1.0
    assert internal_regret([0.0, 1.0], [0, 1], alternatives=[0.5]) == 0.0


def test_many_cells_are_compared_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    forecasts, outcomes = rng.random(50), rng.random(50) < 0.5
    whole = swap_regret(forecasts, outcomes, loss="log")
    monkeypatch.setattr(regret, "_BLOCK", 70)
    assert swap_regret(forecasts, outcomes, loss="log") == whole


def test_any_function_is_a_loss() -> None:
    found = mean_loss([0.25, 0.5], [1, 0], loss=lambda y, p: abs(y - p) ** 3)
    assert found == pytest.approx((0.75**3 + 0.5**3) / 2)


def test_a_loss_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        mean_loss([0.25, 0.5], [1, 0], loss=lambda y, p: math.nan if y and p > 0.3 else p)
    told = "loss must be a number above -inf, got nan at forecast 0.5 and outcome 1"
    assert str(caught.value) == told
    with pytest.raises(InvalidInput, match="loss must be a number above -inf, got -inf"):
        mean_loss([0.25], [1], loss=lambda y, p: -math.inf)


def test_unknown_losses_and_empty_alternatives_are_refused() -> None:
    with pytest.raises(UnknownName, match="loss must be one of"):
        mean_loss([0.5], [1], loss="cubic")
    with pytest.raises(InvalidInput, match="alternatives must be at least one number, got none"):
        swap_regret([0.5], [1], alternatives=[])


def test_no_rounds_have_no_regret() -> None:
    assert external_regret([], []) == internal_regret([], []) == swap_regret([], []) == 0.0
    assert squared_swap_regret([], []) == proper_swap_regret([], []) == 0.0
    assert external_regret([], [], alternatives=[0.5]) == 0.0
    assert math.isnan(mean_loss([], []))
