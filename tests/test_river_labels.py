"""River classifiers with any labels, which may turn up at any time: calibrated together."""

from __future__ import annotations

import copy
import math
import pickle
import random

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')

from river import datasets, evaluate, metrics, preprocessing, tree
from test_river_classifier import Table, yes

from calibrant.classes import ClassCalibrant
from calibrant.errors import ForeignTicket, RepeatedTicket
from calibrant.integrations import labels
from calibrant.integrations.river import RecalibratedClassifier

ABC = {"score": {"ant": 0.6, "bee": 0.3, "cat": 0.1}}


def cheap(seed=5) -> RecalibratedClassifier:
    return RecalibratedClassifier(Table(), method="foster_hart", seed=seed)


def by_hand(classes, seed=5) -> ClassCalibrant:
    return ClassCalibrant(classes, engine="recalibrator", method="foster_hart", seed=seed)


def made_scores(rounds, names):
    rng = random.Random(1)
    for _ in range(rounds):
        weights = [rng.random() for _ in names]
        yield {a: w / sum(weights) for a, w in zip(names, weights, strict=True)}, rng.choice(names)


def test_a_stream_of_labels_is_the_default_for_classes_with_a_spare_one() -> None:
    model = RecalibratedClassifier(Table(), seed=7)
    rec = ClassCalibrant(2, seed=7).grown().grown()
    for score, label in made_scores(25, ["ant", "bee", "cat"]):
        row = [*score.values(), 0.0]
        if rec.rounds:
            mean = rec.predict_mean_one(row)
            told = model.predict_proba_one({"score": score})
            assert list(told) == ["ant", "bee", "cat"]
            assert [*told.values()] == pytest.approx((mean[:3] / mean[:3].sum()).tolist())
            drawn, means = rec.preview(np.array([row]))
            top = int(means[0].argmax())
            sample = model.sample_proba_one({"score": score})
            assert sample[["ant", "bee", "cat"][top]] == drawn[0][top]
            assert math.isclose(sum(sample.values()), 1.0)
        model.learn_one({"score": score}, label)
        rec.learn_one(row, ["ant", "bee", "cat"].index(label))
    assert model.recalibrators == dict.fromkeys(["ant", "bee", "cat"], rec)


def test_labels_of_any_kind_may_turn_up_at_any_time() -> None:
    model = cheap()
    for names in (["ant", 2], ["ant", 2, ("c", 3)], ["ant", 2, ("c", 3), None]):
        for score, label in made_scores(40, names):
            got = model.predict_proba_one({"score": score})
            assert math.isclose(sum(got.values()), 1.0)
            assert all(type(p) is float and 0.0 <= p <= 1.0 for p in got.values())
            assert set(score) <= set(got)
            assert model.predict_one({"score": score}) in got
            model.learn_one({"score": score}, label)
    assert list(model.recalibrators) == ["ant", 2, ("c", 3), None]
    rec = model.recalibrators["ant"]
    assert (rec.classes, rec.rounds, rec.open) == (5, 120, 0)


def test_a_label_that_the_model_does_not_know_is_told_once_it_came() -> None:
    model = RecalibratedClassifier(Table(), seed=5)
    for _ in range(60):
        model.learn_one(ABC, "dog")
    told = model.predict_proba_one(ABC)
    assert list(told) == ["ant", "bee", "cat", "dog"]
    assert told["dog"] > 0.8
    assert model.predict_one(ABC) == "dog"


def test_a_prediction_with_a_new_label_in_it_changes_nothing() -> None:
    model = cheap()
    model.learn_one(ABC, "ant")
    before = pickle.dumps(model._streams)
    x = {"score": {"ant": 0.1, "elk": 0.6, "fox": 0.3}}
    mean, sample = model.predict_proba_one(x), model.sample_proba_one(x)
    assert math.isclose(mean["elk"], 2.0 * mean["fox"])
    for told in (mean, sample):
        assert set(told) == {"ant", "bee", "cat", "elk", "fox"}
        assert math.isclose(sum(told.values()), 1.0)
    assert pickle.dumps(model._streams) == before


def test_before_the_first_outcome_the_model_is_believed() -> None:
    assert cheap().predict_proba_one(ABC) == ABC["score"]
    assert cheap().sample_proba_one(ABC) == ABC["score"]


def test_where_no_label_that_came_leads_nothing_is_drawn() -> None:
    model = cheap()
    model.learn_one(ABC, "ant")
    model.learn_one({"score": {}}, "dog")
    score = {"score": {"elk": 1.0}}
    assert model.sample_proba_one(score) == model.predict_proba_one(score)


def test_the_only_label_is_certain() -> None:
    model = cheap()
    assert model.forecast_one({"score": {"ant": 1.0}}).sample == {"ant": 1.0}
    assert model.predict_proba_one({"score": {"ant": 1.0}}) == {"ant": 1.0}


def test_late_outcomes_are_learned_as_they_were_announced_whatever_labels_came_since() -> None:
    model, rec = cheap(), by_hand(2).grown().grown()
    announced = [model.forecast_one(ABC) for _ in range(4)]
    tickets = [rec.forecast([0.6, 0.3, 0.1, 0.0]) for _ in range(4)]
    for one, ticket in zip(announced, tickets, strict=True):
        assert one.label == ["ant", "bee", "cat"][ticket.top]
        assert one.sample[one.label] == ticket.confidence
        assert math.isclose(sum(one.mean.values()), 1.0)
    rec = rec.grown()
    for one, ticket, label in zip(announced, tickets, ["dog", "ant", "cat", "ant"], strict=True):
        model.learn_one(ABC, label, announced=one)
        rec.observe(ticket.id, ["ant", "bee", "cat", "dog"].index(label))
    assert model.recalibrators == dict.fromkeys(["ant", "bee", "cat", "dog"], rec)


def test_an_announced_forecast_is_learned_once_and_only_where_it_was_made() -> None:
    model, other = cheap(1), cheap(2)
    announced = model.forecast_one(ABC)
    with pytest.raises(ForeignTicket):
        other.learn_one(ABC, "ant", announced=announced)
    assert other.recalibrators[True].rounds == 0
    model.learn_one(ABC, "ant", announced=announced)
    with pytest.raises(RepeatedTicket):
        model.learn_one(ABC, "dog", announced=announced)
    assert "dog" not in model.recalibrators


def test_an_announced_forecast_of_yes_or_no_is_learned_after_other_labels_came() -> None:
    model = cheap()
    announced = model.forecast_one(yes(0.7))
    assert announced.label is True
    model.learn_one(yes(0.7), "perhaps")
    model.learn_one(yes(0.7), True, announced=announced)
    with pytest.raises(RepeatedTicket):
        model.learn_one(yes(0.7), True, announced=announced)


def test_yes_and_no_may_become_other_labels() -> None:
    model = cheap()
    model.learn_one(yes(0.7), True)
    assert set(model.predict_proba_one(yes(0.7))) == {False, True}
    model.learn_one(yes(0.7), "perhaps")
    assert set(model.predict_proba_one(yes(0.7))) == {False, True, "perhaps"}
    model.learn_one(yes(0.7), True)
    assert model.recalibrators[True].rounds == 2


def test_a_score_that_was_read_as_yes_or_no_is_learned_as_labels_by_then() -> None:
    model = cheap()
    x = yes(0.7)
    model.predict_proba_one(x)
    model.forecast_one(ABC)
    model.learn_one(x, True)
    assert model.recalibrators[True].rounds == 1


def test_scores_that_sum_to_anything_are_taken_in_proportion() -> None:
    model, other = cheap(), cheap()
    model.learn_one({"score": {"ant": 0.3, "bee": 0.15}}, "ant")
    other.learn_one({"score": {"ant": 2 / 3, "bee": 1 / 3}}, "ant")
    assert model.recalibrators["ant"].rounds == 1
    assert model.predict_proba_one(ABC) == pytest.approx(other.predict_proba_one(ABC))
    model.learn_one({"score": {"ant": 0.0, "bee": 0.0}}, "ant")
    assert model.recalibrators["ant"].rounds == 2


def test_copies_go_on_with_all_labels() -> None:
    model = cheap()
    announced = model.forecast_one(ABC)
    model.learn_one(ABC, "dog")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        again.learn_one(ABC, "elk", announced=announced)
        assert list(again.recalibrators) == ["ant", "bee", "cat", "dog", "elk"]
    assert list(model.recalibrators) == ["ant", "bee", "cat", "dog"]


def test_steps_are_compiled_once_it_is_worth_it_and_again_for_new_labels(monkeypatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(labels, "SHORT", 5)
    monkeypatch.setattr(
        ClassCalibrant, "compile", lambda rec: asked.append((rec.classes, rec.rounds))
    )
    model = cheap()
    for _ in range(7):
        model.learn_one(ABC, "ant")
    assert asked == [(4, 5)]
    model.learn_one(ABC, "dog")
    assert asked == [(4, 5), (5, 7)]
    model.compile()
    assert asked[2:] == [(5, 8)]
    again = pickle.loads(pickle.dumps(model))
    for _ in range(5):
        again.learn_one(ABC, "ant")
    assert asked[3:] == [(5, 13)]


def test_labels_may_be_compiled_for_before_they_come(monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ClassCalibrant, "compile", lambda rec: asked.append(rec.classes))
    model = cheap()
    model.learn_one({"score": {}}, "ant")
    model.compile()
    assert asked == [2]
    other = labels.Labels({"seed": 1})
    other.compile()
    other.learn({"ant": 1.0}, "ant")
    assert asked == [2, 2]


def test_a_pipeline_over_seven_labels_scores_better() -> None:
    bare = preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier()
    model = preprocessing.StandardScaler() | RecalibratedClassifier(
        tree.HoeffdingTreeClassifier(), seed=1, method="foster_hart"
    )
    segments = list(datasets.ImageSegments().take(250))
    scores = [
        evaluate.progressive_val_score(segments, one, metrics.CrossEntropy()).get()
        for one in (bare, model)
    ]
    assert scores[1] < 0.8 * scores[0]
    assert len(model.predict_proba_one(segments[0][0])) == 7
