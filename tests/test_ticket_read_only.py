"""A ticket says what was announced: nobody but its stream changes that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from everyone import EVERYONE, One

from calibrant import Recalibrator
from calibrant.recalibrate.table import Table

NAMES = sorted(EVERYONE)


def shown(ticket: Any) -> list[str]:
    """Return every name that a ticket shows and that is no call."""
    names = [name for name in dir(ticket) if not name.startswith("_")]
    gone = {"aside", "middle", "front"}  # Old names, which warn.
    return [n for n in names if n not in gone and not callable(getattr(type(ticket), n))]


def refused(ticket: Any) -> None:
    facts = shown(ticket)
    assert {"id", "number", "outcome", "raw", "time", "value", "mean"} <= set(facts)
    for name in facts:
        with pytest.raises(AttributeError):
            setattr(ticket, name, 0.5)
        with pytest.raises(AttributeError):
            delattr(ticket, name)


@pytest.mark.parametrize("name", NAMES)
def test_no_attribute_of_a_live_ticket_can_be_set(name: str) -> None:
    one: One = EVERYONE[name]
    model = one.make(seed=1)
    ticket = model.forecast(one.raw)
    before = ticket.to_dict()
    refused(ticket)
    refused(type(ticket).from_bytes(ticket.to_bytes()))
    with pytest.raises(AttributeError):
        ticket.note = 1
    assert ticket.to_dict() == before
    refused(model.observe(ticket, one.outcomes[0]))


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_a_ticket_are_read_only_or_copies(name: str) -> None:
    one = EVERYONE[name]
    ticket = one.make(seed=1).forecast(one.raw)
    before = ticket.to_dict()
    for fact in shown(ticket):
        value = getattr(ticket, fact)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = 0
    assert ticket.to_dict() == before


@pytest.mark.base
def test_the_ticket_of_a_table_keeps_its_key() -> None:
    ticket = Table(Recalibrator(), seed=1).forecast("north", 0.4)
    assert ticket.key == "north"
    refused(ticket)
