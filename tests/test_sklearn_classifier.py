"""A scikit-learn classifier that goes on calibrating: its manners, and what it learns."""

from __future__ import annotations

import copy
import pickle
from unittest import SkipTest

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs the extra "sklearn"')

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant import Calibrant, Recalibrator
from calibrant.classes import ClassCalibrant, TopLabel
from calibrant.errors import InvalidInput, UnknownName
from calibrant.integrations.live import engine_for, preview_rows
from calibrant.integrations.sklearn import OnlineCalibratedClassifier

ROWS = (
    "rows are rounds in their order: a weight is given to the estimator, and is no repetition "
    "of a round"
)


def explained(estimator) -> dict[str, str]:
    dense = {"check_sample_weight_equivalence_on_dense_data": ROWS}
    if isinstance(estimator.estimator, GaussianNB):
        return dense
    return dense | {"check_sample_weight_equivalence_on_sparse_data": ROWS}


@parametrize_with_checks(
    [
        OnlineCalibratedClassifier(),
        OnlineCalibratedClassifier(GaussianNB(), method="foster_hart"),
        OnlineCalibratedClassifier(LinearSVC(), method="foster_hart"),
    ],
    expected_failed_checks=explained,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_unexplained(estimator, check) -> None:
    try:
        check(estimator)
    except SkipTest as reason:
        # No support for other arrays is claimed, so there is nothing to check.
        if "SCIPY_ARRAY_API" not in str(reason):
            raise


@pytest.fixture(scope="module")
def two():
    return make_classification(600, n_informative=4, flip_y=0.2, random_state=1)


@pytest.fixture(scope="module")
def three():
    return load_iris(return_X_y=True)


def naive(**options) -> OnlineCalibratedClassifier:
    return OnlineCalibratedClassifier(
        GaussianNB(), **({"method": "foster_hart", "random_state": 3} | options)
    )


def mean_of(rec, raws) -> list[float]:
    return [min(max(rec.copy().forecast(float(raw)).mean, 0.0), 1.0) for raw in raws]


# Learning.


def test_fit_learns_from_scores_of_rows_that_were_held_out(two) -> None:
    X, y = two
    model = naive(cv=3).fit(X, y)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")
    rec = Recalibrator(seed=3)
    rec.replay(held_out[:, 1] / held_out.sum(axis=1), y)
    assert model.recalibrator_ == rec
    assert np.array_equal(model.estimator_.theta_, GaussianNB().fit(X, y).theta_)
    raws = model.estimator_.predict_proba(X[:5])[:, 1]
    assert model.predict_proba(X[:5])[:, 1].tolist() == mean_of(rec, raws)


def test_batches_are_scored_before_anything_learns_them(two) -> None:
    X, y = two
    model, inner, rec = naive(), GaussianNB(), Recalibrator(seed=3)
    for start in range(0, 600, 50):
        part = slice(start, start + 50)
        if start:
            table = inner.predict_proba(X[part])
            raw = (table / table.sum(axis=1, keepdims=True))[:, 1]
            assert model.predict_proba(X[part][:3])[:, 1].tolist() == mean_of(rec, raw[:3])
            rec.replay(raw, y[part])
        inner.partial_fit(X[part], y[part], classes=[0, 1])
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.recalibrator_ == rec
    assert rec.rounds == 550
    assert np.array_equal(model.estimator_.theta_, inner.theta_)


def test_the_default_is_the_default_of_this_package(two) -> None:
    X, y = two
    model = OnlineCalibratedClassifier(GaussianNB(), random_state=5).fit(X[:200], y[:200])
    table = cross_val_predict(GaussianNB(), X[:200], y[:200], cv=5, method="predict_proba")
    rec = Calibrant(seed=5)
    rec.replay(table[:, 1] / table.sum(axis=1), y[:200])
    assert model.recalibrator_ == rec


def test_a_frozen_estimator_stays_as_it_is(two) -> None:
    X, y = two
    inner = GaussianNB().fit(X[:200], y[:200])
    before = inner.theta_.copy()
    model = naive()
    model.set_params(estimator=FrozenEstimator(inner))
    model.partial_fit(X[200:400], y[200:400])
    rec = Recalibrator(seed=3)
    table = inner.predict_proba(X)
    raw = (table / table.sum(axis=1, keepdims=True))[:, 1]
    rec.replay(raw[200:400], y[200:400])
    assert model.recalibrator_ == rec
    assert model.classes_.tolist() == [0, 1]
    model.fit(X[400:], y[400:])
    fresh = Recalibrator(seed=3)
    fresh.replay(raw[400:], y[400:])
    assert model.recalibrator_ == fresh
    assert np.array_equal(inner.theta_, before)


def test_a_frozen_estimator_must_be_fitted(two) -> None:
    X, y = two
    model = OnlineCalibratedClassifier(FrozenEstimator(GaussianNB()))
    with pytest.raises(NotFittedError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.partial_fit(X, y, classes=[0, 1])


def test_an_estimator_that_cannot_learn_along_stays_as_it_was_fitted_first(two) -> None:
    X, y = two
    model = OnlineCalibratedClassifier(KNeighborsClassifier(), method="foster_hart")
    model.partial_fit(X[:200], y[:200], classes=[0, 1])
    assert model.recalibrator_.rounds == 200
    first = model.estimator_.predict_proba(X)
    model.partial_fit(X[200:], y[200:])
    assert model.recalibrator_.rounds == 600
    assert np.array_equal(model.estimator_.predict_proba(X), first)


def test_decisions_are_taken_for_log_odds(two) -> None:
    X, y = two
    inner = Perceptron(random_state=0).fit(X[:300], y[:300])
    model = OnlineCalibratedClassifier(
        FrozenEstimator(inner), method="foster_hart", random_state=1
    ).fit(X[300:], y[300:])
    rec = Recalibrator(seed=1)
    rec.replay(1.0 / (1.0 + np.exp(-inner.decision_function(X[300:]))), y[300:])
    assert model.recalibrator_.rounds == rec.rounds
    assert model.recalibrator_.certificate().raw_loss == pytest.approx(rec.certificate().raw_loss)


def test_labels_may_be_words(two) -> None:
    X, y = two
    words = np.array(["no", "yes"])[y]
    model, plain = naive().fit(X, words), naive().fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert set(model.predict(X)) <= {"no", "yes"}


def test_rows_without_weight_are_no_rounds(two) -> None:
    X, y = two
    weight = np.arange(600) % 3
    model = naive().partial_fit(X[:90], y[:90], classes=[0, 1])
    model.partial_fit(X[90:], y[90:], sample_weight=weight[90:])
    other = naive().partial_fit(X[:90], y[:90], classes=[0, 1])
    kept = np.flatnonzero(weight[90:]) + 90
    other.partial_fit(X[kept], y[kept], sample_weight=weight[kept])
    assert model.recalibrator_ == other.recalibrator_
    assert naive().fit(X, y, sample_weight=weight).recalibrator_.rounds == 400


# More than two classes.


def test_three_classes_are_mended_and_calibrated(three) -> None:
    X, y = three
    order = np.random.default_rng(0).permutation(len(X))
    model = naive().fit(X[order], y[order])
    assert isinstance(model.recalibrator_, ClassCalibrant)
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert (model.predict(X) == y).mean() > 0.9
    rec = model.recalibrator_.copy()
    table = model.estimator_.predict_proba(X[:1])
    ticket = rec.forecast((table / table.sum())[0])
    assert np.allclose(chances[0], ticket.mean)
    assert model.sample_proba(X[:1])[0].tolist() == ticket.value.tolist()


def test_many_classes_are_mended_and_calibrated(two) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 6, 400)
    X = rng.normal(size=(400, 2)) + np.column_stack([y, y % 3])
    for method in ("foster_hart", "calibrant"):
        model = naive(method=method).partial_fit(X[:100], y[:100], classes=range(6))
        model.partial_fit(X[100:], y[100:])
        assert isinstance(model.recalibrator_, ClassCalibrant)
        chances = model.predict_proba(X[:3])
        for row, raw in zip(chances, model.estimator_.predict_proba(X[:3]), strict=True):
            ticket = model.recalibrator_.copy().forecast(raw / raw.sum())
            assert np.allclose(row, np.clip(ticket.mean, 0.0, 1.0))
        drawn = model.sample_proba(X[:1])[0]
        first = model.estimator_.predict_proba(X[:1])[0]
        first /= first.sum()
        assert drawn.tolist() == model.recalibrator_.copy().forecast(first).value.tolist()


def test_one_first_class_for_all_can_be_previewed_too() -> None:
    engine = TopLabel(5, conditional=False, engine="recalibrator", seed=1)
    rows = np.full((4, 5), 0.1) + 0.5 * np.eye(5)[[0, 3, 3, 1]]
    engine.replay(rows, [0, 3, 1, 2])
    draws, means = preview_rows(engine, rows)
    ticket = engine.copy().forecast(rows[0])
    assert draws[0].tolist() == ticket.value.tolist()
    assert np.allclose(means[0], ticket.mean)
    assert repr(engine_for(5, "calibrant", 1, {})).startswith("ClassCalibrant(classes=5")


def test_classes_that_have_not_come_yet_are_possible(three) -> None:
    X, y = three
    model = OnlineCalibratedClassifier(
        FrozenEstimator(GaussianNB().fit(X[:100], y[:100])), method="foster_hart"
    )
    model.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert model.predict_proba(X[:2]).shape == (2, 3)
    fixed = OnlineCalibratedClassifier(KNeighborsClassifier(), method="foster_hart")
    fixed.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert fixed.predict_proba(X[:2]).shape == (2, 3)


# Forecasting.


def test_the_mean_is_steady_and_the_draw_is_on_the_grid(two) -> None:
    X, y = two
    model = naive().fit(X, y)
    before = model.recalibrator_.to_bytes()
    assert np.array_equal(model.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(model.predict_proba(X[5:9]), model.predict_proba(X)[5:9])
    drawn = model.sample_proba(X)
    assert np.array_equal(drawn, model.sample_proba(X))
    assert np.allclose((drawn * 20).round(), drawn * 20)
    assert np.array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    assert model.recalibrator_.to_bytes() == before
    raw = model.estimator_.predict_proba(X[:1])
    ticket = model.recalibrator_.copy().forecast(float(raw[0, 1] / raw.sum()))
    assert drawn[0, 1] == ticket.value


def test_draws_depend_on_the_random_state(two) -> None:
    X, y = two
    states = (1, 1, 2, np.random.RandomState(1), np.random.RandomState(1), None)
    drawn = [naive(random_state=s).fit(X, y).sample_proba(X) for s in states]
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[3], drawn[4])
    assert not np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0], drawn[5])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "sample_proba"])
def test_nothing_is_forecast_before_something_is_learned(method) -> None:
    with pytest.raises(NotFittedError):
        getattr(OnlineCalibratedClassifier(), method)([[1.0]])


# Manners.


def test_copies_go_on_and_clones_start_anew(two) -> None:
    X, y = two
    model = naive(options={"buckets": 5}).fit(X[:300], y[:300])
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.recalibrator_ == model.recalibrator_
        again.partial_fit(X[300:], y[300:])
        assert again.recalibrator_.rounds == 600
    fresh = clone(model)
    assert fresh.get_params()["options"] == {"buckets": 5}
    assert not hasattr(fresh, "recalibrator_")
    assert model.recalibrator_.buckets == 5


def test_it_works_in_pipelines_and_searches(two) -> None:
    X, y = two
    pipe = make_pipeline(StandardScaler(), naive()).fit(X, y)
    assert pipe.predict_proba(X).shape == (600, 2)
    inside = OnlineCalibratedClassifier(
        make_pipeline(StandardScaler(), GaussianNB()), method="foster_hart", random_state=3
    ).fit(X, y)
    inside.partial_fit(X[:50], y[:50])
    assert inside.recalibrator_.rounds == 650
    search = GridSearchCV(naive(), {"estimator__var_smoothing": [1e-9, 1.0]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"estimator__var_smoothing"}


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_the_output_of_transformers_does_not_matter(two, output) -> None:
    if output != "default":
        pytest.importorskip(output, reason="looks at another kind of frame")
    X, y = two
    expected = make_pipeline(StandardScaler(), naive()).fit(X, y).predict_proba(X)
    with sklearn.config_context(transform_output=output):
        pipe = make_pipeline(StandardScaler(), naive()).fit(X, y)
        made = pipe.predict_proba(X)
    assert type(made) is np.ndarray
    assert np.array_equal(made, expected)


def test_names_of_features_are_known(two) -> None:
    pandas = pytest.importorskip("pandas", reason="names its columns")
    X, y = two
    frame = pandas.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    model = naive().fit(frame, y)
    assert model.n_features_in_ == X.shape[1]
    assert model.feature_names_in_[0] == "x0"
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(frame.rename(columns={"x0": "other"}))


def test_metadata_is_routed_to_the_estimator(two) -> None:
    X, y = two
    weight = 1.0 + np.arange(600) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        inner.set_partial_fit_request(sample_weight=True)
        model = naive().set_params(estimator=inner)
        model.set_fit_request(sample_weight=True).set_partial_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weight)
        assert np.array_equal(model.estimator_.theta_, GaussianNB().fit(X, y, weight).theta_)
        model.partial_fit(X, y, sample_weight=weight)
        twice = GaussianNB().fit(X, y, weight).partial_fit(X, y, sample_weight=weight)
        assert np.array_equal(model.estimator_.theta_, twice.theta_)
        refused = naive().set_params(estimator=GaussianNB())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            refused.fit(X, y, sample_weight=weight)


# What cannot be.


class Silent(ClassifierMixin, BaseEstimator):
    """Say nothing but a class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Unsure(Silent):
    """Have no finite number to say."""

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


@pytest.mark.parametrize(
    ("model", "error", "told"),
    [
        (OnlineCalibratedClassifier(Silent()), AttributeError, "estimator must have predict_proba"),
        (OnlineCalibratedClassifier(Unsure()), ValueError, "must give finite numbers, got nan"),
        (OnlineCalibratedClassifier(GaussianNB(), method="no"), UnknownName, "'no'"),
        (naive(options={"buckets": 0}), InvalidInput, "buckets must be a whole number"),
        (naive(method="fading", options={"unit": "time"}), InvalidInput, "unit must be 'rounds'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(two, model, error, told) -> None:
    with pytest.raises(error, match=told):
        model.fit(*two)
    assert not hasattr(model, "recalibrator_")


def test_a_batch_that_cannot_be_learned_changes_nothing(two) -> None:
    X, y = two
    model = naive().fit(X, y)
    before = model.recalibrator_.to_bytes(), model.estimator_.theta_.copy()
    wrong = [
        ((X, y + 1), {}, r"y must hold classes among \[0, 1\], got 2"),
        ((X, y), {"classes": [0, 1, 2]}, r"classes must be the same as in earlier calls, \[0, 1\]"),
        ((X[:, :3], y), {}, "features"),
        ((X, y[:5]), {}, "inconsistent numbers of samples"),
    ]
    for arguments, options, told in wrong:
        with pytest.raises(ValueError, match=told):
            model.partial_fit(*arguments, **options)
    assert model.recalibrator_.to_bytes() == before[0]
    assert np.array_equal(model.estimator_.theta_, before[1])


def test_the_first_batch_must_say_which_classes_there_are(two) -> None:
    X, y = two
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        naive().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold classes among \[0, 1\], got 7"):
        naive().partial_fit(X, np.full(len(X), 7), classes=[0, 1])
    with pytest.raises(ValueError, match="y must hold at least two classes, got one class"):
        OnlineCalibratedClassifier(LogisticRegression()).fit(X, np.zeros(len(X)))


def test_classes_of_an_estimator_must_be_known(two, three) -> None:
    frozen = FrozenEstimator(GaussianNB().fit(*three))
    model = OnlineCalibratedClassifier(frozen)
    with pytest.raises(ValueError, match=r"classes of the estimator must be among \[0, 1\]"):
        model.partial_fit(three[0][:100], three[1][:100], classes=[0, 1])


def test_weights_go_only_to_estimators_that_take_them(two) -> None:
    X, y = two
    model = OnlineCalibratedClassifier(KNeighborsClassifier())
    with pytest.raises(TypeError, match=r"must be None: KNeighborsClassifier\.fit"):
        model.fit(X, y, sample_weight=np.ones(len(X)))
    learner = OnlineCalibratedClassifier(SGDClassifier(loss="log_loss", random_state=0))
    learner.partial_fit(X, y, classes=[0, 1], sample_weight=np.ones(len(X)))
    assert learner.recalibrator_.rounds == 0
