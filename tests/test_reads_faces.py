"""Reads change nothing: of the faces of River and scikit-learn, and of streaming metrics.

A test looks for every public class that learns, so that none is forgotten.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river", reason='needs the extra "river"')
pytest.importorskip("sklearn", reason='needs the extra "sklearn"')

from machine_kinds import KINDS
from river import linear_model
from sklearn.linear_model import SGDClassifier

import calibrant
from calibrant.advice import ExponentialWeights, OnlineExperts
from calibrant.errors import MissingExtra
from calibrant.integrations import river, sklearn
from calibrant.metrics import streaming
from calibrant.summary import Collector
from tests.test_reads_others import RAWS, SUBJECTS, Subject, check_reads

pytestmark = pytest.mark.once

ROWS = np.array([[0.3, -1.0], [1.2, 0.1], [-0.7, 0.4], [0.0, 2.0], [-1.5, -0.2], [0.9, 0.9]])
METRICS: dict[str, Callable[[], Any]] = {
    "BucketedCells": streaming.BucketedCells,
    "EqualMass": streaming.EqualMass,
    "ExactCells": streaming.ExactCells,
    "ExpectedCells": lambda: streaming.ExpectedCells([0.0, 0.5, 1.0]),
    "MeanLoss": streaming.MeanLoss,
    "StreamingATB": streaming.StreamingATB,
    "StreamingAUC": streaming.StreamingAUC,
    "StreamingSmooth": streaming.StreamingSmooth,
    "Windowed": lambda: streaming.Windowed(2),
}
COPIED = ("repr", "copy.copy", "copy.deepcopy", "pickle")


def metric(make: Callable[[], Any]) -> Subject:
    """Return a streaming metric: what it tells after each round is what it tells unasked."""

    def step(made: Any, t: int) -> Any:
        if isinstance(made, streaming.ExpectedCells):
            made.update([0, 2], [RAWS[t], 1.0 - RAWS[t]], t % 2)
        else:
            made.update(RAWS[t], t % 2)
        return repr(made.result())

    writes = "update update_many merge revert from_dict"
    return Subject(
        lambda folder: make(), step, writes, stored=lambda made: made.to_dict(), always=COPIED
    )


def experts_step(made: OnlineExperts, t: int) -> list[float]:
    made.update([RAWS[t], 1.0 - RAWS[t], 0.5])
    weights: list[float] = made.weights.tolist()
    return weights


def seen(t: int) -> dict[str, float]:
    """Return the features of a round as River has them."""
    return dict(zip("ab", ROWS[t].tolist(), strict=True))


def river_metric(make: Callable[[], Any]) -> Subject:
    def step(made: Any, t: int) -> Any:
        made.update(bool(t % 2), RAWS[t])
        return repr(made.get())

    given = {"is_better_than": lambda made: made.is_better_than(made.clone())}
    writes = "update revert mutate works_with"
    # What a metric of River holds is in its attributes.
    return Subject(lambda folder: make(), step, writes, given, stored=pickle.dumps, always=COPIED)


def drift_step(made: Any, t: int) -> list[bool]:
    made.update(t % 2 - RAWS[t])
    return [made.drift_detected, made.warning_detected]


def classifier_step(made: Any, t: int) -> Any:
    made.learn_one(seen(t), bool(t % 2))
    made.learn_one(seen((t + 1) % 6), not t % 2)
    return made.predict_proba_one(seen(5 - t))


CLASSIFIER: dict[str, Any] = {
    name: lambda made, name=name: getattr(made, name)(seen(3))
    for name in ("predict_one", "predict_proba_one", "sample_proba_one")
}


def regressor_step(made: Any, t: int) -> Any:
    made.learn_one(seen(t), RAWS[t])
    return made.predict_one(seen(5 - t)), repr(made.predict_one(seen(5 - t), with_interval=True))


REGRESSOR: dict[str, Any] = {
    "predict_one": lambda made: [made.predict_one(seen(3), with_interval=i) for i in (0, 1)],
}


def sklearn_step(made: Any, t: int) -> Any:
    rows = np.roll(ROWS, t, axis=0)
    made.partial_fit(rows, np.arange(6) % 2, classes=[0, 1])
    return made.predict_proba(ROWS).tolist()


SKLEARN: dict[str, Any] = {
    name: lambda made, name=name: getattr(made, name)(ROWS)
    for name in ("predict", "predict_proba", "sample_proba")
} | {"score": lambda made: made.score(ROWS, np.arange(6) % 2)}


COLLECTOR: dict[str, Any] = {
    name: lambda made, name=name: getattr(made, name)("mean")
    for name in ("buckets", "smooth", "ranking", "unsure", "counts", "log_loss")
} | {
    "nearest": lambda made: made.nearest(np.array([0.3])),
    "windows": lambda made: made.windows(0),
}


def recalibrators(made: Any) -> list[bytes]:
    """Return the states inside a classifier of River."""
    return [each.to_bytes() for each in made.recalibrators.values()]


FACES: dict[str, Subject] = {
    **{name: metric(make) for name, make in METRICS.items()},
    "OnlineExperts": Subject(
        lambda folder: OnlineExperts(ExponentialWeights(3)),
        experts_step,
        "update",
        stored=lambda made: repr(made.state),
        always=COPIED,
    ),
    "Collector": Subject(
        lambda folder: Collector([0.0, 0.5, 1.0]),
        lambda made, t: made.update([RAWS[t]], [0.5], [0.4], [t % 2]),
        "update from_document",
        COLLECTOR,
        stored=lambda made: made.document().to_bytes(),
        always=COPIED,
    ),
    "Brier": river_metric(river.Brier),
    "CalibrationError": river_metric(river.CalibrationError),
    "Reliability": river_metric(river.Reliability),
    "CalibrationDrift": Subject(
        lambda folder: river.CalibrationDrift(),
        drift_step,
        "update mutate",
        stored=lambda made: made.monitor.to_bytes(),
        always=COPIED,
    ),
    "RecalibratedClassifier": Subject(
        lambda folder: river.RecalibratedClassifier(linear_model.LogisticRegression(), seed=1),
        classifier_step,
        "learn_one forecast_one mutate compile",
        CLASSIFIER,
        stored=recalibrators,
        always=COPIED,
    ),
    "RecalibratedRegressor": Subject(
        lambda folder: river.RecalibratedRegressor(linear_model.LinearRegression()),
        regressor_step,
        "learn_one mutate",
        REGRESSOR,
        stored=lambda made: made.interval.to_bytes(),
        always=COPIED,
    ),
    "OnlineCalibratedClassifier": Subject(
        lambda folder: sklearn.OnlineCalibratedClassifier(
            SGDClassifier(loss="log_loss", random_state=1), cv="prequential", random_state=1
        ),
        sklearn_step,
        "fit partial_fit forecast observe set_params set_fit_request set_partial_fit_request "
        "set_score_request",
        SKLEARN,
        stored=lambda made: [each.to_bytes() for each in vars(made).values() if _is_state(each)],
        always=COPIED,
    ),
}
"""Every face, and every streaming metric, by the name of its class."""


def _is_state(each: Any) -> bool:
    return hasattr(each, "to_bytes") and hasattr(each, "certificate")


@pytest.mark.parametrize("name", FACES)
def test_each_read_leaves_the_state_as_it_was(name: str, tmp_path: Path) -> None:
    check_reads(FACES[name], tmp_path)


# Nobody is forgotten.


VERBS = {"update", "observe", "learn_one", "partial_fit", "take"}
APART = ("client", "demo", "experiments", "experts", "kinds", "live", "serve", "simulate", "stream")
"""Packages of which nothing that learns is held in hands: it is asked over a wire, or inside."""


def learners() -> dict[str, type]:
    """Return every public class that learns, apart from frozen rules with pure methods."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
        parts = module.name.split(".")[1:]
        if parts[0] in APART or any(part.startswith("_") for part in parts):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except MissingExtra:
            continue
        named = (getattr(loaded, name) for name in getattr(loaded, "__all__", ()))
        for made in filter(inspect.isclass, named):
            if VERBS & set(dir(made)) and not inspect.isabstract(made) and not _frozen(made):
                found[made.__name__] = made
    return found


def _frozen(made: type) -> bool:
    settings = getattr(made, "__dataclass_params__", None)
    return dataclasses.is_dataclass(made) and settings is not None and bool(settings.frozen)


def test_every_public_class_that_learns_is_among_those_that_are_read(tmp_path: Path) -> None:
    known = {type(kind.make(0, 2)) for kind in KINDS.values()}
    for number, subject in enumerate([*SUBJECTS.values(), *FACES.values()]):
        (tmp_path / str(number)).mkdir()
        known.add(type(subject.make(tmp_path / str(number))))
    missing = {name for name, made in learners().items() if made not in known}
    assert missing == set()
    assert {"Recalibrator", "Windowed", "OnlineCalibratedClassifier", "Table"} <= set(learners())
