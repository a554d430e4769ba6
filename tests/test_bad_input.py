"""Whatever comes in: a clear error that names value and rule, and a state left as it was."""

from __future__ import annotations

import copy
import json
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.core.codec import Document
from calibrant.errors import (
    CalibrantError,
    CorruptState,
    ImproperLoss,
    InvalidInput,
    InvalidType,
    UnknownName,
)
from calibrant.kernels.layout import (
    CLOCK,
    ISSUED,
    KEY,
    LONGEST_LAG,
    MOST_OUTSTANDING,
    POSITION,
    RAW_INFINITE,
    ROUNDS,
)
from calibrant.recalibrate.body import packed
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

NAMES = calibrators.names()
every_name = pytest.mark.parametrize("name", NAMES)


class Nothing:
    """Something that is no number, with a name that stays the same."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


NAN, INF = float("nan"), float("inf")
OUT_OF_RANGE = [
    NAN,
    INF,
    -INF,
    1.0000001,
    -1e-300,
    -1,
    2,
    np.float64(1.5),
    Fraction(-1, 9),
    10**400,
]
NOT_NUMBERS = [
    "0.5",
    "",
    None,
    [],
    [0.5],
    {},
    0.5j,
    b"0.5",
    NOTHING,
    Decimal("0.5"),
    np.array([0.5]),
]
NOT_OUTCOMES = [2, -1, 0.5, NAN, INF, -0.5, np.int8(-1), 10**400]

ANYTHING = st.one_of(
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.lists(st.floats(), max_size=2),
    st.fractions(),
    st.decimals(),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.int64, st.integers(-3, 3)),
    st.builds(np.array, st.lists(st.floats(0, 1), max_size=2)),
)
ARRAYS = st.one_of(
    ANYTHING,
    st.lists(ANYTHING, max_size=4),
    st.lists(st.floats(0, 1), max_size=4),
    st.lists(st.integers(-1, 2), max_size=4),
    st.lists(st.lists(st.floats(0, 1), max_size=2), max_size=3),
    st.builds(lambda rows: np.array(rows, dtype=object), st.lists(ANYTHING, max_size=3)).filter(
        lambda array: array.ndim == 1
    ),
    st.builds(np.zeros, st.sampled_from([(2, 2), (0, 3), (1,), ()])),
)


def make(name: str = "foster_hart") -> Recalibrator:
    rec = Recalibrator(name, resolution=4, buckets=3, seed=1)
    rec.learn_one(0.4, 1)
    rec.forecast(0.6)
    return rec


def refusal(error: type[Exception], rec: Recalibrator, call: object, *args: object) -> str:
    before = rec.to_bytes()
    with pytest.raises(error) as refused:
        call(*args)
    assert type(refused.value) is error
    assert isinstance(refused.value, CalibrantError)
    assert rec.to_bytes() == before
    return str(refused.value)


# One value.


@pytest.mark.parametrize(
    ("error", "value"),
    [(InvalidInput, v) for v in OUT_OF_RANGE] + [(InvalidType, v) for v in NOT_NUMBERS],
    ids=repr,
)
def test_a_raw_forecast_is_a_number_in_range(error: type, value: object) -> None:
    rec = make()
    text = f"raw forecast must be a number in [0, 1], got {value!r}"
    assert refusal(error, rec, rec.forecast, value) == text
    assert refusal(error, rec, rec.predict_one, value) == text
    assert refusal(error, rec, rec.learn_one, value, 1) == text


@pytest.mark.parametrize(
    ("error", "value"),
    [(InvalidInput, v) for v in NOT_OUTCOMES] + [(InvalidType, v) for v in NOT_NUMBERS],
    ids=repr,
)
def test_an_outcome_is_zero_or_one(error: type, value: object) -> None:
    rec = make()
    closed = rec.observe(rec.forecast(0.1), 1)
    text = f"outcome must be 0 or 1, got {value!r}"
    assert refusal(error, rec, rec.observe, 1, value) == text
    assert refusal(error, rec, rec.learn_one, 0.5, value) == text
    assert refusal(error, rec, rec.correct, closed, value) == text
    rec.observe(1, 1)


NUMBERS = [
    (0, 0.0),
    (1, 1.0),
    (True, 1.0),
    (np.bool_(False), 0.0),
    (-0.0, 0.0),
    (np.float64(0.3), 0.3),
    (np.float32(0.5), 0.5),
    (np.float16(0.25), 0.25),
    (np.int64(1), 1.0),
    (np.array(0.3), 0.3),
]


@pytest.mark.parametrize(("value", "number"), NUMBERS, ids=repr)
@every_name
def test_numbers_in_any_dress_are_the_numbers_they_mean(name, value, number) -> None:
    one, other = make(name), make(name)
    assert one.predict_one(value) == other.predict_one(number)
    one.learn_one(value, np.float64(0.0))
    other.learn_one(number, 0)
    mine, its = one.forecast(value), other.forecast(number)
    assert (mine.value, mine.raw) == (its.value, its.raw)
    one.observe(mine, np.bool_(True))
    other.observe(its, 1)
    one.replay([value], [True])
    other.replay([number], [1])
    assert one.to_bytes() == other.to_bytes()


@given(ANYTHING, ANYTHING)
def test_whatever_comes_is_taken_or_refused_and_then_nothing_changes(raw, outcome) -> None:
    rec = make()
    closed = rec.observe(rec.forecast(0.1), 1)
    calls = (
        lambda: rec.forecast(raw),
        lambda: rec.predict_one(raw),
        lambda: rec.learn_one(raw, outcome),
        lambda: rec.observe(raw, outcome),
        lambda: rec.observe(1, outcome, time=raw),
        lambda: rec.forecast(0.5, id=raw, time=outcome),
        lambda: rec.correct(raw, outcome),
        lambda: rec.correct(closed, outcome),
    )
    for call in calls:
        before = rec.to_bytes()
        try:
            call()
        except CalibrantError:
            assert rec.to_bytes() == before
    again = Recalibrator.from_bytes(rec.to_bytes())
    assert again == rec


# Arrays.

LENGTHS = "arrays must be of one length, got: "
OUTCOMES = "outcomes must be a flat array of outcomes, each 0 or 1, got "
RAW = "raw forecasts must be a flat array of numbers in [0, 1], got "


@pytest.mark.parametrize(
    ("raw", "outcomes", "error", "text"),
    [
        ([0.5, 0.5], [1], InvalidInput, LENGTHS + "raw has 2, outcomes has 1"),
        ([0.5], [], InvalidInput, LENGTHS + "raw has 1, outcomes has 0"),
        ([0.5, NAN], [1, 0], InvalidInput, "raw forecasts[1] must be a number in [0, 1], got nan"),
        ([1.01], [1], InvalidInput, "raw forecasts[0] must be a number in [0, 1], got 1.01"),
        ([0.5, 0.5], [1, 2], InvalidInput, "outcomes[1] must be 0 or 1, got 2"),
        ([0.5, 0.5], [0.5, 1], InvalidInput, "outcomes[0] must be 0 or 1, got 0.5"),
        ([0.5], [NAN], InvalidInput, "outcomes[0] must be 0 or 1, got nan"),
        ([0.5], ["1"], InvalidType, OUTCOMES + "dtype <U1"),
        (["0.5"], [1], InvalidType, RAW + "dtype <U3"),
        ([None], [1], InvalidType, RAW + "dtype object"),
        ([[0.5]], [1], InvalidInput, RAW + "shape (1, 1)"),
        (0.5, 1, InvalidType, RAW + "0.5"),
        ([0.5], 1, InvalidType, OUTCOMES + "1"),
        ([0.5], "1", InvalidType, OUTCOMES + "'1'"),
        ([0.5], [[1]], InvalidInput, OUTCOMES + "shape (1, 1)"),
        (np.array([0.5], object), [1], InvalidType, RAW + "dtype object"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("late", [False, True])
def test_arrays_that_are_no_batch_are_refused(raw, outcomes, error, text, late) -> None:
    rec = make()
    options = {"available": [0.0]} if late else {}
    assert refusal(error, rec, lambda: rec.replay(raw, outcomes, **options)) == text


@given(ARRAYS, ARRAYS, st.one_of(st.none(), ARRAYS), st.one_of(st.none(), ARRAYS))
def test_whatever_arrays_come_are_taken_or_refused(raw, outcomes, available, time) -> None:
    rec = make()
    before = rec.to_bytes()
    try:
        rec.replay(raw, outcomes, available=available, time=time)
    except CalibrantError:
        assert rec.to_bytes() == before
    else:
        assert Recalibrator.from_bytes(rec.to_bytes()) == rec


# Construction.

BUCKETS = "buckets must be a whole number from 1 to 1048576, got "
MAX_OPEN = "max_open must be a whole number from 1 to 4194304, got "
SEED = f"seed must be a whole number from {-(2**127)} to {2**127}, got "
WRONG_KEY = "key must be a string or a whole number, got "
PARAMETERS = "parameters of foster_hart must be among grid, resolution, got "


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"buckets": 0}, InvalidInput, BUCKETS + "0"),
        ({"buckets": 2.5}, InvalidInput, BUCKETS + "2.5"),
        ({"buckets": "3"}, InvalidType, BUCKETS + "'3'"),
        ({"buckets": True}, InvalidType, BUCKETS + "True"),
        ({"prior": -1}, InvalidInput, "prior must be a whole number from 0 to 1048576, got -1"),
        ({"prior": 0.5}, InvalidInput, "prior must be a whole number from 0 to 1048576, got 0.5"),
        ({"max_open": 0}, InvalidInput, MAX_OPEN + "0"),
        ({"max_open": 2**23}, InvalidInput, MAX_OPEN + "8388608"),
        ({"seed": 0.5}, InvalidInput, SEED + "0.5"),
        ({"seed": "s"}, InvalidType, SEED + "'s'"),
        ({"seed": 2**200}, InvalidInput, SEED + str(2**200)),
        ({"key": 1.5}, InvalidType, WRONG_KEY + "1.5"),
        ({"key": True}, InvalidType, WRONG_KEY + "True"),
        ({"key": b"a"}, InvalidType, WRONG_KEY + "b'a'"),
        ({"step": 3}, InvalidType, PARAMETERS + "'step'"),
        ({"name": "x"}, InvalidType, PARAMETERS + "'name'"),
        ({"method": 3}, UnknownName, None),
        ({"method": None}, UnknownName, None),
        ({"method": []}, UnknownName, None),
        ({"loss": "nothing"}, UnknownName, None),
        ({"loss": 3}, InvalidType, None),
        ({"loss": "absolute"}, ImproperLoss, None),
        ({"loss": "hinge"}, ImproperLoss, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_recalibrator_that_cannot_be_is_refused(options, error, text) -> None:
    with pytest.raises(error) as refused:
        Recalibrator(**options)
    assert isinstance(refused.value, CalibrantError)
    assert text is None or str(refused.value) == text


def test_a_ready_calibrator_takes_no_more_parameters() -> None:
    rule = calibrators.get("foster_hart")(resolution=4)
    assert Recalibrator(rule, seed=1).calibrator == rule
    with pytest.raises(InvalidInput) as refused:
        Recalibrator(rule, resolution=5)
    assert str(refused.value) == "parameters must be given to the calibrator itself, got resolution"


def test_any_loss_that_is_no_name_needs_a_code() -> None:
    from calibrant.losses import Squared

    assert Recalibrator(loss=Squared(), seed=1) == Recalibrator(loss="squared", seed=1)
    with pytest.raises(CalibrantError):
        Recalibrator(loss=lambda outcome, forecast: (outcome - forecast) ** 2 / 3, seed=1)


@pytest.mark.parametrize("epsilon", [0, -1, NAN, "0.1"], ids=repr)
def test_an_accuracy_that_cannot_be_is_refused(epsilon: object) -> None:
    with pytest.raises(CalibrantError, match=r"^epsilon must be "):
        Recalibrator.from_epsilon(epsilon)


def test_an_accuracy_chooses_grid_buckets_and_loss() -> None:
    rec = Recalibrator.from_epsilon(0.1, loss="squared", seed=1)
    assert rec.calibrator.resolution == rec.buckets
    assert rec.calibrator.grid == "endpoints"
    log = Recalibrator.from_epsilon(0.5, loss="log", method="blackwell", seed=1, buckets=3)
    assert log.calibrator.name == "blackwell"
    assert log.calibrator.grid == "midpoints"
    assert log.buckets == 3
    assert log.certificate().loss_name == "log"
    finer = Recalibrator.from_epsilon(0.01, loss="squared", seed=1)
    assert finer.buckets > rec.buckets
    with pytest.raises(ImproperLoss):
        Recalibrator.from_epsilon(0.1, loss="absolute")


def test_an_accuracy_under_a_loss_that_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^loss must be one of 'squared', .* got '<lambda>'"):
        Recalibrator.from_epsilon(0.2, loss=lambda y, p: (y - p) ** 2 / 2, seed=1)


# Stored states.


def stored(name: str) -> Recalibrator:
    rec = make(name)
    raw, outcomes = players.stream(20, 1)
    rec.replay(raw, outcomes)
    rec.forecast(0.3, id="a", time=2.0)
    return rec


@every_name
def test_shortened_bytes_are_refused(name: str) -> None:
    data = stored(name).to_bytes()
    for length in [*range(40), *range(40, len(data), 41), len(data) - 1]:
        with pytest.raises(CorruptState, match=r"^state must be "):
            Recalibrator.from_bytes(data[:length])
    with pytest.raises(CorruptState):
        Recalibrator.from_bytes(data + b"\0")


@every_name
def test_altered_bytes_are_refused(name: str) -> None:
    data = stored(name).to_bytes()
    for place in range(0, len(data), 7):
        altered = bytearray(data)
        altered[place] ^= 1 << (place % 8)
        with pytest.raises(CorruptState, match=r"^state must be "):
            Recalibrator.from_bytes(bytes(altered))


@pytest.mark.parametrize("data", [None, "bytes", 3, [1], {}], ids=repr)
def test_what_is_no_state_is_refused(data: object) -> None:
    with pytest.raises(CorruptState) as refused:
        Recalibrator.from_bytes(data)
    assert str(refused.value) == f"state must be bytes, got {type(data).__name__}"


def test_another_kind_of_state_is_refused() -> None:
    other = Document("metric", {"a": 1})
    expected = "state must be of kind 'recalibrator', got 'metric'"
    for load, data in (
        (Recalibrator.from_bytes, other.to_bytes()),
        (Recalibrator.from_dict, other.to_dict()),
    ):
        with pytest.raises(CorruptState) as refused:
            load(data)
        assert str(refused.value) == expected


def leaves(data: object, path: tuple = ()):
    """Every place in nested data that holds a single value."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for place in range(0, len(data), 9):
            yield from leaves(data[place], (*path, place))
    else:
        yield path


def put(data: object, path: tuple, value: object) -> None:
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = value


@every_name
def test_altered_data_is_refused_or_means_the_same(name: str) -> None:
    rec = stored(name)
    data = rec.to_dict()
    rng = random.Random(name)
    for path in leaves(data):
        altered = copy.deepcopy(data)
        put(altered, path, rng.choice([None, "x", -7, 10**30, 0.5, [], {}, NAN]))
        try:
            again = Recalibrator.from_dict(altered)
        except CorruptState:
            continue
        assert again == rec


@every_name
def test_data_with_a_part_missing_is_refused(name: str) -> None:
    data = stored(name).to_dict()
    for part in data:
        altered = {key: value for key, value in data.items() if key != part}
        with pytest.raises(CorruptState):
            Recalibrator.from_dict(altered)


def bits(value: float) -> int:
    """Return a real as the word that is stored for it."""
    return int(np.array([value]).view(np.int64)[0])


TICKET = (0, bits(1.0), bits(0.5), bits(NAN), 3, bits(0.5))
"""Place, weight, raw, time, clock and mixed forecast of a ticket that can be."""

FORGED = [
    ("settings", "method", "nobody"),
    ("settings", "method", None),
    ("settings", "parameters", {"resolution": 0, "grid": "endpoints"}),
    ("settings", "parameters", {"resolution": 4, "colour": "red"}),
    ("settings", "parameters", None),
    ("settings", "buckets", 0),
    ("settings", "buckets", -3),
    ("settings", "buckets", 10**9),
    ("settings", "buckets", 2),
    ("settings", "buckets", "3"),
    ("settings", "prior", -1),
    ("settings", "prior", None),
    ("settings", "prior", 10**30),
    ("settings", "loss", "hinge"),
    ("settings", "loss", "nothing"),
    ("settings", "max_open", 0),
    ("settings", "max_open", 10**30),
    *[("arrays", name, words) for name in ("row", "body") for words in ([], [0], [1, 2, 3])],
    ("arrays", "tickets", [1, 2, 3]),
    ("arrays", "tickets", [10**9, 10**9, *TICKET]),
    ("arrays", "tickets", [-5, -5, *TICKET]),
    ("arrays", "tickets", [1, 2, *TICKET]),
    ("arrays", "tickets", [1, 1, 1 << 50, *TICKET[1:]]),
    ("arrays", "tickets", [1, 1, 9, *TICKET[1:]]),
    ("arrays", "tickets", [1, 1, -1, *TICKET[1:]]),
    ("arrays", "tickets", [1, 1, 3 << 16, *TICKET[1:]]),
    ("arrays", "tickets", [1, 1, 0, bits(1.5), *TICKET[2:]]),
    ("arrays", "tickets", [1, 1, 0, bits(-0.5), *TICKET[2:]]),
    ("arrays", "tickets", [1, 1, 0, bits(NAN), *TICKET[2:]]),
    ("arrays", "tickets", [1, 1, *TICKET[:2], bits(2.0), *TICKET[3:]]),
    ("arrays", "tickets", [1, 1, *TICKET[:5], bits(2.0)]),
    ("arrays", "tickets", [1, 1, *TICKET] * 2),
    ("arrays", "tickets", [1, 1, *TICKET, 2, 2, *TICKET, 3, 3, *TICKET]),
    ("arrays", "tickets", [1 << 62, 1, *TICKET, 1 << 62, 2, *TICKET]),
]  # fmt: skip


@pytest.mark.parametrize(
    "missing",
    ["method", "parameters", "buckets", "prior", "loss", "max_open", "body", "tickets"],
)
def test_a_state_with_a_good_checksum_and_a_part_missing_is_refused(missing: str) -> None:
    document = stored("foster_hart")._document()
    document.settings.pop(missing, None)
    document.arrays.pop(missing, None)
    with pytest.raises(CorruptState, match=r"^state must be of a recalibrator, got "):
        Recalibrator.from_bytes(document.to_bytes())


@pytest.mark.parametrize(("where", "what", "value"), FORGED, ids=str)
def test_a_state_with_a_good_checksum_and_nonsense_inside_is_refused(where, what, value) -> None:
    document = stored("foster_hart")._document()
    if where == "settings":
        document.settings[what] = value
    else:
        document.arrays[what] = np.array(value, np.int64)
    with pytest.raises(CorruptState, match=r"^state must be of a recalibrator, got "):
        Recalibrator.from_bytes(document.to_bytes())


def test_the_ticket_that_is_forged_would_be_taken_as_it_is() -> None:
    document = stored("foster_hart")._document()
    document.arrays["tickets"] = np.array([1, 1, *TICKET])
    assert Recalibrator.from_bytes(document.to_bytes()).observe(1, 1).raw == 0.5


def with_words(rec: Recalibrator, changes: dict[int, int]) -> bytes:
    """Return a state in which some words of the row are others, with a good checksum."""
    document, row = rec._document(), rec._arena.row()
    row[list(changes)] = list(changes.values())
    document.arrays["body"] = rec.spec.body.packed(row)
    return document.to_bytes()


OWN = [
    {ISSUED: -1},
    {ISSUED: 0},
    {ISSUED: 22},
    {ISSUED: 24},
    {ISSUED: 1 << 62},
    {ROUNDS: -1},
    {ROUNDS: 22},
    {ROUNDS: 24},
    {ROUNDS: 10**6},
    {RAW_INFINITE: -1},
    {LONGEST_LAG: -1},
    {MOST_OUTSTANDING: -1},
]


@pytest.mark.parametrize("changes", OWN, ids=str)
def test_counts_that_cannot_be_are_refused(changes: dict[int, int]) -> None:
    data = with_words(stored("foster_hart"), changes)
    with pytest.raises(CorruptState, match=r"^state must be of a recalibrator, got "):
        Recalibrator.from_bytes(data)


@pytest.mark.parametrize(
    ("word", "value"), [(POSITION, "K"), (POSITION, -1), (CLOCK, 0), (CLOCK, -3), (CLOCK, 1 << 62)]
)
@every_name
def test_a_bucket_that_cannot_be_is_refused(name: str, word: int, value: object) -> None:
    rec = stored(name)
    assert (rec.issued, rec.rounds, rec.open) == (23, 21, 2)
    layout = rec.spec.layout
    value = rec.calibrator.lattice.cells if value == "K" else value
    for block in range(rec.buckets):
        place = layout.blocks + block * layout.stride + word
        with pytest.raises(CorruptState, match=r"^state must be of a recalibrator, got "):
            Recalibrator.from_bytes(with_words(rec, {place: value}))


def test_a_word_that_is_not_stored_is_refused() -> None:
    rec = stored("foster_hart")
    document, layout = rec._document(), rec.spec.layout
    row = rec._arena.row()
    head = -(-len(row) // 64)
    marks = np.unpackbits(packed(row, layout)[:head].view(np.uint8))
    changed = marks[: len(row)].astype(bool)
    key = layout.blocks + KEY
    assert not changed[key]
    changed[key] = True
    bits = np.packbits(np.concatenate([changed, marks[len(row) :].astype(bool)])).view(np.int64)
    document.arrays["row"] = np.concatenate([bits, row[changed]])
    with pytest.raises(CorruptState, match=r"^state must be of a recalibrator, got "):
        Recalibrator.from_bytes(document.to_bytes())


def test_a_state_read_from_json_text_is_the_state() -> None:
    for name in NAMES:
        rec = stored(name)
        again = Recalibrator.from_dict(json.loads(json.dumps(rec.to_dict())))
        assert again.to_bytes() == rec.to_bytes()
        assert again.observe("a", 1, time=2.0).time == 2.0


@given(st.binary(max_size=64))
@settings(max_examples=50)
def test_noise_is_no_state(noise: bytes) -> None:
    with pytest.raises(CorruptState):
        Recalibrator.from_bytes(noise)
