"""Grids over the simplex: the linear program, the guarantee, and the numbers that are refused."""

from __future__ import annotations

import sys

import naive_classes as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from test_classes import stream

from calibrant.classes import SimplexRecalibrator, metrics
from calibrant.classes.simplex import hedge, prices
from calibrant.classes.vectors import cover, grid
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, MissingExtra, StaleForecast

POINTS = grid(3, 2) / 2


@st.composite
def gaps(draw, points=POINTS):
    """Gaps that counts could give: frequencies minus values, some of them 0."""
    counts = draw(arrays.arrays(np.int64, points.shape, elements=st.integers(0, 5)))
    visits = counts.sum(axis=1, keepdims=True)
    return np.where(visits > 0, counts / np.maximum(visits, 1) - points, 0.0)


@settings(max_examples=12)
@given(gaps(), st.integers(0, 5))
def test_the_linear_program_finds_what_brute_force_finds(found, pivot) -> None:
    table, allowed = prices(found, POINTS), cover(3, 2)
    distances = ((POINTS - POINTS[pivot]) ** 2).sum(axis=1) + 0.01 * np.arange(6)
    points, weights = hedge(table, distances, allowed)
    assert len(points) <= 3
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0.0).all()
    assert (weights @ table[points]).max() <= allowed + 1e-6
    best = naive.least_distance(table, distances, allowed)
    # Dropping the fourth point of a basic solution may cost distance, never calibration.
    assert weights @ distances[points] >= best - 1e-6


@settings(max_examples=12)
@given(gaps(), st.integers(0, 5))
def test_the_distance_is_least_wherever_few_points_suffice(found, pivot) -> None:
    table, allowed = prices(found, POINTS), cover(3, 2)
    distances = ((POINTS - POINTS[pivot]) ** 2).sum(axis=1) + 0.01 * np.arange(6)
    points, weights = hedge(table, distances, allowed)
    if (weights @ table[points] < allowed - 1e-6).any():
        best = naive.least_distance(table, distances, allowed)
        assert weights @ distances[points] == pytest.approx(best, abs=1e-6)


def test_a_fourth_point_is_left_out() -> None:
    # Three outcomes, all at the limit: the least distance needs four points.
    table = np.vstack([3.0 * np.eye(3) - 1.0, np.full((1, 3), 0.9)])
    distances = np.array([1.0, 1.0, 1.0, 0.0])
    points, weights = hedge(table, distances, 0.3)
    assert len(points) <= 3
    assert (weights @ table[points]).max() <= 0.3 + 1e-9


def test_prices_are_the_growth_of_the_potential() -> None:
    counts = np.array([3, 1, 2])
    value = np.array([0.5, 0.25, 0.25])
    n, gap = 6, counts / 6 - value
    table = prices(gap[None], value[None])[0]
    for y, outcome in enumerate(np.eye(3)):
        before = ((counts - n * value) ** 2).sum() / n
        after = ((counts + outcome - (n + 1) * value) ** 2).sum() / (n + 1)
        rest = ((outcome - counts / n) ** 2).sum() / (n + 1)
        assert after - before == pytest.approx(table[y] + rest)


@settings(max_examples=25)
@given(gaps(), st.floats(0, 1), st.floats(0, 1))
def test_the_induction_step_holds_whatever_comes(found, first, second) -> None:
    raw = np.array([first, (1 - first) * second, (1 - first) * (1 - second)])
    table = prices(found, POINTS)
    points, weights = hedge(table, ((POINTS - raw) ** 2).sum(axis=1), cover(3, 2))
    for y in range(3):
        assert weights @ table[points, y] <= cover(3, 2) + 1e-6


def test_the_first_forecast_is_the_nearest_point_and_mixtures_are_on_the_grid() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    ticket = rec.forecast([0.52, 0.26, 0.22])
    assert ticket.value.tolist() == [0.5, 0.25, 0.25]
    assert ticket.points.tolist() == [[0.5, 0.25, 0.25]]
    rec.observe(ticket, 2)
    second = rec.forecast([0.52, 0.26, 0.22])
    assert 1 < len(second.points) <= 3
    assert second.mean == pytest.approx(second.weights @ second.points)
    assert second.value.tolist() in second.points.tolist()
    assert (rec.resolution, rec.cells, rec.points) == (4, 2, 15)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"classes": 8, "resolution": 20},
            "resolution 20 with 8 classes must give at most 10000 grid points, got 888030: "
            "take TopLabel or OneVsRest, or raise limit",
        ),
        (
            {"classes": 4, "resolution": 2, "cells": 50},
            "cells 50 with 4 classes must give at most 10000 cells of raw forecasts, got 23426: "
            "take TopLabel or OneVsRest, or raise limit",
        ),
        ({"classes": 3, "resolution": 0}, "resolution must be a whole number of at least 1, got 0"),
        ({"classes": 3, "cells": 0}, "cells must be a whole number of at least 1, got 0"),
        ({"classes": 3, "limit": 0}, "limit must be a whole number of at least 1, got 0"),
    ],
)
def test_what_is_too_large_is_refused_by_its_numbers(given, told) -> None:
    with pytest.raises(InvalidInput) as raised:
        SimplexRecalibrator(**given)
    assert str(raised.value) == told


def test_the_limit_can_be_raised() -> None:
    rec = SimplexRecalibrator(5, resolution=10, limit=2000, seed=1)
    assert rec.points == 1001
    assert rec.forecast([0.2] * 5).value.tolist() == [0.2] * 5


def test_without_scipy_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtra, match=r'needs scipy: pip install "\.\[classes\]"'):
        SimplexRecalibrator(3)


def test_a_prediction_is_overtaken_by_a_forecast_in_its_cell() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    raw, far = [0.6, 0.2, 0.2], [0.0, 0.0, 1.0]
    rec.predict_one(raw)
    rec.forecast(far)
    rec.learn_one(raw, 0)
    rec.predict_one(raw)
    rec.forecast(raw)
    before = rec.to_bytes()
    with pytest.raises(StaleForecast, match="in the same cell came between"):
        rec.learn_one(raw, 0)
    assert rec.to_bytes() == before
    for k in range(300):
        rec.predict_one([k / 300, 0.0, 1.0 - k / 300])
    assert len(rec._notes) == 256


def adversarial(rounds, **options):
    """Play against who picks the class that the mean makes least likely."""
    rng = np.random.default_rng(3)
    rec = SimplexRecalibrator(3, seed=4, **options)
    drawn, outcomes = [], []
    for _ in range(rounds):
        ticket = rec.forecast(rng.dirichlet([1, 1, 1]))
        outcomes.append(int(ticket.mean.argmin()))
        rec.observe(ticket, outcomes[-1])
        drawn.append(ticket.value)
    return rec, np.array(drawn), outcomes


def test_vectors_survive_an_adversary_who_knows_their_mean() -> None:
    rec, drawn, outcomes = adversarial(300, resolution=4, cells=1)
    record = rec.certificate()
    measured = metrics.full_error(drawn, outcomes, power=2)
    assert record.c2 == pytest.approx(measured)
    assert record.c2 <= record.c2_cells + 1e-12
    assert record.holds
    assert record.c2_cells < record.c2_bound < 0.6
    assert f"full C2 <= {record.sure:.4g}; kept" in str(record)


def test_a_record_without_rounds_or_with_late_outcomes_has_no_bound() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    assert rec.certificate().holds is None
    assert "no rounds yet" in str(rec.certificate())
    first, second = rec.forecast([0.6, 0.2, 0.2]), rec.forecast([0.6, 0.2, 0.2])
    rec.observe(second, 0)
    rec.observe(first, 0)
    assert rec.certificate().c2_bound is None
    assert rec.certificate().c2 > 0.0


def test_biased_raw_forecasts_are_put_right() -> None:
    rng = np.random.default_rng(5)
    chances = np.array([0.2, 0.2, 0.6])
    outcomes = rng.choice(3, 400, p=chances)
    raw = np.tile([0.6, 0.2, 0.2], (400, 1))
    run = SimplexRecalibrator(3, resolution=5, cells=1, seed=6).replay(raw, outcomes)
    late = slice(200, None)
    raw_score = metrics.brier(raw[late], outcomes[late])
    assert metrics.brier(run.mean[late], outcomes[late]) < raw_score - 0.15
    assert run.mean[late].mean(axis=0) == pytest.approx(chances, abs=0.08)


@pytest.mark.parametrize(
    ("place", "word"), [("cell", 99), ("cell", -1), ("length", 3), ("issued", 0), ("count", -1)]
)
def test_cells_that_cannot_be_are_refused(place, word) -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    raw, outcomes = stream(1, 3)
    rec.replay(raw, outcomes)
    document = rec._document()
    # A bit for each word that is told, and then forecasts, outcomes and one count.
    array, at = {
        "cell": ("numbers", 0),
        "length": ("numbers", 1),
        "issued": ("rows", 1),
        "count": ("rows", 3),
    }[place]
    document.arrays[array][at] = word
    with pytest.raises(CorruptState):
        SimplexRecalibrator.from_bytes(document.to_bytes())


def test_counts_that_are_not_those_of_the_rounds_are_refused() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    rec.learn_one([1.0, 0.0, 0.0], 0)
    document = rec._document()
    document.arrays["rows"][-1] = 2
    with pytest.raises(CorruptState, match="counts that are not those of the rounds"):
        SimplexRecalibrator.from_bytes(document.to_bytes())
    other = rec.copy()
    other.learn_one([0.0, 0.0, 1.0], 0)
    arrays = rec._document().arrays | {"row": other._document().arrays["row"]}
    mixed = Document(rec.kind, document.settings, arrays, 2)
    with pytest.raises(CorruptState, match="cells whose rounds are not those of all together"):
        SimplexRecalibrator.from_bytes(mixed.to_bytes())


def test_a_cell_that_was_only_looked_at_is_not_stored() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=2, seed=1)
    rec.predict_one([1.0, 0.0, 0.0])
    assert rec._document().arrays["numbers"].size == 0
    rec.learn_one([1.0, 0.0, 0.0], 0)
    assert SimplexRecalibrator.from_bytes(rec.to_bytes()) == rec
