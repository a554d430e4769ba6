"""Every theorem has a page, an induction step that runs, and a function that computes its bound."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from calibrant import bounds

ROOT = Path(__file__).resolve().parent.parent
THEORY = ROOT / "docs" / "theory"
ROW = re.compile(
    r"^\| (?P<name>[^|]+) \| [^|]+ \| \[[^]]+\]\((?P<page>[^)]+)\) \| `(?P<test>\w+)` \|"
)
PARTS = ["## Statement", "## Assumption", "## Induction step", "## Test", "## Bound"]
OVERVIEWS = {
    "adversaries": "who plays against the theorems",
    "advice": "several theorems about another game",
    "algorithm1": "the paper's algorithm and what follows from its theorems",
    "bounds": "all functions side by side",
    "errata": "where the paper errs",
    "late": "weights and lemmas that two theorems share",
    "losses": "what the theorems ask of a loss",
    "mixtures": "three theorems in a row",
    "regression": "what the theorems give for numbers",
    "selective-outcomes": "what is not proved",
    "theorems": "the list",
    "two-point-rule": "the lemma that most calibrators share",
}
"""Pages that are not about one theorem, and why."""


def rows() -> list[tuple[str, str, str, set[str]]]:
    """Theorem, page, test and functions of each row of the list."""
    lines = (THEORY / "theorems.md").read_text().splitlines()
    found = [(line, ROW.match(line)) for line in lines]
    return [
        (row["name"], row["page"], row["test"], set(re.findall(r"`bounds\.(\w+)`", line)))
        for line, row in found
        if row
    ]


ROWS = rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=[name for name, *_ in ROWS])


def test_every_bound_has_its_page() -> None:
    functions = {name for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))}
    listed = [name for *_, names in ROWS for name in names]
    assert len(listed) == len(set(listed)), "a bound belongs to one theorem"
    assert functions - {"theorem", "theorem_names"} == set(listed)


@each_row
def test_a_page_names_its_bounds_and_its_induction_step(
    row: tuple[str, str, str, set[str]],
) -> None:
    _, page, test, names = row
    text = (THEORY / page).read_text()
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()
    assert f"`{test}`" in text


@each_row
def test_the_induction_step_of_a_theorem_runs(row: tuple[str, str, str, set[str]]) -> None:
    texts = [path.read_text() for path in (ROOT / "tests").glob("test_*.py")]
    assert sum(f"def {row[2]}(" in text for text in texts) == 1


@each_row
def test_a_page_about_one_theorem_has_all_its_parts(row: tuple[str, str, str, set[str]]) -> None:
    lines = (THEORY / row[1]).read_text().splitlines()
    assert lines[0].startswith("# Theorem: ")
    assert [line for line in lines if line.startswith("## ")] == PARTS


def test_every_other_page_is_an_overview() -> None:
    assert len({page for _, page, *_ in ROWS}) == len(ROWS), "a page for each theorem"
    pages = {page.stem for page in THEORY.glob("*.md")}
    assert pages - {Path(page).stem for _, page, *_ in ROWS} == set(OVERVIEWS)
