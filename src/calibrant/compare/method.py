"""What is compared, and how: streams, methods, their duel with the adversary, and scores."""

from __future__ import annotations

import functools
import math
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self

import numpy as np

from calibrant import metrics
from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.errors import InvalidInput
from calibrant.recalibrate.delivery import arrivals, schedule, times
from calibrant.simulate import Coins, Noise, Threshold
from calibrant.simulate.board import key_for


class Announced(NamedTuple):
    """The mean, which anybody may know beforehand, and the forecast; the same without a coin."""

    mean: float
    forecast: float


class Player(Protocol):
    """Who announces forecasts and learns outcomes."""

    def announce(self, raw: float) -> Announced:
        """Return the forecast for a raw one."""

    def learn(self, raw: float, outcome: int) -> None:
        """Learn the outcome of a round with that raw forecast."""

    def size(self) -> int:
        """Return the bytes that must be kept in order to go on."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Rounds in the order of time.

    Attributes
    ----------
    raw, outcomes
        What came in, and what happened.
    time
        When each forecast was made.
    available
        When each outcome became known, infinite if never; None if all were known at once.

    Examples
    --------
    >>> Stream.of([0.9, 0.2, 0.6], [1, 0, 1]).events.tolist()
    [0, -1, 1, -2, 2, -3]
    >>> late = Stream.of([0.9, 0.2, 0.6], [1, 0, 1], available=[2.0, 1.0, np.inf])
    >>> late.events.tolist(), late.scored.tolist()
    ([0, 1, -2, -1, 2], [True, True, False])
    """

    raw: Reals
    outcomes: Bits
    time: Reals
    available: Reals | None = None

    @classmethod
    def of(cls, raw: Any, outcomes: Any, *, time: Any = None, available: Any = None) -> Self:
        """Return a stream after a look at its arrays; rules as in :meth:`.Recalibrator.replay`."""
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        if not check.same_length(raw=raws, outcomes=told):
            raise InvalidInput("raw must hold at least one forecast, got none")
        when = times(time, len(raws))
        known = None if available is None else arrivals(available, when)
        if known is not None:
            known = np.where(np.isnan(known), np.inf, known)
        return cls(raws, told, when, known)

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def scored(self) -> Mask:
        """Which rounds have an outcome, be it after the last forecast."""
        if self.available is None:
            return np.ones(len(self), np.bool_)
        return np.isfinite(self.available)

    @functools.cached_property
    def events(self) -> Words:
        """What happened in order: ``i`` for the forecast of round i, ``-1 - i`` for its outcome."""
        rounds = np.arange(len(self), dtype=np.int64)
        if self.available is None:
            return np.column_stack([rounds, -1 - rounds]).ravel()
        return schedule(0, rounds, self.available, self.time, sys.maxsize).events

    @property
    def delivery(self) -> dict[str, Any]:
        """What ``replay`` has to be told about late outcomes."""
        if self.available is None:
            return {}
        return {"time": self.time, "available": self.available}

    def first(self, rounds: int) -> Stream:
        """Return the first rounds, that many."""
        known = None if self.available is None else self.available[:rounds]
        return Stream(self.raw[:rounds], self.outcomes[:rounds], self.time[:rounds], known)


BUCKETS: Final = 20
"""Buckets of equal width in which forecasts are compared that may be any numbers."""
WINDOW: Final = 5_000
LEAST_WINDOW: Final = 100
ENOUGH_WINDOWS: Final = 8
SURE: Final = 1e-15
"""What the probability of an outcome counts as where it was less."""
MANY: Final = 50_000
"""Forecasts above which they are rounded before their smooth error is computed."""
FINE: Final = 10_000


def calibration(forecasts: Reals, outcomes: Bits, *, power: float, exact: bool) -> float:
    """Return C1 or C2, over exact values or over equal buckets at the mean forecast of each.

    >>> calibration(np.array([0.25, 0.25]), np.array([1, 0], np.uint8), power=1, exact=True)
    0.25
    """
    if exact:
        return metrics.calibration_error(forecasts, outcomes, power=power)
    return metrics.binned_calibration_error(forecasts, outcomes, buckets=BUCKETS, power=power)


def window_for(rounds: int) -> int:
    """Return how long windows are: 5,000 rounds, or less so that there are eight; 0 if none.

    >>> window_for(100_000), window_for(8_000), window_for(120), window_for(99)
    (5000, 1000, 100, 0)
    """
    if rounds < LEAST_WINDOW:
        return 0
    return min(WINDOW, max(LEAST_WINDOW, rounds // ENOUGH_WINDOWS))


def worst_window(forecasts: Reals, outcomes: Bits, window: int, *, exact: bool) -> float:
    """Return the largest C2 of a window; rounds after the last whole one are left out."""
    if not window:
        return math.nan
    starts = range(0, len(forecasts) - window + 1, window)
    parts = (slice(start, start + window) for start in starts)
    errors = (calibration(forecasts[p], outcomes[p], power=2, exact=exact) for p in parts)
    return max(errors, default=math.nan)


def log_loss(forecasts: Reals, outcomes: Bits) -> float:
    """Return the mean log loss; an outcome's probability counts as 1e-15 where it was less."""
    given = np.where(outcomes == 1, forecasts, 1.0 - forecasts)
    return float(-np.mean(np.log(np.maximum(given, SURE))))


def smooth(forecasts: Reals, outcomes: Bits) -> float:
    """Return the smooth calibration error; many forecasts count to four digits."""
    if len(forecasts) > MANY:
        forecasts = np.round(forecasts * FINE) / FINE
    return metrics.smooth_calibration_error(forecasts, outcomes)


def duel(player: Player, rounds: int, seed: int) -> tuple[Reals, Bits]:
    """Return the forecasts and outcomes of a game against the threshold adversary.

    The raw forecasts are 0 or 1 by a coin.  The adversary sees the mean that is announced
    and makes the event happen exactly when it is at most one half.  Against a method without
    a coin the mean is the forecast, so nothing is hidden from it.

    Notes
    -----
    For a recalibrator this is, forecast by forecast, the game that
    ``play(recalibrator, "noise", "threshold", rounds, seed=seed)`` plays.

    References
    ----------
    Kuleshov and Ermon (2017), "Prediction against an adversary".

    Examples
    --------
    >>> from calibrant.compare.methods import Raw
    >>> forecasts, outcomes = duel(Raw().start(0), 100, seed=0)
    >>> bool((forecasts + outcomes == 1.0).all())
    True
    """
    forecasts, outcomes = np.empty(rounds), np.empty(rounds, np.uint8)
    noise, level, key = Noise(), Threshold().level, key_for(seed, "forecaster")
    for t in range(rounds):
        raw = noise.forecast(None, (), Coins(key, t))
        announced = player.announce(raw)
        outcome = int(announced.mean <= level)
        player.learn(raw, outcome)
        forecasts[t], outcomes[t] = announced.forecast, outcome
    return forecasts, outcomes


class Played(NamedTuple):
    """What a method made of a stream, and what it took.

    ``size`` is in bytes; ``seconds`` are of the processor, those of the compiler excepted.
    """

    forecast: Reals
    mean: Reals
    size: int
    seconds: float


@dataclass(frozen=True)
class Method(ABC):
    """A way to turn raw forecasts into better ones.

    Attributes
    ----------
    name
        By which it is asked for.
    about
        What it is, in a sentence.
    kind
        What it belongs to: ``raw``, ``default``, ``calibrator``, ``transform``, or the library
        it comes from.
    on_grid
        Whether forecasts are values of a grid, which recur, or may be any numbers.
    """

    kind: ClassVar[str]
    on_grid: ClassVar[bool] = False

    name: str
    about: str

    @abstractmethod
    def start(self, seed: int) -> Player:
        """Return the method at work on a fresh state."""

    def play(self, stream: Stream, seed: int) -> Played:
        """Return the forecasts of a stream, each made before its outcome is used.

        Here round by round; methods that have a batch of their own use that.
        """
        player = self.start(seed)
        raw, outcomes = stream.raw.tolist(), stream.outcomes.tolist()
        forecast, mean = np.empty(len(stream)), np.empty(len(stream))
        events = stream.events.tolist()
        began = time.process_time()
        for event in events:
            if event >= 0:
                mean[event], forecast[event] = player.announce(raw[event])
            else:
                player.learn(raw[-1 - event], outcomes[-1 - event])
        seconds = time.process_time() - began
        return Played(forecast, mean, player.size(), seconds)

    def adversarial(self, rounds: int, seed: int) -> float:
        """Return C2 over exact values after that many rounds against the paper's adversary.

        Without a coin the outcome is a function of the forecast, and half a unit away from it
        at least: C2 is 1/4 or more.
        """
        forecasts, outcomes = duel(self.start(seed), rounds, seed)
        return calibration(forecasts, outcomes, power=2, exact=True)
