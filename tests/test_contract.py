"""The laws that every registered calibrator keeps, alone and inside the recalibrator."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import json
import pickle
import pkgutil
import re

import numpy as np
import players
import pytest
import registered
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant.calibrators
from calibrant import Recalibrator
from calibrant.bounds import Bound
from calibrant.calibrators import Calibrator
from calibrant.core.grid import GRIDS, MAX_RESOLUTION, MAX_SPACED
from calibrant.core.place import bucket
from calibrant.errors import CalibrantError, InvalidInput, InvalidType, UnknownName
from calibrant.registry import Registry, calibrators

pytestmark = pytest.mark.base

NAMES = calibrators.names()
SIZES = (2, 5, 20)

VARIANTS = {name: (name, {}) for name in NAMES} | {
    "blackwell, sqrt": ("blackwell", {"step": "sqrt"}),
    "blackwell, fixed": ("blackwell", {"step": "fixed", "eta": 0.25}),
    "blackwell, horizon": ("blackwell", {"step": "fixed", "horizon": 400}),
    "blackwell, expected": ("blackwell", {"updates": "expected"}),
    "exponential_regret, eta": ("exponential_regret", {"eta": 0.5}),
    "exponential_regret, horizon": ("exponential_regret", {"horizon": 400}),
    "exponential_regret, realised": ("exponential_regret", {"updates": "realised"}),
    "polynomial_regret, expected": ("polynomial_regret", {"updates": "expected"}),
}

every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_name = pytest.mark.parametrize("name", NAMES)
every_grid = pytest.mark.parametrize("grid", GRIDS)


def rule_of(variant: str, **options: object) -> Calibrator:
    name, parameters = VARIANTS[variant]
    return calibrators.get(name)(**parameters, **options)


def recalibrator(variant: str, **options: object) -> Recalibrator:
    name, parameters = VARIANTS[variant]
    return Recalibrator(name, **({"buckets": 3, "seed": 11} | parameters | options))


# The calibrator alone.


@pytest.mark.parametrize("size", SIZES)
@every_grid
@every_variant
def test_a_forecast_is_a_distribution_on_the_grid(variant: str, grid: str, size: int) -> None:
    if registered.on_all_cells(VARIANTS[variant][0]) and size > 5:
        size = 8
    rule = rule_of(variant, resolution=size, grid=grid)
    values, rng = rule.lattice.values, np.random.default_rng(size)
    for prior in (0, 2):
        state = rule.start(prior=prior)
        for _ in range(12):
            mixture = rule.forecast(state)
            assert all(0.0 < weight <= 1.0 for weight in mixture.weights)
            assert sum(mixture.weights) == pytest.approx(1.0, abs=1e-14)
            assert mixture.values == tuple(values[list(mixture.indices)])
            assert list(mixture.indices) == sorted(set(mixture.indices))
            if not rule.kernels.full_support:
                low, *rest = mixture.indices
                widths = range(rule.parameters.get("doublings", 0) + 1)
                assert rest in ([], *([low + (1 << width)] for width in widths))
            drawn = int(rng.choice(mixture.indices))
            state = rule.update(state, drawn, int(rng.integers(2)))


@every_grid
@every_variant
def test_an_update_leaves_the_old_state_alone(variant: str, grid: str) -> None:
    rule = rule_of(variant, resolution=5, grid=grid)
    state = rule.start(prior=1)
    for y in (1, 0, 1, 1):
        before = state.copy()
        index = rule.forecast(state).indices[-1]
        after = rule.update(state, index, y)
        assert (state == before).all()
        assert (after != before).any()
        assert len(after) == len(before)
        with pytest.raises(ValueError, match="read-only"):
            state[0] = 1
        state = after


@every_variant
def test_only_a_cell_of_the_mixture_can_have_been_drawn(variant: str) -> None:
    rule = rule_of(variant, resolution=5)
    state = rule.start()
    listed = ", ".join(map(str, rule.forecast(state).indices))
    with pytest.raises(InvalidInput) as refused:
        rule.update(state, 17, 1)
    assert str(refused.value) == f"index must be one of the mixture's {listed}, got 17"
    with pytest.raises(InvalidInput, match=r"^outcome must be 0 or 1, got 2$"):
        rule.update(state, rule.forecast(state).indices[0], 2)


@every_grid
@every_variant
def test_the_pure_steps_and_the_recalibrator_play_alike(variant: str, grid: str) -> None:
    rule = rule_of(variant, resolution=5, grid=grid)
    rec = Recalibrator(rule, buckets=1, seed=3, prior=2)
    state = rule.start(prior=2)
    for y in [1, 1, 0, 1, 0, 0, 1, 1, 1, 0] * 3:
        ticket = rec.forecast(0.5)
        assert ticket.mixture == rule.forecast(state)
        rec.observe(ticket, y)
        state = rule.update(state, ticket.index, y)


# What each says about itself.


def idle_modules(names: list[str], registry: Registry[type]) -> list[str]:
    """Names of calibrator modules from which nothing was registered."""
    busy = {registry.get(name).__module__ for name in registry.names()}
    return [name for name in names if name not in busy]


def test_every_module_registers_a_calibrator() -> None:
    package = calibrant.calibrators
    names = [f"{package.__name__}.{m.name}" for m in pkgutil.iter_modules(package.__path__)]
    for frame in ("arena", "base", "layout"):
        names.remove(f"{package.__name__}.{frame}")
    assert len(NAMES) >= 10
    assert idle_modules(names, calibrators) == []


def test_a_module_that_registers_nothing_would_be_found() -> None:
    assert idle_modules(["calibrant.calibrators.idle"], calibrators) == [
        "calibrant.calibrators.idle"
    ]


def test_the_known_names_are_registered() -> None:
    assert set(NAMES) >= {
        "anchored",
        "foster_hart",
        "regret_matching",
        "exponential_regret",
        "polynomial_regret",
        "blackwell",
        "fading",
        "foster99",
        "growing",
        "running_mean",
    }
    with pytest.raises(UnknownName) as refused:
        Recalibrator("nobody")
    listed = ", ".join(repr(name) for name in NAMES)
    assert str(refused.value) == f"method must be one of {listed}, got 'nobody'"


@every_name
def test_a_calibrator_tells_what_it_promises_and_where_that_comes_from(name: str) -> None:
    made = calibrators.get(name)
    assert made.name == name
    for text in (made.reference, made.guarantee, made.assumption, made.cost):
        assert text
    assert "References" in made.__doc__
    assert re.search(r"\b(19|20)\d\d\b", made.reference)


@every_name
def test_a_calibrator_has_an_example_that_runs(name: str) -> None:
    made = calibrators.get(name)
    examples = doctest.DocTestParser().get_examples(made.__doc__)
    assert len(examples) >= 2
    module = importlib.import_module(made.__module__)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    for found in doctest.DocTestFinder().find(made, name, module=module):
        runner.run(found)
    assert runner.failures == 0


@every_variant
def test_a_calibrator_has_a_bound_that_falls_or_none(variant: str) -> None:
    name = VARIANTS[variant][0]
    for grid in registered.grids(name):
        rule = rule_of(variant, resolution=6, grid=grid)
        found = [rule.bound(10**k, buckets=4, prior=1) for k in (2, 4, 6, 9)]
        if not registered.bounded(name):
            assert found == [None] * 4
            continue
        assert all(isinstance(bound, Bound) for bound in found)
        assert [b.value for b in found] == sorted((b.value for b in found), reverse=True)
        power = 2 if "C2" in found[0].quantity else 1
        assert found[0].value >= rule.lattice.half_cell**power


def test_the_baseline_and_the_rule_that_forgets_have_no_bound() -> None:
    assert {"running_mean", "fading"} <= {name for name in NAMES if not registered.bounded(name)}
    assert registered.bounded("foster_hart")


@every_variant
def test_a_calibrator_is_frozen_and_equal_to_its_like(variant: str) -> None:
    rule = rule_of(variant, resolution=6)
    assert rule == rule_of(variant, resolution=6)
    assert rule != rule_of(variant, resolution=7)
    assert rule.parameters["resolution"] == 6
    assert type(rule)(**rule.parameters) == rule
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.resolution = 7


# Bad parameters.


def finest(name: str) -> int:
    """The finest of the grids that a calibrator comes with."""
    return MAX_SPACED if calibrators.get(name)().grid == "graded" else MAX_RESOLUTION


POSITIVE = "eta must be a finite number above 0, got "


@pytest.mark.parametrize(
    ("variant", "options", "error", "text"),
    [
        *[
            (
                name,
                {"resolution": 0},
                InvalidInput,
                f"resolution must be a whole number from 1 to {finest(name)}, got 0",
            )
            for name in NAMES
        ],
        *[
            (
                name,
                {"grid": "x"},
                InvalidInput,
                "grid must be one of 'endpoints', 'midpoints', 'logit', 'arcsine', 'graded', "
                "got 'x'",
            )
            for name in NAMES
        ],
        (
            "foster_hart",
            {"resolution": True},
            InvalidType,
            "resolution must be a whole number from 1 to 16384, got True",
        ),
        (
            "blackwell",
            {"step": "x"},
            InvalidInput,
            "step must be one of 'fixed', 'sqrt', 'adaptive', got 'x'",
        ),
        (
            "blackwell",
            {"updates": None},
            InvalidInput,
            "updates must be one of 'realised', 'expected', got None",
        ),
        (
            "blackwell",
            {"step": "fixed"},
            InvalidInput,
            "step 'fixed' needs one of eta and horizon, got eta=None, horizon=None",
        ),
        (
            "blackwell",
            {"step": "fixed", "eta": 1, "horizon": 2},
            InvalidInput,
            "step 'fixed' needs one of eta and horizon, got eta=1.0, horizon=2",
        ),
        (
            "blackwell",
            {"eta": 0.5},
            InvalidInput,
            "step 'adaptive' takes neither eta nor horizon, got eta=0.5, horizon=None",
        ),
        (
            "blackwell",
            {"step": "sqrt", "horizon": 9},
            InvalidInput,
            "step 'sqrt' takes neither eta nor horizon, got eta=None, horizon=9",
        ),
        ("blackwell", {"step": "fixed", "eta": 0}, InvalidInput, POSITIVE + "0"),
        ("blackwell", {"step": "fixed", "eta": "1"}, InvalidType, POSITIVE + "'1'"),
        (
            "blackwell",
            {"step": "fixed", "horizon": 0},
            InvalidInput,
            "horizon must be a whole number of at least 1, got 0",
        ),
        ("exponential_regret", {"eta": float("inf")}, InvalidInput, POSITIVE + "inf"),
        ("exponential_regret", {"eta": -1.5}, InvalidInput, POSITIVE + "-1.5"),
        (
            "exponential_regret",
            {"horizon": 2.5},
            InvalidInput,
            "horizon must be a whole number of at least 1, got 2.5",
        ),
        (
            "exponential_regret",
            {"eta": 1, "horizon": 9},
            InvalidInput,
            "eta must be None where horizon is given, got 1.0 and 9",
        ),
        (
            "exponential_regret",
            {"updates": "x"},
            InvalidInput,
            "updates must be one of 'expected', 'realised', got 'x'",
        ),
        (
            "polynomial_regret",
            {"updates": "x"},
            InvalidInput,
            "updates must be one of 'expected', 'realised', got 'x'",
        ),
        (
            "exponential_regret",
            {"grid": "midpoints", "resolution": 1},
            InvalidInput,
            "resolution must give two grid points, got 1",
        ),
        (
            "polynomial_regret",
            {"grid": "midpoints", "resolution": 1},
            InvalidInput,
            "resolution must give two grid points, got 1",
        ),
    ],
    ids=str,
)
def test_a_bad_parameter_is_refused(variant: str, options: dict, error: type, text: str) -> None:
    for make in (calibrators.get(variant), lambda **given: Recalibrator(variant, **given)):
        with pytest.raises(error) as refused:
            make(**options)
        assert isinstance(refused.value, CalibrantError)
        assert str(refused.value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prior": -1}, "prior must be a whole number from 0 to 1048576, got -1"),
        ({"prior": 0.5}, "prior must be a whole number from 0 to 1048576, got 0.5"),
        ({"prior": 2**21}, "prior must be a whole number from 0 to 1048576, got 2097152"),
        ({"centre": 1.5}, "centre must be a number in [0, 1], got 1.5"),
        ({"centre": float("nan")}, "centre must be a number in [0, 1], got nan"),
    ],
)
def test_a_calibrator_does_not_start_from_nonsense(options: dict, text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rule_of("foster_hart").start(**options)
    assert str(refused.value) == text


@every_variant
def test_a_calibrator_starts_anywhere(variant: str) -> None:
    rule = rule_of(variant, resolution=4)
    for centre in (0.0, 0.3, 0.25, np.float64(0.5), 1):
        mean = rule.forecast(rule.start(prior=3, centre=centre)).mean
        assert abs(mean - centre) <= rule.lattice.half_cell or rule.kernels.full_support


# Inside the recalibrator: one step and batch, plain and compiled.


@every_grid
@every_variant
def test_tickets_single_calls_and_batches_play_the_same_game(variant: str, grid: str) -> None:
    rounds = 60 if registered.on_all_cells(VARIANTS[variant][0]) else 200
    raw, outcomes = players.stream(rounds, 4, edges=3)
    one, other, third = (recalibrator(variant, resolution=5, grid=grid) for _ in range(3))
    values, means = players.by_tickets(one, raw, outcomes)
    assert players.one_by_one(other, raw, outcomes) == values
    with players.batches(third, "plain"):
        run = third.replay(raw, outcomes)
    assert run.forecast.tolist() == values
    assert run.mean.tolist() == means
    assert run.bucket.tolist() == [bucket(p, 3) for p in raw]
    assert run.ticket.tolist() == list(range(rounds))
    assert len(run) == rounds
    assert one.to_bytes() == other.to_bytes() == third.to_bytes()
    assert one == third
    assert one.certificate() == third.certificate()


@pytest.mark.parametrize(
    "options",
    [
        {"prior": 0},
        {"prior": 7, "loss": "log"},
        {"loss": "spherical"},
        {"loss": "misclassification"},
    ],
)
@every_name
def test_prior_and_loss_change_nothing_about_that(name: str, options: dict) -> None:
    raw, outcomes = players.stream(70, 5)
    one, other, third = (recalibrator(name, resolution=6, **options) for _ in range(3))
    values, _ = players.by_tickets(one, raw, outcomes)
    assert players.one_by_one(other, raw, outcomes) == values
    assert third.replay(raw, outcomes).forecast.tolist() == values
    assert one.to_bytes() == other.to_bytes() == third.to_bytes()


@every_name
def test_single_calls_through_the_machine_are_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, outcomes = players.stream(150, 6, edges=3)
    plain, fast = (recalibrator(name, resolution=5) for _ in range(2))
    with players.machine(fast.spec.program):
        assert fast.compile() is fast
        for k, (p, y) in enumerate(zip(raw, outcomes, strict=True)):
            if k % 3 == 0:
                a, b = plain.forecast(p), fast.forecast(p)
                assert (a.value, a.mean, a.clock, a.place) == (b.value, b.mean, b.clock, b.place)
                plain.observe(a, y)
                fast.observe(b, y)
                if k % 9 == 0:
                    plain.correct(a, 1 - y)
                    fast.correct(b, 1 - y)
            else:
                assert plain.predict_one(p) == fast.predict_one(p)
                plain.learn_one(p, y)
                fast.learn_one(p, y)
            if k % 40 == 0:
                assert plain.replay(raw[:3], outcomes[:3]).mean.tolist() == (
                    fast.replay(raw[:3], outcomes[:3]).mean.tolist()
                )
                assert plain.to_bytes() == fast.to_bytes()
    assert plain.to_bytes() == fast.to_bytes()


# Every raw forecast.


def edges_and_neighbours(buckets: int) -> list[float]:
    edges = [k / buckets for k in range(buckets + 1)]
    near = [float(np.nextafter(e, to)) for e in edges for to in (-1.0, 2.0)]
    return [p for p in [-0.0, 5e-324, *edges, *near] if 0.0 <= p <= 1.0]


@every_name
def test_every_raw_forecast_has_a_bucket_and_a_forecast(name: str) -> None:
    for buckets in (1, 7, 20):
        raw = edges_and_neighbours(buckets)
        outcomes = [k % 2 for k in range(len(raw))]
        one, other, third = (recalibrator(name, buckets=buckets, resolution=4) for _ in range(3))
        tickets = [one.forecast(p) for p in raw]
        assert [t.bucket for t in tickets] == [bucket(p, buckets) for p in raw]
        run = other.replay(raw, outcomes, available=np.full(len(raw), np.inf))
        assert run.bucket.tolist() == [t.bucket for t in tickets]
        assert run.forecast.tolist() == [t.value for t in tickets]
        assert one.to_bytes() == other.to_bytes()
        for p, y in zip(raw, outcomes, strict=True):
            third.predict_one(p)
            third.learn_one(p, y)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 50), st.sampled_from(NAMES)
)
@settings(max_examples=40)
def test_any_raw_forecasts_play_alike_one_by_one_and_in_a_batch(raw, buckets, name) -> None:
    outcomes = [int(p < 0.4) for p in raw]
    one, other = (recalibrator(name, buckets=buckets, resolution=3) for _ in range(2))
    assert (
        players.by_tickets(one, raw, outcomes)[0] == other.replay(raw, outcomes).forecast.tolist()
    )
    assert one.to_bytes() == other.to_bytes()


# State.


@every_variant
def test_the_state_does_not_grow_with_the_rounds(variant: str) -> None:
    rec = recalibrator(variant, resolution=4)
    raw, outcomes = players.stream(100, 7)
    body, empty, words = rec.spec.body, len(rec.to_bytes()), len(rec._arena.snapshot())
    for _ in range(4):
        rec.replay(raw, outcomes)
        changed = int((rec._arena.row()[body.places] != body.fresh).sum())
        # A word at most for each one that is not what it was at first, and there are only so many.
        assert empty < len(rec.to_bytes()) <= empty + 8 * (1 + changed)
        assert len(rec._arena.snapshot()) == words
    assert rec.open == 0


def resumed(rec: Recalibrator, way: str) -> Recalibrator:
    if way == "bytes":
        return Recalibrator.from_bytes(rec.to_bytes())
    if way == "json":
        return Recalibrator.from_dict(json.loads(json.dumps(rec.to_dict())))
    if way == "pickle":
        return pickle.loads(pickle.dumps(rec))
    return rec.copy()


@pytest.mark.parametrize("way", ["bytes", "json", "pickle", "copy"])
@every_variant
def test_cut_anywhere_stored_and_resumed_nothing_changes(variant: str, way: str) -> None:
    raw, outcomes = players.stream(40, 8)
    rec = recalibrator(variant, resolution=4, prior=1, max_open=50)
    whole = recalibrator(variant, resolution=4, prior=1, max_open=50)
    for k, (p, y) in enumerate(zip(raw, outcomes, strict=True)):
        before = rec.to_bytes()
        rec = resumed(rec, way) if k % 7 == 0 else rec
        assert rec.to_bytes() == before
        mine, its = rec.forecast(p), whole.forecast(p)
        assert (mine.value, mine.mean, mine.id) == (its.value, its.mean, its.id)
        if k % 5:
            rec = resumed(rec, way) if k % 7 == 1 else rec
            rec.observe(mine, y)
            whole.observe(its, y)
    assert rec.to_bytes() == whole.to_bytes()
    assert rec.certificate() == whole.certificate()


@every_grid
@every_name
def test_a_fresh_recalibrator_can_be_stored_too(name: str, grid: str) -> None:
    rec = recalibrator(name, resolution=4, grid=grid, prior=3, loss="log", key="k")
    again = Recalibrator.from_bytes(rec.to_bytes())
    assert again == rec
    assert again.calibrator == rec.calibrator
    assert (again.buckets, again.prior, again.rounds, again.issued) == (3, 3, 0, 0)
    assert repr(again) == repr(rec)
    assert again.forecast(0.3).value == rec.forecast(0.3).value


def test_recalibrators_are_equal_by_state() -> None:
    one, other = recalibrator("foster_hart"), recalibrator("foster_hart")
    assert one == other
    one.learn_one(0.5, 1)
    assert one != other
    assert one != "something else"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_recalibrator_says_what_it_is() -> None:
    rec = Recalibrator("blackwell", resolution=5, buckets=2, seed=1)
    rec.learn_one(0.5, 1)
    assert repr(rec) == (
        "Recalibrator('blackwell', resolution=5, grid='endpoints', step='adaptive', eta=None, "
        "horizon=None, updates='realised', buckets=2, prior=1, rounds=1)"
    )


@every_variant
def test_looking_ahead_changes_nothing(variant: str) -> None:
    rec = recalibrator(variant, resolution=4)
    raw, outcomes = players.stream(30, 9)
    for p, y in zip(raw, outcomes, strict=True):
        before = rec.to_bytes()
        drawn = [rec.predict_one(q) for q in (p, 0.0, 0.5, 1.0, p)]
        assert drawn[0] == drawn[-1]
        assert rec.to_bytes() == before
        assert rec.copy().forecast(p).value == drawn[0]
        rec.learn_one(p, y)
