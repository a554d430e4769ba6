"""Tables: streams as bodies by key, and what changed since a mark."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import (
    CorruptState,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownName,
)
from calibrant.kernels import blake
from calibrant.recalibrate import body as body_module
from calibrant.recalibrate import parcel
from calibrant.recalibrate.parcel import Parcels, digests
from tests.test_table import patterns

pytestmark = pytest.mark.base

KEYS = ["north", "south", 7, "a longer name", ""]


def played(made: Any, seed: int = 3) -> Table:
    """Return a table with rounds, open tickets of both kinds, corrections and a key without any."""
    table, rng = Table(made, seed=seed), np.random.default_rng(1)
    for t in range(60):
        key = KEYS[int(rng.integers(0, 4))]
        name = f"ticket {t}" if t % 3 else None
        ticket = table.forecast(key, float(rng.random()), id=name, time=float(t))
        if t % 5:
            table.observe(ticket, t % 2)
            if t % 7 == 0:
                table.correct(ticket, 1 - t % 2)
    table.forecast("", 0.5, time=60.0)
    return table


@pytest.mark.parametrize("made", patterns())
def test_bodies_carry_streams_to_another_table(made: Any) -> None:
    table, other = played(made()), Table(made(), seed=3)
    other.forecast(7, 0.4, id="gone", time=0.0)
    for keys in ([7, "north"], ["", "a longer name", "south"]):
        other.take(keys, table.bodies(keys))
    assert {key: other.row(key) for key in KEYS} == {key: table.row(key) for key in KEYS}
    assert other.bodies(KEYS) == table.bodies(KEYS) == [table.body(key) for key in KEYS]
    assert table.bodies() == [table.body(key) for key in table]
    open_name = next(iter(sorted(f"ticket {t}" for t in (5, 10, 20, 25))))
    for each in (table, other):
        each.observe(open_name, 1)
        each.forecast("south", 0.3, time=99.0)
    assert {key: other.row(key) for key in KEYS} == {key: table.row(key) for key in KEYS}


def test_no_bodies_are_no_trouble() -> None:
    table = Table(Recalibrator(), seed=1)
    table.take([], [])
    assert table.bodies() == []
    assert table.changes(0) == []


def test_changes_tell_every_key_that_was_touched_and_no_other() -> None:
    table, copy = Table(Calibrant(max_open=9), seed=1), Table(Calibrant(max_open=9), seed=1)
    calls: list[Any] = [
        lambda: table.replay(["a", "b", "a"], [0.1, 0.2, 0.3], [0, 1, 0]),
        lambda: table.forecast("c", 0.4, id="open"),
        lambda: table.observe("open", 1),
        lambda: table.play(["b", "d"], [0, 0], ["one", "two"], [0.5, 0.6]),
        lambda: table.expire("one"),
        lambda: table.__delitem__("c"),
        lambda: table.take(["e"], [table.body("a")]),
        lambda: table.put("f", table.row("b")),
        lambda: table.correct(table.observe(table.forecast("a", 0.3), 1), 0),
        lambda: table.observe_many(["two"], [1]),
    ]
    touched = ["ab", "c", "c", "bd", "b", "c", "e", "f", "a", "d"]
    for call, keys in zip(calls, touched, strict=True):
        since = table.mark()
        call()
        found = dict(table.changes(since))
        assert "".join(sorted(found)) == keys
        for key, body in found.items():
            if body is None:
                del copy[key]
            else:
                copy.take([key], [body])
        assert {k: copy.row(k) for k in copy} == {k: table.row(k) for k in table}
    assert {key for key, _ in table.changes(0)} == set("abcdef")
    assert dict(table.changes(0))["c"] is None
    table.forecast("c", 0.5)
    assert dict(table.changes(0))["c"] == table.body("c")


def test_reading_changes_nothing() -> None:
    table = played(Recalibrator())
    since, before = table.mark(), table.to_bytes()
    table.bodies()
    table.row("north")
    table.certificates()
    table.changes(0)
    assert table.mark() == since
    assert table.to_bytes() == before
    with pytest.raises(InvalidInput, match="since must be"):
        table.changes(-1)
    with pytest.raises(UnknownName, match="key must be one that the table holds, got 'west'"):
        table.bodies(["north", "west"])


def test_a_stored_table_begins_with_marks_of_its_own() -> None:
    table = Table.from_bytes(played(Recalibrator()).to_bytes())
    assert sorted(map(str, dict(table.changes(0)))) == sorted(map(str, KEYS))
    assert table.changes(table.mark()) == []


def refused(table: Table, keys: list[Any], bodies: list[Any], error: Any, told: str) -> None:
    before, since = table.to_bytes(), table.mark()
    with pytest.raises(error, match=told):
        table.take(keys, bodies)
    assert table.to_bytes() == before
    assert table.mark() == since


def resealed(table: Table, body: bytes) -> bytes:
    """Return a body that was altered with a digest that fits."""
    digest = hashlib.blake2b(body[:-8], digest_size=8, salt=table._mark).digest()
    return body[:-8] + digest


def with_word(body: bytes, place: int, word: int) -> bytes:
    words = np.frombuffer(body, "<i8").copy()
    words[place] = word
    return words.tobytes()


def test_bodies_that_are_not_whole_are_refused_with_their_key() -> None:
    table = played(Recalibrator(resolution=4, buckets=3))
    good, bad = table.body("north"), table.body("south")
    told = "body of key 'south' must be what a table with these settings gave"
    for wrong in (
        b"",
        bad[:-1],
        bad[:-8],
        bad + bytes(8),
        bad[:40] + bytes([bad[40] ^ 1]) + bad[41:],
        resealed(table, b"\3" + bad[1:]),
        resealed(table, with_word(bad, 0, 1 | -3 << 32)),
        resealed(table, with_word(bad, 1, 1 << 40)),
    ):
        refused(table, ["north", "south"], [good, wrong], CorruptState, told)
    other = Table(Recalibrator(resolution=4, buckets=3, loss="log"), seed=3)
    refused(other, ["south"], [bad], CorruptState, told)
    refused(table, ["south"], ["text"], InvalidType, "body of key 'south' must be bytes, got str")
    refused(table, ["a", "a"], [good, good], InvalidInput, "keys must differ")
    refused(table, ["a"], [], InvalidInput, "of one length")
    refused(table, [1.5], [good], InvalidType, "key must be a string or a whole number")


def test_bodies_that_no_stream_can_have_are_refused_with_their_key() -> None:
    table = played(Recalibrator(resolution=4, buckets=3))
    body = table.body("south")
    opened = Parcels.opened(["south"], [body], 8, table._mark)
    line, last = int(opened.bodies[1][0]), len(body) // 8
    assert opened.tickets[0] >= 2
    assert opened.corrected[0] >= 1
    for place, word in ((line + 1, 1 << 30), (line + 9, 0), (line, 5), (line + 2, -1)):
        wrong = resealed(table, with_word(body, place, word))
        refused(table, ["south"], [wrong], CorruptState, "'south' must hold tickets that were iss")
    wrong = resealed(table, with_word(body, last - 3, -5))
    refused(table, ["south"], [wrong], CorruptState, "'south' must hold corrections that were made")
    wrong = resealed(table, with_word(body, 2, -1))
    refused(table, ["south"], [wrong], CorruptState, "'south' must be that of a stream, got one")


def test_a_body_with_more_tickets_than_forecasts_is_refused() -> None:
    table = Table(Recalibrator(resolution=4, buckets=1), seed=3)
    table.observe(table.forecast("a", 0.2), 1)
    table.forecast("a", 0.3)
    words = np.frombuffer(table.body("a"), "<i8")
    line = words[-9:-1].copy()
    line[:2] = 0
    more = np.concatenate([words[:-9], line, words[-9:]])
    more[1] = 2
    refused(table, ["a"], [resealed(table, more.tobytes())], CorruptState, "tickets that were iss")


def test_names_of_tickets_stay_those_of_one_key() -> None:
    table, other = Table(Recalibrator(), seed=3), Table(Recalibrator(), seed=3)
    other.forecast("a", 0.5, id="one")
    table.forecast("b", 0.5, id="one")
    told = "of another key, got one in the body of key 'a'"
    refused(table, ["a"], [other.body("a")], RepeatedTicket, told)
    refused(Table(Recalibrator(), seed=3), ["c", "a"], [other.body("a")] * 2, RepeatedTicket, told)
    table.take(["b"], [other.body("a")])
    assert table.row("b") == other.row("a")
    other.take(["a"], [other.body("a")])
    assert table.row("b") == other.row("a")


class Boom(BaseException):
    pass


def test_an_interrupted_take_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    table = played(Recalibrator())
    whole, cut = Table(Recalibrator(), seed=3), Table(Recalibrator(), seed=3)
    for each in (whole, cut):
        each.forecast("north", 0.5, id="goes")
    whole.take(table, table.bodies())
    install, done = Table._install, list[bool]()

    def boom(*told: Any) -> None:
        install(*told)
        if not done:
            done.append(True)
            raise Boom

    monkeypatch.setattr(Table, "_install", boom)
    with pytest.raises(Boom):
        cut.take(table, table.bodies())
    assert cut.to_bytes() == whole.to_bytes()


def test_digests_of_the_kernel_are_those_of_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, salt = np.random.default_rng(1), bytes(range(16))
    words = rng.integers(-(2**63), 2**63 - 1, 400)
    starts = np.tile([0, 3, 20, 50, 100, 200, 7], 5)
    ends = starts + np.tile([0, 1, 15, 16, 17, 64, 100], 5)
    assert len(starts) > 2 * blake.LANES
    expected = digests(words, starts, ends, salt)

    def plain(*told: Any) -> None:
        made = [0] * len(told[-1])
        blake.digest(*(each.tolist() for each in told[:-1]), made)
        told[-1][:] = made

    monkeypatch.setattr(parcel, "MANY", 0)
    monkeypatch.setattr(blake, "machine", lambda: plain)
    assert digests(words, starts, ends, salt).tolist() == expected.tolist()


def test_there_are_kernels_where_there_is_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blake.machine.__wrapped__() is None or blake.available()
    monkeypatch.setattr(blake, "available", lambda: True)
    monkeypatch.setattr(blake, "compiled", lambda function, name, nogil: function)
    assert blake.machine.__wrapped__() is blake.digest


def test_many_bodies_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(Recalibrator(resolution=4, buckets=3), seed=3)
    keys = np.arange(40) % 17
    table.replay(keys, np.linspace(0.0, 1.0, 40), keys % 2)
    for t in range(9):
        table.forecast(t, 0.5)
    expected = table.bodies()
    monkeypatch.setattr(body_module, "AT_ONCE", 5)
    other = Table(Recalibrator(resolution=4, buckets=3), seed=3)
    other.take(table, expected)
    assert other.bodies() == expected
    assert other == table


def test_tickets_of_few_rows_are_looked_up_among_many() -> None:
    table = Table(Recalibrator(resolution=4, buckets=1), seed=3)
    table.forecast_many(np.arange(700) % 300, np.full(700, 0.5))
    table.forecast(7, 0.4, id="name")
    table.observe((7, 1), 1)
    table.observe((7, 0), 0)
    lone = Recalibrator(resolution=4, buckets=1, seed=3, key=7)
    tickets = [lone.forecast(0.5) for _ in range(3)]
    lone.forecast(0.4, id="name")
    lone.observe(tickets[1], 1)
    lone.observe(tickets[0], 0)
    assert len(table._open_lines(np.array([7]))) == 2
    assert len(table._open_lines(np.arange(300))) == 699
    assert table.row(7) == lone.to_bytes()
    assert table.body(7) == table.bodies()[7]


def before(name: str) -> tuple[Table, dict[str, bytes]]:
    """A table as that of a file, without keys, and the bodies that were written then."""
    folder = Path(__file__).parent / "golden" / "files" / "v1"
    told = json.loads((folder / f"bodies_{name}.json").read_text())
    table = Table.open(folder / f"snapshot_{name}")
    for key in list(table):
        del table[key]
    return table, {key: bytes.fromhex(body) for key, body in told.items()}


@pytest.mark.parametrize("name", ["recalibrator", "calibrant"])
def test_bodies_of_both_forms_are_taken_together(name: str) -> None:
    (table, old), (other, _) = before(name), before(name)
    table.take(list(old), list(old.values()))
    new = {key: table.body(key) for key in table}
    assert all(body[0] == 2 for body in new.values())
    assert all(body[0] == 1 for body in old.values())
    mixed = {key: (new if number % 2 else old)[key] for number, key in enumerate(old)}
    other.take(list(mixed), list(mixed.values()))
    assert {key: other.body(key) for key in other} == new


def test_a_body_of_the_first_form_that_no_stream_can_have_is_refused_with_its_key() -> None:
    table, old = before("recalibrator")
    first, second, *_ = old
    wrong = resealed(table, with_word(old[second], 2, -1))
    told = f"'{second}' must be that of a stream, got one"
    refused(table, [first, second], [old[first], wrong], CorruptState, told)


@pytest.mark.parametrize("how", ["correct", "put", "take"])
@pytest.mark.parametrize("budget", [None, 0.01])
def test_an_outcome_is_learned_alike_whatever_was_done_to_the_row_since(how, budget) -> None:
    table = Table(Calibrant(seed=1, raw_safe=budget), seed=5)
    first = table.observe(table.forecast("a", 0.42), 0)
    waiting = table.forecast("a", 0.11)
    if how == "correct":
        table.correct(first, 1)
    elif how == "put":
        table.put("a", table.row("a"))
    else:
        table.take(["a"], [table.body("a")])
    again = Table.from_bytes(table.to_bytes())
    table.observe(waiting, 1)
    again.observe(waiting, 1)
    assert again == table
    assert again["a"] == table["a"]
