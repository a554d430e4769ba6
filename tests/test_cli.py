"""The command line: every command, every product, every way to fail."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import re
import resource
import runpy
import signal
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

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant import Calibrant, Recalibrator
from calibrant.cli import ExitCode, main, methods, options, play, screen
from calibrant.cli.app import _terminate, guarded, run
from calibrant.cli.methods import draw_to_front
from calibrant.kernels.compile import begins
from calibrant.kinds.binary.tables import closing_lines
from calibrant.losses import get_loss
from calibrant.registry import calibrators
from calibrant.report import headline
from calibrant.report.tables import printed
from calibrant.simulate import adversaries, forecasters
from calibrant.stream import Options, open_output, replay, session
from calibrant.summary import Summary

ROOT = Path(__file__).resolve().parent.parent
ROWS = 300


@pytest.fixture
def games(tmp_path: Path) -> Path:
    generator = np.random.default_rng(8)
    raw = generator.random(ROWS).round(4)
    outcomes = (generator.random(ROWS) < 0.3 + 0.4 * raw).astype(int)
    path = tmp_path / "games.csv"
    rows = [f"{t},{p},{y}" for t, (p, y) in enumerate(zip(raw, outcomes, strict=True))]
    path.write_text("\n".join(["t,prob,won", *rows]) + "\n")
    return path


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


def environment(**changes: str) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": paths, "CALIBRANT_COMPILE": "off", **changes}


def started(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "calibrant.cli", *map(str, words)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=environment(), **{**pipes, **options})  # type: ignore[call-overload,no-any-return]


# ---------------------------------------------------------------------------- replay


def test_one_command_writes_rows_summary_report_pictures_and_state(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, summary, report = (tmp_path / name for name in ("o.parquet", "s.json", "r.html"))
    plots, stored = tmp_path / "plots", tmp_path / "state"
    code = ran(
        "replay", games, "--seed", 5, "--out", out, "--summary", summary, "--report", report,
        "--plots", plots, "--state", stored,
    )  # fmt: skip
    assert code == ExitCode.OK
    assert pq.read_table(out).column_names == [
        "t", "prob", "won", "forecast", "mean", "bucket", "ticket",
    ]  # fmt: skip
    assert report.read_text().startswith("<!")
    assert {path.suffix for path in plots.iterdir()} == {".png", ".svg"}
    found = session.read(str(stored))
    assert found is not None
    assert found.recalibrator.rounds == ROWS
    told = json.loads(summary.read_text())
    assert (told["version"], told["seed"], told["n_rounds"]) == (1, 5, ROWS)
    assert sorted(os.listdir(tmp_path)) == sorted(
        ["games.csv", "o.parquet", "s.json", "r.html", "plots", "state"]
    )
    shown = capsys.readouterr()
    assert "Brier score" in shown.out
    assert shown.err == (
        "calibrant: raw forecasts from column 'prob' and outcomes from column 'won'\n"
    )


def test_the_table_ends_with_the_headline(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "s.json"
    assert ran("replay", games, "--seed", 5, "--summary", summary) == 0
    last = capsys.readouterr().out.rpartition("\n\n")[2]
    assert max(map(len, last.splitlines())) <= 80
    told = Summary.from_dict(json.loads(summary.read_text()))
    assert " ".join(last.split()) == headline(told)


def test_the_answers_are_those_of_the_library(games: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.parquet"
    options = ("--method", "blackwell", "--resolution", 9, "--buckets", 7, "--prior", 2)
    ran("replay", games, "--seed", 5, "--out", out, *options, "--grid", "midpoints")
    table = pq.read_table(out)
    rec = Recalibrator("blackwell", resolution=9, buckets=7, prior=2, seed=5, grid="midpoints")
    made = rec.replay(table["prob"].to_numpy(), table["won"].to_numpy())
    for name in ("forecast", "mean", "bucket", "ticket"):
        assert table[name].to_numpy().tolist() == getattr(made, name).tolist()


def test_the_same_seed_gives_the_same_json_outside_timing(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for rows in (1, 64, 100_000):
        assert ran("replay", games, "--seed", 5, "--json", "--batch-rows", rows) == 0
        told.append(json.loads(capsys.readouterr().out))
    timings = [summary.pop("timing") for summary in told]
    assert told[0] == told[1] == told[2]
    assert set(timings[0]) == {"seconds", "rounds_per_second", "run"}
    assert "detail" not in told[0]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("calibrant", ["--seed", 3]),
        ("calibrant", ["--loss", "log", "--resolution", 10, "--buckets", 2, "--seed", 4]),
        (
            "foster_hart",
            ["--epsilon", 0.2, "--loss", "log", "--method", "foster_hart", "--seed", 5],
        ),
    ],
)
def test_the_command_in_a_summary_makes_it_again(
    games: Path, tmp_path: Path, method: str, words: list[Any]
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    ran("replay", games, *words, "--summary", first)
    told = json.loads(first.read_text())
    command = told["timing"]["run"]["command"]
    told_so = f"calibrant replay {games} --raw prob --outcome won --method {method} "
    assert command.startswith(told_so)
    assert run([*command.split()[1:], "--summary", str(second)]) == 0
    again = json.loads(second.read_text())
    assert told.pop("timing") != again.pop("timing")
    assert told == again


def test_the_default_is_calibrant_and_the_table_shows_its_chain(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, summary = tmp_path / "o.parquet", tmp_path / "s.json"
    words = ("replay", games, "--seed", 5, "--out", out, "--summary", summary)
    assert ran(*words) == 0
    brief = capsys.readouterr().out
    assert "identity" not in brief
    assert re.search(r"^proven in 95 % of runs: C1 at most \d", brief, re.MULTILINE)
    assert "The guarantee was kept: " in " ".join(brief.split())
    assert ran(*words, "--details", "--force") == 0
    shown = capsys.readouterr().out
    assert len(shown) > len(brief)
    table = pq.read_table(out)
    model = Calibrant(seed=5)
    made = model.replay(table["prob"].to_numpy(), table["won"].to_numpy())
    for name in ("forecast", "mean", "bucket", "ticket"):
        assert table[name].to_numpy().tolist() == getattr(made, name).tolist()
    chain, told = model.certificate(), json.loads(summary.read_text())
    assert told["bound"]["regret"] == chain.promised("regret")
    assert "300 rounds, calibrant, seed 5" in shown
    rows = [line.split() for line in shown.splitlines()]
    identity = next(row for row in rows if row[:1] == ["identity"])
    assert identity == ["identity", f"{chain.links[0].weight:.3f}", *(
        f"{value:.5f}" for value in (chain.links[0].regret, chain.links[0].bound))]  # fmt: skip
    raw = next(row for row in rows if row[-5:-2] == ["the", "raw", "forecast"])
    assert raw[-2:] == [f"{chain.regret:.5f}", f"{chain.promised('regret'):.5f}"]


def test_late_outcomes_leave_the_chain_without_a_bound(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = games.read_text().splitlines()
    late = [f"{line},{int(line.partition(',')[0]) + 4}" for line in lines[1:]]
    games.write_text("\n".join([f"{lines[0]},known", *late]) + "\n")
    words = ("replay", games, "--seed", 5, "--time", "t", "--available", "known")
    assert ran(*words, "--details") == 0
    shown = capsys.readouterr().out
    assert "It is too early to promise anything; promises begin at about round" in " ".join(
        shown.split()
    )
    assert re.search(r"^  identity +\d\.\d{3} +-?\d\.\d{5} +-$", shown, re.MULTILINE)


def test_windows_are_told_if_there_are_any(games: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = games.read_text().splitlines()
    games.write_text("\n".join([header, *lines * 5]) + "\n")
    assert ran("replay", games, "--seed", 5) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^windows: 625 rounds; last 626-1,250, worst forecasts ", shown, re.MULTILINE)
    assert re.search(r"^C2 of the last window( +0\.\d{5}){3}$", shown, re.MULTILINE)


def test_groups_are_calibrated_at_once_and_told_one_by_one(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = games.read_text().splitlines()
    rows = [f"{line},{'ab'[t % 2]},{t % 5}" for t, line in enumerate(lines)]
    games.write_text("\n".join([f"{header},side,day", *rows]) + "\n")
    out, summary, report = (tmp_path / name for name in ("o.csv", "s.json", "r.html"))
    plots, stored = tmp_path / "plots", tmp_path / "state"
    assert ran("replay", games, "--group", "side, day", "--seed", 5, "--out", out, "--summary",
               summary, "--report", report, "--plots", plots, "--state", stored) == 0  # fmt: skip
    shown, told = capsys.readouterr().out, json.loads(summary.read_text())
    assert "300 rounds, groups, seed 5" in shown
    first = told["bound"]["from_round"]
    early = f"too early to promise anything; promises begin at about round {first:,}"
    assert early in " ".join(shown.split())
    named = {row["name"]: row for row in told["breakdown"]["rows"]}
    assert sorted(named) == ["day=0", "day=1", "day=2", "day=3", "day=4", "side=a", "side=b"]
    assert named["side=a"]["rounds"] == 150
    line = next(line.split() for line in shown.splitlines() if line.startswith("side=a"))
    assert line[1:3] == ["150", f"{named['side=a']['rate']:.5f}"]
    page = report.read_text()
    assert "Does it hold for each of them?" in page
    assert "<caption>Group by group</caption>" in page
    assert "GroupRecalibrator(form=&#39;l2&#39;, prior=1, resolution=20" in page
    assert {"groups.png", "groups_raw.svg"} <= set(os.listdir(plots))
    command = told["timing"]["run"]["command"]
    assert " --group side,day --resolution 20 --grid endpoints --buckets 20 --prior 1 " in command
    again = tmp_path / "again.json"
    words = command.split()[1:-2]
    assert run([*words, "--summary", str(again)]) == 0
    assert json.loads(again.read_text())["breakdown"] == told["breakdown"]
    # The columns of groups are known to the state.
    assert ran("replay", games, "--state", stored, "--again") == 0
    assert "600 rounds, groups" in capsys.readouterr().out


def test_many_groups_are_counted_where_they_are_not_shown(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = games.read_text().splitlines()
    rows = [f"{line},{t % 30}" for t, line in enumerate(lines)]
    games.write_text("\n".join([f"{header},day", *rows]) + "\n")
    assert ran("replay", games, "--group", "day", "--seed", 5) == 0
    assert "10 more in --json" in capsys.readouterr().out


def test_classes_get_a_vector_and_an_honest_first_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(2)
    raw = generator.dirichlet([0.5] * 3, 200).round(6)
    raw[:, 2] = np.abs(1.0 - raw[:, 0] - raw[:, 1])
    named = [("cat", "cow", "dog")[k] for k in generator.integers(0, 3, 200)]
    source, out, report = tmp_path / "d.csv", tmp_path / "o.csv", tmp_path / "r.html"
    rows = [f"{a:.6f},{b:.6f},{c:.6f},{y}" for (a, b, c), y in zip(raw, named, strict=True)]
    source.write_text("\n".join(["p_cat,p_cow,p_dog,y", *rows]) + "\n")
    stored, summary = tmp_path / "state", tmp_path / "s.json"
    words = ("--proba", "p_cat,p_cow,p_dog", "--seed", 5, "--resolution", 10)
    assert ran("replay", source, *words, "--out", out, "--report", report, "--state", stored,
               "--summary", summary) == 0  # fmt: skip
    captured = capsys.readouterr()
    assert captured.err == "calibrant: outcomes from column 'y'\n"
    assert "200 rounds, class-calibrant, seed 5" in captured.out
    assert re.search(r"^class by class +rounds", captured.out, re.MULTILINE)
    names = out.read_text().partition("\n")[0].split(",")
    assert names[4:] == ["top", "confidence", "mean", "ticket", "forecast_cat", "forecast_cow",
                         "forecast_dog"]  # fmt: skip
    page = report.read_text()
    assert "Class by class, now" in page
    assert "ClassCalibrant(classes=3, engine=&#39;calibrant&#39;, resolution=10" in page
    told = json.loads(summary.read_text())
    assert {row["rounds"] for row in told["breakdown"]["rows"]} == {200}
    command = told["timing"]["run"]["command"]
    assert f"{source} --outcome y --proba p_cat,p_cow,p_dog --method calibrant" in command
    assert ran("replay", source, "--state", stored, "--again") == 0
    assert "400 rounds, class-calibrant" in capsys.readouterr().out
    assert ran("replay", source, "--proba", "p_cat,p_cow") == ExitCode.ROW


def test_a_budget_is_kept_and_told(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report, summary = tmp_path / "o.parquet", tmp_path / "r.html", tmp_path / "s.json"
    words = ("--raw-safe", 0.0001, "--seed", 5, "--state", tmp_path / "state")
    files = ("--out", out, "--report", report, "--summary", summary)
    assert ran("replay", games, *words, *files) == 0
    shown, told = capsys.readouterr().out, json.loads(summary.read_text())
    table = pq.read_table(out)
    model = Calibrant(seed=5, raw_safe=0.0001)
    made = model.replay(table["prob"].to_numpy(), table["won"].to_numpy())
    assert table["forecast"].to_numpy().tolist() == made.forecast.tolist()
    budget = told["chain"]["budget"]
    assert 0 < budget["fallbacks"] == model.certificate().budget.fallbacks
    assert budget["excess"] <= budget["epsilon"] == 0.0001
    assert told["bound"]["regret"] == 0.0001
    assert told["bound"]["c2"] is None
    brier = np.mean((made.forecast - table["won"].to_numpy()) ** 2)
    assert told["forecast"]["brier"] == pytest.approx(brier, abs=1e-3)
    assert (
        f"raw forecasts announced in {budget['fallbacks']} of 300 rounds: calibration is" in shown
    )
    assert "never above 0.0001" in shown
    page = report.read_text()
    assert budget["c2_bound"] is None
    assert "so the promise of calibration is withdrawn." in page
    assert "raw_safe=0.0001)" in page
    assert "--raw-safe 0.0001" in told["timing"]["run"]["command"]
    assert ran("replay", games, "--raw-safe", 0.2, *words[4:]) == ExitCode.STATE
    assert "raw_safe must be as in the state, 0.0001, got 0.2" in capsys.readouterr().err


def test_a_budget_that_is_never_touched_withdraws_nothing(
    games: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("replay", games, "--raw-safe", 1, "--seed", 5, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    budget = told["chain"]["budget"]
    lines = "\n".join(closing_lines(told))
    assert "never above 1\n" in lines
    told["chain"]["budget"] = budget | {"c2_bound": 0.5}
    assert "but of the other rounds: c2 at most 0.50000" in "\n".join(closing_lines(told))
    told["chain"]["budget"] = budget | {"fallbacks": 0}
    assert "calibration is not promised" not in "\n".join(closing_lines(told))
    told["chain"]["budget"] = budget | {"c2_bound": None}
    assert "but of the other rounds" not in "\n".join(closing_lines(told))


def test_percent_logit_and_score_are_scales(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n50,1\n-3,0\n")
    assert ran("replay", source, "--score", "--json") == 0
    assert json.loads(capsys.readouterr().out)["timing"]["run"]["command"].count("--score") == 1
    assert ran("replay", source, "--logit") == 0
    assert ran("replay", source, "--percent") == ExitCode.ROW
    assert "row 2: p must be a number in [0, 100], got '-3'" in capsys.readouterr().err
    assert ran("replay", source, "--percent", "--logit") == ExitCode.USAGE
    assert "--logit and --percent exclude each other" in capsys.readouterr().err


def test_late_outcomes_and_rows_without_one_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y,t,a\n0.5,1,1,3\n0.5,,2,\n0.5,0,3,9\n")
    assert ran("replay", source, "--time", "t", "--available", "a", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["n_rounds"], told["n_unresolved"]) == (2, 1)
    assert told["certificate"]["rounds"] == 1
    assert told["certificate"]["open"] == 2
    assert ran("replay", source) == 0
    assert "rows without an outcome: 1" in capsys.readouterr().out


def test_two_nights_with_a_state_give_the_rows_of_one(games: Path, tmp_path: Path) -> None:
    header, *lines = games.read_text().splitlines(keepends=True)
    whole, night = tmp_path / "whole.csv", [tmp_path / "1.csv", tmp_path / "2.csv"]
    halves = [tmp_path / "a.csv", tmp_path / "b.csv"]
    halves[0].write_text("".join([header, *lines[:120]]))
    halves[1].write_text("".join([header, *lines[120:]]))
    ran("replay", games, "--seed", 6, "--out", whole, "--summary", tmp_path / "whole.json")
    stored = tmp_path / "state"
    for half, out in zip(halves, night, strict=True):
        assert ran("replay", half, "--seed", 6, "--out", out, "--state", stored,
                   "--summary", f"{out}.json") == 0  # fmt: skip
    rows = night[0].read_text() + night[1].read_text().partition("\n")[2]
    assert rows == whole.read_text()
    told = [json.loads((tmp_path / name).read_text()) for name in ("whole.json", "2.csv.json")]
    for summary in told:
        del summary["timing"]
    assert told[0] == told[1]
    assert stored.stat().st_mode & 0o777 == 0o600


def test_rows_to_standard_output_leave_the_table_to_standard_error(
    games: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert ran("replay", games, "--out", "-", "--seed", 1) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(b"t,prob,won,forecast,mean,bucket,ticket\n0,")
    assert b"Brier score" in shown.err


def test_bad_rows_are_skipped_or_set_aside_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, aside = tmp_path / "d.csv", tmp_path / "bad.csv"
    source.write_text("p,y\n0.5,1\n2,1\n0.5,x\n")
    assert ran("replay", source, "--on-error", "skip") == 0
    assert "bad rows passed over: 2" in capsys.readouterr().out
    assert ran("replay", source, "--on-error", f"quarantine={aside}") == 0
    assert len(aside.read_text().splitlines()) == 3
    assert ran("replay", source, "--on-error", f"quarantine={aside}") == ExitCode.OUTPUT


def test_a_prefix_keeps_old_columns_apart(games: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    ran("replay", games, "--out", out, "--prefix", "cal_")
    assert out.read_text().startswith("t,prob,won,cal_forecast,cal_mean,cal_bucket,cal_ticket\n")


# --------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("content", "words", "code", "told"),
    [
        (b"p,won\n0.5,1\n", ["--raw", "q"], 3, "no column 'q'; there are: p, won"),
        (b"p,won\n0.5,1\n", ["--raw", "won"], 3, "no column looks like outcomes; name it with"),
        (b"p,won\n0.5,1\n", ["--raw", "p", "--outcome", "p"], 3, "must be two columns, got 'p'"),
        (b"a,won\n0.5,1\n", [], 3, "no column looks like raw forecasts; name it with --raw"),
        (b"p,y\n0.5,1\nnan,1\n", [], 4, "row 2: p must be a number in [0, 1], got 'nan'"),
        (b"p,y\n1.2,1\n", [], 4, "row 1: p must be a number in [0, 1], got '1.2'"),
        (b"p,y\nhigh,1\n", [], 4, "row 1: p must be a number in [0, 1], got 'high'"),
        (b"p,y\n0.5,2\n", [], 4, "row 1: y must be 0 or 1, got '2'"),
        (b"", [], 3, "must begin with the names of its columns, got an empty file"),
        (b"p,y\n", [], 3, "must have at least one row, got none"),
        (gzip.compress(b"p,y\n" + b"0.5,1\n" * 9000)[:-9], [], 3, "Compressed file ended"),
    ],
)  # fmt: skip
def test_a_bad_input_is_one_line_an_exit_code_and_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: list[str],
    code: int, told: str,
) -> None:  # fmt: skip
    source = tmp_path / "d.csv"
    source.write_bytes(content)
    outputs = ["--out", tmp_path / "o.csv", "--summary", tmp_path / "s.json", "--state",
               tmp_path / "state", "--report", tmp_path / "r.html", "--plots", tmp_path / "p",
               ]  # fmt: skip
    assert ran("replay", source, *words, *outputs) == code
    shown = capsys.readouterr().err.splitlines()
    assert shown[-1].startswith(f"calibrant: {source}: ")
    assert told in shown[-1]
    assert os.listdir(tmp_path) == ["d.csv"]


def test_a_missing_file_a_directory_and_a_locked_one_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran("replay", tmp_path / "no.csv") == ExitCode.INPUT
    assert "no.csv: cannot be read: No such file or directory" in capsys.readouterr().err
    assert ran("replay", tmp_path) == ExitCode.INPUT
    assert "cannot be read: Is a directory" in capsys.readouterr().err

    def locked(name: str) -> None:
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr("calibrant.stream.source.io.FileIO", locked)
    assert ran("replay", "secret.csv") == ExitCode.INPUT
    assert "secret.csv: cannot be read: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.jsonl", "o.csv.gz", "o.csv.zst"])
def test_a_disk_that_fills_up_leaves_nothing_behind(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "d.parquet"
    rows = 6000
    raw = np.random.default_rng(1).random(rows)
    pq.write_table(pa.table({"p": raw, "y": np.ones(rows, int)}), source)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        code = ran("replay", source, "--out", tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == ExitCode.OUTPUT
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"calibrant: {tmp_path / name}: cannot be written: File too large"
    assert os.listdir(tmp_path) == ["d.parquet"]


@pytest.mark.parametrize(
    ("words", "unbuffered"), [(["methods"], ""), (["bound", "--json"], "1"), (["--help"], "1")]
)
def test_a_full_standard_output_is_one_line(words: list[str], unbuffered: str) -> None:
    command = [sys.executable, "-m", "calibrant.cli", *words]
    with open("/dev/full", "wb") as nowhere:
        ran = subprocess.run(
            command, env=environment(PYTHONUNBUFFERED=unbuffered), stdout=nowhere,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert ran.returncode == ExitCode.OUTPUT
    assert ran.stderr == (
        "calibrant: standard output: cannot be written: No space left on device\n"
    )


def test_closed_standard_streams_are_told(games: Path) -> None:
    command = f"{sys.executable} -m calibrant.cli"
    for words, told, code in (
        ("replay - <&-", "-: cannot be read: standard input is closed", ExitCode.INPUT),
        (
            f"replay {games} --raw prob --outcome won --out - >&-",
            "standard output: cannot be written: Bad file descriptor",
            ExitCode.OUTPUT,
        ),
        ("methods >&-", None, ExitCode.OK),
    ):
        ran = subprocess.run(
            f"{command} {words}", shell=True, env=environment(), capture_output=True, text=True
        )
        assert ran.returncode == code
        assert ran.stderr == ("" if told is None else f"calibrant: {told}\n")


@pytest.mark.parametrize(
    ("option", "start"), [("--out", b"t,"), ("--summary", b"{"), ("--report", b"<!DOCTYPE html>")]
)
def test_a_pipe_or_device_is_written_as_it_is_and_never_replaced(
    games: Path, tmp_path: Path, option: str, start: bytes
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = started("replay", games, option, pipe, stdin=subprocess.DEVNULL)
    assert pipe.read_bytes().startswith(start)
    process.communicate()
    assert process.returncode == 0
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["games.csv", "pipe"]


def test_a_pipe_or_device_is_no_state(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert ran("replay", games, "--state", pipe) == ExitCode.INPUT
    assert f"{pipe}: cannot be read: it is not a plain file" in capsys.readouterr().err


def test_two_outputs_must_be_two_files_and_only_rows_go_to_standard_output(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.csv"
    assert ran("replay", games, "--out", out, "--summary", out) == ExitCode.OUTPUT
    assert f"{out}: cannot be written: two outputs must be two files" in capsys.readouterr().err
    for option in ("--summary", "--report", "--state"):
        assert ran("replay", games, option, "-") == ExitCode.OUTPUT
        assert "-: cannot be written: only rows go to standard output" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["games.csv"]


@pytest.mark.parametrize("option", ["--summary", "--report", "--plots", "--state"])
def test_no_room_for_any_product_leaves_nothing_behind(
    games: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    def full_output(place: Path, name: str) -> Any:
        return open_output(Path("/dev/full"), name)

    monkeypatch.setattr("calibrant.cli.products.open_output", full_output)
    monkeypatch.setattr("calibrant.report.write", full)
    monkeypatch.setattr("calibrant.report.save_pictures", full)
    monkeypatch.setattr("calibrant.cli.replay.dump", full)
    target = tmp_path / "product"
    assert ran("replay", games, "--out", tmp_path / "o.csv", option, target) == ExitCode.OUTPUT
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"calibrant: {target}: cannot be written: No space left on device"
    assert os.listdir(tmp_path) == ["games.csv"]


def test_what_is_there_already_is_kept_without_force(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.csv"
    out.write_text("precious")
    assert ran("replay", games, "--out", out) == ExitCode.OUTPUT
    assert f"{out}: already exists; --force replaces it" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert ran("replay", games, "--out", out, "--force") == 0
    assert out.read_text().startswith("t,prob")


def test_a_state_that_does_not_fit_is_refused(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "state"
    ran("replay", games, "--seed", 1, "--state", stored)
    before = stored.read_bytes()
    assert ran("replay", games, "--seed", 2, "--state", stored) == ExitCode.STATE
    assert "seed must be as in the state, 1, got 2" in capsys.readouterr().err
    assert stored.read_bytes() == before
    stored.write_bytes(before[:-4])
    assert ran("replay", games, "--state", stored) == ExitCode.STATE
    assert f"calibrant: {stored}: state must be whole" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--available", "a"], "--available needs --time"),
        (["--flush"], "--flush needs --out -"),
        (["--json", "--out", "-"], "--json and --out - cannot both use standard output"),
        (["--group", ","], "--group needs the name of a column"),
        (["--group", "t,t"], "--group must name each column once, got 't,t'"),
        (["--group", "t", "--proba", "prob"], "group must be left out: several classes have no"),
        (["--proba", "prob", "--raw", "prob"], "--raw and --proba exclude each other"),
        (["--raw-safe", "-1"], "raw_safe must be a finite number of at least 0, got -1.0"),
        (["--raw-safe", "0.1", "--method", "blackwell"], "raw_safe must be left out: only the"),
        (["--format", "xml"], "--format must be one of 'csv', 'tsv', 'jsonl', 'json', 'parquet', "
         "'xlsx', got 'xml'"),
        (["--on-error", "ignore"], "--on-error must be one of 'stop', 'skip', 'quarantine=FILE', "
         "got 'ignore'"),
        (["--on-error", "quarantine=x.parquet"], "must be a CSV, TSV or JSON Lines file"),
        (["--method", "best"], "method must be one of 'calibrant', 'anchored',"),
        (["--epsilon", "0.1"], "epsilon must be left out: calibrant keeps its grid, and its"),
        (["--prior", "3"], "choose a method such as foster_hart, got 3"),
        (["--resolution", "0"], "resolution must be"),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_in_one_line(
    games: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert ran("replay", games, *words) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("calibrant: ")
    assert told in lines[0]


def test_a_bug_keeps_its_traceback(games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("calibrant.cli.replay.open_session", broken)
    with pytest.raises(ZeroDivisionError):
        ran("replay", games)


# ---------------------------------------------------------------- signals and pipes


def test_a_filter_answers_each_line_before_it_reads_the_next(tmp_path: Path) -> None:
    process = started("replay", "-", "--out", "-", "--flush", "--seed", 1, "--state",
                      tmp_path / "state")  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"p,y\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"p,y,forecast,mean,bucket,ticket\n"
    for ticket, line in enumerate([b"0.5,1", b"0.25,0", b"0.5,"]):
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer.startswith(line + b",")
        assert answer.endswith(b",%d\n" % ticket)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert errors.splitlines()[-1] == b"calibrant: interrupted"
    found = session.read(str(tmp_path / "state"))
    assert found is not None
    assert (found.recalibrator.issued, found.recalibrator.rounds) == (3, 2)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_an_interrupt_leaves_no_half_written_file(
    tmp_path: Path, number: signal.Signals, code: ExitCode
) -> None:
    read, write = os.pipe()
    process = started("replay", "-", "--out", tmp_path / "o.csv", "--state", tmp_path / "state",
                      stdin=read)  # fmt: skip
    os.write(write, b"p,y\n" + b"0.5,1\n" * 10)
    assert process.stderr is not None
    assert b"raw forecasts from column 'p'" in process.stderr.readline()
    assert any(name.endswith(".part") for name in os.listdir(tmp_path))
    process.send_signal(number)
    os.write(write, b"0.5,1\n" * 10)
    os.close(write)
    process.communicate()
    os.close(read)
    assert process.returncode == code
    assert os.listdir(tmp_path) == []


def test_a_reader_that_stops_reading_ends_the_command_quietly(tmp_path: Path) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n" + "0.5,1\n" * 20_000)
    process = started("replay", source, "--out", "-")
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    process.wait()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()
    assert process.returncode == ExitCode.PIPE
    assert b"Traceback" not in errors


def test_an_interrupt_within_the_command_is_told(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.cli.replay.replay_job", interrupt)
    assert ran("replay", games) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "calibrant: interrupted\n"


def test_an_interrupt_while_words_are_read_is_told(
    games: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperCommand.parse_args", interrupt)
    assert ran("replay", games) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "calibrant: interrupted\n"


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_a_signal_that_was_swallowed_acts_before_anything_is_put_in_place(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals,
    code: ExitCode,
) -> None:  # fmt: skip
    def swallowed(*arguments: Any, **options: Any) -> None:
        with contextlib.suppress(KeyboardInterrupt, SystemExit):
            signal.raise_signal(number)
        replay(*arguments, **options)

    monkeypatch.setattr("calibrant.cli.replay.replay_job", swallowed)
    try:
        ended = ran("replay", games, "--out", tmp_path / "o.csv")
    except SystemExit as left:
        ended = int(left.code or 0)
    assert ended == code
    assert os.listdir(tmp_path) == ["games.csv"]


def test_an_interrupted_filter_keeps_what_it_has_answered(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        replay(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.cli.replay.replay_job", interrupted)
    stored = tmp_path / "state"
    code = ran("replay", games, "--out", "-", "--flush", "--state", stored)
    assert code == ExitCode.INTERRUPTED
    found = session.read(str(stored))
    assert found is not None
    assert found.recalibrator.issued == ROWS


def test_a_broken_pipe_is_quiet(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("calibrant.cli.replay.replay_job", broken)
    with open(tmp_path / "stdout", "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert ran("replay", games) == ExitCode.PIPE
        print("nobody reads this", file=stdout, flush=True)
    assert (tmp_path / "stdout").read_text() == ""
    assert capsys.readouterr().err == ""


def test_sigterm_ends_a_run_with_its_own_code() -> None:
    with pytest.raises(SystemExit) as caught:
        _terminate(signal.SIGTERM, None)
    assert caught.value.code == ExitCode.TERMINATED


# --------------------------------------------------------------------- other commands


def test_play_tells_the_same_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / "s.json"
    words = ("--adversary", "threshold", "--rounds", 400, "--resolution", 10, "--buckets", 10)
    assert ran("play", *words, "--seed", 1, "--json", "--summary", summary) == 0
    told, stored = json.loads(capsys.readouterr().out), json.loads(summary.read_text())
    assert told["n_rounds"] == 400
    assert told["forecast"]["calibration_l1"] < 0.1 < told["raw"]["calibration_l1"]
    del stored["detail"]
    assert {
        "headline": headline(Summary.from_dict(json.loads(summary.read_text()))),
        **stored,
    } == told
    command = told["timing"]["run"]["command"]
    assert run([*command.split()[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {**again, "timing": 0} == {**told, "timing": 0}


def test_play_lists_who_can_play(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("play", "--list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert "threshold" in told["adversaries"]
    assert "noise" in told["forecasters"]
    assert ran("play", "--list") == 0
    shown = capsys.readouterr().out
    assert "adversaries:\n" in shown
    assert "``" not in shown
    assert ran("play", "--adversary", "nobody") == ExitCode.USAGE
    assert "adversary must be one of" in capsys.readouterr().err


def test_play_writes_products_and_shows_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, report, plots = (tmp_path / name for name in ("s.json", "r.html", "p"))
    products = ("--summary", summary, "--report", report, "--plots", plots)
    assert ran("play", "--rounds", 50, *products) == 0
    assert "50 rounds, calibrant" in capsys.readouterr().out
    assert sorted(os.listdir(tmp_path)) == ["p", "r.html", "s.json"]
    assert {path.suffix for path in plots.iterdir()} == {".png", ".svg"}
    assert ran("play", "--rounds", 50, "--summary", summary) == ExitCode.OUTPUT
    assert "already exists; --force replaces it" in capsys.readouterr().err
    assert ran("play", "--rounds", 60, "--force", *products) == 0
    assert json.loads(summary.read_text())["n_rounds"] == 60


@pytest.mark.parametrize(
    ("name", "method"),
    [("game.csv", "foster99"), ("game.jsonl.gz", "calibrant"), ("game.parquet", "foster99")],
)
def test_the_rounds_of_a_game_are_those_that_replay_gives(
    tmp_path: Path, name: str, method: str
) -> None:
    game, again = tmp_path / name, tmp_path / f"again_{name}"
    sizes = ("--seed", 4, "--method", method, "--resolution", 7, "--buckets", 9)
    words = ("--adversary", "drifting", "--forecaster", "uniform", "--rounds", 300)
    assert ran("play", *words, *sizes, "--out", game) == 0
    told = ("--raw", "raw", "--outcome", "outcome", "--prefix", "again_")
    assert ran("replay", game, *told, *sizes, "--out", again) == 0
    rows = read_rows(again)
    assert len(rows) == 300
    for row in rows:
        for column in ("forecast", "mean", "bucket", "ticket"):
            assert float(row[column]) == float(row[f"again_{column}"])


def read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".gz":
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_rounds_of_a_game_may_go_to_standard_output(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert ran("play", "--rounds", 20, "--out", "-", "--seed", 1) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(b"raw,outcome,forecast,mean,bucket,ticket\n")
    assert shown.out.count(b"\n") == 21
    assert b"Brier score" in shown.err
    assert ran("play", "--rounds", 20, "--out", "-", "--json") == ExitCode.USAGE


def test_bound_tells_resolution_bounds_and_horizons(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("bound", "--epsilon", 0.1, "--loss", "squared", "--rounds", 100_000, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["resolution"], told["buckets"], told["resolution_paper"]) == (15, 15, 60)
    rows = {row["method"]: row for row in told["methods"]}
    assert list(rows) == ["calibrant", *calibrators.names()]
    own = rows["foster_hart"]
    assert own["c1"] == pytest.approx(own["c2"] ** 0.5)
    assert own["regret"] < 0.1
    assert own["horizon"] < 100_000
    assert rows["running_mean"]["c1"] is None
    assert ran("bound", "--epsilon", 0.1) == 0
    shown = capsys.readouterr().out
    assert "(the paper's choice is 60 of both)\n" in shown
    assert "rounds until 0.1" in shown
    assert f"{own['horizon']:,}" in shown


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_the_bound_of_the_default_is_the_sum_of_its_chain_and_never_below_a_certificate(
    loss: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("bound", "--rounds", 900, "--loss", loss, "--json") == 0
    row = json.loads(capsys.readouterr().out)["methods"][0]
    chain = row["chain"]
    assert row["regret"] == chain["to_raw"] == chain["to_mixture"] + chain["mixture_to_raw"]
    generator = np.random.default_rng(3)
    model = Options(loss=loss).recalibrator(1)
    model.replay(generator.random(900), generator.integers(0, 2, 900))
    found: Any = model.certificate()
    assert row["c2"] >= found.bound("C2")
    assert chain["to_mixture"] >= found.bound("regret")
    own = [link.bound for link in found.links]
    assert chain["mixture_to_raw"] == own[0] == min(own)
    assert chain["mixture_to_expert"] == max(own)
    assert ran("bound", "--rounds", 900, "--loss", loss) == 0
    told = f"{printed(chain['to_mixture'])} of the draws over the mixture"
    assert f"extra loss of calibrant: {told}" in capsys.readouterr().out


def test_the_formula_that_methods_tells_is_no_less_than_the_bound() -> None:
    rule, rounds = Calibrant().calibrator, 10_000
    K, h = rule.lattice.cells, rule.lattice.half_cell
    told = h**2 + (h**2 + K * (1 + np.log(rounds / K)) / rounds) / 5.3
    assert "h^2 + (h^2 + K(1 + ln(T/K))/T)/c" in methods.ACCURACY
    assert told * 0.9 < draw_to_front(rule, get_loss("squared"), rounds, 1) <= told


def test_where_the_default_has_no_experts_to_compare_it_promises_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ran("bound", "--loss", "spherical", "--json") == 0
    row = json.loads(capsys.readouterr().out)["methods"][0]
    assert (row["c2"], row["regret"]) == (None, None)
    assert row["assumption"] == "for the losses squared and log only"
    assert ran("bound", "--loss", "spherical") == 0
    assert "extra loss of calibrant" not in capsys.readouterr().out


def test_bound_without_epsilon_takes_the_usual_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("bound", "--loss", "log", "--buckets", 30) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("log loss, resolution 20, 30 buckets")
    assert "rounds until" not in shown
    assert ran("bound", "--epsilon", 0.3, "--loss", "log", "--resolution", 3, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["resolution_paper"] is None
    assert {row["horizon"] for row in told["methods"] if row["theorem"] is None} == {None}
    assert ran("bound", "--epsilon", 0.01, "--resolution", 3, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    # A grid that grows has no floor; one whose cells split has a lower one.
    finer = ("growing", "refining", "calibrant")
    fixed = [row["horizon"] for row in told["methods"] if row["method"] not in finer]
    assert set(fixed) == {None}
    assert ran("bound", "--loss", "hinge") == ExitCode.USAGE
    assert ran("bound", "--rounds", 0) == ExitCode.USAGE


def test_methods_lists_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("methods", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == ["calibrant", *calibrators.names()]
    assert all(row[key] for row in rows for key in ("bound", "cost", "reference", "summary"))
    assert ran("methods") == 0
    shown = capsys.readouterr().out
    for name in calibrators.names():
        assert name in shown
    assert shown.index("calibrant  ") < shown.index("anchored  ")
    for link in ("calibration", "draws to mixture", "mixture to experts"):
        assert f"\n  {link} " in shown
    assert [link["link"] for link in rows[0]["chain"]] == [
        "calibration", "draws to mixture", "mixture to experts",
    ]  # fmt: skip
    assert "[-ln w - (T-1) ln(1-share)]" in shown


def test_report_combines_summaries(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [tmp_path / "a.json", tmp_path / "b.json"]
    for seed, name in enumerate(names):
        ran("replay", games, "--seed", seed, "--summary", name)
    out = tmp_path / "r.html"
    capsys.readouterr()
    assert ran("report", *names, "--report", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(out)
    assert len(told["summaries"]) == 2
    assert ran("report", names[0], "--out", out) == ExitCode.OUTPUT


@pytest.mark.parametrize(
    ("name", "more"), [("r.pdf", ": print that page to make one"), ("r.PNG", ""), ("r.json", "")]
)
@pytest.mark.parametrize("command", ["replay", "report", "compare"])
def test_a_page_is_not_called_what_it_is_not(
    games: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    more: str,
) -> None:
    source, out = games, tmp_path / name
    if command == "report":
        source = tmp_path / "summary.json"
        ran("replay", games, "--seed", 1, "--summary", source)
    capsys.readouterr()
    assert ran(command, source, "--report", out) == ExitCode.USAGE
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "--report must be an HTML file, such as report.html, got" in told
    assert more in told
    assert not out.exists()


def test_report_tells_the_headline(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.report.write_many", lambda summaries, place: None)
    name, out = tmp_path / "a.json", tmp_path / "r.html"
    ran("replay", games, "--seed", 1, "--summary", name)
    capsys.readouterr()
    assert ran("report", name, "--out", out) == 0
    shown = capsys.readouterr()
    assert re.match(rf"{name}: \S.* Brier \S+ → \S+ .* AUC \S+ → \S+ The", shown.out)
    assert shown.err == f"calibrant: wrote {out}\n"


def test_report_refuses_what_is_no_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "s.json"
    assert ran("report", source) == ExitCode.INPUT
    for content, told in (
        ("{", "must be a file that --summary wrote"),
        ("{}", "summary must be an object"),
    ):
        source.write_text(content)
        assert ran("report", source) == ExitCode.STATE
        assert f"calibrant: {source}: {told}" in capsys.readouterr().err


# ---------------------------------------------------------------------- the frame


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from calibrant import __version__

    assert ran("--version") == 0
    assert capsys.readouterr().out == f"calibrant {__version__}\n"


@pytest.mark.parametrize("command", ["replay", "play", "compare", "bound", "methods", "report"])
def test_every_command_has_an_example_and_speaks_json(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(command, "--help") == 0
    shown = capsys.readouterr().out
    assert re.search(rf"Example:\n +calibrant {command} ", shown)
    assert "--json" in shown


def test_completion_knows_the_methods() -> None:
    asked = {
        "_CALIBRANT_COMPLETE": "complete_bash",
        "COMP_WORDS": "calibrant replay --method fo",
        "COMP_CWORD": "3",
    }
    code = "from calibrant.cli import main; import sys; sys.argv[0] = 'calibrant'; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(**asked), capture_output=True, text=True
    )
    assert ran.stdout.split() == ["foster99", "foster_hart"]


def test_completion_offers_every_name() -> None:
    assert options._methods() == ["calibrant", *calibrators.names()]
    assert play._known("adversaries") == list(adversaries.names())
    assert play._known("forecasters") == list(forecasters.names())


def test_the_bar_tells_rounds_and_their_rate() -> None:
    task: Any = SimpleNamespace(elapsed=2.0, fields={"rounds": 5000})
    assert screen.Rate().render(task).plain == "5,000 rounds 2,500/s"
    task.elapsed = None
    assert screen.Rate().render(task).plain == "5,000 rounds "


def test_a_bar_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for forced, shown in (("", False), ("1", True)):
        monkeypatch.setenv("FORCE_COLOR", forced)
        with screen.progress(("a.csv", "b.csv")) as show:
            show(10, 1, 2)
        assert ("2 inputs" in capsys.readouterr().err) == shown


def test_the_package_can_be_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibrant", "--version"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("calibrant.cli", run_name="__main__")
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("calibrant ")


def test_main_runs_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibrant", "methods"])
    assert main() == 0
    assert "foster_hart" in capsys.readouterr().out


def test_a_report_without_its_extra_says_what_to_install(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("it must be known before the work")

    monkeypatch.setattr("calibrant.cli.replay.replay_job", never)
    for missing, option in (("jinja2", "--report"), ("matplotlib", "--plots")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            assert ran("replay", games, option, tmp_path / "product") == ExitCode.MISSING_EXTRA
        told = (
            f"{option} needs {missing}, not installed here: "
            'pip install ".[plot]" in a clone of calibrant'
        )
        assert capsys.readouterr().err == f"calibrant: {told}\n"
    assert os.listdir(tmp_path) == ["games.csv"]


def test_the_closing_lines_fit_the_numbers(games: Path, tmp_path: Path) -> None:
    summary = tmp_path / "s.json"
    ran("replay", games, "--seed", 1, "--summary", summary)
    told = Summary.from_dict(json.loads(summary.read_text())).summary
    lines = closing_lines(told)
    assert lines[1].startswith("proven in 95 % of runs: C1 at most ")
    bare = {**told, "bound": dict.fromkeys(("c1", "c2", "regret"))}
    assert len(closing_lines(bare)) == 1


def test_a_command_says_once_that_it_compiles(capsys) -> None:
    def command() -> None:
        begins()
        begins()

    for _ in range(2):
        guarded(command)()
        told = capsys.readouterr()
        assert told.err.count("compiling for a few seconds") == 1
        assert told.out == ""


def test_one_round_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "d.csv"
    place.write_text("prob,won\n0.3,1\n")
    assert run(["replay", str(place)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("1 round, calibrant")
    assert "too few rounds for an interval" in told
    assert "[-, -]" not in told


def test_long_names_leave_the_numbers_of_a_table_whole(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a name of a group that is as long as names of groups in real tables may well be"
    columns = {"group": "left", "rounds": "right", "happened": "right", "verdict": "left"}
    screen.show(columns, [[name, "1,523", "0.60722", "better but still off"]], width=80)
    told = capsys.readouterr().out
    assert "…" not in told
    assert "1,523" in told
    assert "0.60722" in told
    assert set(name.split()) <= set(told.split())


def test_a_missing_input_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay"]) == ExitCode.USAGE
    told = "Missing argument 'INPUT'. A file, or - for standard input? See calibrant replay --help"
    assert capsys.readouterr().err == f"calibrant: {told}\n"
    assert run(["report"]) == ExitCode.USAGE
    assert capsys.readouterr().err.endswith(". See calibrant report --help\n")
