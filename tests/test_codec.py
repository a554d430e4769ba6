from __future__ import annotations

import copy
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import codec
from calibrant.core.codec import Document
from calibrant.errors import CalibrantError, CorruptState

pytestmark = pytest.mark.base

WORDS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False))
SETTINGS = st.dictionaries(st.text(max_size=8), PLAIN, max_size=4)
ARRAYS = st.dictionaries(st.text(max_size=8), WORDS, max_size=4)


def document(settings: dict, arrays: dict) -> Document:
    return Document("note", settings, {name: np.array(a, np.int64) for name, a in arrays.items()})


@pytest.fixture
def note() -> Document:
    return document({"a": 1, "b": "two"}, {"x": [1, -2, 2**62], "empty": [], "y": [7]})


def same(one: Document, other: Document) -> bool:
    arrays = [{k: a.tolist() for k, a in d.arrays.items()} for d in (one, other)]
    return (one.kind, one.settings) == (other.kind, other.settings) and arrays[0] == arrays[1]


def refusal(call: object, *args: object) -> str:
    with pytest.raises(CorruptState) as refused:
        call(*args)
    assert isinstance(refused.value, (CalibrantError, ValueError))
    return str(refused.value)


@given(
    SETTINGS.filter(lambda s: all(abs(v) != np.inf for v in s.values() if v.__class__ is float)),
    ARRAYS,
)
def test_both_forms_give_the_document_back(settings: dict, arrays: dict) -> None:
    made = document(settings, arrays)
    assert same(Document.from_bytes(made.to_bytes(), "note"), made)
    text = json.dumps(made.to_dict())
    assert same(Document.from_dict(json.loads(text), "note"), made)


def test_any_buffer_of_bytes_will_do(note: Document) -> None:
    data = note.to_bytes()
    assert same(Document.from_bytes(bytearray(data), "note"), note)
    assert same(Document.from_bytes(memoryview(data), "note"), note)


def test_equal_documents_give_equal_bytes_in_whatever_order_they_were_made() -> None:
    one = document({"a": 1, "b": 2}, {"x": [1], "y": [2]})
    other = document({"b": 2, "a": 1}, {"y": [2], "x": [1]})
    assert one.to_bytes() == other.to_bytes()
    assert one.to_dict() == other.to_dict()
    assert list(one.to_dict()["arrays"]) == list(other.to_dict()["arrays"]) == ["x", "y"]


def test_the_words_are_little_endian_whatever_the_machine() -> None:
    made = document({}, {"x": [1]}).to_bytes()
    assert made[-24:-16] == b"\1\0\0\0\0\0\0\0"
    swapped = Document("note", {}, {"x": np.array([1], ">i8")})
    assert swapped.to_bytes() == made


def test_what_json_cannot_say_is_not_stored() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        document({"a": float("nan")}, {}).to_bytes()


# Damage.


def test_every_shorter_piece_is_refused(note: Document) -> None:
    data = note.to_bytes()
    for length in range(len(data)):
        text = refusal(Document.from_bytes, data[:length], "note")
        if length < 8 + 4 + 16:
            start = data[:length][:8]
            told = f"bytes that to_bytes() gave, got {length} bytes starting with {start!r}"
        else:
            told = f"whole and unaltered, got {length} bytes whose checksum differs"
        assert text == f"state must be {told}"


def test_every_altered_bit_is_noticed(note: Document) -> None:
    data = note.to_bytes()
    for place in range(len(data)):
        for bit in (1, 128):
            altered = bytearray(data)
            altered[place] ^= bit
            text = refusal(Document.from_bytes, altered, "note")
            expected = "state must be bytes that" if place < 8 else "state must be whole and"
            assert text.startswith(expected)


@given(st.binary(max_size=200))
def test_bytes_from_elsewhere_are_refused(data: bytes) -> None:
    refusal(Document.from_bytes, data, "note")
    refusal(Document.from_bytes, codec.MAGIC + data, "note")


def sealed(body: bytes) -> bytes:
    return body + codec._digest(body)


@pytest.mark.parametrize(
    "inner",
    [
        (2**31).to_bytes(4, "little"),
        (4).to_bytes(4, "little") + b"what",
        (4).to_bytes(4, "little") + b"\xff\xfe\xff\xfe",
        (2).to_bytes(4, "little") + b"[]",
        (2).to_bytes(4, "little") + b"{}",
        (28).to_bytes(4, "little") + b'{"kind":"note", "version":1}',
        (57).to_bytes(4, "little")
        + b'{"kind":"note","version":1,"settings":{},"arrays":{"x":1}}'[:57],
        (58).to_bytes(4, "little")
        + b'{"kind":"note","version":1,"settings":{},"arrays":{"x":1}}'
        + b"odd",
        (58).to_bytes(4, "little") + b'{"kind":"note","version":1,"settings":{},"arrays":{"x":1}}',
        (58).to_bytes(4, "little")
        + b'{"kind":"note","version":1,"settings":{},"arrays":{"x":1}}'
        + bytes(16),
        (59).to_bytes(4, "little") + b'{"kind":"note","version":1,"settings":{},"arrays":{"x":-1}}',
        (58).to_bytes(4, "little") + b'{"kind":"note","version":1,"settings":{},"arrays":["x",1]}',
        (58).to_bytes(4, "little") + b'{"kind":"note","version":1,"settings":[],"arrays":{"x":0}}',
    ],
)
def test_bytes_with_a_good_checksum_and_nonsense_inside_are_refused(inner: bytes) -> None:
    for magic in (codec.MAGIC, codec.FIRST_MAGIC):
        refusal(Document.from_bytes, sealed(magic + inner), "note")


HEAD = b'{"kind":"note","version":1,"settings":{},"arrays":["x","y"]}'


@pytest.mark.parametrize(
    ("lengths", "words"),
    [((), 0), ((1,), 1), ((1, 1), 1), ((1, 0), 2), ((2**31, 2**31), 0), ((1, 1, 1), 3)],
)
def test_lengths_that_are_not_those_of_the_arrays_are_refused(lengths, words) -> None:
    told = b"".join(length.to_bytes(4, "little") for length in lengths)
    inner = len(HEAD).to_bytes(4, "little") + HEAD + told + bytes(8 * words)
    text = refusal(Document.from_bytes, sealed(codec.MAGIC + inner), "note")
    assert text.startswith("state must be what to_bytes() gave, got ")


def test_lengths_are_those_of_the_arrays() -> None:
    told = (1).to_bytes(4, "little") + (2).to_bytes(4, "little")
    inner = len(HEAD).to_bytes(4, "little") + HEAD + told + bytes(24)
    arrays = Document.from_bytes(sealed(codec.MAGIC + inner), "note").arrays
    assert {name: len(array) for name, array in arrays.items()} == {"x": 1, "y": 2}


@pytest.mark.parametrize("data", [None, "text", 17, [1, 2], {}], ids=repr)
def test_what_is_not_bytes_is_refused(data: object) -> None:
    text = refusal(Document.from_bytes, data, "note")
    assert text == f"state must be bytes, got {type(data).__name__}"


@pytest.mark.parametrize("kind", ["letter", ""])
def test_another_kind_of_state_is_refused(note: Document, kind: str) -> None:
    expected = f"state must be of kind {kind!r}, got 'note'"
    assert refusal(Document.from_bytes, note.to_bytes(), kind) == expected
    assert refusal(Document.from_dict, note.to_dict(), kind) == expected


def test_a_later_version_is_refused(note: Document) -> None:
    for version in (3, 0, -1):
        made = dataclasses.replace(note, version=version)
        expected = (
            f"state must be of version 2 or before, got {version}; "
            "it was written by a later release of calibrant"
        )
        assert refusal(Document.from_bytes, made.to_bytes(), "note", 2) == expected
        assert refusal(Document.from_dict, made.to_dict(), "note", 2) == expected


def test_earlier_versions_are_read_and_tell_which_they_are(note: Document) -> None:
    for version in (1, 2):
        made = dataclasses.replace(note, version=version)
        assert Document.from_bytes(made.to_bytes(), "note", 2).version == version
        assert Document.from_dict(made.to_dict(), "note", 2).version == version


# The first format.


def in_first_format(made: Document) -> tuple[bytes, dict]:
    """Return a document as it was written at first, as bytes and as data."""
    lengths = {name: len(array) for name, array in made.arrays.items()}
    head = {"kind": made.kind, "version": 1, "settings": made.settings, "arrays": lengths}
    text = json.dumps(head, sort_keys=True).encode()
    words = b"".join(made.arrays[name].astype("<i8").tobytes() for name in sorted(made.arrays))
    data = sealed(b"calibrnt" + len(text).to_bytes(4, "little") + text + words)
    plain = made.to_dict() | {"digest": data[-16:].hex()}
    del plain["format"]
    return data, plain


@given(
    SETTINGS.filter(lambda s: all(abs(v) != np.inf for v in s.values() if v.__class__ is float)),
    ARRAYS,
)
def test_documents_of_the_first_format_are_read(settings: dict, arrays: dict) -> None:
    made = document(settings, arrays)
    data, plain = in_first_format(made)
    assert same(Document.from_bytes(data, "note"), made)
    assert same(Document.from_dict(json.loads(json.dumps(plain)), "note"), made)


def test_damage_to_the_first_format_is_noticed(note: Document) -> None:
    data, plain = in_first_format(note)
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= 1
        refusal(Document.from_bytes, altered, "note")
        refusal(Document.from_bytes, data[:place], "note")
    plain["settings"] = plain["settings"] | {"a": 2}
    text = refusal(Document.from_dict, plain, "note")
    assert text == "state must be unaltered, got data whose checksum differs"


def test_only_the_second_format_is_written(note: Document) -> None:
    assert note.to_bytes().startswith(b"calibrn2")
    assert note.to_dict()["format"] == 2


@pytest.mark.parametrize("data", [None, "text", 17, [1, 2]], ids=repr)
def test_what_is_no_dictionary_is_refused(data: object) -> None:
    text = refusal(Document.from_dict, data, "note")
    assert text == "state must be what to_dict() gave, got data without a kind"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("digest",), None),
        (("digest",), "00" * 16),
        (("settings", "a"), 2),
        (("settings", "c"), 2),
        (("arrays", "y"), [8]),
        (("arrays", "y"), [7, 0]),
        (("arrays", "z"), []),
    ],
    ids=str,
)
def test_altered_data_is_noticed(note: Document, path: tuple[str, ...], value: object) -> None:
    data = copy.deepcopy(note.to_dict())
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    text = refusal(Document.from_dict, data, "note")
    assert text == "state must be unaltered, got data whose checksum differs"


@pytest.mark.parametrize("missing", ["kind", "version", "settings", "arrays", "digest"])
def test_a_missing_part_is_noticed(note: Document, missing: str) -> None:
    data = note.to_dict()
    del data[missing]
    assert refusal(Document.from_dict, data, "note").startswith("state must be ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arrays", None),
        ("arrays", [1]),
        ("arrays", {"y": None}),
        ("arrays", {"y": ["seven"]}),
        ("arrays", {"y": [2**64]}),
        ("arrays", {"y": [[1], [1, 2]]}),
        ("arrays", {"y": 7}),
        ("settings", {"a": float("nan")}),
        ("settings", {"a": {1, 2}}),
    ],
    ids=str,
)
def test_data_that_cannot_be_a_document_is_refused(
    note: Document, name: str, value: object
) -> None:
    text = refusal(Document.from_dict, note.to_dict() | {name: value}, "note")
    assert text.startswith("state must be what to_dict() gave, got ")


def test_words_that_are_not_whole_are_refused(note: Document) -> None:
    data = note.to_dict()
    data["arrays"] = data["arrays"] | {"y": [7.25]}
    refusal(Document.from_dict, data, "note")


def test_reading_leaves_the_data_alone(note: Document) -> None:
    data = note.to_dict()
    before = copy.deepcopy(data)
    Document.from_dict(data, "note")
    assert data == before


def test_many_words_are_written_as_few_are() -> None:
    large = document({}, {"a": list(range(4097)), "b": [5]})
    data = large.to_bytes()
    assert data[-codec.DIGEST :] == codec._digest(data[: -codec.DIGEST])
    read = Document.from_bytes(data, "note")
    assert read.arrays["a"].tolist() == list(range(4097))
    assert read.arrays["b"].tolist() == [5]


def test_kinds_are_told_after_any_number_of_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MOST_KINDS", 2)
    written = [Document(f"kind {k}", {"a": k}).to_bytes() for k in range(5)]
    for _ in range(2):
        assert [codec.kind_of(data) for data in written] == [f"kind {k}" for k in range(5)]


def test_a_known_shape_does_not_vouch_for_the_rest(note: Document) -> None:
    data = bytearray(note.to_bytes())
    assert codec.kind_of(data) == "note"
    data[-1] ^= 1
    with pytest.raises(CorruptState, match="whose checksum differs"):
        Document.from_bytes(data, codec.kind_of(data))
