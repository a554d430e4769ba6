"""A new kind of outcome touches at most eight files.

``new_kind`` holds one that the package does not have, intervals around point forecasts, in the
folders where its files would go, and what its summary adds to a page.  They are laid over a copy of
the repository, in which no other file is edited.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from grown import ROOT, files_in, grow, pytest_on, ran, touched

pytest.importorskip("typer", reason="asks the command line")
pytest.importorskip("matplotlib", reason="writes a report")

SOURCE = ROOT / "tests" / "new_kind"
PACKAGE = "src/calibrant/kinds/intervals"
CLI, SUMMARY = "docs/reference/cli.md", "docs/reference/summary.md"
FILES = {
    f"{PACKAGE}/__init__.py",
    f"{PACKAGE}/summary.py",
    f"{PACKAGE}/session.py",
    f"{PACKAGE}/view.py",
    "tests/kind_intervals.py",
    CLI,
    SUMMARY,
}
MOST = 8


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with the new kind in it, and its pages made anew."""
    place = tmp_path_factory.mktemp("grown")
    grow(place, SOURCE)
    with (place / SUMMARY).open("a") as page:
        page.write((SOURCE / SUMMARY).read_text())
    (place / CLI).write_text(ran(place, "-m", "calibrant.cli.reference"))
    ran(place, "docs/tables.py")
    return place


def test_a_new_kind_touches_at_most_eight_files(grown: Path) -> None:
    assert set(touched(grown)) == FILES
    assert len(FILES) < MOST, "one more is there for the page about the service"
    assert not [path for path in files_in(SOURCE, ".py") if (ROOT / path).exists()]


def test_the_page_about_design_lists_the_files_of_a_new_kind() -> None:
    page = (ROOT / "docs" / "design.md").read_text().partition("\n## A new kind of outcome\n")[2]
    rows = re.findall(r"^\| (?:new|edited|made anew)[^|]*\| `([^`]*)`", page, re.MULTILINE)
    assert len(rows) == len({*rows}) == MOST
    listed = {
        row.replace("<name>", "intervals").replace("kinds/", "src/calibrant/kinds/") for row in rows
    }
    assert listed - FILES == {"docs/reference/service.md"}
    assert listed >= FILES


def test_the_options_of_a_new_kind_are_in_the_help(grown: Path) -> None:
    page, before = ((place / CLI).read_text() for place in (grown, ROOT))
    for option in ("--centre", "--coverage"):
        assert option in page
        assert option not in before


def test_a_file_of_a_new_kind_is_replayed_and_reported(grown: Path, tmp_path: Path) -> None:
    source, page, state = (tmp_path / name for name in ("in.csv", "page.html", "kept.state"))
    rows = [f"{t % 7},{t % 7 + t % 3}" for t in range(400)]
    source.write_text("\n".join(["point,came", *rows]) + "\n")
    words = ["replay", str(source), "--centre", "point", "--outcome", "came", "--coverage", "0.8"]
    words += ["--state", str(state), "--report", str(page), "--json"]
    told = json.loads(ran(grown, "-m", "calibrant", *words))
    assert (told["kind"], told["n_rounds"], told["aim"]) == ("intervals", 400, 0.8)
    assert abs(told["forecast"]["covered"] - 0.8) < 0.1
    assert "Intervals cover" in page.read_text()
    told = json.loads(ran(grown, "-m", "calibrant", *words[:-3], "--again", "--json"))
    assert told["n_rounds"] == 800
    by = ran(grown, "-c", REFUSED.format(source=str(source)))
    assert "--by cannot be combined with --group, --proba, --quantiles, --normal and --centre" in by


REFUSED = """
import contextlib, io
from calibrant.cli.app import run
told = io.StringIO()
with contextlib.redirect_stderr(told):
    run(["replay", {source!r}, "--by", "came", "--centre", "point"])
print(" ".join(told.getvalue().split()))
"""


def test_a_new_kind_is_played_with_the_others(grown: Path) -> None:
    about = "intervals or every_package or no_two_kinds or default_takes"
    told = pytest_on(grown, "-rA", "tests/test_kinds.py", "-k", about)
    assert len(re.findall(r"^PASSED .*\[intervals\]", told, re.MULTILINE)) == 5
