"""The secret of the draws beside the state: from a file, or from the environment."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.recalibrate.secret import secret_of
from calibrant.stream import Options, session
from calibrant.stream.session import VARIABLE

SECRET = b"0123456789abcdef0123456789abcdef"
KINDS: dict[str, tuple[str, str, list[str]]] = {
    "binary": ("raw,outcome", "0.8,1\n0.3,0\n", []),
    "algorithm 1": ("raw,outcome", "0.8,1\n0.3,0\n", ["--method", "foster_hart"]),
    "epsilon": ("raw,outcome", "0.8,1\n0.3,0\n", ["--method", "foster_hart", "--epsilon", "0.2"]),
    "groups": ("raw,outcome,side", "0.8,1,n\n0.3,0,s\n", ["--group", "side"]),
    "classes": ("a,b,c,outcome", "0.5,0.3,0.2,a\n0.1,0.6,0.3,c\n", ["--proba", "a,b,c"]),
    "many": (
        "a,b,c,d,e,outcome",
        "0.5,0.2,0.1,0.1,0.1,a\n0.1,0.6,0.1,0.1,0.1,c\n",
        ["--proba", "a,b,c,d,e"],
    ),
    "numbers": ("m,s,outcome", "1,1,0.3\n2,1,4\n", ["--normal", "m,s"]),
}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    return file


def source(tmp_path: Path, kind: str) -> list[str]:
    """Write rows of a kind; return how they are replayed."""
    head, rows, words = KINDS[kind]
    file = tmp_path / "rows.csv"
    file.write_text(f"{head}\n{rows * 60}")
    return ["replay", str(file), *words]


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_goes_on_with_the_secret_that_it_does_not_hold(
    tmp_path: Path, kept: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*source(tmp_path, kind), "--secret-file", kept]
    state, one, two = tmp_path / "state", tmp_path / "1.csv", tmp_path / "2.csv"
    assert ran(*words, "--out", one) == 0
    assert ran(*words, "--state", state, "--out", two) == 0
    assert one.read_text() == two.read_text()
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    for secret in (SECRET, secret_of(None, None, SECRET)):
        assert secret not in state.read_bytes()
    assert ran(*words, "--state", state, "--again") == 0
    found = session.load(state.read_bytes(), SECRET)
    assert found.recalibrator.issued == 240
    assert found.recalibrator.secret_is_given
    capsys.readouterr()
    assert ran(*source(tmp_path, kind), "--state", state) == ExitCode.USAGE
    told = "secret must be given, for this state was stored without it, got None"
    assert capsys.readouterr().err == f"calibrant: {state}: {told}\n"


def test_the_environment_may_hold_the_secret(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, state = source(tmp_path, "binary"), tmp_path / "state"
    monkeypatch.setenv(VARIABLE, SECRET.decode())
    assert ran(*words, "--state", state) == 0
    monkeypatch.delenv(VARIABLE)
    assert ran(*words, "--state", state, "--secret-file", kept, "--again") == 0
    monkeypatch.setenv(VARIABLE, "another of sixteen bytes or more")
    capsys.readouterr()
    assert ran(*words, "--state", state) == ExitCode.USAGE
    told = "secret and key must be those that the state was made with, got others"
    assert capsys.readouterr().err == f"calibrant: {state}: {told}\n"


def test_a_secret_must_be_there_and_long_enough_and_alone(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, short, none = source(tmp_path, "binary"), tmp_path / "short", tmp_path / "none"
    short.write_text("short\n")
    capsys.readouterr()
    for told, error, code in (
        (["--secret-file", short], "secret must be at least 16 bytes long, got 5", ExitCode.USAGE),
        (
            ["--secret-file", kept, "--seed", 7],
            "seed must be left out where a secret is given, got 7",
            ExitCode.USAGE,
        ),
        (
            ["--secret-file", none],
            f"{none}: cannot be read: No such file or directory",
            ExitCode.INPUT,
        ),
    ):
        assert ran(*words, *told) == code
        assert capsys.readouterr().err.splitlines()[-1] == f"calibrant: {error}"


def test_a_state_that_holds_its_secret_takes_no_other(
    tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, state = source(tmp_path, "binary"), tmp_path / "state"
    assert ran(*words, "--state", state) == 0
    before = state.read_bytes()
    capsys.readouterr()
    assert ran(*words, "--state", state, "--secret-file", kept) == ExitCode.USAGE
    told = "secret must be left out for a state that holds its own, got one"
    assert capsys.readouterr().err == f"calibrant: {state}: {told}\n"
    assert state.read_bytes() == before


def test_options_do_not_show_the_secret() -> None:
    assert "0123" not in repr(Options(secret=SECRET))
