"""A new calibrator and a new transform are files of their own, and no other file is edited.

``newcomers`` holds two that the package does not have, each with its kernel and its obvious
version, in the folders where they would go.  They are laid over a copy of the repository.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from grown import ROOT, files_in, grow, pytest_on, ran

pytest.importorskip("typer", reason="asks the command line")
pytest.importorskip("river", reason="compares with River's methods")
pytest.importorskip("sklearn", reason="compares with scikit-learn's methods")

NEWCOMERS = ROOT / "tests" / "newcomers"
LISTS = (
    "every_module",
    "known_names",
    "every_rule_has",
    "every_method_of",
    "methods_lists",
    "registered",
    "every_calibrator",
    "calibrators.md",
    "transforms.md",
    "errors.md",
)
"""Words in the names of tests that look at all names at once, and pages that tell names."""

ASKING = re.compile(r"^(from|import) .*\b(registry|registered|machine_kinds)\b", re.MULTILINE)
"""How a file of tests comes by registered names: by itself, or through a module that does."""


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the new files in it and the tables of the pages made anew."""
    place = tmp_path_factory.mktemp("grown")
    grow(place, NEWCOMERS)
    ran(place, "docs/tables.py")
    return place


def test_the_newcomers_are_strangers_here() -> None:
    assert not [path for path in files_in(NEWCOMERS, ".py") if (ROOT / path).exists()]
    assert {path.stem for path in files_in(NEWCOMERS, ".py")} == {
        "root_slack", "naive_root_slack", "offset", "naive_offset",
    }  # fmt: skip


def test_a_new_calibrator_is_among_the_methods_of_the_command_line(grown: Path) -> None:
    told = json.loads(ran(grown, "-m", "calibrant.cli", "methods", "--json"))
    (row,) = [row for row in told if row["name"] == "root_slack"]
    assert row["bound"] == "E C1 <= h + (1 + h) sqrt(2K/T)"


def test_newcomers_are_compared_with_the_others(grown: Path) -> None:
    code = "from calibrant.compare import methods_by_name; print(*methods_by_name())"
    assert {"root_slack", "offset", "foster_hart"} <= set(ran(grown, "-c", code).split())


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("calibrators", "| `root_slack` | `RootSlack` | `E C1 <= h + (1 + h) sqrt(2K/T)` |"),
        ("transforms", "| `offset` | `Offset` | none |"),
        ("transforms", "| `offset` | `prior=10.0` |"),
    ],
)
def test_newcomers_come_into_the_tables_of_the_pages(grown: Path, page: str, row: str) -> None:
    assert row in (grown / "docs" / "reference" / f"{page}.md").read_text()
    assert row not in (ROOT / "docs" / "reference" / f"{page}.md").read_text()


@pytest.mark.slow
def test_newcomers_keep_every_law_and_no_list_of_names_has_to_be_edited(grown: Path) -> None:
    about = " or ".join(("root_slack", "offset", *LISTS))
    files = [path for path in sorted((grown / "tests").glob("test_*.py")) if asks_a_registry(path)]
    told = pytest_on(grown, "-rA", "-k", about, *map(str, files))
    passed = set(re.findall(r"^PASSED tests/(\w+)\.py::(\w+)", told, re.MULTILINE))
    for name in ("root_slack", "offset"):
        assert len(re.findall(rf"^PASSED .*\[.*\b{name}\b", told, re.MULTILINE)) > 10
    assert {
        ("test_contract", "test_every_module_registers_a_calibrator"),
        ("test_kernels", "test_a_two_point_rule_plays_as_its_obvious_version_does"),
        ("test_transforms", "test_every_module_registers_a_transform"),
        ("test_transforms_algorithms", "test_a_transform_plays_as_its_obvious_version_does"),
        ("test_docs_reference", "test_every_registered_calibrator_is_on_its_page"),
        ("test_cli", "test_methods_lists_the_registry"),
        ("test_compare", "test_every_method_of_the_registries_and_of_the_peers_takes_part"),
    } <= passed


def asks_a_registry(path: Path) -> bool:
    """Say whether a file of tests looks at registered names, or at the pages that tell them."""
    asks = re.search(ASKING, path.read_text())
    return path.name == "test_docs.py" or (bool(asks) and path.name != Path(__file__).name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["root_slack", "offset"])
def test_a_newcomer_without_an_obvious_version_is_named(grown: Path, name: str) -> None:
    oracle = grown / "tests" / f"naive_{name}.py"
    text = oracle.read_text()
    oracle.unlink()
    try:
        told = pytest_on(grown, "tests/test_transforms_algorithms.py", "-k", "every_rule", status=1)
    finally:
        oracle.write_text(text)
    assert f"'{name}'" in told
