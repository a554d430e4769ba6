"""Outcomes that do not arrive fairly, and what is done about it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import interrupted

from calibrant import Recalibrator
from calibrant.core.codec import Document
from calibrant.core.ticket import Ticket
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)
from calibrant.metrics import binomial_band
from calibrant.outcomes import ObservedOnly, PendingUnknown, WaitForHorizon
from calibrant.recalibrate import closed
from calibrant.recalibrate.corrections import CORRECTED

pytestmark = pytest.mark.base

HORIZON = 6.5
rounds = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.none() | st.integers(0, 12)), min_size=1, max_size=25
)
"""Raw forecasts, one a day, and how many days after each its event happens, if it does."""


def played(made: Any, stream: list[tuple[float, int | None]], days: int) -> list[Ticket]:
    """Live through so many days: events are reported when they happen."""
    tickets: list[Ticket] = []
    for day in range(days):
        if day < len(stream):
            tickets.append(made.forecast(stream[day][0], time=float(day)))
        else:
            made.advance(float(day))
        for start, (_, delay) in enumerate(stream[: day + 1]):
            if delay == day - start and delay <= HORIZON:
                made.observe(tickets[start], 1, time=float(day))
    return tickets


def happened(stream: list[tuple[float, int | None]]) -> list[int]:
    return [int(delay is not None and delay <= HORIZON) for _, delay in stream]


# Waiting for the horizon.


@given(rounds)
def test_waiting_is_learning_every_outcome_one_horizon_late(stream: Any) -> None:
    rec, batch = Recalibrator(seed=1), Recalibrator(seed=1)
    tickets = played(WaitForHorizon(rec, HORIZON), stream, len(stream))
    days = np.arange(len(stream), dtype=float)
    raw = [value for value, _ in stream]
    run = batch.replay(raw, happened(stream), time=days, available=days + HORIZON)
    assert run.forecast.tolist() == [ticket.value for ticket in tickets]
    assert rec.to_dict()["arrays"] == batch.to_dict()["arrays"]
    assert rec.rounds == batch.rounds


@given(rounds)
def test_in_the_end_every_outcome_is_learned_once_and_right(stream: Any) -> None:
    rec = Recalibrator(seed=1)
    waiting = WaitForHorizon(rec, HORIZON)
    tickets = played(waiting, stream, len(stream) + 8)
    assert [ticket.outcome for ticket in tickets] == happened(stream)
    assert (rec.rounds, rec.open, waiting.waiting) == (len(stream), 0, 0)


def conversions(made: Any, observe: Callable[[Ticket, int, float], None]) -> None:
    """One visit an hour; one in five buys, within the hour; the others are known after 300."""
    rng = np.random.default_rng(5)
    tickets: list[Ticket] = []
    for hour in range(400):
        tickets.append(made.forecast(0.2, time=float(hour)))
        if rng.random() < 0.2:
            observe(tickets[-1], 1, hour + 0.5)


def test_early_ones_reach_the_recalibrator_no_earlier_than_zeros() -> None:
    rec = Recalibrator(seed=1)
    waiting = WaitForHorizon(rec, horizon=300.0)
    conversions(waiting, waiting.observe)
    assert rec.rounds == 99
    assert rec.certificate().rounds == 99
    naive = Recalibrator(seed=1)
    conversions(naive, naive.observe)
    # Told at once, everything that the recalibrator has seen by now is a one.
    assert naive.rounds == pytest.approx(80, abs=25)
    next_forecasts = [made.forecast(0.2, time=400.0).mean for made in (rec, naive)]
    assert next_forecasts[0] == pytest.approx(0.2, abs=0.1)
    assert next_forecasts[1] > 0.5


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_observe_returns_the_ticket_that_waits(kind: Any) -> None:
    made = kind(Recalibrator(seed=1), horizon=10.0)
    one, other = made.forecast(0.5, time=0.0, id="one"), made.forecast(0.5, time=0.0)
    assert made.observe("one", 1, time=1.0) is one
    assert made.copy().observe(other, 1, time=1.0) is other
    assert made.copy().observe(other.id, 1, time=1.0) is None
    assert made.observe(other, 0, time=1.0) is other
    assert (one.outcome, other.outcome) == (None, None)


def test_an_event_at_the_end_of_the_horizon_counts_and_a_later_one_does_not() -> None:
    waiting = WaitForHorizon(Recalibrator(seed=1), horizon=10.0)
    just, late, never = (waiting.forecast(0.5, time=0.0) for _ in range(3))
    waiting.observe(just, 1, time=10.0)
    waiting.observe(late, 1, time=10.1)
    assert waiting.advance(10.0) == []
    assert [ticket.outcome for ticket in waiting.advance(10.2)] == [1, 0, 0]
    assert never.outcome == 0


def test_tickets_that_the_recalibrator_dropped_are_counted() -> None:
    waiting = WaitForHorizon(Recalibrator(seed=1, max_open=2), horizon=10.0)
    tickets = [waiting.forecast(0.5, time=float(day)) for day in range(4)]
    assert waiting.advance(20.0) == tickets[2:]
    assert (waiting.lost, waiting.waiting) == (2, 0)


def test_the_treatments_say_what_they_do() -> None:
    rec = Recalibrator(seed=1)
    made = [WaitForHorizon(rec, 2.0), PendingUnknown(rec, 2.0), ObservedOnly(rec, 0.5, seed=1)]
    assert [one.treatment for one in made] == [
        "wait for the horizon",
        "pending is unknown",
        "thinned to one probability",
    ]
    assert all(one.recalibrator is rec for one in made)
    assert [repr(one).replace(repr(rec), "rec") for one in made] == [
        "WaitForHorizon(rec, horizon=2, 0 wait)",
        "PendingUnknown(rec, horizon=2, buckets=20, 0 wait)",
        "ObservedOnly(rec, floor=0.5, learned 0 of 0 observed)",
    ]


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_what_cannot_be_reported_is_named_and_changes_nothing(kind: Any) -> None:
    rec = Recalibrator(seed=1)
    made = kind(rec, horizon=5.0)
    ticket, other = made.forecast(0.3, time=10.0, id="a"), made.forecast(0.3, time=10.0)
    made.observe("a", 0, time=11.0)
    before = made.to_bytes(), rec.to_bytes()

    def refused(error: type[Exception], message: str, call: Callable[[], Any]) -> None:
        with pytest.raises(error) as caught:
            call()
        assert message in str(caught.value)

    refused(RepeatedTicket, "got 1 again", lambda: made.observe(ticket, 1, time=12.0))
    refused(UnknownTicket, "ticket 99 must be one", lambda: made.observe(99, 1, time=12.0))
    refused(InvalidType, "ticket must be a Ticket or", lambda: made.observe([], 1, time=12.0))
    refused(InvalidInput, "forecast's 10.0, got 9.0", lambda: made.observe(other, 1, time=9.0))
    refused(InvalidInput, "outcome must be 0 or 1", lambda: made.observe(other, 2, time=12.0))
    refused(InvalidInput, "time must be a finite", lambda: made.observe(other, 1, time=math.inf))
    refused(InvalidInput, "not be before 10.0, got 9.0", lambda: made.advance(9.0))
    refused(InvalidInput, "raw forecast must be", lambda: made.forecast(2.0, time=30.0))
    refused(InvalidInput, "time must be a finite", lambda: made.forecast(0.2, time=math.nan))
    refused(RepeatedTicket, "id must not be", lambda: made.forecast(0.2, time=10.0, id="a"))
    assert (made.to_bytes(), rec.to_bytes()) == before


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_times_may_be_dates(kind: Any) -> None:
    days = np.arange("2024-02-28", "2024-03-03", dtype="M8[D]")
    one, two = (kind(Recalibrator(seed=1), horizon=86_400.0) for _ in range(2))
    for made, (first, *then) in ((one, days), (two, (days.astype(int) * 86_400.0).tolist())):
        made.observe(made.forecast(0.2, time=first), 1, time=then[0])
        made.forecast(0.4, time=then[0])
        assert [ticket.outcome for ticket in made.advance(then[2])] == [1, 0]
    assert one == two


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_a_refused_forecast_lets_no_time_pass(kind: Any) -> None:
    rec = Recalibrator(seed=1)
    made = kind(rec, horizon=5.0)
    made.forecast(0.3, time=0.0, id="due")
    for name in ("open", "other"):
        made.forecast(0.3, time=4.0, id=name)
    before = made.to_bytes(), rec.to_bytes()
    names: list[tuple[Any, type[Exception], str]] = [
        ("open", RepeatedTicket, "id must not be that of an open ticket, got 'open'"),
        (3, InvalidType, "id must be a string that is not empty, got 3"),
        ("", InvalidType, "id must be a string that is not empty, got ''"),
    ]
    for name, error, text in names:
        with pytest.raises(error) as caught:
            made.forecast(0.3, time=8.0, id=name)
        assert str(caught.value) == text
    assert (made.to_bytes(), rec.to_bytes()) == before
    made.forecast(0.3, time=8.0, id="due")
    assert made.waiting == 3


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_tickets_and_ids_of_others_are_refused(kind: Any) -> None:
    made, stranger = (kind(Recalibrator(seed=seed), horizon=5.0) for seed in (1, 2))
    own, same = (each.forecast(0.3, time=1.0) for each in (made, stranger))
    later = stranger.forecast(0.4, time=2.0)
    made.forecast(0.3, time=2.0)
    before = made.to_bytes(), made.recalibrator.to_bytes()
    given: list[Any] = [(made, same), (made, later), (made.copy(), later)]
    for each, ticket in given:
        with pytest.raises(ForeignTicket) as caught:
            each.observe(ticket, 1, time=3.0)
        told = f"ticket must be of this recalibrator, got another's: {ticket!r}"
        assert str(caught.value) == told
    for id in (True, 0.0, None, np.bool_(False), b"0"):
        with pytest.raises(InvalidType) as refused:
            made.observe(id, 1, time=3.0)
        assert str(refused.value) == f"ticket must be a Ticket or its id, got {id!r}"
    assert (made.to_bytes(), made.recalibrator.to_bytes()) == before
    assert made.observe(np.int64(0), 1, time=3.0) is own


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_threads_may_share_what_waits(kind: Any) -> None:
    made = kind(Recalibrator(seed=1), horizon=5.0)

    def play(number: int) -> None:
        for k in range(40):
            ticket = made.forecast(0.4, time=0.0, id=f"{number} {k}")
            assert made.observe(ticket.id, 1, time=1.0) is ticket
            assert type(made).from_bytes(made.to_bytes(), made.recalibrator).waiting

    in_threads(play)
    assert len(made.advance(9.0)) == made.recalibrator.rounds == 160
    assert made.waiting == 0


def test_what_is_stored_does_not_change_with_what_is_counted_later() -> None:
    made = PendingUnknown(Recalibrator(seed=1), horizon=5.0)
    stored = made._document()
    before = stored.to_bytes()
    made.forecast(0.4, time=0.0)
    assert stored.to_bytes() == before


def test_threads_may_share_what_thins() -> None:
    rec = Recalibrator(seed=1)
    made = ObservedOnly(rec, floor=0.5, seed=1)

    def play(_: int) -> None:
        for _k in range(100):
            made.observe(made.forecast(0.4), 1, probability=1.0)

    in_threads(play)
    assert (made.observed, made.learned) == (400, rec.rounds)


def in_threads(play: Callable[[int], None]) -> None:
    """Let four threads play at once, and take turns often."""
    with switching(1e-6), ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(play, number) for number in range(4)]:
            done.result()


@contextmanager
def switching(often: float) -> Iterator[None]:
    """Let threads take turns that often."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(often)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def test_bad_settings_are_named() -> None:
    rec = Recalibrator(seed=1)
    with pytest.raises(InvalidInput, match="horizon must be a finite number of at least 0, got -1"):
        WaitForHorizon(rec, -1)
    with pytest.raises(InvalidInput, match="confidence must be a number strictly between 0 and 1"):
        PendingUnknown(rec, 1, confidence=1.0)
    with pytest.raises(InvalidInput, match="buckets must be a whole number from 1"):
        PendingUnknown(rec, 1, buckets=0)
    with pytest.raises(InvalidInput, match="floor must be a number from 1e-9 to 1, got 0"):
        ObservedOnly(rec, 0)


# Pending is unknown.


@settings(max_examples=30)
@given(rounds, st.integers(0, 40))
def test_the_bounds_enclose_the_final_frequency_from_the_first_day_on(
    stream: Any, days: int
) -> None:
    made = PendingUnknown(Recalibrator(seed=1), HORIZON, buckets=2)
    played(made, stream, days)
    begun = stream[:days]
    for raw, part in (
        (None, begun),
        (0.0, [row for row in begun if row[0] < 0.5]),
        (1.0, [row for row in begun if row[0] >= 0.5]),
    ):
        found = made.bounds(raw)
        assert found.rounds == len(part) == found.ones + found.zeros + found.pending
        assert found.surely_above <= found.low <= found.high <= found.surely_below
        if part:
            assert found.low <= np.mean(happened(part)) <= found.high + 1e-12
        if days >= len(stream) + 8:
            assert found.pending == 0


def test_bounds_are_sharp_and_have_the_limits_of_clopper_and_pearson() -> None:
    made = PendingUnknown(Recalibrator(seed=1), 10.0, confidence=0.9)
    tickets = [made.forecast(0.42, time=0.0) for _ in range(10)]
    made.observe(tickets[0], 1, time=1.0)
    made.observe(tickets[1], 1, time=1.0)
    made.observe(tickets[2], 0, time=1.0)
    made.observe(tickets[3], 1, time=99.0)
    found = made.bounds(0.42)
    assert (found.rounds, found.ones, found.zeros, found.pending) == (10, 2, 2, 6)
    assert (found.low, found.high) == (0.2, 0.8)
    low, high = binomial_band([2, 8], [10, 10], confidence=0.9)
    assert (found.surely_above, found.surely_below) == (low[0], high[1])
    assert 0.5 in found
    assert 0.999 not in found
    assert made.bounds(0.9).high == 1.0


def test_it_learns_like_waiting_and_knows_more() -> None:
    stream: list[tuple[float, int | None]] = [(0.3, 1), (0.3, None), (0.6, 3)] * 5
    made = PendingUnknown(Recalibrator(seed=1), HORIZON)
    waits = WaitForHorizon(Recalibrator(seed=1), HORIZON)
    played(made, stream, 18)
    played(waits, stream, 18)
    assert made.recalibrator == waits.recalibrator
    assert made.waiting == waits.waiting == 4
    assert made.bounds().pending == 1


# Weights by known probability.


def test_thinning_makes_observed_rounds_fair_again() -> None:
    rng = np.random.default_rng(2)
    told: dict[str, list[int]] = {"seen": [], "learned": []}
    seen = ObservedOnly(Recalibrator(seed=1), floor=0.1, seed=3)
    for _ in range(4000):
        ticket = seen.forecast(0.5)
        chance = 0.9 if rng.random() < 0.5 else 0.1
        outcome = int(rng.random() < chance)
        # Likely cases are looked into more often: the outcomes that are seen are too high.
        if rng.random() < chance:
            told["seen"].append(outcome)
            if seen.observe(ticket, outcome, probability=chance) is not None:
                told["learned"].append(outcome)
    assert np.mean(told["seen"]) > 0.75
    # 400 outcomes of chance 1/2: 0.1 is four standard deviations.
    assert np.mean(told["learned"]) == pytest.approx(0.5, abs=0.1)
    assert (seen.observed, seen.learned) == tuple(len(values) for values in told.values())
    assert seen.learned == pytest.approx(400, abs=80)


@pytest.mark.parametrize("probability", [0.2, 0.4, 1.0])
def test_an_outcome_is_kept_with_the_floor_over_its_probability(probability: float) -> None:
    seen = ObservedOnly(Recalibrator(seed=1), floor=0.2, seed=3)
    for _ in range(2000):
        seen.observe(seen.forecast(0.5), 1, probability=probability)
    share = 0.2 / probability
    # Five standard deviations.
    assert seen.learned == pytest.approx(2000 * share, abs=5 * math.sqrt(2000 * share) + 1)
    assert (seen.learned == 2000) == (probability == 0.2)


def test_the_coins_depend_on_seed_and_ticket_alone() -> None:
    def kept(**options: Any) -> list[bool]:
        seen = ObservedOnly(Recalibrator(seed=1), floor=0.3, **options)
        tickets = [seen.forecast(0.5, id=f"visit-{k}", time=1.0) for k in range(60)]
        return [seen.observe(t, 1, probability=0.6, time=2.0) is not None for t in tickets]

    assert kept(seed=1) == kept(seed=1)
    assert kept(seed=1) != kept(seed=2)
    assert kept(seed=1) != kept(seed=1, key="other")
    assert kept() != kept()


def test_probabilities_below_the_floor_and_tickets_by_id_are_refused() -> None:
    rec = Recalibrator(seed=1)
    seen = ObservedOnly(rec, floor=0.3, seed=1)
    ticket = seen.forecast(0.5)
    before = seen.to_bytes(), rec.to_bytes()
    with pytest.raises(InvalidInput) as caught:
        seen.observe(ticket, 1, probability=0.1)
    assert str(caught.value) == "probability must be a number from 0.3, the floor, to 1, got 0.1"
    with pytest.raises(InvalidType, match="ticket must be a Ticket, got 0"):
        seen.observe(0, 1, probability=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="outcome must be 0 or 1, got 3"):
        seen.observe(ticket, 3, probability=0.5)
    assert (seen.to_bytes(), rec.to_bytes()) == before


@pytest.mark.parametrize("then", [0.3, 1.0])
@pytest.mark.parametrize("first", [0.3, 1.0])
def test_no_outcome_is_told_twice_whether_it_was_learned_or_dropped(
    first: float, then: float
) -> None:
    seen = ObservedOnly(Recalibrator(seed=1), floor=0.3, seed=1)
    for k in range(20):
        ticket = seen.forecast(0.5, id=f"order {k}" if k % 2 else None)
        stored = Ticket.from_dict(ticket.to_dict())
        assert (seen.observe(ticket, 1, probability=first) is None) == (ticket.outcome is None)
        again = ObservedOnly.from_bytes(seen.to_bytes(), seen.recalibrator)
        before = seen.to_bytes(), seen.recalibrator.to_bytes()
        for each in (seen, seen.copy(), again):
            for one in (ticket, stored):
                with pytest.raises(RepeatedTicket) as caught:
                    each.observe(one, 0, probability=then)
                told = f"ticket {ticket.id!r} must be open, got one whose outcome is known"
                assert str(caught.value) == told
        assert again == seen
        assert (seen.to_bytes(), seen.recalibrator.to_bytes()) == before
    assert seen.observed == 20
    assert seen.learned == (20 if first == 0.3 else seen.recalibrator.rounds)


@pytest.mark.parametrize("chance", [0.3, 1.0])
def test_an_outcome_that_was_interrupted_counts_if_it_was_learned(chance: float) -> None:
    stopped, at = True, 0
    while stopped:
        seen, at = ObservedOnly(Recalibrator(seed=1), floor=0.3, seed=1), at + 1
        ticket = seen.forecast(0.5)
        told = partial(seen.observe, ticket, 1, probability=chance)
        stopped, _ = interrupted(told, at)
        assert seen.copy() == seen
        assert seen.learned == seen.recalibrator.rounds
        if not seen.observed:
            seen.observe(ticket, 1, probability=chance)
        with pytest.raises(RepeatedTicket):
            seen.observe(ticket, 1, probability=chance)
        assert seen.observed == 1
        assert seen.learned == seen.recalibrator.rounds
    assert at > 10


def waiting(kind: Any, stored: bool) -> Any:
    """Return forecasts of four days that wait, of which two are known to be 1."""
    made = kind(Recalibrator(seed=1, resolution=3, buckets=2), horizon=3.0)
    tickets = [made.forecast(0.2 * day, time=float(day)) for day in range(4)]
    for day in (1, 3):
        made.observe(tickets[day], 1, day + 0.5)
    return made.copy() if stored else made


TOLD: dict[str, Callable[[Any], Any]] = {
    "advance": lambda made: made.advance(5.5),
    "observe": lambda made: made.observe(2, 0, 3.5),
    "forecast": lambda made: made.forecast(0.4, time=4.5),
}


@pytest.mark.plain
@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("call", TOLD)
def test_no_outcome_is_lost_or_counted_twice_where_a_call_is_interrupted(
    kind: Any, stored: bool, call: str
) -> None:
    stopped, at = True, stored - 2
    while stopped:
        made, at = waiting(kind, stored), at + 3
        stopped, _ = interrupted(partial(TOLD[call], made), at)
        found = counted(made) if kind is PendingUnknown else (0,)
        made.advance(5.5)
        made.advance(20.0)
        rec, wait = made.recalibrator, made._wait if kind is PendingUnknown else made
        # A forecast that was interrupted may have been made, and nobody was told.
        assert rec.issued - rec.rounds <= (call == "forecast")
        assert wait.lost == made.waiting == 0
        if kind is PendingUnknown:
            assert counted(made) == (found[0], 2, found[0] - 2, 0)
    assert at > 30


@pytest.mark.plain
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("call", TOLD)
def test_what_was_done_counts_where_an_interrupt_comes_behind_it(
    stored: bool, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, whole = waiting(PendingUnknown, stored), waiting(PendingUnknown, stored)
    done = getattr(WaitForHorizon, call)

    def stops(self: Any, *told: Any, **more: Any) -> Any:
        done(self, *told, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(WaitForHorizon, call, stops)
    with pytest.raises(KeyboardInterrupt):
        TOLD[call](made)
    monkeypatch.undo()
    TOLD[call](whole)
    for each in (made, whole):
        each.advance(20.0)
    assert counted(made) == counted(whole)


@pytest.mark.plain
@pytest.mark.parametrize("call", ["forecast", "observe"])
def test_nothing_counts_where_an_interrupt_comes_before_it(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = waiting(PendingUnknown, False)
    made.advance(4.5 if call == "forecast" else 3.5)
    before = counted(made)

    def stops(self: Any, *told: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(WaitForHorizon, call, stops)
    with pytest.raises(KeyboardInterrupt):
        TOLD[call](made)
    monkeypatch.undo()
    assert counted(made) == before


@pytest.mark.plain
def test_of_what_is_due_the_settled_part_counts_where_an_interrupt_comes_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, whole = waiting(PendingUnknown, False), waiting(PendingUnknown, False)
    learn, learned = Recalibrator.observe, list[int]()

    def stops(self: Any, *told: Any, **more: Any) -> Any:
        if learned:
            raise KeyboardInterrupt
        learned.append(1)
        return learn(self, *told, **more)

    monkeypatch.setattr(Recalibrator, "observe", stops)
    with pytest.raises(KeyboardInterrupt):
        made.advance(5.5)
    monkeypatch.undo()
    for each in (made, whole):
        each.advance(5.5)
    assert counted(made) == counted(whole)
    assert made.waiting == whole.waiting


def counted(made: Any) -> tuple[int, ...]:
    """Return what is known of all forecasts: how many, ones, zeros and unknown ones."""
    rounds, ones, zeros = made._counts.sum(axis=0).tolist()
    entries = made._wait._entries.values()
    assert rounds - ones - zeros == sum(entry.outcome is None for entry in entries)
    return rounds, ones, zeros, rounds - ones - zeros


class Elsewhere:
    """A forecaster that is no stream, and may be interrupted after it learned."""

    def __init__(self, rec: Recalibrator) -> None:
        self.rec, self.stops = rec, False

    def forecast(self, raw: float, *, id: str | None = None, time: Any = None) -> Ticket:
        return self.rec.forecast(raw, id=id, time=time)

    def observe(self, ticket: Any, outcome: int, time: Any = None) -> Ticket:
        done = self.rec.observe(ticket, outcome, time=time)
        if self.stops:
            raise KeyboardInterrupt
        return done


def test_a_forecaster_elsewhere_may_refuse_an_outcome_or_be_interrupted() -> None:
    made = Elsewhere(Recalibrator(seed=1))
    seen = ObservedOnly(made, floor=0.3, seed=1)
    first, second = seen.forecast(0.5, time=5.0), seen.forecast(0.5, time=6.0)
    before = seen.to_bytes()
    with pytest.raises(InvalidInput, match="time must not be before"):
        seen.observe(first, 1, probability=0.3, time=4.0)
    assert seen.to_bytes() == before
    assert seen.observe(first, 1, probability=0.3, time=7.0) is first
    made.stops = True
    with pytest.raises(KeyboardInterrupt):
        seen.observe(second, 1, probability=0.3, time=7.0)
    assert (seen.observed, seen.learned) == (2, 2)
    with pytest.raises(RepeatedTicket):
        seen.observe(second, 1, probability=0.3, time=7.0)


def test_another_recalibrators_ticket_is_refused_whether_it_would_be_dropped_or_not() -> None:
    rec = Recalibrator(seed=1)
    seen, other = ObservedOnly(rec, floor=0.3, seed=1), Recalibrator(seed=2)
    for _ in range(20):
        own, before = seen.forecast(0.5), seen.to_bytes()
        with pytest.raises(ForeignTicket):
            seen.observe(other.forecast(0.5), 1, probability=1.0)
        assert seen.to_bytes() == before
        seen.observe(own, 1, probability=1.0)
    assert seen.observed == 20 > seen.learned == rec.rounds > 0


def test_a_copy_learns_for_itself_what_the_original_was_told() -> None:
    seen = ObservedOnly(Recalibrator(seed=1), floor=0.5, seed=1)
    ticket = seen.forecast(0.5)
    again = seen.copy()
    for each in (seen, again):
        assert each.observe(ticket, 1, probability=0.5) is not None
    assert again == seen


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_a_settled_ticket_whose_name_was_given_again_is_not_anothers(kind: Any) -> None:
    made = kind(Recalibrator(seed=1), horizon=5.0)
    ticket = made.forecast(0.5, time=0.0, id="a")
    made.advance(6.0)
    new = made.forecast(0.5, time=7.0, id="a")
    before = made.to_bytes()
    with pytest.raises(RepeatedTicket, match=r"^ticket 'a' must be open, got one whose outcome"):
        made.observe(ticket, 1, time=8.0)
    assert made.to_bytes() == before
    assert made.observe("a", 1, time=8.0) is new


def test_of_the_latest_tickets_alone_is_known_that_they_were_told() -> None:
    rec = Recalibrator(seed=1)
    seen = ObservedOnly(rec, floor=0.5, seed=3)
    tickets = [rec.forecast(0.5) for _ in range(CORRECTED + 1)]
    dropped = [t for t in tickets if seen.observe(t, 1, probability=1.0) is None]
    assert len(seen.to_bytes()) < 16 * CORRECTED + 500
    last = dropped[-1]
    with pytest.raises(RepeatedTicket):
        seen.observe(last, 1, probability=1.0)
    assert dropped[0] is tickets[0]
    assert seen.observe(tickets[0], 1, probability=1.0) is None


def test_nobody_made_what_was_told_of_tickets_that_cannot_be() -> None:
    seen = ObservedOnly(Recalibrator(seed=1), floor=0.5, seed=1)
    seen.observe(seen.forecast(0.5), 1, probability=0.5)
    good = Document.from_bytes(seen.to_bytes(), seen.kind, seen.version)
    for words in ([-1, 0], [0, 0, 0, 0], [0]):
        bad = replace(good, arrays={"corrected": np.array(words, np.int64)})
        with pytest.raises(CorruptState):
            ObservedOnly.from_bytes(bad.to_bytes(), seen.recalibrator)


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
def test_a_ticket_whose_horizon_has_passed_is_known_to_be_settled(kind: Any) -> None:
    made = kind(Recalibrator(seed=1, max_open=2), horizon=5.0)
    tickets = [made.forecast(0.5, time=0.0, id=id) for id in ("lost", None, "a")]
    made.observe(tickets[1], 1, time=1.0)
    made.advance(6.0)
    assert (made.waiting, tickets[1].outcome, tickets[2].outcome) == (0, 1, 0)
    before = made.to_bytes(), made.recalibrator.to_bytes()
    for one in (tickets[1], 1, tickets[2], "a"):
        id = one.id if isinstance(one, Ticket) else one
        with pytest.raises(RepeatedTicket) as caught:
            made.observe(one, 1, time=7.0)
        assert str(caught.value) == f"ticket {id!r} must be open, got one whose outcome is known"
    with pytest.raises(ExpiredTicket, match=r"^ticket 'lost' must be open, got one that was exp"):
        made.observe("lost", 1, time=7.0)
    for id in (7, "nobody"):
        with pytest.raises(UnknownTicket):
            made.observe(id, 1, time=7.0)
    assert (made.to_bytes(), made.recalibrator.to_bytes()) == before


# Bytes.


@pytest.mark.parametrize("kind", [WaitForHorizon, PendingUnknown])
@settings(max_examples=40)
@given(rounds, st.integers(0, 25))
def test_cut_stored_and_resumed_it_goes_on_the_same(kind: Any, stream: Any, cut: int) -> None:
    made = kind(Recalibrator(seed=1), HORIZON)
    played(made, stream[: max(cut, 1)], cut)
    rec = Recalibrator.from_bytes(made.recalibrator.to_bytes())
    again = kind.from_bytes(made.to_bytes(), rec)
    for one in (made, again):
        one.forecast(0.4, time=50.0, id="new")
        one.observe("new", 1, time=51.0)
        one.advance(99.0)
    assert again.to_bytes() == made.to_bytes()
    assert again.recalibrator == made.recalibrator


def test_thinning_goes_on_with_the_same_coins() -> None:
    rec = Recalibrator(seed=1)
    made = ObservedOnly(rec, floor=0.5)
    first = made.forecast(0.5)
    made.observe(first, 1, probability=1.0)
    twin = Recalibrator.from_bytes(rec.to_bytes())
    again = ObservedOnly.from_bytes(made.to_bytes(), twin)
    for one in (made, again):
        for _ in range(40):
            one.observe(one.forecast(0.5), 1, probability=1.0)
    assert again.to_bytes() == made.to_bytes()
    assert twin == rec


WAIT = {"horizon": (2.0).hex(), "clock": None, "lost": 0, "entries": []}
THIN = {"floor": (0.5).hex(), "key": 1, "observed": 2, "learned": 1}
DAMAGE: list[tuple[Any, str, dict[str, Any]]] = [
    (WaitForHorizon, "wait for horizon", WAIT | {"horizon": "x"}),
    (WaitForHorizon, "wait for horizon", WAIT | {"lost": -1}),
    (WaitForHorizon, "wait for horizon", WAIT | {"entries": [[1, "0x1p0", "0x1p1", None]]}),
    (WaitForHorizon, "wait for horizon", WAIT | {"entries": [[1]]}),
    (WaitForHorizon, "wait for horizon", WAIT | {"clock": "nan"}),
    (WaitForHorizon, "wait for horizon", WAIT | {"entries": [[1, "nan", "0x0p0", None]]}),
    (WaitForHorizon, "wait for horizon", WAIT | {"entries": [[None, "0x1p0", "0x0p0", None]]}),
    (WaitForHorizon, "wait for horizon", WAIT | {"entries": 2 * [["a", "0x1p0", "0x0p0", None]]}),
    (
        WaitForHorizon,
        "wait for horizon",
        WAIT | {"entries": [[1, "0x1p1", "0x0p0", None], [2, "0x1p0", "0x0p0", None]]},
    ),
    (PendingUnknown, "pending unknown", {"buckets": 1}),
    (ObservedOnly, "observed only", THIN | {"learned": 3}),
    (ObservedOnly, "observed only", {}),
]


@pytest.mark.parametrize(("kind", "name", "stored"), DAMAGE)
def test_bytes_that_are_no_state_are_refused(kind: Any, name: str, stored: dict[str, Any]) -> None:
    with pytest.raises(CorruptState, match=f"state must be of a {name}, got "):
        kind.from_bytes(Document(name, stored).to_bytes(), Recalibrator(seed=1))


@pytest.mark.parametrize(("method", "promises"), [("foster_hart", True), ("anchored", False)])
def test_waiting_promises_what_the_rule_proves_about_late_outcomes(method, promises) -> None:
    rec = Recalibrator(method, seed=1)
    waiting = WaitForHorizon(rec, horizon=3.0)
    for k in range(20):
        waiting.observe(waiting.forecast(0.4, time=float(k)), k % 2, time=float(k))
    assert rec.certificate().delay == 3
    assert bool(rec.certificate().bounds) is promises


def test_of_settled_tickets_only_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed, "CLOSED", 2)
    made = WaitForHorizon(Recalibrator(seed=1), HORIZON)
    for day, name in enumerate("abcd"):
        made.forecast(0.5, time=10.0 * day, id=name)
    made.advance(100.0)
    with pytest.raises(UnknownTicket):
        made.observe("b", 1, time=100.0)
    for name in "cd":
        with pytest.raises(RepeatedTicket):
            made.observe(name, 1, time=100.0)
