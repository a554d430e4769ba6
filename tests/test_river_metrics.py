"""Calibration metrics in River's manner: update, revert, get."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("river", reason='needs the extra "river"')

from river import datasets, evaluate, linear_model, metrics, preprocessing, utils

from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.river import Brier, CalibrationError, Reliability
from calibrant.metrics import binned_calibration_error, brier, calibration_error, decomposition

ROUNDS = st.lists(st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.booleans()), min_size=1)
KINDS = {
    "Brier": (Brier, lambda p, y: brier(p, y)),
    "CalibrationError": (
        lambda: CalibrationError(buckets=7, power=2.0),
        lambda p, y: binned_calibration_error(p, y, buckets=7, power=2.0),
    ),
    "CalibrationError, exact": (
        lambda: CalibrationError(buckets=None),
        lambda p, y: calibration_error(p, y),
    ),
    "Reliability": (
        lambda: Reliability(buckets=5),
        lambda p, y: decomposition(p, y, buckets=5).reliability,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(rounds=ROUNDS, more=ROUNDS)
def test_a_metric_is_that_of_the_rounds_and_reverts_without_a_trace(kind, rounds, more) -> None:
    make, batch = KINDS[kind]
    metric = make()
    for p, y in rounds:
        metric.update(y, p)
    forecasts, outcomes = zip(*rounds, strict=True)
    expected = batch(list(forecasts), np.array(outcomes))
    assert metric.get() == pytest.approx(expected, abs=1e-12)
    before = metric.get()
    for p, y in more:
        metric.update(y, {False: 1.0 - p, True: p})
    for p, y in more:
        metric.revert(y, p)
    assert metric.get() == before


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_know_their_place_in_river(kind) -> None:
    metric = KINDS[kind][0]()
    assert metric.get() == 0.0
    assert not metric.bigger_is_better
    assert not metric.requires_labels
    assert not metric.works_with_weights
    assert metric.works_with(linear_model.LogisticRegression())
    assert not metric.works_with(linear_model.LinearRegression())
    better = metric.clone()
    metric.update(True, 0.2)
    better.update(True, 0.9)
    assert better.is_better_than(metric)
    assert pickle.loads(pickle.dumps(metric)).get() == metric.get()
    assert repr(metric).startswith(f"{type(metric).__name__}: 0.")


def test_metrics_follow_progressive_validation_together_and_over_a_window() -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    all_three = metrics.LogLoss() + Brier() + CalibrationError() + Reliability()
    evaluate.progressive_val_score(datasets.Phishing().take(300), model.clone(), all_three)
    assert 0.0 < all_three[3].get() < all_three[1].get() < 0.25
    window = utils.Rolling(Brier, window_size=50)
    last = Brier()
    for k, (x, y) in enumerate(datasets.Phishing().take(300)):
        p = model.predict_proba_one(x)
        window.update(y, p)
        if k >= 250:
            last.update(y, p)
        model.learn_one(x, y)
    assert window.get() == last.get()


def test_one_label_of_several_can_be_followed() -> None:
    metric = Brier(pos_val="cat")
    metric.update("cat", {"cat": 0.5, "dog": 0.5})
    metric.update("dog", {"dog": 1.0})
    assert metric.get() == 0.125


def test_the_diagram_comes_with_counts_and_bands() -> None:
    metric = Reliability(buckets=2)
    for y in (True, False, True, True):
        metric.update(y, 0.6)
    curve = metric.curve(confidence=0.9)
    assert curve.count.tolist() == [0, 4]
    assert curve.mean_outcome[1] == 0.75
    assert curve.band_low[1] < 0.75 < curve.band_high[1]
    assert curve.confidence == 0.9
    assert metric.decomposition().brier == pytest.approx(0.21)


def test_what_cannot_be_counted_is_refused() -> None:
    metric = Brier()
    with pytest.raises(
        InvalidInput, match=r"w must be 1: rounds are counted, not weighed, got 2\.0"
    ):
        metric.update(True, 0.5, w=2.0)
    with pytest.raises(InvalidInput, match=r"y_pred must be a number in \[0, 1\], got 1.5"):
        metric.update(True, 1.5)
    with pytest.raises(InvalidType, match=r"y_pred must be a number in \[0, 1\], got None"):
        metric.update(True, None)
    with pytest.raises(InvalidInput, match="power must be a finite number of at least 1"):
        CalibrationError(power=0.5)
    with pytest.raises(InvalidInput, match="buckets must be a whole number"):
        Reliability(buckets=0)
    with pytest.raises(InvalidInput, match="round must be one that was added before"):
        metric.revert(True, 0.5)
    assert metric.get() == 0.0
