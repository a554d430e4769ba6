"""Killed runs, closed pipes, full disks and odd inputs cost neither rows nor states."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.stream import Drafts, Unwritable, drafts, session
from calibrant.stream.drafts import LEFT_BEHIND, locked

ROOT = Path(__file__).resolve().parent.parent
FILTER = ("replay", "-", "--out", "-", "--flush", "--seed", 1, "--state")


def environment(**changes: str) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": paths, "CALIBRANT_COMPILE": "off", **changes}


def started(*words: Any, script: str = "", **changes: str) -> subprocess.Popen[bytes]:
    """Start a command, after some lines of Python."""
    code = f"import sys\n{script}\nfrom calibrant.cli import main\nsys.exit(main())"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(command, env=environment(**changes), **pipes)  # type: ignore[call-overload,no-any-return]


def answered(process: subprocess.Popen[bytes], rows: int) -> None:
    """Give a filter some rows, and take the answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"p,y\n" + b"0.5,1\n" * rows)
    process.stdin.flush()
    for _ in range(rows + 1):
        assert process.stdout.readline()


def issued(path: Path) -> int:
    found = session.read(str(path))
    assert found is not None
    return int(found.recalibrator.issued)


def rows_at(path: Path, rows: int = 30) -> Path:
    path.write_text("p,y\n" + "0.5,1\n0.25,0\n" * (rows // 2))
    return path


# ---------------------------------------------------------------- signals and pipes


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, ExitCode.TERMINATED), (signal.SIGHUP, ExitCode.HUNG_UP)],
)
def test_a_filter_that_is_told_to_end_keeps_its_state(
    tmp_path: Path, number: signal.Signals, code: ExitCode
) -> None:
    # Whoever runs the tests may ignore a hang-up, which is inherited.
    script = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)"
    process = started(*FILTER, tmp_path / "state", script=script)
    answered(process, 3)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == code
    assert issued(tmp_path / "state") == 3
    assert os.listdir(tmp_path) == ["state"]


def test_a_filter_whose_reader_is_gone_keeps_its_state(tmp_path: Path) -> None:
    process = started(*FILTER, tmp_path / "state")
    answered(process, 3)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(b"0.5,1\n")
    assert process.returncode == ExitCode.PIPE
    assert b"Traceback" not in errors
    # The fourth row was read and learned, though nobody took the answer.
    assert issued(tmp_path / "state") == 4


def test_a_filter_that_meets_a_bad_row_keeps_its_state(tmp_path: Path) -> None:
    process = started(*FILTER, tmp_path / "state")
    answered(process, 3)
    process.communicate(b"2,1\n")
    assert process.returncode == ExitCode.ROW
    assert issued(tmp_path / "state") == 3


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    script = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)"
    process = started(*FILTER, tmp_path / "state", script=script)
    answered(process, 1)
    process.send_signal(signal.SIGHUP)
    process.communicate(b"0.5,1\n")
    assert process.returncode == 0
    assert issued(tmp_path / "state") == 2


END = "import os, signal\nend = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)\n"
MOMENTS = {
    "at the first rename": "put = os.replace\nos.replace = lambda *p: (end(), put(*p))[1]",
    "after the last rename": "put = os.replace\nos.replace = lambda *p: (put(*p), end())[0]",
    "while the table is printed": "import calibrant.cli.screen as s\ns.before_after = end",
    "while Python ends": "import atexit\natexit.register(end)",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_does_not_deny_what_is_in_its_place(tmp_path: Path, moment: str) -> None:
    source = rows_at(tmp_path / "d.csv")
    process = started(
        "replay", source, "--state", tmp_path / "state", "--out", tmp_path / "o.csv",
        script=END + MOMENTS[moment],
    )  # fmt: skip
    process.communicate()
    assert process.returncode == 0
    assert issued(tmp_path / "state") == 30
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "o.csv", "state"]


# --------------------------------------------------------------- prints and pictures


@pytest.mark.parametrize("place", [">/dev/full", "2>/dev/full", ">&-", "2>&-", "| true"])
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_table_that_cannot_be_printed_costs_a_warning(
    tmp_path: Path, place: str, form: str
) -> None:
    source, state = rows_at(tmp_path / "d.csv"), tmp_path / "state"
    command = f"{sys.executable} -m calibrant.cli replay {source} --state {state} {form} {place}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert issued(state) == 30
    if place == ">/dev/full":
        told = "all files were written, but the result cannot be printed: No space left on device"
        assert done.stderr.splitlines()[-1] == f"calibrant: {told}"


def test_a_terminal_that_does_not_know_a_letter_gets_another(tmp_path: Path) -> None:
    source = rows_at(tmp_path / "d.csv")
    process = started("replay", source, PYTHONIOENCODING="latin-1")
    told, errors = process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in errors
    assert rb"\u2192" in told


def test_dollars_in_the_name_of_a_group_are_dollars(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    source = tmp_path / "d.csv"
    rows = [f"0.{t % 9 + 1},{t % 2},${chr(92)}frac{{$ {t % 2}" for t in range(40)]
    source.write_text("\n".join(["p,y,g", *rows]) + "\n")
    words = ["replay", source, "--group", "g", "--plots", tmp_path / "plots", "--report"]
    assert run([*map(str, words), str(tmp_path / "r.html")]) == 0
    assert any((tmp_path / "plots").iterdir())
    assert (tmp_path / "r.html").exists()


def test_a_picture_that_cannot_be_drawn_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")

    def broken(*arguments: Any) -> None:
        raise ValueError("no such\nglyph")

    monkeypatch.setattr("calibrant.report.save_pictures", broken)
    source, state, out = rows_at(tmp_path / "d.csv"), tmp_path / "state", tmp_path / "o.csv"
    words = ["replay", source, "--state", state, "--out", out, "--plots", tmp_path / "plots"]
    assert run([str(word) for word in words]) == 0
    assert "calibrant: --plots was left out: no such glyph\n" in capsys.readouterr().err
    assert issued(state) == 30
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "o.csv", "state"]


def test_no_room_for_a_report_does_not_cost_a_filter_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("calibrant.report.write", full)
    source, state = rows_at(tmp_path / "d.csv"), tmp_path / "state"
    words = ["replay", source, "--out", "-", "--flush", "--state", state, "--report"]
    assert run([*map(str, words), str(tmp_path / "r.html")]) == 0
    assert issued(state) == 30
    assert not (tmp_path / "r.html").exists()


# ------------------------------------------------------------------ locks and drafts


def test_two_runs_on_one_state_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, state = rows_at(tmp_path / "d.csv"), tmp_path / "state"
    process = started(*FILTER, state)
    answered(process, 1)
    assert run(["replay", str(source), "--state", str(state)]) == ExitCode.OUTPUT
    told = f"calibrant: {state}: is in use by another run; wait until it ends\n"
    assert capsys.readouterr().err == told
    process.kill()
    process.communicate()
    assert run(["replay", str(source), "--state", str(state)]) == 0
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "state"]


def test_a_lock_that_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, found = tmp_path / "state", drafts._locks
    seen: list[int] = []

    def removed(held: int) -> bool:
        seen.append(held)
        if len(seen) == 1:
            (tmp_path / ".state.lock").unlink()
        return found(held)

    monkeypatch.setattr(drafts, "_locks", removed)
    with locked(str(name)):
        assert len(seen) == 2
        with pytest.raises(Unwritable), locked(str(name)):
            pass


def test_without_locks_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "_fcntl", None)
    with locked(str(tmp_path / "state")), locked(str(tmp_path / "state")), Drafts() as made:
        made.reserve(str(tmp_path / "state")).write_text("x")
        made.commit()
    assert os.listdir(tmp_path) == ["state"]


def test_drafts_of_crashed_runs_are_removed_and_those_of_others_kept(tmp_path: Path) -> None:
    old = time.time() - 2 * LEFT_BEHIND
    names = [".o.csv.0123456789ab.part", ".o.csv.ba9876543210.part", ".o.csv.mine.part"]
    crashed, fresh, other = (tmp_path / name for name in names)
    for path in (crashed, fresh, other):
        path.write_text("half")
    os.utime(crashed, (old, old))
    with Drafts() as busy:
        held = busy.reserve(str(tmp_path / "o.csv"))
        os.utime(held, (old, old))
        with Drafts() as made:
            made.reserve(str(tmp_path / "o.csv"))
            assert {path.name for path in (held, fresh, other)} <= set(os.listdir(tmp_path))
            assert not crashed.exists()


def test_files_reach_the_disk_before_they_are_renamed_and_their_names_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    put, sync = os.replace, os.fsync

    def noted(held: int) -> None:
        seen.append("names" if os.path.isdir(os.readlink(f"/proc/self/fd/{held}")) else "file")
        sync(held)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *pair: (seen.append("rename"), put(*pair)))
    with Drafts() as made:
        made.reserve(str(tmp_path / "o.csv")).write_text("rows")
        made.commit()
    assert seen == ["file", "rename", "names"]


# ------------------------------------------------------------------------ odd inputs


@pytest.mark.parametrize("flush", [(), ("--flush",)])
@pytest.mark.parametrize("start", ['0.4,0,"bc', '"0.4,0,bc'])
def test_an_input_that_ends_inside_quotes_has_a_bad_last_row(
    tmp_path: Path, flush: tuple[str, ...], start: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = tmp_path / "d.csv"
    source.write_text(f'p,y,n\n0.5,1,"a"\n{start}\n0.3,1,d\n0.2,0,e\n')
    words = ["replay", str(source), "--out", "-", *flush]
    assert run(words) == ExitCode.ROW
    told = f"{source}: row 2: row must end its quotes, got the end of the input"
    told = f"{told}; --on-error skip leaves such rows out"
    assert f"calibrant: {told}" in capfdbinary.readouterr().err.decode().splitlines()
    aside = tmp_path / "bad.csv"
    assert run([*words, "--on-error", f"quarantine={aside}"]) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 2
    content = aside.read_text()
    assert "row must end its quotes, got the end of the input" in content
    assert "0.2,0,e" in content
    assert "\0" not in content


@pytest.mark.parametrize("flush", [(), ("--flush",)])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
def test_an_input_that_ends_anywhere_else_is_whole(
    tmp_path: Path, flush: tuple[str, ...], end: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = tmp_path / "d.csv"
    source.write_bytes(f'p,y,n\n0.5,1,5" disk\n0.4,0,"b ""c"""{end}'.encode())
    assert run(["replay", str(source), "--out", "-", *flush]) == 0
    out = capfdbinary.readouterr().out
    assert out.count(b"\n") == 3
    assert b"\0" not in out


def test_rows_that_are_all_misfits_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "d.csv"
    source.write_text("p,y\n1\n2\n")
    assert run(["replay", str(source), "--on-error", "skip"]) == ExitCode.INPUT
    assert "2 of 2 rows refused: row must be 2 fields, got 1" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["s", "ms", "us", "date32", "date64"])
@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.parquet"])
def test_dates_far_away_are_dates(tmp_path: Path, kind: str, name: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    far = {"s": 10**15, "ms": 10**17, "us": 2**62, "date32": 2 * 10**9, "date64": 86_400_000 << 30}
    stamps = pa.array(
        [0, far[kind], None, far[kind]], pa.int32() if kind == "date32" else pa.int64()
    )
    of = getattr(pa, kind)() if kind.startswith("date") else pa.timestamp(kind)
    source, aside = tmp_path / "d.parquet", tmp_path / "bad.csv"
    table = {"p": [0.5] * 4, "y": [1, 0, 1, 1], "t": stamps.cast(of)}
    pq.write_table(pa.table(table | {"p": [0.5, 0.5, 0.5, 2.0]}), source)
    words = ["replay", source, "--time", "t", "--on-error", f"quarantine={aside}", "--out"]
    assert run([*map(str, words), str(tmp_path / name)]) == 0
    assert [line.split(",")[1:3] for line in aside.read_text().splitlines()[1:]] == [
        ["3", "t"],
        ["4", "p"],
    ]


def test_times_are_seconds_whatever_they_are_counted_in() -> None:
    pa = pytest.importorskip("pyarrow")
    from calibrant.stream.values import times

    counts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    for unit, count in counts.items():
        stamps = pa.array([86_400 * count, -count, None], pa.int64()).cast(pa.timestamp(unit))
        assert times(stamps).values.tolist()[:2] == [86_400.0, -1.0]
        assert times(stamps).missing.tolist() == [False, False, True]
    assert times(pa.array(["2300-01-01"])).values.tolist() == [10_413_792_000.0]
    assert times(pa.array([1], pa.int32()).cast(pa.date32())).values.tolist() == [86_400.0]


def test_what_is_nested_too_deep_is_a_bad_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, deep = tmp_path / "d.jsonl", "[" * 100_000 + "]" * 100_000
    source.write_text(f'{{"p":0.5,"y":1,"x":{deep}}}\n' + '{"p":0.5,"y":0}\n' * 2)
    assert run(["replay", str(source)]) == ExitCode.ROW
    told = capsys.readouterr().err
    assert f"calibrant: {source}: row 1: line must be a JSON object, got" in told
    assert len(told) < 300
    assert run(["replay", str(source), "--on-error", "skip"]) == 0
    (tmp_path / "s.json").write_text(deep)
    assert run(["report", str(tmp_path / "s.json")]) == ExitCode.STATE


@pytest.mark.parametrize("flush", [(), ("--flush",)])
@pytest.mark.parametrize("start", ["", "p,y,n\n0.5,1,", '{"p":0.5,"y":1}\n{"n":"'])
def test_a_line_without_end_is_refused(
    tmp_path: Path, flush: tuple[str, ...], start: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("calibrant.stream.readers.LONGEST_LINE", 1000)
    source = tmp_path / "d"
    source.write_text(start + "x" * 300_000)
    words = ["replay", str(source), "--out", "-", "--batch-rows", "10", *flush]
    assert run(words) == ExitCode.INPUT
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith(f"calibrant: {source}: ") for line in told)
    if flush or not start.startswith("p"):
        assert any("a line must be at most 1,000 bytes, got a longer one" in line for line in told)


# ------------------------------------------------------------------------- checkpoints


def test_a_killed_filter_loses_nothing_that_was_answered_before_its_last_checkpoint(
    tmp_path: Path,
) -> None:
    state, ran = tmp_path / "state", 0
    for rows in (3, 5):
        process = started(*FILTER, state, "--checkpoint", 0)
        answered(process, rows)
        # A row is answered, then kept: the last one may be on its way.
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert ran + rows - 1 <= issued(state) <= ran + rows
        ran = issued(state)
        assert state.stat().st_mode & 0o777 == 0o600
    assert sum(".part" in name for name in os.listdir(tmp_path)) <= 4
    process = started(*FILTER, state)
    answered(process, 1)
    process.communicate()
    assert process.returncode == 0
    assert issued(state) == ran + 1
    assert not [name for name in os.listdir(tmp_path) if ".part" in name]


def test_between_checkpoints_nothing_is_written(tmp_path: Path) -> None:
    process = started(*FILTER, tmp_path / "state", "--checkpoint", 1e6)
    answered(process, 4)
    process.kill()
    process.communicate()
    assert not (tmp_path / "state").exists()


def test_a_checkpoint_is_what_the_end_would_have_written_but_for_the_file_it_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    keep = drafts.replace_file

    def keeping(name: str, content: bytes) -> None:
        keep(name, content)
        kept.append(Path(name).read_bytes())

    monkeypatch.setattr("calibrant.cli.replay.replace_file", keeping)
    rows = tmp_path / "rows.csv"
    rows.write_text("p,y\n0.5,1\n2,1\n0.25,0\n")
    state = tmp_path / "state"
    words = ["replay", rows, "--out", "-", "--flush", "--checkpoint", 0, "--on-error", "skip"]
    assert run([*map(str, words), "--seed", "1", "--state", str(state)]) == 0
    last, ended = session.load(kept[-1]), session.load(state.read_bytes())
    assert (len(last.inputs), len(ended.inputs)) == (0, 1)
    last.inputs = ended.inputs
    assert session.dump(last) == state.read_bytes()
    assert len(kept) == 3


def test_a_checkpoint_leaves_a_device_alone() -> None:
    drafts.replace_file(os.devnull, b"state")


def test_a_checkpoint_that_cannot_be_written_leaves_no_draft(tmp_path: Path) -> None:
    with pytest.raises(Unwritable):
        drafts.replace_file(str(tmp_path / "nowhere" / "state"), b"state")
    with pytest.raises(Unwritable):
        drafts.replace_file(str(tmp_path), b"state")
    assert os.listdir(tmp_path) == []


# -------------------------------------------------------------------------- sealed states


def test_a_sealed_state_is_taken_up_with_its_key_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, state, key, other = (tmp_path / name for name in ("rows.csv", "state", "key", "other"))
    rows_at(rows)
    key.write_bytes(b"a key of sixteen bytes or more\n")
    other.write_bytes(b"another key of sixteen bytes\n")
    words = ["replay", str(rows), "--seed", "1", "--state", str(state)]
    sealing = ["--authenticate-file", str(key)]
    assert run([*words, *sealing]) == 0
    assert run([*words, *sealing, "--again"]) == 0
    for refused in ([], ["--authenticate-file", str(other)]):
        assert run([*words, *refused]) == ExitCode.STATE
    assert issued_with(state, key) == 60
    state.unlink()
    assert run(words) == 0
    assert run([*words, *sealing]) == ExitCode.STATE
    assert run([*words[:4], *sealing]) == ExitCode.USAGE
    assert run([*words, "--authenticate-file", str(tmp_path / "none")]) == ExitCode.INPUT
    capsys.readouterr()


def issued_with(state: Path, key: Path) -> int:
    found = session.read(str(state), key=session.key_of(str(key)))
    assert found is not None
    return int(found.recalibrator.issued)
