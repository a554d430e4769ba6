"""Calibration metrics, scorers and the diagram, in scikit-learn's words."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn", reason='needs the extra "sklearn"')

from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from calibrant.classes.metrics import confidence_error
from calibrant.errors import InvalidInput, MissingExtra
from calibrant.integrations.sklearn import (
    OnlineCalibratedClassifier,
    ReliabilityDisplay,
    brier_decomposition,
    calibration_error,
    neg_calibration_error_scorer,
    neg_reliability_scorer,
)
from calibrant.metrics import binned_calibration_error, decomposition

ROUNDS = st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 1)), min_size=1, max_size=40)
KINDS = {"uniform": "width", "quantile": "mass"}


@pytest.mark.parametrize("strategy", KINDS)
@settings(max_examples=40)
@given(rounds=ROUNDS, bins=st.integers(1, 12))
def test_the_error_is_that_of_the_package(strategy, rounds, bins) -> None:
    p, y = (np.array(column) for column in zip(*rounds, strict=True))
    options = {"n_bins": bins, "strategy": strategy}
    expected = {
        power: binned_calibration_error(p, y, buckets=bins, strategy=KINDS[strategy], power=power)
        for power in (1.0, 2.0)
    }
    assert calibration_error(y, p, norm="l1", **options) == pytest.approx(expected[1.0], abs=1e-12)
    squared = calibration_error(y, p, squared=True, **options)
    assert squared == pytest.approx(expected[2.0], abs=1e-12)
    assert calibration_error(y, p, **options) == pytest.approx(np.sqrt(expected[2.0]), abs=1e-9)
    assert calibration_error(y, p, norm="max", **options) >= squared - 1e-12


@settings(max_examples=40)
@given(rounds=ROUNDS, seed=st.integers(0, 100))
def test_a_weight_is_a_repetition(rounds, seed) -> None:
    p, y = (np.array(column) for column in zip(*rounds, strict=True))
    weight = np.random.default_rng(seed).integers(0, 4, len(p))
    if not weight.any():
        weight[0] = 1
    repeated = calibration_error(np.repeat(y, weight), np.repeat(p, weight))
    assert calibration_error(y, p, sample_weight=weight) == pytest.approx(repeated, abs=1e-9)


def test_labels_are_read_as_scikit_learn_reads_them() -> None:
    p = [0.2, 0.4, 0.9]
    expected = calibration_error([0, 1, 1], p)
    assert calibration_error([-1, 1, 1], p) == expected
    assert calibration_error(["no", "yes", "yes"], p, pos_label="yes") == expected
    table = np.column_stack([1.0 - np.array(p), p])
    assert calibration_error(["no", "yes", "yes"], table) == expected
    assert calibration_error([1, 1, 1], table, labels=[0, 1]) == calibration_error([1, 1, 1], p)
    with pytest.raises(ValueError, match=r"pos_label must be given .* got \['no', 'yes'\]"):
        calibration_error(["no", "yes", "yes"], p)


def test_of_several_classes_the_first_is_judged() -> None:
    rng = np.random.default_rng(2)
    table = rng.dirichlet([1.0] * 4, 200)
    y = rng.integers(0, 4, 200)
    expected = confidence_error(table, y, power=2, buckets=10)
    assert calibration_error(y, table, squared=True) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"labels must be 4 labels, a column each, got \[0, 1\]"):
        calibration_error(y, table, labels=[0, 1])


def test_the_parts_of_the_brier_score_add_up() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    parts = brier_decomposition(y, p, n_bins=8, strategy="quantile")
    assert parts == decomposition(p, y, buckets=8, strategy="mass")
    assert parts.brier == pytest.approx(brier_score_loss(y, p))
    total = parts.reliability - parts.resolution + parts.uncertainty
    assert total + parts.within_variance - parts.within_covariance == pytest.approx(parts.brier)
    assert brier_decomposition(y, p.round(1), n_bins=None).within_variance == 0.0


def test_scorers_rank_models_by_their_calibration() -> None:
    X, y = make_classification(600, n_redundant=10, random_state=0)
    for scorer in (neg_calibration_error_scorer, neg_reliability_scorer):
        sure, fair = (
            cross_val_score(model, X, y, scoring=scorer, cv=3).mean()
            for model in (GaussianNB(), OnlineCalibratedClassifier(GaussianNB(), random_state=0))
        )
        assert sure < fair < 0.0
    many = cross_val_score(GaussianNB(), *load_iris(return_X_y=True), cv=3,
                           scoring=neg_calibration_error_scorer)  # fmt: skip
    assert (many < 0.0).all()
    model = GaussianNB().fit(X, y)
    error = calibration_error(y, model.predict_proba(X)[:, 1])
    assert neg_calibration_error_scorer(model, X, y) == -error


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"norm": "l3"}, "norm must be one of 'l1', 'l2', 'max', got 'l3'"),
        ({"strategy": "other"}, "strategy must be one of 'uniform', 'quantile', got 'other'"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1, got 0"),
        ({"sample_weight": [-1, 1]}, "sample_weight must be a flat array of weights"),
        ({"sample_weight": [0, 0]}, "sample_weight must be a flat array of weights"),
        ({"sample_weight": [[1, 2], [1, 2]]}, "sample_weight must be a flat array of weights"),
        ({"sample_weight": [1]}, "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, told) -> None:
    with pytest.raises(ValueError, match=told):
        calibration_error([0, 1], [0.2, 0.4], **options)


def test_forecasts_must_be_probabilities_of_as_many_samples() -> None:
    with pytest.raises(InvalidInput, match=r"y_proba\[1\] must be a number in \[0, 1\], got 1.4"):
        calibration_error([0, 1], [0.2, 1.4])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        calibration_error([0, 1], [0.2])
    with pytest.raises(InvalidInput, match="strategy must be one of"):
        brier_decomposition([0, 1], [0.2, 0.3], strategy="width")


@pytest.fixture
def ax():
    figure = pytest.importorskip("matplotlib.figure", reason='needs the extra "plot"')
    return figure.Figure().add_subplot()


def test_the_diagram_holds_what_it_drew(ax) -> None:
    X, y = make_classification(400, random_state=0)
    model = GaussianNB().fit(X, y)
    made = ReliabilityDisplay.from_estimator(model, X, y, n_bins=5, ax=ax)
    assert (made.ax_, made.figure_, made.name) == (ax, ax.figure, "GaussianNB")
    used = made.curve.count > 0
    assert made.line_.get_xdata().tolist() == made.curve.mean_forecast[used].tolist()
    assert made.curve.count.sum() == 400
    assert len(ax.child_axes[0].patches) == used.sum()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["GaussianNB"]
    lines = len(ax.lines)
    again = made.plot(ax=ax.figure.add_subplot(), name="again", ref_line=False)
    assert len(again.ax_.lines) == lines - 1
    assert again.line_ in again.ax_.lines
    assert again.ax_.get_legend().get_texts()[0].get_text() == "again"


def test_the_diagram_comes_from_predictions_too(ax) -> None:
    y, p = [0, 1, 1, 0, 1, 1], [0.1, 0.2, 0.6, 0.6, 0.9, 0.9]
    made = ReliabilityDisplay.from_predictions(y, p, strategy="quantile", n_bins=3, ax=ax)
    assert made.curve.count.tolist() == [2, 2, 2]
    assert made.ax_.get_legend().get_texts()[0].get_text() == "classifier"


def test_without_axes_the_diagram_is_pyplots() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason='needs the extra "plot"')
    matplotlib.use("agg")
    from matplotlib import pyplot

    made = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.9])
    assert pyplot.figure(made.figure_.number) is made.figure_
    pyplot.close(made.figure_)


def test_without_matplotlib_the_diagram_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[plot\]"'):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.9])
