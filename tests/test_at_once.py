"""States whose shape is known are read as all others are, or left to those who read these."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import players
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.kernels import gaps, two_point
from calibrant.kernels.layout import CLOCK, HEAD, ISSUED, POSITION, ROUNDS, SCALE, VALUES
from calibrant.kernels.transforms.platt import inverted
from calibrant.recalibrate import at_once, body_lists
from calibrant.recalibrate.binary import Binary
from calibrant.recalibrate.body import Body
from calibrant.transforms import ExpertMixture, HatMeans, Identity

pytestmark = pytest.mark.base

SOME = {
    "default": {},
    "log": {"loss": "log"},
    "buckets": {"buckets": 3},
    "safe": {"raw_safe": 0.05},
    "three hats": {
        "experts": ExpertMixture(tuple(HatMeans(cells=3, memory=m) for m in (9.0, 3.0, 5.0)))
    },
    "no hats": {"experts": (Identity(),)},
    "context": {"context": 16},
}
some = pytest.mark.parametrize("kind", SOME)


def played(kind: str, rounds: int, **more: Any) -> Calibrant:
    model, rng = Calibrant(**{"seed": 3} | SOME[kind] | more), random.Random(rounds)
    for _ in range(rounds):
        p = rng.choice([rng.random(), 0.0, 1.0, 0.5])
        model.observe(model.forecast(p), int(rng.random() < 0.3 + 0.5 * p))
    return model


def bits(model: Binary, words: list[Any]) -> bytes:
    layout = model.spec.layout
    return layout.format_of(1).pack(*layout.lengthened(words))


@some
@pytest.mark.parametrize("rounds", [0, 1, 10, 300, 900])
def test_lists_are_read_and_written_as_arrays_are(kind: str, rounds: int) -> None:
    model = played(kind, rounds)
    lists, body, words = model.spec.lists, model.spec.body, model._arena.words()
    assert lists is not None
    told = body.packed(model._arena.row())
    assert lists.packed(words) == told.tobytes()
    again = lists.read(told.tobytes())
    assert again is not None
    assert bits(model, again) == model._flat(model.spec, {"body": told}).tobytes()
    assert [type(word) for word in again] == [type(word) for word in words]


@pytest.mark.parametrize("ones", [0, 1, 127, 128, 1 << 20])
@pytest.mark.parametrize("zeros", [0, 2, 255, 256, 1 << 20])
def test_tallies_of_any_size_are_written_and_read(ones: int, zeros: int) -> None:
    model = played("buckets", 5)
    words, row, layout = model._arena.words(), model._row, model.spec.layout
    first = row + layout.blocks + len(model.spec.rule.kernels.head)
    words[first + 1 : first + 5] = [ones * (1 << 31) + zeros] * 4
    words[row + ISSUED] = words[row + ROUNDS] = 1 << 17
    clocks = [row + layout.blocks + j * layout.stride + CLOCK for j in range(3)]
    for place, clock in zip(clocks, (1 << 16, 1 << 15, 1 << 15), strict=True):
        words[place] = clock
    told = model.spec.body.packed(model._arena.row())
    assert model.spec.lists.packed(words) == told.tobytes()
    again = model.spec.lists.read(told.tobytes())
    assert bits(model, again) == model._flat(model.spec, {"body": told}).tobytes()


@some
def test_a_shape_that_is_known_is_read_without_a_document(kind: str, monkeypatch) -> None:
    model = played(kind, 20)
    stored = model.to_bytes()
    assert stored == model._document().to_bytes()
    assert Calibrant.from_bytes(stored) == model
    monkeypatch.setattr(Document, "read", lambda data: 1 / 0)
    again = Calibrant.from_bytes(stored)
    for each in (model, again):
        each.observe(each.forecast(0.3), 1)
    assert again.to_bytes() == model.to_bytes()
    assert again.certificate() == model.certificate()


def test_a_compiled_stream_is_read_without_a_document_too(monkeypatch) -> None:
    model = played("default", 20, resolution=5)
    with players.machine(model.spec.program):
        model.compile()
        stored = model.to_bytes()
        assert stored == model._document().to_bytes()
        assert Calibrant.from_bytes(stored) == model
        monkeypatch.setattr(Document, "read", lambda data: 1 / 0)
        again = Calibrant.from_bytes(stored)
        for each in (model, again):
            each.observe(each.forecast(0.3), 1)
        assert again.to_bytes() == model.to_bytes()


def alter(stored: bytes, place: int) -> bytes:
    return stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]


@pytest.mark.parametrize("place", [0, 9, 20, -300, -1])
def test_damage_is_told_as_ever(place: int) -> None:
    stored = played("default", 20).to_bytes()
    Calibrant.from_bytes(stored)
    damaged = alter(stored, place % len(stored))
    with pytest.raises(CorruptState, match="state must be"):
        Calibrant.from_bytes(damaged)
    with pytest.raises(CorruptState, match="state must be"):
        Calibrant.from_bytes(stored[:-8])


def test_what_is_unusual_is_read_by_its_document() -> None:
    model = played("default", 20)
    Calibrant.from_bytes(model.to_bytes())
    with pytest.raises(CorruptState, match="kind"):
        Recalibrator.from_bytes(model.to_bytes())
    ticket = model.forecast(0.3)
    assert Calibrant.from_bytes(bytearray(model.to_bytes())) == model
    assert Calibrant.from_bytes(model.to_bytes()).open == 1
    model.correct(model.observe(ticket, 1), 0)
    again = Calibrant.from_bytes(model.to_bytes())
    assert again == model
    assert again._counter.corrections.stands


def test_what_states_without_their_secret_say_is_not_remembered() -> None:
    model = Calibrant(secret=bytes(16), max_open=77)
    kept = model.to_bytes(secret=False)
    before = dict(at_once._known)
    assert Calibrant.from_bytes(kept, secret=bytes(16)) == model
    assert at_once._known == before
    assert Calibrant.from_bytes(model.to_bytes()) == model
    assert len(at_once._known) == len(before) + 1


def test_shapes_of_earlier_versions_and_of_rules_with_gaps_are_not_remembered() -> None:
    before = dict(at_once._known)
    gapped = Recalibrator(seed=1, max_open=78)
    assert gapped.spec.lists is None
    assert Recalibrator.from_bytes(gapped.to_bytes()) == gapped
    model = played("default", 3, max_open=78)
    document = model._document()
    spaced = dataclasses.replace(document)
    spaced.__dict__["shape"] = document.shape.replace(b'", "', b'",  "')
    assert Calibrant.from_bytes(spaced.to_bytes()) == model
    assert at_once._known == before


def test_shapes_are_forgotten_when_there_are_many(monkeypatch) -> None:
    monkeypatch.setattr(at_once, "MOST", 2)
    monkeypatch.setattr(at_once, "_known", {})
    for cap in range(1, 6):
        model = played("default", 2, max_open=cap)
        for _ in range(2):
            assert Calibrant.from_bytes(model.to_bytes()) == model
        assert 1 <= len(at_once._known) <= 2


def wrong(model: Calibrant, place: int, word: float) -> bytes:
    """Return the body of a model's row with another word."""
    row = model._arena.row()
    kind = row.view(np.float64) if isinstance(word, float) else row
    kind[place] = word
    return model.spec.body.packed(row).tobytes()


@pytest.mark.parametrize("word", [-0.0, float("nan"), 1e200, float("inf")])
def test_reals_that_numbers_do_not_tell_or_limits_forbid_are_left_to_others(word: float) -> None:
    model = played("default", 20)
    place = model.spec.layout.inverses[0][0] - 1
    body = wrong(model, place, word)
    assert model.spec.lists.read(body) is None
    assert model.spec.lists.read(wrong(model, place, 0.25)) is not None
    if word == 0.0:
        told = model._flat(model.spec, {"body": np.frombuffer(body, np.int64)})
        assert str(told.view(float)[model._row + place]) == "-0.0"


@pytest.mark.parametrize("place", [ISSUED, ROUNDS])
@pytest.mark.parametrize("word", [-1, 7, 21])
def test_rounds_that_do_not_add_up_are_left_to_others(place: int, word: int) -> None:
    model = played("default", 20)
    fine = place == ROUNDS and 0 <= word <= 20
    assert (model.spec.lists.read(wrong(model, place, word)) is not None) == fine


def test_sums_whose_inverse_is_beyond_all_limits_are_left_to_others() -> None:
    model = played("default", 5)
    row = model._arena.row()
    place, sums = model.spec.layout.inverses[0]
    reals = row.view(float)
    reals[sums : sums + 3] = 1e-100, 0.0, 1e-190
    reals[place : place + 3] = [inverted(reals, sums, k) for k in range(3)]
    assert model.spec.lists.read(model.spec.body.packed(row).tobytes()) is None


@pytest.mark.parametrize("other", [0.25, 3e-9])
def test_an_inverse_that_does_not_follow_is_told(other: float) -> None:
    model = played("default", 5)
    place = model.spec.layout.inverses[0][0] + 1
    body = wrong(model, place, other)
    again = model.spec.lists.read(body)
    assert again[model._row + place] == other
    assert model.spec.lists.packed(again) == body


def test_streams_before_their_first_round_are_read_into_words_of_their_own() -> None:
    for kind in ("default", "no hats"):
        model = played(kind, 0)
        lists, told = model.spec.lists, model.spec.body.packed(model._arena.row()).tobytes()
        one, other = (lists.read(told) for _ in range(2))
        assert one == other
        if kind == "default":
            one[-1][0] = 0.5
            assert other[-1][0] == lists.read(told)[-1][0] == 0.0


def test_rows_whose_words_follow_in_other_ways_are_left_to_arrays() -> None:
    spec = played("default", 0).spec
    layout, head = spec.layout, len(spec.rule.kernels.head)
    (place, above, below, times, plus), *rest = layout.ratios
    (inverse, sums), own = layout.inverses[0], ISSUED
    assert body_lists.suits(Body(layout, head, 1))
    for odd in (
        {"ratios": ((place, above, below, 2.0, plus), *rest)},
        {"ratios": ((place, above, below, times, 0.5), *rest)},
        {"ratios": ((place, own, below, times, plus), *rest)},
        {"ratios": ((place, above, inverse + 1, times, plus), *rest)},
        {"twins": {sums: above}},
        {"twins": {above: own}},
        {"twins": {above: below, below: sums}},
    ):
        other = dataclasses.replace(layout, **odd)
        assert not body_lists.suits(Body(other, head, 1))


@some
def test_no_damage_of_a_body_is_read_otherwise(kind: str) -> None:
    model = played(kind, 40)
    spec, told = model.spec, model.spec.body.packed(model._arena.row()).tobytes()
    rng = random.Random(1)
    for cut in range(0, len(told), 8):
        assert spec.lists.read(told[:cut]) is None
    for _ in range(600):
        place = rng.randrange(len(told)) if rng.random() < 0.5 else rng.randrange(80)
        damaged = bytearray(told)
        damaged[place] ^= 1 << rng.randrange(8)
        found = spec.lists.read(bytes(damaged))
        if found is not None:
            arrays = {"body": np.frombuffer(bytes(damaged), np.int64)}
            assert bits(model, found) == model._flat(spec, arrays).tobytes()


CELLS = st.tuples(st.integers(-(1 << 40), 1 << 40), st.integers(0, 1 << 22))


@given(
    cells=st.lists(CELLS, min_size=1, max_size=5),
    where=st.integers(0, 4),
    coin=st.floats(0, 1, exclude_max=True),
)
def test_whole_numbers_draw_as_doubles_do(
    cells: list[tuple[int, int]], where: int, coin: float
) -> None:
    words: list[Any] = [0] * len(HEAD)
    words[0] = where % len(cells)
    for gap, visits in cells:
        words += [gap if visits else 0, visits]
    told = words, words, 0, len(cells), 0, coin
    assert gaps.draw(*told) == gaps.draw_in_doubles(*told)


@given(
    cells=st.lists(CELLS, min_size=1, max_size=5),
    where=st.integers(0, 4),
    coin=st.floats(0, 1, exclude_max=True),
    outcome=st.integers(0, 1),
)
@example(cells=[(1, 1), (-1, 1)], where=0, coin=0.5, outcome=1)
def test_to_draw_and_learn_at_once_is_to_draw_and_then_to_learn(
    cells: list[tuple[int, int]], where: int, coin: float, outcome: int
) -> None:
    count, table = len(cells), SCALE + 1
    scaled = [2 * k + 1 for k in range(count)]
    words: list[Any] = [0] * SCALE + [10, *scaled] + [0] * VALUES + [k / 10 for k in scaled]
    at = len(words)
    words += [where % count] + [0] * (len(HEAD) - 1)
    for gap, visits in cells:
        words += [gap if visits else 0, visits]
    other = words.copy()
    told = gaps.play(words, words, at, count, table, coin, outcome)
    k, side, weight = gaps.draw(other, other, at, count, table, coin)
    mean = two_point.mean(other, other, count, table, k, side, weight)
    assert told == (other[table + count + VALUES + k], mean)
    gaps.update(other, other, at, table, k, side, weight, outcome)
    other[at + POSITION] = k
    assert words == other


@pytest.mark.parametrize("size", [1, 1 << 26, (1 << 27) + 1, (1 << 31) + 1, (1 << 40) + 3])
@pytest.mark.parametrize("low", [0, 1])
def test_doubles_are_asked_where_whole_numbers_would_be_more_exact(size: int, low: int) -> None:
    words = [low, 0, 0, 3 * size, size + 5, -5 * size - 7, size + 11]
    told = words, words, 0, 2, 0, 0.4
    assert gaps.draw(*told) == gaps.draw_in_doubles(*told)
