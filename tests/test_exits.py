"""Commands that must end with an error do: with their own code, and none is aborted."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import exits
from calibrant.cli import ExitCode

pytestmark = pytest.mark.once

STORED = Path(exits.__file__).with_suffix(".txt")
ABORTED = "code 134"


def test_all_of_500_error_exits_ended_with_the_documented_code() -> None:
    assert Counter(STORED.read_text().splitlines()) == {exits.EXPECTED: 500}


def test_the_expected_code_is_that_of_a_bad_row() -> None:
    assert f"code {ExitCode.ROW.value}" == exits.EXPECTED


def test_a_stored_run_is_counted_and_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "ends.txt"
    kept.write_text(f"{exits.EXPECTED}\n" * 3)
    assert exits.main(["3", "--keep", str(kept)]) == 0
    kept.write_text(f"{exits.EXPECTED}\n{ABORTED}\n{exits.EXPECTED}\n")
    assert exits.main(["3", "--keep", str(kept)]) == 1
    assert f"1 of 3 ended with {ABORTED}" in capsys.readouterr().out


def test_an_aborted_command_is_told_by_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exits, "COMMAND", (sys.executable, "-c", "import os; os.abort()"))
    (tmp_path / next(iter(exits.FILES))).write_text("")
    assert exits.end(tmp_path, 0).startswith(ABORTED)


@pytest.mark.slow
def test_commands_end_with_their_code_today() -> None:
    assert exits.main(["10"]) == 0
