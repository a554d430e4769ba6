"""Whole batches of a stream with groups: at once, round by round, or late."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.gate import passing
from calibrant.groups.certificate import rows_of
from calibrant.groups.checking import RECENT, History
from calibrant.groups.grouped import Grouped
from calibrant.groups.names import Name, Period, Roster
from calibrant.kernels.layout import CELL, CELLS, TABLE, unpack
from calibrant.recalibrate.delivery import Pending, arrivals, checked, times
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.stream import SHORT


class GroupBatches(Grouped):
    """How batches are played on the row of a stream with groups."""

    __slots__ = ()

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
        when = times(time, len(raws))
        if available is not None:
            arrivals(available, when)
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
            means[t] = self._mean(place, weight)
        return forecast, means

    def _mean(self, place: int, weight: float) -> float:
        words, reals = self._rows.state()
        _, cell, side = unpack(place)
        mean = self._spec.rule.kernels.mean
        return mean(words, reals, words[CELLS], words[TABLE], cell, side, weight)

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
            given = self._with_rules(raw.tolist(), given, context)
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

    def _with_rules(
        self, raw: list[float], given: list[tuple[Name, ...]], context: list[Any]
    ) -> list[tuple[Name, ...]]:
        """Add the names of rules that need not wait for outcomes."""
        issued, rounds, found = self.issued, self.rounds, []
        for t, (p, names, told) in enumerate(zip(raw, given, context, strict=True)):
            history = History(issued + t, rounds + t, p, ())
            found.append(self._rules.names(names, told, history))
        return found
