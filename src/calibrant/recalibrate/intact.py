"""What keeps a stream whole if a call is interrupted: it is done wholly, or not at all.

An interrupt is any exception that comes from elsewhere, such as Ctrl-C; CPython raises it when a
function begins, after a call and when a loop goes round.  A call notes what it will change, in as
few words as it can, and puts that back, or finishes what it began, before the exception goes on.
A batch is one call: if it does not come to its end, nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from calibrant.calibrators.arena import Arena
from calibrant.kernels.layout import ISSUED, MOST_OUTSTANDING
from calibrant.kernels.whole import copied
from calibrant.recalibrate.counter import AnyTicket, Counter

TicketT = TypeVar("TicketT", bound=AnyTicket)
MadeT = TypeVar("MadeT")
Found = tuple[Any, ...]
Spans = list[tuple[int, int]]
Kept = list[tuple[int, Any]]
"""Where words start, and a copy of them."""


class Intact(Generic[TicketT]):
    """A row, its open tickets, and how either is put back.

    Kinds say what more there is to be put back.
    """

    __slots__ = ()

    _arena: Arena
    _counter: Counter[TicketT]
    _row: int

    def _own(self, place: int) -> int:
        """Return one of the row's own counts."""
        return int(self._words()[self._row + place])

    def _words(self) -> Any:
        """Return the words in the form in which they are, to read or change counts among them.

        Nothing is converted, since other threads read counts in the middle of a call.  A form is
        there before the other one goes, so that one of both is found.
        """
        while (words := self._arena.as_is()) is None:
            pass
        return words

    # ------------------------------------------------------------------ a forecast

    def _unless_handed_out(self, number: int, most: int) -> None:
        """Take back a forecast that was interrupted, unless its ticket was handed out already."""
        counter, latest = self._counter, self._counter.latest
        if (latest is not None and latest.number == number) or counter.holds(number):
            self._expire_old(number + 1)
        else:
            self._take_back(number, most)

    def _take_back(self, number: int, most: int) -> None:
        """Take back the forecast of that number, if it was made.

        So many outcomes were missing at a time before, at most.
        """
        words, row = self._words(), self._row
        words[row + ISSUED], words[row + MOST_OUTSTANDING] = number, most

    # ------------------------------------------------------------------- words

    def _spans(self, ticket: TicketT) -> Spans:
        """Return where the words start and end that the outcome of a ticket may change."""
        return [(self._row, self._row + len(self._arena.layout.fresh))]

    def _kept(self, spans: Spans) -> Kept:
        """Return a copy of some words, to be put back if what follows is interrupted."""
        words = self._words()
        return [(start, copied(words, start, end)) for start, end in spans]

    def _put_back(self, kept: Kept) -> None:
        for start, part in kept:
            # In the form in which they were.
            words = self._arena.words() if type(part) is list else self._arena.flat()
            words[start : start + len(part)] = part

    def _whole(self, play: Callable[[], MadeT]) -> MadeT:
        """Play a batch; if it is interrupted or goes wrong, nothing has changed."""
        first, kept = self._own(ISSUED), None
        try:
            kept = self._everything()
            return play()
        except BaseException:
            if kept is not None:
                self._become_again(kept)
                self._counter.undo(first)
            raise
        finally:
            self._counter.follow_no_more()

    def _everything(self) -> Any:
        """Return what a batch may change, but for tickets."""
        self._counter.follow()
        return self._kept([(0, len(self._words()))])

    def _become_again(self, kept: Any) -> None:
        """Be as :meth:`_everything` found this stream."""
        self._put_back(kept)

    # ------------------------------------------------------------------- expiry

    def _expire_old(self, issued: int) -> None:
        """Drop the tickets that are too old once that many forecasts were made."""
        counter = self._counter
        for found in counter.old(issued) if self._reserves else ():
            ticket = counter.kind.revived(counter.issuer, 0, found[2], found[3:])
            kept = self._kept(self._spans(ticket))
            try:
                self._forget([found[3:]])
                counter.let_go([found])
            except BaseException:
                if counter.holds(found[2]):
                    self._put_back(kept)
                raise
        counter.expire(issued)

    @property
    def _reserves(self) -> bool:
        """Whether something is given back when a ticket expires."""
        return False

    def _forget(self, tickets: list[Found]) -> None:
        """Take notice that no outcome will come for tickets, given by their fields."""
