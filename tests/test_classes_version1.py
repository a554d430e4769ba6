"""States over classes that the first version wrote: taken over whole, or refused."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

from calibrant.classes import OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput

STATES = Path(__file__).parent / "golden" / "states" / "v1"
KINDS = {
    "one_vs_rest_calibrant": OneVsRest,
    "one_vs_rest_divide": OneVsRest,
    "top_label_calibrant": TopLabel,
    "top_label_alone": TopLabel,
    "simplex": SimplexRecalibrator,
}
each = pytest.mark.parametrize("name", KINDS)


def document_of(name: str) -> Document:
    text = json.loads((STATES / f"{name}.json").read_text())["bytes"]
    return Document.from_bytes(zlib.decompress(b64decode(text)), KINDS[name].kind, 2)


def read(name, settings=None, arrays=None):
    found = document_of(name)
    told = found.settings | (settings or {}), found.arrays | (arrays or {})
    return KINDS[name]._from_document(Document(found.kind, *told, 1))


@each
def test_a_state_of_the_first_version_is_written_as_the_present_one(name) -> None:
    rec = read(name)
    assert rec._document().version == rec.version == 3
    assert KINDS[name].from_bytes(rec.to_bytes()) == rec
    assert (rec.issued, rec.rounds, rec.open) == (12, 8, 4)


@each
def test_a_ticket_of_the_first_version_does_not_know_its_coin(name) -> None:
    rec = read(name)
    ticket = rec.observe("named", 1)
    with pytest.raises(InvalidInput, match=r"must be the one that forecast\(\) returned"):
        rec.coin_of(ticket)
    assert rec.correct(ticket, 0).outcome == 0


@each
@pytest.mark.parametrize(
    "change",
    [
        {"classes": 1},
        {"secret": "zz"},
        {"secret": "00"},
        {"max_open": 0},
        {"issued": -1},
        {"issued": 11},
        {"learned": 99},
        {"lag": -1},
        {"names": None},
        {"own": {}},
    ],
)
def test_a_state_of_the_first_version_that_makes_no_sense_is_refused(name, change) -> None:
    with pytest.raises(CorruptState):
        read(name, change)


@each
def test_a_ticket_that_nothing_inside_waits_for_is_refused(name) -> None:
    waiting = document_of(name).arrays["waiting"].copy()
    waiting[2] = 99
    with pytest.raises(CorruptState, match="tickets that "):
        read(name, arrays={"waiting": waiting})


def test_a_recalibrator_of_another_inside_is_refused() -> None:
    arrays = document_of("one_vs_rest_divide").arrays
    with pytest.raises(CorruptState, match="rows of its own, got another's at 1"):
        read("one_vs_rest_divide", arrays={"engine 1": arrays["engine 0"]})


def test_recalibrators_that_differ_inside_are_refused() -> None:
    other = document_of("one_vs_rest_calibrant").arrays["template"]
    with pytest.raises(CorruptState):
        read("one_vs_rest_divide", arrays={"template": other})
    other = document_of("top_label_alone").arrays["engine 0"]
    with pytest.raises(CorruptState, match="differ in their settings"):
        read("one_vs_rest_divide", arrays={"engine 1": other})


@pytest.mark.parametrize(
    ("array", "words"),
    [("cells", [99, 12]), ("cells", [0, 0]), ("counts", [0, -1, 0, 1]), ("counts", [5, 0, 0, 1])],
)
def test_cells_of_the_first_version_that_cannot_be_are_refused(array, words) -> None:
    with pytest.raises(CorruptState):
        read("simplex", arrays={array: np.array(words, np.int64)})


@pytest.mark.parametrize("name", [name for name in KINDS if name != "simplex"])
def test_a_state_of_the_first_version_before_its_first_round_is_a_new_one(name) -> None:
    found = document_of(name)
    counts = {"issued": 0, "learned": 0, "lag": 0, "names": {}}
    kept = {"template": found.arrays["template"], "waiting": np.zeros(0, np.int64)}
    rec = KINDS[name]._from_document(Document(found.kind, found.settings | counts, kept, 1))
    assert (rec.issued, rec.rounds, rec.open) == (0, 0, 0)
    # Draws follow from the secret alone, as those of the state that was played.
    raw, again = np.full(rec.classes, 1 / rec.classes), KINDS[name].from_bytes(rec.to_bytes())
    assert (rec.forecast(raw).value == again.forecast(raw).value).all()
    assert rec._secret == read(name)._secret
