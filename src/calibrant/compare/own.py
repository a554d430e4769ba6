"""The methods of this package: raw forecasts, Algorithm 1, transforms alone, and the default."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from calibrant import registry
from calibrant.compare.method import Method, Played
from calibrant.compare.player import Announced
from calibrant.compare.stream import Stream
from calibrant.kernels.compile import available
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.rows import SHORT
from calibrant.simulate import Noise, Threshold, play_many
from calibrant.transforms import Online, Transform

PILOT: Final = 100
"""Rounds after which a method is known to be slow, or not to be."""
FEW: Final = 5
PATIENCE: Final = 2.0
"""Seconds of plain Python for which the compiler is started though the stream is short."""


def own_methods(settings: dict[str, Any]) -> Iterator[Method]:
    """Yield the raw forecasts, the default, and whatever the registries hold.

    ``settings`` are for the recalibrators, the default among them.
    """
    yield Raw()
    yield Default("calibrant", _first_line(Calibrant), settings)
    for name in registry.calibrators.names():
        yield Recalibrated(name, _first_line(registry.calibrators.get(name)), settings)
    for name in registry.transforms.names():
        yield Alone(name, _first_line(registry.transforms.get(name)))


def _first_line(made: type) -> str:
    return (made.__doc__ or "").partition("\n")[0].replace("``", "")


# ------------------------------------------------------------------------- as they are


@dataclass(frozen=True)
class Raw(Method):
    """The raw forecasts."""

    kind: ClassVar[str] = "raw"

    name: str = "raw"
    about: str = "The raw forecasts as they are."

    def start(self, seed: int) -> Passing:
        return Passing()

    def play(self, stream: Stream, seed: int) -> Played:
        return Played(stream.raw, stream.raw, 0, 0.0)


class Passing:
    """Passes raw forecasts on."""

    def announce(self, raw: float) -> Announced:
        return Announced(raw, raw)

    def learn(self, raw: float, outcome: int) -> None:
        """Nothing is learned."""

    def size(self) -> int:
        return 0


# ------------------------------------------------------------------------- Algorithm 1


@dataclass(frozen=True)
class Recalibrated(Method):
    """Algorithm 1 with the calibrator of that name; ``settings`` are the recalibrator's."""

    kind: ClassVar[str] = "calibrator"
    on_grid: ClassVar[bool] = True

    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, seed: int) -> Recalibrator:
        """Return a fresh recalibrator."""
        return Recalibrator(self.name, seed=seed, **self.settings)

    def start(self, seed: int) -> Ticketed:
        return Ticketed(self.make(seed))

    def play(self, stream: Stream, seed: int) -> Played:
        warm_up(stream, lambda: self.make(seed).compile(), lambda part: self._run(part, seed))
        return self._run(stream, seed)

    def _run(self, stream: Stream, seed: int) -> Played:
        made = self.make(seed)
        began = time.process_time()
        run = made.replay(stream.raw, stream.outcomes, **stream.delivery)
        seconds = time.process_time() - began
        # A mean is a sum of products and may round to just above 1.
        return Played(run.forecast, np.minimum(run.mean, 1.0), len(made.to_bytes()), seconds)

    def adversarial(self, rounds: int, seed: int) -> float:
        """Play the same game in a kernel, which is compiled for rules that are slow."""
        made, players = self.make(seed), (Noise(), Threshold())
        sizes: dict[str, Any] = {"buckets": made.buckets, "prior": made.prior}
        games = play_many(made.calibrator, *players, rounds=rounds, seeds=[seed], **sizes)
        return float(games.c2[0, 0])


@dataclass(frozen=True)
class Default(Recalibrated):
    """Experts first, calibrate last."""

    kind: ClassVar[str] = "default"

    def make(self, seed: int) -> Recalibrator:
        return Calibrant(seed=seed, **self.settings)

    def adversarial(self, rounds: int, seed: int) -> float:
        return Method.adversarial(self, rounds, seed)


class Ticketed:
    """A recalibrator whose outcomes come before the next forecast."""

    def __init__(self, recalibrator: Recalibrator) -> None:
        self._recalibrator = recalibrator

    def announce(self, raw: float) -> Announced:
        self._ticket = self._recalibrator.forecast(raw)
        return Announced(self._ticket.mean, self._ticket.value)

    def learn(self, raw: float, outcome: int) -> None:
        self._recalibrator.observe(self._ticket, outcome)

    def size(self) -> int:
        return len(self._recalibrator.to_bytes())


# -------------------------------------------------------------------------- transforms


@dataclass(frozen=True)
class Alone(Method):
    """A transform that is not followed by anything."""

    kind: ClassVar[str] = "transform"

    @property
    def transform(self) -> Transform:
        """The rule with its default parameters."""
        made: Transform = registry.transforms.get(self.name)()
        return made

    def start(self, seed: int) -> Learning:
        return Learning(self.transform.online())

    def play(self, stream: Stream, seed: int) -> Played:
        if stream.available is not None:
            return super().play(stream, seed)
        warm_up(stream, lambda: self.transform.kernel.machine, self._run)
        return self._run(stream)

    def _run(self, stream: Stream) -> Played:
        online = self.transform.online()
        began = time.process_time()
        forecasts = online.replay(stream.raw, stream.outcomes)
        seconds = time.process_time() - began
        return Played(forecasts, forecasts, len(online.to_bytes()), seconds)


class Learning:
    """A transform at work."""

    def __init__(self, online: Online) -> None:
        self._online = online

    def announce(self, raw: float) -> Announced:
        forecast = self._online.predict_one(raw)
        return Announced(forecast, forecast)

    def learn(self, raw: float, outcome: int) -> None:
        self._online.learn_one(raw, outcome)

    def size(self) -> int:
        return len(self._online.to_bytes())


def warm_up(stream: Stream, prepare: Callable[[], object], run: Callable[[Stream], Played]) -> None:
    """Let the compiler do its work beforehand, if it will have any.

    Batches of more than 20,000 rounds are compiled by themselves; a shorter one is where
    plain Python would take too long for somebody who waits.
    """
    if not available():
        return
    if len(stream) > SHORT:
        run(stream.first(SHORT + 1))
        return
    part = stream.first(PILOT)
    # On a stream of a few pilots plain Python is done before one could tell.
    if len(stream) > FEW * PILOT and run(part).seconds / PILOT * len(stream) > PATIENCE:
        prepare()
        run(part)
