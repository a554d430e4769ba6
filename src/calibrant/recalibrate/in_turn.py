"""Logs of streams that play event by event: the calls one by one, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Words
from calibrant.errors import CalibrantError, InvalidInput
from calibrant.recalibrate.delivery import stamps_of
from calibrant.recalibrate.intact import TicketT
from calibrant.recalibrate.late import forecasts_of, ids_of
from calibrant.recalibrate.stream import Stream


@dataclass(frozen=True, eq=False)
class Answers:
    """What came of a log, an event a row.

    Attributes
    ----------
    tickets
        The ticket of each event: an outcome and its forecast have the same.
    blank
        What stands in a row of ``value`` or ``mean`` that is not known.
    """

    tickets: list[Any]
    blank: Any

    def __len__(self) -> int:
        return len(self.tickets)

    @property
    def number(self) -> Words:
        """The number of each event's ticket."""
        return np.array([ticket.number for ticket in self.tickets], np.int64)

    @property
    def value(self) -> Any:
        """What was announced for each event's ticket: an array, or a list of distributions.

        Of a ticket that was open before the log, what was not kept is not a number, or None.
        """
        return self._column("value")

    @property
    def mean(self) -> Any:
        """What was expected for each event's ticket, in the same form."""
        return self._column("mean")

    def _column(self, name: str) -> Any:
        rows = [self._known(ticket, name) for ticket in self.tickets]
        if self.blank is None:
            return rows
        return np.array(rows, np.float64).reshape(len(rows), *np.shape(self.blank))

    def _known(self, ticket: Any, name: str) -> Any:
        try:
            return getattr(ticket, name)
        except InvalidInput:
            return self.blank


class InTurn(Stream[TicketT]):
    """How a log is played on a stream that has no loop for logs.

    A kind says what a raw forecast is, checked, and what stands for an answer that is not known.
    """

    __slots__ = ()

    def observe_many(self, id: Any, outcomes: Any, *, time: Any = None) -> Answers:
        """Report the outcomes of many open tickets, given by their ids, one after the other."""
        told = check.listed(outcomes, "outcomes")
        return self._log(np.ones(len(told), np.int64), id, told, time, self._outcome)

    def _log(self, kind: Any, id: Any, x: Any, time: Any, asked: Callable[..., Any]) -> Answers:
        """Play a log; ``asked`` makes a checked raw forecast of what stands there, and where."""
        told, made = check.listed(x, "x"), forecasts_of(kind)
        names = ids_of(id, told)
        check.same_length(kind=made, id=names, x=told)
        stamps = [None if t != t else t for t in stamps_of(time, len(told)).tolist()]
        for event, forecast in enumerate(made.tolist()):
            with _at(event):
                told[event] = asked(told[event], event) if forecast else self._outcome(told[event])
        with self._gate:
            return self._whole(lambda: self._logged(made, names, told, stamps))

    def _logged(self, made: Mask, ids: list[Any], told: list[Any], stamps: list[Any]) -> Answers:
        new: dict[int, TicketT] = {}
        tickets: list[TicketT] = []
        events = zip(made.tolist(), ids, told, stamps, strict=True)
        for event, (forecast, id, x, time) in enumerate(events):
            with _at(event):
                if forecast:
                    ticket = self._open_ticket(x, *self._named(id, time))
                    new[ticket.number] = ticket
                else:
                    found = self._counter.find(id, self.issued)
                    # What the desk keeps of a ticket is less than what was announced.
                    ticket = self._close_ticket(new.get(found.number, found), x, time)
            tickets.append(ticket)
        return Answers(tickets, self._blank)

    @property
    def _blank(self) -> Any:
        """What stands for an answer that is not known."""
        return np.nan


@contextmanager
def _at(event: int) -> Iterator[None]:
    """Say in errors at which event of a log they came."""
    try:
        yield
    except CalibrantError as error:
        raise type(error)(f"event {event}: {error}") from None
