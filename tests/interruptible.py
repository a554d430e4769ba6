"""Streams of every kind, and the calls and batches that may be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from calibrant import Calibrant, Recalibrator, load
from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator, Period, TimeIntervals
from calibrant.monitor import GroupWatch, LateWatch, Monitor, Watch
from calibrant.recalibrate.table import Table
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator
from calibrant.summary.follower import Follower
from calibrant.transforms import Identity

SMALL: dict[str, Any] = {"resolution": 3, "buckets": 2}
RULES = TimeIntervals(shortest=2)
BEYOND = Distribution.normal(1.0, 2.0)


class Kind:
    """How a kind is made, what its raw forecasts are, what outcomes, and how it is loaded."""

    def __init__(self, make: Any, raws: list[Any], outcomes: list[Any], **more: Any) -> None:
        self.make, self.raws, self.outcomes = make, raws, outcomes
        self.told: list[dict[str, Any]] = more.get("told", [{}] * len(raws))
        self.again: dict[str, Any] = more.get("again", {})

    def warmed(self) -> bytes:
        """Return the state of a stream after a few rounds."""
        made = self.make()
        for t in range(5):
            # The last raw forecast, and the groups that come with it, are new to every call.
            made.observe(self.forecast(made, t % 2), self.outcomes[t % len(self.outcomes)])
        return made.to_bytes()

    def forecast(self, made: Any, at: int, **more: Any) -> Any:
        return made.forecast(self.raws[at], **self.told[at], **more)


VECTORS = [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]]
NAMES = [
    {"groups": ["a", "b"]},
    {"groups": ["b", Period("month", 2)]},
    {"groups": ["new", Period("month", 3)]},
]

CONTEXTS = [{"context": {"age": 20.0}}, {"context": {"age": 60.0}}, {"context": {"plan": "gold"}}]


def grouped(**more: Any) -> Kind:
    made = partial(GroupRecalibrator, seed=3, **SMALL, **more)
    return Kind(made, [0.3, 0.6, 0.9], [1, 0, 1, 1], told=NAMES)


def classes(make: Any, **more: Any) -> Kind:
    return Kind(partial(make, 3, seed=3, **more), VECTORS, [0, 2, 1, 1])


def quantiles(method: str, **more: Any) -> Kind:
    made = partial(QuantileRecalibrator, method, levels=[0.2, 0.7], seed=3, **more)
    return Kind(made, [BEYOND, BEYOND, BEYOND], [0.5, 9.0, -1.0])


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
    "context": Kind(
        partial(Calibrant, (Identity(),), context=16, seed=3, **SMALL),
        [0.3, 0.6, 0.3],
        [1, 0, 1],
        told=CONTEXTS,
    ),
    "class calibrant": classes(ClassCalibrant),
    "one vs rest": classes(OneVsRest, engine="recalibrator", **SMALL),
    "one vs rest, pairs": classes(OneVsRest, **PAIRS),
    "one vs rest, safe": classes(OneVsRest, raw_safe=0.05, **SMALL),
    "top label": classes(TopLabel, engine="recalibrator", **SMALL),
    "top label, mixed": classes(TopLabel, conditional=False, **SMALL),
    "simplex": classes(SimplexRecalibrator, resolution=2, cells=2),
    "mixed": quantiles("mixed", resolution=3),
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
        if any("groups" in each for each in told):
            more["groups"] = [each["groups"] for each in told]
        if any("context" in each for each in told):
            more["context"] = {"age": [each["context"].get("age") for each in told]}
        outcomes = [kind.outcomes[n % len(kind.outcomes)] for n in numbers]
        return self.stream.replay(raws, outcomes, **more)

    def play(self) -> Any:
        kind, more = self.kind, {}
        raws, told = kind.raws, kind.told
        if any("groups" in each for each in told):
            more["groups"] = [told[1]["groups"], None, told[2]["groups"], None]
        if any("context" in each for each in told):
            more["context"] = {"age": [told[n]["context"].get("age") for n in (1, 0, 2, 0)]}
        x = [raws[1], kind.outcomes[0], raws[2], kind.outcomes[1]]
        return self.stream.play([0, 1, 0, 1], ["a", "old", None, "a"], x, **more)


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
    "play": lambda model: model.play(),
}


class Keyed:
    """A table of two streams, with an open ticket in one of them and none in the other."""

    def __init__(self, pattern: Any, stored: bytes) -> None:
        # One pattern with rows that are packed in between.
        self.table = Table(pattern(seed=1), seed=4, hot=1 if "raw_safe" in pattern.keywords else 9)
        for t in range(8):
            ticket = self.table.forecast("ab"[t % 2], 0.1 * t)
            if t % 3:
                self.table.observe(ticket, t % 2)
                self.closed = ticket
        self.ticket = self.table.forecast("a", 0.4, id="old")
        self.stored = stored
        other = Table(pattern(seed=1), seed=4)
        other.replay(["b", "d", "b"], [0.3, 0.8, 0.9], [1, 0, 1])
        other.forecast("d", 0.4, id="another")
        self.bodies = other.bodies()

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
    "take": lambda made: made.table.take(["b", "d"], made.bodies),
    "evict": lambda made: made.table.evict(keep=1),
}
PATTERNS = {
    "recalibrator": partial(Recalibrator, max_open=2, **SMALL),
    "safe": partial(Calibrant, raw_safe=0.05, max_open=2, **SMALL),
}


class Followed:
    """What follows forecasts, whose counts are those of its state."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.made = make()

    def to_bytes(self) -> bytes:
        stored: bytes = self.made.to_bytes()
        again = type(self.made).from_bytes(stored)
        for count in ("rounds", "issued", "waiting", "missing", "judged"):
            assert getattr(again, count, None) == getattr(self.made, count, None)
        return stored


ROUNDS = [0.3, 0.9, 0.3, 0.6, 0.1, 0.8, 0.7], [1, 0, 0, 1, 1, 0, 1]


def monitor(**options: Any) -> Monitor:
    made = Monitor(buckets=2, **options)
    made.update_many(*ROUNDS)
    return made


def watch() -> Watch:
    made = Watch(buckets=2, learning=3)
    made.update_many(ROUNDS[0], *ROUNDS)
    return made


def group_watch() -> GroupWatch:
    made = GroupWatch(buckets=2, keys=["a"], learning=2)
    made.update_many(["a", "b", "a", "b", "b", "a", "b"], *ROUNDS)
    return made


def late_watch(judge: Any) -> LateWatch:
    made = LateWatch(judge(buckets=2), horizon=3)
    told = [[p] * len(made.names) for p in ROUNDS[0]]
    for number, values in enumerate(told):
        made.forecast(*values, time=float(number))
        # The latest two wait, and one of them is known.
        if number < 6 and number != 4:
            made.observe(number, ROUNDS[1][number])
    return made


def follower(rounds: int) -> Follower:
    made = Follower([0.0, 0.5, 1.0])
    for t in range(rounds):
        made.take(0.3, 0.5, 0.4, t % 2, float(t))
    return made


MORE = [0.2, 0.9, 0.9], [0, 1, 0]
FOLLOWED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "monitor, update": (monitor, lambda made: made.update(0.4, 1)),
    "monitor in turn, update": (partial(monitor, lag=2), lambda made: made.update(0.4, 1)),
    "monitor in turn, update_many": (partial(monitor, lag=2), lambda made: made.update_many(*MORE)),
    "monitor, restart": (monitor, lambda made: made.restart()),
    "watch, update": (watch, lambda made: made.update(0.4, 0.5, 1)),
    "watch, update_many": (watch, lambda made: made.update_many(MORE[0], *MORE)),
    "watch, restart": (watch, lambda made: made.restart()),
    "groups, update": (group_watch, lambda made: made.update(["b", "new"], 0.4, 1)),
    "groups, update_many": (
        group_watch,
        lambda made: made.update_many(["b", "new", "a"], *MORE),
    ),
    "groups, restart": (group_watch, lambda made: made.restart()),
    "groups, restart a key": (group_watch, lambda made: made.restart("b")),
    "late, forecast": (partial(late_watch, Watch), lambda made: made.forecast(0.4, 0.5, time=9.0)),
    "late, observe": (partial(late_watch, Watch), lambda made: made.observe(4, 1)),
    "late, forget": (partial(late_watch, Monitor), lambda made: made.forget(4)),
    "late, play": (
        partial(late_watch, Monitor),
        lambda made: made.play([(0.4,), (), (0.1,), (0.9,)], [8.0, 1, 9.0, None], [0, 6, 0, 0]),
    ),
    "late, restart": (partial(late_watch, Watch), lambda made: made.restart()),
    "follower, take": (partial(follower, 5), lambda made: made.take(0.3, 0.5, 0.4, 1)),
    "follower, window": (partial(follower, 624), lambda made: made.take(0.3, 0.5, 0.4, 1)),
    "follower, take_many": (
        partial(follower, 623),
        lambda made: made.take_many(MORE[0], [0.0, 1.0, 1.0], *MORE, [0.0, 1.0, 2.0]),
    ),
    "follower, correct": (partial(follower, 5), lambda made: made.correct(1, 0.3, 0.5, 0.4, 1)),
    "follower, merge": (partial(follower, 5), lambda made: made.merge(follower(3))),
}
