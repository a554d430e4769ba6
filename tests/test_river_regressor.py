"""River regressors with intervals that cover."""

from __future__ import annotations

import itertools
import pickle
import random

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')

from river import (
    checks,
    conf,
    datasets,
    dummy,
    evaluate,
    linear_model,
    metrics,
    preprocessing,
    stats,
)

from calibrant.errors import InvalidInput, InvalidType, UnknownName
from calibrant.integrations.river import RecalibratedRegressor
from calibrant.regression import ConformalInterval, interval_methods


def linear():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


def approval(rounds: int) -> list:
    return list(itertools.islice(datasets.TrumpApproval(), rounds))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RecalibratedRegressor(linear()),
        lambda: (
            preprocessing.StandardScaler()
            | RecalibratedRegressor(linear_model.LinearRegression(), method="sf_ogd")
        ),
    ],
    ids=["wraps a pipeline", "ends a pipeline"],
)
def test_all_checks_of_river_pass(make) -> None:
    random.seed(5)
    assert make()._unit_test_skips() == set()
    checks.check_estimator(make())


@pytest.mark.parametrize("method", interval_methods.names())
def test_intervals_are_those_of_the_errors_before_the_model_learns(method) -> None:
    model = RecalibratedRegressor(linear(), confidence_level=0.8, method=method)
    inner, band = linear(), ConformalInterval(method, coverage=0.8, seed=0)
    for x, y in approval(150):
        centre = inner.predict_one(x)
        low, high = band.copy().predict_one(centre)
        interval = model.predict_one(x, with_interval=True)
        assert isinstance(interval, conf.Interval)
        ends = (low, high) if low <= high else (centre, centre)
        assert (interval.lower, interval.upper) == ends
        assert model.predict_one(x) == centre
        model.learn_one(x, y)
        inner.learn_one(x, y)
        band.observe(band.forecast(centre), y)
    assert model.interval.certificate() == band.certificate()
    for params in RecalibratedRegressor._unit_test_params():
        assert RecalibratedRegressor(**params).confidence_level == 0.9


def test_the_default_method_is_that_of_conformal_intervals() -> None:
    model = RecalibratedRegressor(linear())
    assert model.method == model.interval.method == ConformalInterval().method
    assert model.clone().method == model.method


def test_a_model_that_is_off_to_one_side_gets_intervals_there() -> None:
    rng = np.random.default_rng(6)
    model = RecalibratedRegressor(dummy.StatisticRegressor(stats.Count()))
    for t in range(300):
        model.learn_one({}, t + 9.0 + float(rng.normal()))
    interval = model.predict_one({}, with_interval=True)
    assert 306.0 < interval.lower < interval.upper < 313.0
    assert model.predict_one({}) == 300


def test_an_empty_interval_is_the_prediction_itself() -> None:
    model = RecalibratedRegressor(dummy.StatisticRegressor(stats.Mean()), 0.5, step=2.0)
    for _ in range(5):
        model.learn_one({}, 0.0)
    low, high = model.interval.predict_one(0.0)
    assert low > high
    interval = model.predict_one({}, with_interval=True)
    assert (interval.lower, interval.upper) == (0.0, 0.0)


def test_coverage_holds_through_a_change() -> None:
    rng = np.random.default_rng(2)
    model = RecalibratedRegressor(dummy.StatisticRegressor(stats.Mean()), confidence_level=0.9)
    late = []
    for t in range(2000):
        y = float(rng.normal(0.0, 1.0 if t < 1000 else 5.0))
        late.append(y in model.predict_one({}, with_interval=True))
        model.learn_one({}, y)
    assert abs(np.mean(late[1000:]) - 0.9) < 0.03


def test_late_outcomes_are_learned_too() -> None:
    model = RecalibratedRegressor(linear())
    evaluate.progressive_val_score(approval(100), model, metrics.MAE(), delay=7)
    for x, _ in approval(3):
        model.predict_one(x, with_interval=True)
    evaluate.progressive_val_score(approval(100), model, metrics.MAE(), delay=7)
    assert model.interval.rounds == 200


def test_copies_go_on_and_clones_start_anew() -> None:
    model = RecalibratedRegressor(linear(), 0.8, "pid", window=50)
    for x, y in approval(50):
        model.learn_one(x, y)
    again = pickle.loads(pickle.dumps(model))
    one, other = (each.predict_one(x, with_interval=True) for each in (again, model))
    assert one == other
    fresh = model.clone()
    assert (fresh.confidence_level, fresh.options) == (0.8, {"window": 50})
    assert fresh.interval.rounds == 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"coverage must be between 0 and 1, got 1\.5"):
        RecalibratedRegressor(linear(), confidence_level=1.5)
    with pytest.raises(UnknownName):
        RecalibratedRegressor(linear(), method="nothing")
    model = RecalibratedRegressor(linear())
    with pytest.raises(InvalidType, match="y must be a finite number, got 'much'"):
        model.learn_one({"x": 1.0}, "much")
    with pytest.raises(InvalidInput, match="y must be a finite number, got nan"):
        model.learn_one({"x": 1.0}, float("nan"))
    assert model.interval.rounds == 0
