"""Whoever writes a state by hand, digest and all, can neither crash nor hang the process."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import crafted
import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, load
from calibrant.classes import OneVsRest, SimplexRecalibrator
from calibrant.core.codec import Document, bound_bytes
from calibrant.errors import CorruptState, InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.kernels import intervals
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import LOGS
from calibrant.kernels.layout import CLOCK, REAL
from calibrant.kernels.transforms import window
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator
from calibrant.regression.method import OWN
from calibrant.transforms import (
    BucketHedge,
    BucketMeans,
    Chain,
    ExpertMixture,
    WindowedIsotonic,
)

ATTEMPTS = int(os.environ.get("CALIBRANT_CRAFTED", "8"))
"""Crafted states of each golden one; set the variable to look for more."""
COMPILED = ("v3/recalibrator_anchored", "v3/calibrant_raw_safe", "v2/interval_pid")


@pytest.mark.plain
@pytest.mark.parametrize(
    "path", crafted.files(), ids=lambda path: f"{path.parent.name} {path.stem}"
)
def test_whatever_loads_can_be_played(path: Path) -> None:
    if '"needs":' in path.read_text():
        pytest.importorskip("scipy")
    told = [wrong for _, wrong in crafted.attempts(path, ATTEMPTS) if wrong]
    assert not told, told[0]


@pytest.mark.plain
@pytest.mark.parametrize("way", ["settings", "nested"])
@pytest.mark.parametrize(
    "path", crafted.files(), ids=lambda path: f"{path.parent.name} {path.stem}"
)
def test_whatever_loads_with_other_settings_can_be_played(
    path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if '"needs":' in path.read_text():
        pytest.importorskip("scipy")
    monkeypatch.setenv("CALIBRANT_MOST_BYTES", str(1 << 22))
    found = list(crafted.attempts(path, max(ATTEMPTS // 4, 1), way=way))
    told = [wrong for _, wrong in found if wrong]
    assert not told, told[0]


@pytest.mark.slow
def test_compiled_code_reads_nothing_out_of_bounds(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    own = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "CALIBRANT_COMPILE": "on"}
    program = [sys.executable, crafted.__file__, str(4 * ATTEMPTS), *COMPILED]
    done = subprocess.run(
        program, env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def forged(model: Recalibrator, words: dict[int, float | int]) -> bytes:
    """Return the state of a model with some words of its row altered."""
    row = model._arena.row()
    for place, value in words.items():
        (row.view(np.float64) if isinstance(value, float) else row)[place] = value
    arrays = model._document().arrays | {"body": model.spec.body.packed(row)}
    return Document(model.kind, model._stored()[0], arrays, model.version).to_bytes()


@pytest.mark.base
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2 * REAL[1]])
def test_reals_must_be_numbers_within_their_limits(value: float) -> None:
    model = Recalibrator("anchored", resolution=3, buckets=1, seed=1)
    body = model.spec.body
    for place in body.places[body.real].tolist():
        with pytest.raises(CorruptState, match=rf"word {place} must be from .*, got "):
            Recalibrator.from_bytes(forged(model, {place: value}))


@pytest.mark.base
@pytest.mark.parametrize(("word", "value"), [(2, 1.5), (2, -1.5), (3, -2.0)])
def test_coordinates_that_no_round_leaves_are_refused(word: int, value: float) -> None:
    model = Recalibrator("blackwell", resolution=3, buckets=1, seed=1)
    first = model._arena.layout.blocks + len(model.calibrator.kernels.head)
    with pytest.raises(CorruptState, match=rf"word {first + word} must be from .*, got {value}"):
        Recalibrator.from_bytes(forged(model, {first + word: value}))


@pytest.mark.base
@pytest.mark.parametrize("gap", [1, -1, 1 << 61])
def test_a_cell_without_visits_has_no_gap(gap: int) -> None:
    model = Recalibrator(resolution=3, buckets=1, prior=0, seed=1)
    first = model._arena.layout.blocks + len(model.calibrator.kernels.head)
    with pytest.raises(CorruptState, match="gaps that 0 visits cannot leave"):
        Recalibrator.from_bytes(forged(model, {first: gap}))


@pytest.mark.base
def test_a_transform_that_says_no_probability_is_passed_over() -> None:
    model = Calibrant(WindowedIsotonic(window=2, every=99), resolution=3, seed=1)
    start = model._arena.layout.transform
    heights = start + window.CURVE_ROUNDS + 3 * 2
    state = forged(model, {start + window.KNOTS: 1, heights: -5.0})
    again, other = Calibrant.from_bytes(state), Calibrant.from_bytes(state)
    ticket = again.forecast(0.25)
    assert ticket.mixed == 0.25
    assert other.replay([0.25], [1]).forecast.tolist() == [ticket.value]


@pytest.mark.base
def test_a_few_settings_cannot_ask_for_any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Recalibrator(resolution=3, buckets=2, seed=1)._document()
    large = stored.settings | {"buckets": 1 << 20}
    large["parameters"] = large["parameters"] | {"resolution": 1000}
    asked = Document(stored.kind, large, stored.arrays, stored.version).to_bytes()
    with pytest.raises(CorruptState, match=r"row must take at most 268435456 bytes .*, got \d+"):
        Recalibrator.from_bytes(asked)
    monkeypatch.setenv("CALIBRANT_MOST_BYTES", "1000")
    with pytest.raises(InvalidInput, match="row must take at most 1000 bytes"):
        Recalibrator(resolution=77, buckets=19, seed=1)


@pytest.mark.base
@pytest.mark.parametrize(
    "make",
    [
        lambda: Calibrant(BucketHedge(buckets=1 << 16, resolution=1 << 12), seed=1),
        lambda: Calibrant(
            ExpertMixture([WindowedIsotonic(window=1 << 20, every=k) for k in range(1, 12)]),
            seed=1,
        ),
        lambda: Calibrant(
            Chain(WindowedIsotonic(window=1 << 20), WindowedIsotonic(window=1 << 20)), seed=1
        ),
        lambda: OneVsRest(classes=5000, seed=1),
        lambda: Calibrant(BucketMeans(buckets=1 << 16), seed=1),
    ],
)
def test_what_asks_for_much_memory_is_refused_before_it_is_made(
    make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALIBRANT_MOST_BYTES", "1000000")
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="row must take at most 1000000 bytes"):
            make()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.base
def test_parts_that_may_be_are_refused_if_their_sum_may_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows = [WindowedIsotonic(window=1000, every=k) for k in (1, 2, 3)]
    monkeypatch.setenv("CALIBRANT_MOST_BYTES", "100000")
    Calibrant(windows[0], seed=1)
    for made in (Chain(*windows[:2]), ExpertMixture(windows)):
        with pytest.raises(InvalidInput, match="row must take at most 100000 bytes"):
            Calibrant(made, seed=1)


@pytest.mark.base
def test_settings_that_are_nested_too_deep_are_damage() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    shape = f'{{"arrays": [], "kind": "recalibrator", "settings": {{"a": {deep}}}, "version": 2}}'
    with pytest.raises(CorruptState, match="state must be what"):
        Recalibrator.from_bytes(bound_bytes(shape.encode(), {}))


def test_grids_over_many_classes_are_refused_before_they_are_made() -> None:
    pytest.importorskip("scipy")
    with pytest.raises(InvalidInput, match="row must take at most"):
        SimplexRecalibrator(classes=10, resolution=30, limit=1 << 62, seed=1)


@pytest.mark.base
def test_a_period_without_a_number_is_damage() -> None:
    stored = GroupRecalibrator(seed=1)._document()
    settings = stored.settings | {"declared": [["month"]]}
    data = Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()
    with pytest.raises(CorruptState, match="state must hold names of groups"):
        GroupRecalibrator.from_bytes(data)


@pytest.mark.base
def test_an_old_state_of_too_many_classes_is_refused_at_once() -> None:
    stored, file = crafted.opened(crafted.STATES / "v1" / "one_vs_rest_divide.json")
    settings = stored.settings | {"classes": 1 << 40}
    data = Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()
    with pytest.raises(CorruptState, match="classes must be"):
        crafted.from_bytes(file, data)


@pytest.mark.parametrize("columns", [[[]], [""], "p", None])
@pytest.mark.parametrize("name", ["session_class", "session_number"])
def test_a_session_names_columns(name: str, columns: object) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra cli")
    stored, file = crafted.opened(crafted.STATES / "v1" / f"{name}.json")
    settings = stored.settings | {"columns": columns}
    data = Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()
    with pytest.raises(CorruptState, match="names of columns"):
        crafted.from_bytes(file, data)


def small_classes() -> OneVsRest:
    made = OneVsRest(classes=3, engine="recalibrator", resolution=3, buckets=2, seed=1)
    made.observe(made.forecast([0.2, 0.3, 0.5]), 1)
    return made


def small_groups() -> GroupRecalibrator:
    made = GroupRecalibrator(resolution=3, buckets=2, seed=1)
    made.observe(made.forecast(0.4, groups=["a", "b"]), 1)
    return made


def small_levels() -> QuantileRecalibrator:
    made = QuantileRecalibrator("pit", levels=[0.3, 0.6], resolution=3, seed=1)
    made.observe(made.forecast(Distribution.normal(0.0, 1.0)), 0.5)
    return made


def second_row(made: OneVsRest) -> int:
    return made._roster.place(1) + made._arena.layout.blocks


def first_block(made: GroupRecalibrator) -> int:
    return made._row + made._arena.layout.blocks


def second_level(made: QuantileRecalibrator) -> int:
    return made._method._at[1][0] + made._method._specs[1].layout.blocks


PLACES = {
    "classes": (small_classes, second_row, "gaps that"),
    "buckets of groups": (small_groups, first_block, "gaps that"),
    "groups": (small_groups, lambda made: made._arena.fixed, "gaps that"),
    "levels": (small_levels, second_level, "gaps that"),
}


@pytest.mark.base
@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("gap", [1 << 62, -(1 << 62), (1 << 63) - 1])
def test_no_row_of_any_kind_has_gaps_that_its_visits_cannot_leave(name: str, gap: int) -> None:
    make, where, told = PLACES[name]
    made = make()
    assert load(made.to_bytes()) == made
    made._arena.flat()[where(made) + FIRST] = gap
    with pytest.raises(CorruptState, match=told):
        load(made.to_bytes())


@pytest.mark.base
@pytest.mark.parametrize("name", ["classes", "buckets of groups", "levels"])
def test_blocks_of_any_kind_made_the_forecasts_of_their_row(name: str) -> None:
    make, where, _ = PLACES[name]
    made = make()
    made._arena.flat()[where(made) + CLOCK] += 1
    with pytest.raises(CorruptState, match="forecasts in the blocks where"):
        load(made.to_bytes())


@pytest.mark.base
def test_what_the_proof_adds_up_for_groups_is_not_negative() -> None:
    made = small_groups()
    made._arena.flat().view(np.float64)[made._row + LOGS] = -1.0
    with pytest.raises(CorruptState, match=r"must be from 0\.0 to"):
        load(made.to_bytes())


@pytest.mark.base
def test_a_bound_that_no_number_of_rounds_makes_small_says_so() -> None:
    made = ConformalInterval("aci", step=0.05, scale=1.0)
    for score in (0.5, 0.9):
        made.observe(made.forecast(0.0), score)
    state = made._arena.flat().view(np.float64)
    state[made._row + OWN + intervals.HIGH] = 1e308
    state[made._row + OWN + intervals.LAST_INVERSE] = 1e308
    again = load(made.to_bytes())
    assert again.certificate().sure is None
