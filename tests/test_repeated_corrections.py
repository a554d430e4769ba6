"""A correction replaces the outcome that stands, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from everyone import EVERYONE

from calibrant import Recalibrator, Ticket
from calibrant.core.codec import Document
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    InvalidInput,
    RepeatedTicket,
    TicketError,
    UnknownTicket,
)
from calibrant.recalibrate import corrections

NAMES = sorted(EVERYONE)


def closed(name: str, rounds: int = 6) -> tuple[Any, Any, Any, Any]:
    """Return a stream after rounds that are all alike, the last ticket, and both outcomes."""
    one = EVERYONE[name]
    model, (wrong, right) = one.make(seed=1), one.outcomes
    for _ in range(rounds):
        ticket = model.observe(model.forecast(one.raw), wrong)
    return model, ticket, wrong, right


def again(ticket: Any) -> Any:
    return type(ticket).from_bytes(ticket.to_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_the_same_correction_is_refused_whoever_holds_the_ticket(name: str) -> None:
    model, ticket, wrong, right = closed(name)
    copy, stored = again(ticket), ticket.to_bytes()
    assert model.correct(ticket, right, was=wrong).outcome == right
    state = model.to_bytes()
    for stale in (ticket, copy, again(ticket)):
        with pytest.raises(RepeatedTicket):
            model.correct(stale, right)
    revived = type(model).from_bytes(state)
    with pytest.raises(RepeatedTicket, match="corrected already"):
        revived.correct(type(ticket).from_bytes(stored), right)
    assert model.to_bytes() == revived.to_bytes() == state
    assert copy.outcome == wrong


@pytest.mark.parametrize("name", NAMES)
def test_a_correction_can_be_taken_back_and_made_again(name: str) -> None:
    model, ticket, wrong, right = closed(name)
    model.correct(ticket, right)
    stale = again(ticket)
    model.correct(ticket, wrong, was=right)
    with pytest.raises(RepeatedTicket, match="corrected already"):
        model.correct(stale, wrong)
    assert model.correct(again(ticket), right, was=wrong).outcome == right


@pytest.mark.parametrize("name", NAMES)
def test_a_ticket_stored_before_its_outcome_is_corrected_by_telling_what_was_told(
    name: str,
) -> None:
    model, _, wrong, right = closed(name)
    other = type(model).from_bytes(model.to_bytes())
    for rec in (model, other):
        ticket = rec.forecast(EVERYONE[name].raw)
        early = again(ticket)
        rec.observe(ticket, wrong)
        if rec is model:
            with pytest.raises(InvalidInput, match="or was="):
                rec.correct(early, right)
            assert rec.correct(early, right, was=wrong).outcome == right
            with pytest.raises(RepeatedTicket, match=r"^ticket must have the outcome that stands"):
                rec.correct(ticket, right)
        else:
            rec.correct(ticket, right)
    assert model == other


@pytest.mark.base
def test_what_was_told_must_be_what_stands() -> None:
    model, ticket, wrong, right = closed("recalibrator")
    before = model.to_bytes()
    with pytest.raises(RepeatedTicket, match=r"^was must have the outcome that stands, 0, got 1"):
        model.correct(ticket, 1, was=1)
    with pytest.raises(InvalidInput, match="outcome must be 0 or 1, got 2"):
        model.correct(ticket, right, was=2)
    assert model.to_bytes() == before
    assert ticket.outcome == wrong


@pytest.mark.base
def test_an_open_or_expired_ticket_has_no_outcome_to_replace() -> None:
    model = Recalibrator(seed=1, max_open=3)
    ticket, gone = model.forecast(0.4), model.forecast(0.4)
    with pytest.raises(InvalidInput, match="got an open one"):
        model.correct(ticket, 1, was=0)
    model.expire(gone)
    with pytest.raises(ExpiredTicket):
        model.correct(gone, 1, was=0)
    for _ in range(4):
        model.forecast(0.4)
    with pytest.raises(ExpiredTicket):
        model.correct(ticket, 1, was=0)


@pytest.mark.base
def test_a_refused_correction_leaves_the_ticket_without_an_outcome() -> None:
    model = Recalibrator(seed=1)
    ticket = model.forecast(0.4)
    early = again(ticket)
    model.observe(ticket, 0)
    with pytest.raises(TicketError, match="must have been counted"):
        model.correct(early, 0, was=1)
    assert early.outcome is None


@pytest.mark.base
def test_the_latest_corrections_are_remembered_and_older_ones_by_counts_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corrections, "CORRECTED", 2)
    model = Recalibrator(seed=1)
    tickets = [model.observe(model.forecast(0.4), 0) for _ in range(40)]
    tickets = [ticket for ticket in tickets if ticket.value == tickets[-1].value]
    stale = [again(ticket) for ticket in tickets]
    for ticket in tickets[:3]:
        model.correct(ticket, 1)
    for copy in stale[1:3]:
        with pytest.raises(RepeatedTicket, match="corrected already"):
            model.correct(copy, 1)
    assert model.correct(stale[0], 1).outcome == 1


@pytest.mark.base
def test_states_without_corrections_are_stored_as_ever() -> None:
    model, ticket, _, right = closed("recalibrator")
    assert sorted(model._document().arrays) == ["body", "tickets"]
    model.correct(ticket, right)
    assert sorted(model._document().arrays) == ["body", "corrected", "tickets"]


@pytest.mark.base
@pytest.mark.parametrize(
    "lines", [[[9, 0]], [[-1, 0]], [[1, 0], [1, 0]], [[1, -1]], [[0, 0]] * 4097]
)
def test_corrections_that_were_never_made_are_refused(lines: list[list[int]]) -> None:
    stored = closed("recalibrator")[0]._document()
    arrays = stored.arrays | {"corrected": np.array(lines, np.int64).reshape(-1)}
    data = Document(stored.kind, stored.settings, arrays, stored.version).to_bytes()
    with pytest.raises(CorruptState, match="corrections that were never made"):
        Recalibrator.from_bytes(data)


@pytest.mark.base
def test_a_ticket_of_the_future_is_none() -> None:
    _model, ticket, _, right = closed("recalibrator")
    older = Recalibrator(seed=1)
    with pytest.raises(UnknownTicket):
        older.correct(Ticket.from_bytes(ticket.to_bytes()), right)
