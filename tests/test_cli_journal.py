"""``calibrant replay --journal``: on disk row by row, for several runs, and nothing twice."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line is an extra")

from forking import at_once

from calibrant import Journal, Recalibrator
from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.kinds.binary import journaled

ROWS = 120
HOW = ("--raw", "p", "--outcome", "y", "--method", "foster_hart", "--seed", "3")
Heard = pytest.CaptureFixture[str]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def ran(*words: Any) -> int:
    return int(run([str(word) for word in words]))


def rows(start: int = 0, stop: int = ROWS, known: int = 1) -> list[dict[str, Any]]:
    """Return rows; each that is not a multiple of ``known`` has no outcome."""
    rng = np.random.default_rng(0)
    raw, coin = rng.random(ROWS).round(3).tolist(), rng.random(ROWS)
    told = [{"id": f"o {t}", "p": raw[t], "y": int(coin[t] < raw[t])} for t in range(ROWS)]
    for t, row in enumerate(told):
        row["y"] = row["y"] if t % known == 0 else ""
    return told[start:stop]


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def state(journal: Path) -> Recalibrator:
    with Journal(journal) as held:
        found = held.state()
        assert isinstance(found, Recalibrator)
        return found


@pytest.mark.parametrize("how", [(), ("--batch-rows", "7"), ("--id", "id")])
@pytest.mark.parametrize("known", [1, 3])
def test_rows_and_summary_are_those_of_a_state(
    tmp_path: Path, how: tuple[str, ...], known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaled, "AT_ONCE", 50)
    halves = rows(0, 70, known), rows(70, ROWS, known)
    files = [written(tmp_path / f"{k}.csv", half) for k, half in enumerate(halves)]
    told = dict[str, Any]()
    for kind in ("state", "journal"):
        place = ("--" + kind, tmp_path / kind)
        for k, file in enumerate(files):
            out = ("--out", tmp_path / f"{kind}{k}.csv", "--summary", tmp_path / f"{kind}{k}.json")
            assert ran("replay", file, *HOW, *how, *place, *out) == ExitCode.OK
        told[kind] = [(tmp_path / f"{kind}{k}.csv").read_text() for k in range(2)]
        told[kind] += [json.loads((tmp_path / f"{kind}{k}.json").read_text()) for k in range(2)]
        for summary in told[kind][2:]:
            summary.pop("timing")
    assert told["journal"] == told["state"]
    assert state(tmp_path / "journal").issued == ROWS


def test_a_file_once_more_gets_the_same_answers_and_is_learned_once(tmp_path: Path) -> None:
    file, journal = written(tmp_path / "a.csv", rows()), tmp_path / "j.db"
    for k in range(2):
        words = *HOW, "--journal", journal, "--out", tmp_path / f"out{k}.csv"
        assert ran("replay", file, *words) == ExitCode.OK
    assert (tmp_path / "out0.csv").read_text() == (tmp_path / "out1.csv").read_text()
    assert (state(journal).issued, state(journal).rounds) == (ROWS, ROWS)


def test_a_filter_that_is_killed_loses_no_row_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lone = written(tmp_path / "a.csv", rows()), tmp_path / "lone.csv"
    assert ran("replay", file, *HOW, "--out", lone) == ExitCode.OK
    monkeypatch.setattr(journaled, "AT_ONCE", 10)
    words = "replay", file, *HOW, "--journal", tmp_path / "j.db", "--out", tmp_path / "out.csv"
    play, left = Journal.play, [5]

    def fatal(self: Journal, *given: Any) -> Any:
        told = play(self, *given)
        left[0] -= 1
        if not left[0]:
            os._exit(0)
        return told

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "play", fatal)
        at_once([lambda: (ran(*words), os._exit(3))[0]])
    assert state(tmp_path / "j.db").rounds == 50
    assert not (tmp_path / "out.csv").exists()
    assert ran(*words) == ExitCode.OK
    assert (tmp_path / "out.csv").read_text() == lone.read_text()
    assert state(tmp_path / "j.db").rounds == ROWS


def test_runs_at_the_same_time_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaled, "AT_ONCE", 5)
    files = [written(tmp_path / f"{k}.csv", rows(40 * k, 40 * k + 40)) for k in range(3)]

    def work(file: Path) -> None:
        words = *HOW, "--journal", tmp_path / "j.db", "--out", f"{file}.out.csv"
        assert ran("replay", file, *words) == ExitCode.OK

    at_once([lambda file=file: work(file) for file in files])  # type: ignore[misc]
    found = state(tmp_path / "j.db")
    assert (found.issued, found.rounds) == (ROWS, ROWS)
    numbers = set[str]()
    for file in files:
        with Path(f"{file}.out.csv").open(newline="") as out:
            numbers |= {row["ticket"] for row in csv.DictReader(out)}
    assert len(numbers) == ROWS


def test_outcomes_of_a_later_file_find_their_forecast_by_id(tmp_path: Path, capsys: Heard) -> None:
    first = written(tmp_path / "a.csv", rows(known=3))
    late = [{"id": one["id"], "y": one["y"]} for one in rows()]
    journal = ("--journal", tmp_path / "j.db", "--id", "id")
    assert ran("replay", first, *HOW, *journal) == ExitCode.OK
    assert state(tmp_path / "j.db").rounds == ROWS // 3
    file = written(tmp_path / "late.csv", late)
    for found in (f"{ROWS - ROWS // 3} outcomes found", ""):
        capsys.readouterr()
        assert ran("replay", file, "--outcome", "y", *journal) == ExitCode.OK
        assert found in capsys.readouterr().err
        assert (state(tmp_path / "j.db").rounds, state(tmp_path / "j.db").open) == (ROWS, 0)


def test_ids_are_those_of_the_column_for_everybody(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", rows(0, 2, known=3))
    assert ran("replay", file, *HOW, "--journal", tmp_path / "j.db", "--id", "id") == ExitCode.OK
    with Journal(tmp_path / "j.db") as journal:
        assert journal.observe("o 1", 1) is not None
        closed, waiting = journal.tickets()
    assert [(one.id, one.outcome) for one in closed] == [("o 0", rows()[0]["y"]), ("o 1", 1)]
    assert waiting == []


def test_a_correction_outlives_its_file(tmp_path: Path) -> None:
    journal = ("--journal", tmp_path / "j.db")
    lines = rows(0, 3)
    assert ran("replay", written(tmp_path / "a.csv", lines), *HOW, *journal) == ExitCode.OK
    with Journal(tmp_path / "j.db") as held:
        held.correct(held.tickets()[0][1], 1 - lines[1]["y"])
    # What was corrected stays so, and the file is still known.
    assert ran("replay", tmp_path / "a.csv", *HOW, *journal) == ExitCode.OK
    with Journal(tmp_path / "j.db") as held:
        assert held.tickets()[0][1].outcome == 1 - lines[1]["y"]


def test_what_comes_through_a_pipe_has_ids_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = written(tmp_path / "a.csv", rows(0, 5)).read_bytes()
    for k in (1, 2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        words = *HOW, "--journal", tmp_path / "j.db", "--format", "csv"
        assert ran("replay", "-", *words) == ExitCode.OK
        assert state(tmp_path / "j.db").rounds == 5 * k


def test_a_journal_goes_on_with_its_own_method(tmp_path: Path, capsys: Heard) -> None:
    file = written(tmp_path / "a.csv", rows(0, 5))
    words = "replay", file, "--raw", "p", "--outcome", "y", "--journal", tmp_path / "j.db"
    assert ran(*words, "--method", "foster_hart", "--seed", "3") == ExitCode.OK
    assert ran(*words) == ExitCode.OK
    assert ran(*words, "--seed", "3") == ExitCode.OK
    capsys.readouterr()
    assert ran(*words, "--seed", "4") == ExitCode.STATE
    assert "seed must be that of the journal" in capsys.readouterr().err
    assert ran(*words, "--method", "blackwell") == ExitCode.STATE
    assert "method must be as in the state, 'foster_hart'" in capsys.readouterr().err


def test_a_stream_beside_others_is_made_and_a_keyed_one_refused(
    tmp_path: Path, capsys: Heard
) -> None:
    file, both, keyed = written(tmp_path / "a.csv", rows(0, 5)), tmp_path / "b", tmp_path / "k"
    Journal(both, Recalibrator(seed=1), stream="other", keyed=False).close()
    assert ran("replay", file, *HOW, "--journal", both) == ExitCode.OK
    assert state(both).rounds == 5
    Journal(keyed, Recalibrator(seed=1)).close()
    assert ran("replay", file, *HOW, "--journal", keyed) == ExitCode.STATE
    assert "must be a journal without keys, got a keyed one" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--state", "s"),
        ("--by", "id"),
        ("--time", "p", "--available", "p"),
        ("--score",),
        ("--again",),
        ("--state", "s", "--authenticate-file", "a.csv"),
        ("--secret-file", "secret"),
        ("--group", "id"),
    ],
)
def test_what_a_journal_cannot_hold_is_refused(
    tmp_path: Path, words: tuple[str, ...], capsys: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_bytes(b"sixteen bytes and more")
    file = written(Path("a.csv"), rows(0, 5))
    told = "replay", file, "--raw", "p", "--outcome", "y", "--journal", "j.db", *words
    assert ran(*told) == ExitCode.USAGE
    assert "--journal " in capsys.readouterr().err
    assert not Path("j.db").exists()
