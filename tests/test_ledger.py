from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from calibrant.core import ledger as module
from calibrant.core.grid import Grid
from calibrant.core.ledger import MAX_OPEN, YOUNG, Entry, Ledger, Vault, key_of
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.kernels.layout import pack

pytestmark = pytest.mark.base

MINE = Issuer("mine", Grid("endpoints", 20))
WEIGHTS = st.floats(0, 1)


# Keys.


@given(st.integers(0, 2**61), st.text(min_size=1))
def test_numbers_file_themselves_and_names_never_meet_them(number: int, name: str) -> None:
    assert key_of(number) == number
    assert 2**62 <= key_of(name) < 2**63


def test_names_file_apart() -> None:
    assert len({key_of(str(k)) for k in range(10_000)}) == 10_000


def test_every_string_can_be_a_name() -> None:
    assert key_of("\ud800") != key_of("\ud801")


# The vault against a dictionary.


class VaultModel(RuleBasedStateMachine):
    """A vault does what a dictionary does, at any mixture of adding and removing."""

    def __init__(self) -> None:
        super().__init__()
        self.vault = Vault()
        self.model: dict[int, Entry] = {}
        self.issued = 0

    # Keys that share their home slots, numbers in a row, and names.
    keys = st.one_of(
        st.integers(0, 40).map(lambda k: 96 * k),
        st.integers(0, 2000),
        st.integers(0, 40).map(lambda k: key_of(f"name {k}")),
    )

    @rule(key=keys, cell=st.integers(0, 2**15 - 1), side=st.integers(0, 1), weight=WEIGHTS)
    def add(self, key: int, cell: int, side: int, weight: float) -> None:
        self.issued += 1
        if key not in self.model:
            place = pack(2**20 - 1, cell, side)
            entry = Entry(key, self.issued - 1, place, weight, weight / 3, float(cell))
            self.model[key] = entry
            self.vault.add(entry)

    @rule(count=st.integers(1, 200))
    def add_many(self, count: int) -> None:
        for _ in range(count):
            key = 10**6 + self.issued
            self.issued += 1
            self.model[key] = Entry(key, self.issued - 1, 5, 0.5, 0.25, 1.0)
            self.vault.add(self.model[key])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def pop(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        del self.model[key]
        self.vault.pop(key)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), keep=st.integers(0, 60))
    def pop_many(self, data: st.DataObject, keep: int) -> None:
        keys = list(self.model)
        start = data.draw(st.integers(0, len(keys) - 1))
        for key in (keys[start:] + keys[:start])[keep:]:
            del self.model[key]
            self.vault.pop(key)

    @rule(age=st.integers(0, 400))
    def drop_older(self, age: int) -> None:
        oldest = self.issued - age
        self.model = {k: e for k, e in self.model.items() if e.number >= oldest}
        self.vault.drop_older(oldest, self.issued)

    @rule(key=keys)
    def get(self, key: int) -> None:
        assert self.vault.get(key, self.issued) == self.model.get(key)

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.vault) == len(self.model)
        assert set(self.vault.entries(self.issued)) == set(self.model.values())

    def teardown(self) -> None:
        for key, entry in self.model.items():
            assert self.vault.get(key, self.issued) == entry


TestVaultIsADictionary = VaultModel.TestCase
TestVaultIsADictionary.settings = settings(max_examples=30, stateful_step_count=25)


def filled(count: int, start: int = 0) -> Vault:
    vault = Vault()
    for k in range(start, start + count):
        vault.add(Entry(k, k, 7, 0.5, 0.25, math.nan))
    return vault


def test_a_time_that_was_never_given_stays_unknown() -> None:
    assert math.isnan(filled(1).get(0, 1).time)


def test_numbers_are_dated_by_the_forecasts_made_since() -> None:
    start = 5 * module.WRAP - 100
    vault = filled(200, start)
    assert vault.get(start, start + 200).number == start
    assert vault.get(start + 199, start + 200 + MAX_OPEN).number == start + 199


def test_an_open_ticket_takes_at_most_48_bytes_however_many_there_are() -> None:
    vault = Vault()
    for k in range(100_000):
        vault.add(Entry(k, k, 7, 0.5, 0.25, math.nan))
        if k >= 2_000 and k % 97 == 0:
            assert vault.nbytes <= 48 * len(vault)
    assert vault.nbytes <= 48 * 100_000
    book = Ledger(MINE, MAX_OPEN)
    book.vault = vault
    assert book.to_words(100_000).nbytes == 48 * 100_000


def test_a_vault_that_empties_gives_its_memory_back() -> None:
    vault = filled(8_000)
    for k in range(7_990):
        vault.pop(k)
    assert vault.nbytes < 10_000
    assert {e.key for e in vault.entries(8_000)} == set(range(7_990, 8_000))
    assert vault.get(7_995, 8_000).number == 7_995


# The ledger.


def ticket(number: int, id: int | str | None = None, raw: float = 0.25) -> Ticket:
    name = number if id is None else id
    return Ticket(MINE, name, number, pack(0, 1 + number % 20, 1), 0.75, raw, None, number, None)


def ledger_of(count: int, max_open: int = 1000) -> tuple[Ledger, list[Ticket]]:
    book, tickets = Ledger(MINE, max_open), [ticket(k) for k in range(count)]
    for k, made in enumerate(tickets):
        book.add(made, k + 1)
    return book, tickets


def refusal(error: type[Exception], call: object, *args: object) -> str:
    with pytest.raises(error) as refused:
        call(*args)
    assert type(refused.value) is error
    return str(refused.value)


@pytest.mark.parametrize("count", [1, YOUNG, YOUNG + 1, 3 * YOUNG + 5])
def test_every_ticket_is_found_by_itself_by_its_number_and_by_a_copy(count: int) -> None:
    book, tickets = ledger_of(count)
    assert len(book) == count
    for made in tickets:
        copy = Ticket.from_dict(made.to_dict())
        for told in (made, made.id, np.int64(made.number), np.uint8(made.number % 256), copy):
            if told == made.number % 256 and made.number > 255:
                continue
            found = book.find(told, count)
            assert (found.number, found.place, found.weight) == (made.number, made.place, 0.75)


def test_few_tickets_stay_as_they_are_and_older_ones_move_to_the_vault() -> None:
    book, tickets = ledger_of(YOUNG)
    assert len(book.young) == YOUNG
    assert book.find(0, YOUNG) is tickets[0]
    book, tickets = ledger_of(YOUNG + 1)
    assert len(book.young) == YOUNG // 2
    assert len(book.vault) == YOUNG + 1 - YOUNG // 2
    assert book.find(0, YOUNG + 1) is not tickets[0]


def test_a_closed_ticket_is_gone_wherever_it_was() -> None:
    book, tickets = ledger_of(400)
    for made in tickets[::-3]:
        book.close(book.find(made, 400))
    assert len(book) == 400 - len(tickets[::-3])
    for made in tickets[::-3]:
        text = refusal(RepeatedTicket, book.find, made.id, 400)
        assert text == f"ticket {made.id} must be open, got one whose outcome is known"


def test_a_name_is_found_until_it_is_closed() -> None:
    book = Ledger(MINE, 1000)
    book.add(ticket(0, "a"), 1)
    assert book.holds("a", 1)
    assert not book.holds("b", 1)
    assert book.find("a", 1).number == 0
    book.close(book.find("a", 1))
    text = refusal(UnknownTicket, book.find, "a", 1)
    assert text == "ticket must be one that is open here, got 'a'"


@pytest.mark.parametrize("count", [5, 500])
def test_a_ticket_expires_once_max_open_newer_ones_were_made(count: int) -> None:
    book, tickets = ledger_of(count, max_open=count)
    assert book.find(tickets[0], count).number == 0
    issued = count + 1
    expected = (
        f"ticket 0 must be among the last {count}, got one of {issued} forecasts ago: it expired"
    )
    for told in (tickets[0], tickets[0].id, Ticket.from_dict(tickets[0].to_dict())):
        assert refusal(ExpiredTicket, book.find, told, issued) == expected
    book.sweep(issued)
    assert len(book) == count - 1
    for told in (tickets[0], tickets[0].id):
        assert refusal(ExpiredTicket, book.find, told, issued) == expected
    assert book.find(tickets[1], issued).number == 1


def test_what_is_kept_stays_below_the_cap_and_a_little() -> None:
    book, cap = Ledger(MINE, 300), 300
    for k in range(5_000):
        book.add(ticket(k), k + 1)
        assert len(book) <= cap + cap // 8 + 2 * YOUNG
    book.sweep(5_000)
    assert len(book) == cap


def test_numbers_that_wrap_around_in_the_vault_do_not_bring_tickets_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 64)
    monkeypatch.setattr(module, "WRAP", 128)
    monkeypatch.setattr(module, "YOUNG", 8)
    book = Ledger(MINE, 64)
    for k in range(1000):
        book.add(ticket(k), k + 1)
        kept = {e.number for e in book.vault.entries(k + 1)} | {
            t.number for t in book.young.values()
        }
        assert set(range(max(0, k + 1 - 64), k + 1)) <= kept <= set(range(k + 1))
        if k >= 64:
            refusal(ExpiredTicket, book.find, k - 64, k + 1)


@pytest.mark.parametrize("id", [1.0, None, True, np.bool_(True), [], b"a", (1,)], ids=repr)
def test_what_is_no_id_is_refused(id: object) -> None:
    book, _ = ledger_of(3)
    text = refusal(InvalidType, book.find, id, 3)
    assert text == f"ticket must be a Ticket or its id, got {id!r}"


@pytest.mark.parametrize("id", [3, -1, 10**30, "x"])
def test_what_was_never_issued_is_unknown(id: object) -> None:
    for count in (3, 300):
        book, _ = ledger_of(3)
        for k in range(3, count):
            book.add(ticket(k + 1000), k + 1)
        text = refusal(UnknownTicket, book.find, id, 3)
        assert text == f"ticket must be one that is open here, got {id!r}"


def test_a_number_is_not_the_key_of_a_name() -> None:
    book = Ledger(MINE, 1000)
    for k in range(300):
        book.add(ticket(k, f"name {k}"), k + 1)
    refusal(UnknownTicket, book.find, key_of("name 0"), 300)


def test_a_ticket_of_somebody_else_is_foreign() -> None:
    book, _ = ledger_of(3)
    other = Ticket(Issuer("theirs", MINE.grid), 1, 1, pack(0, 1, 1), 0.75, 0.25, None, 1, None)
    text = refusal(ForeignTicket, book.find, other, 3)
    assert text == f"ticket must be of this recalibrator, got another's: {other!r}"
    assert refusal(ForeignTicket, book.check_closed, other, 1, 3) == text


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize(
    "change",
    [{"number": 0}, {"place": [0, 3, 1]}, {"place": [0, 2, 0]}, {"weight": 0.5}, {"raw": 0.5}],
)
def test_an_altered_ticket_is_foreign(count: int, change: dict[str, object]) -> None:
    book, tickets = ledger_of(count)
    altered = Ticket.from_dict(tickets[1].to_dict() | change)
    text = refusal(ForeignTicket, book.find, altered, count)
    assert text == f"ticket must be as it was issued, got an altered one: {altered!r}"


def test_only_a_closed_ticket_can_be_corrected() -> None:
    book, tickets = ledger_of(300)
    for made in (tickets[0], tickets[-1]):
        text = refusal(InvalidInput, book.check_closed, made, 1, 300)
        expected = f"ticket {made.id} must have an outcome to be corrected, got an open one"
        assert text == expected
        book.close(made)
        made.outcome = 1
        book.check_closed(made, 0, 300)
        text = refusal(RepeatedTicket, book.check_closed, made, 1, 300)
        assert text == "outcome must differ from the known one to correct it, got 1 again"
    later = ticket(300)
    text = refusal(UnknownTicket, book.check_closed, later, 1, 300)
    assert text == f"ticket must be one that was issued here, got {later!r}"
    assert refusal(InvalidType, book.check_closed, 3, 1, 300) == "ticket must be a Ticket, got 3"


@pytest.mark.parametrize("count", [0, 3, 300])
def test_tickets_survive_as_words(count: int) -> None:
    book, tickets = ledger_of(count)
    words = book.to_words(count)
    assert len(words) == 6 * count
    assert words.reshape(-1, 6)[:, 1].tolist() == list(range(count))
    other = Ledger(MINE, 1000)
    other.load_words(words, count, 1)
    assert other.to_words(count).tolist() == words.tolist()
    assert all(other.find(made, count).raw == made.raw for made in tickets)


def test_expired_tickets_are_not_stored() -> None:
    book, _ = ledger_of(40, max_open=10)
    assert book.to_words(40).reshape(-1, 6)[:, 1].tolist() == list(range(30, 40))


def longest_cluster(vault: Vault) -> int:
    filled_slots = "".join("x" if row >= 0 else " " for row in vault._index.tolist())
    return max(len(cluster) for cluster in filled_slots.split())


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("count", [1_000, 8_000])
def test_tickets_filed_in_a_row_do_not_pile_up(count: int, names: bool) -> None:
    vault = Vault()
    for k in range(count):
        vault.add(Entry(key_of(f"name {k}") if names else k, k, 7, 0.5, 0.25, math.nan))
    assert longest_cluster(vault) < 300


@pytest.mark.parametrize("count", [5, 500])
def test_the_name_of_an_expired_ticket_is_free_again(count: int) -> None:
    book = Ledger(MINE, max_open=count)
    book.add(ticket(0, "a"), 1)
    for k in range(1, count):
        book.add(ticket(k), k + 1)
    assert book.holds("a", count)
    assert not book.holds("a", count + 1)
    book.add(ticket(count, "a"), count + 1)
    assert book.find("a", count + 1).number == count
    assert len(book) == count


@pytest.mark.parametrize("count", [5, 500])
def test_a_ticket_that_expired_without_an_outcome_has_none_to_correct(count: int) -> None:
    book, tickets = ledger_of(count, max_open=count)
    issued = count + 1
    text = refusal(ExpiredTicket, book.check_closed, tickets[0], 1, issued)
    expected = f"must be among the last {count}, got one of {issued} forecasts ago: it expired"
    assert text == f"ticket 0 {expected}"
    tickets[0].outcome = 0
    book.check_closed(tickets[0], 1, issued)
    book.close(tickets[-1])
    text = refusal(InvalidInput, book.check_closed, tickets[-1], 1, issued)
    assert text.endswith("got one without; pass what observe() returned")
