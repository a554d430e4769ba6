"""States of numbers that the first version wrote: refused where they make no sense."""

from __future__ import annotations

import dataclasses
import json
import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.kernels.layout import SCALE
from calibrant.recalibrate.version1 import FIRST, HEAD, TAIL
from calibrant.regression import ConformalInterval, QuantileRecalibrator
from calibrant.regression.pit import CENTRE, LevelCalibrator, LevelSpec, write_first

pytestmark = pytest.mark.base

STATES = Path(__file__).parent / "golden" / "states" / "v1"
VERSIONS = {"interval": 4, "level": 4, "quantiles": 6}
KINDS = {
    "interval_aci": ConformalInterval,
    "interval_saocp": ConformalInterval,
    "quantiles_tracker": QuantileRecalibrator,
    "quantiles_pit_below": QuantileRecalibrator,
    "level_calibrator": LevelCalibrator,
}


def document_of(name: str) -> Document:
    text = json.loads((STATES / f"{name}.json").read_text())["bytes"]
    return Document.from_bytes(zlib.decompress(b64decode(text)), KINDS[name].kind, 2)


def read(name, settings=None, **arrays):
    found = document_of(name)
    told = found.settings | (settings or {}), found.arrays | arrays
    return KINDS[name].from_bytes(Document(found.kind, *told, 1).to_bytes())


@pytest.mark.parametrize("name", KINDS)
def test_a_state_of_the_first_version_is_written_as_the_present_one(name) -> None:
    rec = read(name)
    assert rec._document().version == rec.version == VERSIONS[name.split("_")[0]]
    assert KINDS[name].from_bytes(rec.to_bytes()) == rec


@pytest.mark.parametrize("name", ["interval_aci", "interval_saocp"])
def test_intervals_of_another_size_are_refused(name) -> None:
    state = document_of(name).arrays["state"]
    with pytest.raises(CorruptState, match="a state that is not of "):
        read(name, state=np.append(state, 0))


@pytest.mark.parametrize("change", [{"step": 0.1}, {"coverage": 0.9}])
def test_intervals_with_other_settings_are_refused(change) -> None:
    own = document_of("interval_aci").settings["own"]
    with pytest.raises(CorruptState, match="a state of aci with other settings"):
        read("interval_aci", {"own": own | change})


def test_marks_of_other_levels_are_refused() -> None:
    marks = document_of("quantiles_tracker").arrays["marks"]
    moved = marks.copy()
    moved[0] += 1
    for bad in (marks[:-1], moved):
        with pytest.raises(CorruptState, match="marks that are not of 3 levels"):
            read("quantiles_tracker", marks=bad)


def test_calibrators_of_other_levels_are_refused() -> None:
    own = document_of("quantiles_pit_below").settings["own"]
    engines = own["state"]["engines"]
    with pytest.raises(CorruptState, match="levels other than 1"):
        read("quantiles_pit_below", hits=np.zeros(2, np.int64))
    with pytest.raises(CorruptState, match="levels other than 1"):
        read("quantiles_pit_below", {"own": own | {"state": {"engines": engines[:-1]}}})
    turned = [engines[1], engines[0], *engines[2:]]
    with pytest.raises(CorruptState, match="another's calibrator at level 0"):
        read("quantiles_pit_below", {"own": own | {"state": {"engines": turned}}})


def test_a_level_has_one_bucket() -> None:
    with pytest.raises(CorruptState, match=r"buckets \[1\] of one"):
        read("level_calibrator", touched=np.array([1], np.int64))


@pytest.mark.parametrize("method", ["foster_hart", "running_mean"])
def test_gaps_and_totals_of_a_level_are_taken_to_the_common_denominator(method) -> None:
    rec = LevelCalibrator(0.3, method, resolution=4, seed=1)
    for k in range(20):
        rec.learn_one(0.3, k % 3 == 0)
    alone = rec._spec
    shared = dataclasses.replace(alone, divisor=CENTRE)
    new, row = shared.layout.fresh.copy(), rec._rows.arena.row()
    write_first(new, shared, np.zeros(1, np.int64), old_block(alone, row))
    factor = int(shared.layout.shared[SCALE]) // int(alone.layout.shared[SCALE])
    assert factor > 1
    one, other = alone.layout.blocks_of(row), shared.layout.blocks_of(new)
    gaps = (alone.rule.cells_of(block)[..., 0] for block in (one, other))
    assert (next(gaps) * factor == next(gaps)).all()
    names = [field.name for field in alone.rule.kernels.head.fields]
    for place, name in enumerate(names):
        if name in HEAD:
            assert other[0, place] == one[0, place] * (factor if name == "TOTAL" else 1)


def old_block(spec: LevelSpec, row: np.ndarray) -> np.ndarray:
    """The only block of a row as the first version stored it."""
    [block], kernels = spec.layout.blocks_of(row), spec.rule.kernels
    cells = block[len(kernels.head) :]
    old = np.zeros(FIRST + len(cells) + TAIL, np.int64)
    for place, field in enumerate(kernels.head.fields):
        if field.name in HEAD:
            old[HEAD[field.name]] = block[place]
    old[FIRST : FIRST + len(cells)] = cells
    return old
