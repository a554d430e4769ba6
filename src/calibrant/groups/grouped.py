"""A stream of binary outcomes whose rounds belong to groups, one by one and in batches."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, cast

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Ticket
from calibrant.groups.certificate import rows_of
from calibrant.groups.names import RECENT, CheckingRules, History, Period, Roster, names_of
from calibrant.groups.spec import (
    SETTINGS,
    GroupArena,
    GroupCounter,
    GroupIssuer,
    GroupRule,
    GroupSpec,
    GroupTicket,
    Names,
    key_of_names,
    names_again,
    recent_of,
    stored,
    text_of,
    written,
)
from calibrant.groups.version1 import migrated
from calibrant.kernels.compile import SHORT
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import gather
from calibrant.kernels.layout import CELL, ISSUED, NARROW
from calibrant.kernels.rounds import Peeked
from calibrant.recalibrate.binary import Binary
from calibrant.recalibrate.body import check_gaps
from calibrant.recalibrate.in_turn import InTurn
from calibrant.recalibrate.intact import Kept, Spans
from calibrant.recalibrate.secret import Secret
from calibrant.recalibrate.spec import shared_spec
from calibrant.recalibrate.stream import Stream


class Grouped(Binary, InTurn[Ticket]):
    """What a recalibrator with groups does beneath its verbs.

    Before each step of the row, the groups of its round are listed in the scratch room.
    """

    __slots__ = ("_entered", "_recent", "_roster", "_rules")

    migrations: ClassVar[dict[int, Migration]] = Binary.migrations | {1: migrated}

    _arena: GroupArena
    _rules: CheckingRules
    _counter: GroupCounter
    _issuer: GroupIssuer
    _spec: GroupSpec

    _tickets: ClassVar[Any] = GroupTicket
    _counters: ClassVar[Any] = GroupCounter

    def _begin(self, spec: GroupSpec, secret: Secret, max_open: Any) -> None:  # type: ignore[override]
        """Set up a row of that spec before its first round, without groups."""
        super()._begin(shared_spec(spec), secret, max_open)
        self._roster = Roster(spec.max_groups)
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self._entered: tuple[int, Any, Kept] | None = None

    def _reseat(self) -> None:
        names = self._counter.issuer.names
        super()._reseat()
        self._issuer.names = names

    # ------------------------------------------------------------------ facts

    @property
    def calibrator(self) -> GroupRule:
        """The rule that runs in every bucket and group."""
        return self._spec.rule

    @property
    def groups(self) -> Names:
        """All groups so far, in the order in which they appeared."""
        return tuple(self._roster.names())

    # -------------------------------------------------------------- groups of a round

    def _names(self, groups: Any, context: Any, raw: float) -> Names:
        """Return the names of a round: those given, and those of the rules."""
        if not self._rules.rules:
            return names_of(groups, self._rules.declared)
        history = History(self.issued, self.rounds, raw, tuple(self._recent))
        return self._rules.names(groups, context, history)

    def _enter(self, names: Names) -> None:
        """Give new groups their places, begin new periods, and list all groups of a round."""
        if self._own(ISSUED) >= self._rows.capacity:
            self._rows.check_room(self._row)
        codes = self._roster.running(names)
        if len(codes) < len(names):
            codes = self._begin_groups(names)
        self._list(codes)

    def _begin_groups(self, names: Names) -> list[int]:
        """Return the places of a round's groups, of which some are new or begin anew."""
        noted = self._roster.noted(names)
        known = [place for place, _ in noted[1]]
        self._entered = self._own(ISSUED), noted, self._kept(self._blocks_of(0, known))
        codes = self._roster.enter(names)
        self._make_room()
        return codes

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
        ticket._groups = names
        return ticket

    def _learn(self, ticket: Ticket, outcome: int) -> None:
        codes = self._roster.running(cast(GroupTicket, ticket).groups)
        self._list(codes)
        kept, told = self._kept(self._blocks_of(ticket.place, codes)), (ticket.value, outcome)
        try:
            super()._learn(ticket, outcome)
            self._recent.append(told)
        except BaseException:
            self._unless_recent(told, kept)
            raise

    def _unless_recent(self, told: tuple[float, int], kept: Kept) -> None:
        """Put words back that a round changed, unless the round was remembered, which ends it."""
        if not self._recent or self._recent[-1] is not told:
            self._put_back(kept)

    def _correct(self, ticket: Ticket, outcome: int) -> None:
        self._list(self._roster.running(cast(GroupTicket, ticket).groups))
        super()._correct(ticket, outcome)

    def _look(self, raw: float, names: Names) -> Peeked:
        """Look at the next draw; nothing changes."""
        self._list(self._roster.running(names))
        return self._rows.peek(self._row, raw)

    def _make_round(self, raw: float, outcome: int, names: Names, note: Any = None) -> Peeked:
        """Make a round whose outcome is known, and return its draw."""
        self._enter(names)
        seen: Peeked = note or self._rows.peek(self._row, raw)
        kept = self._kept(self._blocks_of(seen[0], self._roster.running(names)))
        told = self._issuer.values[seen[0] & CELL], outcome
        try:
            self._rows.commit(self._row, seen, raw, outcome)
            self._recent.append(told)
        except BaseException:
            self._unless_recent(told, kept)
            raise
        return seen

    # ------------------------------------------------------------------ interrupts

    def _spans(self, ticket: Ticket) -> Spans:
        return self._blocks_of(ticket.place, self._roster.running(cast(GroupTicket, ticket).groups))

    def _blocks_of(self, place: int, codes: list[int]) -> Spans:
        """Return the row's own words, the block of a place, and the blocks of groups."""
        stride, first, fixed = self._spec.layout.stride, self._spec.layout.blocks, self._arena.fixed
        bucket = self._row + first + ((place >> 16) & NARROW) * stride
        groups = [fixed + code * stride for code in codes]
        own = self._row, self._row + first
        return [own, *((at, at + stride) for at in (bucket, *groups))]

    def _take_back(self, number: int, most: int) -> None:
        self._rows.use_array()
        self._withdraw(number)
        self._leave(number)

    def _leave(self, number: int) -> None:
        """Undo that groups were entered for the round of that number."""
        if self._entered is None or self._entered[0] != number:
            return
        _, noted, kept = self._entered
        self._roster.undo(noted)
        self._put_back(kept)
        self._entered = None

    def _everything(self) -> Any:
        told = self._roster.copy(), self._recent.copy()
        return super()._everything(), *told, dict(self._issuer.names)

    def _become_again(self, kept: Any) -> None:
        words, roster, recent, names = kept
        self._arena.shrink(len(words[0][1]))
        super()._become_again(words)
        self._roster, self._recent, self._issuer.names = roster, recent, names
        self._entered = None

    # ------------------------------------------------------------------- batches

    def _replay_rows(self, asked: list[Any], outcomes: list[int]) -> list[tuple[float, float]]:
        """Play rounds one by one, since rules wait for outcomes; return draws and means."""
        values, mean_of = self._issuer.values, self._rows.mean_of
        both = zip(asked, outcomes, strict=True)
        seen = [self._make_round(p, y, self._names(n, told, p)) for (p, n, told), y in both]
        return [(values[place & CELL], mean_of(place, weight)) for place, weight, *_ in seen]

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
        known: dict[Names, list[int]] = {}
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
            "secret_from": self._secret.origin,
            "rules": len(self._rules.rules),
            "declared": [written(name) for name in self._rules.declared],
        }
        cells = self._blocks(self._arena.snapshot())[self.buckets :, FIRST:]
        held = self._counter.names_in_use()
        return settings, stored(cells, self._roster.names(), self._recent, held)

    def _rowed(self, row: Words | None = None) -> dict[str, Words]:
        return Stream._rowed(self, row)

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        spec = GroupSpec.made(**{name: s[name] for name in SETTINGS})
        row = self._verified(arrays["row"], spec.layout)
        spec.body.verify_row(row)
        self._begin(spec, self._secret_in(document, row), s["max_open"])
        names = text_of(arrays["names"])
        for part in names:
            self._roster.enter(names_again([part]))
        if len(self._roster) != len(names):
            raise ValueError("groups of one name")
        self._arena.grow(len(names))
        flat = self._arena.flat()
        flat[self._row : self._arena.fixed] = row
        spec.seat(flat[self._row : self._arena.fixed], self._secret)
        cells = self._blocks(flat)[self.buckets :, FIRST:]
        cells[:] = arrays["groups"].reshape(cells.shape)
        check_gaps(cells[:, ::2], cells[:, 1::2], *spec.layout.values)
        self._recent.extend(recent_of(arrays["recent"]))
        held = map(names_again, text_of(arrays["held"]))
        self._issuer.names = {key_of_names(each): each for each in held}
        self._load_tickets(arrays)

    def _check_tickets(self, lines: Words) -> None:
        super()._check_tickets(lines)
        keys, known = set(lines[:, -1].tolist()), set(self._issuer.names)
        if keys != known:
            raise ValueError("tickets of other groups")
