"""Tables: loops over rows as plain Python runs them, damage, and calls that go wrong midway."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.classes import ClassCalibrant, OneVsRest
from calibrant.core import together
from calibrant.core.codec import Document
from calibrant.core.desk import Desk
from calibrant.errors import CalibrantError, CorruptState, InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.kernels import bodies, rounds, tables
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate import body as body_module
from calibrant.recalibrate import keyed_parts
from calibrant.recalibrate.keyed import KeyedPending, Keys
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.table import Table as TableClass
from calibrant.regression import curves

pytestmark = pytest.mark.base


def viewed(function: Any, name: str = "", nogil: bool = False) -> Any:
    """Return a kernel that works on fast views of arrays, as plain code does."""

    def called(*arguments: Any) -> Any:
        return function(*(a.data if i < 2 else a for i, a in enumerate(arguments)))

    return called


def same(function: Any, name: str = "", nogil: bool = False) -> Any:
    return function


def small() -> Recalibrator:
    return Recalibrator("anchored", resolution=4, buckets=2)


def columns(rows: int = 60) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    raw = rng.random(rows)
    return rng.integers(0, 5, rows), raw, (rng.random(rows) < raw).astype(int)


@pytest.fixture
def plain_loops(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let tables use the loops over rows that would be compiled, as they are."""
    monkeypatch.setattr(rounds, "available", lambda: True)
    monkeypatch.setattr(tables, "compiled", viewed)
    program = Table(small(), seed=1)._rows.program
    before = program.__dict__.pop("rows", None)
    made = program.rows
    yield made
    program.__dict__.pop("rows")
    if before is not None:
        program.__dict__["rows"] = before


def test_loops_over_rows_play_as_row_by_row(plain_loops: Any) -> None:
    keys, raw, outcomes = columns()
    looped, simple = Table(small(), seed=1), Table(small(), seed=1)
    late = np.arange(60.0) + 7.0
    program = simple._rows.program
    runs = []
    for table, loops in ((looped, plain_loops), (simple, None)):
        program.__dict__["rows"] = loops
        if loops is None:
            program.__dict__.pop("rows")
        one = table.replay(keys, raw, outcomes)
        two = table.replay(keys, raw, outcomes, available=late)
        runs.append((one.forecast, one.mean, one.ticket, two.forecast, two.mean))
    program.__dict__["rows"] = plain_loops
    for mine, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert looped == simple


def test_without_a_compiler_there_are_no_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "available", lambda: False)
    monkeypatch.setattr(bodies, "available", lambda: False)
    assert rounds.Program.rows.func(Table(small(), seed=1)._rows.program) is None
    assert bodies.machine_of_rows.__wrapped__() is None
    monkeypatch.setattr(bodies, "available", lambda: True)
    monkeypatch.setattr(bodies, "compiled", same)
    assert bodies.machine_of_rows.__wrapped__() == (bodies.unpack_rows, bodies.pack_rows)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_batches_are_sorted_by_row_in_either_way(
    monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    rows = np.array([3, 0, 3, 5, 0, 3])
    plain = keyed_parts.Parts.of(rows, 7)
    monkeypatch.setattr(keyed_parts, "available", lambda: True)
    monkeypatch.setattr(keyed_parts, "compiled", same)
    monkeypatch.setattr(keyed_parts, "SHORT", 0)
    monkeypatch.setattr(together, "WORTH", 2)
    counted = keyed_parts.Parts.of(rows, 7, jobs)
    assert plain.order.tolist() == [1, 4, 0, 2, 5, 3]
    assert plain.rows.tolist() == [0, 3, 5]
    assert plain.bounds.tolist() == [0, 2, 5, 6]
    for name in ("rows", "order", "bounds"):
        assert getattr(plain, name).tolist() == getattr(counted, name).tolist()


def test_bodies_of_many_rows_are_packed_in_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(Calibrant(), seed=1)
    table.replay(*columns())
    one_by_one = table.to_bytes()
    loops = bodies.unpack_rows, bodies.pack_rows
    monkeypatch.setattr(bodies, "machine_of_rows", lambda: loops)
    monkeypatch.setattr(body_module, "MANY", 0)
    monkeypatch.setattr(body_module, "AT_ONCE", 2)
    assert table.to_bytes() == one_by_one
    again = Table.from_bytes(one_by_one)
    assert again == table
    assert again.row(3) == table.row(3)
    with pytest.raises(CorruptState, match="key number 1"):
        Table._from_document(altered(table, "bodies", lambda words: broken(words, table)))


def altered(table: Table, name: str, change: Any) -> Document:
    document = table._document()
    return replace(document, arrays=document.arrays | {name: change(document.arrays[name])})


def broken(words: Any, table: Table) -> Any:
    """Return bodies of which the second says nothing that a row could have."""
    sizes = table._document().arrays["sizes"][1:]
    told = words.copy()
    told[sizes[0] : sizes[0] + sizes[1]] = -1
    return told


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("sizes", lambda w: np.append(w, 1), "bodies that are not those of"),
        ("sizes", lambda w: w - 1, "Expecting|bodies|delimiter|keys"),
        ("bodies", lambda w: w[:-1], "bodies that are not those of"),
        ("bodies", lambda w: w * 0 - 1, "key number 0"),
        ("tickets", lambda w: w + (np.arange(len(w)) % 8 == 1) * (9 << 40), "keys that are not"),
        ("tickets", lambda w: w + (np.arange(len(w)) % 8 == 1) * 99, "never issued|tickets"),
        ("corrected", lambda w: w + np.array([9, 0, 0]), "keys that are not there"),
        ("corrected", lambda w: w + np.array([0, 99, 0]), "never made"),
    ],
)
def test_a_damaged_table_is_refused(name: str, change: Any, told: str) -> None:
    table = Table(small(), seed=1)
    table.replay(*columns())
    ticket = table.observe(table.forecast(1, 0.5), 1)
    table.correct(ticket, 0)
    table.forecast(2, 0.5)
    assert Table._from_document(table._document()) == table
    with pytest.raises(CalibrantError, match=told):
        Table._from_document(altered(table, name, change))


def test_a_body_whose_rounds_do_not_add_up_is_refused() -> None:
    table = Table(small(), seed=1)
    table.replay(*columns())
    own = table._words(0)
    own[ISSUED] += 1
    with pytest.raises(CorruptState, match=r"in the blocks where \d+ were made|is not of a row"):
        Table._from_document(table._document())
    own[ISSUED] -= 1
    own[ROUNDS] = own[ISSUED] + 1
    with pytest.raises(CorruptState, match=r"outcomes of \d+ forecasts|is not of a row"):
        Table._from_document(table._document())


# -------------------------------------------------------------- what goes wrong midway


class Boom(BaseException):
    """What comes from elsewhere."""


def after(function: Any) -> Any:
    """Return a function that does its work and then goes wrong, the first time."""
    done: list[bool] = []

    def called(*arguments: Any, **more: Any) -> Any:
        made = function(*arguments, **more)
        if not done:
            done.append(True)
            raise Boom
        return made

    return called


def waiting() -> Table:
    table = Table(Recalibrator(resolution=4, buckets=2, max_open=3), seed=1)
    table.forecast_many(["a", "b", "a"], [0.1, 0.2, 0.3], id=["one", None, "two"])
    return table


def test_a_batch_that_goes_wrong_midway_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Playing is many steps here, whether or not something was compiled before.
    monkeypatch.setattr(TableClass, "_machine", lambda self, rounds: None)
    table = waiting()
    before = table.to_bytes()
    keys, raw, outcomes = ["a", "new", "b", "a", "a"], [0.1, 0.4, 0.7, 0.9, 0.2], [0, 1, 0, 1, 1]
    monkeypatch.setattr(TableClass, "_expire_rows", after(TableClass._expire_rows))
    with pytest.raises(Boom):
        table.replay(keys, raw, outcomes)
    assert table.to_bytes() == before
    monkeypatch.setattr(TableClass, "_open", after(TableClass._open))
    with pytest.raises(Boom):
        table.replay(keys, raw, outcomes, available=[0.0, 9.0, 2.0, 9.0, 9.0])
    assert table.to_bytes() == before
    monkeypatch.setattr(TableClass, "_admit", after(TableClass._admit))
    with pytest.raises(Boom):
        table.play(["new"], [0], [None], [0.4])
    assert table.to_bytes() == before


def at_first(function: Any) -> Any:
    """Return a function that goes wrong before it does anything, the first time."""
    done: list[bool] = []

    def called(*arguments: Any, **more: Any) -> Any:
        if not done:
            done.append(True)
            raise Boom
        return function(*arguments, **more)

    return called


@pytest.mark.parametrize(("owner", "name"), [(TableClass, "_admit"), (Desk, "pop_number")])
def test_a_batch_that_hardly_begins_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    # Machine code plays a batch in one step, which is finished whatever comes.
    monkeypatch.setattr(TableClass, "_machine", lambda self, rounds: None)
    table = waiting()
    before = table.to_bytes()
    monkeypatch.setattr(owner, name, at_first(getattr(owner, name)))
    with pytest.raises(Boom):
        table.play(["new", None], [0, 1], [None, "one"], [0.4, 1])
    assert table.to_bytes() == before


def test_a_batch_of_one_step_is_finished(monkeypatch: pytest.MonkeyPatch, plain_loops: Any) -> None:
    keys, raw, outcomes = columns()
    whole, cut = Table(small(), seed=1), Table(small(), seed=1)
    late = np.arange(60.0) + 7.0
    for table in (whole, cut):
        table.replay(keys, raw, outcomes)
    whole.replay(keys, raw, outcomes, available=late)
    monkeypatch.setattr(TableClass, "_play_events", after(TableClass._play_events))
    with pytest.raises(Boom):
        cut.replay(keys, raw, outcomes, available=late)
    assert cut.to_bytes() == whole.to_bytes()
    before = cut.to_bytes()
    monkeypatch.setattr(TableClass, "_admit", after(TableClass._admit))
    with pytest.raises(Boom):
        cut.replay([*keys, 99], [*raw, 0.5], [*outcomes, 1], available=[*late, 99.0])
    assert cut.to_bytes() == before


def test_corrections_expiry_and_keys_that_go_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    table = waiting()
    ticket = table.observe("one", 1)
    corrected = waiting()
    corrected.correct(corrected.observe("one", 1), 0)
    monkeypatch.setattr(TableClass, "_take_row", after(TableClass._take_row))
    with pytest.raises(Boom):
        table.correct(ticket, 0)
    assert table.to_bytes() == corrected.to_bytes()
    monkeypatch.setattr(Recalibrator, "correct", after(lambda *told, **more: None))
    with pytest.raises(Boom):
        table.correct(ticket, 1)
    assert table.to_bytes() == corrected.to_bytes()
    monkeypatch.undo()
    monkeypatch.setattr(Rows, "forget", after(Rows.forget))
    with pytest.raises(Boom):
        table.expire("two")
    assert table.to_bytes() == corrected.to_bytes()
    monkeypatch.setattr(Desk, "pop_number", after(Desk.pop_number))
    with pytest.raises(Boom):
        table.expire("two")
    corrected.expire("two")
    assert table.to_bytes() == corrected.to_bytes()
    monkeypatch.setattr(TableClass, "_free_row", after(TableClass._free_row))
    with pytest.raises(Boom):
        del table["a"]
    del corrected["a"]
    assert table.to_bytes() == corrected.to_bytes()
    assert table._free == corrected._free == [0]


def test_room_that_was_made_is_used_whatever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(small(), seed=1)
    monkeypatch.setattr(Rows, "use_views", after(Rows.use_views))
    table.forecast("a", 0.5)
    with pytest.raises(Boom):
        table.forecast("b", 0.5)
    assert list(table) == ["a"]
    table.forecast("b", 0.5)
    assert table["b"].issued == table["a"].issued == 1


def test_a_held_ticket_of_a_timed_rule_needs_its_time() -> None:
    table = Table(Recalibrator("fading", unit="time", half_life=9.0), seed=1)
    table.forecast("a", 0.5, time=1.0)
    table._desk.pop_number(0, 0)
    lone = Recalibrator("fading", unit="time", half_life=9.0, seed=1, key="a")
    ticket = lone.forecast(0.5, time=1.0)
    table._desk.add(0, 0, 0, *(np.nan if k == 3 else f for k, f in enumerate(ticket.fields)))
    pending = KeyedPending(["a"], np.array([0]), np.array([1.5]), np.array([1], np.uint8))
    assert len(pending) == 1
    with pytest.raises(InvalidInput, match="time must be given"):
        table.replay(["a"], [0.5], [1], time=[2.0], carry=pending)


def test_strings_of_numpy_are_keys() -> None:
    assert Keys.of([np.str_("b"), "a"]).names == ["b", "a"]
    assert Keys.of([np.int64(3), 4, 3]).names == [3, 4]
    assert type(Keys.of([np.int64(3), 4, 3]).names[0]) is int


def test_promises_of_rules_that_promise_something_else_are_translated() -> None:
    table = Table(Recalibrator("exponential_regret", resolution=4, buckets=1), seed=1)
    table.replay(["a"] * 300, np.full(300, 0.5), np.arange(300) % 2)
    assert table.certificates().promised[0] > 0.0


# --------------------------------------------------------------------------- other kinds


def test_a_front_learns_with_its_recalibrators_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vector = [0.6, 0.3, 0.1]
    done = ClassCalibrant(3, seed=1)
    done.observe(done.forecast(vector), 2)
    rec = ClassCalibrant(3, seed=1)
    ticket = rec.forecast(vector)
    before = rec.to_bytes()
    monkeypatch.setattr(
        rec._mixture.__class__, "learn_blend", after(type(rec._mixture).learn_blend)
    )
    with pytest.raises(Boom):
        rec.observe(ticket, 2)
    assert rec.to_bytes() == before
    monkeypatch.setattr(Rows, "learn_parts", after(Rows.learn_parts))
    with pytest.raises(Boom):
        rec.observe(ticket, 2)
    assert rec.to_bytes() == done.to_bytes()


def test_notes_of_an_older_forecast_take_nothing_back() -> None:
    rec = OneVsRest(3, seed=1)
    rec.forecast([0.6, 0.3, 0.1])
    before = rec.to_bytes()
    rec._take_back(5, 0)
    assert rec.to_bytes() == before


def test_groups_that_came_since_go_in_either_form() -> None:
    rec = GroupRecalibrator(resolution=4, buckets=1, seed=1)
    rec.observe(rec.forecast(0.5, groups=["a"]), 1)
    arena = rec._arena
    arena.flat()
    size = len(arena.flat())
    arena.grow(2)
    arena.shrink(size)
    assert len(arena.flat()) == size


def test_many_numbers_go_through_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(flat: Any, found: Any) -> None:
        for k, x in enumerate(flat):
            found[k] = 2.0 * x

    assert curves.each(double, np.array([[1.0, 2.0]])).tolist() == [[2.0, 4.0]]
    monkeypatch.setattr(curves, "machine_for", lambda kernel, name, size: kernel)
    assert curves.each(double, np.array([[1.0, 2.0]])).tolist() == [[2.0, 4.0]]
