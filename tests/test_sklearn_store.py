"""Scikit-learn classifiers that share a stream: one in a journal, one in a service on loopback."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs the extra "sklearn"')
pytest.importorskip("httpx", reason='needs the extra "client"')
pytest.importorskip("starlette", reason='needs the extra "serve"')

from sharing import Lossy, Store, address, at_once, impatient, lone, store
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from calibrant.client import Client, ServiceError
from calibrant.errors import Contradiction, InvalidInput
from calibrant.integrations.shared import CHUNK
from calibrant.integrations.sklearn import OnlineCalibratedClassifier
from calibrant.integrations.sklearn.classifier import as_table

__all__ = ["address", "impatient", "store"]

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

X, Y = make_classification(300, n_informative=4, flip_y=0.2, random_state=1)
NAMED = np.where(Y == 1, "yes", "no")
FIRST = GaussianNB().fit(X[:100], NAMED[:100])


def frozen(store: Store, **options: Any) -> OnlineCalibratedClassifier:
    return OnlineCalibratedClassifier(FrozenEstimator(FIRST), **store.named | options)


def raws(rows: slice) -> list[float]:
    made: list[float] = as_table("predict_proba", FIRST.predict_proba(X[rows]))[:, 1].tolist()
    return made


def test_rows_are_rounds_of_the_stream(store: Store) -> None:
    model, rec = frozen(store).partial_fit(X[100:200], NAMED[100:200]), lone()
    if store.kind == "journal":
        rec.replay(np.array(raws(slice(100, 200))), Y[100:200])
    else:
        tickets = [rec.forecast(raw) for raw in raws(slice(100, 100 + CHUNK))]
        for ticket, y in zip(tickets, Y[100:200].tolist(), strict=True):
            rec.observe(ticket, y)
    found = store.state()
    assert found.certificate() == rec.certificate()
    assert model.predict_proba(X[200:210])[:, 1].tolist() == [
        min(max(rec.predict_mean_one(raw), 0.0), 1.0) for raw in raws(slice(200, 210))
    ]
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X[200:210])) <= {"no", "yes"}


def test_a_fit_and_batches_add_rounds_and_the_estimator_learns(store: Store) -> None:
    model = OnlineCalibratedClassifier(GaussianNB(), cv=3, **store.named)
    model.fit(X[:100], NAMED[:100]).partial_fit(X[100:120], NAMED[100:120])
    assert store.state().rounds == 120
    assert model.estimator_.class_count_.sum() == 120
    weights = np.array([0.0, 1.0] * 5)
    model.partial_fit(X[120:130], NAMED[120:130], sample_weight=weights)
    assert store.state().rounds == 125


def test_processes_lose_no_round(store: Store) -> None:
    model = frozen(store).partial_fit(X[:10], NAMED[:10])

    def work() -> None:
        for start in range(10, 40, 10):
            model.partial_fit(X[start : start + 10], NAMED[start : start + 10])
        made = model.forecast(X[:5])
        model.observe(made.ids, NAMED[:5])

    at_once([work] * 3)
    assert store.state().rounds == 10 + 3 * 35
    assert store.state().open == 0


def test_late_outcomes_are_told_by_id_anywhere(store: Store) -> None:
    here, rec = frozen(store).partial_fit(X[:1], NAMED[:1]), lone()
    rec.learn_one(raws(slice(0, 1))[0], int(Y[0]))
    made = here.forecast(X[:20])
    tickets = [rec.forecast(raw) for raw in raws(slice(0, 20))]
    assert made.sample[:, 1].tolist() == [ticket.value for ticket in tickets]
    assert made.mean[:, 1].tolist() == [min(max(one.mean, 0.0), 1.0) for one in tickets]
    assert (made.sample.sum(axis=1) == 1.0).all()
    assert len(set(made.ids)) == 20
    there = pickle.loads(pickle.dumps(here))
    store.keep(there.recalibrator_.store)
    store.keep(there.store)
    for _ in range(2):
        assert there.observe(made.ids[::-1], NAMED[:20][::-1]) is there
    for ticket, y in zip(tickets[::-1], Y[:20][::-1].tolist(), strict=True):
        rec.observe(ticket, y)
    assert store.state().certificate() == rec.certificate()
    with pytest.raises((Contradiction, ServiceError)):
        here.observe(made.ids[:1], ["yes" if NAMED[0] == "no" else "no"])
    with pytest.raises(ValueError, match="y must hold classes among"):
        here.observe(made.ids[:1], ["maybe"])


def test_ids_of_ones_own_get_the_same_answer_again(store: Store) -> None:
    model = frozen(store).partial_fit(X[:1], NAMED[:1])
    first, again = (model.forecast(X[:3], ids=["a", "b", "c"]) for _ in range(2))
    assert again.ids == first.ids == ["a", "b", "c"]
    assert again.sample.tolist() == first.sample.tolist()
    assert store.state().issued == 4


@pytest.mark.parametrize("lost", [2, 3])
def test_a_batch_whose_answer_was_lost_may_be_given_again(address: str, lost: int) -> None:
    with Client(address) as other:
        other.put_stream(f"sk-lossy-{lost}", method="foster_hart", seed=7)
    with Client(address, tries=1, transport=Lossy(lost)) as client:
        model = OnlineCalibratedClassifier(GaussianNB(), store=client, stream=f"sk-lossy-{lost}")
        model.partial_fit(X[:50], NAMED[:50], classes=["no", "yes"])
        model.partial_fit(X[50:60], NAMED[50:60])
        with pytest.raises(ServiceError):
            model.partial_fit(X[60:80], NAMED[60:80])
        assert model.estimator_.class_count_.sum() == 60
        model.partial_fit(X[60:80], NAMED[60:80])
        assert model.estimator_.class_count_.sum() == 80
        found = model.recalibrator_.state()
        assert (found.rounds, found.issued) == (30, 30)


def test_clones_copies_and_pickles_have_no_state_of_their_own(store: Store) -> None:
    model = frozen(store).partial_fit(X[:10], NAMED[:10])
    other = clone(model)
    assert other.store is model.store
    assert not hasattr(other, "recalibrator_")
    loaded = pickle.loads(pickle.dumps(model))
    store.keep(loaded.store)
    store.keep(loaded.recalibrator_.store)
    for one in (other, copy.deepcopy(model), loaded):
        one.partial_fit(X[10:20], NAMED[10:20])
        assert (one.predict_proba(X[:5]) == model.predict_proba(X[:5])).all()
    assert store.state().rounds == 40
    assert "stream=" in repr(model.recalibrator_)


def test_what_a_store_cannot_do_is_refused(store: Store) -> None:
    model = frozen(store).partial_fit(X[:1], NAMED[:1])
    with pytest.raises(InvalidInput, match="forecast announces one in a store, got a store"):
        model.sample_proba(X[:1])
    with pytest.raises(ValueError, match=r"y must hold two classes .* got \[0, 1, 2\]"):
        OnlineCalibratedClassifier(GaussianNB(), **store.named).fit(*load_iris(return_X_y=True))
    with pytest.raises(InvalidInput, match="method must be left out where there is a store"):
        frozen(store, method="foster_hart").partial_fit(X[:1], NAMED[:1])
    with pytest.raises(InvalidInput, match=r"buckets must be left out .* got 10"):
        frozen(store, options={"buckets": 10}).partial_fit(X[:1], NAMED[:1])
    alone = OnlineCalibratedClassifier(FrozenEstimator(FIRST)).partial_fit(X[:1], NAMED[:1])
    with pytest.raises(InvalidInput, match="store must be given to announce forecasts, got None"):
        alone.forecast(X[:1])
    assert store.state().rounds == 1


def test_models_that_were_pickled_before_there_were_stores_go_on() -> None:
    model = OnlineCalibratedClassifier(GaussianNB(), cv=3).fit(X[:30], NAMED[:30])
    old = OnlineCalibratedClassifier.__new__(OnlineCalibratedClassifier)
    old.__dict__ = {k: v for k, v in model.__dict__.items() if k not in ("store", "stream")}
    old.partial_fit(X[30:40], NAMED[30:40])
    assert old.recalibrator_.rounds == 40
    assert clone(old).store is None
