"""A table at play: every verb, keys that leave and come back, streams that are handed over."""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from machine_keyed import BY, KEY, OUTCOME, RAW, SEED, Keyed, Made

from calibrant import Table
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownName,
    UnknownTicket,
)

__all__ = ["Tables"]

NAME = st.sampled_from([None, "x", "x", "y"])
"""Few, so that names are often given again."""
ROUNDS = st.lists(st.tuples(RAW, OUTCOME), max_size=3)


class Tables(Keyed):
    """A table with few rows at hand and a store, beside lone streams."""

    def opened(self) -> Table:
        self.stranger = Table(self.pattern(), seed=SEED + 1)
        self.fates: dict[Any, type[Exception]] = {}
        self.names = 0
        return Table(self.pattern(), seed=SEED, hot=2, store={})

    def rows(self) -> dict[Any, bytes]:
        return {key: self.subject.row(key) for key in self.subject}

    # ------------------------------------------------------------------ one by one

    @rule(key=KEY, raw=RAW, name=NAME, timed=st.booleans())
    def forecast(self, key: Any, raw: float, name: str | None, timed: bool) -> None:
        facts = self.facts(name, timed)
        if name is not None and any(made.name == name for made in self.open()):
            with self.refused(RepeatedTicket):
                self.subject.forecast(key, raw, **facts)
            return
        self.announce(key, raw, facts)

    @rule(key=KEY, raws=st.lists(RAW, min_size=2, max_size=4), named=st.booleans())
    def forecasts(self, key: Any, raws: list[float], named: bool) -> None:
        """Make several forecasts of a key, so that older ones expire."""
        for raw in raws:
            self.names += 1
            self.announce(key, raw, self.facts(f"{self.names}" if named else None, False))

    def announce(self, key: Any, raw: float, facts: dict[str, Any]) -> Made:
        """Make a forecast with both; note what was expired by it."""
        ticket = self.subject.forecast(key, raw, **facts)
        assert ticket.key == key
        waiting = [made for made in self.open() if made.key == key]
        made = self.follow(key, raw, facts, ticket)
        for old in waiting:
            if self.aged(old) and old.name:
                self.fates[old.name] = ExpiredTicket
        return made

    @precondition(lambda machine: machine.open())
    @rule(data=st.data(), by=BY, outcome=OUTCOME, timed=st.booleans())
    def observe(self, data: Any, by: str, outcome: int, timed: bool) -> None:
        self.settle(data.draw(st.sampled_from(self.open())), by, outcome, timed)

    def settle(self, made: Made, by: str, outcome: int, timed: bool = False) -> None:
        """Tell both the outcome of an open ticket."""
        handle = self.handle(made, by)
        got = self.subject.observe(handle, outcome, **({"time": self.clock} if timed else {}))
        assert got is handle or isinstance(handle, (str, tuple))
        assert (got.key, got.number, got.outcome) == (made.key, made.own.number, outcome)
        self.learn(made, outcome)
        made.ticket, made.told = got, True
        if made.name:
            self.fates[made.name] = RepeatedTicket
        self.refuse_what_is_over(made, outcome)

    @precondition(lambda machine: machine.open())
    @rule(data=st.data(), by=BY)
    def expire(self, data: Any, by: str) -> None:
        made = data.draw(st.sampled_from(self.open()))
        gone = self.subject.expire(self.handle(made, by))
        assert (gone.key, gone.number, gone.outcome) == (made.key, made.own.number, None)
        self.lone[made.key].expire(made.own)
        made.dropped = True
        self.fates[made.key, made.own.number] = ExpiredTicket
        if made.name:
            self.fates[made.name] = ExpiredTicket
        self.refuse_what_is_over(made, 1)

    @precondition(lambda machine: machine.closed())
    @rule(data=st.data(), outcome=OUTCOME, blank=st.booleans())
    def correct(self, data: Any, outcome: int, blank: bool) -> None:
        made = data.draw(st.sampled_from(self.closed()))
        ticket, was = self.stored(made.ticket), {}
        if blank:
            # As it was stored before its outcome was known.
            data = ticket.to_dict() | {"outcome": None}
            ticket, was = type(ticket).from_dict(data), {"was": made.outcome}
        if outcome == made.outcome or (blank and self.aged(made)):
            # Whether the outcome of an old ticket ever came is not kept.
            with self.refused(ExpiredTicket if blank and self.aged(made) else RepeatedTicket):
                self.subject.correct(ticket, outcome, **was)
            return
        assert self.subject.correct(ticket, outcome, **was).outcome == outcome
        self.lone[made.key].correct(made.own, outcome)
        made.ticket, made.outcome = ticket, outcome

    # ------------------------------------------------------------------ refusals

    @rule(what=st.sampled_from(["over", "never", "bad"]), key=KEY, raw=RAW, outcome=OUTCOME)
    def refuse(self, what: str, key: Any, raw: float, outcome: int) -> None:
        if what == "over":
            self.refuse_all_that_is_over(outcome)
        elif what == "never":
            self.refuse_what_was_never_here(key, raw, outcome)
        else:
            self.refuse_what_is_bad(key)

    def refuse_all_that_is_over(self, outcome: int) -> None:
        """Tell outcomes again, of the oldest and the latest tickets that cannot take one."""
        over = [made for made in self.made if made not in self.open()]
        for made in over[:2] + over[2:][-3:]:
            self.refuse_what_is_over(made, outcome)

    def refuse_what_is_over(self, made: Made, outcome: int) -> None:
        taken = {other.name for other in self.open()}
        handles = [self.handle(made, by) for by in ("ticket", "stored", "name", "number")]
        with self.unchanged():
            for handle in handles:
                if isinstance(handle, str) and handle in taken:
                    continue
                with self.raised(self.refusal(made, handle)):
                    self.subject.observe(handle, outcome)
                with self.raised(self.refusal(made, handle)):
                    self.subject.expire(handle)

    def refusal(self, made: Made, handle: Any) -> type[Exception]:
        """Return what is raised of a ticket that is not open."""
        if isinstance(handle, str):
            return self.fates.get(handle, UnknownTicket)
        if not isinstance(handle, tuple) and handle.outcome is not None:
            return RepeatedTicket
        gone = self.aged(made) or (made.key, made.own.number) in self.fates
        return ExpiredTicket if gone else RepeatedTicket

    def refuse_what_was_never_here(self, key: Any, raw: float, outcome: int) -> None:
        strange = self.stranger.forecast(key, raw, **self.facts(None, False))
        error = ForeignTicket if key in self.lone else UnknownTicket
        for id, found in (("nobody", UnknownTicket), ((key, 99), UnknownTicket), (strange, error)):
            with self.refused(found):
                self.subject.observe(id, outcome)
            with self.refused(found):
                self.subject.expire(id)
        strange = self.stranger.observe(strange, outcome)
        with self.refused(ForeignTicket if key in self.lone else UnknownName):
            self.subject.correct(strange, 1 - outcome)

    def refuse_what_is_bad(self, key: Any) -> None:
        for bad in (-0.1, 1.5, float("nan"), "0.5", None):
            with self.refused(InvalidInput, InvalidType):
                self.subject.forecast(key, bad, **self.facts(None, False))
        with self.refused(InvalidType):
            self.subject.forecast(None, 0.5, **self.facts(None, False))
        for made in self.open()[:1]:
            for bad in (2, -1, 0.5, None):
                with self.refused(InvalidInput, InvalidType):
                    self.subject.observe(self.handle(made, "name"), bad)

    # ------------------------------------------------------------------ logs

    @rule(rounds=st.lists(st.tuples(KEY, RAW, st.none() | OUTCOME), max_size=6))
    def play(self, rounds: list[Any]) -> None:
        """Play a log of forecasts, each with its outcome right behind if there is one."""
        log: list[Any] = []
        for key, raw, outcome in rounds:
            self.names += 1
            name, time = f"log {self.names}", self.tick()
            log.append((key, "forecast", name, raw, time))
            if outcome is not None:
                log.append((None, "outcome", name, outcome, time))
        keys, kind, id, x, time = map(list, zip(*log, strict=True)) if log else [[]] * 5
        first, waiting = len(self.made), self.open()
        run = self.subject.play(keys, kind, id, x, time)
        said = zip(run.value.tolist(), run.mean.tolist(), kind, id, x, keys, time, strict=True)
        for value, mean, what, name, told, key, when in said:
            if what == "forecast":
                made = self.follow(key, told, {"id": name, "time": when}, None)
                assert (made.own.value, made.own.mean) == (value, mean)
            else:
                self.learn(made, told)
                self.fates[name] = RepeatedTicket
        # Of tickets that expired elsewhere, in a stream that was handed over, nothing is known.
        for made in waiting + self.made[first:]:
            if made.name and made.outcome is None and self.aged(made):
                self.fates[made.name] = ExpiredTicket

    # ------------------------------------------------------------------ leaving and coming back

    @rule(how=st.sampled_from(["bytes", "dict", "copy", "pickle", "file"]))
    def travel(self, how: str) -> None:
        self.come_back()
        before, store = self.subject, self.subject.store
        self.subject = self.again(how)
        assert self.subject is not before
        assert self.subject == before
        self.subject.store = store
        # What became of names is not stored.
        self.fates.clear()

    def again(self, how: str) -> Table:
        """Return the same table after a round trip."""
        table = self.subject
        if how == "bytes":
            return Table.from_bytes(table.to_bytes())
        if how == "dict":
            return Table.from_dict(json.loads(json.dumps(table.to_dict())))
        if how == "file":
            with tempfile.TemporaryDirectory() as folder:
                table.save(Path(folder) / "table")
                return Table.open(Path(folder) / "table", hot=1)
        table.store = None
        return table.copy() if how == "copy" else pickle.loads(pickle.dumps(table))

    @rule(keep=st.integers(0, 2), idle=st.none() | st.integers(0, 4), by=st.none() | BY)
    def evict(self, keep: int, idle: int | None, by: str | None) -> None:
        """Let keys go to the store; perhaps an outcome brings one back at once."""
        gone = self.subject.evict(**({"keep": keep} if idle is None else {"idle": idle}))
        assert idle is not None or len(self.subject) <= keep
        for key, body in gone:
            assert key not in self.subject
            assert self.subject.store[key] == body
            self.forget_numbers(key)
        for made in [made for made in self.open() if made.key in dict(gone)][: by is not None]:
            self.settle(made, str(by), 1)

    def forget_numbers(self, key: Any) -> None:
        """Note that it is not known any more which tickets of a key expired before their time."""
        self.fates = {k: v for k, v in self.fates.items() if isinstance(k, str) or k[0] != key}

    @rule(key=KEY, rounds=ROUNDS, whole=st.booleans(), named=st.booleans())
    def hand_over(self, key: Any, rounds: list[Any], whole: bool, named: bool) -> None:
        """Let a stream be played elsewhere, and come back with what it learned there."""
        self.stream(key)
        if key not in self.subject and key not in (self.subject.store or ()):
            self.subject.put(key, self.lone[key].to_bytes())
        away = self.lone[key].from_bytes(self.subject.row(key)) if whole else self.apart(key)
        for raw, outcome in rounds:
            facts = self.facts(None, True)
            told = away.forecast(*(() if whole else (key,)), raw, **facts)
            away.observe(told, outcome)
            self.learn(self.follow(key, raw, facts, None), outcome)
        if named:
            self.names += 1
            facts = self.facts(f"away {self.names}", True)
            away.forecast(*(() if whole else (key,)), 0.3, **facts)
            self.follow(key, 0.3, facts, None)
        if whole:
            self.subject.put(key, away.to_bytes())
        else:
            self.subject.take([key], [away.body(key)])
        self.forget_numbers(key)

    def apart(self, key: Any) -> Table:
        """Return a table with this one stream, which was handed over as a body."""
        made = Table(self.pattern(), seed=SEED)
        made.take([key], [self.subject.body(key)])
        return made

    @rule(key=KEY)
    def delete(self, key: Any) -> None:
        if key not in self.lone:
            with self.refused(UnknownName):
                del self.subject[key]
            return
        del self.subject[key], self.lone[key]
        self.made = [made for made in self.made if made.key != key]
        self.forget_numbers(key)

    def come_back(self) -> None:
        for key, lone in self.lone.items():
            assert self.subject.row(key) == lone.to_bytes()
        assert set(self.subject) == set(self.lone)

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def rows_are_those_of_lone_streams(self) -> None:
        if hasattr(self, "subject"):
            for key, row in self.rows().items():
                assert row == self.lone[key].to_bytes()

    def teardown(self) -> None:
        if hasattr(self, "subject") and sys.exc_info()[0] is None:
            self.refuse_all_that_is_over(0)
            self.come_back()

    def handle(self, made: Made, by: str) -> Any:
        """Return what a ticket is named by."""
        if by in ("ticket", "stored") and made.ticket is not None:
            return made.ticket if by == "ticket" else self.stored(made.ticket)
        pair = made.key, made.own.number
        return pair if by == "number" or made.name is None else made.name
