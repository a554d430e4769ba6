"""Rows that are known by an id, files that were learned before, and manners of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("jinja2", reason="needs the extra plot")
pytest.importorskip("matplotlib", reason="needs the extra plot")

import typer

from calibrant import Calibrant
from calibrant.cli import ExitCode, main
from calibrant.cli.app import app, run
from calibrant.report import headline
from calibrant.stream import session
from calibrant.stream.ids import Book, Open
from calibrant.summary import Summary

ROOT = Path(__file__).resolve().parent.parent
SEED = ("--seed", 7)


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


def stored(place: Path) -> session.Session:
    found = session.read(str(place))
    assert found is not None
    return found


def rounds(count: int = 30) -> list[tuple[float, int]]:
    generator = np.random.default_rng(5)
    raw = generator.integers(1, 100, count) / 100
    return [(float(p), int(y)) for p, y in zip(raw, generator.random(count) < raw, strict=True)]


def forecasts(place: Path, *, known: bool = False) -> Path:
    rows = [f"g{k},{p},{y if known else ''}" for k, (p, y) in enumerate(rounds())]
    place.write_text("\n".join(["game,prob,won", *rows]) + "\n")
    return place


def outcomes(place: Path, order: list[int], header: str = "game,won") -> Path:
    told = rounds()
    place.write_text("\n".join([header, *(f"g{k},{told[k][1]}" for k in order)]) + "\n")
    return place


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_outcomes_of_a_later_file_find_their_forecast(
    batch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, order = tmp_path / "state", [int(k) for k in np.random.default_rng(1).permutation(30)]
    words = ("--id", "game", "--state", made, "--batch-rows", batch)
    assert ran("replay", forecasts(tmp_path / "a.csv"), *SEED, *words) == 0
    assert ran("replay", outcomes(tmp_path / "b.csv", order), *words, "--json") == 0
    shown = capsys.readouterr()
    assert "30 outcomes found their forecast" in shown.err
    told = json.loads(shown.out[shown.out.index("{\n") :])
    assert (told["n_rounds"], told["n_unresolved"]) == (30, 0)
    model = Calibrant(seed=7)
    tickets = [model.forecast(p) for p, _ in rounds()]
    for k in order:
        model.observe(tickets[k], rounds()[k][1])
    found = stored(made).recalibrator
    assert found.forecast(0.4).mean == model.forecast(0.4).mean


def without_outcomes(place: Path) -> Path:
    rows = [f"g{k},{p}" for k, (p, _) in enumerate(rounds())]
    place.write_text("\n".join(["game,prob", *rows]) + "\n")
    return place


@pytest.mark.parametrize("named", [(), ("--outcome", "won")])
@pytest.mark.parametrize("together", [True, False])
def test_a_file_of_forecasts_needs_no_column_of_outcomes(
    named: tuple[str, ...], together: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, order = without_outcomes(tmp_path / "a.csv"), list(range(30))
    files = first, outcomes(tmp_path / "b.csv", order)
    words = (*SEED, "--id", "game", *named, "--state", tmp_path / "state")
    for inputs in [files] if together else [files[:1], files[1:]]:
        assert ran("replay", *inputs, *words) == 0
    told = capsys.readouterr().err
    later = "no column 'won': outcomes come later" if named else "no column of outcomes: they come"
    assert later in told
    assert "30 outcomes found their forecast" in told
    full, same = tmp_path / "full", forecasts(tmp_path / "c.csv")
    assert ran("replay", same, files[1], *SEED, "--id", "game", "--state", full) == 0
    ours, theirs = stored(tmp_path / "state").recalibrator, stored(full).recalibrator
    assert ours.rounds == 30
    assert ours.forecast(0.4).mean == theirs.forecast(0.4).mean


@pytest.mark.parametrize(
    ("header", "words", "told"),
    [
        ("game,prob,left", (), "left has two values, yes and no"),
        ("game,prob,left", ("--outcome", "wno"), "no column 'wno'; there are: game, prob, left"),
        ("game,prob,won", ("--outcome", "wno"), "no column 'wno'; there are: game, prob, won"),
    ],
)
def test_a_column_that_may_be_outcomes_is_not_left_out(
    header: str,
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [f"g{k},{p},{('no', 'yes')[y]}" for k, (p, y) in enumerate(rounds())]
    place = tmp_path / "a.csv"
    place.write_text("\n".join([header, *rows]) + "\n")
    assert ran("replay", place, *SEED, "--id", "game", *words) == ExitCode.INPUT
    assert told in capsys.readouterr().err


def test_a_second_file_must_have_forecasts_or_outcomes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = without_outcomes(tmp_path / "a.csv"), tmp_path / "b.csv"
    other.write_text("game,what\ng1,7\n")
    assert ran("replay", first, other, *SEED, "--id", "game") == ExitCode.INPUT
    assert "b.csv: no column looks like raw forecasts or outcomes" in capsys.readouterr().err


def test_an_id_is_learned_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, first = tmp_path / "state", forecasts(tmp_path / "a.csv", known=True)
    words = ("--id", "game", "--state", made)
    assert ran("replay", first, *SEED, *words) == 0
    with first.open("a") as file:
        file.write("g99,0.5,1\n")
    capsys.readouterr()
    assert ran("replay", first, *words) == 0
    assert (
        "30 rows had an id that was seen before, and were not learned again"
        in capsys.readouterr().err
    )
    assert stored(made).recalibrator.rounds == 31
    assert len(stored(made).book.learned) == 31  # type: ignore[union-attr]


def test_forecast_and_outcome_may_come_in_one_file(tmp_path: Path) -> None:
    made, place = tmp_path / "state", tmp_path / "d.csv"
    place.write_text("game,prob,won\na,0.5,\nb,0.7,\na,,1\nc,0.2,0\nb,,0\nc,,1\na,0.9,0\n")
    assert ran("replay", place, *SEED, "--id", "game", "--state", made) == 0
    model = Calibrant(seed=7)
    first, second = model.forecast(0.5), model.forecast(0.7)
    model.observe(first, 1)
    model.observe(model.forecast(0.2), 0)
    model.observe(second, 0)
    found = stored(made)
    assert found.recalibrator.forecast(0.4).mean == model.forecast(0.4).mean
    assert (found.recalibrator.issued, found.unresolved, found.skipped) == (4, 0, 0)


def test_rows_without_a_forecast_or_an_id_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "state"
    words = ("--id", "game", "--state", made)
    assert ran("replay", forecasts(tmp_path / "a.csv"), *SEED, *words) == 0
    place = tmp_path / "b.csv"
    for line, told in (
        ("g77,1", "row 2: game must be an id of a forecast that was made, got 'g77'"),
        (",1", "row 2: game must be an id of a forecast that was made, got nothing"),
        ("g2,maybe", "row 2: won must be 0 or 1, got 'maybe'"),
    ):
        place.write_text(f"game,won\ng1,1\n{line}\n")
        assert ran("replay", place, *words) == ExitCode.ROW
        assert told in capsys.readouterr().err
    place.write_text("game,prob,won\n,0.5,1\ng50,high,\ng50,0.5,1\n")
    assert ran("replay", place, *words, "--on-error", "skip") == 0
    told = capsys.readouterr().err
    assert "1 x game must be an id, e.g. an empty cell" in told
    assert "1 x prob must be a number in [0, 1], e.g. 'high'" in told
    assert stored(made).recalibrator.rounds == 1


def test_only_single_probabilities_have_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--id", "game", "--group", "game")
    assert ran("replay", forecasts(tmp_path / "a.csv"), *words) == ExitCode.USAGE
    assert "--id needs one probability per row" in capsys.readouterr().err


def test_rows_that_were_forecast_are_written_and_outcomes_alone_are_not(tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    files = forecasts(tmp_path / "a.csv"), outcomes(tmp_path / "b.csv", [3, 1])
    assert ran("replay", *files, *SEED, "--id", "game", "--out", out) == 0
    assert len(out.read_text().splitlines()) == 31


def test_a_book_comes_back_from_its_arrays() -> None:
    book = Book({5: Open(0, 0.5, 0.5, 0.25), -7: Open(3, 0.1, 0.2, 0.3)}, {9, -(2**63)})
    assert Book.from_arrays(book.arrays()) == book
    assert Book.from_arrays(Book().arrays()) == Book()
    assert Book.from_arrays({}) is None


# ----------------------------------------------------------------- a file, once more


def test_a_file_is_learned_once_unless_asked_for_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, place = tmp_path / "state", forecasts(tmp_path / "a.csv", known=True)
    assert ran("replay", place, *SEED, "--state", made) == 0
    copy = tmp_path / "copy.csv"
    copy.write_bytes(place.read_bytes())
    before = made.read_bytes()
    assert ran("replay", copy, "--state", made) == ExitCode.STATE
    told = f"{copy}: has already been learned, according to {made}; --again learns it again"
    assert told in capsys.readouterr().err
    assert made.read_bytes() == before
    assert ran("replay", copy, "--state", made, "--again") == 0
    assert stored(made).recalibrator.rounds == 60
    assert len(stored(made).inputs) == 1


def test_a_run_that_fails_has_learned_nothing(tmp_path: Path) -> None:
    made, place = tmp_path / "state", tmp_path / "a.csv"
    place.write_text("p,y\n0.5,1\n0.5,7\n")
    assert ran("replay", place, "--state", made) == ExitCode.ROW
    assert ran("replay", place, "--state", made, "--on-error", "skip") == 0


def test_a_filter_that_was_cut_short_may_read_its_file_again(tmp_path: Path) -> None:
    made, place = tmp_path / "state", tmp_path / "a.csv"
    place.write_text("p,y\n0.5,1\n0.5,7\n")
    words = ("--state", made, "--flush", "--out", "-")
    assert ran("replay", place, *words) == ExitCode.ROW
    assert stored(made).inputs == ()
    assert ran("replay", place, *words) == ExitCode.ROW


# ----------------------------------------------------------------------------- manners


def test_the_command_alone_prints_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Usage: calibrant [OPTIONS] COMMAND [ARGS]...\n")
    # No command is told of by half a sentence, in a window of 80 columns.
    assert "..." not in shown.out.partition("Commands:")[2]
    assert shown.err == ""


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": paths, "CALIBRANT_COMPILE": "off"}


def test_the_version_loads_nothing_slow() -> None:
    code = (
        "import sys; sys.argv = ['calibrant', '--version']\n"
        "from calibrant.cli import main; main()\n"
        "print(sorted({'numpy', 'pyarrow', 'typer', 'rich'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, env=environment(), capture_output=True, text=True)
    assert ran.stdout.splitlines()[1:] == ["[]"]


def test_the_package_is_the_command_and_a_closed_pipe_has_its_code() -> None:
    command = f"{sys.executable} -m calibrant --help | true; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (ExitCode.PIPE, "")


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Codes that a process would have ended with at once."""
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    return codes


def test_an_interrupt_before_there_is_a_command_is_one_line(
    ended: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["calibrant", "replay"])
    monkeypatch.setitem(sys.modules, "calibrant.cli.app", SimpleNamespace(run=interrupted))
    assert main() == ExitCode.INTERRUPTED
    assert ended == [ExitCode.INTERRUPTED]
    assert capsys.readouterr().err == "calibrant: interrupted\n"


@pytest.mark.parametrize("row", ["0.5,7", "0.5,1,2", '"0.5,1'])
def test_a_command_that_leaves_its_input_ends_at_once(
    row: str, ended: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "d.csv"
    for content, codes in ((f"p,y\n0.5,1\n{row}\n", [ExitCode.ROW]), ("p,y\n0.5,1\n", [])):
        place.write_text(content)
        monkeypatch.setattr(sys, "argv", ["calibrant", "replay", str(place)])
        ended.clear()
        assert main() == (codes[0] if codes else 0)
        assert ended == codes


@pytest.mark.slow
def test_ends_with_an_error_have_the_code_of_the_error() -> None:
    words = [sys.executable, str(ROOT / "benchmarks" / "exits.py"), "10"]
    ran = subprocess.run(words, env=environment(), capture_output=True, text=True)
    assert ran.stdout == "10 of 10 ended with code 4\n"


@pytest.mark.parametrize("command", [("replay",), ("compare", "--methods", "foster_hart")])
def test_the_json_of_a_command_has_the_headline(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, summary = forecasts(tmp_path / "a.csv", known=True), tmp_path / "s.json"
    words = ("--adversarial", 0) if command[0] == "compare" else ("--summary", summary)
    assert ran(*command, place, *SEED, *words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["headline"].endswith(".")
    if command == ("replay",):
        made = Summary.from_dict(json.loads(summary.read_text()))
        assert told["headline"] == headline(made)


@pytest.mark.parametrize("option", ["--out", "--report", "--summary"])
def test_force_never_replaces_an_input(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = "html" if option == "--report" else "csv"
    place = forecasts(tmp_path / f"a.{ending}", known=True)
    other = tmp_path / f"b.{ending}"
    os.link(place, other)
    before = place.read_bytes()
    for name in (place, other):
        assert ran("replay", place, option, name, "--force") == ExitCode.OUTPUT
        assert f"{name}: cannot be written: it is an input" in capsys.readouterr().err
    page = place.rename(tmp_path / "c.html")
    assert ran("compare", page, "--report", page, "--force") == ExitCode.OUTPUT
    assert page.read_bytes() == before


def options_of(command: str) -> dict[str, bool]:
    """Return the options of a command, and whether they are hidden."""
    top: Any = typer.main.get_command(app)
    made = top.commands[command].params
    return {name: getattr(each, "hidden", False) for each in made for name in each.opts}


def test_what_commands_share_has_one_name() -> None:
    for command in ("replay", "play", "compare", "report"):
        assert options_of(command)["--report"] is False
    for command in ("replay", "compare"):
        assert options_of(command)["--on-error"] is False
    assert options_of("compare")["--html"]
    assert options_of("compare")["--skip"]
    assert options_of("report")["--out"]


def test_earlier_names_of_options_still_work(tmp_path: Path) -> None:
    place, summary = forecasts(tmp_path / "a.csv", known=True), tmp_path / "s.json"
    with place.open("a") as file:
        file.write("g99,7,1\n")
    words = ("--methods", "foster_hart", "--adversarial", 0, "--skip")
    assert ran("compare", place, *words, "--html", tmp_path / "c.html") == 0
    assert ran("replay", place, "--on-error", "skip", "--summary", summary) == 0
    assert ran("report", summary, "--out", tmp_path / "r.html") == 0
    assert {"c.html", "r.html"} <= set(os.listdir(tmp_path))
