"""``calibrant reproduce``: what it writes, what it tells, and how it fails."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra experiments")
pytest.importorskip("jinja2", reason="needs the extra experiments")
pytest.importorskip("matplotlib", reason="needs the extra experiments")
pytest.importorskip("scipy", reason="needs the extra experiments")

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.experiments.claims import below, unmeasured
from calibrant.experiments.experiment import Experiment, Result, Setting, experiments
from calibrant.experiments.streams import require


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Setting]:
    """One experiment that only notes its setting, and one whose data are missing."""
    seen: list[Setting] = []

    def note(setting: Setting) -> Result:
        seen.append(setting)
        return Result((below("small", "It is small", 0.1, 0.2), unmeasured("rest", "It is", "1")))

    def fail(setting: Setting) -> Result:
        require(setting.data, "free917/free917_forecasts.csv")
        raise AssertionError

    entries = {
        "notes": Experiment("notes", "A note", 1, note),
        "fails": Experiment("fails", "A failure", 2, fail),
    }
    monkeypatch.setattr(experiments, "_entries", entries)
    return seen


def test_claims_are_told_and_the_page_is_written(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert (
        run(["reproduce", "notes", "--folder", str(out), "--seeds", "7", "--quick"]) == ExitCode.OK
    )
    told = capsys.readouterr()
    assert "notes       small  0.1000  below 0.2  holds" in told.out
    assert told.out.splitlines()[-2:] == [
        "1 of the paper's 2 claims holds, 1 was not measured.",
        str(out / "index.html"),
    ]
    assert "calibrant: notes: A note" in told.err
    assert (given[0].seeds, given[0].quick, given[0].bed) == (7, True, None)
    command = f"calibrant reproduce notes --folder {out} --seeds 7 --quick"
    assert command in (out / "index.html").read_text()


def test_the_earlier_name_of_the_folder_still_works_and_says_so(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["reproduce", "notes", "--out", str(out)]) == ExitCode.OK
    told = "calibrant: --out is called --folder here; the earlier name still works\n"
    assert told in capsys.readouterr().err
    assert f"reproduce notes --folder {out} " in (out / "index.html").read_text()


def test_data_are_looked_for_where_one_is_told(
    given: list[Setting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "notes", "--folder", "a"]) == ExitCode.OK
    assert run(["reproduce", "notes", "--folder", "c", "--data", "here", "--bed", "x.bed"]) == 0
    assert [each.data for each in given] == [None, Path("here")]
    assert given[-1].bed == Path("x.bed")


def test_as_json_each_claim_is_plain_data(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert (
        run(["reproduce", "all", "--folder", out, "--data", str(tmp_path), "--json"]) == ExitCode.OK
    )
    told = json.loads(capsys.readouterr().out)
    assert told["headline"] == "1 of the paper's 2 claims holds, 1 was not measured"
    assert told["failures"] == []
    notes, fails = told["experiments"]
    assert notes["claims"][0] == {
        "key": "small", "claim": "It is small", "source": "paper", "value": 0.1,
        "bar": "below 0.2", "holds": True, "misses": [],
    }  # fmt: skip
    assert notes["claims"][1]["value"] is None
    assert "free917_forecasts.csv: not there" in fails["missing"][0]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_claim_that_does_not_hold_is_told_with_the_seeds_that_miss_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    as_json: bool,
) -> None:
    claim = replace(below("small_2", "It is small, order 2", 0.3, 0.2, "ours"), misses=(0, 4))
    entries = {"notes": Experiment("notes", "A note", 1, lambda setting: Result((claim,)))}
    monkeypatch.setattr(experiments, "_entries", entries)
    arguments = ["reproduce", "notes", "--out", str(tmp_path / "out")]
    assert run([*arguments, "--json"] if as_json else arguments) == ExitCode.OK
    out = capsys.readouterr().out
    line = (
        "notes: small_2 does not hold: It is small, order 2: 0.3000, must be below 0.2; "
        "draws of these seeds alone miss it: 0, 4"
    )
    headline = "0 of our own 1 claims hold, 1 does not"
    if as_json:
        told = json.loads(out)
        assert (told["headline"], told["failures"]) == (headline, [line])
    else:
        assert out.splitlines()[-3:-1] == [f"{headline}.", line]


def test_all_goes_on_where_data_are_missing_and_says_so(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", "all", "--folder", str(tmp_path / "out"), "--data", str(tmp_path)]
    assert run(arguments) == ExitCode.OK
    told = capsys.readouterr().err
    assert "calibrant: fails: " in told
    assert "leave --data out to use the bundled data" in told


def test_a_single_experiment_without_its_data_is_refused(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["reproduce", "fails", "--folder", str(out), "--data", str(tmp_path)]
    assert run(arguments) == ExitCode.INPUT
    assert "free917_forecasts.csv: not there" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chess"], "experiment must be one of 'fails', 'notes', got 'chess'"),
        (["notes", "--seeds", "1"], "seeds must be a whole number of at least 2, got 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    given: list[Setting],
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert run(["reproduce", *arguments, "--folder", str(out)]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"calibrant: {words}\n"
    assert (out.exists(), given) == (False, [])


def test_a_directory_that_is_there_is_written_to_by_force_only(
    given: list[Setting], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.txt").write_text("mine")
    assert run(["reproduce", "notes", "--folder", str(tmp_path)]) == ExitCode.OUTPUT
    assert "--force writes into it" in capsys.readouterr().err
    assert given == []
    assert run(["reproduce", "notes", "--folder", str(tmp_path), "--force"]) == ExitCode.OK
    assert (tmp_path / "own.txt").read_text() == "mine"
    assert (tmp_path / "index.html").exists()


def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name == "scipy" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    assert run(["reproduce", "all"]) == ExitCode.MISSING_EXTRA
    told = (
        "reproduce needs scipy, not installed here: "
        'pip install ".[experiments]" in a clone of calibrant'
    )
    assert capsys.readouterr().err == f"calibrant: {told}\n"
