"""The streams of the panel: raw forecasts and outcomes in the order in which they came.

Synthetic streams are made from seeds.  Real ones come from ``calibrant.datasets``, or from a
directory of the originals; a source that is not there is reported as absent.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant.datasets import Dataset, loaders, path
from calibrant.errors import MissingData
from calibrant.experiments import streams as confidences

__all__ = ["DATA", "SHORT", "Stream", "panel", "synthetic"]

DATA: pathlib.Path | None = None
"""What came along with the package, unless a directory is named."""
SHORT = 500
"""Streams with fewer rounds are reported, and held against no bar."""
Floats = NDArray[np.float64]
Data = pathlib.Path | None
Loader = Callable[[Data], Iterator["Stream"]]


@dataclass(frozen=True)
class Stream:
    """A stream of the panel.

    Attributes
    ----------
    name, kind
        ``kind`` is ``"synthetic"``, ``"real"`` or ``"held out"``.
    raw, outcomes
        Round by round.
    issued, available
        Days on which forecasts were made and outcomes became known; empty where every
        outcome is known before the next forecast.
    """

    name: str
    kind: str
    raw: Floats
    outcomes: NDArray[np.uint8]
    issued: Floats = field(default_factory=lambda: np.empty(0))
    available: Floats = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def delayed(self) -> bool:
        """Whether outcomes come late."""
        return len(self.issued) > 0

    @functools.cached_property
    def arrivals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rounds in the order in which their outcomes come, and how many precede each round."""
        rounds = np.arange(len(self), dtype=np.int64)
        if not self.delayed:
            return rounds, rounds
        order = np.lexsort((rounds, self.available)).astype(np.int64)
        known = np.searchsorted(self.available[order], self.issued, side="right")
        return order, known.astype(np.int64)


def panel(data: Data = DATA) -> tuple[list[Stream], list[str]]:
    """Return all streams, and the names of the sources that are absent."""
    streams, absent = list(synthetic()), []
    for source, load in SOURCES.items():
        try:
            path(source, data)
        except MissingData:
            absent.append(source)
        else:
            streams.extend(load(data))
    return streams, absent


def synthetic() -> Iterator[Stream]:
    """Yield the streams that are made here."""
    yield drift()
    yield wiggle()
    yield informed(1_000)
    yield informed(10_000)


def drift(rounds: int = 100_000, seed: int = 7) -> Stream:
    """Make four quarters of Platt distortions: tempered, shifted, sliding, inverted."""
    rng = np.random.default_rng(seed)
    raw = np.clip(rng.beta(0.7, 0.7, rounds), 0.001, 0.999)
    slope, shift = (np.empty(rounds) for _ in range(2))
    quarters = np.array_split(np.arange(rounds), 4)
    slide = np.linspace(0.0, 1.0, len(quarters[2]))
    for where, a, b in zip(
        quarters, (0.5, 0.5, 0.5 + 0.5 * slide, -0.7), (0.0, -1.5, -1.5 + 2.5 * slide, 0.0),
        strict=True,
    ):  # fmt: skip
        slope[where], shift[where] = a, b
    chance = 1.0 / (1.0 + np.exp(-(slope * np.log(raw / (1.0 - raw)) + shift)))
    return Stream("drift", "synthetic", raw, bits(rng.random(rounds) < chance))


def wiggle(rounds: int = 100_000, seed: int = 11) -> Stream:
    """Make a wave over the raw forecasts whose phase moves in the third quarter."""
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    phase = np.concatenate(
        [np.linspace(a, b, len(part)) for a, b, part in
         zip((0, 0, 0, 0.5), (0, 0, 0.5, 0.5), np.array_split(raw, 4), strict=True)]
    )  # fmt: skip
    chance = 0.5 + 0.4 * np.sin(2.0 * np.pi * (1.5 * raw + phase))
    return Stream("wiggle", "synthetic", raw, bits(rng.random(rounds) < chance))


def informed(rounds: int, seed: int = 3) -> Stream:
    """Make the paper's first experiment: 0.3 before outcome 0, 0.7 before outcome 1."""
    outcomes = bits(np.random.default_rng(seed).random(rounds) < 0.5)
    return Stream(f"paper, informed {rounds}", "synthetic", 0.3 + 0.4 * outcomes, outcomes)


def bits(truth: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return outcomes 0 and 1."""
    return truth.astype(np.uint8)


def made(found: Dataset, kind: str = "real") -> Stream:
    """Return a stream of the panel."""
    if found.time is None or found.available is None:
        return Stream(found.name, kind, found.raw, found.outcomes)
    if not (found.available > found.time).all():
        raise ValueError(f"{found.name}: an outcome is available before its forecast")
    return Stream(found.name, kind, found.raw, found.outcomes, found.time, found.available)


def fivethirtyeight(data: Data) -> Iterator[Stream]:
    """Yield the leagues, oldest game first, and the elections with their delays."""
    for league in loaders.LEAGUES:
        yield made(loaders.load_games(league, data=data))
    for office in loaders.OFFICES:
        yield made(loaders.load_elections(office, data=data))


def weather(data: Data) -> Iterator[Stream]:
    """Yield the precipitation and icing forecasts."""
    rain = loaders.load_rain
    yield made(rain("frankfurt", data=data))
    yield from (made(rain("tampere", system=lead, data=data)) for lead in ("24", "48"))
    for system in ("Logistic", "EMOS", "ENS", "EPC"):
        yield made(rain("niamey", system=system, data=data))
    yield made(loaders.load_icing(data=data))
    yield from (made(rain("monsoon", system=str(lead), data=data)) for lead in range(1, 11))


def flares(data: Data) -> Iterator[Stream]:
    """Yield each forecaster of each class of flare."""
    for size in ("M1", "C1"):
        names = list(loaders.rows_of(f"solar_flares/flares_{size}.csv.gz", data)[0])[1:-1]
        found = (loaders.load_flares(size, name, data=data) for name in names)
        yield from (made(each) for each in found if len(each))


def mmlu_pro(data: Data) -> Iterator[Stream]:
    """Yield the verbal and the token confidence of each model."""
    return (shared(stream, "real") for stream in confidences.mmlu_pro(data))


def multiple_choice(data: Data) -> Iterator[Stream]:
    """Yield each model on each set of questions."""
    return (shared(stream, "real") for stream in confidences.multiple_choice(data))


def shared(stream: confidences.Stream, kind: str) -> Stream:
    """Return a stream that the paper's experiments read too."""
    return Stream(stream.name, kind, stream.raw, stream.outcomes)


def spf(data: Data) -> Iterator[Stream]:
    """Yield the recession probabilities; a quarter's outcome is known once it is over."""
    yield made(loaders.load_recessions(data=data))


def forecastbench(data: Data) -> Iterator[Stream]:
    """Yield the crowd's forecasts as if resolved at once, and with their delays."""
    yield made(loaders.load_markets(data=data))
    yield made(loaders.load_markets(delayed=True, data=data))


def drifting(data: Data) -> Iterator[Stream]:
    """Yield the three drift data sets under a logistic model that was fitted once."""
    return (made(loaders.load_drift(name, data=data)) for name in loaders.DRIFTING)


def free917(data: Data) -> Iterator[Stream]:
    """Yield the three question-answering models; not in the panel."""
    return (shared(stream, "held out") for stream in confidences.free917(data))


def recidivism(data: Data) -> Iterator[Stream]:
    """Yield the four forecasters in file order; not in the panel."""
    for name in loaders.FORECASTERS:
        yield made(loaders.load_recidivism(name, data=data), "held out")


SOURCES: dict[str, Loader] = {
    "fivethirtyeight": fivethirtyeight,
    "weather_pop": weather,
    "solar_flares": flares,
    "llm_mmlu_pro": mmlu_pro,
    "llm_multiple_choice": multiple_choice,
    "spf_recession": spf,
    "forecastbench": forecastbench,
    "drift_streams": drifting,
    "free917": free917,
    "recidivism": recidivism,
}
