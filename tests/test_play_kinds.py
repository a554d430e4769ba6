"""Logs of groups, of several classes and of numbers: exactly the calls one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.errors import CalibrantError, InvalidInput, InvalidType, RepeatedTicket
from calibrant.groups import GroupRecalibrator
from calibrant.regression import ConformalInterval, Distribution, Distributions
from calibrant.regression import QuantileRecalibrator as Quantiles

VECTORS = [(0.7, 0.2, 0.1), (0.1, 0.6, 0.3), (0.2, 0.2, 0.6), (1.0, 0.0, 0.0)]
NORMALS = [Distribution.normal(mean, sd) for mean, sd in [(0.3, 1.0), (-1.2, 0.5), (2.0, 2.5)]]
SMALL = {"engine": "recalibrator", "resolution": 4, "buckets": 3}


def named(context: Any, history: Any) -> tuple[str, ...]:
    """Put a round into the group that its context says."""
    return () if context is None else (context,)


@dataclass(frozen=True)
class Kind:
    """How one kind is made, what it is told, and what it refuses."""

    make: Callable[..., Any]
    raws: list[Any]
    outcomes: list[Any]
    bad: tuple[Any, Any]
    """A raw forecast and an outcome that are refused."""
    more: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    """What is told besides: its name in a single call, its name in a log, and values."""
    options: dict[str, Any] = field(default_factory=dict)

    def made(self, **options: Any) -> Any:
        return self.make(**self.options | {"seed": 3} | options)

    def told(self, k: int) -> dict[str, Any]:
        """Return what is told besides the raw forecast in one call."""
        return {name: values[k % len(values)] for name, (_, values) in self.more.items()}

    def columns(self, events: list[int]) -> dict[str, Any]:
        """Return what is told besides for a log of these rounds."""
        return {
            many: [values[k % len(values)] for k in events] for many, values in self.more.values()
        }


def classes(make: Any, **options: Any) -> Kind:
    return Kind(make, VECTORS, [0, 2, 1, 1], ((0.5, 0.5), 3), options={"classes": 3} | options)


def groups(rules: list[Any], **more: Any) -> Kind:
    options = {"groups": rules, "resolution": 4, "buckets": 2}
    return Kind(GroupRecalibrator, [0.1, 0.5, 0.8], [1, 0], (1.5, 2), more, options)


def numbers(make: Any, method: str, raws: list[Any], **options: Any) -> Kind:
    return Kind(
        make, raws, [0.1, -0.7, 2.2, 0.4], ("x", float("nan")), options=options | {"method": method}
    )


NAMES = [("a",), (), ("a", "b")]
KINDS = {
    "groups": groups(["a"]),
    "named groups": groups(["a"], groups=("groups", NAMES)),
    "groups by context": groups([named], context=("context", ["a", "b", None])),
    "ClassCalibrant": classes(ClassCalibrant, **SMALL),
    "OneVsRest": classes(OneVsRest, **SMALL),
    "TopLabel": classes(TopLabel, **SMALL),
    "simplex": classes(SimplexRecalibrator, resolution=3, cells=2),
    "mixed": numbers(Quantiles, "mixed", NORMALS, levels=[0.1, 0.5, 0.8]),
    "tracker": numbers(Quantiles, "tracker", NORMALS, levels=[0.1, 0.5, 0.8]),
    "interval": numbers(ConformalInterval, "blend", [0.0, 0.5, -1.5]),
    "scores": numbers(ConformalInterval, "blend", [None], score="given"),
    "scorecasts": Kind(
        ConformalInterval,
        [0.0, 0.5],
        [0.1, -0.7, 2.2],
        ("x", None),
        {"scorecast": ("scorecasts", [0.0, 0.25, -0.5])},
    ),
}
LOG = [
    ("forecast", 0, "x"),
    ("forecast", 1, None),
    ("outcome", 0, "x"),
    ("forecast", 2, "x"),
    ("forecast", 3, "y"),
    ("outcome", 1, 1),
    ("outcome", 3, "y"),
    ("forecast", 4, None),
    ("outcome", 2, "x"),
]
"""Events: what each is, of which round, and the id that is told."""


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def column(kind: Kind, log: list[tuple[str, int, Any]]) -> list[Any]:
    told = {"forecast": kind.raws, "outcome": kind.outcomes}
    return [told[verb][k % len(told[verb])] for verb, k, _ in log]


def one_by_one(
    rec: Any, kind: Kind, log: list[tuple[str, int, Any]], time: Any = None
) -> list[Any]:
    """Call for each event; return the ticket of each."""
    tickets = list[Any]()
    for event, ((verb, k, id), x) in enumerate(zip(log, column(kind, log), strict=True)):
        when = None if time is None else time[event]
        if verb == "outcome":
            tickets.append(rec.observe(id, x, time=when))
        else:
            tickets.append(rec.forecast(x, id=id, time=when, **kind.told(k)))
    return tickets


def parts(log: list[tuple[str, int, Any]]) -> tuple[list[str], list[Any], list[int]]:
    verbs, rounds, ids = zip(*log, strict=True)
    return list(verbs), list(ids), list(rounds)


def same(said: Any, other: Any) -> bool:
    """Say whether two answers are the same; of distributions, whether their quantiles are."""
    if isinstance(said, Distribution):
        levels = [0.05, 0.3, 0.5, 0.9]
        return [said.quantile(p) for p in levels] == [other.quantile(p) for p in levels]
    return np.array_equal(said, other)


def agree(answers: Any, first: dict[int, Any], tickets: list[Any]) -> None:
    """Check that each event's answer is what the forecast of its ticket announced."""
    assert len(answers) == len(tickets)
    assert answers.number.tolist() == [ticket.number for ticket in tickets]
    # In a log an outcome is told of the very ticket that its forecast gave.
    known = {ticket.number: ticket.outcome for ticket in tickets}
    assert [t.outcome for t in answers.tickets] == [known[t.number] for t in tickets]
    for name in ("value", "mean"):
        for said, ticket in zip(getattr(answers, name), tickets, strict=True):
            assert same(said, getattr(first[ticket.number], name))


@pytest.mark.parametrize("time", [None, [float(k) for k in range(len(LOG))]])
def test_a_log_is_played_as_the_calls_one_by_one(kind: Kind, time: Any) -> None:
    one, other = kind.made(), kind.made()
    tickets = one_by_one(one, kind, LOG, time)
    first = {t.number: t for t, (verb, *_) in zip(tickets, LOG, strict=True) if verb == "forecast"}
    verbs, ids, rounds = parts(LOG)
    answers = other.play(verbs, ids, column(kind, LOG), time, **kind.columns(rounds))
    agree(answers, first, tickets)
    assert other == one
    assert other.to_bytes() == one.to_bytes()
    assert other.play([], [], []).number.tolist() == []


def test_forecasts_and_then_outcomes_are_those_of_single_calls(kind: Kind) -> None:
    one, other = kind.made(), kind.made()
    rounds = list(range(6))
    ids = ["x", None, "y", None, None, "z"]
    made = [("forecast", k, ids[k]) for k in rounds]
    told = [("outcome", k, k if ids[k] is None else ids[k]) for k in (3, 0, 5)]
    tickets = one_by_one(one, kind, made)
    answers = other.forecast_many(column(kind, made), id=ids, **kind.columns(rounds))
    agree(answers, dict(enumerate(tickets)), tickets)
    assert other.to_bytes() == one.to_bytes()
    closed = one_by_one(one, kind, told)
    answers = other.observe_many([id for *_, id in told], column(kind, told))
    assert answers.number.tolist() == [ticket.number for ticket in closed]
    assert other.to_bytes() == one.to_bytes()
    assert other.forecast_many([]).number.tolist() == []


def test_what_was_not_kept_of_a_ticket_is_blank(kind: Kind) -> None:
    rec = kind.made()
    made = [("forecast", k, None) for k in range(3)]
    one_by_one(rec, kind, made)
    again = rec.copy()
    answers = again.observe_many([0, 2], [kind.outcomes[0]] * 2)
    for name in ("value", "mean"):
        for said, ticket in zip(getattr(answers, name), answers.tickets, strict=True):
            try:
                assert same(said, getattr(ticket, name))
            except InvalidInput:
                assert said is None or np.isnan(said).all()


@pytest.mark.parametrize("what", ["raw", "outcome", "id", "repeated", "length", "word"])
def test_a_log_that_cannot_be_played_is_refused_and_changes_nothing(kind: Kind, what: str) -> None:
    rec = kind.made()
    one_by_one(rec, kind, LOG[:7])
    before = rec.to_bytes()
    # Its names are used again, settled again, and then all is undone.
    log = [("forecast", 5, "y"), ("outcome", 5, "y"), ("forecast", 6, "new"), ("outcome", 6, "new")]
    verbs, ids, rounds = parts(log)
    x, error, match = column(kind, log), CalibrantError, "^event 3: "
    if what == "raw":
        x[2], match = kind.bad[0], "^event 2: "
    elif what == "outcome":
        x[3] = kind.bad[1]
    elif what == "id":
        ids[3] = "nobody"
    elif what == "repeated":
        ids[3], error = "y", RepeatedTicket
    elif what == "length":
        ids, error, match = ids[:3], InvalidInput, "length"
    else:
        x, error, match = "word", InvalidType, "^x must have an entry for each event, got 'word'$"
    more = {} if what == "word" else kind.columns(rounds)
    with pytest.raises(error, match=match):
        rec.play(verbs, ids, x, **more)
    assert rec.to_bytes() == before
    with pytest.raises(RepeatedTicket):
        rec.observe("y", kind.outcomes[0])
    assert rec.observe("x", kind.outcomes[0]).number == 2


@pytest.mark.parametrize("told", [3, "word", None])
def test_outcomes_without_an_entry_for_each_event_are_refused(kind: Kind, told: Any) -> None:
    with pytest.raises(InvalidType, match=r"^outcomes must have an entry for each event, got "):
        kind.made().observe_many([0], told)


@pytest.mark.parametrize("name", ["named groups", "groups by context", "scorecasts"])
def test_what_is_told_besides_needs_an_entry_for_each_event(name: str) -> None:
    kind = KINDS[name]
    verbs, ids, rounds = parts(LOG)
    rec = kind.made()
    before = rec.to_bytes()
    with pytest.raises(InvalidInput):
        rec.play(verbs, ids, column(kind, LOG), **kind.columns(rounds[:-1]))
    assert rec.to_bytes() == before


def test_tables_of_distributions_and_of_classes_are_taken_as_lists_are() -> None:
    one, other = KINDS["mixed"].made(), KINDS["mixed"].made()
    means, spreads = [0.3, -1.2, 2.0], [1.0, 0.5, 2.5]
    one.forecast_many(NORMALS)
    other.forecast_many(Distributions.normal(means, spreads))
    assert other.to_bytes() == one.to_bytes()
    one, other = KINDS["OneVsRest"].made(), KINDS["OneVsRest"].made()
    listed, table = one.forecast_many(VECTORS), other.forecast_many(np.array(VECTORS))
    assert listed.value.shape == (4, 3)
    assert np.array_equal(listed.value, table.value)
    assert other.to_bytes() == one.to_bytes()
