"""Which events of a log cannot be played by a table, and why: for those who go on without them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from calibrant import errors
from calibrant.core.arrays import Mask, Reals
from calibrant.core.desk import SHIFT
from calibrant.recalibrate.keyed import Keys
from calibrant.recalibrate.late import KINDS, Reader
from calibrant.recalibrate.table import Table

SAME: Final = "new, got the same event again"
OTHER: Final = "new, got another event under it"
RULES: Final[dict[type[errors.CalibrantError], str]] = {
    errors.UnknownTicket: "that of an open ticket",
    errors.ExpiredTicket: "that of an open ticket, got one that expired",
    errors.ForeignTicket: "that of a ticket of its key",
    errors.TooManyOpen: "of a forecast that the table has room for",
    errors.InvalidType: "a string that is not empty, or for an outcome its ticket's number",
}


class EventFault(NamedTuple):
    """An event that breaks a rule: its row, and what is wrong with it."""

    row: int
    column: str
    value: str
    rule: str


def sieve(table: Table, keys: Any, kind: Any, id: Any, x: Any, time: Any) -> list[EventFault]:
    """Return the events that :meth:`.Table.play` refuses, each as if those before it were gone.

    What is left can be played.  Columns are lists of one length, with None for what is missing.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> table = Table(Recalibrator(resolution=10), seed=7)
    >>> log = ["a", "a"], ["forecast", "outcome"], ["one", "two"], [0.5, 1.0], [None, None]
    >>> sieve(table, *log)
    [EventFault(row=1, column='id', value="'two'", rule='that of an open ticket')]
    """
    codes = np.array([KINDS.get(k, k if k in (0, 1) else -1) for k in kind], np.int64)
    x, stamps = np.array(x, np.float64), np.array(time, np.float64)
    found = _first_look(codes, keys, x, stamps, table._spec.rule.timed)
    fine, reader = [k for k in range(len(codes)) if k not in found], _Sieve(table, x, stamps)
    rows = table._rows_of(Keys.of([keys[k] for k in fine])).tolist()
    for k, row in zip(fine, rows, strict=True):
        fault = reader.event(codes[k] == 0, id[k], row, k)
        if fault is not None:
            found[k] = fault
    columns = {"kind": kind, "key": keys, "id": id, "x": x.tolist(), "time": stamps.tolist()}
    told = sorted((row, *fault) for row, fault in found.items())
    return [EventFault(row, name, repr(columns[name][row]), rule) for row, name, rule in told]


def _first_look(
    codes: Any, keys: list[Any], x: Reals, stamps: Reals, timed: bool
) -> dict[int, tuple[str, str]]:
    """Return what is wrong with each event by itself."""
    made = codes == 0
    lost = np.array([type(key) not in (str, int) for key in keys], bool)
    wrong: list[tuple[Mask, str, str]] = [
        (np.isinf(stamps), "time", "finite"),
        (made & timed & np.isnan(stamps), "time", "given to a rule that forgets in time"),
        (made & ~((x >= 0) & (x <= 1)), "x", "a number in [0, 1]"),
        ((codes == 1) & (x != 0) & (x != 1), "x", "0 or 1"),
        (lost, "key", "a string or a whole number"),
        (codes < 0, "kind", "'forecast' (0) or 'outcome' (1)"),
    ]
    return {row: (name, rule) for bad, name, rule in wrong for row in np.flatnonzero(bad).tolist()}


class _Sieve(Reader):
    """A reader that says of each event what is wrong, and goes on."""

    def __init__(self, table: Table, x: Reals, stamps: Reals) -> None:
        ways = table._issued_by, table._unknown, table._crowd()
        super().__init__(table._desk, table._max_open, *ways)
        self.table, self.x, self.stamps = table, x.tolist(), stamps.tolist()
        self._events: dict[tuple[bool, int], int] = {}

    def event(self, made: bool, id: Any, row: int, event: int) -> tuple[str, str] | None:
        """Play an event on the tickets alone; return column and rule if that cannot be."""
        try:
            word = row << SHIFT | self.made(row) if made else self._word(id, row)
            if not made and self.stamps[event] < self._known(word)[1]:
                return "time", "not before the forecast's"
            if made:
                self._forecast(id, row, event)
            else:
                self._outcome(id, row, event)
        except errors.CalibrantError as error:
            return "id", self._rule(error, made, id, row, event)
        self._events[made, cast(int, word)] = event
        return None

    def _word(self, id: Any, row: int) -> int | None:
        return self._named(id) if isinstance(id, str) else self._numbered(id, row)

    def _known(self, word: int | None) -> tuple[float, float]:
        """Return raw forecast and time of a ticket; not a number where nothing is known."""
        if (True, word) in self._events:
            event = self._events[True, cast(int, word)]
            return self.x[event], self.stamps[event]
        found = None if word is None else self.desk.get(word)
        return (np.nan, np.nan) if found is None else (found[5], found[6])

    def _rule(self, error: errors.CalibrantError, made: bool, id: Any, row: int, event: int) -> str:
        """Return which rule was broken."""
        if not isinstance(error, errors.RepeatedTicket):
            return RULES[type(error)]
        word = self._word(id, row)
        if made:
            before = self._known(word)[0]
        elif (False, word) not in self._events:
            return RULES[errors.UnknownTicket]
        else:
            before = self.x[self._events[False, cast(int, word)]]
        return SAME if before == self.x[event] else OTHER
