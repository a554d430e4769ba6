"""The attacks are tried, a few times each, and none of them does damage."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("scipy", reason="needs the extra classes")

from benchmarks.attack import __main__ as program
from benchmarks.attack.registry import ATTACKS, Entry

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parent.parent
quiet = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@quiet
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
@pytest.mark.parametrize("entry", ATTACKS, ids=lambda entry: entry.name)
def test_an_attack_does_no_damage(entry: Entry) -> None:
    assert program.attacked(entry, quick=True, seed=1) == (entry.quick, 0)


def test_damage_is_told_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(tries: int, rng: random.Random) -> int:
        return tries // 2

    monkeypatch.setattr(program, "ATTACKS", [Entry("half", "half of them", 4_000, 10, half)])
    assert program.main([]) == 1
    assert "| half | 4,000 | 2,000 | half of them |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        program.main(["nobody"])


def test_the_page_lists_every_attack() -> None:
    page = (ROOT / "docs" / "attacks.md").read_text()
    for entry in ATTACKS:
        tries = f"({entry.quick:,}|{entry.tries:,})"
        told = rf"\| {entry.name} \| {tries} \| 0 \| {re.escape(entry.damage)} \|"
        assert re.search(told, page), entry.name
