"""Real streams by group: what recalibration does to the error of each, and what delay costs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmarks_groups", ROOT / "benchmarks" / "groups.py"
    )
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    # Annotations of its dataclasses are looked up there.
    sys.modules["benchmarks_groups"] = made
    spec.loader.exec_module(made)
    return made


bench = load()


@pytest.mark.parametrize("column", ["mturkpredprobs", "compaspredprobs.linear"])
def test_no_large_group_is_left_as_far_off_as_it_was(column: str) -> None:
    stream = bench.recidivism(column=column)
    before = bench.measured(stream, stream.raw)
    runs = [bench.measured(stream, bench.recalibrated(stream, seed)) for seed in range(5)]
    assert len(before) == 9
    for name, error in before.items():
        assert np.mean([run[name] for run in runs]) < error


def test_with_prompt_outcomes_every_horizon_and_industry_is_mended() -> None:
    stream = bench.survey(late=False)
    before, after = (bench.measured(stream, f) for f in (stream.raw, bench.recalibrated(stream, 0)))
    assert {f"horizon={k}" for k in range(5)} < set(before)
    assert all(after[name] < error / 2 for name, error in before.items())


def test_with_true_delays_the_survey_as_a_whole_is_not_made_worse() -> None:
    stream = bench.survey()
    assert all(known > issued for known, issued in zip(stream.known, stream.issued, strict=True))
    drawn = bench.recalibrated(stream, 0)
    before, after = bench.measured(stream, stream.raw), bench.measured(stream, drawn)
    assert after["all"] < before["all"]
    industries = [name for name in before if name.startswith("industry=") and "N/A" not in name]
    assert len(industries) == 3
    assert all(after[name] < before[name] for name in industries)
