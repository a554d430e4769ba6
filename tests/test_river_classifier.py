"""River classifiers, recalibrated: River's own checks, and what each number promises."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')

from river import (
    base,
    checks,
    datasets,
    dummy,
    evaluate,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    stream,
)

from calibrant import Calibrant, Recalibrator
from calibrant.errors import (
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownName,
)
from calibrant.integrations import live
from calibrant.integrations.river import Brier, RecalibratedClassifier
from calibrant.transforms import Context, Identity


def logistic() -> base.Classifier:
    return linear_model.LogisticRegression()


FORMS = {
    "wraps a pipeline": lambda: RecalibratedClassifier(
        preprocessing.StandardScaler() | logistic(), seed=1
    ),
    "bare": lambda: RecalibratedClassifier(logistic(), method="foster_hart"),
    "ends a pipeline": lambda: (
        preprocessing.StandardScaler() | RecalibratedClassifier(logistic(), "foster_hart")
    ),
    "many labels": lambda: RecalibratedClassifier(
        naive_bayes.GaussianNB(), method="foster_hart", seed=1, buckets=5
    ),
}


class Table(base.Classifier):
    """Give the score that the features hold, and keep a diary."""

    def __init__(self) -> None:
        self.diary: list[str] = []

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x, y) -> None:
        self.diary.append(f"learn {y}")

    def predict_proba_one(self, x):
        self.diary.append("predict")
        return dict(x["score"])


def yes(chance: float) -> dict[str, dict[bool, float]]:
    return {"score": {False: 1.0 - chance, True: chance}}


def phishing(rounds: int) -> list:
    return list(itertools.islice(datasets.Phishing(), rounds))


@pytest.mark.parametrize("form", FORMS)
def test_all_checks_of_river_pass(form) -> None:
    model = FORMS[form]()
    random.seed(5)
    assert model._unit_test_skips() == set()
    checks.check_estimator(model)


def test_the_forms_that_river_would_test_itself_are_sound() -> None:
    for params in RecalibratedClassifier._unit_test_params():
        model = RecalibratedClassifier(**params)
        assert set(model.predict_proba_one({"x": 1.0})) <= {False, True}


@pytest.mark.parametrize("method", ["calibrant", "foster_hart"])
def test_a_stream_is_that_of_a_recalibrator_fed_by_hand(method) -> None:
    model = RecalibratedClassifier(logistic(), method=method, seed=7)
    inner = logistic()
    rec = Calibrant(seed=7) if method == "calibrant" else Recalibrator(method, seed=7)
    for x, y in phishing(150):
        raw = inner.predict_proba_one(x)[True]
        ticket = rec.copy().forecast(raw)
        mean = min(max(ticket.mean, 0.0), 1.0)
        assert model.predict_proba_one(x) == {False: 1.0 - mean, True: mean}
        assert model.sample_proba_one(x)[True] == ticket.value
        assert model.predict_one(x) == (mean > 0.5)
        model.learn_one(x, y)
        inner.learn_one(x, y)
        rec.learn_one(raw, int(y))
    assert model.recalibrators == {True: rec}


def test_the_score_is_read_before_the_model_learns() -> None:
    table = Table()
    model = RecalibratedClassifier(table, seed=1)
    model.learn_one(yes(0.3), True)
    assert table.diary == ["predict", "learn True"]
    assert model.recalibrators[True].rounds == 1


def test_a_round_asks_the_model_once() -> None:
    table = Table()
    model = RecalibratedClassifier(table, seed=1)
    x = yes(0.3)
    model.predict_proba_one(x)
    model.learn_one(x, True)
    assert table.diary == ["predict", "learn True"]
    model.learn_one(x, True)
    assert table.diary[2:] == ["predict", "learn True"]


def test_features_that_changed_in_between_are_read_again() -> None:
    model = RecalibratedClassifier(Table(), method="foster_hart", seed=1)
    x = {"score": {False: 0.9, True: 0.1}, "day": 1}
    model.predict_proba_one(x)
    x["day"], x["score"] = 2, {False: 0.1, True: 0.9}
    model.learn_one(x, True)
    rec = Recalibrator(seed=1)
    rec.learn_one(0.9, 1)
    assert model.recalibrators[True] == rec


def test_a_prediction_changes_nothing() -> None:
    model = RecalibratedClassifier(logistic(), seed=2)
    for x, y in phishing(50):
        model.learn_one(x, y)
    before = pickle.dumps(model)
    for x, _ in phishing(20):
        assert model.predict_proba_one(x) == model.predict_proba_one(x)
        assert model.sample_proba_one(x) == model.sample_proba_one(x)
    assert pickle.dumps(model) == before


def test_late_outcomes_are_rounds_of_their_own_time() -> None:
    delay = 10
    model = RecalibratedClassifier(logistic(), method="foster_hart", seed=3)
    metric = Brier()
    evaluate.progressive_val_score(phishing(200), model, metric, delay=delay)
    inner, rec, mine, told = logistic(), Recalibrator(seed=3), Brier(), {}
    for k, x, y in stream.simulate_qa(phishing(200), None, delay, copy=True):
        if y is None:
            told[k] = rec.copy().forecast(inner.predict_proba_one(x)[True]).mean
        else:
            mine.update(y, min(max(told[k], 0.0), 1.0))
            rec.learn_one(inner.predict_proba_one(x)[True], int(y))
            inner.learn_one(x, y)
    assert rec.rounds == 200
    assert model.recalibrators[True] == rec
    assert metric.get() == mine.get()


def test_announced_forecasts_are_learned_as_they_were_announced() -> None:
    model = RecalibratedClassifier(Table(), method="foster_hart", seed=4)
    rec, waiting, tickets = Recalibrator(seed=4), [], []
    for k in range(30):
        raw = (k % 7) / 7
        waiting.append((yes(raw), model.forecast_one(yes(raw)), k % 3 == 0))
        tickets.append(rec.forecast(raw))
        assert waiting[-1][1].sample[True] == tickets[-1].value
        assert waiting[-1][1].mean[True] == min(max(tickets[-1].mean, 0.0), 1.0)
    for (x, announced, y), ticket in zip(reversed(waiting), reversed(tickets), strict=True):
        model.learn_one(x, y, announced=announced)
        rec.observe(ticket, int(y))
    assert model.recalibrators[True] == rec
    assert rec.open == 0


def test_an_announced_forecast_is_learned_once_and_only_where_it_was_made() -> None:
    model, other = (RecalibratedClassifier(Table(), seed=seed) for seed in (1, 2))
    announced = model.forecast_one(yes(0.4))
    diary = len(model.classifier.diary)
    with pytest.raises(ForeignTicket):
        other.learn_one(yes(0.4), True, announced=announced)
    with pytest.raises(InvalidType, match="announced must be what forecast_one gave, got 3"):
        model.learn_one(yes(0.4), True, announced=3)
    assert len(model.classifier.diary) == diary
    model.learn_one(yes(0.4), True, announced=announced)
    with pytest.raises(RepeatedTicket):
        model.learn_one(yes(0.4), True, announced=announced)


def test_there_is_nothing_to_announce_without_a_label() -> None:
    model = RecalibratedClassifier(naive_bayes.GaussianNB(), seed=1)
    assert model.predict_proba_one({"x": 1.0}) == model.sample_proba_one({"x": 1.0}) == {}
    assert model.predict_one({"x": 1.0}) is None
    with pytest.raises(InvalidInput, match=r"score must have at least one label, got \{\}"):
        model.forecast_one({"x": 1.0})
    model.learn_one({"x": 1.0}, "a")
    assert model.predict_proba_one({"x": 1.0}) == {"a": 1.0}
    assert RecalibratedClassifier(Table(), seed=1).predict_proba_one({"score": {}}) == {}


def test_an_empty_score_is_no_round() -> None:
    model = RecalibratedClassifier(Table(), seed=1)
    for label in ("ant", True):
        model.learn_one({"score": {}}, label)
        assert model.predict_proba_one({"score": {}}) == {}
    assert model.recalibrators[True].rounds == 0
    assert set(model.predict_proba_one({"score": {"ant": 1.0}})) == {"ant", True}


@pytest.mark.parametrize("kind", [bool, np.bool_, int])
def test_yes_and_no_are_one_stream_however_they_are_written(kind) -> None:
    def model():
        return RecalibratedClassifier(naive_bayes.GaussianNB(), method="foster_hart", seed=1)

    one, other = model(), model()
    for x, y in phishing(60):
        assert one.predict_proba_one(x) == other.predict_proba_one(x)
        one.learn_one(x, y)
        other.learn_one(x, kind(y))
    assert one.recalibrators == other.recalibrators
    assert one.recalibrators[True].rounds == 59


def test_a_score_with_one_label_is_certain_of_it() -> None:
    model = RecalibratedClassifier(Table(), method="foster_hart", seed=1)
    model.learn_one({"score": {True: 1.0}}, True)
    model.learn_one({"score": {False: 1.0}}, False)
    rec = Recalibrator(seed=1)
    rec.replay([1.0, 0.0], [1, 0])
    assert model.recalibrators[True] == rec
    assert set(model.predict_proba_one({"score": {True: 1.0}})) == {False, True}


def test_rounding_in_a_score_is_forgiven_and_nothing_else() -> None:
    model = RecalibratedClassifier(Table(), seed=1)
    for p in (1.0 + 1e-12, -1e-12, np.float32(0.3)):
        assert math.isclose(
            sum(model.predict_proba_one({"score": {True: p, False: 0.0}}).values()), 1
        )
    for p in (1.1, float("nan")):
        diary = len(model.classifier.diary)
        with pytest.raises(InvalidInput, match=r"score must be a number in \[0, 1\], got"):
            model.learn_one({"score": {True: p, False: 0.0}}, True)
        assert "learn" not in "".join(model.classifier.diary[diary:])
    assert model.recalibrators[True].rounds == 0


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(UnknownName):
        RecalibratedClassifier(logistic(), method="nothing")
    with pytest.raises(InvalidInput, match="buckets must be a whole number from 1 to"):
        RecalibratedClassifier(logistic(), buckets=0)
    with pytest.raises(InvalidInput, match="unit must be 'rounds': there are no times here"):
        RecalibratedClassifier(logistic(), method="fading", unit="time", half_life=5.0)
    with pytest.raises(InvalidInput, match="experts must read no context: none is told here, got"):
        RecalibratedClassifier(logistic(), experts=(Identity(), Context()))
    with pytest.raises(InvalidType, match="parameters of foster_hart must be among"):
        RecalibratedClassifier(logistic(), method="foster_hart", wrong=1)


def test_clones_start_anew_and_copies_go_on() -> None:
    model = RecalibratedClassifier(logistic(), method="foster_hart", seed=7, buckets=5)
    for x, y in phishing(40):
        model.predict_proba_one(x)
        model.learn_one(x, y)
    fresh = model.clone()
    assert (fresh.method, fresh.seed, fresh.options) == ("foster_hart", 7, {"buckets": 5})
    assert fresh.recalibrators[True].rounds == 0
    assert model.clone({"seed": 8}).seed == 8
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.recalibrators == model.recalibrators
        for x, _ in phishing(60)[40:]:
            assert again.predict_proba_one(x) == copy.deepcopy(model).predict_proba_one(x)
        again.learn_one(x, True)
        assert again.recalibrators != model.recalibrators


def test_steps_are_compiled_once_it_is_worth_it(monkeypatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(live, "SHORT", 5)
    monkeypatch.setattr(Recalibrator, "compile", lambda rec: asked.append(rec.rounds))
    model = RecalibratedClassifier(Table(), method="foster_hart", seed=1)
    for _ in range(12):
        model.learn_one(yes(0.3), True)
    assert asked == [5]
    assert model.compile() is model
    assert asked == [5, 12]


def test_text_and_extra_arguments_go_to_the_wrapped_model() -> None:
    class Reader(dummy.NoChangeClassifier):
        def predict_proba_one(self, x, **kwargs):
            self.asked = x, kwargs
            return {False: 0.5, True: 0.5}

        def learn_one(self, x, y, **kwargs):
            self.learned = x, y, kwargs

    model = RecalibratedClassifier(Reader(), seed=1)
    model.predict_proba_one("some text", day=3)
    assert model.classifier.asked == ("some text", {"day": 3})
    model.learn_one("some text", True, w=2.0)
    assert model.classifier.learned == ("some text", True, {"w": 2.0})
    assert model.classifier.asked == ("some text", {})


def test_it_helps_where_a_model_is_too_sure() -> None:
    def score(model) -> float:
        return evaluate.progressive_val_score(phishing(1250), model, metrics.LogLoss()).get()

    bare = naive_bayes.GaussianNB()
    assert score(RecalibratedClassifier(bare.clone(), seed=1)) < score(bare)
