"""Reads change nothing: whatever is asked, at whatever moment, of whatever kind."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_draws import first
from machine_kinds import COMPILED, KINDS, Kind
from machine_reads import LOOKS, WRITES, ask, reads_of

STEPS = ("round", "round", "open", "late", "learn", "replay")


class Life:
    """One object, the tickets that are open, and all it ever answered."""

    def __init__(self, kind: Kind, compiled: bool) -> None:
        self.kind, self.rec = kind, kind.make(7, 5)
        if compiled:
            self.rec.compile()
        self.waiting: list[Any] = []
        self.answers: list[Any] = []
        self.now = 0.0

    def live(self, step: str, raw: Any, outcome: Any) -> None:
        """Make a step, or the next best if this kind does not know it."""
        if not self.kind.has("forecast"):
            step = step if step == "replay" else "learn"
        elif step == "learn" and not self.kind.has("learn"):
            step = "round"
        getattr(self, f"_{step}")(raw, outcome)

    def _round(self, raw: Any, outcome: Any) -> None:
        self._open(raw, outcome)
        self.rec.observe(self.waiting.pop(), outcome)

    def _open(self, raw: Any, outcome: Any) -> None:
        ticket = self.kind.forecast(self.rec, raw, **self._when())
        self.answers.append(self.kind.answer(ticket))
        self.waiting = [*self.waiting[-4:], ticket]

    def _late(self, raw: Any, outcome: Any) -> None:
        if self.waiting and self.rec.issued - self.waiting[0].number <= 5:
            self.rec.observe(self.waiting.pop(0), outcome)
        else:
            self._round(raw, outcome)

    def _learn(self, raw: Any, outcome: Any) -> None:
        self.kind.learn(self.rec, raw, outcome)

    def _replay(self, raw: Any, outcome: Any) -> None:
        timed = self.kind.has("time") and not self.kind.has("learn")
        late = {"time": [self._when()["time"]] * 2} if timed else {}
        run = self.kind.replay(self.rec, [raw] * 2, [outcome] * 2, **late)
        self.answers.append(self.kind.rows(run))

    def _when(self) -> dict[str, float]:
        self.now += 1.0
        return {"time": self.now} if self.kind.has("time") else {}

    def ask(self, name: str, raw: Any) -> None:
        """Read something of the object."""
        ask(self.kind, self.rec, name, raw, self.waiting[-1] if self.waiting else None)


def lived(kind: Kind, steps: list[Any], asked: dict[int, list[Any]], compiled: bool) -> Life:
    """Return a life with reads between its steps."""
    life = Life(kind, compiled)
    for k, step in enumerate(steps):
        for name, raw in asked.get(k, ()):
            life.ask(name, raw)
        life.live(*step)
    return life


def check_reads_change_nothing(name: str, compiled: bool, data: Any) -> None:
    """Draw a life and reads; live it with them and without, and compare."""
    kind = KINDS[name]
    step = st.tuples(st.sampled_from(STEPS), kind.raws, kind.outcomes)
    steps = data.draw(st.lists(step, min_size=1, max_size=12), label="steps")
    reads = st.lists(st.tuples(st.sampled_from(reads_of(kind)), kind.peeks), max_size=3)
    moments = st.integers(0, len(steps) - 1)
    asked = data.draw(st.dictionaries(moments, reads, min_size=1), label="asked")
    if any(read in LOOKS for listed in asked.values() for read, _ in listed):
        # A prediction that is overtaken may be refused its round.
        steps = [("round" if s == "learn" else s, *rest) for s, *rest in steps]
    quiet, loud = lived(kind, steps, {}, False), lived(kind, steps, asked, compiled)
    assert loud.answers == quiet.answers
    assert loud.rec.to_bytes() == quiet.rec.to_bytes()


@pytest.mark.once
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_read_at_any_moment_changes_nothing(name: str, data: Any) -> None:
    check_reads_change_nothing(name, False, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_read_at_any_moment_changes_nothing_when_compiled(name: str, data: Any) -> None:
    check_reads_change_nothing(name, True, data)


def each_read_keeps_the_bytes(name: str, compiled: bool) -> None:
    """Ask everything between rounds; look at the bytes before and after."""
    kind = KINDS[name]
    raw, outcome = (first(strategy) for strategy in (kind.raws, kind.outcomes))
    quiet, loud = Life(kind, False), Life(kind, compiled)
    for read in reads_of(kind):
        before = loud.rec.to_bytes()
        loud.ask(read, first(kind.peeks))
        assert loud.rec.to_bytes() == before, f"{read} must change nothing"
        for life in (quiet, loud):
            life.live("open", raw, outcome)
            life.live("late", raw, outcome)
    assert loud.answers == quiet.answers
    assert loud.rec.to_bytes() == quiet.rec.to_bytes()


@pytest.mark.once
@pytest.mark.parametrize("name", KINDS)
def test_each_read_leaves_the_bytes_as_they_were(name: str) -> None:
    each_read_keeps_the_bytes(name, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_each_read_leaves_the_bytes_as_they_were_when_compiled(name: str) -> None:
    each_read_keeps_the_bytes(name, True)


@pytest.mark.once
@pytest.mark.parametrize("name", KINDS)
def test_every_public_method_is_a_verb_or_a_read(name: str) -> None:
    made = type(KINDS[name].make(0, 10))
    public = {name for name, _ in inspect.getmembers(made, inspect.isfunction) if name[0] != "_"}
    life = Life(KINDS[name], False)
    for read in public - WRITES - {*LOOKS, "predict_mean_one"}:
        life.ask(read, first(KINDS[name].peeks))
