"""Features as context of a River classifier: which expert reads what, and when."""

from __future__ import annotations

import copy
import math
import pickle
import random

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')

from river import base, checks, compose, evaluate, linear_model, metrics, naive_bayes, preprocessing

from calibrant import Calibrant, Journal
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations import features
from calibrant.integrations.river import RecalibratedClassifier
from calibrant.transforms import Context, Identity

FEW = {"experts": (Identity(),), "resolution": 4}
"""Two experts and few cells: quick without a compiler."""


class Table(base.Classifier):
    """Give the score that the features hold, and keep a diary."""

    def __init__(self) -> None:
        self.diary: list[str] = []

    def learn_one(self, x, y) -> None:
        self.diary.append(f"learn {y}")

    def predict_proba_one(self, x):
        self.diary.append("predict")
        return dict(x["score"])


def rows(rounds: int, seed: int = 1) -> list:
    """A score that leaves out what hour and plan tell; features and label a round."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(rounds):
        odds, hour = rng.normal(), float(rng.integers(0, 24))
        plan = ("gold", "iron")[rng.integers(2)]
        more = (hour - 12.0) / 4.0 + 2.0 * (plan == "gold")
        p = 1.0 / (1.0 + math.exp(-odds))
        x = {"score": {False: 1.0 - p, True: p}, "hour": hour, "plan": plan}
        made.append((x, bool(rng.random() < 1.0 / (1.0 + math.exp(-odds - more)))))
    return made


def wrapped(**options) -> RecalibratedClassifier:
    return RecalibratedClassifier(
        Table(), **{"seed": 7, "context": ("hour", "plan")} | FEW | options
    )


def known(x) -> dict:
    return {name: x[name] for name in ("hour", "plan") if name in x}


def test_a_stream_is_that_of_a_recalibrator_told_by_hand() -> None:
    model, rec = wrapped(), Calibrant(seed=7, context=True, **FEW)
    for x, y in rows(60):
        raw, told = x["score"][True], known(x)
        ticket = rec.copy().forecast(raw, context=told)
        mean = min(max(ticket.mean, 0.0), 1.0)
        assert model.predict_proba_one(x) == {False: 1.0 - mean, True: mean}
        assert model.sample_proba_one(x)[True] == ticket.value
        model.learn_one(x, y)
        rec.learn_one(raw, int(y), context=told)
    assert model.recalibrators == {True: rec}
    assert (
        model.classifier.diary.count("learn True") + model.classifier.diary.count("learn False")
        == 60
    )


def test_a_pipeline_of_river_gets_better_by_what_its_model_does_not_see() -> None:
    def play(**context) -> float:
        blind = compose.Select("odds") | linear_model.LogisticRegression()
        inner = RecalibratedClassifier(blind, seed=1, **FEW, **context)
        model = preprocessing.StandardScaler() | inner
        return evaluate.progressive_val_score(seen, model, metrics.LogLoss()).get()

    seen = [
        ({"odds": math.log(x["score"][True] / x["score"][False]), "hour": x["hour"]}, y)
        for x, y in rows(600)
    ]
    assert play(context="hour") < 0.9 * play()


def test_features_that_are_missing_are_not_known() -> None:
    model, rec = wrapped(), Calibrant(seed=7, context=True, **FEW)
    for k, (x, y) in enumerate(rows(30)):
        if k % 3 == 0:
            del x["hour"]
        if k % 3 == 1:
            x["plan"] = None
        model.learn_one(x, y)
        rec.learn_one(x["score"][True], int(y), context=known(x))
    assert model.recalibrators == {True: rec}


def test_names_need_not_be_strings() -> None:
    model = RecalibratedClassifier(Table(), seed=7, context=[3], **FEW)
    rec = Calibrant(seed=7, context=True, **FEW)
    model.learn_one({"score": {False: 0.4, True: 0.6}, 3: 1.5}, True)
    rec.learn_one(0.6, 1, context={"3": 1.5})
    assert model.recalibrators == {True: rec}


def test_announced_forecasts_keep_what_was_known_then() -> None:
    model, rec = wrapped(), Calibrant(seed=7, context=True, **FEW)
    waiting = []
    for x, y in rows(20):
        ticket = rec.forecast(x["score"][True], context=known(x))
        announced = model.forecast_one(x)
        assert announced.sample[True] == ticket.value
        waiting.append((x, y, announced, ticket))
    for x, y, announced, ticket in reversed(waiting):
        model.learn_one(x, y, announced=announced)
        rec.observe(ticket, int(y))
    assert model.recalibrators == {True: rec}


def test_a_prediction_changes_nothing_and_copies_go_on() -> None:
    model = wrapped()
    stream = rows(40)
    for x, y in stream[:20]:
        model.learn_one(x, y)
    before = pickle.dumps(model.recalibrators)
    for x, _ in stream[20:]:
        assert model.predict_proba_one(x) == model.predict_proba_one(x)
        assert model.sample_proba_one(x) == model.sample_proba_one(x)
    assert pickle.dumps(model.recalibrators) == before
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        x, y = stream[20]
        assert again.predict_proba_one(x) == model.predict_proba_one(x)
        again.learn_one(x, y)
        assert again.recalibrators[True].rounds == 21
    fresh = model.clone()
    assert (fresh.context, fresh.recalibrators[True].rounds) == (("hour", "plan"), 0)


def test_all_checks_of_river_pass() -> None:
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    random.seed(5)
    names = ("empty_server_form_handler", "nothing")
    checks.check_estimator(RecalibratedClassifier(model, seed=1, context=names, **FEW))
    many = naive_bayes.GaussianNB()
    assert not RecalibratedClassifier(many, context=names, **FEW)._multiclass
    assert RecalibratedClassifier(many)._multiclass


def test_an_expert_of_your_own_may_read_it() -> None:
    model = RecalibratedClassifier(
        Table(), seed=7, context="hour", experts=(Identity(), Context(places=64)), resolution=4
    )
    assert model.recalibrators[True].transform.experts[-1] == Context(places=64)


def test_an_empty_score_is_no_round() -> None:
    model = wrapped()
    model.learn_one({"score": {}, "hour": 3.0}, True)
    assert model.predict_proba_one({"score": {}}) == {}
    assert model.recalibrators[True].rounds == 0
    with pytest.raises(InvalidInput, match=r"score must have at least one label, got \{\}"):
        model.forecast_one({"score": {}})


def test_steps_are_compiled_once_it_is_worth_it(monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Calibrant, "compile", lambda rec: asked.append(rec.rounds))
    model = wrapped()
    model._streams._live.left = 3
    for x, y in rows(5):
        model.learn_one(x, y)
    assert asked == [3]
    assert model.compile() is model
    assert asked == [3, 5]


def test_what_cannot_be_is_refused_and_changes_nothing(tmp_path) -> None:
    score = {False: 0.5, True: 0.5}
    with pytest.raises(InvalidType, match="context must be names of features, got True"):
        RecalibratedClassifier(Table(), context=True)
    with pytest.raises(InvalidInput, match="context must be left out: only experts of method"):
        RecalibratedClassifier(Table(), "foster_hart", context="hour")
    with pytest.raises(InvalidInput, match="context must name at most 64 features, got 65"):
        RecalibratedClassifier(Table(), context=range(65))
    with (
        Journal(tmp_path / "a.db", Calibrant(seed=1), keyed=False) as journal,
        pytest.raises(InvalidInput, match="context must be left out where there is a store"),
    ):
        RecalibratedClassifier(Table(), context="hour", store=journal)
    model = wrapped()
    for x, y, error, told in [
        ({"score": score, "hour": math.nan}, True, InvalidInput, r"context\['hour'\] must be"),
        ({"score": score, "hour": [1]}, True, InvalidInput, r"context\['hour'\] must be"),
        ({"score": score, "hour": 1.0}, "ant", InvalidInput, "labels must be True and False"),
        ({"score": {"ant": 1.0}}, True, InvalidInput, "labels must be True and False where"),
    ]:
        with pytest.raises(error, match=told):
            model.learn_one(x, y)
    with pytest.raises(InvalidType, match="x must have features by name where context names some"):
        features.Scored.of(score, "some text", ("hour",))
    assert "learn" not in "".join(model.classifier.diary)
    assert model.recalibrators[True].rounds == 0
