"""One machine over all verbs: any call, in any order, beside a naive book and a quiet twin.

Three keep the same rounds.  The *subject* is called in every way there is.  The *twin* has the same
seed and gets the same rounds one by one, and nothing else: no reads, no compiler, no round trips.
The *book* is a list in plain Python (``machine_naive.py``).  Subject and twin must answer alike
bit for bit and end in the same bytes; what the subject tells of itself must be what the book says.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import machine_naive as naive
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from machine_draws import (
    BY,
    CAPS,
    CLOSED,
    DELAYS,
    EVENTS,
    NAMES,
    OPEN,
    OUTCOME,
    PEEK,
    RAW,
    READ,
    TRIP,
    WAY,
    having,
)
from machine_kinds import Kind
from machine_reads import LOOKS, ask, reads_of
from machine_refusals import Refusals

from calibrant.errors import InvalidInput, RepeatedTicket, StaleForecast

__all__ = ["Machine"]


class Machine(Refusals):
    """Play one kind; with ``compiling`` the subject may be compiled at any moment."""

    def __init__(self, kind: Kind, compiling: bool = False) -> None:
        super().__init__()
        self.kind, self.compiling, self.reads = kind, compiling, reads_of(kind)
        self.watched = self.dangling = False
        self.clock, self.pending, self.carried = 0.0, None, []
        self.book = naive.Book(10)

    @initialize(seed=st.integers(0, 3), max_open=CAPS, watched=st.booleans())
    def begin(self, seed: int, max_open: int, watched: bool) -> None:
        """Make both; where they are watched, the certificate is read after every step."""
        self.subject, self.twin = (self.kind.make(seed, max_open) for _ in range(2))
        self.stranger = self.kind.make(seed + 100, max_open)
        self.book, self.watched = naive.Book(max_open), watched

    # ---------------------------------------------------------------- forecasts

    @having("forecast")
    @rule(raw=RAW, name=st.sampled_from(NAMES), timed=st.booleans())
    def forecast(self, raw: Any, name: str | None, timed: bool) -> None:
        facts = self.facts(name, timed)
        if name in {made.name for made in self.book.open() if made.name}:
            with self.refused(RepeatedTicket):
                self.kind.forecast(self.subject, raw, **facts)
        else:
            self.announce(raw, facts)

    @having("forecast")
    @rule(raws=st.lists(RAW, min_size=1, max_size=3), count=st.sampled_from([3, 20, 150]))
    def forecast_many(self, raws: list[Any], count: int) -> None:
        for k in range(count if self.compiling else min(count, 20)):
            self.announce(raws[k % len(raws)], self.facts(None, False))

    # ----------------------------------------------------------------- outcomes

    @having("observe", when=lambda machine: machine.book.open())
    @rule(number=OPEN, by=BY, outcome=OUTCOME, timed=st.booleans())
    def observe(self, number: int, by: str, outcome: Any, timed: bool) -> None:
        self.settle(self.book.rounds[number], by, outcome, timed)

    @having("expire", when=lambda machine: machine.book.open())
    @rule(number=OPEN, by=BY)
    def expire(self, number: int, by: str) -> None:
        made = self.book.rounds[number]
        gone = self.subject.expire(self.handle(made, by))
        assert (gone.number, gone.outcome) == (number, None)
        self.twin.expire(made.twin)
        self.book.drop(made)

    # -------------------------------------------------------------- corrections

    @having("correct", when=lambda machine: machine.book.closed())
    @rule(number=CLOSED, outcome=OUTCOME)
    def correct(self, number: int, outcome: Any) -> None:
        made = self.book.rounds[number]
        if outcome == made.outcome:
            with self.refused(RepeatedTicket):
                self.subject.correct(made.ticket, outcome)
            return
        if self.kind.has("again"):
            made.stale = type(made.ticket).from_dict(made.ticket.to_dict())
        made.ticket = self.subject.correct(made.ticket, outcome)
        made.twin = self.twin.correct(made.twin, outcome)
        self.book.correct(made, outcome)
        assert made.ticket.outcome == outcome

    # --------------------------------------------- rounds without a ticket in hand

    @having("learn")
    @rule(raw=RAW, outcome=OUTCOME, predicted=st.booleans(), way=WAY, read=READ, peek=PEEK)
    def learn(
        self, raw: Any, outcome: Any, predicted: bool, way: str, read: str, peek: Any
    ) -> None:
        predicted = predicted and self.kind.has("predict")
        said = self.kind.predict(self.subject, raw) if predicted else None
        if way == "peek":
            self.peek(peek)
        elif way == "read":
            self.read(read, peek)
        elif way in self.kind.trips:
            self.travel(way)
        try:
            self.kind.learn(self.subject, raw, outcome)
        except StaleForecast:
            assert self.dangling, "nothing was predicted that could be overtaken"
            return
        drawn = self.quietly(raw, outcome)
        assert not predicted or said == drawn

    @having("peek", "learn")
    @rule(raw=RAW, outcome=OUTCOME, predicted=st.booleans(), peek=PEEK)
    def learn_beside_a_peek(self, raw: Any, outcome: Any, predicted: bool, peek: Any) -> None:
        self.learn(raw, outcome, predicted, "peek", "repr", peek)

    @having("forecast", "predict", "learn")
    @rule(raw=RAW, outcome=OUTCOME)
    def refuse_what_was_overtaken(self, raw: Any, outcome: Any) -> None:
        self.kind.predict(self.subject, raw)
        self.dangling = True
        self.announce(raw, self.facts(None, False))
        with self.refused(StaleForecast):
            self.kind.learn(self.subject, raw, outcome)

    @having("forecast", "predict", "learn", when=lambda machine: machine.book.open())
    @rule(raw=RAW, outcome=OUTCOME, number=OPEN, by=BY, told=OUTCOME)
    def learn_after_another_outcome(
        self, raw: Any, outcome: Any, number: int, by: str, told: Any
    ) -> None:
        said = self.kind.forecast(self.subject.copy(), raw)
        drawn, learned = self.kind.predict(self.subject, raw), len(self.book.learned)
        assert drawn == self.kind.drawn(said) == self.kind.predict(self.twin, raw)
        self.settle(self.book.rounds[number], by, told, False)
        if self.learns(self.subject, raw, outcome) and self.learns(self.twin, raw, outcome):
            self.book.overtake(learned)
            self.book.learn(self.book.issue(said=said), outcome)

    @having("peek")
    @rule(raw=PEEK)
    def peek(self, raw: Any) -> None:
        """Predict what no round is made of."""
        mean = self.kind.predict_mean(self.subject, raw)
        seen = self.kind.predict(self.subject, raw)
        self.dangling = True
        if self.kind.has("forecast"):
            said = self.kind.forecast(self.subject.copy(), raw)
            assert seen == self.kind.drawn(said)
            assert mean == self.kind.expected(said)

    # ------------------------------------------------------------------ batches

    @having("replay")
    @rule(rows=st.lists(st.tuples(RAW, OUTCOME), max_size=4), times=st.sampled_from([1, 1, 30]))
    def replay(self, rows: list[tuple[Any, Any]], times: int) -> None:
        rows = rows * (times if self.compiling else min(times, 4))
        stamps = [self.tick() for _ in rows]
        late = {"time": stamps} if self.timed else {}
        run = self.kind.replay(self.subject, [r for r, _ in rows], [y for _, y in rows], **late)
        made = [self.quietly(raw, y, t) for (raw, y), t in zip(rows, stamps, strict=True)]
        if not self.kind.has("forecast"):
            assert self.kind.rows(run) in ([], made)
            return
        last = self.book.rounds[len(self.book.rounds) - len(rows) :]
        assert self.kind.rows(run) == [self.kind.answer(r.said) for r in last]

    @having("late")
    @rule(
        rows=st.lists(st.tuples(RAW, OUTCOME, DELAYS, st.sampled_from([0.0, 1.0])), max_size=6),
        dated=st.booleans(),
        carry=st.booleans(),
    )
    def replay_late(
        self, rows: list[tuple[Any, Any, float, float]], dated: bool, carry: bool
    ) -> None:
        dated = dated or carry or self.timed
        time = [self.tick(step) if dated else float(k) for k, (*_, step) in enumerate(rows)]
        known = [now + row[2] for now, row in zip(time, rows, strict=True)]
        late = {"available": known} | ({"time": time} if dated else {})
        held = self.held() if carry else []
        if carry and self.pending is not None:
            late["carry"] = self.pending
        call = [row[0] for row in rows], [row[1] for row in rows]
        over = [made for made, _, _ in held if made.outcome is not None or made.dropped]
        if over:
            with self.refused(*{self.book.refusal(made, "number") for made in over}):
                self.kind.replay(self.subject, *call, **late)
            return
        run = self.kind.replay(self.subject, *call, **late)
        fresh = self.follow(held, rows, known, time, dated)
        assert self.kind.rows(run) == [self.kind.answer(made.said) for made in fresh]
        left = [(m, k, y) for m, k, y in held if m in self.book.open()]
        told = zip(fresh, known, (row[1] for row in rows), strict=True)
        left += [(m, k, y) for m, k, y in told if m in self.book.open()]
        assert run.pending.number.tolist() == [made.number for made, _, _ in left]
        self.pending, self.carried = run.pending, left

    @having("late")
    @rule(raw=RAW, outcome=OUTCOME)
    def carry_past_a_forecast(self, raw: Any, outcome: Any) -> None:
        """Leave an outcome out, make a forecast beside it, and play a batch of nothing."""
        self.replay_late([(raw, outcome, math.inf, 1.0)], True, False)
        self.announce(raw, self.facts(None, True))
        self.replay_late([], True, True)

    @having("log")
    @rule(events=EVENTS, times=st.sampled_from([1, 1, 20]), timed=st.booleans())
    def play(self, events: list[Any], times: int, timed: bool) -> None:
        """Play a log: the twin goes ahead, and says which tickets are open at each event."""
        timed, first = timed or self.timed, self.book.issued
        log = [self.event(*each, timed) for each in events * (times if self.compiling else 1)]
        kind, id, x, made = map(list, zip(*log, strict=True)) if log else ([], [], [], [])
        stamps = {"time": [when for _, when in made]} if timed else {}
        rounds = [each for each, _ in made]
        run = self.kind.play(self.subject, kind, id, x, **stamps)
        assert run.number.tolist() == [each.number for each in rounds]
        for row, each in zip(self.kind.logged(run), rounds, strict=True):
            said = self.kind.answer(each.said)
            if row is None or row[1] != row[1]:
                # Of a ticket that was open before, not all is kept of what was announced.
                assert each.number < first
                assert row is None or each.said.issuer.full_support
                row = said if row is None else (row[0], said[1])
            assert row == said

    def event(self, told: int | None, raw: Any, outcome: Any, name: str | None, timed: bool) -> Any:
        """Let the twin play an event; return its line of the log, its round and its time."""
        waiting, now = self.book.open(), self.tick()
        if told is not None and waiting:
            made = waiting[told % len(waiting)]
            made.twin = self.told(self.twin, made.twin, outcome)
            self.book.learn(made, outcome)
            return "outcome", made.name or made.number, outcome, (made, now)
        name = None if any(made.name == name for made in waiting) else name
        facts = ({"id": name} if name else {}) | ({"time": now} if timed else {})
        twin = self.kind.forecast(self.twin, raw, **facts)
        time = facts.get("time")
        made = self.book.issue(twin=twin, said=twin, name=name, time=time)
        return "forecast", name, raw, (made, time)

    def held(self) -> list[tuple[naive.Round, float, Any]]:
        """Return what the last batch left pending, without what grew too old since."""
        return [entry for entry in self.carried if not self.book.aged(entry[0])]

    def follow(
        self,
        held: list[tuple[naive.Round, float, Any]],
        rows: list[Any],
        known: list[float],
        time: list[float],
        dated: bool,
    ) -> list[naive.Round]:
        """Let the twin play a late batch one by one; return its rounds."""
        fresh: list[naive.Round] = []
        for event, row in naive.schedule([(m.number, k) for m, k, _ in held], known, time):
            if event == "forecast":
                facts = {"time": time[row]} if dated else {}
                twin = self.kind.forecast(self.twin, rows[row][0], **facts)
                fresh.append(self.book.issue(twin=twin, said=twin, **facts))
                continue
            made, outcome = (fresh[row], rows[row][1]) if row >= 0 else held[row][::2]
            if not self.book.expired(made):
                made.twin = self.told(self.twin, made.twin, outcome)
                self.book.learn(made, outcome)
        return fresh

    # ------------------------------------------------------------ what forgets

    @having("restart")
    @rule()
    def restart(self) -> None:
        self.subject.restart()
        self.twin.restart()
        self.book.since = len(self.book.learned)

    @having("skip")
    @rule(rounds=st.integers(0, 5))
    def skip(self, rounds: int) -> None:
        if self.book.played():
            with self.refused(InvalidInput):
                self.subject.skip(rounds)
            return
        self.subject.skip(rounds)
        self.twin.skip(rounds)
        self.book.skipped += rounds

    # -------------------------------------------------- what must change nothing

    @rule(what=READ, raw=PEEK)
    def read(self, what: str, raw: Any) -> None:
        tickets = [made.ticket for made in self.book.rounds if made.ticket is not None]
        ask(self.kind, self.subject, what, raw, tickets[-1] if tickets else None)
        self.dangling |= what in LOOKS

    @rule(how=TRIP)
    def travel(self, how: str) -> None:
        before, self.subject = self.subject, self.kind.again(self.subject, how)
        assert self.subject is not before
        assert self.subject == before
        # What became of names is not stored.
        self.book.fates.clear()

    @having("compile", when=lambda machine: machine.compiling)
    @rule(read=st.booleans())
    def compile(self, read: bool) -> None:
        assert self.subject.compile() is self.subject
        if read:
            self.certify()

    @rule()
    def certify(self) -> None:
        self.measured()

    def measured(self) -> Any:
        """Compare what was measured with the book; return the certificate, where there is one."""
        told = self.subject.certificate() if self.kind.has("observe") else None
        found = self.kind.certified(self.subject, told, self.book.played())
        for name, (said, counted) in found.items():
            assert _alike(said, counted), f"{name} must be {counted!r}, got {said!r}"
        return told

    # ------------------------------------------------------------ what must hold

    @invariant()
    def counts_are_those_of_the_book(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.rounds == len(self.book.learned) + self.book.skipped
            assert getattr(self.subject, "issued", self.book.issued) == self.book.issued
            if self.watched:
                self.check_the_rest()

    def check_the_rest(self) -> None:
        told = self.measured()
        if told is not None:
            book = self.book
            assert self.subject.open == len(book.open())
            delay = min(book.lag, book.crowd) if self.kind.crowded else book.lag
            assert self.subject.delay == delay
            assert getattr(told, "delay", delay) == delay
            assert told.open == len(book.open())
            assert told.expired == book.issued - len(book.learned) - len(book.open())

    def teardown(self) -> None:
        if hasattr(self, "subject") and sys.exc_info()[0] is None:
            self.check_the_rest()
            self.refuse_all_that_is_over()
            for how in self.kind.trips:
                self.travel(how)
                self.check_the_rest()
            assert self.subject.to_bytes() == self.twin.to_bytes()
            assert self.subject == self.twin
            assert repr(self.subject) == repr(self.twin)

    # -------------------------------------------------------------------- parts

    @property
    def timed(self) -> bool:
        """Whether every forecast must say when it is made."""
        return not self.kind.has("learn")

    def tick(self, step: float = 1.0) -> float:
        self.clock += step
        return self.clock

    def facts(self, name: str | None, timed: bool) -> dict[str, Any]:
        """Return what is told of a forecast besides its raw one."""
        told: dict[str, Any] = {} if name is None else {"id": name}
        return told | ({"time": self.tick()} if timed or self.timed else {})

    def announce(self, raw: Any, facts: dict[str, Any]) -> None:
        """Make a forecast with both."""
        ticket = self.kind.forecast(self.subject, raw, **facts)
        twin = self.kind.forecast(self.twin, raw, **facts)
        assert self.kind.answer(ticket) == self.kind.answer(twin)
        time = facts.get("time")
        made = self.book.issue(ticket=ticket, twin=twin, said=twin, name=facts.get("id"), time=time)
        assert ticket.number == made.number
        assert ticket.id == (made.number if made.name is None else made.name)

    def settle(self, made: naive.Round, by: str, outcome: Any, timed: bool) -> None:
        """Tell both the outcome of an open ticket."""
        by = self.possible(made, by)
        when = {"time": max(self.clock, made.time or 0.0)} if timed else {}
        handle = self.handle(made, by)
        got = self.told(self.subject, handle, outcome, **when)
        made.twin = self.told(self.twin, made.twin, outcome)
        assert got is handle or by in ("number", "name")
        made.ticket, made.told = got, True
        self.book.learn(made, outcome)

    def told(self, rec: Any, ticket: Any, outcome: Any, **when: Any) -> Any:
        """Tell an outcome; return the ticket with its outcome, where that is given back."""
        got = rec.observe(ticket, outcome, **when)
        assert got.outcome == outcome
        return got

    def quietly(self, raw: Any, outcome: Any, time: float | None = None) -> Any:
        """Let the twin make a round as it makes all of them; return what it drew."""
        if not self.kind.has("forecast"):
            drawn = self.kind.predict(self.twin, raw) if self.kind.has("predict") else None
            self.kind.learn(self.twin, raw, outcome)
            self.book.learn(self.book.issue(said=raw), outcome)
            return drawn
        facts = {"time": time} if self.timed else {}
        twin = self.kind.forecast(self.twin, raw, **facts)
        self.book.learn(self.book.issue(said=twin), outcome)
        return self.kind.drawn(self.told(self.twin, twin, outcome))

    def learns(self, rec: Any, raw: Any, outcome: Any) -> bool:
        """Make a round of a prediction; say whether it was taken."""
        try:
            self.kind.learn(rec, raw, outcome)
        except StaleForecast:
            self.dangling = True
            return False
        return True

    def possible(self, made: naive.Round, by: str) -> str:
        """Return how a round can be named: by its ticket, or its id, which is one of the two."""
        if by in ("ticket", "stored") and made.ticket is not None:
            return by
        return "number" if made.name is None else "name"

    def handle(self, made: naive.Round, by: str) -> Any:
        """Return what an outcome is told by."""
        by = self.possible(made, by)
        if by == "stored":
            data = type(made.ticket).from_bytes(made.ticket.to_bytes()).to_dict()
            return type(made.ticket).from_dict(json.loads(json.dumps(data)))
        return {"ticket": made.ticket, "number": made.number, "name": made.name}[by]


def _alike(told: float, counted: float) -> bool:
    both = math.isnan(told) and math.isnan(counted)
    return both or math.isclose(told, counted, rel_tol=1e-9, abs_tol=1e-9)
