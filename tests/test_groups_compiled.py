"""Group kernels give the same bits plain and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant.groups import GroupRecalibrator, TimeIntervals
from calibrant.groups import grouped as module
from calibrant.kernels import groups
from calibrant.kernels.compile import available
from calibrant.kernels.groups import AVERAGE, EXPONENTIAL, GroupProgram
from calibrant.kernels.layout import ISSUED, ROUNDS

PROGRAMS = pytest.mark.parametrize("program", [AVERAGE, EXPONENTIAL], ids=lambda p: p.name)


def make(program: GroupProgram, **options: object) -> GroupRecalibrator:
    form = "l2" if program is AVERAGE else "exponential"
    return GroupRecalibrator(form=form, resolution=10, buckets=5, seed=3, **options)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler")
@PROGRAMS
def test_plain_and_compiled_batches_end_in_one_state(
    program: GroupProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    raw, outcomes = rng.random(800), rng.random(800) < 0.4
    names = [[k for k in range(8) if rng.random() < 0.3] for _ in range(800)]
    made = []
    for short in (10**9, 0):
        monkeypatch.setattr(module, "SHORT", short)
        program.__dict__.pop("machine", None)
        rec = make(program, groups=TimeIntervals(32))
        run = rec.replay(raw, outcomes, groups=names)
        assert ("machine" in program.__dict__) == (short == 0)
        made.append((rec, run.forecast.tolist(), run.mean.tolist()))
    assert made[0] == made[1]


@PROGRAMS
def test_long_batches_are_compiled_and_short_ones_once_that_is_done(
    program: GroupProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def stand_in(words: Any, reals: Any, row: int, raw: Any, *columns: Any) -> None:
        assert [column.dtype.kind for column in columns] == list("uiiff")
        words[row + ISSUED] += len(raw)
        words[row + ROUNDS] += len(raw)
        seen.append(len(raw))

    monkeypatch.setattr(groups, "available", lambda: True)
    monkeypatch.setattr(groups, "compiled", lambda function, name, nogil: stand_in)
    monkeypatch.setattr(module, "SHORT", 10)
    monkeypatch.setitem(program.__dict__, "machine", None)
    del program.__dict__["machine"]
    raw, outcomes = np.linspace(0, 1, 50), np.arange(50) % 2
    rec = make(program)
    rec.replay(raw[:10], outcomes[:10], groups=outcomes[:10])
    assert (seen, "machine" in program.__dict__) == ([], False)
    rec.replay(raw, outcomes, groups=outcomes)
    rec.replay(raw[:10], outcomes[:10], groups=outcomes[:10])
    assert seen == [50, 10]
    assert rec.rounds == 70


def test_without_a_compiler_there_is_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "available", lambda: False)
    fresh = GroupProgram("fresh", AVERAGE.rule, AVERAGE.replay)
    assert fresh.machine is None
