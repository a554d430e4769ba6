"""How many tickets a whole table may have open, and which ones go when there are more.

A forecast opens a ticket.  Right after it the ticket of its own key goes that is too old, if there
is one; then, while more tickets are open than the table may have, either the forecast is refused,
or the ticket goes that was opened first, whosever it is.  Batches ask a :class:`Crowd`, which
counts along in the order of the calls one by one.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.desk import NUMBER, SHIFT, Desk, Found
from calibrant.errors import TooManyOpen
from calibrant.kernels.batches import FORGET
from calibrant.recalibrate.delivery import Schedule

REFUSE: Final = "refuse"
EXPIRE: Final = "expire"
WHEN_FULL: Final = (REFUSE, EXPIRE)
SLACK: Final = 1_000
"""Closed tickets that may stand in the line before they are swept out."""


class Ages:
    """Tickets of a table in the order in which they were opened, told by row and number.

    Nobody says that a ticket was closed: the desk knows, and is asked when it matters.
    """

    __slots__ = ("_first", "_line", "_turns")

    def __init__(self, words: Iterable[int] = ()) -> None:
        self._first, self._line = 0, deque[int]()
        self._turns: dict[int, int] = {}
        self.add(words)

    def add(self, words: Iterable[int]) -> None:
        """Let tickets be the youngest, one after the other."""
        for word in words:
            self._turns[word] = self._first + len(self._line)
            self._line.append(word)

    def waiting(self, desk: Desk) -> Iterator[int]:
        """Yield the tickets that are open, the oldest first."""
        for turn, word in enumerate(self._line, self._first):
            if self._turns.get(word) == turn and desk.get(word) is not None:
                yield word

    def oldest(self, desk: Desk) -> int:
        """Return the ticket that was opened first, of those that are open."""
        word = next(self.waiting(desk))
        while self._line[0] != word or self._turns[word] != self._first:
            self._line.popleft()
            self._first += 1
        return word

    def swept(self, desk: Desk) -> Ages:
        """Return the same without closed tickets, if these are many by now."""
        many = len(self._line) > 2 * len(desk) + SLACK
        return Ages(self.waiting(desk)) if many else self


@dataclass
class Crowd:
    """The open tickets of a table while a batch is read: counted, and dropped if there are many.

    Attributes
    ----------
    desk, most
        Where tickets wait from before the batch, and how many may be open.
    ages
        The tickets that are open by age; None if one too many is refused.
    lost
        Tickets that were dropped, and at which moment of the batch.
    """

    desk: Desk
    most: int
    ages: Ages | None
    lost: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open, self._gone = len(self.desk), set[int]()
        self._new: dict[int, None] = {}
        self._order: list[int] = []
        self._oldest = self._by_age()

    def opened(self, word: int, max_open: int, moment: int) -> None:
        """Count a forecast's ticket; what goes for it goes at this moment."""
        old = word - max_open if word & NUMBER >= max_open else None
        aged = old is not None and self._waits(old)
        if self.ages is None and self._open + 1 - aged > self.most:
            raise TooManyOpen(told(self.most))
        if aged and old is not None:
            self.closed(old)
        self._new[word] = None
        self._order.append(word)
        self._open += 1
        while self._open > self.most:
            surplus = next(self._oldest)
            self.lost[surplus] = moment
            self.closed(surplus)

    def closed(self, word: int) -> None:
        """Count an outcome, or an end without one; that of a ticket that is lost is nothing."""
        if word not in self._gone:
            self._gone.add(word)
            self._open -= 1

    def lost_before(self, held: list[Found]) -> list[Found]:
        """Return lost tickets from before the batch, apart from those that are held."""
        apart = {found[1] << SHIFT | found[2] for found in held}
        some = (self.desk.get(word) for word in self.lost if word not in apart)
        return [found for found in some if found is not None]

    def _waits(self, word: int) -> bool:
        if word in self._gone:
            return False
        return word in self._new or self.desk.get(word) is not None

    def _by_age(self) -> Iterator[int]:
        before = self.ages.waiting(self.desk) if self.ages is not None else iter(())
        # Tickets of the batch join the list while others are taken from it.
        return itertools.filterfalse(self._gone.__contains__, itertools.chain(before, self._order))


def told(most: int) -> str:
    """Say which rule refuses a forecast."""
    return f"open tickets must be at most {most} in the whole table, got one more"


@dataclass(frozen=True)
class Turns:
    """When each event of a schedule happens, by the rows of the batch.

    An outcome that is known when its forecast is made is learned at once; another one right before
    the next forecast of its key that knows of it, or at the end of the batch.
    """

    plan: Schedule
    when: Words

    @classmethod
    def of(cls, plan: Schedule, rows: Words, positions: Words, prompt: Words) -> Turns:
        """Find turns by the row of each ticket, its place in the batch and whether it is prompt.

        A ticket from before the batch has a place below 0.
        """
        events = plan.events
        ticket = np.where(events < 0, -1 - events, events)
        made, place = events >= 0, positions[ticket]
        # The next forecast of the same key, or the end.
        following = np.where(made, np.arange(len(events)), len(events))
        following = np.minimum.accumulate(following[::-1])[::-1]
        upcoming = np.append(ticket, 0)[following]
        same = (following < len(events)) & (rows[upcoming] == rows[ticket])
        before = np.where(same, positions[upcoming], len(positions))
        when = np.where(made, 4 * place + 1, 4 * before)
        return cls(plan, np.where(~made & prompt[ticket], 4 * place + 3, when).astype(np.int64))

    def most(self) -> int:
        """Return how many more tickets are open at some moment than at first, or fewer."""
        steps = np.where(self.plan.events[np.argsort(self.when, kind="stable")] < 0, -1, 1)
        return int(np.cumsum(steps).max(initial=0))

    def count(self, crowd: Crowd, words: Words, max_open: int) -> None:
        """Let a crowd see all events in their order."""
        order = np.argsort(self.when, kind="stable")
        pairs = zip(self.plan.events[order].tolist(), self.when[order].tolist(), strict=True)
        listed = words.tolist()
        for event, when in pairs:
            if event < 0:
                crowd.closed(listed[-1 - event])
            else:
                try:
                    crowd.opened(listed[event], max_open, when + 1)
                except TooManyOpen as error:
                    raise TooManyOpen(f"row {when // 4}: {error}") from None

    def without(self, lost: dict[int, int], words: Words, rows: Words, safe: bool) -> Schedule:
        """Return the plan in which tickets are lost, each at its moment.

        ``safe`` says whether something is given back for a ticket that is lost.
        """
        plan, gone = self.plan, np.isin(words, list(lost))
        ticket = np.where(plan.events < 0, -1 - plan.events, plan.events)
        stays = ~(gone[ticket] & (plan.events < 0))
        events, when, whose = plan.events[stays], self.when[stays], rows[ticket[stays]]
        if safe:
            some, moments = places_of(lost, words)
            events = np.concatenate([events, FORGET + some])
            when, whose = np.concatenate([when, moments]), np.concatenate([whose, rows[some]])
        order = np.lexsort([when, whose])
        waiting, expired = (part[~gone[part]] for part in (plan.waiting, plan.expired))
        return Schedule(events[order], waiting, expired)


def places_of(lost: dict[int, int], words: Words) -> tuple[Words, Words]:
    """Return where lost tickets stand among others, those that went first before, and when."""
    some = np.flatnonzero(np.isin(words, list(lost)))
    place = dict(zip(words[some].tolist(), some.tolist(), strict=True))
    found = np.array([place[word] for word in lost], np.int64)
    return found, np.array([*lost.values()], np.int64)


def words_of(rows: Words, numbers: Words) -> Words:
    """Return tickets as a word each."""
    made: Words = rows << SHIFT | numbers
    return made
