"""River classifiers that share a stream: one in a journal, one in a service on loopback."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
from typing import Any

import pytest

pytest.importorskip("river", reason='needs the extra "river"')
pytest.importorskip("httpx", reason='needs the extra "client"')
pytest.importorskip("starlette", reason='needs the extra "serve"')

from river import base, checks, linear_model, preprocessing
from sharing import Lossy, Store, address, at_once, impatient, lone, store

from calibrant import Journal
from calibrant.client import Client, ServiceError
from calibrant.errors import Contradiction, InvalidInput, InvalidType
from calibrant.integrations.river import RecalibratedClassifier
from calibrant.integrations.shared import Shared

__all__ = ["address", "impatient", "store"]

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


class Told(base.Classifier):
    """Give the score that the features hold, and keep a diary."""

    def __init__(self) -> None:
        self.diary: list[Any] = []

    def learn_one(self, x, y) -> None:
        self.diary.append(y)

    def predict_proba_one(self, x):
        return dict(x["score"])


def yes(chance: float) -> dict[str, Any]:
    return {"score": {False: 1.0 - chance, True: chance}}


def shared(store: Store) -> RecalibratedClassifier:
    return RecalibratedClassifier(Told(), **store.named)


def test_models_with_one_store_share_one_stream(store: Store) -> None:
    models, rec = [shared(store), shared(store)], lone()
    for k in range(30):
        raw, outcome = k % 11 / 11, k % 3 == 0
        means = [model.predict_proba_one(yes(raw)) for model in models]
        ticket = rec.copy().forecast(raw)
        assert means == [{False: 1.0 - ticket.mean, True: ticket.mean}] * 2
        models[k % 2].learn_one(yes(raw), outcome)
        rec.observe(rec.forecast(raw), int(outcome))
    found = store.state()
    assert found.rounds == 30
    assert found.certificate() == rec.certificate()
    assert models[0].recalibrators[True].predict_mean_one(0.4) == rec.predict_mean_one(0.4)


def test_processes_lose_no_round(store: Store) -> None:
    model = shared(store)
    model.learn_one(yes(0.5), True)

    def work() -> None:
        for k in range(20):
            model.learn_one(yes(k / 20), k % 2 == 0)
        for _ in range(5):
            announced = model.forecast_one(yes(0.3))
            model.learn_one(yes(0.3), False, announced=announced)

    at_once([work] * 3)
    assert store.state().rounds == 1 + 3 * 25
    assert store.state().open == 0


def test_late_outcomes_are_told_by_id_anywhere(store: Store) -> None:
    here, rec = shared(store), lone()
    waiting = [here.forecast_one(yes(k / 10)) for k in range(10)]
    tickets = [rec.forecast(k / 10) for k in range(10)]
    assert [one.sample[True] for one in waiting] == [one.value for one in tickets]
    assert [one.mean[True] for one in waiting] == [min(one.mean, 1.0) for one in tickets]
    assert len({one.id for one in waiting}) == 10
    there = pickle.loads(pickle.dumps(here))
    store.keep(there.store)
    for k in reversed(range(10)):
        known = waiting[k].id if k % 2 else pickle.loads(pickle.dumps(waiting[k]))
        there.learn_one(yes(k / 10), k > 5, announced=known)
        rec.observe(tickets[k], int(k > 5))
    assert there.classifier.diary == [k > 5 for k in reversed(range(10))]
    assert here.classifier.diary == []
    assert store.state().certificate() == rec.certificate()


def test_the_same_outcome_again_is_no_round_and_another_is_refused(store: Store) -> None:
    model = shared(store)
    announced = model.forecast_one(yes(0.3))
    for _ in range(2):
        model.learn_one(yes(0.3), True, announced=announced)
    assert store.state().rounds == 1
    with pytest.raises((Contradiction, ServiceError)):
        model.learn_one(yes(0.3), False, announced=announced)
    with pytest.raises(InvalidType, match="announced must be what forecast_one gave, got 3"):
        model.learn_one(yes(0.3), True, announced=3)
    assert model.classifier.diary == [True, True]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_call_whose_answer_was_lost_may_be_made_again(address: str, lost: int) -> None:
    with Client(address, tries=1, transport=Lossy(lost)) as client:
        with Client(address) as other:
            other.put_stream(f"lossy-{lost}", method="foster_hart", seed=7)
        model = RecalibratedClassifier(Told(), store=client, stream=f"lossy-{lost}")
        with pytest.raises(ServiceError, match="service must answer"):
            model.learn_one(yes(0.3), True)
        assert model.classifier.diary == []
        model.learn_one(yes(0.3), True)
        assert model.classifier.diary == [True]
        assert (model.recalibrators[True].rounds, model.recalibrators[True].issued) == (1, 1)
        # What comes next is a round of its own, though it looks the same.
        model.learn_one(yes(0.3), True)
        assert model.recalibrators[True].rounds == 2


def test_another_round_after_a_lost_answer_has_its_own_ids(address: str) -> None:
    with Client(address, tries=1, transport=Lossy(1)) as client:
        with Client(address) as other:
            other.put_stream("given-up", method="foster_hart", seed=7)
        model = RecalibratedClassifier(Told(), store=client, stream="given-up")
        with pytest.raises(ServiceError):
            model.learn_one(yes(0.3), True)
        model.learn_one(yes(0.4), True)
        assert model.recalibrators[True].issued == 2


def test_clones_copies_and_pickles_have_no_state_of_their_own(store: Store) -> None:
    model = shared(store)
    for k in range(5):
        model.learn_one(yes(k / 5), True)
    loaded = pickle.loads(pickle.dumps(model))
    store.keep(loaded.store)
    for other in (model.clone(), copy.deepcopy(model), loaded):
        assert other.predict_proba_one(yes(0.4)) == model.predict_proba_one(yes(0.4))
        other.learn_one(yes(0.4), False)
    assert store.state().rounds == 8
    assert len(model.clone().classifier.diary) == 0


def test_all_checks_of_river_pass_with_a_journal(tmp_path) -> None:
    with Journal(tmp_path / "a.db", lone(), keyed=False) as journal:
        inner = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        random.seed(5)
        checks.check_estimator(RecalibratedClassifier(inner, store=journal))
        assert journal.state().rounds > 1_000


def test_an_address_is_enough_where_no_token_is_asked_for(address: str) -> None:
    with Client(address) as client:
        client.put_stream("main", method="foster_hart", seed=7)
    model = RecalibratedClassifier(Told(), store=address)
    model.learn_one(yes(0.4), True)
    assert model.clone().recalibrators[True].rounds == 1
    assert repr(model._streams.shared) == f"Shared(Client({address!r}), stream='main')"
    assert model.clone()._streams.shared.store is model._streams.shared.store
    model._streams.shared.store.close()


def test_what_a_store_cannot_do_is_refused(store: Store) -> None:
    model = shared(store)
    with pytest.raises(InvalidInput, match="forecast_one announces one in a store, got a store"):
        model.sample_proba_one(yes(0.4))
    with pytest.raises(InvalidInput, match="labels must be True and False in a store, got 'cat'"):
        model.predict_proba_one({"score": {"cat": 0.5, False: 0.5}})
    with pytest.raises(InvalidInput, match="labels must be True and False in a store, got 'dog'"):
        model.learn_one(yes(0.4), "dog")
    with pytest.raises(InvalidInput, match="score must have at least one label"):
        model.forecast_one({"score": {}})
    with pytest.raises(InvalidInput, match="method must be left out where there is a store"):
        RecalibratedClassifier(Told(), "foster_hart", **store.named)
    with pytest.raises(InvalidInput, match=r"buckets must be left out .* got 10"):
        RecalibratedClassifier(Told(), buckets=10, **store.named)
    with pytest.raises(InvalidType, match="store must be a client, an address or a journal, got 3"):
        RecalibratedClassifier(Told(), store=3)
    assert store.state().issued == 0
    assert model.classifier.diary == []


def test_a_model_without_scores_learns_and_makes_no_round(store: Store) -> None:
    model = shared(store)
    assert model.compile() is model
    assert model.predict_proba_one({"score": {}}) == {}
    model.learn_one({"score": {}}, True)
    assert model.classifier.diary == [True]
    assert store.state().issued == 0


def test_a_model_alone_takes_no_id() -> None:
    model = RecalibratedClassifier(Told(), seed=7)
    announced = model.forecast_one(yes(0.4))
    assert announced.id == announced.ticket.id
    with pytest.raises(InvalidType, match="announced must be what forecast_one gave"):
        model.learn_one(yes(0.4), True, announced="an id")


def test_models_that_were_pickled_before_there_were_stores_go_on() -> None:
    model = RecalibratedClassifier(Told(), seed=7)
    model.learn_one(yes(0.4), True)
    old = RecalibratedClassifier.__new__(RecalibratedClassifier)
    old.__dict__ = {k: v for k, v in model.__dict__.items() if k not in ("store", "stream")}
    old.learn_one(yes(0.4), True)
    assert old.clone().store is None
    assert old.recalibrators[True].rounds == 2


def test_a_batch_of_a_service_is_announced_in_chunks(address: str) -> None:
    with Client(address) as client:
        client.put_stream("chunks", method="foster_hart", seed=7)
        one = Shared(client, "chunks")
        one.learn([0.5] * 250, [1, 0] * 125)
        found = one.state()
        assert (found.rounds, found.open, found.delay) == (250, 0, 99)
        assert one.means([0.5, 0.5, 0.25]).tolist() == [
            found.predict_mean_one(raw) for raw in (0.5, 0.5, 0.25)
        ]


def test_a_draw_that_is_told_with_its_outcome_is_not_known_before(address: str) -> None:
    with Client(address) as client:
        client.put_stream("sealed", method="foster_hart", seed=7, reveal="outcome")
        model = RecalibratedClassifier(Told(), store=client, stream="sealed")
        announced = model.forecast_one(yes(0.4))
        assert math.isnan(announced.sample[True])
        assert 0.0 <= announced.mean[True] <= 1.0
        model.learn_one(yes(0.4), True, announced=announced)
        model.learn_one(yes(0.4), True)
        assert model.recalibrators[True].rounds == 2
