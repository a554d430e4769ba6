"""What a way through the log comes to, and the first of them: a table in this process.

A way returns the forecast and the mean of every round that it was told of, and the body of each of
its keys: what is remembered of the key, open outcomes included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.one_log.log import Event, batches, trait_of
from calibrant import Calibrant, Recalibrator, Table

__all__ = ["MODELS", "PAPER", "SEED", "Model", "Result", "by_table", "told_once"]

SEED = 7


class Model(NamedTuple):
    """What every key begins as: its name, its settings, and who makes one."""

    name: str
    settings: dict[str, Any]
    make: Callable[..., Any]

    @property
    def pattern(self) -> Any:
        """A model for each key of a table."""
        return self.make()


PAPER = Model(
    "foster_hart",
    {"method": "foster_hart", "resolution": 10, "buckets": 5},
    partial(Recalibrator, resolution=10, buckets=5),
)
DEFAULT = Model("default", {"method": "calibrant"}, Calibrant)
MODELS = {model.name: model for model in (PAPER, DEFAULT)}


class Result(NamedTuple):
    """What a way came to: answers by round, bodies by key."""

    answers: dict[str, tuple[float, float]]
    bodies: dict[str, bytes]

    def only(self, traits: tuple[str, ...], keys: dict[str, str]) -> Result:
        """Return what concerns keys with these traits; ``keys`` says whose each round is."""
        answers = {id: told for id, told in self.answers.items() if trait_of(keys[id]) in traits}
        bodies = {key: body for key, body in self.bodies.items() if trait_of(key) in traits}
        return Result(answers, bodies)


def by_table(log: list[Event], model: Model = PAPER) -> Result:
    """Play the log on a table: batches by ``play``, what may be corrected one by one.

    A table knows no outcome before its forecast, and none twice: the caller keeps early ones
    until the forecast is made, and drops those that are told again, as the service does.  Whoever
    wants to correct an outcome keeps the ticket, which ``play`` does not give.
    """
    table, answers = Table(model.pattern, seed=SEED), dict[str, tuple[float, float]]()
    tickets: dict[str, Any] = {}
    for batch in batches(told_once(log)):
        played = batch[0].kind in ("forecast", "outcome")
        many = [event for event in batch if played and trait_of(event.key) != "mended"]
        if many:
            rows = [(event.key, event.kind, event.id, event.x) for event in many]
            made = table.play(*zip(*rows, strict=True))
            told = zip(many, made.value.tolist(), made.mean.tolist(), strict=True)
            answers |= {event.id: (value, mean) for event, value, mean in told}
        for event in batch:
            if not played or trait_of(event.key) == "mended":
                tickets[event.id] = ticket = one_call(table, event, tickets)
                answers[event.id] = (ticket.value, ticket.mean)
    return Result(answers, {key: table.body(key) for key in table})


def one_call(table: Table, event: Event, tickets: dict[str, Any]) -> Any:
    """Let one event happen in a table; return the ticket that it is about."""
    if event.kind == "forecast":
        return table.forecast(event.key, event.x, id=event.id)
    if event.kind == "outcome":
        return table.observe(tickets[event.id], int(event.x))
    if event.kind == "correction":
        return table.correct(tickets[event.id], int(event.x))
    return table.expire(tickets.get(event.id, event.id))


def told_once(log: list[Event]) -> list[Event]:
    """Return the log with early outcomes behind their forecasts, and no outcome twice."""
    made, early = list[Event](), dict[str, Event]()
    known, learned = set[str](), set[str]()
    for event in log:
        if event.kind == "outcome":
            if event.id in learned:
                continue
            learned.add(event.id)
            if event.id not in known:
                early[event.id] = event
                continue
        made.append(event)
        if event.kind == "forecast":
            known.add(event.id)
            made += [early.pop(event.id)] if event.id in early else []
    return made
