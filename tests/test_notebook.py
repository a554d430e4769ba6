"""Expected habits: a page in notebooks, copies of all kinds, tensors, and no needless imports."""

from __future__ import annotations

import copy
import importlib
import importlib.resources
import importlib.util
import pickle
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import calibrant
from calibrant import Calibrant, Recalibrator
from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel
from calibrant.errors import MissingExtra
from calibrant.recalibrate.notebook import page
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

FOREIGN = (
    "duckdb",
    "jax",
    "joblib",
    "matplotlib",
    "narwhals",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "river",
    "scipy",
    "sklearn",
    "torch",
)
SVG = "{http://www.w3.org/2000/svg}"


def used(kind=Recalibrator, **options):
    rng = np.random.default_rng(3)
    raw = rng.random(200)
    model = kind(seed=3, **options)
    model.replay(raw, rng.random(200) < raw**2)
    model.forecast(0.4, id="waits")
    return model


# The page in a notebook.


def parsed(model) -> ElementTree.Element:
    return ElementTree.fromstring(page(model))


@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
def test_the_page_shows_each_value_that_was_drawn(kind) -> None:
    model = used(kind)
    tree, account = parsed(model), model._account()
    counts, ones = account.counts.sum(axis=0), account.ones.sum(axis=0)
    told = [circle.find(f"{SVG}title").text for circle in tree.iter(f"{SVG}circle")]
    assert told == [
        f"{value:.3g}: happened {y / n:.1%} of {n:,.0f} times"
        for value, n, y in zip(model.calibrator.lattice.values, counts, ones, strict=True)
        if n
    ]


def test_circles_lie_on_the_diagonal_where_forecasts_came_true() -> None:
    model = Recalibrator("running_mean", resolution=4, buckets=1, seed=1)
    model.replay([0.5] * 400, [0, 1] * 200)
    tree = parsed(model)
    diagonal = next(tree.iter(f"{SVG}line"))
    x1, y1, x2, y2 = (float(diagonal.get(name)) for name in ("x1", "y1", "x2", "y2"))
    circle = max(tree.iter(f"{SVG}circle"), key=lambda each: float(each.get("r")))
    assert float(circle.get("cx")) == pytest.approx((x1 + x2) / 2, abs=1.0)
    assert float(circle.get("cy")) == pytest.approx((y1 + y2) / 2, abs=1.0)
    assert y1 > y2


def test_the_page_tells_the_record() -> None:
    model = used(Calibrant)
    text = "".join(parsed(model).itertext())
    record = model.certificate()
    for part in ("Calibrant", "refining", "rounds200", "open1", f"{record.c2:.5f}"):
        assert part in text
    assert f"the raw forecast's{record.raw_loss:.4f}" in text


@pytest.mark.parametrize("method", calibrators.names())
def test_every_calibrator_has_a_page_from_the_start(method) -> None:
    model = Recalibrator(method, resolution=4, buckets=2, seed=1)
    tree = parsed(model)
    assert not list(tree.iter(f"{SVG}circle"))
    assert "rounds0" in "".join(tree.itertext())
    model.replay([0.2, 0.7], [0, 1])
    assert list(parsed(model).iter(f"{SVG}circle"))


def test_looking_changes_nothing_and_runs_nothing() -> None:
    model = used()
    before = model.to_bytes()
    text = page(model)
    assert text == page(model)
    assert model.to_bytes() == before
    for foreign in ("<script", "href", "src=", "url("):
        assert foreign not in text


# Copies of all kinds are the byte format.


MODELS = {
    "recalibrator": used,
    "calibrant": lambda: used(Calibrant),
    "one against the rest": lambda: OneVsRest(3, seed=2),
    "top label": lambda: TopLabel(7, seed=2),
    "mended": lambda: ClassCalibrant(4, seed=2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy", "own"])
def test_copies_are_the_byte_format(name, way) -> None:
    model = MODELS[name]()
    ways = {
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "copy": lambda: copy.copy(model),
        "deepcopy": lambda: copy.deepcopy(model),
        "own": lambda: type(model).from_bytes(model.to_bytes()),
    }
    made = ways[way]()
    assert made is not model
    assert made == model
    assert made.to_bytes() == model.to_bytes()
    raw = 0.5 if isinstance(model, Recalibrator) else np.full(model.classes, 1 / model.classes)
    made.learn_one(raw, 1)
    assert made != model


def test_pickles_hold_the_byte_format() -> None:
    model = used()
    assert model.to_bytes() in pickle.dumps(model)


@pytest.mark.parametrize("name", MODELS)
def test_joblib_stores_the_byte_format(name, tmp_path) -> None:
    if importlib.util.find_spec("joblib") is None:
        # The base install has none, and nothing to store with it.
        return
    import joblib

    model = MODELS[name]()
    joblib.dump(model, tmp_path / "model")
    assert joblib.load(tmp_path / "model").to_bytes() == model.to_bytes()


# Tensors.


class Tensor:
    """Speak the protocol that PyTorch and JAX speak, and nothing else."""

    def __init__(self, values) -> None:
        self._values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)


@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
def test_tensors_come_in_and_arrays_go_out(kind) -> None:
    rng = np.random.default_rng(5)
    raw = rng.random(50).astype(np.float32)
    outcomes = rng.integers(0, 2, 50)
    run = kind(seed=1).replay(Tensor(raw), Tensor(outcomes))
    expected = kind(seed=1).replay(raw, outcomes)
    assert type(run.forecast) is type(run.mean) is np.ndarray
    assert run.mean.tolist() == expected.mean.tolist()


def test_tables_of_scores_may_be_tensors_too() -> None:
    table, classes = np.full((3, 5), 0.2), np.array([0, 4, 2])
    run = TopLabel(5, seed=1).replay(Tensor(table), Tensor(classes))
    assert run.mean.tolist() == TopLabel(5, seed=1).replay(table, classes).mean.tolist()


class Capsule:
    """Speak DLPack, and nothing else."""

    def __init__(self, values) -> None:
        self._values = np.asarray(values)
        self.shape = self._values.shape

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_tensors_that_speak_dlpack_alone_are_taken_too() -> None:
    raw, outcomes = np.array([0.2, 0.7, 0.9]), np.array([0, 1, 1])
    run = Calibrant(seed=1).replay(Capsule(raw), Capsule(outcomes))
    assert run.mean.tolist() == Calibrant(seed=1).replay(raw, outcomes).mean.tolist()
    table = np.full((3, 5), 0.2)
    made = TopLabel(5, seed=1).replay(Capsule(table), Capsule(np.array([0, 4, 2])))
    assert made.mean.shape == (3, 5)


def test_tensors_without_dimensions_are_numbers() -> None:
    model = Calibrant(seed=1)
    scalar = Tensor(np.float32(0.5))
    scalar.shape = ()
    for raw in (np.float32(0.5), np.array(0.5), scalar, Capsule(np.array(0.5))):
        assert model.forecast(raw).raw == 0.5
    assert model.observe(0, Capsule(np.array(1))).outcome == 1


# Imports.


def test_importing_the_package_imports_no_other_library() -> None:
    program = (
        "import sys, calibrant, calibrant.integrations; from calibrant import Calibrant; "
        "Calibrant(seed=1).learn_one(0.5, 1); "
        f"print([name for name in {FOREIGN} if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "needs", "told"),
    [
        (
            "calibrant.integrations.river",
            "river",
            "calibrant.integrations.river needs River, which is not installed: "
            'pip install ".[river]" in a clone of calibrant',
        ),
        (
            "calibrant.integrations.sklearn",
            "sklearn",
            "calibrant.integrations.sklearn needs scikit-learn, which is not installed: "
            'pip install ".[sklearn]" in a clone of calibrant',
        ),
        (
            "calibrant.frames",
            "narwhals",
            "calibrant.frames needs narwhals, which is not installed: "
            'pip install ".[frames]" in a clone of calibrant',
        ),
    ],
)
def test_without_its_library_a_face_says_what_to_install(monkeypatch, module, needs, told) -> None:
    parent, _, name = module.rpartition(".")
    for loaded in [each for each in sys.modules if f"{each}.".startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    # Not by `delattr`, which would ask the parent for the package, and so import it.
    monkeypatch.delitem(vars(importlib.import_module(parent)), name, raising=False)
    monkeypatch.setitem(sys.modules, needs, None)
    with pytest.raises(MissingExtra) as caught:
        importlib.import_module(module)
    assert str(caught.value) == told


def test_the_package_is_typed() -> None:
    assert (importlib.resources.files(calibrant) / "py.typed").is_file()
