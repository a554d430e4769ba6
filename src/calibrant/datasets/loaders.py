"""One function for each kind of real stream: forecasts and outcomes in the order they came."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals
from calibrant.datasets.shelf import SOURCES, path
from calibrant.errors import needed

Rows: TypeAlias = list[dict[str, str]]
Names: TypeAlias = NDArray[np.str_]

LEAGUES: Final = ("nba", "nfl", "nhl", "wnba")
OFFICES: Final = {"governors": "governors_elections", "president": "president_election_night"}
CONFIDENCES: Final = {
    "verbal": "verbal_numerical_confidence",
    "token": "logit_perplexity_confidence",
}
QUESTIONS: Final = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande")
RANKERS: Final = ("dense", "lex", "lex_oof")
FORECASTERS: Final = {
    "logit": "logitpredprobs",
    "gbm": "gbmpredprobs",
    "mturk": "mturkpredprobs",
    "compas": "compaspredprobs.linear",
}
RAIN: Final = ("frankfurt", "tampere", "niamey", "monsoon")
NETWORKS: Final = {
    "lenet": "lenet-5-cifar-10",
    "wide_resnet": "wideresnet-16-4-cifar-10",
    "resnet50": "cifar10_resnet50_logits",
    "wide_resnet_100": "wideresnet-16-4-cifar-100_f16",
}
FROZEN: Final = 1_000
"""Rows on which the models of the drifting tables are fitted; the stream follows."""
DRIFTING: Final = {
    "bank": ("y", {"yes"}, "age"),
    "credit_default": ("default payment next month", {"1"}, "LIMIT_BAL"),
    "fetal_health": ("fetal_health", {"2.0", "3.0"}, "accelerations"),
}
"""Tables that drift: column of the outcome, values that count as 1, feature to sort by."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real stream.

    Attributes
    ----------
    name
        What the stream is called.
    raw
        Raw forecasts, one a round; with several classes one row a round.
    outcomes
        What happened: 0 or 1, or the number of a class.
    licence, origin
        What to name when the figures are passed on.
    time, available
        Days on which forecasts were made and outcomes became known; None where every outcome
        is known before the next forecast.
    groups
        Names of the groups of each round, by kind of group.
    """

    name: str
    raw: Reals
    outcomes: Bits
    licence: str = ""
    origin: str = ""
    time: Reals | None = None
    available: Reals | None = None
    groups: Mapping[str, Names] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        kinds = f", groups {', '.join(self.groups)}" if self.groups else ""
        late = ", outcomes come late" if self.time is not None else ""
        return f"<Dataset {self.name}: {len(self):,} rounds{kinds}{late}, {self.licence}>"


# Reading.


def rows_of(name: str, data: str | Path | None = None) -> Rows:
    """Return the rows of a table of the list, as texts."""
    place = path(name, data)
    body = place.read_bytes()
    text = (gzip.decompress(body) if place.suffix == ".gz" else body).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def numbers(rows: Rows, column: str) -> Reals:
    """Return a column; what is not a number is nan.

    >>> numbers([{"p": "0.5"}, {"p": "NA"}], "p").tolist()
    [0.5, nan]
    """
    return np.array([_number(row[column]) for row in rows], dtype=np.float64)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def day(text: str) -> float:
    """Return a date, with or without a time, in days.

    >>> day("2016-11-08 16:00:00 -0500") - day("2016-11-08")
    0.6666666666...
    """
    whole = datetime.date.fromisoformat(text[:10]).toordinal()
    if not (time := text[11:19]):
        return float(whole)
    hours, minutes, seconds = (int(part) for part in time.split(":"))
    return whole + (hours + (minutes + seconds / 60.0) / 60.0) / 24.0


def sound(name: str, folder: str, raw: Reals, outcomes: Reals, **groups: Names) -> Dataset:
    """Return a stream of the rows in which both columns are what they should be."""
    kept = (raw >= 0.0) & (raw <= 1.0) & ((outcomes == 0.0) | (outcomes == 1.0))
    members = {kind: names[kept] for kind, names in groups.items()}
    bits = (outcomes[kept] == 1.0).astype(np.uint8)
    return _told(name, folder, raw[kept], bits, groups=members)


def late(name: str, folder: str, raw: Reals, outcomes: Reals, *days: Reals) -> Dataset:
    """Return a stream in the order of issue, with the days of forecasts and of outcomes."""
    issued, known = days
    order = np.lexsort((np.arange(len(raw)), issued))
    bits = (outcomes[order] == 1.0).astype(np.uint8)
    return _told(name, folder, raw[order], bits, time=issued[order], available=known[order])


def _told(name: str, folder: str, raw: Any, outcomes: Any, **more: Any) -> Dataset:
    source = SOURCES[folder]
    return Dataset(name, raw, outcomes, source.licence, source.origin, **more)


def _texts(rows: Rows, column: str) -> Names:
    return np.array([row[column] for row in rows])


# The streams.


def load_games(league: str = "nba", *, data: str | Path | None = None) -> Dataset:
    """Return FiveThirtyEight's forecasts that the first team wins, oldest game first.

    >>> load_games("wnba")
    <Dataset 538 wnba: 450 rounds, groups season, CC BY 4.0>
    """
    check.choice(league, "league", tuple(LEAGUES))
    rows = rows_of(f"fivethirtyeight/{league}_games.csv.gz", data)[::-1]
    rows.sort(key=lambda row: row["date"])
    raw, outcomes = numbers(rows, "prob1"), numbers(rows, "prob1_outcome")
    name = f"538 {league}"
    return sound(name, "fivethirtyeight", raw, outcomes, season=_texts(rows, "season"))


def load_elections(office: str = "governors", *, data: str | Path | None = None) -> Dataset:
    """Return FiveThirtyEight's forecasts of elections, known two days after the election began.

    >>> load_elections("president")
    <Dataset 538 president: 5,011 rounds, outcomes come late, CC BY 4.0>
    """
    check.choice(office, "office", tuple(OFFICES))
    rows = rows_of(f"fivethirtyeight/{OFFICES[office]}.csv.gz", data)
    rows = [row for row in rows if row["probwin_outcome"] in {"0", "1"} and row["probwin"]]
    rows.sort(key=lambda row: (row["forecast_date"], row["state"], row["candidate"]))
    issued = np.array([day(row["forecast_date"]) for row in rows])
    known = np.array([day(row["election_date"]) + 2.0 for row in rows])
    raw, outcomes = numbers(rows, "probwin"), numbers(rows, "probwin_outcome")
    return late(f"538 {office}", "fivethirtyeight", raw, outcomes, issued, known)


def load_rain(
    place: str = "frankfurt", *, system: str | None = None, data: str | Path | None = None
) -> Dataset:
    """Return probabilities of rain; only a clone has them, under the GPL.

    Parameters
    ----------
    place
        ``"frankfurt"``, ``"tampere"``, ``"niamey"`` or ``"monsoon"``.
    system
        For Tampere the lead in hours, ``"24"`` or ``"48"``; for Niamey ``"Logistic"``, ``"EMOS"``,
        ``"ENS"`` or ``"EPC"``; for the monsoon the lead in days, ``"1"`` to ``"10"``.  By default
        the first.
    data
        Directory to look in, instead of the places of :func:`path`.

    Examples
    --------
    >>> load_rain()
    <Dataset weather Frankfurt: 3,617 rounds, GPL-2 or newer (Niamey: GPL-3)>
    """
    check.choice(place, "place", tuple(RAIN))
    name, raw, outcomes = _RAIN[place](system, data)
    return sound(f"weather {name}", "weather_pop", raw, outcomes)


_Rain: TypeAlias = tuple[str, Reals, Reals]


def _frankfurt(system: str | None, data: str | Path | None) -> _Rain:
    members, fell = load_ensemble("frankfurt", data=data)
    return "Frankfurt", (members > 0.2).mean(axis=1), _wet(fell, 0.2)


def _tampere(system: str | None, data: str | Path | None) -> _Rain:
    lead = check.choice(system or "24", "system", ("24", "48"))
    rows = rows_of("weather_pop/tampere_pop_2003.csv.gz", data)
    dry = numbers(rows, f"p{lead}_cat0")
    return f"Tampere {lead} h", 1.0 - dry, _wet(numbers(rows, "obs"), 0.2)


def _niamey(system: str | None, data: str | Path | None) -> _Rain:
    name = check.choice(system or "Logistic", "system", ("Logistic", "EMOS", "ENS", "EPC"))
    rows = rows_of("weather_pop/niamey_2016.csv.gz", data)
    return f"Niamey {name}", numbers(rows, name), numbers(rows, "obs")


def _monsoon(system: str | None, data: str | Path | None) -> _Rain:
    lead = int(system or "1")
    members, fell = load_ensemble("monsoon", lead=lead, data=data)
    return f"monsoon lead {lead}", (members > 1.0).mean(axis=1), _wet(fell, 1.0)


_RAIN: Final = {
    "frankfurt": _frankfurt,
    "tampere": _tampere,
    "niamey": _niamey,
    "monsoon": _monsoon,
}


def _wet(fell: Reals, level: float) -> Reals:
    """Return 1 where more than ``level`` fell, nan where it is not known."""
    return np.where(np.isnan(fell), np.nan, fell > level)


def load_icing(*, data: str | Path | None = None) -> Dataset:
    """Return probabilities of icing for aviation; only a clone has them, under the GPL.

    >>> load_icing()
    <Dataset weather icing: 1,242 rounds, GPL-2 or newer (Niamey: GPL-3)>
    """
    rows = rows_of("weather_pop/aviation_icing.csv.gz", data)
    raw, outcomes = numbers(rows, "frcst") / 100.0, numbers(rows, "obs")
    return sound("weather icing", "weather_pop", raw, outcomes)


def load_ensemble(
    place: str = "frankfurt", *, lead: int = 1, data: str | Path | None = None
) -> tuple[Reals, Reals]:
    """Return members of an ensemble, one row a day, and millimetres of rain that fell.

    >>> members, fell = load_ensemble("monsoon", lead=10)
    >>> members.shape, fell.shape
    ((517, 51), (517,))
    """
    check.choice(place, "place", ("frankfurt", "monsoon"))
    if place == "frankfurt":
        rows, column = rows_of("weather_pop/frankfurt_ecmwf.csv.gz", data), "obs"
        names = ["CTR", *(f"P{k}" for k in range(1, 51))]
    else:
        check.whole(lead, "lead", low=1, high=10)
        rows, column = rows_of("weather_pop/monsoon_ensemble.csv.gz", data), "observation"
        rows = [row for row in rows if row["lead_time"] == str(lead)]
        rows.sort(key=lambda row: int(row["effective_time"]))
        names = [name for name in rows[0] if name.startswith("ensemble.")]
    members = np.stack([numbers(rows, name) for name in names], axis=1)
    return members, numbers(rows, column)


def load_flares(
    size: str = "M1", forecaster: str = "NOAA", *, data: str | Path | None = None
) -> Dataset:
    """Return forecasts that a solar flare of a size, ``"M1"`` (rare) or ``"C1"``, will be seen.

    >>> load_flares()
    <Dataset flares M1 NOAA: 731 rounds, CC0>
    """
    check.choice(size, "size", ("M1", "C1"))
    rows = rows_of(f"solar_flares/flares_{size}.csv.gz", data)
    rows.sort(key=lambda row: row["VALID_DATE"])
    check.choice(forecaster, "forecaster", tuple(rows[0])[1:-1])
    raw, outcomes = numbers(rows, forecaster), numbers(rows, f"rlz.{size}")
    return sound(f"flares {size} {forecaster}", "solar_flares", raw, outcomes)


def load_language_model(
    model: str = "gpt-4.1-nano", confidence: str = "verbal", *, data: str | Path | None = None
) -> Dataset:
    """Return how sure a language model was of its answers to MMLU-Pro, and whether it was right.

    Parameters
    ----------
    model
        Such as ``"gpt-4.1-nano"``; :func:`language_models` lists them.
    confidence
        ``"verbal"``, what the model said, or ``"token"``, how likely its words were.
    data
        Directory to look in, instead of the places of :func:`path`.

    Examples
    --------
    >>> load_language_model()
    <Dataset mmlu pro gpt-4.1-nano verbal: 11,900 rounds, groups subject, MIT>
    """
    check.choice(model, "model", tuple(language_models(data=data)))
    check.choice(confidence, "confidence", tuple(CONFIDENCES))
    rows = rows_of(f"llm_mmlu_pro/{model}.csv.gz", data)
    raw, outcomes = numbers(rows, CONFIDENCES[confidence]), numbers(rows, "correct")
    name, subject = f"mmlu pro {model} {confidence}", _texts(rows, "category")
    return sound(name, "llm_mmlu_pro", raw, outcomes, subject=subject)


def language_models(*, data: str | Path | None = None) -> list[str]:
    """Return the models of :func:`load_language_model`.

    >>> language_models()[-2:]
    ['gpt-4.1-nano', 'gpt-4o-mini-2024-07-18']
    """
    found = path("llm_mmlu_pro", data).glob("*.csv.gz")
    return sorted(each.name.removesuffix(".csv.gz") for each in found)


def load_multiple_choice(
    questions: str = "arc", model: str = "Llama-7b", *, data: str | Path | None = None
) -> Dataset:
    """Return the largest probability of a language model's answers, and whether it was right.

    >>> load_multiple_choice("truthfulqa", "Mistral")
    <Dataset truthfulqa Mistral: 817 rounds, MIT>
    """
    check.choice(questions, "questions", tuple(QUESTIONS))
    rows = rows_of(f"llm_multiple_choice/{questions}.csv.gz", data)
    ending = "_confidence"
    models = [name.removesuffix(ending) for name in rows[0] if name.endswith(ending)]
    check.choice(model, "model", tuple(models))
    raw, right = numbers(rows, f"{model}{ending}"), numbers(rows, f"{model}_correct")
    return sound(f"{questions} {model}", "llm_multiple_choice", raw, right)


def load_questions(ranker: str = "lex", *, data: str | Path | None = None) -> Dataset:
    """Return how sure a ranker was of its answers to the 917 questions of the paper.

    >>> load_questions()
    <Dataset free917 lex: 917 rounds, groups part, BSD-3-Clause>
    """
    check.choice(ranker, "ranker", tuple(RANKERS))
    rows = rows_of("free917/free917_forecasts.csv.gz", data)
    raw, right = numbers(rows, f"{ranker}_p"), numbers(rows, f"{ranker}_correct")
    return sound(f"free917 {ranker}", "free917", raw, right, part=_texts(rows, "split"))


def load_recessions(*, data: str | Path | None = None) -> Dataset:
    """Return economists' probabilities of recession, known when the quarter is over.

    >>> load_recessions()
    <Dataset SPF recessions: 38,239 rounds, outcomes come late, public; compiled under GPL-3>
    """
    rows = rows_of("spf_recession/spf_recession_probabilities.csv.gz", data)
    rows = [row for row in rows if row["gdp.first.recess"] in {"0", "1"} and row["Prob.Forecast"]]
    rows.sort(key=lambda row: (row["DATE.issued"], int(row["ID"]), int(row["FC.Horizon"])))
    issued = np.array([day(row["DATE.issued"]) for row in rows])
    known = np.array([day(row["DATE.FC.due"]) + 1.0 for row in rows])
    raw, outcomes = numbers(rows, "Prob.Forecast"), numbers(rows, "gdp.first.recess")
    return late("SPF recessions", "spf_recession", raw, outcomes, issued, known)


def load_markets(*, delayed: bool = False, data: str | Path | None = None) -> Dataset:
    """Return prices of prediction markets, as if resolved at once or with their delays.

    >>> load_markets()
    <Dataset ForecastBench: 2,015 rounds, groups market, CC BY-SA 4.0>
    """
    rows = rows_of("forecastbench/forecastbench_markets.csv.gz", data)
    rows.sort(key=lambda row: (row["forecast_due_date"], row["source"], row["id"]))
    raw, outcomes = numbers(rows, "crowd_probability"), numbers(rows, "resolved_to")
    if not delayed:
        market = _texts(rows, "source")
        return sound("ForecastBench", "forecastbench", raw, outcomes, market=market)
    issued = np.array([day(row["forecast_due_date"]) for row in rows])
    known = np.array([day(row["resolution_date"]) + 1.0 for row in rows])
    return late("ForecastBench, delayed", "forecastbench", raw, outcomes, issued, known)


def load_recidivism(forecaster: str = "mturk", *, data: str | Path | None = None) -> Dataset:
    """Return forecasts that a defendant offends again within two years, with groups.

    A sensitive subject: the figures show what groups hide, and decide about nobody.

    >>> load_recidivism("compas")
    <Dataset recidivism compas: 1,000 rounds, groups race, sex, CC0>
    """
    check.choice(forecaster, "forecaster", tuple(FORECASTERS))
    rows = rows_of("recidivism/recid.csv.gz", data)
    raw, outcomes = numbers(rows, FORECASTERS[forecaster]), numbers(rows, "two_year_recid")
    groups = {kind: _texts(rows, kind) for kind in ("race", "sex")}
    return sound(f"recidivism {forecaster}", "recidivism", raw, outcomes, **groups)


def load_images(network: str = "lenet", *, data: str | Path | None = None) -> Dataset:
    """Return probabilities of an image classifier, one row an image, and the true classes.

    >>> load_images().raw.shape
    (10000, 10)
    """
    check.choice(network, "network", tuple(NETWORKS))
    with np.load(path(f"image_logits/{NETWORKS[network]}.npz", data)) as found:
        if "test_logits" in found:
            logits, outcomes = found["test_logits"].astype(float), found["test_labels"]
            raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        else:
            raised, outcomes = found["predictions"].astype(float), found["ground_truth"]
    raw = raised / raised.sum(axis=1, keepdims=True)
    return _told(f"images {network}", "image_logits", raw, outcomes)


def load_drifting_table(
    table: str = "bank", *, data: str | Path | None = None
) -> tuple[Reals, Bits]:
    """Return features and outcomes of a table, sorted by one feature and some noise.

    Parameters
    ----------
    table
        ``"bank"``, ``"credit_default"`` or ``"fetal_health"``.
    data
        Directory to look in, instead of the places of :func:`path`.

    Examples
    --------
    >>> features, outcomes = load_drifting_table("fetal_health")
    >>> features.shape, outcomes.mean().round(3)
    ((2126, 21), np.float64(0.222))
    """
    target, ones, by = DRIFTING[check.choice(table, "table", tuple(DRIFTING))]
    rows = rows_of(f"drift_streams/{table}.csv.gz", data)
    values = numbers(rows, by)
    noise = np.random.default_rng(5).normal(0.0, 0.5 * values.std(), len(rows))
    rows = [rows[k] for k in np.argsort(values + noise, kind="stable")]
    outcomes = np.array([row[target] in ones for row in rows], np.uint8)
    return _design(rows, [name for name in rows[0] if name not in {"ID", target}]), outcomes


def _design(rows: Rows, names: list[str]) -> Reals:
    """Return numeric columns as they are and one column for each value of the others."""
    columns: list[Reals] = []
    for name in names:
        values = numbers(rows, name)
        if not np.isnan(values).any():
            columns.append(values)
            continue
        words = np.array([row[name] for row in rows])
        columns.extend((words == word).astype(float) for word in np.unique(words)[1:])
    return np.stack(columns, axis=1)


def load_drift(table: str = "bank", *, data: str | Path | None = None) -> Dataset:
    """Return forecasts of a logistic model that was fitted on the first thousand rows of a table.

    Needs scikit-learn.

    >>> load_drift("fetal_health")
    <Dataset drift data fetal_health: 1,126 rounds, CC BY 4.0>
    """
    told = "the model of a drifting table needs scikit-learn"
    linear = needed("sklearn.linear_model", told, "sklearn")
    pipeline = needed("sklearn.pipeline", told, "sklearn")
    scaler = needed("sklearn.preprocessing", told, "sklearn")
    features, outcomes = load_drifting_table(table, data=data)
    model = pipeline.make_pipeline(
        scaler.StandardScaler(), linear.LogisticRegression(max_iter=1000)
    )
    model.fit(features[:FROZEN], outcomes[:FROZEN])
    raw: Reals = model.predict_proba(features[FROZEN:])[:, 1]
    return _told(f"drift data {table}", "drift_streams", raw, outcomes[FROZEN:])
