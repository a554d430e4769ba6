"""Streams by key at play: what a table and a journal have in common, beside lone streams.

The *lone* streams are a dictionary of plain recalibrators, one for each key, with the same seed.
They get the same rounds one by one and nothing else: no compiler, no store, no round trips.  The
subject must answer as they do, bit for bit, and hold the bytes that they hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from calibrant import Calibrant, Recalibrator

__all__ = ["BY", "KEY", "MOST", "OUTCOME", "PATTERNS", "RAW", "SEED", "Keyed", "Made", "Pattern"]

MOST = 4
"""After so many newer forecasts of a key a ticket expires."""
SEED = 4
RAW = st.sampled_from([0.0, 0.07, 0.25, 0.3, 0.62, 0.8, 1.0])
OUTCOME = st.integers(0, 1)
KEY: Any = st.runner().flatmap(lambda machine: st.sampled_from(machine.keys))
BY = st.sampled_from(["ticket", "stored", "name", "number"])
"""How a ticket is named: by itself, what was stored of it, its name, or its key and number."""

Pattern = Callable[..., Recalibrator]
PATTERNS: dict[str, Pattern] = {
    "foster_hart": functools.partial(Recalibrator, resolution=4, buckets=2, max_open=MOST),
    "default": functools.partial(Calibrant, max_open=MOST),
    "raw_safe": functools.partial(Calibrant, raw_safe=0.1, max_open=MOST),
    "fading in time": functools.partial(
        Recalibrator, "fading", unit="time", half_life=3.0, resolution=4, buckets=3, max_open=MOST
    ),
}
"""What the streams begin as."""


@dataclass
class Made:
    """One forecast: the tickets of both, and what became of it."""

    key: Any
    own: Any
    """The ticket of the lone stream."""
    ticket: Any = None
    """That of the subject; None if it came with a stream that was taken over."""
    name: str | None = None
    outcome: int | None = None
    first: int | None = None
    """The outcome that was told first, if another one stands by now."""
    dropped: bool = False
    told: bool = False
    """Whether the ticket in the caller's hand knows the outcome."""


class Keyed(RuleBasedStateMachine):
    """Every call of many streams; ``compiling`` lets machine code be made on the way."""

    keys: tuple[Any, ...] = ("a", "b", 3)
    subject: Any

    def __init__(self, pattern: Pattern, compiling: bool = False) -> None:
        super().__init__()
        self.pattern, self.compiling = pattern, compiling
        self.lone: dict[Any, Any] = {}
        self.made: list[Made] = []
        self.clock = 0.0
        self.timed = pattern().spec.rule.timed

    @initialize()
    def begin(self) -> None:
        """Make the subject."""
        self.subject = self.opened()

    def opened(self) -> Any:
        """Return the subject before its first call."""
        raise NotImplementedError

    def rows(self) -> dict[Any, bytes]:
        """Return the stored bytes of each stream that the subject holds at hand."""
        raise NotImplementedError

    # ------------------------------------------------------------------ what changes nothing

    @precondition(lambda machine: machine.lone)
    @rule(raw=RAW, data=st.data())
    def look(self, raw: float, data: Any) -> None:
        """Ask a copy of a key's stream what comes next."""
        key = data.draw(st.sampled_from([*self.lone]))
        copy, lone = self.lone_copy(key), self.lone[key].copy()
        if self.timed:
            facts = {"time": self.clock}
            assert copy.forecast(raw, **facts).value == lone.forecast(raw, **facts).value
            return
        assert copy.predict_mean_one(raw) == lone.predict_mean_one(raw)
        assert copy.sample_one(raw) == lone.sample_one(raw) == lone.forecast(raw).value

    def lone_copy(self, key: Any) -> Any:
        return self.subject[key]

    @rule()
    def certify(self) -> None:
        """Compare what was measured in each stream with its own certificate."""
        told = self.subject.certificates()
        for n, key in enumerate(told.key):
            own = self.lone[key].certificate()
            for part in ("rounds", "open", "expired", "c1", "c2", "loss", "raw_loss"):
                assert getattr(told, part)[n] == pytest.approx(getattr(own, part), rel=1e-12)

    @precondition(lambda machine: machine.compiling)
    @rule()
    def compile(self) -> None:
        """Let machine code play from now on, where there is a compiler."""
        assert self.subject.compile() is self.subject
        spec = self.pattern().compile().spec
        assert spec.program.rows is spec.program.rows

    # ------------------------------------------------------------------ parts

    def stream(self, key: Any) -> Any:
        """Return the lone stream of a key, which begins when it is first asked for."""
        return self.lone.setdefault(key, self.pattern(seed=SEED, key=key))

    def tick(self) -> float:
        self.clock += 1.0
        return self.clock

    def facts(self, name: str | None, timed: bool) -> dict[str, Any]:
        """Return what is told of a forecast besides its raw one."""
        told: dict[str, Any] = {} if name is None else {"id": name}
        return told | ({"time": self.tick()} if timed or self.timed else {})

    def follow(self, key: Any, raw: float, facts: dict[str, Any], ticket: Any) -> Made:
        """Let the lone stream make the same forecast, and compare the tickets."""
        named = {"id": ticket.id} if ticket is not None and isinstance(ticket.id, str) else {}
        own = self.stream(key).forecast(raw, **facts | named)
        if ticket is not None:
            self.check_same(ticket, own)
        made = Made(key, own, ticket, facts.get("id"))
        self.made.append(made)
        return made

    def check_same(self, ticket: Any, own: Any) -> None:
        """Compare all that two tickets tell, and the coin that decided."""
        assert [getattr(ticket, part) for part in PARTS] == [getattr(own, part) for part in PARTS]
        assert ticket.mixture == own.mixture
        lone = self.lone.get(getattr(ticket, "key", None))
        if lone is not None:
            assert self.subject.coin_of(ticket) == lone.coin_of(own)

    def learn(self, made: Made, outcome: int) -> None:
        """Let the lone stream learn an outcome."""
        self.lone[made.key].observe(made.own, outcome)
        made.outcome = outcome

    def aged(self, made: Made) -> bool:
        """Say whether a forecast expired by age."""
        return self.lone[made.key].issued - made.own.number > MOST

    def open(self) -> list[Made]:
        """Return the forecasts that wait for their outcome."""
        return [m for m in self.made if m.outcome is None and not m.dropped and not self.aged(m)]

    def closed(self) -> list[Made]:
        """Return the forecasts whose outcome was learned and whose tickets are at hand."""
        return [m for m in self.made if m.outcome is not None and m.ticket is not None]

    def stored(self, ticket: Any) -> Any:
        """Return a ticket as it is after it was stored."""
        return type(ticket).from_bytes(ticket.to_bytes())

    @contextmanager
    def refused(self, *errors: type[Exception]) -> Iterator[None]:
        """Expect one of these errors, and nothing changed but which streams are at hand."""
        with self.unchanged(), self.raised(*errors):
            yield

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Expect that nothing changes but which streams are at hand."""
        before = self.rows()
        yield
        assert before.items() <= self.rows().items()

    @contextmanager
    def raised(self, *errors: type[Exception]) -> Iterator[None]:
        """Expect one of these errors."""
        with pytest.raises(errors) as found:
            yield
        assert type(found.value) in errors


PARTS = ("value", "mean", "number", "raw", "time", "mixed", "clock", "index", "bucket", "fallback")
