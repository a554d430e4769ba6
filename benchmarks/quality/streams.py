"""The streams of the panel: raw forecasts and outcomes in the order in which they came.

Synthetic streams are made from seeds.  Real ones are read from a data directory that is not
part of the project; a source that is not there is reported as absent.
"""

from __future__ import annotations

import datetime
import functools
import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant.experiments import streams as confidences
from calibrant.experiments.streams import numbers
from calibrant.experiments.streams import read_table as table

__all__ = ["DATA", "SHORT", "Stream", "panel", "synthetic"]

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
SHORT = 500
"""Streams with fewer rounds are reported, and held against no bar."""
FROZEN = 1000
"""Rounds on which the frozen models of the drift data sets are fitted; the stream follows."""
Floats = NDArray[np.float64]
Rows = list[dict[str, str]]
Loader = Callable[[pathlib.Path], Iterator["Stream"]]


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


def panel(data: pathlib.Path = DATA) -> tuple[list[Stream], list[str]]:
    """Return all streams, and the names of the sources that are absent."""
    streams, absent = list(synthetic()), []
    for source, load in SOURCES.items():
        if (data / source).is_dir():
            streams.extend(load(data / source))
        else:
            absent.append(source)
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


def day(text: str) -> float:
    """Return a date, with or without a time, in days."""
    date, time = text[:10], text[11:19]
    whole = datetime.date.fromisoformat(date).toordinal()
    if not time:
        return float(whole)
    hours, minutes, seconds = (int(part) for part in time.split(":"))
    return whole + (hours + (minutes + seconds / 60.0) / 60.0) / 24.0


def plain(name: str, raw: Floats, outcomes: Floats, kind: str = "real") -> Stream:
    """Make a stream of the rows in which both columns are what they should be."""
    sound = (raw >= 0.0) & (raw <= 1.0) & ((outcomes == 0.0) | (outcomes == 1.0))
    return Stream(name, kind, raw[sound], bits(outcomes[sound] == 1.0))


def late(name: str, raw: Floats, outcomes: Floats, issued: Floats, available: Floats) -> Stream:
    """Make a delayed stream in the order of issue."""
    if not (available > issued).all():
        raise ValueError(f"{name}: an outcome is available before its forecast")
    order = np.lexsort((np.arange(len(raw)), issued))
    columns = (values[order] for values in (raw, outcomes, issued, available))
    raw, outcomes, issued, available = columns
    return Stream(name, "real", raw, bits(outcomes == 1.0), issued, available)


def fivethirtyeight(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the leagues, oldest game first, and the elections with their delays."""
    for league in ("nba", "nfl", "nhl", "wnba"):
        rows = table(folder / f"{league}_games.csv")[::-1]
        rows.sort(key=lambda row: row["date"])
        yield plain(f"538 {league}", numbers(rows, "prob1"), numbers(rows, "prob1_outcome"))
    for name in ("governors_elections.csv.gz", "president_election_night.csv"):
        yield election(f"538 {name.partition('_')[0]}", table(folder / name))


def election(name: str, rows: Rows) -> Stream:
    """Return a stream whose outcomes are known two days after the election began."""
    rows = [row for row in rows if row["probwin_outcome"] in {"0", "1"} and row["probwin"]]
    rows.sort(key=lambda row: (row["forecast_date"], row["state"], row["candidate"]))
    issued = np.array([day(row["forecast_date"]) for row in rows])
    available = np.array([day(row["election_date"]) + 2.0 for row in rows])
    return late(name, numbers(rows, "probwin"), numbers(rows, "probwin_outcome"), issued, available)


def weather(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the precipitation and icing forecasts."""
    rows = table(folder / "frankfurt_ecmwf.csv.gz")
    members = ["CTR", *(f"P{k}" for k in range(1, 51))]
    yield plain("weather Frankfurt", share_above(rows, members, 0.2), wet(rows, "obs", 0.2))
    rows = table(folder / "tampere_pop_2003.csv")
    for lead in ("24", "48"):
        dry = numbers(rows, f"p{lead}_cat0")
        yield plain(f"weather Tampere {lead} h", 1.0 - dry, wet(rows, "obs", 0.2))
    rows = table(folder / "niamey_2016.csv")
    for system in ("Logistic", "EMOS", "ENS", "EPC"):
        yield plain(f"weather Niamey {system}", numbers(rows, system), numbers(rows, "obs"))
    rows = table(folder / "aviation_icing.csv")
    yield plain("weather icing", numbers(rows, "frcst") / 100.0, numbers(rows, "obs"))
    rows = table(folder / "monsoon_ensemble.csv.gz")
    members = [name for name in rows[0] if name.startswith("ensemble.")]
    for lead in sorted({row["lead_time"] for row in rows}, key=int):
        led = [row for row in rows if row["lead_time"] == lead]
        led.sort(key=lambda row: int(row["effective_time"]))
        chance, rain = share_above(led, members, 1.0), wet(led, "observation", 1.0)
        yield plain(f"weather monsoon lead {lead}", chance, rain)


def share_above(rows: Rows, members: list[str], level: float) -> Floats:
    """Return the share of an ensemble above a level."""
    return np.mean([numbers(rows, member) > level for member in members], axis=0)


def wet(rows: Rows, column: str, level: float) -> Floats:
    """Return 1 where more than ``level`` fell, nan where it is not known."""
    fell = numbers(rows, column)
    return np.where(np.isnan(fell), np.nan, fell > level)


def flares(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield each forecaster of each class of flare."""
    for size in ("M1", "C1"):
        rows = sorted(table(folder / f"flares_{size}.csv"), key=lambda row: row["VALID_DATE"])
        for system in list(rows[0])[1:-1]:
            raw = numbers(rows, system)
            if not np.isnan(raw).all():
                yield plain(f"flares {size} {system}", raw, numbers(rows, f"rlz.{size}"))


def mmlu_pro(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the verbal and the token confidence of each model."""
    return (shared(stream, "real") for stream in confidences.mmlu_pro(folder.parent))


def multiple_choice(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield each model on each set of questions."""
    return (shared(stream, "real") for stream in confidences.multiple_choice(folder.parent))


def shared(stream: confidences.Stream, kind: str) -> Stream:
    """Return a stream that the paper's experiments read too."""
    return Stream(stream.name, kind, stream.raw, stream.outcomes)


def spf(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the recession probabilities; a quarter's outcome is known once it is over."""
    rows = table(folder / "spf_recession_probabilities.csv.gz")
    rows = [row for row in rows if row["gdp.first.recess"] in {"0", "1"} and row["Prob.Forecast"]]
    rows.sort(key=lambda row: (row["DATE.issued"], int(row["ID"]), int(row["FC.Horizon"])))
    issued = np.array([day(row["DATE.issued"]) for row in rows])
    available = np.array([day(row["DATE.FC.due"]) + 1.0 for row in rows])
    raw, outcomes = numbers(rows, "Prob.Forecast"), numbers(rows, "gdp.first.recess")
    yield late("SPF recessions", raw, outcomes, issued, available)


def forecastbench(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the crowd's forecasts as if resolved at once, and with their delays."""
    rows = table(folder / "forecastbench_markets.csv.gz")
    rows.sort(key=lambda row: (row["forecast_due_date"], row["source"], row["id"]))
    raw, outcomes = numbers(rows, "crowd_probability"), numbers(rows, "resolved_to")
    issued = np.array([day(row["forecast_due_date"]) for row in rows])
    available = np.array([day(row["resolution_date"]) + 1.0 for row in rows])
    yield plain("ForecastBench", raw, outcomes)
    yield late("ForecastBench, delayed", raw, outcomes, issued, available)


def drifting(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the three drift data sets under a logistic model that was fitted once."""
    for name, target, one, leave, by in (
        ("bank", "y", {"yes"}, {"ID"}, "age"),
        ("credit_default", "default payment next month", {"1"}, {"ID"}, "LIMIT_BAL"),
        ("fetal_health", "fetal_health", {"2.0", "3.0"}, set[str](), "accelerations"),
    ):
        rows = noisy_order(table(folder / f"{name}.csv.gz"), by)
        outcomes = np.array([float(row[target] in one) for row in rows])
        features = design(rows, [key for key in rows[0] if key not in leave | {target}])
        yield plain(f"drift data {name}", frozen_model(features, outcomes), outcomes[FROZEN:])


def noisy_order(rows: Rows, by: str, seed: int = 5) -> Rows:
    """Return the rows sorted by one feature with half of its spread as noise."""
    values = numbers(rows, by)
    noise = np.random.default_rng(seed).normal(0.0, 0.5 * values.std(), len(rows))
    return [rows[k] for k in np.argsort(values + noise, kind="stable")]


def design(rows: Rows, names: list[str]) -> Floats:
    """Return numeric columns as they are and one column for each value of the others."""
    columns: list[Floats] = []
    for name in names:
        values = numbers(rows, name)
        if not np.isnan(values).any():
            columns.append(values)
            continue
        words = np.array([row[name] for row in rows])
        columns.extend((words == word).astype(float) for word in np.unique(words)[1:])
    return np.stack(columns, axis=1)


def frozen_model(features: Floats, outcomes: Floats) -> Floats:
    """Fit on the first rows and forecast all that follow."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(features[:FROZEN], outcomes[:FROZEN])
    forecasts: Floats = model.predict_proba(features[FROZEN:])[:, 1]
    return forecasts


def free917(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the three question-answering models; not in the panel."""
    return (shared(stream, "held out") for stream in confidences.free917(folder.parent))


def recidivism(folder: pathlib.Path) -> Iterator[Stream]:
    """Yield the four forecasters in file order; not in the panel."""
    rows = table(folder / "recid.csv")
    for column in ("logitpredprobs", "gbmpredprobs", "mturkpredprobs", "compaspredprobs.linear"):
        name = "recidivism " + re.sub("predprobs.*", "", column)
        yield plain(name, numbers(rows, column), numbers(rows, "two_year_recid"), "held out")


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
