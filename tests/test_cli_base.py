"""The command line of the bare install: it says what to install."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from calibrant.cli import NEEDED, ExitCode, main

pytestmark = pytest.mark.base


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(name: str, *rest: Any) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    assert main() == ExitCode.MISSING_EXTRA == 7
    assert capsys.readouterr().err == (
        f"calibrant: the command line needs {', '.join(NEEDED)}, not installed here: "
        'pip install ".[cli]" in a clone of calibrant\n'
    )


def test_the_exit_codes_are_told_apart() -> None:
    assert len({code.value for code in ExitCode}) == len(ExitCode)
    assert all(code.meaning for code in ExitCode)


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_interrupt_while_modules_are_loaded_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrapped: bool
) -> None:
    def loading() -> int:
        if not wrapped:
            raise KeyboardInterrupt
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "calibrant.cli.app", SimpleNamespace(run=loading))
    monkeypatch.setattr("os._exit", lambda code: None)
    assert main() == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "calibrant: interrupted\n"


def test_an_error_while_modules_are_loaded_is_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def loading() -> int:
        raise RuntimeError("broken") from ValueError()

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "calibrant.cli.app", SimpleNamespace(run=loading))
    with pytest.raises(RuntimeError, match="broken"):
        main()


@pytest.mark.parametrize("code", [ExitCode.INTERRUPTED, ExitCode.TERMINATED])
def test_after_a_signal_the_command_ends_at_once(
    monkeypatch: pytest.MonkeyPatch, code: ExitCode
) -> None:
    def interrupted() -> int:
        if code == ExitCode.TERMINATED:
            raise SystemExit(code)
        return code

    ended: list[int] = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "calibrant.cli.app", SimpleNamespace(run=interrupted))
    monkeypatch.setattr("os._exit", ended.append)
    assert main() == code
    assert ended == [code]
