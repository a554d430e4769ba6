"""Columns as context of a scikit-learn classifier: which are read, and as what."""

from __future__ import annotations

from unittest import SkipTest

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs the extra "sklearn"')

from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_sklearn_classifier import explained

from calibrant import Calibrant, Journal
from calibrant.errors import InvalidInput
from calibrant.integrations.sklearn import OnlineCalibratedClassifier
from calibrant.integrations.sklearn.rows import columns_of
from calibrant.transforms import Identity

FEW = {"experts": (Identity(),), "resolution": 4}
"""Two experts and few cells: quick without a compiler."""


@parametrize_with_checks(
    [OnlineCalibratedClassifier(GaussianNB(), context=[0], options=FEW)],
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


def table(rows: int = 400, seed: int = 1):
    """Features of which a model that sees the first alone misses the second; and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    chances = 1.0 / (1.0 + np.exp(-X[:, 0] - 2.0 * X[:, 1]))
    return X, (rng.random(rows) < chances).astype(int)


def blind(X, y) -> FrozenEstimator:
    """A model of the first column, fitted."""
    seen = make_column_transformer(("passthrough", [0]))
    return FrozenEstimator(make_pipeline(seen, LogisticRegression()).fit(X, y))


def made(estimator, context, **options) -> OnlineCalibratedClassifier:
    told = {"options": FEW, "random_state": 7, "context": context} | options
    return OnlineCalibratedClassifier(estimator, **told)


def told() -> Calibrant:
    return Calibrant(seed=7, context=True, **FEW)


def test_rounds_are_those_of_a_recalibrator_told_by_hand() -> None:
    X, y = table()
    inner = blind(X[:100], y[:100])
    model = made(inner, [1, 2]).partial_fit(X[:200], y[:200])
    model.partial_fit(X[200:], y[200:])
    rec, raw = told(), inner.predict_proba(X)[:, 1]
    for part in (slice(200), slice(200, 400)):
        rec.replay(raw[part], y[part], context={"x1": X[part, 1], "x2": X[part, 2]})
    assert model.recalibrator_ == rec
    seen, means = model.sample_proba(X[:5])[:, 1], model.predict_proba(X[:5])[:, 1]
    for k in range(5):
        ticket = rec.copy().forecast(raw[k], context={"x1": X[k, 1], "x2": X[k, 2]})
        assert means[k] == min(max(ticket.mean, 0.0), 1.0)
        if k == 0:
            assert seen[k] == ticket.value
    assert np.array_equal(seen, model.sample_proba(X[:5])[:, 1])
    assert model.recalibrator_ == rec


def test_fit_reads_the_rows_whose_scores_it_plays() -> None:
    X, y = table(200)
    model = made(GaussianNB(), 1, cv=3).fit(X, y)
    held_out = cross_val_predict(GaussianNB(), X, y, cv=3, method="predict_proba")
    rec = told()
    rec.replay(held_out[:, 1] / held_out.sum(axis=1), y, context={"x1": X[:, 1]})
    assert model.recalibrator_ == rec


def test_it_helps_where_the_model_does_not_see_a_column() -> None:
    X, y = table(1_500)
    losses = []
    for context in (None, 1):
        model = made(blind(X[:200], y[:200]), context).partial_fit(X[200:1_000], y[200:1_000])
        losses.append(((model.predict_proba(X[1_000:])[:, 1] - y[1_000:]) ** 2).mean())
    assert losses[1] < 0.9 * losses[0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_have_names_and_strings(library) -> None:
    frames = pytest.importorskip(library, reason="names its columns")
    X, y = table(60)
    plan = ["gold" if k % 3 else None for k in range(60)]
    frame = frames.DataFrame({"odds": X[:, 0], "age": X[:, 1], "plan": plan})
    seen = make_column_transformer(("passthrough", ["odds"]))
    inner = FrozenEstimator(make_pipeline(seen, LogisticRegression()).fit(frame, y))
    model = made(inner, ["age", "plan"]).partial_fit(frame, y)
    rec = told()
    context = {"age": X[:, 1], "plan": plan}
    rec.replay(inner.predict_proba(frame)[:, 1], y, context=context)
    assert model.recalibrator_ == rec
    assert columns_of(frame, "plan") == {"plan": plan}


def test_what_is_missing_is_not_known() -> None:
    pandas = pytest.importorskip("pandas", reason="has missing values of its own")
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert {name: [*x] for name, x in columns_of(X, [1, 0]).items()} == {
        "x1": [None, 3.0],
        "x0": [1.0, 2.0],
    }
    assert columns_of([[1.0, "a"], [2.0, None]], [1]) == {"x1": ["a", None]}
    whole = pandas.DataFrame({"n": pandas.array([1, None], dtype="Int64"), "s": ["a", None]})
    assert columns_of(whole.astype({"s": "string"}), ["n", "s"]) == {
        "n": [1, None],
        "s": ["a", None],
    }
    assert columns_of(sparse.csr_array(np.eye(2)), [1])["x1"].tolist() == [0.0, 1.0]
    assert columns_of(X, None) is columns_of(X, []) is None


def test_rows_without_weight_are_no_rounds() -> None:
    X, y = table(90)
    inner, weight = blind(X, y), np.arange(90) % 3
    model = made(inner, 1).partial_fit(X, y, sample_weight=weight)
    kept = weight > 0
    other = made(inner, 1).partial_fit(X[kept], y[kept])
    assert model.recalibrator_ == other.recalibrator_
    assert model.recalibrator_.rounds == 60


def test_a_pipeline_gives_columns_as_it_made_them() -> None:
    X, y = table(120)
    pipe = make_pipeline(StandardScaler(), made(GaussianNB(), [1])).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    assert pipe[-1].recalibrator_ == made(GaussianNB(), [1]).fit(scaled, y).recalibrator_
    assert clone(pipe)[-1].context == [1]


def test_settings_of_the_expert_are_options() -> None:
    X, y = table(20)
    model = made(blind(X, y), 1, options={"context": 256} | FEW).partial_fit(X, y)
    assert model.recalibrator_.transform.experts[-1].places == 256


class First(GaussianNB):
    """Look at the first column alone, whatever the others are."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return super().partial_fit(X[:, :1].astype(float), y, classes, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(X[:, :1].astype(float))


def test_a_batch_with_context_that_cannot_be_changes_nothing() -> None:
    X, y = table(60)
    model = made(First(), 1).partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    before = model.recalibrator_.to_bytes(), model.estimator_.theta_.copy()
    strange = X.astype(object)
    strange[3, 1] = 1j
    for wrong in (np.where([False, True, False], np.inf, X), strange):
        with pytest.raises(InvalidInput, match=r"context\['x1'\] must be a finite number"):
            model.partial_fit(wrong, y)
    assert model.recalibrator_.to_bytes() == before[0]
    assert np.array_equal(model.estimator_.theta_, before[1])


def test_what_cannot_be_is_refused(tmp_path) -> None:
    X, y = table(60)
    with pytest.raises(InvalidInput, match="only experts of method 'calibrant' read it, got"):
        OnlineCalibratedClassifier(GaussianNB(), method="foster_hart", context=1).fit(X, y)
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*\[0, 1, 2\]"):
        made(GaussianNB(), 1).fit(X, np.arange(60) % 3)
    for wrong in (True, 1.5, [True, False], [None]):
        with pytest.raises(ValueError, match="context must be names or numbers of columns, got"):
            made(GaussianNB(), wrong).fit(X, y)
    with pytest.raises(InvalidInput, match=r"context\['x1'\] must be a finite number"):
        made(blind(X, y), 1).partial_fit(np.where([False, True, False], np.inf, X), y)
    with (
        Journal(tmp_path / "a.db", Calibrant(seed=1), keyed=False) as journal,
        pytest.raises(InvalidInput, match="context must be left out where there is a store"),
    ):
        OnlineCalibratedClassifier(GaussianNB(), context=1, store=journal).fit(X, y)
