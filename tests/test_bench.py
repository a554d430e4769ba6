"""One command for all measurements: its parts are there, it goes on, its page shows results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from benchmarks import bench

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    return tmp_path


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    given = (
        bench.Part("quality", "works", ("platform",)),
        bench.Part("speed", "fails", ("json.tool", "nowhere"), peers=True),
    )
    monkeypatch.setattr(bench, "PARTS", given)


def test_every_part_is_a_module_that_exists() -> None:
    for part in bench.PARTS:
        assert part.subject in bench.SUBJECTS
        assert importlib.util.find_spec(part.words[0]), part
    places = [part.place for part in bench.PARTS]
    assert len(set(places)) == len(places)


def test_peers_take_part_only_where_they_are_asked_for() -> None:
    assert not any(part.peers for part in bench.chosen([], peers=False))
    assert any(part.peers for part in bench.chosen([], peers=True))
    assert {part.subject for part in bench.chosen(["speed"], peers=True)} == {"speed"}


def test_a_run_goes_on_where_it_stopped(
    place: Path, parts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--peers"]) == 1
    told = json.loads((place / "quality-works.json").read_text())
    assert told["code"] == 0
    assert {"processor", "python", "numpy"} <= set(told["machine"])
    assert "speed: fails: FAILED" in capsys.readouterr().err
    stamp = (place / "quality-works.json").stat().st_mtime_ns
    assert bench.main(["--peers", "--quick"]) == 1
    assert (place / "quality-works.json").stat().st_mtime_ns == stamp
    assert "quality: works: done before" in capsys.readouterr().err


def test_a_quick_run_does_not_stand_for_a_whole_one(place: Path, parts: None) -> None:
    assert bench.main(["quality", "--quick"]) == 0
    assert bench.is_done(bench.PARTS[0], quick=True)
    assert not bench.is_done(bench.PARTS[0], quick=False)


def test_the_page_shows_outputs_commands_and_the_machine(place: Path, parts: None) -> None:
    bench.main(["quality"])
    page = (place / "index.html").read_text()
    assert "<h2>quality: works</h2>" in page
    assert "<code>python -m platform</code>" in page
    assert "processor" in page


def test_ratios_are_read_from_aligned_rows_and_from_tables() -> None:
    text = "what it is  10 ns  20 ns   2.00  >= 1.5  met\nother  1.25  <= 2  met"
    assert bench.ratios(text) == [
        {"what": "what it is", "ratio": "2.00", "bar": ">= 1.5 met"},
        {"what": "other", "ratio": "1.25", "bar": "<= 2 met"},
    ]
    head = "| load | store | a second | ratio | bar |\n|---|---|---|---|---|\n"
    text = f"{head}| one | SQLite | 9 | 0.5 | x |"
    assert bench.ratios(text) == [{"what": "one, SQLite", "ratio": "0.5", "bar": "x"}]


def test_the_page_shows_ratios_with_their_bars(place: Path, parts: None) -> None:
    bench.main(["quality"])
    stored = json.loads((place / "quality-works.json").read_text())
    stored["ratios"] = [{"what": "ours < theirs", "ratio": "1.25", "bar": "<= 2 met"}]
    (place / "quality-works.json").write_text(json.dumps(stored))
    shown = "<td>ours &lt; theirs</td><td>1.25</td><td>&lt;= 2 met</td>"
    assert shown in bench.page()


def test_versions_of_peers_are_told() -> None:
    assert {"scikit-learn", "netcal", "river"} <= set(bench.machine())


def test_everything_that_the_readme_of_benchmarks_lists_is_measured() -> None:
    listed = ("cost", "context", "rare", "distributions", "pooled", "spark", "kills", "one_log")
    words = {word for part in bench.PARTS for word in part.words}
    assert {f"benchmarks.{name}" for name in (*listed, "follower", "late")} <= words


def test_a_part_whose_python_is_not_there_says_so(place: Path) -> None:
    part = bench.Part("scale", "away", ("platform",), python=".venv-nowhere/bin/python")
    found = bench.measured(part, quick=True)
    assert found["code"] == 1
    assert ".venv-nowhere/bin/python must be there" in found["output"]


def test_an_unknown_subject_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["taste"])
    assert "SUBJECT must be among quality, speed" in capsys.readouterr().err
