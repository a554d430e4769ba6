from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from hashlib import blake2b
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from interrupting import by_instruction, tracing

from calibrant.core import desk as module
from calibrant.core import region as module_of_regions
from calibrant.core.desk import Desk, name_key, number_key
from calibrant.errors import InvalidInput
from calibrant.kernels import index
from calibrant.kernels.compile import available
from calibrant.kernels.index import EMPTY, NAMED, PLAIN, machine

pytestmark = pytest.mark.base

# The slow and obvious desk.


class Naive:
    """A list of tickets (key, row, number, fields ...), looked through from end to end."""

    def __init__(self) -> None:
        self.tickets: list[tuple[Any, ...]] = []

    def get(self, key: int) -> tuple[Any, ...] | None:
        for ticket in self.tickets:
            if key in (ticket[0], number_key(*ticket[1:3])):
                return ticket
        return None

    def pop(self, key: int) -> tuple[Any, ...] | None:
        found = self.get(key)
        self.tickets = [ticket for ticket in self.tickets if ticket is not found]
        return found

    def of_row(self, row: int) -> list[tuple[Any, ...]]:
        return sorted((t for t in self.tickets if t[1] == row), key=lambda t: t[2])

    def expire(self, row: int, oldest: int) -> list[tuple[Any, ...]]:
        gone = [ticket for ticket in self.of_row(row) if ticket[2] < oldest]
        self.tickets = [ticket for ticket in self.tickets if ticket not in gone]
        return gone

    def words(self, fields: str, row: int | None = None) -> list[list[int]]:
        kept = [t for t in self.tickets if row in (None, t[1])]
        return [_words(t, fields) for t in sorted(kept, key=lambda t: t[1:3])]


def _words(ticket: tuple[Any, ...], fields: str) -> list[int]:
    rest = [
        struct.unpack("=q", struct.pack(f"={kind}", value))[0]
        for kind, value in zip(fields, ticket[3:], strict=True)
    ]
    return [ticket[0], number_key(*ticket[1:3]), *rest]


class ByDictionary(Desk):
    tools = staticmethod(lambda: None)


class BySlots(Desk):
    many = 1
    tools = staticmethod(lambda: PLAIN)


class Turning(Desk):
    many = 12
    tools = staticmethod(lambda: PLAIN)


class ByMachine(Desk):
    many = 1


UNCOMPILED: list[type[Desk]] = [ByDictionary, BySlots, Turning]
FORMS = [
    *(pytest.param(form, marks=pytest.mark.plain, id=form.__name__) for form in UNCOMPILED),
    *[ByMachine] * available(),
]


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Desks without room to spare, which grow and shrink all the time."""
    monkeypatch.setattr(module, "SMALL", 1)


def filled(form: type[Desk], count: int, first: int = 0) -> Desk:
    """A desk with tickets in rows 0 and 1, every third of them named."""
    desk = form("qd")
    for number in range(first, first + count):
        desk.add(*ticket(number))
    return desk


def ticket(number: int) -> tuple[Any, ...]:
    row = number % 2
    key = name_key(str(number)) if number % 3 == 0 else number_key(row, number)
    return key, row, number, 7 * number, number / 8


# Keys.


@pytest.mark.plain
@given(st.integers(0, 2**22 - 1), st.integers(0, 2**40 - 1), st.text())
def test_keys_of_numbers_and_names_never_meet(row: int, number: int, name: str) -> None:
    assert 0 <= number_key(row, number) < NAMED <= name_key(name) < 2**63
    hashed = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    assert name_key(name) == 2**62 + int.from_bytes(hashed, "little") // 4


@given(st.integers(0, 2**63 - 1), st.integers(1, 2**31 - 1))
def test_homes_are_slots_and_need_no_more_than_63_bits(key: int, size: int) -> None:
    assert 0 <= index.home(key, size) < size
    assert (key >> 32) * index.FIRST < 2**63
    assert index.LOW * index.SECOND < 2**63
    assert index.LOW * (index.GOLDEN + 1) < 2**63


def test_numbers_in_a_row_fall_evenly() -> None:
    slots = [index.home(number_key(5, number), 1000) for number in range(1000)]
    counts = np.bincount(slots, minlength=1000)
    assert counts.max() <= 2
    assert len(set(slots)) > 600


def test_rows_of_a_table_fall_like_dice() -> None:
    slots = [index.home(number_key(row, n), 4096) for row in range(256) for n in range(16)]
    # The number of empty slots of 4096 after as many throws: mean 4096/e, deviation below 25.
    assert abs(4096 - len(set(slots)) - 4096 / math.e) < 4 * 25


# The index against a dictionary, where keys crowd.


@pytest.mark.plain
@settings(max_examples=300)
@given(
    st.integers(2, 12),
    st.integers(1, 3),
    st.lists(st.tuples(st.booleans(), st.integers(0, 15)), max_size=40),
)
def test_an_index_does_what_a_dictionary_does(
    size: int, stride: int, steps: list[tuple[bool, int]]
) -> None:
    keys = np.zeros(16 * stride, np.int64)
    keys[::stride] = [3 * NAMED // 2 + 977 * k if k % 2 else k for k in range(16)]
    slots, model = np.full(size, EMPTY, np.int32), {}
    for adds, row in steps:
        key = int(keys[row * stride])
        if adds and key not in model and len(model) < size - 1:
            index.insert(slots, keys, stride, key, row)
            model[key] = row
        elif not adds and key in model:
            index.remove(slots, keys, stride, key)
            del model[key]
        for other in keys[::stride].tolist():
            assert index.find(slots, keys, stride, other) == model.get(other, -1)


def test_a_renamed_key_is_found_in_its_new_row() -> None:
    keys, slots = np.array([5, 6, 7], np.int64), np.full(4, EMPTY, np.int32)
    index.rebuild(slots, keys, 1, 3, 6)
    assert index.find(slots, keys, 1, 5) == -1
    slots[:] = EMPTY
    index.rebuild(slots, keys, 1, 3, 0)
    index.remove(slots, keys, 1, 5)
    index.rename(slots, keys, 1, 7, 0)
    keys[0] = 7
    assert [index.find(slots, keys, 1, key) for key in (5, 6, 7)] == [-1, 1, 0]


# A desk against the naive one.

ROWS = st.integers(0, 3)
NUMBERS = st.integers(0, 90)
NAMES = st.none() | st.sampled_from("abcdefgh")


class DeskModel(RuleBasedStateMachine):
    """A desk does what the naive one does, whatever its index is and whenever that changes."""

    form: type[Desk]

    def __init__(self) -> None:
        super().__init__()
        self.spared, module.SMALL = module.SMALL, 1
        self.desk, self.model = self.form("qd"), Naive()

    def teardown(self) -> None:
        module.SMALL = self.spared

    @rule(row=ROWS, number=NUMBERS, name=NAMES, whole=st.integers(-9, 9), real=st.floats())
    def add(self, row: int, number: int, name: str | None, whole: int, real: float) -> None:
        key = number_key(row, number) if name is None else name_key(name)
        real = 0.5 if math.isnan(real) else real
        if self.model.get(key) is None and self.model.get(number_key(row, number)) is None:
            self.desk.add(key, row, number, whole, real)
            self.model.tickets.append((key, row, number, whole, real))

    @rule(row=ROWS, first=NUMBERS, count=st.integers(1, 30))
    def add_many(self, row: int, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.add(row, number, None, number, 0.25)

    @rule(row=ROWS, number=NUMBERS)
    def get_and_pop_by_number(self, row: int, number: int) -> None:
        found = self.model.get(number_key(row, number))
        assert self.desk.get_number(row, number) == found
        assert self.desk.pop_number(row, number) == self.model.pop(number_key(row, number))

    @rule(name=NAMES)
    def get_and_pop_by_name(self, name: str | None) -> None:
        key = name_key(name or "nobody")
        assert self.desk.get(key) == self.model.get(key)
        assert self.desk.pop(key) == self.model.pop(key)

    @rule(row=ROWS, oldest=st.integers(0, 300))
    def expire(self, row: int, oldest: int) -> None:
        assert self.desk.expire(row, oldest) == self.model.expire(row, oldest)

    @rule(row=ROWS)
    def drop_row(self, row: int) -> None:
        self.desk.drop_row(row)
        self.model.tickets = [ticket for ticket in self.model.tickets if ticket[1] != row]

    @rule()
    def clear(self) -> None:
        self.desk.clear()
        self.model.tickets = []

    @rule(data=st.data())
    def go_on_with_a_desk_that_loaded_the_words(self, data: st.DataObject) -> None:
        words = self.desk.words()
        order = data.draw(st.permutations(range(len(words)))) if len(words) < 20 else None
        first, loaded = data.draw(st.integers(0, len(words))), self.form("qd")
        shuffled = words if order is None else words[list(order)]
        loaded.load(shuffled[:first])
        loaded.load(shuffled[first:])
        self.desk = loaded

    @rule()
    def go_on_with_a_copy(self) -> None:
        before, self.desk = self.desk, self.desk.copy()
        before.clear()

    @rule(count=st.integers(0, 20))
    def reserve_room_for_nothing(self, count: int) -> None:
        self.desk.reserve(count)
        self.desk.publish(self.desk.count)

    @invariant()
    def agree(self) -> None:
        assert len(self.desk) == len(self.model.tickets)
        assert self.desk.words().tolist() == self.model.words("qd")
        assert self.desk.words(1).tolist() == self.model.words("qd", 1)
        for filed in self.model.tickets[:5]:
            assert self.desk.get(filed[0]) == self.desk.get_number(*filed[1:3]) == filed


def _case(form_: type[Desk]) -> Any:
    model = type(f"{form_.__name__}Model", (DeskModel,), {"form": form_})
    case = model.TestCase
    case.settings = settings(max_examples=25, stateful_step_count=40)
    return case


TestByDictionary, TestBySlots, TestTurning = map(pytest.mark.plain, map(_case, UNCOMPILED))
if available():
    TestByMachine = _case(ByMachine)


def test_the_index_changes_over_by_itself_and_not_back_at_once(tight: None) -> None:
    desk, kinds = filled(Turning, 12), []
    kinds.append(type(desk._index).__name__)
    desk.add(*ticket(12))
    kinds.append(type(desk._index).__name__)
    for number in range(7):
        desk.pop_number(number % 2, number)
    kinds.append(type(desk._index).__name__)
    desk.pop_number(1, 7)
    kinds.append(type(desk._index).__name__)
    assert kinds == ["Dictionary", "Slots", "Slots", "Dictionary"]
    assert desk.get_number(1, 11) == ticket(11)


def test_without_a_compiler_the_index_stays_a_dictionary(tight: None) -> None:
    class Alone(Turning):
        tools = staticmethod(lambda: None)

    assert type(filled(Alone, 50)._index).__name__ == "Dictionary"


def test_a_compiler_is_asked_for_only_when_there_are_many() -> None:
    class Eager(Turning):
        @staticmethod
        def tools() -> Any:
            raise AssertionError

    desk = filled(Eager, 12)
    with pytest.raises(AssertionError):
        desk.add(*ticket(12))
    assert desk.words().tolist() == filled(ByDictionary, 12).words().tolist()


def test_the_machine_is_there_where_kernels_can_be_compiled() -> None:
    assert (machine() is not None) == available()
    assert Desk.tools() is machine()  # At hand, for it was just made.


def test_the_machine_is_made_of_the_plain_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    single = []
    monkeypatch.setattr(index, "available", lambda: True)
    monkeypatch.setattr(index, "compiled", lambda function, name: function)
    monkeypatch.setattr(index, "entry_point", lambda made: single.append(made) or made)
    assert machine.__wrapped__() == PLAIN
    assert single == [index.seek, index.put, index.take]


@pytest.mark.parametrize("form", FORMS)
def test_reals_keep_their_bits(form: type[Desk]) -> None:
    desk = form("dd")
    quiet = struct.unpack("=d", struct.pack("=Q", 0x7FF8_0000_0000_1234))[0]
    desk.add(5, 0, 5, -0.0, quiet)
    desk.add(6, 0, 6, math.inf, 5e-324)
    assert desk.words()[0, 2:].tolist() == [-(2**63), 0x7FF8_0000_0000_1234]
    assert desk.pop(6) == (6, 0, 6, math.inf, 5e-324)


@pytest.mark.parametrize("form", FORMS)
def test_a_ticket_that_cannot_be_written_changes_nothing(form: type[Desk]) -> None:
    desk = filled(form, 5)
    before = desk.words().tolist()
    with pytest.raises(struct.error):
        desk.add(9, 0, 9, 0.5, 0.5)
    with pytest.raises(struct.error):
        desk.add(9, 0, 9, 1)
    assert desk.words().tolist() == before
    assert desk.get(9) is None


# Expiry.


@pytest.mark.parametrize("form", FORMS)
def test_expiry_far_ahead_and_step_by_step_find_the_same(form: type[Desk]) -> None:
    far, near = filled(form, 400, first=10), filled(form, 400, first=10)
    gone = [found for oldest in range(381) for found in near.expire(0, oldest)]
    assert far.expire(0, 380) == gone == [ticket(n) for n in range(10, 380, 2)]
    assert far.words().tolist() == near.words().tolist()


def test_a_number_below_what_expired_can_expire_too() -> None:
    desk = Desk("")
    assert desk.expire(0, 50) == []
    desk.add(7, 0, 7)
    assert desk.expire(0, 50) == [(7, 0, 7)]


def test_a_row_that_was_dropped_begins_again() -> None:
    desk = filled(Desk, 40)
    desk.expire(1, 30)
    desk.drop_row(1)
    desk.drop_row(3)
    desk.add(number_key(1, 2), 1, 2, 0, 0.0)
    assert [found[2] for found in desk.expire(1, 5)] == [2]
    assert len(desk) == 20


def test_nothing_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, asked = filled(Desk, 100), []
    get = Desk.get
    monkeypatch.setattr(Desk, "get", lambda self, key: asked.append(key) or get(self, key))
    for oldest in (10, 10, 5, 20):
        desk.expire(0, oldest)
    assert asked == list(range(20))


# Words.


BAD = {
    "a number twice": ([[5, 5], [NAMED, 5]], "keys must differ, got 5 twice"),
    "a name twice": ([[NAMED, 6], [NAMED, 5]], f"keys must differ, got {NAMED} twice"),
    "a number that is filed": ([[1, 1]], "keys must differ, got 1 twice"),
    "a key of another number": ([[5, 6]], r"words must be of tickets, got \[5, 6\]"),
    "a negative number": ([[-1, -1]], r"words must be of tickets, got \[-1, -1\]"),
    "a name for a number": ([[NAMED, NAMED]], "words must be of tickets, got"),
    "too many columns": ([[5, 5, 5]], r"words must have 2 columns, got shape \(1, 3\)"),
    "no lines": ([5, 5], r"words must have 2 columns, got shape \(2,\)"),
}


@pytest.mark.parametrize("words", BAD)
@pytest.mark.parametrize("form", FORMS)
def test_words_of_no_desk_are_refused_and_change_nothing(form: type[Desk], words: str) -> None:
    desk = form("")
    desk.add(1, 0, 1)
    given_words, told = BAD[words]
    with pytest.raises(ValueError, match=told):
        desk.load(np.array(given_words, np.int64))
    assert desk.words().tolist() == [[1, 1]]
    assert desk.get(5) is None


def test_fields_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidInput, match="fields must be letters 'q' and 'd', got 'qx'"):
        Desk("qx")


@pytest.mark.plain
@pytest.mark.parametrize("named", [False, True])
def test_many_tickets_take_little_room(named: bool) -> None:
    desk, count = BySlots("qdddqd"), 5000
    for number in range(count):
        desk.add(name_key(str(number)) if named else number, 0, number, 1, 0.1, 0.2, 0.3, 2, 0.4)
        assert number < 2000 or desk.nbytes <= (8 * 8 * 1.125 + 12) * (number + 1)
    for number in range(count - 2000):
        desk.pop_number(0, number)
        assert desk.nbytes <= (8 * 8 * 1.125 + 12) * len(desk)


def test_the_index_of_names_grows_with_them_and_not_with_their_turnover() -> None:
    desk = BySlots("")
    for number in range(200):
        desk.add(number, 0, number)
    for number in range(200, 900):
        desk.pop_number(0, number - 200)
        desk.add(name_key(str(number)), 0, number)
    assert all(desk.get(name_key(str(n))) == desk.get_number(0, n) for n in range(700, 900))
    assert 200 < len(desk.names) < 400


def test_the_memory_of_a_dictionary_is_counted() -> None:
    desk = filled(ByDictionary, 3000)
    assert desk.nbytes > desk.flat.nbytes + 3000 * 64
    desk.expire(5, 1)
    assert desk.nbytes == filled(ByDictionary, 3000).nbytes + 8 * 6


# Large desks.


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Desks whose lines lie in a region from the ninth on, and whose dictionaries have parts."""
    monkeypatch.setattr(module, "LARGE", 8 * 32)


def held_by(desk: Desk) -> set[tuple[Any, ...]]:
    """The tickets of a desk, each found by its key and by its number."""
    words = desk.words()
    found = [desk.get(key) for key in words[:, 0].tolist()]
    assert found == [desk.get(number) for number in words[:, 1].tolist()]
    return set(found)


@pytest.mark.parametrize("form", FORMS)
def test_a_large_desk_is_the_same_desk(form: type[Desk], large: None, tight: None) -> None:
    desk, model = filled(form, 300), {ticket(n)[:3]: ticket(n) for n in range(300)}
    assert held_by(desk) == set(model.values())
    for number in [*range(0, 300, 2), *range(1, 290, 2)]:
        expected = model.pop(ticket(number)[:3])
        assert desk.pop(expected[0]) == expected
        assert desk.get_number(number % 2, number) is None
        assert held_by(desk) == set(model.values())
    assert held_by(desk.copy()) == held_by(desk)
    again = form("qd")
    again.load(desk.words())
    assert held_by(again) == held_by(desk)


@pytest.mark.parametrize("form", FORMS)
def test_lines_of_a_large_desk_stay_where_they_are(form: type[Desk], large: None) -> None:
    desk = filled(form, 40)
    flat = desk.flat
    for number in range(40, 400):
        desk.add(*ticket(number))
    for number in range(400):
        desk.pop_number(number % 2, number)
    assert desk.flat is flat
    assert len(desk) == 0
    assert desk.nbytes < 100_000


def test_a_copy_of_a_large_desk_has_lines_of_its_own(large: None) -> None:
    desk = filled(ByDictionary, 100)
    other = desk.copy()
    for number in range(90):
        desk.pop_number(number % 2, number)
    assert held_by(other) == {ticket(n) for n in range(100)}


def test_no_call_waits_for_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiling() -> None:
        raise AssertionError

    compiling.cache_info = machine.cache_info  # type: ignore[attr-defined]
    machine.cache_clear()
    monkeypatch.setattr(index, "machine", compiling)
    desk = Desk("qd")
    for number in range(Desk.many + 2):
        desk.add(*ticket(number))
    assert type(desk._index).__name__ == "Dictionary"


@pytest.mark.parametrize("refused", [False, True])
def test_a_region_has_room_to_spare_and_gives_back_what_is_not_used(
    refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if refused:
        monkeypatch.setattr(module_of_regions, "ADDRESSES", 1 << 80)
    words = module_of_regions.region(5000)
    assert len(words) >= 10_000
    words[:10_000] = 7
    module_of_regions.give_back(words, 10)
    assert words[:10].tolist() == [7] * 10
    assert refused == (words[9_999] == 7)
    module_of_regions.give_back(words, len(words))


# Loops over the arrays.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("told", [False, True])
def test_a_loop_may_work_on_the_arrays(form: type[Desk], told: bool, tight: None) -> None:
    desk, model = filled(form, 9), filled(ByDictionary, 9)
    desk.reserve(60)
    slots, names, flat, stride, count = desk.slots, desk.names, desk.flat, desk.stride, desk.count
    for number in range(9, 60):
        model.add(*ticket(number))
        flat[count * stride : (count + 1) * stride] = _words(ticket(number), "qd")
        index.put(slots, names, flat, stride, count)
        count += 1
        gone = number_key((number // 2) % 2, number // 2)
        if model.pop(gone) is not None:
            count -= 1
            assert index.take(slots, names, flat, stride, gone, count) >= 0
        assert index.take(slots, names, flat, stride, gone, count) == -1
    named = int((flat[: count * stride : stride] >= NAMED).sum())
    assert desk.flat is flat
    desk.publish(count, named if told else None)
    assert desk.words().tolist() == model.words().tolist()
    assert all(desk.pop(int(key)) == model.pop(int(key)) for key in model.words()[:, 0])
    assert len(desk) == 0


def test_room_for_names_need_not_be_reserved() -> None:
    desk = filled(BySlots, 9)
    desk.reserve(10_000, named=0)
    assert len(desk.names) < 1000 < len(desk.slots)


def test_a_dictionary_has_no_slots() -> None:
    with pytest.raises(ValueError, match="index must be reserved for a loop, got a dictionary"):
        filled(ByDictionary, 3).slots  # noqa: B018


# Interrupts.


def interrupted(work: Callable[[], Any], after: int) -> bool:
    """Interrupt ``work`` after so many instructions of the desk's; say if it came to that."""
    left = after

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        by_instruction(frame, trace)
        if event == "opcode":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    with tracing(trace):
        try:
            work()
        except KeyboardInterrupt:
            return True
    return False


def everywhere(make: Callable[[], Desk], work: Callable[[Desk], Any]) -> Iterator[Desk]:
    """Desks on which ``work`` was interrupted, at each of its instructions in turn."""
    after, desk = 0, make()
    while interrupted(lambda: work(desk), after):  # noqa: B023
        yield desk
        after, desk = after + 1, make()
    assert after > 10


def tickets_of(desk: Desk) -> set[tuple[Any, ...]]:
    """The tickets of a desk, which must find each of them, and nothing once they are gone."""
    words, copy = desk.words(), desk.copy()
    found = [desk.get(key) for key in words[:, 0].tolist()]
    assert found == [desk.get(number) for number in words[:, 1].tolist()]
    assert len(set(found)) == len(desk) == len(words)
    numbers = {number_key(n % 2, n) for n in range(60)}
    assert {key for key in numbers if desk.get(key)} == set(words[:, 1].tolist())
    for one in (copy, desk):
        assert [one.pop(key) for key in words[:, 1].tolist()] == found
        assert len(one) == 0
        assert all(one.get(key) is None for key in words[:, :2].ravel().tolist())
    return set(found)


MORE = filled(ByDictionary, 6, first=40).words()
WORKS: dict[str, Callable[[Desk], Any]] = {
    "add": lambda desk: desk.add(*ticket(20)),
    "add with a name": lambda desk: desk.add(*ticket(21)),
    "pop": lambda desk: desk.pop_number(1, 5),
    "pop with a name": lambda desk: desk.pop(name_key("6")),
    "pop the last": lambda desk: desk.pop_number(1, 11),
    "get": lambda desk: desk.get_number(1, 5),
    "length": len,
    "expire": lambda desk: desk.expire(0, 6),
    "drop a row": lambda desk: desk.drop_row(1),
    "load": lambda desk: desk.load(MORE),
    "clear": lambda desk: desk.clear(),
    "reserve": lambda desk: desk.reserve(30),
    "copy": lambda desk: desk.copy(),
}
WHOLE = {"add", "load", "clear", "reserve"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in WORKS if name != "length"])
def test_an_interrupt_does_all_or_nothing_to_each_ticket(
    form: type[Desk], name: str, tight: None
) -> None:
    make = filled(form, 12).copy
    before = tickets_of(make())
    done = make()
    WORKS[name](done)
    after = tickets_of(done)
    for desk in everywhere(make, WORKS[name]):
        seen = tickets_of(desk)
        assert before & after <= seen <= before | after
        assert name not in WHOLE or seen in (before, after)


@pytest.mark.plain
@pytest.mark.parametrize("form", [ByDictionary, BySlots])
@pytest.mark.parametrize("name", ["pop", "load", "length"])
def test_an_interrupt_of_the_repair_is_repaired(form: type[Desk], name: str, tight: None) -> None:
    make = filled(form, 12).copy

    def pop_until(after: int) -> Desk:
        desk = make()
        interrupted(lambda: desk.pop_number(0, 4), after)
        return desk

    torn = (after for after in range(99) if _is_stale(pop_until(after)))
    first = next(torn)
    for desk in everywhere(lambda: pop_until(first), WORKS[name]):
        seen = tickets_of(desk)
        assert {ticket(n) for n in (7, 8, 9, 10)} <= seen
        assert seen <= {ticket(n) for n in (*range(12), 20, *range(40, 46))}


def _is_stale(desk: Desk) -> bool:
    return desk._noted == () and desk.count == 12


@pytest.mark.plain
@pytest.mark.parametrize("work", ["add", "pop"])
def test_an_interrupt_while_the_index_changes_over_loses_nothing(work: str, tight: None) -> None:
    def make() -> Desk:
        desk = filled(Turning, 13)
        for number in range(6):
            desk.pop_number(number % 2, number)
        return desk if work == "pop" else filled(Turning, 12)

    def change(desk: Desk) -> None:
        for number in range(6, 9):
            desk.pop_number(number % 2, number) if work == "pop" else desk.add(*ticket(30 + number))

    done = make()
    before = type(done._index)
    change(done)
    assert type(done._index) is not before
    first, last = tickets_of(make()), tickets_of(done)
    for desk in everywhere(make, change):
        assert first & last <= tickets_of(desk) <= first | last


@pytest.mark.plain
def test_a_published_count_survives_an_interrupt(tight: None) -> None:
    def make() -> Desk:
        desk = filled(BySlots, 12)
        desk.reserve(3)
        desk.flat[12 * 4 : 13 * 4] = _words(ticket(12), "qd")
        index.put(desk.slots, desk.names, desk.flat, 4, 12)
        return desk

    for desk in everywhere(make, lambda desk: desk.publish(13)):
        desk.publish(13)
        assert tickets_of(desk) == {ticket(n) for n in range(13)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WORKS)
def test_whatever_comes_first_after_an_interrupt_repairs(form: type[Desk], name: str) -> None:
    torn, whole = filled(form, 12), filled(form, 12)
    _slots_of(torn)[:] = EMPTY
    torn._noted = module.STALE
    assert str(WORKS[name](torn)) == str(WORKS[name](whole)) or name == "copy"
    assert torn._noted is None
    assert tickets_of(torn) == tickets_of(whole)


def _slots_of(desk: Desk) -> Any:
    """The slots of a desk's index, if it has any, to spoil."""
    return getattr(desk._index, "slots", np.empty(0, np.int32))


# Plain and compiled.

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 60)), min_size=20, max_size=200)


@settings(max_examples=30)
@given(STEPS)
def test_plain_and_compiled_desks_have_the_same_arrays(steps: list[tuple[bool, int]]) -> None:
    plain, swift = BySlots("qd"), ByMachine("qd")
    swift.tools = machine if available() else BySlots.tools
    for adds, number in steps:
        key = number_key(number % 2, number)
        if adds and plain.get(key) is None:
            plain.add(*ticket(number))
            swift.add(*ticket(number))
        elif not adds:
            assert plain.pop(key) == swift.pop(key)
    plain.reserve(5)
    swift.reserve(5)
    for one, other in ((plain.slots, swift.slots), (plain.names, swift.names)):
        assert one.tolist() == other.tolist()
    assert plain.flat.tolist() == swift.flat.tolist()
