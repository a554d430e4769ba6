"""Tables that commands keep for pages: all that is printed, under one name, and whole runs only."""

from __future__ import annotations

import doctest
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from benchmarks import bench, store
from benchmarks.quality import __main__ as panel
from benchmarks.quality import page
from benchmarks.quality.bars import Line

pytestmark = pytest.mark.once

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "PLACE", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["it", "--seeds", "3", "--store"])
    return tmp_path / "results"


def test_what_is_printed_meanwhile_is_kept_beside_the_command(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with store.storing("it", part="late", wanted=True):
        print(f"before\n{TABLE}\n\n{TABLE}")
    kept = json.loads((place / "it_late.json").read_text())
    assert kept["command"] == "python -m benchmarks.it --seeds 3"
    assert kept["tables"] == 2 * [{"head": ["a", "b"], "rows": [["1", "2"]]}]
    assert kept["lines"] == ["before"]
    assert capsys.readouterr().out == f"before\n{TABLE}\n\n{TABLE}\n"


def test_nothing_is_kept_unless_that_is_wanted(place: Path) -> None:
    with store.storing("it", wanted=False):
        print(TABLE)
    assert not place.exists()


def test_a_command_that_fails_keeps_nothing(place: Path) -> None:
    def fail() -> None:
        with store.storing("it", wanted=True):
            print(TABLE)
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        fail()
    assert not place.exists()


@pytest.mark.parametrize("rule", ["|---|---|", "| --- | ---: |", "|:---|---|"])
def test_tables_are_found_however_their_rule_is_written(rule: str) -> None:
    (found,), others = store.tables_in(f"| a | |\n{rule}\n| --- | 2 |\n")
    assert found == {"head": ["a", ""], "rows": [["---", "2"]]}
    assert others == []


def test_the_examples_of_the_store_are_right() -> None:
    assert doctest.testmod(store) == (0, 2)


def test_every_part_that_keeps_tables_takes_the_option() -> None:
    for part in bench.PARTS:
        found = importlib.util.find_spec(part.words[0])
        assert found is not None
        file = Path(str(found.origin))
        main = file.with_name("__main__.py") if file.name == "__init__.py" else file
        text = main.read_text()
        assert not part.stores or "add_store(" in text or '"--store"' in text, part


def test_the_tables_of_a_quick_run_are_never_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--quick", "--store"])
    assert "--store must come without --quick" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        panel.parse(["--store", "--only", "538"])
    assert "--store must come without --only and --quick" in capsys.readouterr().err


def test_parts_keep_their_tables_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = bench.Part("quality", "it", ("platform",))
    assert bench.measured(part, quick=False, store=True)["command"].endswith(" --store")
    assert bench.measured(part, quick=False)["command"] == "python -m platform"
    other = bench.Part("quality", "it", ("platform",), stores=False)
    assert bench.measured(other, quick=False, store=True)["command"] == "python -m platform"


def test_every_stream_of_the_panel_is_in_one_set() -> None:
    names = ("538 nba", "drift", "drift data fetal_health", "drift data bank", "SPF recessions")
    sets = [[which for which in panel.SETS if panel.is_in(name, which)] for name in names]
    assert sets == [["short"], ["long"], ["short"], ["long"], ["late"]]
    assert all(panel.is_in(name, None) for name in names)


def line(stream: str, what: str, ours: float, *, chose: bool = True) -> Line:
    return Line(stream, what, 0.25, 0.2, "OPS", ours, 0.21, chose, chose)


def test_the_panel_counts_bars_and_streams_by_kind() -> None:
    found = [
        *(line("apart", what, 0.3, chose=False) for what in ("Brier, outsiders", "C2")),
        *(line("seen", what, 0.1) for what in ("Brier, outsiders", "Brier, own", "C2")),
        *(line("other", what, 0.3) for what in ("Brier, outsiders", "C2")),
        *(line("greedy |S|", what, 0.1) for what in ("C2", "worst block")),
    ]
    text = "\n".join(page.tables(found))
    counts, apart, seen, games = store.tables_in(text)[0]
    assert counts["rows"] == [
        ["chose no experts and no grid", "1", "no bar", "no bar", "0", "0"],
        ["looked at when the default was chosen", "2", "3 of 5", "1 of 2", "1", "1"],
    ]
    assert [row[0] for row in apart["rows"]] == ["apart"]
    assert [row[-1] for row in seen["rows"]] == ["", "Brier, outsiders, C2"]
    assert games["rows"] == [
        ["greedy \\|S\\|", "0.2500", "0.10000", "0.21000", "0.1000", "0.2100", ""]
    ]
