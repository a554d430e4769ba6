"""Class by class and first classes: what is announced, and what is refused."""

from __future__ import annotations

import math

import naive_classes as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from calibrant import Calibrant, Recalibrator
from calibrant.classes import OneVsRest, TopLabel, recalibrator, vectors
from calibrant.classes import metrics as class_metrics
from calibrant.classes.vectors import (
    cover,
    divided,
    grid,
    grid_size,
    nearest,
    projected,
    shared_out,
)
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType, StaleForecast
from calibrant.metrics import calibration_error
from calibrant.recalibrate import rows as module
from calibrant.recalibrate.body import packed

pytestmark = pytest.mark.base


def stream(rounds, classes, seed=0, sharpness=3.0):
    """Raw forecasts that are too sure, and outcomes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(rounds, classes)) * 1.5
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    outcomes = (chances.cumsum(axis=1) < rng.random((rounds, 1))).sum(axis=1)
    raw = chances**sharpness
    return raw / raw.sum(axis=1, keepdims=True), np.minimum(outcomes, classes - 1)


def seed_inside(rec):
    """Return the seed of which the recalibrators inside take theirs, with their number as key."""
    secret = np.array(rec.to_dict()["arrays"]["secret"], "<i8").tobytes()
    return int.from_bytes(secret, "little", signed=True)


@st.composite
def distributions(draw, rows=4):
    classes = draw(st.integers(2, 6))
    shape = (draw(st.integers(1, rows)), classes)
    table = draw(arrays.arrays(float, shape, elements=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0])))
    table[:, 0] += table.sum(axis=1) == 0.0
    return table / table.sum(axis=1, keepdims=True)


# What comes in.


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ([0.5, 0.5], "raw forecast must have 3 numbers, a class each, got 2"),
        ([0.5, 0.5, math.nan], "raw forecast[2] must be a number in [0, 1], got nan"),
        ([0.5, 0.6, -0.1], "raw forecast[2] must be a number in [0, 1], got -0.1"),
        ([0.5, 0.5, 0.1], "raw forecast must sum to 1 within 1e-06, got 1.1"),
        ([[0.5, 0.5, 0.0]], "raw forecast must be a flat array of numbers in [0, 1], got shape"),
        (["a", "b", "c"], "raw forecast must be a flat array of numbers in [0, 1], got dtype <U1"),
        (None, "raw forecast must be a flat array of numbers in [0, 1], got None"),
        (0.4, "raw forecast must be a flat array of numbers in [0, 1], got 0.4"),
    ],
)
@pytest.mark.parametrize("call", ["forecast", "predict_one", "learn_one"])
@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_bad_vector_is_refused_and_changes_nothing(made, call, raw, told) -> None:
    rec = made(classes=3, seed=1)
    rec.observe(rec.forecast([0.5, 0.3, 0.2]), 1)
    before = rec.to_bytes()
    with pytest.raises((InvalidInput, InvalidType)) as raised:
        getattr(rec, call)(raw, *([1] if call == "learn_one" else []))
    assert str(raised.value).startswith(told)
    assert rec.to_bytes() == before


@pytest.mark.parametrize("outcome", [3, -1, 0.5, "cat", True, None])
@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_an_unknown_class_is_refused_and_changes_nothing(made, outcome) -> None:
    rec = made(classes=3, seed=1)
    ticket = rec.forecast([0.5, 0.3, 0.2])
    before = rec.to_bytes()
    for call in (
        lambda: rec.observe(ticket, outcome),
        lambda: rec.learn_one([0.5, 0.3, 0.2], outcome),
        lambda: rec.replay([[0.5, 0.3, 0.2]], [outcome]),
    ):
        with pytest.raises((InvalidInput, InvalidType), match="outcome"):
            call()
    assert rec.to_bytes() == before
    assert ticket.outcome is None


@pytest.mark.parametrize(
    ("raw", "outcomes", "told"),
    [
        ([[0.5, 0.5, 0.0], [0.4, 0.4, 0.4]], [0, 1], "raw forecasts[1] must sum to 1 within"),
        ([[0.5, 0.5, 0.0], [0.4, 1.4, -0.8]], [0, 1], "raw forecasts[1, 1] must be a number"),
        ([[0.5, 0.5]], [0], "raw forecasts must have rows of 3 numbers, a class each, got 2"),
        ([0.5, 0.5, 0.0], [0], "raw forecasts must be a table, a round a row, got shape (3,)"),
        ([[0.5, 0.5], [1.0]], [0, 0], "raw forecasts must be a table of numbers, got ragged rows"),
        ([["a", "b", "c"]], [0], "raw forecasts must be a table of numbers, got dtype <U1"),
        ([[0.5, 0.5, 0.0]], [0, 1], "arrays must be of one length, got: raw has 1"),
        ([[0.5, 0.5, 0.0]], [3], "outcomes[0] must be a whole number from 0 to 2, got 3"),
        ([[0.5, 0.5, 0.0]], [0.5], "outcomes[0] must be a whole number from 0 to 2, got 0.5"),
        ([[0.5, 0.5, 0.0]], [True], "outcomes must be a flat array of classes, got dtype bool"),
    ],
)
@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_bad_table_is_refused_and_changes_nothing(made, raw, outcomes, told) -> None:
    rec = made(classes=3, seed=1)
    before = rec.to_bytes()
    with pytest.raises((InvalidInput, InvalidType)) as raised:
        rec.replay(raw, outcomes)
    assert str(raised.value).startswith(told)
    assert rec.to_bytes() == before


def test_a_masked_table_is_refused() -> None:
    table = np.ma.masked_array([[0.5, 0.5], [0.5, 0.5]], [[0, 0], [0, 1]])
    with pytest.raises(InvalidInput, match="must be known, got a masked value"):
        vectors.matrix(table, 2)


def test_single_precision_passes_and_half_precision_does_not() -> None:
    table = np.full((1, 3), 1.0 / 3.0)
    assert vectors.matrix(table.astype(np.float32), 3).dtype == np.float64
    with pytest.raises(InvalidInput, match="must sum to 1"):
        vectors.matrix(table.astype(np.float16), 3)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"classes": 1}, "classes must be a whole number from 2 to 1000000, got 1"),
        ({"classes": 3, "engine": "petrol"}, "engine must be one of 'calibrant', 'recalibrator'"),
        ({"classes": 3, "max_open": 0}, "max_open must be a whole number from 1 to"),
        ({"classes": 3, "buckets": 0}, "buckets must be"),
    ],
)
@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_bad_settings_are_refused(made, settings, told) -> None:
    with pytest.raises(InvalidInput) as raised:
        made(**settings)
    assert str(raised.value).startswith(told)


def test_settings_of_their_own_are_checked() -> None:
    with pytest.raises(InvalidInput, match="renormalise must be one of 'none', 'divide', 'proj"):
        OneVsRest(3, renormalise="softmax")
    with pytest.raises(InvalidType, match="conditional must be True or False, got 'yes'"):
        TopLabel(3, conditional="yes")


# Points of the simplex.


@given(st.integers(2, 4), st.integers(1, 5))
def test_the_grid_has_every_point_once(classes, resolution) -> None:
    points = grid(classes, resolution)
    assert list(map(tuple, points.tolist())) == naive.compositions(classes, resolution)
    assert len(points) == grid_size(classes, resolution)


@given(distributions(rows=1), st.integers(1, 5))
def test_the_nearest_point_is_nearest_and_within_the_cover(table, resolution) -> None:
    classes = table.shape[1]
    found = np.array(nearest(table[0], resolution))
    assert found.sum() == resolution
    assert (found >= 0).all()
    distance = float(((found / resolution - table[0]) ** 2).sum())
    assert distance <= naive.nearest_distance(table[0], classes, resolution) + 1e-12
    assert distance <= cover(classes, resolution) + 1e-12


@given(arrays.arrays(float, (3, 4), elements=st.floats(0, 1)))
def test_projection_finds_the_nearest_distribution(rows) -> None:
    made = projected(rows)
    for own, row in zip(made, rows.tolist(), strict=True):
        assert own == pytest.approx(naive.projection(row), abs=1e-9)
    assert np.abs(made.sum(axis=1) - 1.0).max() < 1e-12


@given(arrays.arrays(float, (3, 4), elements=st.floats(0, 1)))
def test_division_keeps_proportions(rows) -> None:
    made = divided(rows)
    assert np.abs(made.sum(axis=1) - 1.0).max() < 1e-9
    for own, row in zip(made, rows, strict=True):
        expected = row / row.sum() if row.sum() else np.full(4, 0.25)
        assert own == pytest.approx(expected)


@given(distributions(), st.data())
def test_the_rest_is_shared_in_proportion_and_the_first_stays_first(table, data) -> None:
    rows, classes = table.shape
    sure = np.array([data.draw(st.integers(0, 20)) / 20 for _ in range(rows)])
    tops = table.argmax(axis=1)
    made = shared_out(table, tops, sure)
    for row, top, q, own in zip(table, tops.tolist(), sure.tolist(), made, strict=True):
        cap = q if q * classes >= 1.0 - 1e-12 else math.inf
        expected = naive.water_filling(np.delete(row, top), 1.0 - q, cap)
        assert own[top] == q
        if q * classes < 1.0 - 1e-12 and np.delete(row, top).sum() == 0.0:
            expected = np.full(classes - 1, (1.0 - q) / (classes - 1))
        assert np.delete(own, top) == pytest.approx(expected, abs=1e-7)
        assert own.sum() == pytest.approx(1.0, abs=1e-9)
        if q * classes > 1.0 + 1e-6:
            assert own.argmax() == top


@pytest.mark.parametrize("least", [1e-310, 1.5e-323, 5e-324])
@pytest.mark.parametrize("sure", [0.35, 0.4, 0.45, 0.6])
def test_the_rest_is_shared_out_to_the_smallest_numbers_too(sure: float, least: float) -> None:
    rows = np.array([[0.5, 0.5, least], [1.0, least, least], [1.0, least, 0.0]])
    small = shared_out(rows, np.zeros(3, np.int64), np.full(3, sure))
    usual = shared_out(
        np.where(rows == least, 1e-300, rows), np.zeros(3, np.int64), np.full(3, sure)
    )
    assert small.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    assert small == pytest.approx(usual, abs=1e-9)


# First classes.


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("engine", ["calibrant", "recalibrator"])
def test_first_classes_are_groups_of_binary_rounds_behind_a_common_one(conditional, engine) -> None:
    raw, outcomes = stream(300, 4, seed=3)
    rec = TopLabel(4, conditional=conditional, engine=engine, seed=5)
    run = rec.replay(raw, outcomes)
    seed = seed_inside(rec)
    made_by = {"calibrant": Calibrant, "recalibrator": Recalibrator}[engine]
    own = {k: made_by(seed=seed, key=k) for k in range(5)}
    for row, y in enumerate(outcomes.tolist()):
        top = int(raw[row].argmax())
        inner, sure = own[top if conditional else 0], float(raw[row, top])
        common = own[4].forecast(sure)
        ticket = inner.forecast(common.mean if conditional else sure)
        inner.observe(ticket, int(top == y))
        own[4].observe(common, int(top == y))
        assert (run.confidence[row], run.confidence_mean[row]) == (ticket.value, ticket.mean)
        assert run.top[row] == top


def test_a_confidence_below_its_share_says_that_it_does_not_lead() -> None:
    rec = TopLabel(4, seed=1)
    raw = [0.4, 0.3, 0.2, 0.1]
    for _ in range(400):
        rec.learn_one(raw, 1)
    ticket = rec.forecast(raw)
    assert ticket.confidence < 0.25
    assert not ticket.leads
    assert ticket.value[0] == ticket.confidence
    assert ticket.value[1] == pytest.approx((1.0 - ticket.confidence) / 2)
    assert not rec.replay([raw], [1]).leads.any()


def test_the_first_class_is_unchanged_wherever_it_can_lead() -> None:
    raw, outcomes = stream(2000, 5, seed=9)
    run = TopLabel(5, seed=2).replay(raw, outcomes)
    assert run.top.tolist() == raw.argmax(axis=1).tolist()
    able = run.confidence > 0.2 + 1e-6
    assert able.mean() > 0.9
    assert (run.forecast.argmax(axis=1) == run.top)[able].all()
    assert run.leads[able].all()
    assert np.abs(run.forecast.sum(axis=1) - 1.0).max() < 1e-9


def test_recalibrators_are_made_for_classes_that_come_first() -> None:
    rec = TopLabel(1000, seed=1)
    raw = np.full(1000, 0.5 / 999)
    raw[[3, 700]] = 0.5, 0.5 / 999
    rec.observe(rec.forecast(raw), 3)
    raw[[3, 700]] = raw[[700, 3]]
    rec.learn_one(raw, 5)
    assert [number for number, _ in rec._roster.used()] == [3, 700, 1000]
    assert sorted(rec.certificate().parts) == [3, 700]
    assert len(rec.to_bytes()) < 50_000
    assert TopLabel.from_bytes(rec.to_bytes()) == rec


def test_an_expired_ticket_is_dropped_inside_too() -> None:
    rec = TopLabel(3, seed=1, max_open=4)
    rec.forecast([0.5, 0.3, 0.2])
    for _ in range(6):
        rec.forecast([0.2, 0.5, 0.3])
    assert rec.open == 4
    record = rec.certificate()
    assert {number: (part.open, part.expired) for number, part in record.parts.items()} == {
        0: (0, 1),
        1: (4, 2),
    }
    assert record.expired == 3


def test_short_groups_of_a_long_batch_use_compiled_code_where_there_is_any(monkeypatch) -> None:
    raw, outcomes = stream(60, 3, seed=8)
    expected = TopLabel(3, seed=1).replay(raw, outcomes).forecast.tolist()
    monkeypatch.setattr(module, "SHORT", 50)
    assert TopLabel(3, seed=1).replay(raw, outcomes).forecast.tolist() == expected


@pytest.mark.parametrize("conditional", [True, False])
def test_a_prediction_is_overtaken_by_any_other_round(conditional) -> None:
    rec = TopLabel(3, conditional=conditional, seed=1)
    for other in ([0.5, 0.2, 0.3], [0.3, 0.5, 0.2]):
        rec.predict_one([0.5, 0.3, 0.2])
        rec.forecast(other)
        before = rec.to_bytes()
        with pytest.raises(StaleForecast):
            rec.learn_one([0.5, 0.3, 0.2], 0)
        assert rec.to_bytes() == before
        # Asked again, it is this round's.
        rec.predict_one([0.5, 0.3, 0.2])
        rec.learn_one([0.5, 0.3, 0.2], 0)


def test_a_preview_of_first_classes_shows_the_next_round_and_changes_nothing() -> None:
    raw, outcomes = stream(300, 4, seed=3)
    for conditional in (True, False):
        rec = TopLabel(4, conditional=conditional, seed=5)
        rec.replay(raw[:200], outcomes[:200])
        before = rec.to_bytes()
        drawn, mean = rec.preview(raw[200:])
        assert rec.to_bytes() == before
        for row in range(3):
            ticket = rec.copy().forecast(raw[200 + row])
            assert ticket.confidence_mean == mean[row]
            # Each row has a coin of its own, the first one the next.
            assert row > 0 or ticket.confidence == drawn[row]


def test_few_predictions_are_remembered() -> None:
    rec = TopLabel(3, seed=1)
    for k in range(300):
        rec.predict_one([0.5 + k / 1000, 0.3 - k / 1000, 0.2])
    assert len(rec._notes) == 256
    rec.learn_one([0.5, 0.3, 0.2], 1)
    assert rec.rounds == 1


# Class by class.


@pytest.mark.parametrize("renormalise", ["none", "divide", "project"])
def test_every_class_is_a_binary_stream(renormalise) -> None:
    raw, outcomes = stream(200, 3, seed=4)
    rec = OneVsRest(3, engine="recalibrator", renormalise=renormalise, seed=5)
    run = rec.replay(raw, outcomes)
    seed = seed_inside(rec)
    for k in range(3):
        own = Recalibrator(seed=seed, key=k).replay(raw[:, k], outcomes == k)
        assert run.classwise[:, k].tolist() == own.forecast.tolist()
        assert run.classwise_mean[:, k].tolist() == own.mean.tolist()
    if renormalise == "none":
        assert run.forecast.tolist() == run.classwise.tolist()
    else:
        assert np.abs(run.forecast.sum(axis=1) - 1.0).max() < 1e-9


@pytest.mark.parametrize("renormalise", ["none", "divide", "project"])
def test_a_preview_class_by_class_shows_the_next_round_and_changes_nothing(renormalise) -> None:
    raw, outcomes = stream(60, 3, seed=3)
    rec = OneVsRest(3, renormalise=renormalise, seed=5)
    rec.replay(raw[:50], outcomes[:50])
    before = rec.to_bytes()
    drawn, mean = rec.preview(raw[50:])
    assert rec.to_bytes() == before
    for row in range(3):
        ticket = rec.copy().forecast(raw[50 + row])
        assert ticket.mean.tolist() == mean[row].tolist()
        # Each row has coins of its own, the first one the next.
        assert row > 0 or ticket.value.tolist() == drawn[row].tolist()


def test_a_prediction_is_overtaken_by_any_round_class_by_class() -> None:
    rec = OneVsRest(3, seed=1)
    raw, other = [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]
    rec.predict_one(raw)
    rec.forecast(other)
    before = rec.to_bytes()
    with pytest.raises(StaleForecast, match="another round came between"):
        rec.learn_one(raw, 0)
    assert rec.to_bytes() == before
    rec.learn_one(raw, 0)
    assert rec.rounds == 1


def test_predictions_without_an_outcome_are_forgotten_in_the_end() -> None:
    rec = OneVsRest(2, engine="recalibrator", seed=1)
    for k in range(300):
        rec.predict_one([k / 300, 1.0 - k / 300])
    assert len(rec._notes) == 256
    rec.learn_one([0.0, 1.0], 1)
    assert rec.rounds == 1


@pytest.mark.slow
def test_a_thousand_classes_class_by_class() -> None:
    rec = OneVsRest(1000, engine="recalibrator", buckets=2, resolution=4, seed=1)
    ticket = rec.forecast(np.full(1000, 0.001))
    rec.observe(ticket, 999)
    assert (rec.rounds, len(rec._roster)) == (1, 1000)


@pytest.mark.slow
def test_renormalising_can_undo_what_was_right_class_by_class() -> None:
    # A classifier that knows class 0 and takes the other two for each other.
    rng = np.random.default_rng(1)
    sure, split = rng.random(4000), rng.random(4000)
    raw = np.column_stack([sure, (1.0 - sure) * split, (1.0 - sure) * (1.0 - split)])
    outcomes = (raw[:, [0, 2, 1]].cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    outcomes = np.minimum(outcomes, 2)
    errors = {}
    for way in ("none", "divide", "project"):
        run = OneVsRest(3, renormalise=way, seed=7).replay(raw, outcomes)
        errors[way] = class_metrics.classwise_error(run.forecast, outcomes, power=2, buckets=20)
    assert errors["none"] < 0.003
    assert errors["divide"] > 2 * errors["none"]
    assert errors["project"] > 2 * errors["none"]


# Both.


def test_an_option_of_another_recalibrator_asks_for_it() -> None:
    assert recalibrator(3, renormalise="none").renormalise == "none"
    assert not recalibrator(5, conditional=False).conditional


def test_rows_of_another_are_refused() -> None:
    rec = TopLabel(3, seed=1)
    rec.learn_one([0.5, 0.3, 0.2], 0)
    document = rec._document()
    document.arrays["numbers"][0] = 1
    with pytest.raises(CorruptState, match="rows of its own, got another's at 1"):
        TopLabel.from_bytes(document.to_bytes())
    settings = {name: told for name, told in document.settings.items() if name != "method"}
    with pytest.raises(CorruptState, match="state must be of a top-label, got 'method'"):
        TopLabel.from_bytes(Document("top-label", settings, document.arrays, 2).to_bytes())


def test_rows_that_were_not_used_or_come_twice_are_refused() -> None:
    rec = TopLabel(3, seed=1)
    rec.learn_one([0.5, 0.3, 0.2], 0)
    document, layout = rec._document(), rec._roster.arena.layout
    start = rec._roster.place(1)
    unused = packed(rec._roster.arena.snapshot()[start : start + len(layout.fresh)], layout)
    for number, words in ((1, unused), (3, document.arrays["row"])):
        arrays = document.arrays | {
            "numbers": np.append(document.arrays["numbers"], [number, len(words)]),
            "rows": np.append(document.arrays["rows"], words),
        }
        with pytest.raises(CorruptState, match=f"a row at {number} that was not used, or twice"):
            TopLabel.from_bytes(Document(rec.kind, document.settings, arrays, 2).to_bytes())


@pytest.mark.parametrize("made", [OneVsRest, TopLabel])
def test_a_row_that_did_not_see_the_rounds_is_refused(made) -> None:
    rec, other = made(3, seed=1), made(3, seed=1)
    for raw in ([0.5, 0.3, 0.2], [0.3, 0.5, 0.2]):
        rec.learn_one(raw, 0)
        other.learn_one(raw, 0)
    other.learn_one([0.5, 0.3, 0.2], 0)
    document, rows = rec._document(), other._document().arrays
    arrays = document.arrays | {name: rows[name] for name in ("numbers", "rows")}
    with pytest.raises(CorruptState, match="classes "):
        made.from_bytes(Document(rec.kind, document.settings, arrays, 2).to_bytes())


def test_rows_come_in_any_order_and_are_stored_in_theirs() -> None:
    one, other = TopLabel(40, seed=1), TopLabel(40, seed=1)
    vectors_of = np.full((40, 40), 0.5 / 39) + np.eye(40) * (0.5 - 0.5 / 39)
    for k in range(40):
        one.predict_one(vectors_of[k])
    for k in reversed(range(40)):
        other.predict_one(vectors_of[k])
    for k in (7, 3, 30):
        one.observe(one.forecast(vectors_of[k]), 3)
        other.observe(other.forecast(vectors_of[k]), 3)
    assert one == other == TopLabel.from_bytes(one.to_bytes())
    assert [number for number, _ in one.copy()._roster.used()] == [3, 7, 30, 40]


def test_certificates_average_over_classes() -> None:
    raw, outcomes = stream(600, 3, seed=6)
    rec = OneVsRest(3, seed=7)
    assert (rec.certificate().c2, rec.certificate().holds) == (0.0, None)
    assert "no rounds yet" in str(rec.certificate())
    run = rec.replay(raw, outcomes)
    record = rec.certificate()
    measured = class_metrics.classwise_error(run.classwise, outcomes, power=2)
    assert record.c2 == pytest.approx(measured)
    assert record.c1 == pytest.approx(class_metrics.classwise_error(run.classwise, outcomes))
    assert record.c2 <= record.bound("C2")
    assert record.bound("pseudo C2") is None
    assert record.holds
    assert f"C2 <= {record.promised('C2'):.4g}; kept" in str(record)
    assert record.to_dict()["parts"]["2"]["rounds"] == 600


def test_certificates_of_first_classes_average_by_rounds() -> None:
    raw, outcomes = stream(600, 3, seed=6)
    rec = TopLabel(3, seed=7)
    run = rec.replay(raw, outcomes)
    table = np.zeros_like(raw)
    table[np.arange(600), run.top] = run.confidence
    measured = class_metrics.top_class_error(table, outcomes, tops=run.top, power=2)
    assert rec.certificate().c2 == pytest.approx(measured)


def test_a_method_without_a_theorem_has_no_bound() -> None:
    rec = TopLabel(3, engine="recalibrator", method="running_mean", seed=1)
    rec.learn_one([0.5, 0.3, 0.2], 1)
    assert rec.certificate().bound("C2") is None
    assert rec.certificate().holds is None


# Guarantees.


@pytest.mark.parametrize("conditional", [True, False])
def test_the_confidence_survives_an_adversary_who_knows_its_mean(conditional) -> None:
    rng = np.random.default_rng(1)
    options = {"engine": "recalibrator", "resolution": 10, "buckets": 4}
    rec = TopLabel(3, conditional=conditional, seed=11, **options)
    drawn, right = [], []
    for _ in range(2500):
        raw = rng.dirichlet([1, 1, 1])
        ticket = rec.forecast(raw)
        outcome = (ticket.top + 1) % 3 if ticket.confidence_mean > 0.5 else ticket.top
        rec.observe(ticket, outcome)
        drawn.append(ticket.confidence)
        right.append(int(outcome == ticket.top))
    assert calibration_error(drawn, right, power=2) < 0.02
    assert rec.certificate().holds


def test_the_numbers_of_each_class_survive_an_adversary_who_knows_their_means() -> None:
    rng = np.random.default_rng(2)
    rec = OneVsRest(3, engine="recalibrator", resolution=10, buckets=4, seed=12)
    drawn, outcomes = [], []
    for _ in range(2000):
        ticket = rec.forecast(rng.dirichlet([1, 1, 1]))
        outcomes.append(int(ticket.classwise_mean.argmin()))
        rec.observe(ticket, outcomes[-1])
        drawn.append(ticket.classwise)
    assert class_metrics.classwise_error(drawn, outcomes, power=2) < 0.02
    assert rec.certificate().holds


@settings(max_examples=8)
@given(distributions(rows=8), st.data())
def test_batches_equal_single_rounds_on_awkward_vectors(table, data) -> None:
    rows, classes = table.shape
    outcomes = [data.draw(st.integers(0, classes - 1)) for _ in range(rows)]
    for made in (
        lambda: OneVsRest(classes, engine="recalibrator", renormalise="project", seed=1),
        lambda: OneVsRest(classes, engine="recalibrator", renormalise="divide", seed=1),
        lambda: TopLabel(classes, engine="recalibrator", seed=1),
    ):
        batch, loop = made(), made()
        run = batch.replay(table, outcomes)
        for row, y in enumerate(outcomes):
            ticket = loop.forecast(table[row])
            assert ticket.value.tolist() == run.forecast[row].tolist()
            assert ticket.mean.tolist() == run.mean[row].tolist()
            loop.observe(ticket, y)
        assert batch == loop
