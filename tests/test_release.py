"""What is released: the wheel and the sdist work where there is no source beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="needs the extra test")

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
AT_WORK = """
import importlib, pathlib, pkgutil, sys
place = pathlib.Path(sys.argv[1]).resolve()
sys.path[:] = [str(place), *(p for p in sys.path if not pathlib.Path(p, "calibrant").is_dir())]
import calibrant
assert pathlib.Path(calibrant.__file__).resolve().is_relative_to(place), calibrant.__file__
from calibrant import Calibrant, datasets, errors, load
games = datasets.load_games("wnba")
model = Calibrant(seed=1)
run = model.replay(games.raw, games.outcomes)
assert load(model.to_bytes()).rounds == len(games) == len(run.mean)
for found in pkgutil.walk_packages(calibrant.__path__, "calibrant."):
    if not found.name.endswith("__main__") and not found.name.startswith("calibrant.experts"):
        try:
            importlib.import_module(found.name)
        except (errors.MissingExtra, ModuleNotFoundError) as missing:
            assert "calibrant" not in str(getattr(missing, "name", None)), missing
try:
    datasets.load_icing()
except errors.MissingData as told:
    print(told)
else:
    print("all data")
"""


def build(kind: str, source: Path, place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(place)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    return next(place.iterdir())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    place = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, place / "made")) as archive:
        archive.extractall(place / "out", filter="data")
    return next((place / "out").iterdir())


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the sdist alone, unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build("wheel", sdist, place / "made")) as archive:
        archive.extractall(place / "out")
    return place / "out"


def at_work(package: Path, away: Path) -> str:
    """Run the package from a directory without sources; return what it said last."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CALIBRANT_")}
    settings = {**kept, "PYTHONPATH": "", "XDG_CACHE_HOME": str(away), "CALIBRANT_COMPILE": "off"}
    command = [sys.executable, "-W", "ignore", "-c", AT_WORK, str(package)]
    ran = subprocess.run(command, cwd=away, capture_output=True, text=True, env=settings)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_wheel_works_with_its_source_gone(wheel: Path, tmp_path: Path) -> None:
    told = at_work(wheel, tmp_path)
    assert "data/gpl of a clone of the repository has it" in told


def test_the_sdist_works_and_has_the_data_that_stay_apart(sdist: Path, tmp_path: Path) -> None:
    assert at_work(sdist / "src", tmp_path) == "all data"
    for name in (
        "LICENSE",
        "README.md",
        "data/gpl/README.md",
        "tests/conftest.py",
        "docs/index.md",
    ):
        assert (sdist / name).is_file()


def test_nothing_under_another_licence_is_in_the_wheel(wheel: Path) -> None:
    names = {path.name for path in (wheel / "calibrant" / "datasets" / "streams").iterdir()}
    assert not names & {"weather_pop", "spf_recession", "forecastbench"}
    assert {"fivethirtyeight", "llm_mmlu_pro", "image_logits"} <= names


def test_the_wheel_has_every_file_that_the_package_reads(wheel: Path) -> None:
    source = ROOT / "src" / "calibrant"
    here = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix not in (".nbi", ".nbc")
    }
    there = {
        path.relative_to(wheel / "calibrant").as_posix()
        for path in (wheel / "calibrant").rglob("*")
        if path.is_file()
    }
    assert here == there


def test_every_package_of_all_tells_its_licence() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "licences.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = ran.stdout.splitlines()[2:]
    assert len(rows) > 20
    assert not [row for row in rows if "not told" in row]
