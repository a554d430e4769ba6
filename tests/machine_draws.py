"""What the machine draws: strategies that depend on the kind at play and on its book."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import machine_naive as naive
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition

__all__ = [
    "BAD_OUTCOME",
    "BAD_RAW",
    "BY",
    "CAPS",
    "CLOSED",
    "DELAYS",
    "EVENTS",
    "NAMES",
    "OPEN",
    "OUTCOME",
    "PAST",
    "PEEK",
    "RAW",
    "READ",
    "TRIP",
    "WAY",
    "first",
    "having",
]

NAMES = (None, "a", "a", "b")
"""Few, so that names are often given again."""
CAPS = st.sampled_from([2, 5, 1000])
DELAYS = st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0, math.inf, math.nan])


def _own(choose: Callable[[Any], Any]) -> Any:
    """Return a strategy that depends on the machine it is drawn for."""
    return st.runner().flatmap(choose)


RAW = _own(lambda machine: machine.kind.raws)
PEEK = _own(lambda machine: machine.kind.peeks)
OUTCOME = _own(lambda machine: machine.kind.outcomes)
READ = _own(lambda machine: st.sampled_from(machine.reads))
OPEN = _own(lambda machine: st.sampled_from(_numbers(machine.book.open())))
CLOSED = _own(lambda machine: st.sampled_from(_numbers(machine.book.closed())))
PAST = _own(lambda machine: st.sampled_from([None, *_numbers(machine.past())]))
BAD_RAW = _own(lambda machine: st.sampled_from(machine.kind.bad_raws))
BAD_OUTCOME = _own(lambda machine: st.sampled_from(machine.kind.bad_outcomes))
TRIP = _own(lambda machine: st.sampled_from(machine.kind.trips))
BY = st.sampled_from(["ticket", "number", "name", "stored"])
"""How a ticket is named: by itself, its number, its name, or what was stored of it."""
WAY = _own(lambda machine: st.sampled_from(["nothing", "read", *_ways(machine.kind)]))

EVENTS = st.lists(
    st.tuples(st.none() | st.integers(0, 3), RAW, OUTCOME, st.sampled_from(NAMES)), max_size=6
)
"""Lines of a log: which open ticket gets its outcome, or none for a forecast."""


def _numbers(rounds: list[naive.Round]) -> list[int]:
    return [made.number for made in rounds]


def _ways(kind: Any) -> tuple[str, ...]:
    """Return what may happen between a prediction and its round without consequences."""
    return (*kind.trips, "peek") if kind.has("peek") else kind.trips


def first(strategy: Any) -> Any:
    """Return one value that is always the same."""
    found: list[Any] = []

    @settings(max_examples=1, derandomize=True, database=None)
    @given(strategy)
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found[0]


def having(*verbs: str, when: Callable[[Any], Any] = lambda machine: True) -> Any:
    """Return the precondition that a kind has these verbs, and that the moment is right."""
    return precondition(lambda machine: machine.kind.has(*verbs) and when(machine))
