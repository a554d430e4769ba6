"""``calibrant compare``: what it tells, what it writes, and how it fails."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("jinja2", reason="needs the extra plot")
pytest.importorskip("matplotlib", reason="needs the extra plot")

from calibrant.cli import ExitCode, screen
from calibrant.cli.app import run
from calibrant.compare import KEYS, Comparison, compare, methods_by_name
from calibrant.compare.comparison import headline

ROWS = 200
FEW = ("--methods", "foster_hart,bucket_means", "--adversarial", 30)
NAMES = {"raw", "foster_hart", "bucket_means"}


@pytest.fixture
def games(tmp_path: Path) -> Path:
    raw, outcomes = rounds()
    path = tmp_path / "games.csv"
    lines = [f"{t},{p},{y}" for t, (p, y) in enumerate(zip(raw, outcomes, strict=True))]
    path.write_text("\n".join(["t,prob,won", *lines]) + "\n")
    return path


def rounds() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(8)
    raw = generator.random(ROWS).round(4)
    return raw, (generator.random(ROWS) < 0.3 + 0.4 * raw).astype(int)


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


def told(capsys: pytest.CaptureFixture[str], *words: Any) -> dict[str, Any]:
    capsys.readouterr()
    assert ran("compare", *words, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def without_timing(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "timing"}


def test_the_json_is_the_comparison_itself(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, games, *FEW, "--seed", 5)
    names = ["foster_hart", "bucket_means"]
    made = compare(*rounds(), methods=names, adversarial_rounds=30, seed=5, title="games.csv")
    assert found.pop("headline") == headline(made)
    assert without_timing(found) == without_timing(made.to_dict())
    assert Comparison.from_dict(found).rounds == ROWS


@pytest.mark.slow
def test_by_default_every_method_plays(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, games, "--adversarial", 0, "--rounds", 60)
    assert {row["name"] for row in found["rows"]} == set(methods_by_name())
    found = told(capsys, games, "--adversarial", 0, "--rounds", 60, "--no-peers")
    assert {row["kind"] for row in found["rows"]} == {"raw", "default", "calibrator", "transform"}


def test_the_earlier_name_of_a_ranking_still_works_and_says_so(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("compare", games, *FEW, "--rank-by", "smooth") == 0
    now = capsys.readouterr()
    assert ran("compare", games, *FEW, "--by", "smooth") == 0
    earlier = capsys.readouterr()
    told = "calibrant: --by is called --rank-by here; the earlier name still works\n"
    assert told in earlier.err
    assert told not in now.err
    # Columns are as wide as their numbers, and costs are measured anew.
    assert earlier.out.splitlines()[1].split() == now.out.splitlines()[1].split()


def test_the_table_is_ranked_by_what_is_asked_for(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, title in KEYS.items():
        assert ran("compare", games, *FEW, "--rank-by", key) == 0
        shown = capsys.readouterr().out
        assert f"{title} *" in shown.splitlines()[1]
        listed = [line.split()[1] for line in shown.splitlines()[2:5]]
        made = Comparison.from_dict(told(capsys, games, *FEW))
        assert listed == [row.name for row in made.ranked(key)]


def test_the_table_ends_with_a_sentence(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("compare", games, *FEW) == 0
    shown = capsys.readouterr()
    assert "is the most accurate, Brier" in shown.out
    assert "raw forecasts from column 'prob' and outcomes from column 'won'" in shown.err


def test_nothing_is_guessed_where_columns_are_named(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("compare", games, *FEW, "--raw", "prob", "--outcome", "won") == 0
    assert capsys.readouterr().err == ""


def test_only_the_first_rounds_are_played_if_so_asked(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, games, games, *FEW, "--rounds", 70)
    raw, outcomes = (column[:70] for column in rounds())
    expected = compare(raw, outcomes, methods=[], adversarial_rounds=0).row("raw")
    assert (found["rounds"], found["title"]) == (70, "games.csv and 1 more")
    assert found["rows"][0]["brier"] == expected.brier


def test_several_inputs_are_one_stream_and_standard_input_is_read(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys, games, games, *FEW)["rounds"] == 2 * ROWS
    piped = io.BytesIO(gzip.compress(games.read_bytes()))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(piped)))  # type: ignore[arg-type]
    found = told(capsys, "-", *FEW)
    assert (found["rounds"], found["title"]) == (ROWS, "standard input")


def test_outcomes_may_come_late_or_never(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, outcomes = rounds()
    time, available = np.arange(ROWS), np.arange(ROWS) + 10
    lines = [f"{t},{a},{p},{y}" for t, a, p, y in zip(time, available, raw, outcomes, strict=True)]
    lines[3] = f"3,,{raw[3]},"
    path = tmp_path / "late.csv"
    path.write_text("\n".join(["at,known,p,y", *lines]) + "\n")
    found = told(capsys, path, *FEW, "--time", "at", "--available", "known")
    late = np.where(time == 3, np.inf, available.astype(float))
    names = ["foster_hart", "bucket_means"]
    made = compare(
        raw, outcomes, time=time, available=late, methods=names, adversarial_rounds=30,
        title="late.csv",
    )  # fmt: skip
    assert found.pop("headline") == headline(made)
    assert without_timing(found) == without_timing(made.to_dict())
    unknown = told(capsys, path, *FEW)
    assert (unknown["rounds"], unknown["n_unresolved"]) == (ROWS - 1, 1)


def test_other_scales_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "percent.csv"
    path.write_text("p,y\n50,1\n25,0\n")
    assert told(capsys, path, *FEW, "--percent")["rows"][0]["brier"] == (0.25 + 0.0625) / 2


def test_the_page_is_written_and_says_how_to_make_it_again(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    options = (*FEW, "--seed", 4, "--rounds", 90, "--on-error", "skip", "--no-peers")
    first = told(capsys, games, *options, "--report", page)
    text = page.read_text()
    assert "Methods compared on games.csv" in text
    command = text.partition("<pre><code>")[2].partition("</code>")[0].replace("&#39;", "'")
    words = shlex.split(command)
    assert words[:2] == ["calibrant", "compare"]
    assert without_timing(told(capsys, *words[2:])) == without_timing(first)


def test_a_page_that_is_there_is_replaced_only_by_force(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert ran("compare", games, *FEW, "--report", page) == ExitCode.OUTPUT
    assert page.read_text() == "mine"
    assert ran("compare", games, *FEW, "--report", page, "--force") == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert ran("compare", games, *FEW, "--report", tmp_path / "no" / "p.html") == ExitCode.OUTPUT


def test_nothing_is_left_behind_by_a_command_that_fails(games: Path, tmp_path: Path) -> None:
    with games.open("a") as file:
        file.write("200,7,1\n")
    assert ran("compare", games, *FEW, "--report", tmp_path / "page.html") == ExitCode.ROW
    assert {path.name for path in tmp_path.iterdir()} == {"games.csv"}


def test_bad_rows_are_passed_over_if_so_asked(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with games.open("a") as file:
        file.write("200,7,1\n")
    assert ran("compare", games, *FEW, "--on-error", "skip", "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["rounds"] == ROWS
    told = f"1 of {ROWS + 1:,} rows refused: prob must be a number in [0, 1], e.g. '7'"
    assert told in shown.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--rank-by", "beauty"], ExitCode.USAGE, "--rank-by must be one of"),
        (["--by", "beauty"], ExitCode.USAGE, "--by must be one of"),
        (["--methods", "nobody"], ExitCode.USAGE, "--methods must be one of"),
        (["--rounds", 0], ExitCode.USAGE, "--rounds must be"),
        (["--adversarial", -1], ExitCode.USAGE, "--adversarial must be"),
        (["--format", "xls"], ExitCode.USAGE, "--format must be one of"),
        (["--available", "t"], ExitCode.USAGE, "--available needs --time"),
        (["--raw", "nobody"], ExitCode.INPUT, "no column 'nobody'"),
        (["--resolution", 0], ExitCode.USAGE, "resolution must be"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    games: Path, capsys: pytest.CaptureFixture[str], words: list[Any], code: int, said: str
) -> None:
    assert ran("compare", games, *FEW, *words) == code
    shown = capsys.readouterr()
    assert said in shown.err.splitlines()[-1]
    assert shown.out == ""


def test_an_input_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    assert ran("compare", tmp_path / "nowhere.csv", *FEW) == ExitCode.INPUT
    empty = tmp_path / "empty.csv"
    empty.write_text("p,y\n")
    assert ran("compare", empty, *FEW) == ExitCode.INPUT


def hide(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name in missing else found(name)
    )


def test_the_page_needs_its_extra_and_says_so_first(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "jinja2")
    assert ran("compare", games, "--report", "page.html") == ExitCode.MISSING_EXTRA
    said = (
        "calibrant: --report needs jinja2, not installed here: "
        'pip install ".[plot]" in a clone of calibrant\n'
    )
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_libraries_that_are_missing_are_told(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "river", "sklearn")
    assert ran("compare", games, "--rounds", 20, "--adversarial", 0) == 0
    shown = capsys.readouterr()
    assert "River is not installed here: its methods are missing" in shown.err
    assert "scikit-learn is not installed here: its methods are missing" in shown.err
    assert "river" not in shown.out


def test_a_peer_that_is_asked_for_must_be_installed(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "river")
    assert ran("compare", games, "--methods", "river_sgd") == ExitCode.MISSING_EXTRA
    assert "pip install river" in capsys.readouterr().err


def test_a_bar_shows_on_a_terminal_and_nowhere_else(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("--raw", "prob", "--outcome", "won")
    assert ran("compare", games, *FEW, *columns) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(screen, "Console", forced(screen.Console))
    assert ran("compare", games, *FEW, *columns) == 0
    assert "methods" in capsys.readouterr().err


def forced(console: Any) -> Any:
    return lambda **options: console(force_terminal=True, **options)
