"""Bodies: what is stored of a row comes back to the bit, and nothing else does."""

import random
from functools import partial

import numpy as np
import players
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.kernels import bodies
from calibrant.kernels.layout import CLOCK, ISSUED, ONE, ROUNDS, SCALE, SECRET
from calibrant.kernels.transforms.platt import inverted
from calibrant.recalibrate.binary import SECRETS
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.spec import Spec
from calibrant.registry import calibrators
from calibrant.transforms import ExpertMixture, HatMeans, Identity

NAMES = calibrators.names()
KINDS = {name: partial(Recalibrator, name, resolution=4, buckets=3) for name in NAMES} | {
    "calibrant": Calibrant,
    "safe": partial(Calibrant, raw_safe=0.05, resolution=4),
    "log": partial(Calibrant, loss="log"),
    "hats": partial(
        Calibrant, ExpertMixture((HatMeans(cells=3), Identity(), HatMeans(cells=3, memory=4.0)))
    ),
    "in time": partial(Recalibrator, "fading", resolution=4, unit="time", half_life=5.0),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def played(kind: str, rounds: int, seed: int = 3) -> Recalibrator:
    model = KINDS[kind](seed=seed)
    for number, (p, y) in enumerate(zip(*players.stream(rounds, seed), strict=True)):
        time = {"time": float(number)} if model._timed else {}
        model.observe(model.forecast(p, **time), y)
    return model


def kept(spec: Spec, row: np.ndarray) -> list[int]:
    """Return all words of a row that are part of a state, derived ones too."""
    return row[spec.layout.stored].tolist()


def by_machine(spec: Spec, words: np.ndarray, old: bool = False) -> np.ndarray | None:
    """Read a body by the function that is compiled elsewhere, run as it is."""

    def unpack(told: np.ndarray, words: np.ndarray, *rest: np.ndarray) -> bool:
        return bodies.unpack(told.tobytes(), words.data, *(array.data for array in rest))

    return spec.body.flat(np.ascontiguousarray(words), old, unpack)


def packed_by_machine(spec: Spec, flat: np.ndarray) -> list[int]:
    def pack(*arrays: np.ndarray) -> int:
        return bodies.pack(*(array.data for array in arrays))

    return spec.body.packed_flat(flat, pack).tolist()


@every_kind
@pytest.mark.parametrize("rounds", [0, 1, 10, 300])
def test_a_body_gives_every_word_of_its_row_back(kind: str, rounds: int) -> None:
    model = played(kind, rounds)
    spec, row = model.spec, model._arena.row()
    words = spec.body.packed(row)
    flat = Recalibrator._flat(spec, {"body": words})
    start = spec.layout.row + SECRET
    arena = spec.arena_of(SECRETS.pack(*flat[start : start + 2]), flat)
    assert kept(spec, arena.row()) == kept(spec, row)
    listed = spec.layout.lengthened(arena.words())
    assert [type(word) for word in listed] == [type(word) for word in spec.layout.alone_list]


@every_kind
@pytest.mark.parametrize("rounds", [0, 1, 10, 300])
def test_both_ways_to_write_and_to_read_a_body_agree(kind: str, rounds: int) -> None:
    model = played(kind, rounds)
    spec, row = model.spec, model._arena.row()
    words = spec.body.packed(row)
    assert packed_by_machine(spec, model._arena.snapshot()) == words.tolist()
    flat = by_machine(spec, words)
    assert flat is not None
    assert kept(spec, flat[spec.layout.row :]) == kept(spec, row)


def first_form(spec: Spec, row: np.ndarray) -> np.ndarray:
    """Return the body of a row as it was written before tops, tallies and inverses were."""
    body = spec.body
    told, base = row[body.places], body.fresh.copy()
    base[body.later] = told[body.earlier]
    changed = told != base
    words = told[changed].tolist()
    count = int(changed[: body.wholes].sum())
    long = [not -(1 << 15) <= word < 1 << 15 for word in words[:count]]
    head = np.packbits(changed).tobytes() + np.packbits(np.array(long, bool)).tobytes()
    whole = list(zip(words, long, strict=False))
    head += b"".join(word.to_bytes(2, "little", signed=True) for word, far in whole if not far)
    head += bytes(-len(head) % 8)
    rest = [word for word, far in whole if far] + words[count:]
    return np.append(np.frombuffer(head, np.int64), np.array(rest, np.int64))


@every_kind
@pytest.mark.parametrize("rounds", [0, 1, 10, 300])
def test_bodies_of_the_first_form_are_read_both_ways(kind: str, rounds: int) -> None:
    model = played(kind, rounds)
    spec, row = model.spec, model._arena.row()
    words = first_form(spec, row)
    assert spec.body.told(words, old=True).tolist() == row[spec.body.places].tolist()
    flat = by_machine(spec, words, old=True)
    assert flat is not None
    assert kept(spec, flat[spec.layout.row :]) == kept(spec, row)
    document = model._document()
    settings, tickets = document.settings, document.arrays["tickets"]
    before = Document(document.kind, settings, {"body": words, "tickets": tickets}, 3)
    assert type(model).from_bytes(before.to_bytes()).to_bytes() == model.to_bytes()


@pytest.mark.parametrize("ones", [0, 1, 127, 128, 1 << 20])
@pytest.mark.parametrize("zeros", [0, 2, 255, 256, 1 << 20])
def test_tallies_come_back_and_small_ones_are_short(ones: int, zeros: int) -> None:
    spec = Calibrant(seed=1).spec
    row, cells = spec.layout.fresh.copy(), spec.rule.cells_of
    cells(spec.layout.blocks_of(row))[:] = ones * ONE + zeros
    row[[spec.layout.blocks + CLOCK, ISSUED, ROUNDS]] = 2
    words = spec.body.packed(row)
    assert spec.body.told(words).tolist() == row[spec.body.places].tolist()
    flat = by_machine(spec, words)
    assert flat is not None
    assert flat[spec.layout.row :].tolist() == row.tolist()
    assert packed_by_machine(spec, np.append(spec.layout.shared, row)) == words.tolist()
    assert (len(words) < spec.rule.lattice.cells // 2) == (ones < 128 and zeros < 256)


@pytest.mark.parametrize("number", [0.0, -0.0, 1e-9, -1e-9, 1.5, -1.5, 3.0, -3.0, 1e9])
def test_reals_of_any_size_come_back(number: float) -> None:
    spec = Calibrant(seed=1).spec
    row, place = spec.layout.fresh.copy(), spec.layout.inverses[0][0] - 1
    row.view(float)[place] = number
    words = spec.body.packed(row)
    assert spec.body.told(words).tolist() == row[spec.body.places].tolist()
    flat = by_machine(spec, words)
    assert flat is not None
    assert flat[spec.layout.row + place] == row[place]
    assert packed_by_machine(spec, np.append(spec.layout.shared, row)) == words.tolist()


@pytest.mark.parametrize("rounds", [0, 5])
@pytest.mark.parametrize("other", [0.25, -0.0, 0.0])
def test_an_inverse_is_told_only_if_it_does_not_follow(rounds: int, other: float) -> None:
    model = played("calibrant", rounds)
    spec, row = model.spec, model._arena.row()
    usual = spec.body.packed(row)
    place = spec.layout.inverses[0][0] + 1
    line = spec.body.places.tolist().index(place)
    row.view(float)[place] = other
    words = spec.body.packed(row)
    marks = np.unpackbits(words.view(np.uint8))
    assert not np.unpackbits(usual.view(np.uint8))[line]
    assert bool(marks[line]) == (row[place] != model._arena.row()[place])
    assert spec.body.told(words).tolist() == row[spec.body.places].tolist()
    assert packed_by_machine(spec, np.append(spec.layout.shared, row)) == words.tolist()
    flat = by_machine(spec, words)
    assert flat is not None
    assert flat[spec.layout.row + place] == row[place]


def test_sums_whose_inverse_is_beyond_all_limits_are_refused() -> None:
    model = played("calibrant", 5)
    spec, row = model.spec, model._arena.row()
    place, sums = spec.layout.inverses[0]
    row.view(float)[sums : sums + 3] = 1e-100, 0.0, 1e-190
    row.view(float)[place : place + 3] = [inverted(row.view(float), sums, k) for k in range(3)]
    words = spec.body.packed(row)
    assert by_machine(spec, words) is None
    with pytest.raises(ValueError, match=r"must be from -1e\+150 to"):
        Recalibrator._flat(spec, {"body": words})


def test_what_is_no_top_of_a_word_is_refused() -> None:
    model = played("calibrant", 5)
    spec, words = model.spec, model.spec.body.packed(model._arena.row())
    told = np.frombuffer(words.tobytes(), np.uint8).copy()
    marks = np.unpackbits(told, count=8 * spec.body._bytes)
    count, left = int(marks[: spec.body.wholes].sum()), int(marks[spec.body.wholes :].sum())
    assert left % 4
    first = spec.body._bytes + -(-count // 8)
    for place, change in ((first + left // 4, 1), (len(told) - 1, 1)):
        wrong = told.copy()
        wrong[place] ^= change
        assert by_machine(spec, wrong.view(np.int64)) is None
        with pytest.raises(ValueError, match="that are not of"):
            spec.body.told(wrong.view(np.int64))
    short = words[: first // 8 + 1]
    assert by_machine(spec, short) is None
    with pytest.raises(ValueError, match="that are not of"):
        spec.body.told(short)


@every_kind
def test_a_row_stored_whole_is_read_as_well(kind: str) -> None:
    model = played(kind, 20)
    document = model._document()
    document.arrays.pop("body")
    document.arrays["row"] = packed(model._arena.row(), model.spec.layout)
    assert type(model)._from_document(document).to_bytes() == model.to_bytes()


@pytest.mark.parametrize("count", [0, 1, 327, 328, 32_767, 32_768, 1 << 40])
def test_long_counts_and_negative_gaps_come_back(count: int) -> None:
    spec = Recalibrator(resolution=4, buckets=2, prior=0, seed=1).spec
    row, scale = spec.layout.fresh.copy(), int(spec.layout.shared[SCALE])
    cells = spec.rule.cells_of(spec.layout.blocks_of(row))
    # All outcomes at 0 were 1, and all at 1 were 0.
    cells[0, 0] = scale * count, count
    cells[0, -1] = -scale * count, count
    row[[spec.layout.blocks + CLOCK, ISSUED, ROUNDS]] = 2 * count
    words = spec.body.packed(row)
    told = spec.body.told(words)
    spec.body.verify(told)
    assert told.tolist() == row[spec.body.places].tolist()
    flat = by_machine(spec, words)
    assert flat is not None
    assert flat[spec.layout.row :].tolist() == row.tolist()


def test_a_twin_that_differs_is_told_and_one_that_does_not_is_left_out() -> None:
    model = played("hats", 1)
    spec = model.spec
    same = len(spec.body.packed(model._arena.row()))
    row = model._arena.row()
    later = spec.body.places[spec.body.later]
    used = next(int(place) for place in later if row[place] != spec.layout.fresh[place])
    row.view(float)[used] += 1.0
    assert len(spec.body.packed(row)) == same + 1
    flat = by_machine(spec, spec.body.packed(row))
    assert flat is not None
    assert flat[spec.layout.row + used] == row[used]


def damaged(words: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return a body with a bit turned, a word changed, added or taken away."""
    words = words.copy()
    how = rng.randrange(5)
    if how == 0:
        return words[:-1]
    if how == 1:
        return np.append(words, rng.randrange(3))
    if how == 2:
        return words[: rng.randrange(len(words))]
    place = rng.randrange(len(words))
    words[place] ^= 1 << rng.randrange(63) if how == 3 else rng.getrandbits(63)
    return words


@every_kind
def test_both_ways_refuse_the_same_bodies(kind: str) -> None:
    model = played(kind, 30)
    spec, words = model.spec, model.spec.body.packed(model._arena.row())
    refused = 0
    for attempt in range(300):
        body = damaged(words, random.Random(attempt))
        try:
            told = Recalibrator._flat(spec, {"body": body})
        except (ValueError, ArithmeticError):
            refused += 1
            assert by_machine(spec, body) is None
            continue
        flat = by_machine(spec, body)
        assert flat is not None
        assert told.tolist() == flat.tolist()
    assert 0 < refused < 300


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_a_body_that_ends_too_soon_is_refused(cut: int) -> None:
    spec = Recalibrator(resolution=4, buckets=40, seed=1).spec
    words = spec.body.packed(spec.layout.fresh)[:cut]
    assert by_machine(spec, words) is None
    with pytest.raises(ValueError, match=r"marks that are not of|words that are not of"):
        spec.body.told(words)


def test_marks_of_long_words_beyond_the_end_are_refused() -> None:
    model = played("foster_hart", 1)
    spec = model.spec
    words = np.full(spec.body._bytes // 8 + 1, -1, np.int64)
    assert by_machine(spec, words) is None
    with pytest.raises(ValueError, match="marks"):
        spec.body.told(words)


def test_the_machine_is_made_of_the_plain_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "available", lambda: True)
    monkeypatch.setattr(bodies, "compiled", lambda function, name: function)
    monkeypatch.setattr(bodies, "entry_point", lambda made: made)
    monkeypatch.setattr(bodies, "made", [])
    assert bodies.machine.__wrapped__() == (bodies.unpack, bodies.pack) == bodies.made[0]


@pytest.mark.parametrize("kind", ["foster_hart", "calibrant", "safe"])
def test_a_stream_that_is_loaded_goes_on_compiled_once_another_was(kind: str) -> None:
    players.begin_plain(played(kind, 1))
    model, plain = played(kind, 50), played(kind, 50)
    before = model.to_bytes()
    with players.machine(model.spec.program):
        assert model.compile().to_bytes() == before
        again = type(model).from_bytes(before)
        assert again._rows.steps is model._rows.steps is not None
        assert again.to_bytes() == before
        for p, y in zip(*players.stream(50, 9), strict=True):
            told = [each.observe(each.forecast(p), y).mean for each in (model, again, plain)]
            assert told[0] == told[1] == told[2]
        assert plain._rows.steps is None
        assert model.to_bytes() == again.to_bytes() == plain.to_bytes()


def test_what_is_wrong_with_a_body_is_said_by_compiled_streams_too() -> None:
    model = played("foster_hart", 20)
    with players.machine(model.spec.program):
        document = model.compile()._document()
        document.arrays["body"] = document.arrays["body"][:-1]
        with pytest.raises(CorruptState, match="words that are not of a row"):
            Recalibrator.from_bytes(document.to_bytes())


def test_more_visits_than_gaps_can_count_are_refused() -> None:
    model = played("foster_hart", 1)
    row, spec = model._arena.row(), model.spec
    first = spec.layout.blocks + len(spec.rule.kernels.head)
    row[first + 1] = 1 << 61
    assert by_machine(spec, spec.body.packed(row)) is None
    with pytest.raises(ValueError, match="visits cannot leave"):
        Recalibrator._flat(spec, {"body": spec.body.packed(row)})
