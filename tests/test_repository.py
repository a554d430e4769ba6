"""The repository as a whole: what ships, what is pinned, and what must never be in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from marked import MARKS, may_choose

from calibrant._version import __version__

ROOT = Path(__file__).resolve().parent.parent
LOCKED = sorted(ROOT.glob("requirements/*.txt"))
SPARK = ROOT / "requirements" / "spark.txt"
SITE = ROOT / "requirements" / "docs.txt"
"""Beside the others: PySpark takes no pandas 3."""
SCRIPTS = [".ci/run", "script/audit", "script/demo", "script/lock", "script/test"]

REGISTRY = re.compile(r"https?://\S*/(?:simple|packages)/|--(?:extra-)?index-url\s*[ =]\s*http")
MACHINE = re.compile(r"(?<![\w.~/-])/(?:home|root|Users|opt|work|mnt|srv)/\w")


def names_in_git() -> list[str] | None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def names_on_disk() -> list[str]:
    skipped = re.compile(r"(^|/)(\.(?!ci/|gitignore)|__pycache__/|demo/|build/|dist/)")
    paths = (path for path in ROOT.rglob("*") if path.is_file())
    names = (path.relative_to(ROOT).as_posix() for path in paths)
    return [name for name in names if not skipped.search(name)]


def files() -> list[str]:
    """Everything that belongs to the repository, committed or about to be."""
    return names_in_git() or names_on_disk()


def lines_of_text() -> Iterator[tuple[str, str]]:
    for name in files():
        content = (ROOT / name).read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode().splitlines(), 1):
            yield f"{name}:{number}", line


def where(pattern: re.Pattern[str]) -> list[str]:
    return [place for place, line in lines_of_text() if pattern.search(line)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with zipfile.ZipFile(next(place.glob("*.whl"))) as opened:
        yield opened


def test_the_lists_of_git_and_of_the_disk_both_find_this_file() -> None:
    own_name = Path(__file__).relative_to(ROOT).as_posix()
    assert own_name in names_on_disk()
    assert own_name in files()
    assert not [name for name in files() if name.startswith(".venv")]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY, "https:" + "//mirror.example/simple/"),
        (REGISTRY, "--index-url " + "http://mirror.example"),
        (MACHINE, "see " + "/home" + "/someone/notes"),
        (MACHINE, "'" + "/work" + "/main'"),
    ],
)
def test_the_patterns_below_find_what_they_are_for(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_no_file_names_a_package_registry() -> None:
    assert where(REGISTRY) == []


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    assert where(MACHINE) == []


def test_there_is_no_uv_lock() -> None:
    assert [name for name in files() if Path(name).name == "uv.lock"] == []


def requirements_in(path: Path) -> list[str]:
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    return text.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_every_requirement_is_pinned_and_hashed(path: Path) -> None:
    rows = requirements_in(path)
    assert rows
    for row in rows:
        assert re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", row), row


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_requirement_files_hold_no_address(path: Path) -> None:
    assert "//" not in path.read_text()


def pinned_names(path: Path) -> set[str]:
    return {row.partition("==")[0] for row in requirements_in(path)}


def test_requirement_files_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = [row for extra in project["optional-dependencies"].values() for row in extra]
    asked = {re.split(r"[<>=\[]", row)[0] for row in rows}
    pinned = pinned_names(ROOT / "requirements" / "test.txt")
    assert asked - {"calibrant", "protobuf", "pyspark"} <= pinned
    assert {"numba", "pandas", "protobuf", "pyspark"} <= pinned_names(SPARK)
    assert "numba" in pinned_names(ROOT / "requirements" / "demo.txt")


def asked_by(name: str) -> Iterator[str]:
    """Yield what an extra, or an installed package, asks for; those of other extras aside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    try:
        known = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        known = []
    for row in project["optional-dependencies"].get(name, known):
        if found := re.match(r"calibrant\[(.*)\]", row):
            yield from found[1].split(",")
        elif "extra ==" not in row:
            yield re.split(r"[^\w.-]", row)[0]


def brought_by(extra: str) -> set[str]:
    """Return every package that an extra brings along."""
    found, waiting = set[str](), [extra]
    while waiting:
        more = set(asked_by(waiting.pop())) - found
        found |= more
        waiting += more
    return found


def under_gpl(name: str) -> bool:
    try:
        told = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return False
    fields = [told.get("License-Expression"), told.get("License"), *told.get_all("Classifier", [])]
    starts = (field for field in fields if field and not field.startswith("Development"))
    return any(re.search(r"\bA?GPL|(?<!Lesser )General Public", field[:80]) for field in starts)


def test_nothing_under_the_gpl_comes_with_all() -> None:
    assert {"numba", "river", "numpy", "llvmlite"} <= brought_by("all")
    assert not list(filter(under_gpl, brought_by("all")))


def test_what_is_under_the_gpl_has_to_be_asked_for() -> None:
    pytest.importorskip("msprime", reason="needs the extra experiments")
    assert list(filter(under_gpl, brought_by("experiments"))) == ["msprime"]
    assert "--extra experiments" in (ROOT / "script" / "lock").read_text()


def test_the_base_environment_holds_no_extra() -> None:
    base = pinned_names(ROOT / "requirements" / "test-base.txt")
    assert "numpy" in base
    assert not base & {"numba", "scipy", "scikit-learn", "river", "pyarrow", "matplotlib", "rich"}


def pins_in(path: Path) -> set[str]:
    """Return packages with their versions; what some ask for on older Pythons all may have."""
    return {row.partition("--hash")[0].partition(";")[0].strip() for row in requirements_in(path)}


@pytest.mark.parametrize("path", LOCKED, ids=lambda path: path.stem)
def test_a_package_has_the_same_pin_in_every_file(path: Path) -> None:
    test = ROOT / "requirements" / "test.txt"
    here = {pin for pin in pins_in(path) if pin.partition("==")[0] in pinned_names(test)}
    apart = {pin for pin in here if pin.startswith("pandas==")} if path == SPARK else set()
    assert here - apart <= pins_in(test)
    assert path in (SPARK, SITE) or here == pins_in(path)


def test_the_wheel_holds_the_marker_of_a_typed_package(wheel: zipfile.ZipFile) -> None:
    assert "calibrant/py.typed" in wheel.namelist()


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"calibrant", f"calibrant-{__version__}.dist-info"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name]


def test_the_wheel_says_version_licence_and_numpy(wheel: zipfile.ZipFile) -> None:
    metadata = wheel.read(f"calibrant-{__version__}.dist-info/METADATA").decode().splitlines()
    required = [line for line in metadata if line.startswith("Requires-Dist")]
    assert f"Version: {__version__}" in metadata
    assert "License-Expression: BSD-3-Clause" in metadata
    assert [line for line in required if "extra ==" not in line] == ["Requires-Dist: numpy>=1.26"]


def test_the_licence_is_there_and_names_its_holder() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("BSD 3-Clause License")
    assert "The calibrant authors" in text


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_changelog_has_room_for_the_next_change() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_run_and_parsed(name: str) -> None:
    path = ROOT / name
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"
    assert os.access(path, os.X_OK)
    subprocess.run([shell, "-n", str(path)], check=True)


@pytest.mark.base
def test_importing_the_package_brings_in_numpy_alone() -> None:
    code = "import sys, calibrant; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment()
    )
    foreign = {"numba", "scipy", "sklearn", "river", "pyarrow", "pandas", "matplotlib", "typer"}
    assert not foreign & set(ran.stdout.split())


def environment(**changes: str) -> dict[str, str]:
    """This process's settings, with the package where this process found it, and ``changes``."""
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    kept = {name: value for name, value in os.environ.items() if name != "CALIBRANT_REQUIRE"}
    return kept | found | changes


NO_SKIPS = """
import pytest

def test_that_runs(): pass

@pytest.mark.xfail(strict=True, reason="known")
def test_that_is_expected_to_fail(): raise ValueError
"""

MARKED = """
import pytest
@pytest.mark.slow
def test_that_takes_long(): pass
@pytest.mark.base
def test_that_does_not(): pass
"""


@pytest.mark.parametrize(
    ("text", "wholly", "expected"),
    [
        ("def test_that_runs(): pass", [], [False, True, False, True]),
        ("def test_that_runs(): pass", ["plain"], [False, True, False, False]),
        ("def test_that_runs(): pass", ["once"], [False, False, True, False]),
        (MARKED, [], [True, True, False, True]),
        (MARKED, ["once"], [True, False, True, True]),
        ("pytestmark = [pytest.mark.base, pytest.mark.once]", [], [True, False, True, False]),
        ("pytestmark = pytest.mark.slow", ["once"], [False, False, False, True]),
    ],
)
def test_only_files_without_a_test_that_is_chosen_are_left_out(
    text: str, wholly: list[str], expected: list[bool]
) -> None:
    legs = [
        "alone and not slow",
        "not slow and not once and not alone",
        "once and not slow and not alone",
        "slow or not once and not plain",
    ]
    assert [may_choose(chosen, text, wholly) for chosen in legs] == expected
    assert may_choose("some_other_mark or (", text, wholly)


def test_files_say_themselves_how_their_tests_are_marked() -> None:
    """What is marked in a helper could be left out: nobody looks there for marks."""
    tests = ROOT / "tests"
    helpers = [path for path in tests.rglob("*.py") if not path.name.startswith("test_")]
    marking = [path for path in helpers if MARKS.search(path.read_text())]
    assert [path.relative_to(tests).as_posix() for path in marking] == ["conftest.py"]


def test_files_that_are_left_out_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "test_losses_broken.py").write_text("raise ValueError\n")
    (tmp_path / "test_fine.py").write_text(NO_SKIPS)
    assert run_pytest(tmp_path, PYTEST_ADDOPTS="-m 'not once'").returncode == 0
    assert run_pytest(tmp_path, PYTEST_ADDOPTS="-m once").returncode == 2


SKIPS = {
    "test_tool.py": "import pytest\ndef test_without_its_tool(): pytest.skip('no browser')",
    "test_data.py": "def test_without_its_data(fetched_dir): pass",
    "test_extra.py": "import pytest\npytest.importorskip('a_package_that_nobody_has')",
}


def run_pytest(place: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "tests" / "conftest.py", place)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(place)]
    nowhere = dict.fromkeys(("CALIBRANT_DATA", "CALIBRANT_FETCHED"), str(place / "nowhere"))
    settings = environment(**nowhere, **changes)
    return subprocess.run(command, cwd=place, capture_output=True, text=True, env=settings)


def test_skips_fail_the_run_and_are_listed_where_everything_is_required(tmp_path: Path) -> None:
    for name, text in SKIPS.items():
        (tmp_path / name).write_text(text)
    ran = run_pytest(tmp_path, CALIBRANT_REQUIRE="all")
    assert ran.returncode == 1
    for pattern in (
        r"test_tool.*no browser",
        r"test_data.*no fetched",
        r"test_extra.*nobody",
    ):
        assert re.search(pattern, ran.stdout)


def test_skips_are_fine_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "test_tool.py").write_text(SKIPS["test_tool.py"])
    assert run_pytest(tmp_path).returncode == 0


def test_an_expected_failure_is_not_a_skip(tmp_path: Path) -> None:
    (tmp_path / "test_fine.py").write_text(NO_SKIPS)
    assert run_pytest(tmp_path, CALIBRANT_REQUIRE="all").returncode == 0
