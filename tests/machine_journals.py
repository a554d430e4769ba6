"""A journal at play: every verb, calls that are repeated, and the file opened again in between."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from machine_keyed import BY, KEY, OUTCOME, RAW, SEED, Keyed, Made, Pattern

from calibrant import Journal, Recalibrator
from calibrant.errors import (
    Contradiction,
    ExpiredTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)

__all__ = ["Alone", "Journals"]

NAME = st.sampled_from([f"id {k}" for k in range(8)])
"""Few, so that the same is often told again."""


@dataclass
class Asked:
    """All that was told under one id."""

    question: tuple[Any, ...] | None = None
    made: Made | None = None
    told: int | None = None
    """The outcome that was told first."""
    corrected: int | None = None
    gone: bool = False
    events: set[str] = field(default_factory=set)


class Journals(Keyed):
    """A journal in a file of its own, beside lone streams."""

    keyed = True

    def __init__(self, pattern: Pattern, compiling: bool = False) -> None:
        super().__init__(pattern, compiling)
        self.folder = Path(tempfile.mkdtemp())
        self.book: dict[str, Asked] = {}
        self.names = 0

    def opened(self) -> Journal:
        options: dict[str, Any] = {"seed": SEED} if self.keyed else {"keyed": False}
        pattern = self.pattern(**({} if self.keyed else {"seed": SEED}))
        return Journal(self.folder / "log.db", pattern, unknown="keep", **options)

    def rows(self) -> dict[Any, bytes]:
        state = self.subject.state()
        return {key: state.row(key) for key in state}

    def about(self, id: str) -> Asked:
        return self.book.setdefault(id, Asked())

    # ------------------------------------------------------------------ one by one

    @rule(key=KEY, raw=RAW, id=st.none() | NAME, timed=st.booleans())
    def forecast(self, key: Any, raw: float, id: str | None, timed: bool) -> None:
        facts = self.facts(id, timed)
        asked = Asked() if id is None else self.about(id)
        if asked.question is not None:
            with self.refused(Contradiction):
                self.subject.forecast(key, raw, **facts | {"time": self.tick()})
            return
        ticket = self.subject.forecast(key, raw, **facts)
        self.forecast_made(asked, (key, raw, facts), ticket)
        self.book[ticket.id] = asked

    def forecast_made(self, asked: Asked, question: tuple[Any, ...], ticket: Any) -> None:
        """Let the lone stream follow; learn an outcome that was there before."""
        key, raw, facts = question
        asked.question = key, raw, facts.get("time")
        asked.made = self.follow(key, raw, facts, ticket)
        asked.events.add("forecast")
        assert ticket.outcome == asked.told
        if asked.told is not None:
            self.learn(asked.made, asked.told)

    @precondition(lambda machine: machine.questions())
    @rule(data=st.data())
    def ask_again(self, data: Any) -> None:
        """Ask for a forecast that was made, and get it as it stands."""
        self.asked_again(data.draw(st.sampled_from(self.questions())))

    def asked_again(self, id: str) -> None:
        asked = self.book[id]
        assert asked.made is not None
        key, raw, time = asked.question or ()
        ticket = self.subject.forecast(key, raw, id=id, time=time)
        self.check_same(ticket, asked.made.own)
        assert ticket.outcome == asked.made.outcome
        assert ticket.id == id

    @rule(key=KEY, raw=RAW, outcome=OUTCOME)
    def outcome_first(self, key: Any, raw: float, outcome: int) -> None:
        """Tell an outcome before its forecast, which learns it."""
        self.names += 1
        id = f"early {self.names}"
        self.observe(id, outcome, "name")
        self.forecast(key, raw, id, False)
        self.asked_again(id)
        self.observe(id, outcome, "ticket")

    def questions(self) -> list[str]:
        return [id for id, asked in self.book.items() if asked.question is not None]

    @rule(id=NAME, outcome=OUTCOME, by=BY)
    def observe(self, id: str, outcome: int, by: str) -> None:
        asked = self.about(id)
        if asked.told is not None and asked.told != outcome:
            with self.refused(Contradiction):
                self.subject.observe(self.handle(id, by), outcome)
        elif asked.told is None and asked.made is not None and asked.made not in self.open():
            with self.refused(ExpiredTicket):
                self.subject.observe(self.handle(id, by), outcome)
        else:
            got = self.subject.observe(self.handle(id, by), outcome)
            if asked.told is None and asked.made is not None:
                self.learn(asked.made, outcome)
            asked.told = outcome
            asked.events.add("outcome")
            assert (got is None) == (asked.made is None)
            assert got is None or (got.id, got.outcome) == (id, outcome)

    @precondition(lambda machine: machine.questions())
    @rule(data=st.data(), outcome=OUTCOME, by=BY)
    def observe_what_waits(self, data: Any, outcome: int, by: str) -> None:
        self.observe(data.draw(st.sampled_from(self.questions())), outcome, by)

    @rule(id=NAME, by=BY)
    def expire(self, id: str, by: str) -> None:
        asked, handle = self.about(id), self.handle(id, by)
        if asked.made is None:
            with self.refused(UnknownTicket):
                self.subject.expire(handle)
        elif asked.told is not None:
            with self.refused(Contradiction):
                self.subject.expire(handle)
        elif asked.gone or asked.made in self.open():
            assert self.subject.expire(handle).id == id
            if not asked.gone:
                self.lone[asked.made.key].expire(asked.made.own)
            asked.gone = asked.made.dropped = True
            asked.events.add("expiry")
        else:
            with self.refused(ExpiredTicket):
                self.subject.expire(handle)

    @precondition(lambda machine: machine.questions())
    @rule(data=st.data(), outcome=OUTCOME, was=st.none() | OUTCOME, by=BY)
    def correct(self, data: Any, outcome: int, was: int | None, by: str) -> None:
        id = data.draw(st.sampled_from(self.questions()))
        asked, handle = self.book[id], self.handle(id, by)
        error = self.refusal(asked, outcome, was)
        if error is not None:
            with self.refused(error):
                self.subject.correct(handle, outcome, was=was)
            return
        got = self.subject.correct(handle, outcome, was=was)
        assert (got.id, got.outcome) == (id, outcome)
        assert asked.made is not None
        if outcome not in (asked.told, asked.corrected):
            self.lone[asked.made.key].correct(asked.made.own, outcome)
            asked.corrected = asked.made.outcome = outcome
            asked.events.add("correction")

    def refusal(self, asked: Asked, outcome: int, was: int | None) -> type[Exception] | None:
        """Return why a correction is refused, if it is."""
        if asked.told is None:
            return UnknownTicket
        wrong = was not in (None, asked.told)
        if asked.corrected is not None:
            return Contradiction if wrong or outcome != asked.corrected else None
        return RepeatedTicket if wrong else None

    @rule(bad=st.sampled_from([-0.1, 1.5, float("nan"), "0.5", None]), id=NAME)
    def refuse_what_is_none(self, bad: Any, id: str) -> None:
        with self.refused(InvalidInput, InvalidType):
            self.subject.forecast(self.keys[0], bad, **self.facts(None, False))
        with self.refused(InvalidInput, InvalidType):
            self.subject.observe(id, 2)
        for verb in (self.subject.expire, self.subject.coin_of):
            with self.refused(UnknownTicket):
                verb("nobody")
        with self.refused(UnknownTicket):
            self.subject.correct("nobody", 1)

    # ------------------------------------------------------------------ logs

    @rule(rounds=st.lists(st.tuples(KEY, RAW, st.none() | OUTCOME), max_size=5))
    def play(self, rounds: list[Any]) -> None:
        """Play a log in one transaction: forecasts, some with their outcome right behind."""
        log: list[Any] = []
        for key, raw, outcome in rounds:
            self.names += 1
            id, time = f"log {self.names}", self.tick()
            log.append((key, "forecast", id, raw, time))
            if outcome is not None:
                log.append((None, "outcome", id, outcome, time))
        keys, kind, id, x, time = map(list, zip(*log, strict=True)) if log else [[]] * 5
        for ticket, line in zip(self.subject.play(keys, kind, id, x, time), log, strict=True):
            asked = self.about(line[2])
            if line[1] == "forecast":
                ticket._outcome = None
                facts = {"id": line[2], "time": line[4]}
                self.forecast_made(asked, (line[0], line[3], facts), ticket)
            else:
                assert asked.made is not None
                self.learn(asked.made, line[3])
                asked.told = line[3]
                asked.events.add("outcome")

    # ------------------------------------------------------------------ the file

    @rule(how=st.sampled_from(["close", "crash", "another", "pickle"]))
    def open_again(self, how: str) -> None:
        """Go on from what is on disk, with or without the snapshots of who closes."""
        before, state = self.subject, self.subject.state()
        if how == "close":
            before.close()
        elif how == "crash":
            before._store.close()
        self.subject = Journal.__new__(Journal)
        self.subject.__setstate__(before.__getstate__())
        if how == "another":
            # Both are open, and take turns.
            assert before.state() == state
        assert self.subject.state() == state
        if how in ("another", "pickle"):
            before.close()

    @rule()
    def verify(self) -> None:
        assert self.subject.verify() == sum(len(asked.events) for asked in self.book.values())

    @rule()
    def list_tickets(self) -> None:
        """Compare what the log holds with the book."""
        closed, waiting = self.subject.tickets()
        known = {id: asked.made for id, asked in self.book.items() if asked.made is not None}
        assert {t.id: t.outcome for t in closed} == {
            id: made.outcome for id, made in known.items() if made.outcome is not None
        }
        wait = self.open()
        assert {t.id for t in waiting} == {id for id, made in known.items() if made in wait}

    # ------------------------------------------------------------------ what must hold

    @invariant()
    def streams_are_those_of_lone_ones(self) -> None:
        if hasattr(self, "subject"):
            assert self.rows() == {key: lone.to_bytes() for key, lone in self.lone.items()}

    def teardown(self) -> None:
        if hasattr(self, "subject"):
            if sys.exc_info()[0] is None:
                for id in self.questions():
                    self.asked_again(id)
                self.verify()
            self.subject.close()
        shutil.rmtree(self.folder)

    def handle(self, id: str, by: str) -> Any:
        """Return what a forecast is named by."""
        made = self.about(id).made
        if by in ("name", "number") or made is None:
            return id
        return made.ticket if by == "ticket" else self.stored(made.ticket)


class Alone(Journals):
    """A journal of one stream without keys."""

    keys = (None,)
    keyed = False

    def rows(self) -> dict[Any, bytes]:
        return {None: self.subject.state().to_bytes()} if self.lone else {}

    def stream(self, key: Any) -> Recalibrator:
        return self.lone.setdefault(key, self.pattern(seed=SEED))

    def lone_copy(self, key: Any) -> Recalibrator:
        state: Recalibrator = self.subject.state()
        return state

    @rule()
    def certify(self) -> None:
        if self.lone:
            assert self.subject.certificate() == self.lone[None].certificate()

    @rule(raw=RAW)
    def preview(self, raw: float) -> None:
        """Look at the next round: nothing changes, and that is what comes."""
        if self.lone and not self.timed:
            draws, means = self.subject.preview([raw])
            said = self.lone[None].copy().forecast(raw)
            assert (draws[0], means[0]) == (said.value, said.mean)
