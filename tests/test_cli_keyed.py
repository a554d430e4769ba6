"""``calibrant replay --by``: many streams in one file."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line is an extra")

from calibrant import Recalibrator
from calibrant.cli.app import run
from calibrant.kernels import coin
from calibrant.stream.keyed import KeyedSession
from calibrant.stream.session import Options

ROWS = 400
HOW = ("--raw", "p", "--outcome", "y", "--method", "foster_hart", "--seed", "3", "--by", "site")


def ran(*words: Any) -> int:
    return int(run([str(word) for word in words]))


def rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    raw = rng.random(ROWS)
    sites, lag = rng.integers(0, 7, ROWS), rng.integers(0, 30, ROWS)
    return [
        {
            "site": f"s{sites[t]}",
            "p": raw[t],
            "y": int(rng.random() < raw[t]),
            "t": t,
            "k": t + lag[t],
        }
        for t in range(ROWS)
    ]


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def expected(lines: list[dict[str, Any]], late: bool = False) -> list[float]:
    found = np.empty(len(lines))
    for site in {line["site"] for line in lines}:
        mine = [t for t, line in enumerate(lines) if line["site"] == site]
        raw, y, time, known = (np.array([lines[t][c] for t in mine], float) for c in "pytk")
        when = {"time": time, "available": known} if late else {}
        found[mine] = Recalibrator("foster_hart", seed=3, key=site).replay(raw, y, **when).forecast
    return found.tolist()


def forecasts(path: Path) -> list[float]:
    return [float(line["forecast"]) for line in read(path)]


@pytest.mark.parametrize("late", [False, True])
def test_each_key_is_a_stream_of_its_own_in_pieces_and_from_a_state(
    tmp_path: Path, late: bool
) -> None:
    lines, state = rows(), tmp_path / "state"
    how = (*HOW, "--state", state, "--batch-rows", 50)
    how += ("--time", "t", "--available", "k") if late else ()
    made = []
    for k, part in enumerate((lines[:150], lines[150:])):
        source, out = written(tmp_path / f"{k}.csv", part), tmp_path / f"out{k}.csv"
        assert ran("replay", source, "--out", out, *how) == 0
        made += forecasts(out)
        assert [line["site"] for line in read(out)] == [line["site"] for line in part]
    assert made == expected(lines, late)


def test_the_summary_names_the_keys_with_the_largest_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = rows()
    for line in lines:
        if line["site"] == "s4":
            line["y"] = 1
    source, summary = written(tmp_path / "a.csv", lines), tmp_path / "s.json"
    assert ran("replay", source, *HOW, "--summary", summary) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("7 keys, 0 open; those with the largest errors\n")
    told = json.loads(summary.read_text())
    assert (told["keys"], told["n_rounds"], told["kind"]) == (7, ROWS, "keys")
    assert "--by site --method foster_hart --seed 3" in told["settings"]["command"]
    assert len(told["worst"]) >= 4
    assert told["worst"][0]["key"] == "s4"
    assert told["worst"][0]["c2"] > told["worst"][0]["chance"]
    assert [each["beyond"] for each in told["worst"]].count(True) == 1
    assert (told["certificate"]["beyond_chance"], told["alarm"]) == (1, None)
    assert ran("replay", source, *HOW, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["worst"] == told["worst"]
    assert ran("replay", source, *HOW, "--out", "-") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("site,p,y")
    assert "7 keys" in captured.err


def test_rows_without_a_key_are_bad_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = rows()
    lines[3]["site"] = ""
    lines[5]["p"] = 7
    source, out = written(tmp_path / "a.csv", lines), tmp_path / "o.csv"
    assert ran("replay", source, *HOW) != 0
    assert "site must be a key, got nothing" in capsys.readouterr().err
    assert ran("replay", source, *HOW, "--on-error", "skip", "--out", out) == 0
    good = [line for t, line in enumerate(lines) if t not in (3, 5)]
    assert forecasts(out) == expected(good)


def keys_of(state: Path, by: str) -> set[Any]:
    return set(KeyedSession.loaded(state.read_bytes(), by).table)


def test_a_key_may_be_called_none(tmp_path: Path) -> None:
    lines, out, state = rows(), tmp_path / "o.csv", tmp_path / "state"
    for t, line in enumerate(lines):
        line["site"] = ("None", "nan", "a=b")[t % 3]
    source = written(tmp_path / "a.csv", lines)
    assert ran("replay", source, *HOW, "--out", out, "--state", state) == 0
    assert forecasts(out) == expected(lines)
    assert keys_of(state, "site") == {"None", "nan", "a=b"}


def test_a_column_may_have_any_name_and_a_state_goes_on_with_the_keys_it_has(
    tmp_path: Path,
) -> None:
    told = [{"a=b": line["site"]} | line for line in rows()]
    first, then = (written(tmp_path / f"{k}.csv", told[k::2]) for k in (0, 1))
    state, how = tmp_path / "state", (*HOW[:-1], "a=b")
    for source, k in ((first, 0), (then, 1)):
        out = tmp_path / f"out{k}.csv"
        assert ran("replay", source, *how, "--state", state, "--out", out) == 0
    assert forecasts(tmp_path / "out0.csv") == expected(told[::2])
    assert keys_of(state, "a=b") == {line["site"] for line in told}
    # States of earlier versions do not say how keys are read: there they begin behind the first =.
    old = KeyedSession.start(Options(method="foster_hart", seed=3))
    old.whole = False
    state.write_bytes(old.dumped("a=b"))
    assert ran("replay", first, *how, "--state", state) == 0
    assert ran("replay", then, *how, "--state", state) == 0
    assert keys_of(state, "a=b") == {f"b={line['site']}" for line in told}


def test_unknown_outcomes_leave_tickets_open(tmp_path: Path) -> None:
    lines, state = rows(), tmp_path / "state"
    lines[9]["y"] = ""
    assert ran("replay", written(tmp_path / "a.csv", lines), *HOW, "--state", state) == 0
    session = KeyedSession.loaded(state.read_bytes(), "site")
    assert session.unresolved == 1
    assert session.table.certificates().open.sum() == 1
    assert session.recalibrator.issued == ROWS


def test_what_does_not_go_with_keys_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "a.csv", rows())
    for words in (("--report", tmp_path / "r.html"), ("--id", "t"), ("--group", "t")):
        assert ran("replay", source, *HOW, *words) != 0
        assert "--by cannot be combined with" in capsys.readouterr().err
    assert ran("replay", source, *HOW[:-1], "nothing") != 0
    assert "nothing" in capsys.readouterr().err
    assert ran("replay", source, *HOW[:-1], "") == 2
    assert "--by must be the name of a column, got none" in capsys.readouterr().err


def test_a_state_goes_on_as_it_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, state = written(tmp_path / "a.csv", rows()), tmp_path / "state"
    assert ran("replay", source, *HOW, "--state", state) == 0
    how = (*HOW, "--state", state, "--again")
    for words, told in (
        (("--seed", "4"), "seed must be as in the state, 3, got 4"),
        (("--percent",), "scale must be as in the state"),
        (("--resolution", "7"), "options must be as in the state"),
        (("--by", "t"), "--by must be as in the state, 'site', got 't'"),
    ):
        capsys.readouterr()
        assert ran("replay", source, *how, *words) != 0
        assert told in capsys.readouterr().err
    assert ran("replay", source, *HOW, "--state", state) != 0
    assert "has already been learned" in capsys.readouterr().err
    assert ran("replay", source, *how) == 0
    data = state.read_bytes()
    state.write_bytes(data[:-9])
    assert ran("replay", source, *how) != 0
    assert "state: state must be whole" in capsys.readouterr().err


def test_in_several_threads_the_forecasts_are_the_same(tmp_path: Path) -> None:
    source, forecast = written(tmp_path / "in.csv", rows()), []
    for jobs in (1, 3):
        out = tmp_path / f"out{jobs}.csv"
        assert ran("replay", source, *HOW, "--out", out, "--jobs", jobs) == 0
        forecast.append(forecasts(out))
    assert forecast[0] == forecast[1] == expected(rows())


@pytest.mark.parametrize(
    ("how", "rule"), [(HOW[:-2], "--jobs needs --by"), (HOW, "--jobs must be a whole number")]
)
def test_threads_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: Any, rule: str
) -> None:
    source, jobs = written(tmp_path / "in.csv", rows()), 0 if how == HOW else 2
    assert ran("replay", source, *how, "--jobs", jobs) == 2
    assert rule in capsys.readouterr().err


def long_rows(keys: int, rounds: int) -> list[dict[str, Any]]:
    """Right forecasts of several keys; of the first one 300 rounds in nothing happens any more."""
    rng = np.random.default_rng(2)
    raw = rng.uniform(0.3, 0.9, (rounds, keys))
    told = rng.random(raw.shape) < raw
    told[300:, 0] = False
    return [
        {"site": f"[{k}]", "p": raw[t, k], "y": int(told[t, k])}
        for t in range(rounds)
        for k in range(keys)
    ]


def test_one_alarm_over_all_keys_names_those_that_cannot_be_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, whole, state = long_rows(5, 400), tmp_path / "whole.json", tmp_path / "state"
    how = ("--raw", "p", "--outcome", "y", "--method", "foster_hart", "--seed", 3, "--by", "site")
    how += ("--alarm", 0.01, "--force")
    source = written(tmp_path / "a.csv", lines)
    assert ran("replay", source, *how, "--summary", whole) == 0
    assert "alarm at level 0.01 over 5 keys: [0]\n" in capsys.readouterr().out
    told = json.loads(whole.read_text())
    assert "--alarm 0.01" in told["settings"]["command"]
    assert (told["alarm"]["alpha"], told["alarm"]["watched"]) == (0.01, 5)
    (rung,) = told["alarm"]["alarms"]
    assert rung["key"] == "[0]"
    assert 300 < rung["after"] < 360
    for k, part in enumerate((lines[:900], lines[900:])):
        file, found = written(tmp_path / f"{k}.csv", part), tmp_path / f"{k}.json"
        options = (*how, "--state", state, "--summary", found, "--batch-rows", 70)
        assert ran("replay", file, *options) == 0
    assert json.loads(found.read_text())["alarm"] == told["alarm"]
    other = (*how[:-3], "--alarm", 0.05, "--state", state)
    assert ran("replay", source, *other) != 0
    assert "alarm must be as in the state, 0.01, got 0.05" in capsys.readouterr().err


def test_keys_beyond_those_that_are_watched_are_counted_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.stream.keyed.MOST_WATCHED", 3)
    source, summary = written(tmp_path / "a.csv", long_rows(5, 400)), tmp_path / "s.json"
    assert ran("replay", source, *HOW, "--alarm", 0.01, "--summary", summary) == 0
    told = json.loads(summary.read_text())
    assert (told["keys"], told["alarm"]["watched"]) == (5, 3)
    assert [each["key"] for each in told["alarm"]["alarms"]] == ["[0]"]


def test_an_alarm_needs_keys_and_outcomes_that_are_not_late(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "a.csv", rows())
    assert ran("replay", source, *HOW[:-2], "--alarm", 0.01) != 0
    assert "--alarm needs --by" in capsys.readouterr().err
    assert ran("replay", source, *HOW, "--time", "t", "--available", "k", "--alarm", 0.01) != 0
    told = "--by cannot be combined with --alarm and --available together"
    assert told in capsys.readouterr().err
    session = KeyedSession.start(Options(method="foster_hart"), 0.01)
    assert session.watch is not None
    assert ran("replay", source, *HOW, "--alarm", 2) != 0
    assert "alpha must be" in capsys.readouterr().err


def test_the_certificate_of_all_keys_is_one_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(4)
    raw = rng.random((3000, 2))
    sites = [("s0", "s1")] * 3000
    lines = [
        {"site": sites[t][k], "p": raw[t, k], "y": int(rng.random() < raw[t, k])}
        for t in range(3000)
        for k in range(2)
    ]
    source, summary = written(tmp_path / "a.csv", lines), tmp_path / "s.json"
    how = ("--raw", "p", "--outcome", "y", "--by", "site", "--seed", 3, "--resolution", 5)
    assert ran("replay", source, *how, "--method", "anchored", "--summary", summary) == 0
    told = json.loads(summary.read_text())["certificate"]
    assert (told["failure"], told["promised"], told["kept"]) == (0.05, 2, 2)
    assert told["verdict"] == "kept"
    assert told["c2"] < told["bound"] < 1.0
    shown = capsys.readouterr().out
    assert "certificate of all keys at once: kept; 2 of 2 keys have one, all hold with" in shown
    assert ran("replay", written(tmp_path / "b.csv", lines[:40]), *how) == 0
    assert "certificate of all keys at once: too early to promise" in capsys.readouterr().out


def peak(tmp_path: Path, rounds: int, *more: Any) -> int:
    """Return how much memory a replay by key takes at most; rows are long, to fill all buffers."""
    rng = np.random.default_rng(5)
    source, note = tmp_path / f"{rounds}.csv", 300 * "-"
    with source.open("w") as file:
        file.write("site,p,y,note\n")
        for t, p in enumerate(rng.random(rounds)):
            file.write(f"s{t % 20},{p},{int(p > 0.5)},{note}\n")
    how = (*HOW, "--out", tmp_path / "out.csv", "--force", "--batch-rows", 200, *more)
    tracemalloc.start()
    try:
        assert ran("replay", source, *how) == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--alarm", 0.01)], ids=["plain", "alarm"])
def test_the_memory_of_a_replay_by_key_does_not_depend_on_how_many_rows_there_are(
    tmp_path: Path, more: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plain Python keeps coins at hand, of so many blocks at most.
    monkeypatch.setattr(coin, "MOST_CHUNKS", 1)
    peak(tmp_path, 1_000, *more)
    few, many = peak(tmp_path, 20_000, *more), peak(tmp_path, 48_000, *more)
    # Less than a word for each row that came in addition; one peak differs from the next by half.
    assert many < few + 8 * 28_000
