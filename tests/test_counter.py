"""The counter of a stream: tickets that are found, settled, expired, foreign, altered, unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from calibrant import Calibrant, Recalibrator
from calibrant.core.desk import Desk, name_key
from calibrant.core.grid import Grid
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.kernels.layout import EXCESS, RESERVED, pack
from calibrant.recalibrate import closed as module
from calibrant.recalibrate import counter
from calibrant.recalibrate.closed import EXPIRED, SETTLED, Closed
from calibrant.recalibrate.counter import Counter
from calibrant.transforms import BucketMeans, ExpertMixture, Identity

pytestmark = pytest.mark.base

MINE = Issuer("mine", Grid("endpoints", 20))
FIELDS = "qdddqd"


def ticket(number: int, id: int | str | None = None, raw: float = 0.25) -> Ticket:
    name = number if id is None else id
    return Ticket(MINE, name, number, pack(0, 1 + number % 20, 1), 0.75, raw, None, number, None)


def empty(max_open: int = 1000) -> Counter[Ticket]:
    return Counter(Ticket, MINE, MINE.fingerprint, FIELDS, max_open)


def counter_of(count: int, max_open: int = 1000) -> tuple[Counter[Ticket], list[Ticket]]:
    book, tickets = empty(max_open), [ticket(k) for k in range(count)]
    for made in tickets:
        book.hand_out(made)
        book.expire(made.number + 1)
    return book, tickets


def refusal(error: type[Exception], call: object, *args: object) -> str:
    with pytest.raises(error) as refused:
        call(*args)
    assert type(refused.value) is error
    return str(refused.value)


# Found.


@pytest.mark.parametrize("count", [1, 2, 257, 800])
def test_every_ticket_is_found_by_itself_by_its_number_and_by_a_copy(count: int) -> None:
    book, tickets = counter_of(count)
    assert len(book) == count
    for made in tickets:
        copy = Ticket.from_dict(made.to_dict())
        for told in (made, made.id, np.int64(made.number), np.uint16(made.number), copy):
            found = book.find(told, count)
            assert (found.number, found.place, found.weight) == (made.number, made.place, 0.75)
            assert (found.raw, found.clock, found.time) == (0.25, made.number, None)
        assert book.find(made, count) is made
    assert len(book) == count


def test_the_latest_ticket_waits_at_hand_and_those_before_it_are_near() -> None:
    book, tickets = counter_of(3)
    assert book.latest is tickets[2]
    assert len(book.desk) == 0
    assert book.find(tickets[2], 3) is tickets[2]
    assert book.latest is tickets[2]
    assert book.find(tickets[0], 3) is tickets[0]
    book.close(tickets[2])
    assert (book.latest, len(book.desk), len(book)) == (None, 0, 2)
    book.file_all()
    assert (len(book.desk), len(book)) == (2, 2)
    book.hand_out(ticket(3))
    assert book.find(3, 4).number == 3
    assert (book.latest, len(book.desk), len(book)) == (None, 2, 3)


@pytest.mark.parametrize("count", [65, 66, 67, 82, 83, 300])
def test_the_oldest_of_too_many_near_tickets_are_filed(count: int) -> None:
    book, tickets = empty(), [ticket(k, f"name {k}" if k % 3 else None) for k in range(count)]
    for made in tickets:
        book.hand_out(made)
    # The latest, 49 to 64 near ones, and the others, which are older.
    near = len(book) - len(book.desk) - 1
    assert near == count - 1 if count <= 65 else 64 - 16 <= near <= 64
    assert sorted(line[1] for line in book.desk.words()) == list(range(count - 1 - near))
    for made in tickets:
        assert book.find(made, count) is made
        assert book.find(made.id, count).fields == made.fields
        assert book.find(made.number, count).id == made.number
    words = book.words().reshape(-1, 8)
    assert words[:, 1].tolist() == list(range(count))
    names = [book.desk.get(name_key(made.id)) for made in tickets if isinstance(made.id, str)]
    assert [found[2] for found in names] == [k for k in range(count) if k % 3]


def test_a_near_ticket_that_was_altered_is_refused() -> None:
    book, tickets = counter_of(5)
    for change in ({"weight": 0.5}, {"raw": 0.5}):
        altered = Ticket.from_dict(tickets[1].to_dict() | change)
        refusal(ForeignTicket, book.find, altered, 5)
    foreign = Ticket.from_dict(tickets[1].to_dict() | {"issuer": "another"})
    refusal(ForeignTicket, book.find, foreign, 5)
    assert book.find(tickets[1], 5) is tickets[1]


def test_a_name_is_free_again_once_its_near_ticket_is_closed() -> None:
    for number_or_name in (0, "a"):
        book = empty()
        book.hand_out(ticket(0, "a"))
        book.hand_out(ticket(1))
        book.hand_out(ticket(2))
        refusal(RepeatedTicket, book.refuse_open, "a")
        book.close(book.find(number_or_name, 3))
        book.refuse_open("a")
        refusal(RepeatedTicket, book.find, "a", 3)
        book.hand_out(ticket(3, "a"))
        book.move_on()
        assert book.find("a", 4).number == 3
        book.close(book.find("a", 4), EXPIRED)
        refusal(ExpiredTicket, book.find, "a", 4)


def test_a_closed_ticket_is_gone_wherever_it_was() -> None:
    book, tickets = counter_of(400)
    for made in tickets[::-3]:
        book.close(book.find(made, 400))
    assert len(book) == 400 - len(tickets[::-3])
    for made in tickets[::-3]:
        for told in (made, made.id):
            text = refusal(RepeatedTicket, book.find, told, 400)
            assert text == f"ticket {made.id} must be open, got one whose outcome is known"
    made._outcome = 1
    assert refusal(RepeatedTicket, book.find, made, 400) == (
        f"ticket {made.id} must be open, got one whose outcome 1 is known; "
        "use correct() to replace it"
    )


def test_a_name_is_found_until_it_is_closed_and_then_said_to_be_settled() -> None:
    book = empty()
    book.hand_out(ticket(0, "a"))
    assert refusal(RepeatedTicket, book.refuse_open, "a") == (
        "id must not be that of an open ticket, got 'a'"
    )
    book.refuse_open("b")
    assert book.find("a", 1).number == book.find(0, 1).number == 0
    book.close(book.find("a", 1))
    book.refuse_open("a")
    text = refusal(RepeatedTicket, book.find, "a", 1)
    assert text == "ticket 'a' must be open, got one whose outcome is known"
    text = refusal(UnknownTicket, book.find, "b", 1)
    assert text == "ticket must be one that is open here, got 'b'"


def test_only_so_many_names_of_closed_tickets_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSED", 5)
    book = empty()
    for k in range(12):
        book.hand_out(ticket(k, f"name {k}"))
        book.close(book.find(f"name {k}", k + 1))
        assert len(book._closed) == min(k + 1, 5)
    refusal(RepeatedTicket, book.find, "name 7", 12)
    refusal(UnknownTicket, book.find, "name 6", 12)


def test_what_no_key_can_be_was_never_closed() -> None:
    closed = Closed()
    closed.note(0, SETTLED)
    closed.note((1 << 63) - 1, EXPIRED)
    assert (closed.get(0), closed.get((1 << 63) - 1)) == (SETTLED, EXPIRED)
    assert closed.get(-1) is closed.get(1 << 63) is closed.get(1 << 64) is None


@pytest.mark.parametrize("piece", [1, 2, 5, 100])
@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 19, 20, 33])
def test_the_latest_of_a_key_counts_among_those_that_are_remembered(
    piece: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSED", 10)
    monkeypatch.setattr(module, "PIECE", piece)
    closed, told = Closed(), []
    for k in range(count):
        told.append((k * k % 7, EXPIRED if k % 3 else SETTLED))
        closed.note(*told[-1])
    assert [closed.get(key) for key in range(8)] == [dict(told[-10:]).get(k) for k in range(8)]


def test_what_became_of_tickets_in_a_batch_that_is_undone_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSED", 5)
    for before in (0, 4, 9):
        book = empty()
        for k in range(40):
            book.hand_out(ticket(k, f"name {k}"))
        for k in range(before):
            book.close(book.find(k, 40))
        known = [book._fate(name_key(f"name {k}")) for k in range(40)]
        open_now = book.words().tolist()
        book.follow()
        for k in range(before, 40):
            book.close(book.find(k, 40))
        # Tickets of the batch itself, open and closed, near and filed, were never there.
        for k in range(40, 44):
            book.hand_out(ticket(k))
            if k == 41:
                book.file_all()
        for k in (40, 42):
            book.close(book.find(k, 44))
        book.undo(40)
        book.follow_no_more()
        assert [book._fate(name_key(f"name {k}")) for k in range(40)] == known
        assert book.words().tolist() == open_now
        # What a batch closed that came to its end is remembered, and of it the latest only.
        book.follow()
        for k in range(before, 40):
            book.close(book.find(k, 40))
        book.follow_no_more()
        kept = [k for k in range(40) if book._fate(name_key(f"name {k}")) is SETTLED]
        assert kept == [35, 36, 37, 38, 39]
        assert len(book._closed._words) < 2 * 5


@pytest.mark.parametrize("id", [1.0, None, True, np.bool_(True), [], b"a", (1,)], ids=repr)
def test_what_is_no_id_is_refused(id: object) -> None:
    book, _ = counter_of(3)
    text = refusal(InvalidType, book.find, id, 3)
    assert text == f"ticket must be a Ticket or its id, got {id!r}"


@pytest.mark.parametrize("id", [3, -1, 10**30, -(10**30), "x", "0"])
def test_what_was_never_issued_is_unknown(id: object) -> None:
    for count in (3, 300):
        book, _ = counter_of(count)
        if id != 3 or count == 3:
            text = refusal(UnknownTicket, book.find, id, count)
            assert text == f"ticket must be one that is open here, got {id!r}"


def test_a_number_is_not_the_key_of_a_name() -> None:
    book = empty()
    for k in range(300):
        book.hand_out(ticket(k, f"name {k}"))
    refusal(UnknownTicket, book.find, name_key("name 0"), 300)


class Caseless(str):
    """A string that is equal to others by a rule of its own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str.lower(self) == str.lower(other)

    def __hash__(self) -> int:
        return hash(str.lower(self))


class Hashless(str):
    """A string that is equal to others as all are, and has no hash."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    __hash__ = None


@pytest.mark.parametrize("newer", [0, 1, 100])
@pytest.mark.parametrize("kind", [str, np.str_, Caseless, Hashless])
def test_a_name_is_its_text_whatever_kind_of_string_it_is(newer: int, kind: type[str]) -> None:
    book = empty()
    for number in range(newer + 1):
        book.hand_out(ticket(number, None if number else kind("a")))
    for name in ("a", kind("a")):
        refusal(RepeatedTicket, book.refuse_open, name)
        assert book.find(name, newer + 1).number == 0
    for name in ("A", kind("A")):
        book.refuse_open(name)
        refusal(UnknownTicket, book.find, name, newer + 1)
    book.close(book.find(kind("a"), newer + 1))
    refusal(RepeatedTicket, book.find, "a", newer + 1)
    refusal(UnknownTicket, book.find, kind("A"), newer + 1)
    assert len(book) == newer


def test_names_file_apart() -> None:
    assert len({name_key(str(k)) for k in range(10_000)}) == 10_000
    assert name_key("\ud800") != name_key("\ud801")


def test_a_time_that_was_never_given_stays_unknown() -> None:
    book, _ = counter_of(2)
    assert book.find(0, 2).time is None
    book.file_all()
    assert math.isnan(book.desk.get(0)[6])
    late = ticket(2)
    late._time = 3.5
    book.hand_out(late)
    assert book.find(2, 3).time == 3.5


# Foreign and altered.


def test_a_ticket_of_somebody_else_is_foreign() -> None:
    book, _ = counter_of(3)
    other = Ticket(Issuer("theirs", MINE.grid), 1, 1, pack(0, 1, 1), 0.75, 0.25, None, 1, None)
    text = refusal(ForeignTicket, book.find, other, 3)
    assert text == f"ticket must be of this recalibrator, got another's: {other!r}"
    assert refusal(ForeignTicket, book.replaced, other, 1, None, 3) == text


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize(
    "change",
    [{"number": 0}, {"place": [0, 3, 1]}, {"place": [0, 2, 0]}, {"weight": 0.5}, {"raw": 0.5}],
    ids=str,
)
@pytest.mark.parametrize("name", [None, "a"])
def test_an_altered_ticket_is_foreign(count: int, change: dict[str, object], name) -> None:
    book, tickets = empty(), [ticket(k, name if k == 1 else None) for k in range(count)]
    for made in tickets:
        book.hand_out(made)
    altered = Ticket.from_dict(tickets[1].to_dict() | change)
    text = refusal(ForeignTicket, book.find, altered, count)
    assert text == f"ticket must be as it was issued, got an altered one: {altered!r}"
    assert book.find(tickets[1], count) is tickets[1]


def test_a_closed_ticket_is_told_from_the_open_one_of_its_name() -> None:
    book, first = empty(), ticket(0, "a")
    book.hand_out(first)
    book.close(first)
    book.hand_out(ticket(1, "a"))
    book.hand_out(ticket(2))
    text = refusal(RepeatedTicket, book.find, first, 3)
    assert text == "ticket 'a' must be open, got one whose outcome is known"
    assert book.find("a", 3).number == 1


def test_a_stored_ticket_without_its_clock_is_still_the_ticket() -> None:
    book, tickets = counter_of(3)
    stored = Ticket.from_dict(tickets[1].to_dict() | {"clock": None})
    assert book.find(stored, 3) is stored


# Expired.


@pytest.mark.parametrize("count", [1, 5, 500])
def test_a_ticket_expires_once_max_open_newer_ones_were_made(count: int) -> None:
    book, tickets = counter_of(count, max_open=count)
    assert book.find(tickets[0], count).number == 0
    assert book.expire(count) == []
    book.hand_out(ticket(count))
    issued = count + 1
    gone = book.expire(issued)
    (found,) = gone
    assert found[2:6] == (0, *tickets[0].fields[:3])
    assert found[7:] == tickets[0].fields[4:]
    expected = (
        f"ticket 0 must be among the last {count}, got one of {issued} forecasts ago: it expired"
    )
    for told in (tickets[0], tickets[0].id, Ticket.from_dict(tickets[0].to_dict())):
        assert refusal(ExpiredTicket, book.find, told, issued) == expected
    assert len(book) == count
    assert book.expire(issued) == []
    assert book.find(1, issued).number == 1


def test_a_named_ticket_that_was_told_by_its_number_is_settled_under_both() -> None:
    book = empty()
    for k in range(3):
        book.hand_out(ticket(k, f"name {k}"))
    book.close(book.find(1, 3))
    book.close(book.find(2, 3), EXPIRED)
    refusal(RepeatedTicket, book.find, 1, 3)
    refusal(RepeatedTicket, book.find, "name 1", 3)
    refusal(ExpiredTicket, book.find, 2, 3)
    refusal(ExpiredTicket, book.find, "name 2", 3)
    assert book.find("name 0", 3).number == 0


def test_what_is_kept_never_exceeds_the_cap() -> None:
    book = empty(300)
    for k in range(2_000):
        book.hand_out(ticket(k))
        assert [found[2] for found in book.expire(k + 1)] == ([k - 300] if k >= 300 else [])
        assert len(book) == min(k + 1, 300)


@pytest.mark.parametrize("count", [5, 500])
def test_the_name_of_an_expired_ticket_is_free_again(count: int) -> None:
    book = empty(count)
    book.hand_out(ticket(0, "a"))
    for k in range(1, count):
        book.hand_out(ticket(k))
    refusal(RepeatedTicket, book.refuse_open, "a")
    book.hand_out(ticket(count))
    assert len(book.expire(count + 1)) == 1
    book.refuse_open("a")
    book.hand_out(ticket(count + 1, "a"))
    assert book.find("a", count + 2).number == count + 1


def test_a_ticket_that_was_expired_by_hand_says_so() -> None:
    book, tickets = counter_of(3)
    for made in (tickets[0], tickets[2]):
        book.close(book.find(made, 3), EXPIRED)
        for told in (made, made.id):
            text = refusal(ExpiredTicket, book.find, told, 3)
            assert text == f"ticket {made.id} must be open, got one that was expired"
    assert len(book) == 1


@pytest.mark.parametrize("count", [5, 500])
def test_a_ticket_that_expired_without_an_outcome_has_none_to_correct(count: int) -> None:
    book, tickets = counter_of(count, max_open=count)
    issued = count + 1
    book.hand_out(ticket(count))
    book.expire(issued)
    text = refusal(ExpiredTicket, book.replaced, tickets[0], 1, None, issued)
    expected = f"must be among the last {count}, got one of {issued} forecasts ago: it expired"
    assert text == f"ticket 0 {expected}"
    tickets[0]._outcome = 0
    book.replaced(tickets[0], 1, None, issued)
    book.close(book.find(tickets[-1], issued))
    text = refusal(InvalidInput, book.replaced, tickets[-1], 1, None, issued)
    assert text.endswith("got one without; pass what observe() returned, or was=")


def test_only_a_closed_ticket_can_be_corrected() -> None:
    book, tickets = counter_of(300)
    for made in (tickets[0], tickets[-2], tickets[-1]):
        expected = f"ticket {made.id} must have an outcome to be corrected, got an open one"
        for told, was in ((made, None), (made, 0), (Ticket.from_dict(made.to_dict()), 0)):
            assert refusal(InvalidInput, book.replaced, told, 1, was, 300) == expected
        book.close(book.find(made, 300))
        made._outcome = 1
        book.replaced(made, 0, None, 300)
        text = refusal(RepeatedTicket, book.replaced, made, 1, None, 300)
        assert text == "outcome must differ from the known one to correct it, got 1 again"
    later = ticket(300)
    text = refusal(UnknownTicket, book.replaced, later, 1, None, 300)
    assert text == f"ticket must be one that was issued here, got {later!r}"
    assert refusal(InvalidType, book.replaced, 3, 1, None, 300) == "ticket must be a Ticket, got 3"


# A counter against a dictionary, at any mixture of calls.


class CounterModel(RuleBasedStateMachine):
    """Open tickets are those that were handed out, neither closed nor too old."""

    cap = 12

    def __init__(self) -> None:
        super().__init__()
        self.book = empty(self.cap)
        self.open: dict[int, Ticket] = {}
        self.issued = 0

    @rule(name=st.none() | st.integers(0, 5))
    def hand_out(self, name: int | None) -> None:
        id = None if name is None else f"name {name}"
        if id is not None and any(made.id == id for made in self.open.values()):
            refusal(RepeatedTicket, self.book.refuse_open, id)
            return
        if id is not None:
            self.book.refuse_open(id)
        made = ticket(self.issued, id, raw=self.issued % 7 / 7)
        self.book.hand_out(made)
        self.open[self.issued] = made
        self.issued += 1
        gone = [k for k in self.open if self.issued - k > self.cap]
        assert [found[2] for found in self.book.expire(self.issued)] == gone
        for number in gone:
            del self.open[number]

    @precondition(lambda self: self.open)
    @rule(data=st.data(), by=st.sampled_from(["itself", "id", "copy"]), how=st.booleans())
    def close(self, data: st.DataObject, by: str, how: bool) -> None:
        made = self.open.pop(data.draw(st.sampled_from(sorted(self.open))))
        copy = Ticket.from_dict(made.to_dict())
        found = self.book.find({"itself": made, "id": made.id, "copy": copy}[by], self.issued)
        assert (found.number, found.id, found.fields[:3]) == (made.number, made.id, made.fields[:3])
        self.book.close(found, EXPIRED) if how else self.book.close(found)

    @precondition(lambda self: self.issued)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, self.issued - 1))
        if number in self.open:
            assert self.book.find(number, self.issued).raw == number % 7 / 7
        else:
            with pytest.raises((RepeatedTicket, ExpiredTicket)):
                self.book.find(number, self.issued)

    @rule()
    def store(self) -> None:
        self.book.file_all()
        desk = Desk(FIELDS)
        desk.load(self.book.desk.words())
        self.book.desk = desk

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.book) == len(self.open)


class SmallCounterModel(CounterModel):
    """The same with few near tickets, so that others are filed all the time."""

    def __init__(self) -> None:
        self.spared = counter.NEAREST, counter.AT_ONCE
        counter.NEAREST, counter.AT_ONCE = 3, 2
        super().__init__()

    def teardown(self) -> None:
        counter.NEAREST, counter.AT_ONCE = self.spared


TestCounterIsADictionary = CounterModel.TestCase
TestCounterIsADictionary.settings = settings(max_examples=40, stateful_step_count=40)
TestSmallCounterIsADictionary = SmallCounterModel.TestCase
TestSmallCounterIsADictionary.settings = settings(max_examples=40, stateful_step_count=40)


# Through the verbs.


def recalibrator(**options: object) -> Recalibrator:
    return Recalibrator(**({"resolution": 5, "buckets": 3, "seed": 2} | options))


def test_an_outcome_of_a_settled_name_is_repeated_and_of_another_unknown() -> None:
    rec = recalibrator()
    rec.forecast(0.5, id="a")
    rec.observe("a", 1)
    before = rec.to_bytes()
    assert refusal(RepeatedTicket, rec.observe, "a", 1) == (
        "ticket 'a' must be open, got one whose outcome is known"
    )
    assert refusal(UnknownTicket, rec.observe, "b", 1) == (
        "ticket must be one that is open here, got 'b'"
    )
    assert rec.to_bytes() == before


@pytest.mark.parametrize("by", ["itself", "id"])
def test_a_ticket_can_be_expired_by_hand(by: str) -> None:
    rec = recalibrator()
    made = [rec.forecast(0.5, id="a"), rec.forecast(0.1), rec.forecast(0.2)]
    for one in (made[2], made[0]):
        gone = rec.expire(one if by == "itself" else one.id)
        assert (gone.number, gone.outcome) == (one.number, None)
        for told in (one, one.id):
            text = refusal(ExpiredTicket, rec.observe, told, 1)
            assert text == f"ticket {one.id!r} must be open, got one that was expired"
            refusal(ExpiredTicket, rec.expire, told)
    assert (rec.open, rec.rounds, rec.issued) == (1, 0, 3)
    assert rec.certificate().expired == 2
    assert rec.forecast(0.5, id="a").number == 3
    refusal(UnknownTicket, rec.expire, 7)


def test_stored_tickets_are_those_that_can_still_be_observed() -> None:
    rec = recalibrator(max_open=10)
    for k in range(40):
        rec.forecast(0.5, id=f"n{k}" if k % 2 else None)
    numbers = rec._document().arrays["tickets"].reshape(-1, 8)[:, 1]
    assert numbers.tolist() == list(range(30, 40))
    again = Recalibrator.from_bytes(rec.to_bytes())
    assert [again.observe(f"n{k}" if k % 2 else k, 1).number for k in range(30, 40)] == [
        *range(30, 40)
    ]
    refusal(ExpiredTicket, again.observe, 28, 1)


# What a budget reserved comes back exactly when a ticket expires.


SAFE = ExpertMixture((Identity(), BucketMeans(5, 20.0)), share=1e-3)


def safe_model(max_open: int = 1_000) -> Calibrant:
    """Return a model with money to spend: it has been right so far."""
    model = Calibrant(
        SAFE,
        raw_safe=0.5,
        method="foster_hart",
        resolution=10,
        buckets=4,
        seed=5,
        max_open=max_open,
    )
    for k in range(40):
        model.observe(model.forecast(0.1 + 0.2 * (k % 5)), k % 2)
    return model


def reserved(model: Calibrant) -> int:
    return int(model._arena.row()[RESERVED])


@pytest.mark.parametrize("way", ["forecast", "learn", "replay", "late", "play", "many"])
def test_a_ticket_gives_back_its_reserve_when_max_open_newer_forecasts_were_made(way: str) -> None:
    cap = 6
    model = safe_model(max_open=cap)
    assert reserved(model) == 0
    waiting = model.forecast(0.3)
    assert not waiting.fallback
    held = reserved(model)
    assert held > 0
    excess = model._arena.row()[EXCESS]

    def newer() -> None:
        """Make one newer forecast, and settle it at once unless batches cannot."""
        if way == "forecast":
            model.observe(model.forecast(0.3), 1)
        elif way == "learn":
            model.learn_one(0.3, 1)
        elif way == "replay":
            model.replay([0.3], [1])
        elif way == "late":
            model.replay([0.3], [1], available=[0.0], time=[0.0])
        elif way == "play":
            model.play([0, 1], [None, model.issued], [0.3, 1])
        else:
            played = model.forecast_many([0.3])
            model.observe_many(played.number, [1])

    for made in range(cap - 1):
        newer()
        assert (made, reserved(model), model.open) == (made, held, 1)
    again = model.copy()
    assert again.observe(waiting.id, 1).number == waiting.number
    newer()
    assert (reserved(model), model.open) == (0, 0)
    assert model._arena.row()[EXCESS] != excess
    refusal(ExpiredTicket, model.observe, waiting, 1)


def test_a_ticket_that_is_expired_by_hand_gives_back_its_reserve() -> None:
    model = safe_model()
    first, second = model.forecast(0.3), model.forecast(0.7)
    both = reserved(model)
    model.expire(first)
    assert 0 < reserved(model) < both
    model.expire(second.id)
    assert reserved(model) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["forecast", "observe", "expire", "learn"]), st.floats(0, 1)),
        max_size=40,
    ),
    st.integers(1, 4),
)
@settings(max_examples=40)
def test_whatever_happens_nothing_stays_reserved_once_nothing_waits(acts, cap) -> None:
    model = safe_model(max_open=cap)
    waiting: list[Ticket] = []
    for act, x in acts:
        waiting = [made for made in waiting if model.issued - made.number <= cap]
        if act == "forecast":
            waiting.append(model.forecast(x))
        elif act == "learn":
            model.learn_one(x, int(x < 0.5))
        elif waiting:
            made = waiting.pop(int(x * (len(waiting) - 1)))
            model.observe(made, int(x < 0.5)) if act == "observe" else model.expire(made)
    waiting = [made for made in waiting if model.issued - made.number <= cap]
    assert model.open == len(waiting)
    for _ in range(cap):
        model.learn_one(0.5, 1)
    assert (model.open, reserved(model)) == (0, 0)


@pytest.mark.parametrize("close", [False, True])
def test_an_interrupt_while_a_ticket_is_filed_does_not_file_it_twice(monkeypatch, close) -> None:
    book, made, add = empty(), ticket(0), Desk.add

    def interrupted(desk: Desk, *line: object) -> None:
        add(desk, *line)
        raise KeyboardInterrupt

    book.hand_out(made)
    monkeypatch.setattr(Desk, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        book.file_all()
    monkeypatch.undo()
    if close:
        book.close(book.find(made, 1))
        assert (len(book), len(book.desk)) == (0, 0)
        refusal(RepeatedTicket, book.find, 0, 1)
        return
    assert len(book) == 1
    book.file_all()
    assert (len(book), book.latest) == (1, None)
    assert book.find(0, 1).to_dict() == made.to_dict()


@pytest.mark.parametrize("others", [0, 200])
def test_a_late_batch_refuses_to_carry_what_does_not_wait(others: int) -> None:
    rec = Recalibrator(seed=1)
    for _ in range(others):
        rec.forecast(0.5)
    run = rec.replay([0.2, 0.8], [0, 1], available=[9.0, 9.0], time=[0.0, 1.0])
    rec.observe(int(run.pending.number[0]), 1)
    before = rec.to_bytes()
    with pytest.raises(RepeatedTicket, match=f"ticket {others} must be open"):
        rec.replay([0.5], [1], available=[3.0], time=[2.0], carry=run.pending)
    assert rec.to_bytes() == before
