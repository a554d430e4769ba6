"""Adapters: how the machine calls each kind of recalibrator, and reads what it answers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import machine_naive as naive
import numpy as np

from calibrant.errors import InvalidInput
from calibrant.regression import Distribution

__all__ = [
    "Binary",
    "ByClass",
    "ByTop",
    "Classes",
    "Grouping",
    "Groups",
    "Intervals",
    "Judging",
    "Kind",
    "Quantiles",
    "Transforming",
    "Watching",
]


@dataclass(frozen=True)
class Kind:
    """An adapter: how to make one kind, and how to read what it answers."""

    name: str
    make: Callable[[int, int], Any]
    verbs: frozenset[str]
    raws: Any
    peeks: Any
    outcomes: Any

    crowded: ClassVar[bool] = True
    """Whether ``delay`` is bounded by the number of outcomes that were missing at once."""
    trips: ClassVar[tuple[str, ...]] = ("bytes", "dict", "copy", "pickle")
    """In which ways the state can leave and come back."""
    cost: ClassVar[int] = 1
    """How many times longer than a lone binary stream a round takes."""
    raw_names: ClassVar[tuple[str, str]] = ("raw", "raw")
    """What raw forecasts are called, in forecast and in replay."""
    bad_raws: ClassVar[tuple[Any, ...]] = (-0.1, 1.5, float("nan"), "0.5", None)
    bad_outcomes: ClassVar[tuple[Any, ...]] = (2, -1, 0.5, None)

    def has(self, *verbs: str) -> bool:
        """Say whether the kind has all these verbs."""
        return self.verbs.issuperset(verbs)

    def forecast(self, rec: Any, raw: Any, **named: Any) -> Any:
        """Make a forecast; return its ticket."""
        return rec.forecast(raw, **named)

    def other(self, outcome: Any) -> Any:
        """Return another outcome."""
        return 1 - outcome

    def asked(self, raw: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return how a raw forecast is given to a verb."""
        return (raw,), {}

    def number(self, raw: Any) -> float:
        """Return the probability in a raw forecast of a binary stream."""
        return float(raw)

    def plain(self, said: Any) -> Any:
        """Return a draw or a mean in a form that can be compared."""
        return said

    def predict(self, rec: Any, raw: Any, verb: str = "sample_one") -> Any:
        """Return what the next draw would be."""
        given, named = self.asked(raw)
        return self.plain(getattr(rec, verb)(*given, **named))

    def predict_mean(self, rec: Any, raw: Any) -> Any:
        """Return what the next mean would be."""
        return self.predict(rec, raw, "predict_mean_one")

    def expected(self, ticket: Any) -> Any:
        """Return the part of the answer that ``predict_mean_one`` tells before."""
        return self.plain(ticket.mean)

    def check_coin(self, rec: Any, ticket: Any) -> None:
        """Ask for the coin of a ticket, and look whether it decided the draw."""
        if ticket.clock is None:
            return
        law = None if ticket.fallback or ticket._law == () else ticket.mixture
        coin = rec.coin_of(ticket)
        assert law is None or law.draw(coin) == ticket.index

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        """Make a round without a ticket."""
        rec.learn_one(raw, outcome)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        """Play a batch; return the run."""
        return rec.replay(raws, outcomes, **late)

    def play(self, rec: Any, kind: list[Any], id: list[Any], x: list[Any], **more: Any) -> Any:
        """Play a log, or a half of one; return the run."""
        if "outcome" not in kind:
            return rec.forecast_many(x, id=id, **more)
        if "forecast" not in kind:
            return rec.observe_many(id, x, **{k: v for k, v in more.items() if k == "time"})
        return rec.play(kind, id, x, **more)

    def logged(self, run: Any) -> list[Any]:
        """Return what a log announced, a row like :meth:`answer`, or None if that is not kept."""
        for name in ("value", "mean"):
            for said, ticket in zip(getattr(run, name), run.tickets, strict=True):
                kept = _asked(ticket, lambda made: getattr(made, name))  # noqa: B023
                lost = np.isnan(np.atleast_1d(said)).all()
                assert lost if kept is None else np.array_equal(said, kept)
        return [_asked(ticket, self.answer) for ticket in run.tickets]

    def answer(self, ticket: Any) -> Any:
        """Return what a ticket announced: draw and mean."""
        return ticket.value, ticket.mean

    def drawn(self, ticket: Any) -> Any:
        """Return the part of the answer that ``predict_one`` tells before."""
        return self.answer(ticket)[0]

    def rows(self, run: Any) -> list[Any]:
        """Return what a run announced, a row like :meth:`answer` for each round."""
        return list(zip(run.forecast.tolist(), run.mean.tolist(), strict=True))

    def certified(
        self, rec: Any, told: Any, played: naive.Played
    ) -> dict[str, tuple[float, float]]:
        """Return each number of the certificate, where there is one, beside the naive one."""
        found = {"rounds": (told.rounds, len(played))}
        return found | self.measures(told, played)

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        """Return what this kind measures, beside the naive version."""
        raise NotImplementedError

    def again(self, rec: Any, how: str) -> Any:
        """Return the same object after a round trip."""
        if how == "bytes":
            return type(rec).from_bytes(rec.to_bytes())
        if how == "dict":
            return type(rec).from_dict(json.loads(json.dumps(rec.to_dict())))
        return rec.copy() if how == "copy" else pickle.loads(pickle.dumps(rec))


def _asked(ticket: Any, ask: Callable[[Any], Any]) -> Any:
    """Return what is asked of a ticket, or None if that was not kept."""
    try:
        return ask(ticket)
    except InvalidInput:
        return None


class Binary(Kind):
    """Recalibrator and Calibrant."""

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        drawn = [(t.value, y) for t, y in played if not t.fallback]
        budget = getattr(told, "budget", None)
        whole = [(t.value, y) for t, y in played if budget is not None or not t.fallback]
        raws = [(t.raw, y) for t, y in played]
        return {
            "c1": (told.c1, naive.c1(drawn)),
            "c2": (told.c2, naive.c2(drawn)),
            "loss": (told.loss, naive.loss(told.loss_name, whole)),
            "raw loss": (told.raw_loss, naive.loss(told.loss_name, raws)),
        }

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        return rec.replay(np.array(raws, float), np.array(outcomes, np.uint8), **late)

    def logged(self, run: Any) -> list[Any]:
        return list(zip(run.value.tolist(), run.mean.tolist(), strict=True))


class Groups(Kind):
    """GroupRecalibrator: a raw forecast comes with the names of its groups."""

    bad_raws = tuple((p, ()) for p in Kind.bad_raws)

    def forecast(self, rec: Any, raw: Any, **named: Any) -> Any:
        return rec.forecast(raw[0], groups=raw[1], **named)

    def asked(self, raw: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return raw[:1], {"groups": raw[1]}

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.learn_one(raw[0], outcome, groups=raw[1])

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        values = np.array([p for p, _ in raws], float)
        groups = [list(names) for _, names in raws]
        return rec.replay(values, np.array(outcomes, np.uint8), groups=groups, **late)

    def play(self, rec: Any, kind: list[Any], id: list[Any], x: list[Any], **more: Any) -> Any:
        values = [told[0] if isinstance(told, tuple) else told for told in x]
        groups = [told[1] if isinstance(told, tuple) else () for told in x]
        return super().play(rec, kind, id, values, groups=groups, **more)

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        drawn = [(t.value, y) for t, y in played]
        raws = [(t.raw, y) for t, y in played]
        found = {
            "c1": (told.c1, naive.c1(drawn)),
            "c2": (told.c2, naive.c2(drawn)),
            "loss": (told.loss, naive.loss("squared", drawn)),
            "raw loss": (told.raw_loss, naive.loss("squared", raws)),
            "memberships": (told.memberships, sum(1 + len(t.groups) for t, _ in played)),
        }
        for row in told.groups:
            own = [(t.value, y) for t, y in played if row.group in t.groups]
            found[f"rounds in {row.group}"] = row.rounds, len(own)
            found[f"c1 in {row.group}"] = row.c1, naive.c1(own)
            found[f"c2 in {row.group}"] = row.c2, naive.c2(own)
        return found


class Classes(Kind):
    """OneVsRest, TopLabel and SimplexRecalibrator: vectors in, vectors out."""

    cost = 3
    crowded = False
    bad_raws = ((0.5, 0.5), (0.5, 0.5, 0.5), (-0.1, 0.6, 0.5), (float("nan"), 0.5, 0.5), "abc")
    bad_outcomes = (3, -1, 0.5, None)

    def other(self, outcome: Any) -> Any:
        return (outcome + 1) % 3

    def answer(self, ticket: Any) -> Any:
        return self.plain(ticket.value), self.plain(ticket.mean)

    def plain(self, said: Any) -> Any:
        return tuple(said.tolist())

    def check_coin(self, rec: Any, ticket: Any) -> None:
        coins = np.atleast_1d(rec.coin_of(ticket))
        for part, coin in zip(getattr(ticket, "parts", ())[-len(coins) :], coins, strict=False):
            if not part.fallback:
                assert part.mixture.draw(coin) == part.index

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        return rec.replay(np.array(raws, float).reshape(-1, 3), np.array(outcomes, int), **late)

    def rows(self, run: Any) -> list[Any]:
        pairs = zip(run.forecast.tolist(), run.mean.tolist(), strict=True)
        return [(tuple(value), tuple(mean)) for value, mean in pairs]

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        vectors = [(tuple(t.value.tolist()), y) for t, y in played]
        return {"c2": (told.c2, naive.full_c2(vectors))}


class ByClass(Classes):
    """OneVsRest: each class is a stream of its own."""

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        found = {}
        for k, part in told.parts.items():
            own = [(float(t.classwise[k]), int(y == k)) for t, y in played]
            raws = [(float(t.raw[k]), int(y == k)) for t, y in played]
            found |= _part(k, part, own)
            found[f"raw loss {k}"] = part.raw_loss, naive.loss("squared", raws)
        return found


class ByTop(Classes):
    """TopLabel: the class that comes first is a stream of its own, or all of them are one."""

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        found = {}
        for k, part in told.parts.items():
            mine = [(t, y) for t, y in played if "conditional" not in self.name or t.top == k]
            found |= _part(k, part, [(t.confidence, int(y == t.top)) for t, y in mine])
        return found


class ByBoth(Classes):
    """ClassCalibrant: each class is a stream of its own, and so is each where it comes first."""

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        found = {}
        for n, part in told.parts.items():
            k = n - 4
            if n < 3:
                own = [(float(t.classwise[n]), int(y == n)) for t, y in played]
                raws = [(float(t.mixed[n]), int(y == n)) for t, y in played]
                found[f"raw loss {n}"] = part.raw_loss, naive.loss("squared", raws)
            else:
                own = [(t.confidence, int(y == k)) for t, y in played if t.top == k]
            found |= _part(n, part, own)
        return found


def _part(k: int, part: Any, own: naive.Pairs) -> dict[str, tuple[float, float]]:
    return {
        f"rounds {k}": (part.rounds, len(own)),
        f"c1 {k}": (part.c1, naive.c1(own)),
        f"c2 {k}": (part.c2, naive.c2(own)),
        f"loss {k}": (part.loss, naive.loss("squared", own)),
    }


class Quantiles(Kind):
    """QuantileRecalibrator: a raw forecast is centre and width of a normal distribution."""

    cost = 3
    bad_raws = ((0.5, None),)
    bad_outcomes = (float("nan"), float("inf"), "1", None)

    def forecast(self, rec: Any, raw: Any, **named: Any) -> Any:
        return rec.forecast(_normal(raw), **named)

    def answer(self, ticket: Any) -> Any:
        told = ticket.quantiles, ticket.outer, ticket.drawn, ticket.outer_mean
        return tuple(tuple(part.tolist()) for part in told)

    def drawn(self, ticket: Any) -> Any:
        return _law(ticket.value)

    def other(self, outcome: Any) -> Any:
        return outcome + 1.0

    def asked(self, raw: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (_normal(raw),), {}

    def plain(self, said: Any) -> Any:
        return _law(said)

    def check_coin(self, rec: Any, ticket: Any) -> None:
        assert 0.0 <= rec.coin_of(ticket) < 1.0

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.learn_one(_normal(raw), outcome)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        return rec.replay([_normal(raw) for raw in raws], outcomes, **late)

    def play(self, rec: Any, kind: list[Any], id: list[Any], x: list[Any], **more: Any) -> Any:
        told = [_normal(each) if isinstance(each, tuple) else each for each in x]
        return super().play(rec, kind, id, told, **more)

    def logged(self, run: Any) -> list[Any]:
        pairs = list(zip(run.tickets, run.value, run.mean, strict=True))
        for ticket, value, mean in pairs:
            assert value is None or _law(value) == _law(ticket.value)
            assert mean is None or _law(mean) == _law(ticket.mean)
        return [None if value is None else self.answer(ticket) for ticket, value, _ in pairs]

    def rows(self, run: Any) -> list[Any]:
        parts = run.quantiles, run.outer, run.drawn, run.outer_mean
        told = zip(*(part.tolist() for part in parts), strict=True)
        return [tuple(tuple(part) for part in row) for row in told]

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        found = {}
        for k, row in enumerate(told.levels if played else ()):
            covered = [float(y <= t.quantiles[k]) for t, y in played]
            found[f"coverage at {row.level}"] = row.coverage, sum(covered) / len(played)
            if told.method in ("mixed", "pit"):
                own = [naive.at_level(t, row.level, y) for t, y in played]
                found[f"c2 at {row.level}"] = row.measured, naive.c2(own)
        return found


def _normal(raw: Any) -> Any:
    return None if raw[1] is None else Distribution.normal(*raw)


def _law(told: Distribution) -> tuple[float, ...]:
    return tuple(told.quantile(np.array([0.1, 0.3, 0.5, 0.8])).tolist())


class Intervals(Kind):
    """ConformalInterval: a raw forecast is a centre."""

    raw_names = "centre", "centres"
    bad_raws = (float("nan"), float("inf"), "1", None)
    bad_outcomes = (float("nan"), float("inf"), "1", None)

    def answer(self, ticket: Any) -> Any:
        return ticket.low, ticket.high, ticket.radius

    def other(self, outcome: Any) -> Any:
        return outcome + 1.0

    def drawn(self, ticket: Any) -> Any:
        return ticket.low, ticket.high

    def rows(self, run: Any) -> list[Any]:
        ends = run.low.tolist(), run.high.tolist(), run.radius.tolist()
        return list(zip(*ends, strict=True))

    def measures(self, told: Any, played: naive.Played) -> dict[str, tuple[float, float]]:
        if not played:
            return {}
        covered = [float(t.centre - y <= t.below and y - t.centre <= t.base) for t, y in played]
        return {"coverage": (told.coverage, sum(covered) / len(played))}


class Judging(Kind):
    """Monitor: rounds come whole, and nothing is announced."""

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.update(raw, outcome)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        rec.update_many(np.array(raws, float), np.array(outcomes, np.uint8), **late)

    def rows(self, run: Any) -> list[Any]:
        return []

    def certified(
        self, rec: Any, told: Any, played: naive.Played
    ) -> dict[str, tuple[float, float]]:
        counted = {f"rounds in {row.low}": row for row in rec.table()}
        return {
            name: (row.rounds, naive.inside(played, row.low, row.high))
            for name, row in counted.items()
        }


class Watching(Judging):
    """Watch: two monitors, of which the second judges what was announced."""

    trips = ("bytes", "copy", "pickle")

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.update(raw, 1.0 - raw, outcome)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        rows = np.array(raws, float)
        rec.update_many(rows, 1.0 - rows, np.array(outcomes, np.uint8), **late)

    def certified(
        self, rec: Any, told: Any, played: naive.Played
    ) -> dict[str, tuple[float, float]]:
        return super().certified(rec.raw, told, played)


class Grouping(Judging):
    """GroupWatch: rounds of two keys, by the half in which their forecasts are."""

    trips = ("bytes", "copy", "pickle")

    def learn(self, rec: Any, raw: Any, outcome: Any) -> None:
        rec.update(self.key(raw), raw, outcome)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        keys = [self.key(raw) for raw in raws]
        rec.update_many(keys, np.array(raws, float), np.array(outcomes, np.uint8), **late)

    def key(self, raw: Any) -> str:
        return "low" if isinstance(raw, float) and raw < 0.5 else "high"

    def certified(
        self, rec: Any, told: Any, played: naive.Played
    ) -> dict[str, tuple[float, float]]:
        rows = [row for key in rec.keys for row in rec[key].table()]
        return {
            f"rounds in {low}": (
                sum(row.rounds for row in rows if row.low == low),
                naive.inside(played, low, high),
            )
            for low, high in {(row.low, row.high) for row in rows}
        }


class Transforming(Kind):
    """transforms.Online: forecasts without a draw, and without tickets."""

    def predict(self, rec: Any, raw: Any, verb: str = "predict_one") -> Any:
        return rec.predict_one(raw)

    def replay(self, rec: Any, raws: list[Any], outcomes: list[Any], **late: Any) -> Any:
        return rec.replay(np.array(raws, float), np.array(outcomes, np.uint8), **late)

    def rows(self, run: Any) -> list[Any]:
        return list(run.tolist())

    def certified(
        self, rec: Any, told: Any, played: naive.Played
    ) -> dict[str, tuple[float, float]]:
        return {}
