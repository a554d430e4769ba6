"""The slow and obvious version of a recalibrator's books: a list of rounds, and plain sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from calibrant.errors import ExpiredTicket, RepeatedTicket, UnknownTicket

__all__ = ["Book", "Pairs", "Played", "Round", "c1", "c2", "full_c2", "loss"]

Pairs = list[tuple[float, int]]
Played = list[tuple[Any, Any]]
"""What was announced (a ticket, which is read and never given back) and the outcome."""


@dataclass
class Round:
    """One forecast: the tickets that both players got for it, and what became of it."""

    number: int
    ticket: Any = None
    twin: Any = None
    said: Any = None
    name: str | None = None
    time: float | None = None
    outcome: Any = None
    told: bool = False
    """Whether the ticket in the caller's hand knows the outcome."""
    dropped: bool = False
    """Whether it was said that the outcome never comes."""
    stale: Any = None
    """A copy of the ticket from before its outcome was corrected."""


@dataclass
class Book:
    """What was issued, and what was learned, in order."""

    max_open: int
    rounds: list[Round] = field(default_factory=list)
    learned: list[Round] = field(default_factory=list)
    lag: int = 0
    crowd: int = 0
    since: int = 0
    """How many outcomes were learned before the last restart."""
    skipped: int = 0
    fates: dict[int | str, type[Exception]] = field(default_factory=dict)
    """What is remembered of closed names, and of numbers that were expired, until a round trip."""

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return len(self.rounds)

    def issue(self, **facts: Any) -> Round:
        """Write down a forecast."""
        self.crowd = max(self.crowd, len(self.rounds) - len(self.learned))
        made = Round(len(self.rounds), **facts)
        self.rounds.append(made)
        for old in self.rounds[: -self.max_open][-1:]:
            if old.name and old.outcome is None and not old.dropped:
                self.fates[old.name] = ExpiredTicket
        return made

    def learn(self, made: Round, outcome: Any) -> None:
        """Write down an outcome."""
        self.lag = max(self.lag, self.issued - 1 - made.number)
        made.outcome = outcome
        self.learned.append(made)
        if made.name:
            self.fates[made.name] = RepeatedTicket

    def correct(self, made: Round, outcome: Any) -> None:
        """Write down another outcome: until now the round was outstanding."""
        made.outcome, lag = outcome, self.issued - 1 - made.number
        if lag > 0:
            self.crowd, self.lag = self.crowd + 1, max(self.lag, lag)

    def overtake(self, learned: int) -> None:
        """Write down that the next round was drawn when so many outcomes were known."""
        missing = self.issued - learned
        self.crowd, self.lag = max(self.crowd, missing), max(self.lag, missing)

    def drop(self, made: Round) -> None:
        """Write down that an outcome never comes."""
        made.dropped = True
        for id in {made.number, made.name or made.number}:
            self.fates[id] = ExpiredTicket

    def expired(self, made: Round) -> bool:
        """Say whether a round is too old for its outcome."""
        return made.dropped or self.aged(made)

    def aged(self, made: Round) -> bool:
        """Say whether so many newer forecasts were made that a round expired."""
        return self.issued - made.number > self.max_open

    def known_to_expire(self, made: Round) -> bool:
        """Say whether it is still known of an open round that it expired."""
        return self.aged(made) or made.number in self.fates

    def open(self) -> list[Round]:
        """Return the rounds that wait for their outcome."""
        return [r for r in self.rounds if r.outcome is None and not self.expired(r)]

    def closed(self) -> list[Round]:
        """Return the rounds whose tickets are in the caller's hand, with their outcome."""
        return [r for r in self.learned if r.ticket is not None and r.told]

    def played(self) -> Played:
        """Return announcement and outcome of every round learned, in the order of learning."""
        return [(made.said, made.outcome) for made in self.learned[self.since :]]

    def refusal(self, made: Round, by: str) -> type[Exception]:
        """Return what is raised if the outcome of a round that is not open is told."""
        if by == "name":
            return self.fates.get(str(made.name), UnknownTicket)
        if by in ("ticket", "stored") and made.told:
            return RepeatedTicket
        return ExpiredTicket if self.known_to_expire(made) else RepeatedTicket


def schedule(
    carried: list[tuple[int, float]], available: list[float], time: list[float]
) -> list[tuple[str, int]]:
    """Return forecasts and outcomes of a late batch in order; carried rows have numbers below 0.

    An outcome is learned before the first forecast after its own that was made when it was known;
    those known by the last forecast's time are learned at the end.
    """
    waiting = [(known, -len(carried) + k) for k, (_, known) in enumerate(carried)]
    events = []
    for row, now in enumerate(time):
        events += _known(waiting, now)
        events.append(("forecast", row))
        waiting.append((available[row], row))
    return events + (_known(waiting, time[-1]) if time else [])


def _known(waiting: list[tuple[float, int]], now: float) -> list[tuple[str, int]]:
    known = sorted(entry for entry in waiting if entry[0] <= now)
    waiting[:] = [entry for entry in waiting if entry not in known]
    return [("outcome", row) for _, row in known]


def c1(pairs: Pairs) -> float:
    """Return the mean absolute calibration error over exact values."""
    return sum(abs(sum(y - v for y in told)) for v, told in _by_value(pairs)) / max(len(pairs), 1)


def c2(pairs: Pairs) -> float:
    """Return the mean squared calibration error over exact values."""
    squares = [sum(y - v for y in told) ** 2 / len(told) for v, told in _by_value(pairs)]
    return sum(squares) / max(len(pairs), 1)


def _by_value(pairs: Pairs) -> list[tuple[float, list[int]]]:
    found: dict[float, list[int]] = {}
    for value, outcome in pairs:
        found.setdefault(value, []).append(outcome)
    return list(found.items())


def full_c2(pairs: list[tuple[tuple[float, ...], int]]) -> float:
    """Return the same for vectors: squared distance of frequencies from what was announced."""
    found: dict[tuple[float, ...], list[int]] = {}
    for vector, outcome in pairs:
        found.setdefault(vector, []).append(outcome)
    total = 0.0
    for vector, told in found.items():
        shares = [told.count(k) / len(told) for k in range(len(vector))]
        total += len(told) * sum((s - v) ** 2 for s, v in zip(shares, vector, strict=True))
    return total / max(len(pairs), 1)


def loss(name: str, pairs: Pairs) -> float:
    """Return the mean loss."""
    each = {"squared": _squared, "log": _log}[name]
    return sum(each(v, y) for v, y in pairs) / max(len(pairs), 1)


def _squared(value: float, outcome: int) -> float:
    return (value - outcome) ** 2


def _log(value: float, outcome: int) -> float:
    chance = value if outcome else 1.0 - value
    return -math.log(chance) if chance > 0.0 else math.inf


def at_level(ticket: Any, level: float, outcome: float) -> tuple[float, int]:
    """Return the chance that was drawn at a level, and whether the outcome fell below it."""
    place = ticket.inner.tolist().index(level)
    centre, width = ticket.mixed.quantile(0.5), ticket.mixed.quantile(NormalDist().cdf(1.0))
    edge = NormalDist(float(centre), float(width - centre)).inv_cdf(level)
    return float(ticket.drawn[place]), int(outcome <= edge)


def inside(played: Played, low: float, high: float) -> int:
    """Return how many forecasts lie in an interval, the last one closed."""
    return sum(low <= raw < high or raw == high == 1.0 for raw, _ in played)
