"""A stream of binary outcomes whose rounds belong to groups, one by one and in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Ticket
from calibrant.groups.certificate import rows_of
from calibrant.groups.names import RECENT, CheckingRules, History, Name, Period, Roster, names_of
from calibrant.groups.spec import SETTINGS, GroupArena, GroupRule, GroupSpec
from calibrant.groups.ticket import (
    GroupCounter,
    GroupIssuer,
    GroupTicket,
    key_of_names,
    names_again,
    recent_of,
    recent_words,
    text_of,
    text_words,
    written,
)
from calibrant.groups.version1 import migrated
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import gather
from calibrant.kernels.layout import CELL, COUNT, ISSUED, KEY, SECRET
from calibrant.recalibrate.binary import Binary
from calibrant.recalibrate.delivery import Pending, checked, times
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.stream import SHORT, overtaken

Note = tuple[int, float, float, int]
"""What was seen of the next draw: place, weight, mixed forecast and clock."""


class Grouped(Binary):
    """What a recalibrator with groups does beneath its verbs.

    Before each step of the row, the groups of its round are listed in the scratch room.
    """

    __slots__ = ("_recent", "_roster", "_rules")

    version: ClassVar[int] = 2
    migrations: ClassVar[dict[int, Migration]] = {1: migrated}

    _arena: GroupArena
    _rules: CheckingRules
    _counter: GroupCounter
    _issuer: GroupIssuer
    _spec: GroupSpec

    _tickets: ClassVar[Any] = GroupTicket
    _counters: ClassVar[Any] = GroupCounter

    def _begin(self, spec: GroupSpec, secret: bytes, max_open: Any) -> None:  # type: ignore[override]
        """Set up a row of that spec before its first round, without groups."""
        super()._begin(spec, secret, max_open)
        self._roster = Roster(spec.max_groups)
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    # ------------------------------------------------------------------ facts

    @property
    def calibrator(self) -> GroupRule:
        """The rule that runs in every bucket and group."""
        return self._spec.rule

    @property
    def groups(self) -> tuple[Name, ...]:
        """All groups so far, in the order in which they appeared."""
        return tuple(self._roster.names())

    # -------------------------------------------------------------- groups of a round

    def _names(self, groups: Any, context: Any, raw: float) -> tuple[Name, ...]:
        """Return the names of a round: those given, and those of the rules."""
        if not self._rules.rules:
            return names_of(groups, self._rules.declared)
        history = History(self.issued, self.rounds, raw, tuple(self._recent))
        return self._rules.names(groups, context, history)

    def _enter(self, names: tuple[Name, ...]) -> None:
        """Give new groups their places, begin new periods, and list all groups of a round."""
        if self._own(ISSUED) >= self._rows.capacity:
            self._rows.check_room(self._row)
        codes = self._roster.enter(names)
        self._make_room()
        self._list(codes)

    def _make_room(self) -> None:
        """Let the row grow if there are more groups than it has room for."""
        self._arena.grow(len(self._roster))
        self._rows.use_array()

    def _list(self, codes: list[int]) -> None:
        gather(self._rows.state()[0], codes, 0, len(codes))

    # ----------------------------------------------------------------- a round

    def _issue(self, raw: Any) -> GroupTicket:
        """Make a forecast for a raw one that comes with groups and context; return its ticket."""
        value, groups, context = raw
        names = self._names(groups, context, value)
        self._enter(names)
        number, place, weight, _, clock, _, _ = self._rows.issue(self._row, value)
        told = number, number, place, weight, value
        ticket = GroupTicket(self._issuer, *told, None, clock, None)
        ticket.groups = names
        return ticket

    def _learn(self, ticket: Ticket, outcome: int) -> None:
        self._list(self._roster.running(cast(GroupTicket, ticket).groups))
        super()._learn(ticket, outcome)
        self._recent.append((ticket.value, outcome))

    def _correct(self, ticket: Ticket, outcome: int) -> None:
        self._list(self._roster.running(cast(GroupTicket, ticket).groups))
        super()._correct(ticket, outcome)

    def _look(self, raw: float, names: tuple[Name, ...]) -> Note:
        """Look at the next draw; nothing changes."""
        self._list(self._roster.running(names))
        return self._rows.peek(self._row, raw)

    def _learn_noted(self, raw: float, outcome: int, names: tuple[Name, ...]) -> None:
        """Make a round of a prediction, or of a draw made now."""
        note: Any = self._notes.get((raw, names))
        if note is not None and not self._rows.bookable(self._row, note, raw):
            del self._notes[raw, names]
            raise overtaken(raw)
        self._make_round(raw, outcome, names, note)
        self._notes.pop((raw, names), None)
        self._expire_old(self._own(ISSUED))

    def _make_round(
        self, raw: float, outcome: int, names: tuple[Name, ...], note: Note | None = None
    ) -> Note:
        """Make a round whose outcome is known, and return its draw."""
        self._enter(names)
        seen = self._rows.peek(self._row, raw) if note is None else note
        self._rows.book(self._row, seen, raw, outcome)
        self._recent.append((self._issuer.values[seen[0] & CELL], outcome))
        return seen

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Put everything back if something in the block goes wrong."""
        counter, issuer = self._counter, self._issuer
        counter.file_latest()
        flat, desk, names = self._arena.snapshot(), counter.desk.copy(), dict(issuer.names)
        roster, recent = self._roster.copy(), self._recent.copy()
        try:
            yield
        except BaseException:
            self._arena.become(flat)
            self._rows.use_array()
            counter.desk, counter.latest, issuer.names = desk, None, names
            self._roster, self._recent = roster, recent
            raise

    # ------------------------------------------------------------------- batches

    def _replay(
        self,
        raw: Any,
        outcomes: Any,
        groups: Any,
        context: Any,
        available: Any,
        time: Any,
        carry: Any,
    ) -> Run:
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        given = [None] * len(raws) if context is None else list(context)
        check.same_length(raw=raws, context=given)
        times(time, len(raws))
        if carry is not None:
            checked(carry)
        with passing(self._gate):
            first = self.issued
            if available is not None or carry is not None:
                return self._replay_late(raws, told, groups, given, (available, time, carry))
            self._rows.check_room(self._row, len(raws))
            if self._rules.pure:
                forecast, means = self._replay_ahead(raws, told, groups, given)
            else:
                with self._undone_on_error():
                    forecast, means = self._replay_rows(raws, told, groups, given)
            self._expire_old(first + len(raws))
        return Run(forecast, means, self.buckets, raws, first, Pending())

    def _replay_late(
        self,
        raw: Reals,
        outcomes: Bits,
        groups: Any,
        context: list[Any],
        when: tuple[Any, Any, Any],
    ) -> Run:
        first = self.issued
        given = rows_of(groups, len(raw), self._rules.declared)
        asked = list(zip(raw.tolist(), given, context, strict=True))
        with self._undone_on_error():
            tickets, pending = self._play_late(asked, outcomes.tolist(), *when)
        forecast, mean = ([getattr(t, name) for t in tickets] for name in ("value", "mean"))
        shown = np.array(forecast, np.float64), np.array(mean, np.float64)
        return Run(*shown, self.buckets, raw, first, pending)

    def _replay_rows(
        self, raw: Reals, outcomes: Bits, groups: Any, context: list[Any]
    ) -> tuple[Reals, Reals]:
        """Play rounds one by one, since rules wait for outcomes."""
        forecast, means = np.empty(len(raw)), np.empty(len(raw))
        given = rows_of(groups, len(raw), self._rules.declared)
        rows = zip(raw.tolist(), outcomes.tolist(), given, context, strict=True)
        for t, (p, y, names, told) in enumerate(rows):
            place, weight, *_ = self._make_round(p, y, self._names(names, told, p))
            forecast[t] = self._issuer.values[place & CELL]
            means[t] = self._rows.mean_of(place, weight)
        return forecast, means

    def _replay_ahead(
        self, raw: Reals, outcomes: Bits, groups: Any, context: list[Any]
    ) -> tuple[Reals, Reals]:
        """Play rounds whose groups are known beforehand."""
        forecast, means = np.empty(len(raw)), np.empty(len(raw))
        roster, batch = self._roster.copy(), self._spec.rule.batch
        offsets, members = self._columns(roster, raw, groups, context)
        self._roster = roster
        self._make_room()
        made = batch.__dict__.get("machine")
        if made is None and len(raw) > SHORT:
            made = batch.machine
        if made is not None:
            flat = self._arena.flat()
            columns = raw, outcomes, offsets, members, forecast, means
            made.replay(flat, flat.view(np.float64), self._row, *columns)
            self._rows.use_array()
        else:
            lists = [part.tolist() for part in (raw, outcomes, offsets, members)]
            batch.replay(*self._rows.state(), self._row, *lists, forecast, means)
        last = slice(max(len(raw) - RECENT, 0), None)
        self._recent.extend(zip(forecast[last].tolist(), outcomes[last].tolist(), strict=True))
        return forecast, means

    def _columns(
        self, roster: Roster, raw: Reals, groups: Any, context: list[Any]
    ) -> tuple[Words, Words]:
        """Return where each round's groups start in one list, and the list."""
        rows = len(raw)
        plain = isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "iuU"
        if plain and not self._rules.rules:
            check.same_length(raw=raw, groups=groups)
            return np.arange(rows + 1), roster.enter_column(groups)
        given = rows_of(groups, rows, self._rules.declared)
        if self._rules.rules:
            # Rules that need not wait for outcomes.
            issued, rounds, made = self.issued, self.rounds, zip(given, context, strict=True)
            given = [
                self._rules.names(names, told, History(issued + t, rounds + t, p, ()))
                for t, (p, (names, told)) in enumerate(zip(raw.tolist(), made, strict=True))
            ]
        # Places of names that come again; a period has to be looked at each time.
        known: dict[tuple[Name, ...], list[int]] = {}
        sizes, members = np.zeros(rows + 1, np.int64), list[int]()
        for t, names in enumerate(given):
            if (codes := known.get(names)) is None:
                codes = roster.enter(names)
                if not any(isinstance(name, Period) for name in names):
                    known[names] = codes
            sizes[t + 1] = len(codes)
            members += codes
        return np.cumsum(sizes), np.array(members, np.int64)

    # ------------------------------------------------------------------- documents

    def _blocks(self, flat: Words) -> Words:
        """Return the blocks of all buckets, and of all groups behind them, a block a row."""
        layout = self._spec.layout
        start = layout.row + layout.blocks
        end = self._arena.fixed + len(self._roster) * layout.stride
        return flat[start:end].reshape(-1, layout.stride)

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        settings = self._spec.settings | {
            "max_open": self.max_open,
            "rules": len(self._rules.rules),
            "declared": [written(name) for name in self._rules.declared],
        }
        cells = self._blocks(self._arena.snapshot())[self.buckets :, FIRST:]
        held = self._counter.names_in_use()
        return settings, {
            "groups": cells.reshape(-1),
            "names": text_words(self._roster.names()),
            "recent": recent_words(self._recent),
            "held": text_words([*held.values()]),
        }

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        spec = GroupSpec.made(**{name: s[name] for name in SETTINGS})
        row = self._verified(arrays["row"], spec.layout)
        self._begin(spec, row[SECRET : SECRET + 2].astype("<i8").tobytes(), s["max_open"])
        names = text_of(arrays["names"])
        for part in names:
            self._roster.enter(names_again([part]))
        if len(self._roster) != len(names):
            raise ValueError("groups of one name")
        self._arena.grow(len(names))
        flat = self._arena.flat()
        keys = self._blocks(flat)[: self.buckets, KEY].copy()
        flat[self._row : self._arena.fixed] = row
        blocks = self._blocks(flat)
        blocks[: self.buckets, KEY] = keys
        blocks[self.buckets :, FIRST:] = _checked(arrays["groups"], blocks[self.buckets :, FIRST:])
        self._recent.extend(recent_of(arrays["recent"]))
        held = map(names_again, text_of(arrays["held"]))
        self._issuer.names = {key_of_names(each): each for each in held}
        self._load_tickets(arrays["tickets"])

    def _check_tickets(self, lines: Words) -> None:
        super()._check_tickets(lines)
        keys, known = set(lines[:, -1].tolist()), set(self._issuer.names)
        if keys != known:
            raise ValueError("tickets of other groups")


def _checked(cells: Words, blocks: Words) -> Words:
    """Return the cells of groups in the shape of their blocks, if they can have been counted."""
    made = cells.reshape(blocks.shape)
    counts = made[:, 1::2]
    if ((counts < COUNT[0]) | (counts > COUNT[1])).any():
        raise ValueError("counts below zero")
    return made
