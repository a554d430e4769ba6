"""What each word of a row is: declared once, and everything else is derived from that."""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

import numpy as np
import players
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.calibrators.layout import Layout
from calibrant.kernels import anchor, blackwell, layout, pairs, running_mean
from calibrant.kernels.compile import available
from calibrant.kernels.crowd import count_correction
from calibrant.kernels.layout import (
    DERIVED,
    FIXED,
    HEAD,
    HEADER,
    ISSUED,
    KEY,
    MIXED_ROW,
    POSITION,
    ROUNDS,
    ROW,
    SAFE_ROW,
    SCRATCH_LIFE,
    SECRET,
    STATE,
    Section,
)
from calibrant.kernels.place import run_at, run_here
from calibrant.kernels.transforms.hats import KNOTS
from calibrant.recalibrate.body import packed, unpacked
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.spec import Spec, made_rule
from calibrant.registry import calibrators
from calibrant.transforms import (
    BucketMeans,
    Chain,
    ExpertMixture,
    HatMeans,
    Identity,
    OnlinePlatt,
)

pytestmark = pytest.mark.base

NAMES = calibrators.names()
EXPERTS = ExpertMixture((Identity(), BucketMeans(3, 20.0)), share=1e-3)
AROUND = {"alone": (None, None), "behind": (EXPERTS, None), "safe": (EXPERTS, 0.1)}
SECTIONS = {
    "header": HEADER,
    "row": ROW,
    "mixed row": MIXED_ROW,
    "safe row": SAFE_ROW,
    "head": HEAD,
    "cell": layout.GAP_AND_COUNT,
} | {
    f"{part} of {name}": getattr(calibrators.get(name).kernels, part)
    for name in NAMES
    for part in ("head", "cell", "settings")
}
every_spec = pytest.mark.parametrize(
    ("name", "around"),
    [
        (name, around)
        for name in NAMES
        for around in AROUND
        if around == "alone" or not made_rule(name, {}).kernels.full_support
    ],
)


def spec_of(name: str, around: str = "alone", **options: object) -> Spec:
    transform, budget = AROUND[around]
    rule = made_rule(name, {"resolution": 3} | options)
    return Spec(rule, 2, 1, "squared", transform, budget)


# Sections.


@pytest.mark.parametrize("name", SECTIONS)
def test_every_word_has_a_name_of_its_own_and_one_sentence(name: str) -> None:
    fields = SECTIONS[name].fields
    names = [field.name for field in fields]
    several = {"SECRET", "PARAMETERS"}
    assert all(names.count(each) == 1 for each in names if each not in several)
    for field in fields:
        assert field.name == field.name.upper()
        assert field.life in (FIXED, STATE, DERIVED, SCRATCH_LIFE)
        assert (field.life == DERIVED) == (field.ratio is not None)
        told = field.meaning
        assert told == told.strip()
        assert told[0].isupper() or told[0].isdigit()
        assert told.endswith(".")
        assert ". " not in told
        assert field.limits[0] <= field.limits[1]


def test_words_that_are_several_stand_together() -> None:
    assert [field.name for field in ROW.fields[SECRET : SECRET + 2]] == ["SECRET"] * 2
    start = layout.PARAMETERS
    assert [field.name for field in HEADER.fields[start : start + 4]] == ["PARAMETERS"] * 4
    most = max(len(calibrators.get(name).kernels.settings) for name in NAMES)
    assert most <= 4


def test_sections_go_on_where_others_end() -> None:
    for longer, shorter in [
        (MIXED_ROW, ROW),
        (SAFE_ROW, MIXED_ROW),
        (anchor.OWN_HEAD, HEAD),
        (anchor.GROWING_HEAD, anchor.OWN_HEAD),
        (pairs.OWN_HEAD, HEAD),
        (blackwell.OWN_HEAD, HEAD),
        (running_mean.OWN_HEAD, HEAD),
        (anchor.FADING_CELL, layout.GAP_AND_COUNT),
        (anchor.OWN_CELL, layout.GAP_AND_COUNT),
    ]:
        assert longer.fields[: len(shorter)] == shorter.fields
        assert len(longer) > len(shorter)
        for place, field in enumerate(longer.fields):
            if field.name != "SECRET":
                assert longer.place(field.name) == place


# No word of a block belongs to another rule.


@pytest.mark.parametrize("name", NAMES)
def test_a_block_has_the_words_of_its_rule_and_no_others(name: str) -> None:
    spec = spec_of(name)
    kernels, cells = spec.rule.kernels, spec.rule.lattice.cells
    assert spec.layout.stride == len(kernels.head) + len(kernels.cell) * cells
    assert kernels.head.fields[: len(HEAD)] == HEAD.fields


@pytest.mark.parametrize("name", NAMES)
def test_every_word_of_a_block_is_used_by_its_rule(name: str) -> None:
    """Play until each word of a head, and of some cell, was read or written."""
    spec = spec_of(name)
    arena = spec.arena(bytes(16))
    rows, at = Rows(spec, arena), arena.place(0)
    listed = arena.words()
    touched: set[int] = set()

    class Watched(list):
        """A list that notes which places are asked for."""

        def __getitem__(self, place):
            if not isinstance(place, slice):
                touched.add(place)
            return super().__getitem__(place)

        def __setitem__(self, place, value):
            if not isinstance(place, slice):
                touched.add(place)
            super().__setitem__(place, value)

    arena.listed = Watched(listed)
    raw, outcomes = players.stream(60, 3)
    closed = []
    for p, y in zip(raw, outcomes, strict=True):
        number, place, weight, mixed, _, kept, _ = rows.issue(at, p)
        told = number, place, weight, mixed, p, float(number)
        rows.learn(at, *told, y, kept)
        closed.append((told, y))
    for told, y in closed[-9:]:
        rows.correct(at, told, 1 - y)
    # Two whose outcomes are late.
    for number, place, weight, mixed, _, kept, _ in [rows.issue(at, p) for p in (0.3, 0.6)]:
        rows.learn(at, number, place, weight, mixed, 0.3, float(number), 1, kept)
    kernels, start = spec.rule.kernels, at + spec.layout.blocks
    spare = {"HOME", "NEXT"}
    for place, field in enumerate(kernels.head.fields):
        words = {start + block * spec.layout.stride + place for block in range(2)}
        assert words & touched or field.name in spare, field.name
    first, size = start + len(kernels.head), len(kernels.cell)
    for place, field in enumerate(kernels.cell.fields):
        words = {first + size * cell + place for cell in range(spec.rule.lattice.cells)}
        assert words & touched, field.name


# Masks, limits and sizes.


def expected_fields(spec: Spec) -> list:
    """The field of every word of a row up to the transform's, written out plainly."""
    section = {None: ROW}.get(spec.transform, MIXED_ROW if spec.raw_safe is None else SAFE_ROW)
    kernels = spec.rule.kernels
    fields = list(section.fields)
    for _ in range(spec.buckets):
        fields += kernels.head.fields
        for _ in range(spec.rule.lattice.cells):
            fields += kernels.cell.fields
    return fields


@every_spec
def test_masks_limits_and_sizes_are_those_of_the_sections(name: str, around: str) -> None:
    spec = spec_of(name, around)
    found, fields = spec.layout, expected_fields(spec)
    transform = [] if spec.transform is None else spec.transform.fresh()
    size = len(fields) + len(transform)
    for column in (found.fresh, found.real, found.stored, found.low, found.high):
        assert len(column) == size
    assert found.transform == (len(fields) if transform else 0)
    assert found.blocks == len(found.section)
    assert found.real[: len(fields)].tolist() == [field.real for field in fields]
    assert found.stored[: len(fields)].tolist() == [
        field.life in (STATE, DERIVED) for field in fields
    ]
    for place, field in enumerate(fields):
        ends = (
            bits.view(np.float64 if field.real else np.int64) for bits in (found.low, found.high)
        )
        low, high = (end[place] for end in ends)
        inner = (place - found.blocks) % found.stride if place >= found.blocks else None
        if inner == POSITION:
            assert (low, high) == (0, spec.rule.lattice.cells - 1)
        elif field.name == "STEP":
            assert (low, high) == (0, spec.rule.doublings)
        else:
            assert (low, high) == field.limits
    found.verify(found.fresh)


@every_spec
def test_the_transform_s_part_of_a_row_is_what_it_says(name: str, around: str) -> None:
    spec = spec_of(name, around)
    if spec.transform is None:
        return
    found, transform = spec.layout, spec.transform
    part = slice(found.transform, None)
    fresh, real = transform.fresh(), found.real[part]
    assert real.tolist() == [type(word) is float for word in fresh]
    for place, word in enumerate(fresh):
        row = found.fresh[part]
        assert (row.view(float) if real[place] else row)[place] == word
    left_out = {*transform.note_positions(), *transform.constants()}
    assert np.flatnonzero(~found.stored[part]).tolist() == sorted(left_out)


@every_spec
def test_the_header_says_where_everything_stands(name: str, around: str) -> None:
    spec = spec_of(name, around)
    found = spec.layout
    header = found.shared
    assert header[layout.ROWS] == len(found.shared) == found.row
    assert header[layout.ROW_WORDS] == len(found.fresh)
    assert header[layout.BLOCKS] == found.blocks
    assert header[layout.STRIDE] == found.stride
    assert header[layout.TRANSFORM] == found.transform
    assert (header[layout.BUCKETS], header[layout.CELLS]) == (2, spec.rule.lattice.cells)
    assert header[layout.ADVICE] + spec.kept == len(header)
    reals = header.view(float)
    edges = int(header[layout.EDGES])
    assert reals[edges : edges + 2].tolist() == [0.0, 0.5]
    values = int(header[layout.TABLE]) + spec.rule.lattice.cells + layout.VALUES
    assert reals[values:][: spec.rule.lattice.cells].tolist() == spec.rule.lattice.values.tolist()
    for place in HEADER.reals:
        assert found.shared_real[place]
    with pytest.raises(ValueError, match="read-only"):
        found.fresh[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        found.shared[0] = 1


@every_spec
def test_words_beyond_their_limits_are_refused(name: str, around: str) -> None:
    found = spec_of(name, around).layout
    found.verify(found.fresh)
    for place in (ISSUED, ROUNDS, found.blocks + POSITION):
        for word in (int(found.low[place]) - 1, int(found.high[place]) + 1):
            row = found.fresh.copy()
            row[place] = word
            with pytest.raises(ValueError, match=f"word {place} must be from .*, got {word}"):
                found.verify(row)


@every_spec
def test_a_body_gives_its_row_back(name: str, around: str) -> None:
    spec = spec_of(name, around)
    arena = played(spec, 40)
    row = arena.row()
    again = unpacked(packed(row, spec.layout), spec.layout)
    stored = spec.layout.stored
    assert (again[stored] == row[stored]).all()
    assert (again[~stored] == spec.layout.fresh[~stored]).all()
    fresh = packed(spec.layout.fresh, spec.layout)
    assert len(fresh) == -(-len(row) // 64)
    assert not fresh.any()


def played(spec: Spec, rounds: int):
    arena = spec.arena(bytes(range(16)))
    rows, at = Rows(spec, arena), arena.place(0)
    for number, (p, y) in enumerate(zip(*players.stream(rounds, 3), strict=True)):
        _, place, weight, mixed, _, kept, _ = rows.issue(at, p)
        rows.learn(at, number, place, weight, mixed, p, float(number), y, kept)
    return arena


# Sizes.


def row_bytes(found: Layout) -> int:
    return found.fresh.nbytes


def test_rows_are_small() -> None:
    assert row_bytes(Calibrant(seed=1).spec.layout) <= 4_200
    small = Recalibrator("foster_hart", resolution=10, buckets=10, seed=1)
    assert row_bytes(small.spec.layout) <= 2_400


def body_bytes(model: Recalibrator) -> int:
    """Eight bytes for each word of the packed row and of the open tickets.

    That is what a table of many models stores of each, without the settings that they share.
    """
    arrays = model._document().arrays
    assert sorted(arrays) == ["body", "tickets"]
    return 8 * sum(len(words) for words in arrays.values())


def after(rounds: tuple) -> Calibrant:
    model = Calibrant(seed=1)
    for p, y in zip(*rounds, strict=True):
        model.observe(model.forecast(p), y)
    assert model.open == 0
    return model


def test_the_body_of_the_default_is_small_after_ten_rounds() -> None:
    assert body_bytes(after(([0.5] * 10, [0, 1] * 5))) <= 600
    all_over = [body_bytes(after(players.stream(10, seed))) for seed in range(20)]
    assert np.mean(all_over) <= 1_040 - 24
    near = [([p + 0.01 * k for k in range(10)], [0, 1] * 5) for p in (0.0, 0.3, 0.6, 0.9)]
    assert max(body_bytes(after(rounds)) for rounds in near) <= 840


def test_an_open_ticket_takes_its_own_words_and_few_more() -> None:
    model = after(players.stream(10, 5))
    before = body_bytes(model)
    model.forecast(0.3)
    # The ticket, and what a forecast may change first: position and how many outcomes are missing.
    assert before < body_bytes(model) <= before + 8 * (2 + len(model.spec.fields)) + 8 * 2


# Rows run at any offset.


KINDS = {name: partial(Recalibrator, name, resolution=4, buckets=2) for name in NAMES} | {
    "calibrant": Calibrant,
    "safe": partial(Calibrant, EXPERTS, raw_safe=0.05, resolution=4),
    "in time": partial(Recalibrator, "fading", resolution=4, unit="time", half_life=5.0),
}


class Guest:
    """A row of somebody else's arena, played like a stream of its own."""

    def __init__(self, rows: Rows, at: int) -> None:
        self.rows, self.at, self.open = rows, at, {}

    def forecast(self, raw: float, time: float) -> tuple:
        number, place, weight, mixed, clock, kept, law = self.rows.issue(self.at, raw)
        self.open[number] = (number, place, weight, mixed, raw, time), kept
        return number, place, weight, mixed, clock, kept, law

    def observe(self, number: int, outcome: int) -> tuple:
        told, kept = self.open.pop(number)
        self.rows.learn(self.at, *told, outcome, kept)
        return told


def alternate(kind: str, compiles: bool) -> None:
    """Play two rows of one arena in turns, and two lone recalibrators with the same secrets."""
    lone = [KINDS[kind](seed=k) for k in (1, 2)]
    spec = lone[0].spec
    arena = spec.arena(lone[0]._secret)
    second = arena.add()
    at = arena.place(second)
    spec.seat(arena.flat()[at:], lone[1]._secret)
    rows = Rows(spec, arena)
    if compiles:
        assert rows.compile()
        for rec in lone:
            rec.compile()
    guests = [Guest(rows, arena.place(0)), Guest(rows, at)]
    raw, outcomes = players.stream(120, 6, edges=2)
    rng = np.random.default_rng(7)
    for k, (p, y) in enumerate(zip(raw, outcomes, strict=True)):
        which = int(rng.integers(2))
        rec, guest = lone[which], guests[which]
        ticket = rec.forecast(p, time=float(k))
        number, place, weight, mixed, clock, kept, law = guest.forecast(p, float(k))
        assert (number, place, weight) == (ticket.number, ticket.place, ticket.weight)
        assert (mixed, clock, kept, law) == (
            ticket._mixed,
            ticket.clock,
            ticket._kept,
            ticket._law,
        )
        # Some outcomes come late, while the other row plays.
        while len(guest.open) > int(rng.integers(4)):
            late = sorted(guest.open)[int(rng.integers(len(guest.open)))]
            told = guest.observe(late, y)
            closed = rec.observe(late, y)
            if k % 7 == 0:
                rec.correct(closed, 1 - y)
                count_correction(rows.state()[0], guest.at, told[0])
                rows.correct(guest.at, told, 1 - y)
    for number, rec in enumerate(lone):
        stored = spec.layout.stored
        assert arena.row(number)[stored].tolist() == rec._arena.row()[stored].tolist()
        assert (
            (arena.row(number)[spec.layout.blocks + KEY])
            == (rec._arena.row()[spec.layout.blocks + KEY])
        )


@pytest.mark.parametrize("kind", KINDS)
def test_two_rows_of_one_arena_play_as_two_lone_recalibrators(kind: str) -> None:
    alternate(kind, compiles=False)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="no compiler here")
@pytest.mark.parametrize("kind", ["foster_hart", "exponential_regret", "calibrant", "safe"])
def test_two_compiled_rows_of_one_arena_play_as_two_lone_recalibrators(kind: str) -> None:
    alternate(kind, compiles=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_one_row_leaves_the_others_alone(kind: str) -> None:
    lone = [KINDS[kind](seed=k) for k in (1, 2)]
    spec = lone[0].spec
    arena = spec.arena(lone[0]._secret)
    at = arena.place(arena.add(2))
    spec.seat(arena.flat()[at:], lone[1]._secret)
    before = arena.row(0), arena.row(2)
    raw, outcomes = (np.array(column) for column in players.stream(50, 6))
    forecast, mean, _ = Rows(spec, arena).replay(at, raw, outcomes.astype(np.uint8))
    if not lone[1]._timed:
        run = lone[1].replay(raw, outcomes)
        assert forecast.tolist() == run.forecast.tolist()
        assert mean.tolist() == run.mean.tolist()
        stored = spec.layout.stored
        assert arena.row(1)[stored].tolist() == lone[1]._arena.row()[stored].tolist()
    assert (arena.row(0) == before[0]).all()
    assert (arena.row(2) == before[1]).all()


# The two forms of an arena.


@every_spec
def test_going_between_list_and_array_changes_no_bit(name: str, around: str) -> None:
    arena = played(spec_of(name, around), 30)
    arena.add(2)
    before = arena.snapshot()
    assert arena.listed is None
    words = arena.words()
    assert arena.listed is words
    assert arena.snapshot().tolist() == before.tolist()
    assert arena.listed is words
    assert arena.flat().tolist() == before.tolist()
    assert arena.listed is None
    kinds = [type(word) is float for word in arena.words()]
    real = np.concatenate([arena.layout.shared_real, np.tile(arena.layout.real, 3)])
    assert kinds == real.tolist()


MIXTURES: dict[str, Any] = {
    "default": Calibrant(seed=1).spec.transform,
    "hats alone": HatMeans(cells=3),
    "mixture without hats": ExpertMixture((Identity(), BucketMeans())),
    "bank between hats": ExpertMixture((HatMeans(3), BucketMeans(), BucketMeans(3), HatMeans(2))),
    "log": Calibrant(seed=1, loss="log").spec.transform,
    "mixture of mixtures": ExpertMixture((ExpertMixture((HatMeans(3), Identity())), HatMeans(2))),
    "chain in a mixture": ExpertMixture((Chain(OnlinePlatt(), HatMeans(3)), HatMeans(2))),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_a_list_has_the_knots_of_experts_in_an_array_and_gives_every_word_back(name: str) -> None:
    players.begin_plain(Calibrant(MIXTURES[name], seed=1))
    model = Calibrant(MIXTURES[name], seed=1)
    rng = np.random.default_rng(3)
    for raw in rng.random(40).tolist():
        model.observe(model.forecast(raw), int(rng.random() < raw))
    arena, layout = model._arena, model.spec.layout
    flat, short = arena.snapshot(), arena.listed
    assert short is not None
    full = layout.lengthened(short)
    assert layout.format_of(1).pack(*full) == flat.tobytes()
    again = layout.shortened(full)
    assert again == short
    assert [type(word) for word in again] == [type(word) for word in short]
    assert layout.lengthened(again) == full
    hats = [each for each in getattr(MIXTURES[name], "experts", ()) if type(each) is HatMeans]
    knots = sum(hat.size - KNOTS for hat in hats)
    assert len(full) == len(short) + knots - len(hats) - (1 if hats else 0)
    assert (len(short[-1]) if hats else 0) == knots


@pytest.mark.parametrize("name", MIXTURES)
def test_steps_on_a_list_give_the_bits_of_steps_on_an_array(name: str) -> None:
    spec = Calibrant(MIXTURES[name], seed=1).spec
    seats = [Rows(spec, spec.arena(bytes(16))) for _ in range(2)]
    seats[1].use_views()
    rng, row = np.random.default_rng(4), spec.layout.row
    for raw in rng.random(60).tolist():
        outcome, told = int(rng.random() < raw), []
        for seat in seats:
            number, place, weight, mixed, _ = seat.announce(row, raw)
            seat.learn(row, number, place, weight, mixed, raw, 0.0, outcome)
            told.append((place, weight, mixed))
        assert told[0] == told[1]
    assert seats[0].arena.listed is not None
    assert seats[0].arena.row().tolist() == seats[1].arena.row().tolist()


def test_a_run_is_found_in_a_list_in_the_array_behind_it_and_in_an_array() -> None:
    runs = array("d", [0.25, 0.5])
    assert run_at([0.75, 1, runs], 1) == (runs, 1)
    for here in (runs, [0.25, 0.5]):
        assert run_at(here, 1) == run_here(here, 1) == (here, 1)


def test_a_list_of_several_rows_has_every_word_in_its_place() -> None:
    spec = Calibrant(seed=1).spec
    arena = spec.arena(bytes(16))
    short = arena.words()
    arena.add(1)
    words = arena.words()
    assert len(words) == len(spec.layout.shared) + 2 * len(spec.layout.fresh)
    assert len(short) < len(words) - len(spec.layout.fresh)
    assert spec.layout.lengthened(words) is words


def test_a_section_gives_places_by_name_and_by_life() -> None:
    section = Section(HEAD)
    section.real("LOSS", STATE, "A loss.")
    section.whole("TWO", SCRATCH_LIFE, "Two words.", words=2)
    assert section.place("LOSS") == len(HEAD)
    assert section.reals == [len(HEAD)]
    assert section.lives(SCRATCH_LIFE) == [len(HEAD) + 1, len(HEAD) + 2]
    assert section.lives(FIXED) == [KEY]
    assert len(HEAD) == 3
