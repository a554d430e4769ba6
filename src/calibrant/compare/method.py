"""What takes part in a comparison."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from calibrant.compare.duel import duel
from calibrant.compare.player import Player
from calibrant.compare.score import calibration
from calibrant.compare.stream import Stream
from calibrant.core.arrays import Reals


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
        """Return C2 over exact values after so many rounds against the paper's adversary.

        Without a coin the outcome is a function of the forecast, and half a unit away from it
        at least: C2 is 1/4 or more.
        """
        forecasts, outcomes = duel(self.start(seed), rounds, seed)
        return calibration(forecasts, outcomes, power=2, exact=True)
