"""An interrupt inside a call about groups, classes, numbers or tables, or inside a batch.

The call is done wholly or not at all, wherever the interrupt came (:mod:`interrupting`).  A batch
counts as one call.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from interrupting import interrupted

from calibrant import Calibrant, Recalibrator, load
from calibrant.classes import OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator, Period, TimeIntervals
from calibrant.recalibrate.table import Table
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator

pytestmark = pytest.mark.plain
TRIES = int(os.environ.get("CALIBRANT_INTERRUPTS", "40"))
"""Places of each call at which an interrupt is tried; set the variable to try more."""

SMALL: dict[str, Any] = {"resolution": 3, "buckets": 2}
RULES = TimeIntervals(shortest=2)
BEYOND = Distribution.normal(1.0, 2.0)
ATOM = Distribution.from_quantiles([0.2, 0.8], [0.0, 1.0])

Forecast = Callable[..., Any]


class Kind:
    """How a kind is made, what its raw forecasts are, what outcomes, and how it is loaded."""

    def __init__(self, make: Any, raws: list[Any], outcomes: list[Any], **more: Any) -> None:
        self.make, self.raws, self.outcomes = make, raws, outcomes
        self.told: list[dict[str, Any]] = more.get("told", [{}] * len(raws))
        self.again: dict[str, Any] = more.get("again", {})
        self.whole: Any = more.get("whole", list)

    def warmed(self) -> bytes:
        """Return the state of a stream after a few rounds."""
        made = self.make()
        for t in range(5):
            at = t % len(self.raws)
            made.observe(self.forecast(made, at), self.outcomes[t % len(self.outcomes)])
        return made.to_bytes()

    def forecast(self, made: Any, at: int, **more: Any) -> Any:
        return made.forecast(self.raws[at], **self.told[at], **more)


VECTORS = [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]]
NAMES = [{"groups": ["a", "b"]}, {"groups": ["b", Period("month", 2)]}, {"groups": ["new", "c"]}]


def grouped(**more: Any) -> Kind:
    made = partial(GroupRecalibrator, seed=3, **SMALL, **more)
    return Kind(made, [0.3, 0.6, 0.9], [1, 0, 1, 1], told=NAMES)


def classes(make: Any, **more: Any) -> Kind:
    return Kind(partial(make, 3, seed=3, **more), VECTORS, [0, 2, 1, 1])


def quantiles(method: str, **more: Any) -> Kind:
    made = partial(QuantileRecalibrator, method, levels=[0.2, 0.7], seed=3, **more)
    return Kind(made, [BEYOND, BEYOND, BEYOND], [0.5, 2.0, -1.0])


def interval(method: str, **more: Any) -> Kind:
    return Kind(partial(ConformalInterval, method, seed=3, **more), [1.0, 2.0, 0.5], [0.5, 2.5])


PAIRS = {"engine": "recalibrator", "method": "exponential_regret", "resolution": 1, "buckets": 1}
KINDS = {
    "groups": grouped(),
    "groups exponential": grouped(form="exponential"),
    "groups in time": Kind(
        partial(GroupRecalibrator, RULES, seed=3, **SMALL),
        [0.3, 0.6, 0.9],
        [1, 0, 1, 1],
        told=NAMES,
        again={"groups": RULES},
    ),
    "one vs rest": classes(OneVsRest, engine="recalibrator", **SMALL),
    "one vs rest, pairs": classes(OneVsRest, **PAIRS),
    "one vs rest, safe": classes(OneVsRest, raw_safe=0.05, **SMALL),
    "top label": classes(TopLabel, engine="recalibrator", **SMALL),
    "top label, mixed": classes(TopLabel, conditional=False, **SMALL),
    "simplex": classes(SimplexRecalibrator, resolution=2, cells=2),
    "pit": quantiles("pit", resolution=3),
    "tracker": quantiles("tracker"),
    "aci": interval("aci"),
    "aci_quantile": interval("aci_quantile", window=3),
    "blend": interval("blend"),
    "dtaci": interval("dtaci", window=3),
    "pid": interval("pid", window=3),
    "saocp": interval("saocp"),
    "sf_ogd": interval("sf_ogd"),
}
BATCHED = KINDS | {
    "recalibrator": Kind(partial(Recalibrator, seed=3, **SMALL), [0.3, 0.6, 0.9], [1, 0]),
    "calibrant": Kind(partial(Calibrant, seed=3, **SMALL), [0.3, 0.6, 0.9], [1, 0]),
    "safe": Kind(partial(Calibrant, seed=3, raw_safe=0.05, **SMALL), [0.3, 0.6, 0.9], [1, 0]),
}


class Model:
    """A stream with one closed ticket, two open ones, and a prediction that was looked at."""

    def __init__(self, kind: Kind, stored: bytes) -> None:
        self.kind, self.stream = kind, load(stored, **kind.again)
        self.closed = self.stream.observe(kind.forecast(self.stream, 0), kind.outcomes[0])
        self.older = kind.forecast(self.stream, 1, id="old")
        self.ticket = kind.forecast(self.stream, 0)

    def to_bytes(self) -> bytes:
        return self.stream.to_bytes()

    def learn_one(self, look: bool) -> None:
        raw, told = self.kind.raws[2], self.kind.told[2]
        if look:
            self.stream.sample_one(raw, **told)
        self.stream.learn_one(raw, self.kind.outcomes[0], **told)

    def replay(self, rows: int = 3, **more: Any) -> Any:
        kind, numbers = self.kind, range(rows)
        raws = [kind.raws[n % len(kind.raws)] for n in numbers]
        told = [kind.told[n % len(kind.raws)] for n in numbers]
        if any(told):
            more["groups"] = [each["groups"] for each in told]
        outcomes = [kind.outcomes[n % len(kind.outcomes)] for n in numbers]
        return self.stream.replay(raws, outcomes, **more)


CALLS: dict[str, Callable[[Model], Any]] = {
    "forecast": lambda model: model.kind.forecast(model.stream, 2),
    "forecast by name": lambda model: model.kind.forecast(model.stream, 1, id="a"),
    "observe": lambda model: model.stream.observe(model.ticket, model.kind.outcomes[0]),
    "observe by name": lambda model: model.stream.observe("old", model.kind.outcomes[1]),
    "learn_one": lambda model: model.learn_one(look=False),
    "sample_one and learn_one": lambda model: model.learn_one(look=True),
    "correct": lambda model: model.stream.correct(model.closed, model.kind.outcomes[1]),
    "expire": lambda model: model.stream.expire(model.ticket),
}
BATCHES: dict[str, Callable[[Model], Any]] = {
    "replay": lambda model: model.replay(),
    "late replay": lambda model: model.replay(available=[0.0, 2.0, 7.0]),
}


def try_all(make: Callable[[], Any], call: Callable[[Any], Any], tries: int = TRIES) -> None:
    """Interrupt a call at so many of its places, and look at what is left."""
    whole, untouched = make(), make().to_bytes()
    call(whole)
    done, outcomes = whole.to_bytes(), set()
    assert done != untouched
    places = interrupted(partial(call, make()), -1)[1]
    assert places > 5
    chosen = range(1, places + 1, 1) if places <= tries else spread(places, tries)
    for at in chosen:
        model = make()
        if not interrupted(partial(call, model), at)[0]:
            # What was worked out once, for all streams, is not worked out again.
            continue
        found = model.to_bytes()
        assert found in (untouched, done), f"stopped at place {at} of {places}"
        outcomes.add(found == done)
        if found == untouched:
            # The stream is free, and the same call is done now.
            call(model)
            assert model.to_bytes() == done, f"stopped at place {at} of {places}"
    assert False in outcomes


def spread(places: int, tries: int) -> list[int]:
    """Return places all over a call: the first and last ones, and others at random."""
    ends = [*range(1, tries // 4), *range(places - tries // 4, places + 1)]
    return sorted({*ends, *random.Random(places).sample(range(1, places + 1), tries // 2)})


def needs(kind: str) -> None:
    if kind == "simplex":
        pytest.importorskip("scipy")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_call_is_done_wholly_or_not_at_all(kind: str, call: str) -> None:
    needs(kind)
    made = KINDS[kind]
    try_all(partial(Model, made, made.warmed()), CALLS[call])


@pytest.mark.parametrize("kind", BATCHED)
@pytest.mark.parametrize("call", BATCHES)
def test_an_interrupted_batch_changes_all_or_nothing(kind: str, call: str) -> None:
    needs(kind)
    made = BATCHED[kind]
    try_all(partial(Model, made, made.warmed()), BATCHES[call])


class Keyed:
    """A table of two streams, with an open ticket in one of them and none in the other."""

    def __init__(self, pattern: Any, stored: bytes) -> None:
        self.table = Table(pattern(seed=1), seed=4)
        for t in range(8):
            ticket = self.table.forecast("ab"[t % 2], 0.1 * t)
            if t % 3:
                self.table.observe(ticket, t % 2)
                self.closed = ticket
        self.ticket = self.table.forecast("a", 0.4, id="old")
        self.stored = stored

    def to_bytes(self) -> bytes:
        return self.table.to_bytes()


KEYED: dict[str, Callable[[Keyed], Any]] = {
    "forecast": lambda made: made.table.forecast("a", 0.7),
    "forecast by name": lambda made: made.table.forecast("b", 0.7, id="new"),
    "forecast of a new key": lambda made: made.table.forecast("c", 0.7),
    "observe": lambda made: made.table.observe(made.ticket, 1),
    "observe by name": lambda made: made.table.observe("old", 0),
    "put": lambda made: made.table.put("a", made.stored),
    "correct": lambda made: made.table.correct(made.closed, 1 - made.closed.outcome),
    "expire": lambda made: made.table.expire("old"),
    "forget a key": lambda made: made.table.__delitem__("b"),
    "replay": lambda made: made.table.replay(
        ["a", "new", "b", "a"], [0.1, 0.4, 0.7, 0.9], [0, 1, 0, 1]
    ),
    "late replay": lambda made: made.table.replay(
        ["a", "new", "b", "a"], [0.1, 0.4, 0.7, 0.9], [0, 1, 0, 1], available=[0.0, 9.0, 2.0, 9.0]
    ),
    "play": lambda made: made.table.play(
        ["b", None, "new"], [0, 1, 0], ["one", "old", None], [0.4, 1, 0.6]
    ),
    "put a new key": lambda made: made.table.put("d", made.stored),
}
PATTERNS = {
    "recalibrator": partial(Recalibrator, max_open=3, **SMALL),
    "safe": partial(Calibrant, raw_safe=0.05, max_open=3, **SMALL),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("call", KEYED)
def test_an_interrupted_call_of_a_table_is_done_wholly_or_not_at_all(
    pattern: str, call: str
) -> None:
    lone = PATTERNS[pattern](seed=9)
    lone.forecast(0.3, id="lone")
    lone.observe(lone.forecast(0.2), 1)
    try_all(partial(Keyed, PATTERNS[pattern], lone.to_bytes()), KEYED[call])
