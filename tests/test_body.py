"""Bodies: what is stored of a row comes back to the bit, and nothing else does."""

import random
from functools import partial

import numpy as np
import players
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.errors import CorruptState
from calibrant.kernels import bodies
from calibrant.kernels.layout import CLOCK, ISSUED, ROUNDS, SCALE, SECRET
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


def by_machine(spec: Spec, words: np.ndarray) -> np.ndarray | None:
    """Read a body by the function that is compiled elsewhere, run as it is."""

    def unpack(told: np.ndarray, words: np.ndarray, *rest: np.ndarray) -> bool:
        return bodies.unpack(told.tobytes(), words.data, *(array.data for array in rest))

    return spec.body.flat(np.ascontiguousarray(words), unpack)


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
    listed = Recalibrator._listed(spec, {"body": words})
    start = spec.layout.row + SECRET
    again = spec.arena_of(SECRETS.pack(*listed[start : start + 2]), listed).row()
    assert kept(spec, again) == kept(spec, row)
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
    later = spec.body.places[spec.body._later]
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
            listed = Recalibrator._listed(spec, {"body": body})
        except (ValueError, ArithmeticError):
            refused += 1
            assert by_machine(spec, body) is None
            continue
        flat = by_machine(spec, body)
        assert flat is not None
        reals = spec.layout.real.tolist()
        told = np.array([
            np.float64(word).view(np.int64) if real else word
            for word, real in zip(listed[spec.layout.row :], reals, strict=True)
        ])  # fmt: skip
        assert told.tolist() == flat[spec.layout.row :].tolist()
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
        Recalibrator._listed(spec, {"body": spec.body.packed(row)})
