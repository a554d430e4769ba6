"""Other libraries beside ours: what the page quotes is what was stored, and runs go on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.peers import __main__ as command
from benchmarks.peers import inside

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent


def kept() -> list[dict[str, str]]:
    """The rows that are stored, by the heads of their columns."""
    (found,) = json.loads((ROOT / "docs" / "results" / "peers.json").read_text())["tables"]
    return [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]


def test_the_stored_run_has_every_stream() -> None:
    assert {row["stream"] for row in kept()} == set(command.STREAMS)


def test_every_peer_was_run_in_the_version_that_is_pinned() -> None:
    told = {row["method"].strip("`"): row["version"].replace(" ", "==") for row in kept()}
    for name, (package, _) in inside.PEERS.items():
        assert told[name] in command.PINS[package].split(), name


def test_what_is_fitted_now_and_then_never_sees_what_is_to_come() -> None:
    seen = []

    def fit(raw: Any, outcomes: Any) -> Any:
        seen.append(len(raw))
        return lambda part: np.full(len(part), float(len(raw)))

    raw = np.full(2500, 0.25)
    said = inside.refitted(fit)(raw, raw)
    assert seen == [200, 1000, 2000, 2500]
    assert said[[0, 199, 200, 999, 1000, 2499]].tolist() == [0.25, 0.25, 200, 200, 1000, 2000]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stream = type("Stream", (), {"raw": np.full(50, 0.5), "outcomes": np.arange(50) % 2})
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "STREAMS", {"a stream": stream})
    monkeypatch.setattr(command, "PEERS", {"works": ("some", None), "cannot": ("other", None)})
    there = {"some": sys.executable, "other": None}
    monkeypatch.setattr(command, "environment", there.__getitem__)
    return tmp_path


def test_a_run_goes_on_where_it_stopped(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.main(["--rounds", "20"]) == 2
    assert "works failed: KeyError: 'works'" in capsys.readouterr().err
    told = {"brier": 0.5, "seconds": 1.0, "version": "some 1"}
    (place / "a-stream-20-works.json").write_text(json.dumps(told))
    assert command.main(["--rounds", "20"]) == 1
    shown = capsys.readouterr()
    assert "calibrant on a-stream" not in shown.err
    assert "| a stream | `works` | 0.5000 | " in shown.out
    assert "| a stream | `raw` | 0.2500 | " in shown.out
    assert peers.__doc__
