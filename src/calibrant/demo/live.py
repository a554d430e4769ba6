"""Three streams that move by themselves, for the live page: ``python -m calibrant.demo live``."""

from __future__ import annotations

import heapq
import math
import threading
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from calibrant.errors import needed
from calibrant.live import Memory, Stream, app
from calibrant.recalibrate import Calibrant

PORT: Final = 8765
STEP: Final = 0.2
"""Seconds between two steps of the demo."""
RATE: Final = 10
"""Forecasts of each stream in a step."""
BEFORE: Final = 200
"""Steps that were made before anybody looks."""
TURN: Final = 300.0
"""Seconds after which the drifting model has drifted there and back."""
LEARNING: Final = 1000
TOLERANCE: Final = 0.05
"""How the streams are watched: a recalibrator never stops learning, so it is a little off."""
PLACES: Final = ("north", "south", "east", "west")


class Kept(Protocol):
    """Where a stream is: in this process, or behind a service."""

    def forecasts(
        self, raws: Sequence[float], time: float, keys: Sequence[str] | None
    ) -> list[tuple[Any, float]]:
        """Make forecasts; return name and mean of each."""

    def outcomes(self, told: Sequence[tuple[Any, int]], time: float) -> None:
        """Report outcomes by name."""


class Here:
    """A stream of this process."""

    def __init__(self, seed: int) -> None:
        self.stream = Stream(Calibrant(seed=seed), learning=LEARNING, tolerance=TOLERANCE)

    def forecasts(
        self, raws: Sequence[float], time: float, keys: Sequence[str] | None
    ) -> list[tuple[Any, float]]:
        """Make forecasts; return name and mean of each."""
        named: Sequence[str | None] = keys or [None] * len(raws)
        pairs = zip(raws, named, strict=True)
        made = [self.stream.forecast(raw, time=time, key=key) for raw, key in pairs]
        return [(ticket.id, ticket.mean) for ticket in made]

    def outcomes(self, told: Sequence[tuple[Any, int]], time: float) -> None:
        """Report outcomes by name."""
        for id, outcome in told:
            self.stream.observe(id, outcome, time=time)


class Played(ABC):
    """A model that makes raw forecasts, and outcomes that become known when they are due.

    Parameters
    ----------
    kept
        Where the stream is.
    seed
        What all chances depend on.
    delay
        Seconds that an outcome takes, on average.
    began
        When the stream began, in seconds.
    keyed
        Whether forecasts are of four places.
    """

    def __init__(
        self, kept: Kept, seed: int, delay: float, began: float, keyed: bool = False
    ) -> None:
        self.kept, self.rng = kept, np.random.default_rng(seed)
        self.delay, self.began, self.keyed = delay, began, keyed
        self._due: list[tuple[float, int, Any, int]] = []
        self._made = 0

    def step(self, now: float, forecasts: int) -> None:
        """Make some forecasts, and report the outcomes that are due."""
        raws = [self.raw() for _ in range(forecasts)]
        places = self.rng.integers(len(PLACES), size=forecasts).tolist()
        keys = [PLACES[place] for place in places] if self.keyed else None
        made = self.kept.forecasts(raws, now, keys)
        for raw, (id, mean) in zip(raws, made, strict=True):
            due = now + self.delay * float(self.rng.exponential())
            self._made += 1
            heapq.heappush(self._due, (due, self._made, id, self.outcome(now, raw, mean)))
        told = list[tuple[Any, int]]()
        while self._due and self._due[0][0] <= now:
            _, _, id, outcome = heapq.heappop(self._due)
            told.append((id, outcome))
        self.kept.outcomes(told, now)

    def raw(self) -> float:
        """Return the next raw forecast."""
        return float(self.rng.uniform(0.02, 0.98))

    @abstractmethod
    def outcome(self, now: float, raw: float, mean: float) -> int:
        """Choose the outcome of a forecast."""


class Drifting(Played):
    """A model that becomes over-confident and recovers, again and again."""

    def outcome(self, now: float, raw: float, mean: float) -> int:
        """Let outcomes follow the raw forecast less and less, and then more again."""
        turn = 0.5 - 0.5 * math.cos(2.0 * math.pi * (now - self.began) / TURN)
        odds = (raw / (1.0 - raw)) ** (1.0 - 0.7 * turn)
        return int(self.rng.random() < odds / (1.0 + odds))


class Rare(Played):
    """A model of events that seldom happen, and half as often as it says."""

    def raw(self) -> float:
        """Return a small number."""
        return float(self.rng.beta(1.0, 60.0))

    def outcome(self, now: float, raw: float, mean: float) -> int:
        """Let half as much happen as was said."""
        return int(self.rng.random() < 0.5 * raw)


class Adversary(Played):
    """Somebody who sees everything but the draw, and wants forecasts to be wrong."""

    def outcome(self, now: float, raw: float, mean: float) -> int:
        """Do the opposite of what is expected on average."""
        return int(mean < 0.5)


def players(kept: Sequence[Kept], began: float) -> list[Played]:
    """Return a model that drifts, one of rare events, and an adversary."""
    drifting, rare, adversary = kept
    first: list[Played] = [Drifting(drifting, 1, 3.0, began, keyed=True)]
    return [*first, Rare(rare, 2, 8.0, began), Adversary(adversary, 3, 0.3, began)]


class Show:
    """The three streams, and the thread that moves them.

    Examples
    --------
    >>> show = Show(now=0.0, before=3)
    >>> show.source.streams()
    ('drifting model', 'rare events', 'adversary')
    >>> show.step(1.0)
    >>> [show.source.glance(name).open > 0 for name in show.source.streams()]
    [True, True, True]
    """

    def __init__(self, *, now: float, before: int = BEFORE) -> None:
        kept = [Here(seed) for seed in (1, 2, 3)]
        self.played = players(kept, now - before * STEP)
        names = ("drifting model", "rare events", "adversary")
        self.source = Memory({n: each.stream for n, each in zip(names, kept, strict=True)})
        for k in range(before, 0, -1):
            self.step(now - k * STEP)

    def step(self, now: float) -> None:
        """Let every stream make a step."""
        for each in self.played:
            each.step(now, RATE)

    def move(self, stop: threading.Event) -> None:
        """Make steps until told to stop."""
        while not stop.wait(STEP):
            self.step(clock.time())


def serve(port: int = PORT) -> int:
    """Show the live page of the three streams on this machine until interrupted."""
    told = "the live page needs uvicorn, which is not installed"
    uvicorn = needed("uvicorn", told, "serve")
    show, stop = Show(now=clock.time()), threading.Event()
    mover = threading.Thread(target=show.move, args=(stop,), daemon=True)
    mover.start()
    print(f"Three streams, live, on http://127.0.0.1:{port}/ until Ctrl-C.", flush=True)
    quiet = {"log_level": "warning", "timeout_graceful_shutdown": 1}
    try:
        uvicorn.run(app(show.source), host="127.0.0.1", port=port, **quiet)
    finally:
        stop.set()
    return 0
