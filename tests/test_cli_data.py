"""Real streams from the command line: are the claims of the summary and the report right?"""

from __future__ import annotations

import gzip
import html
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("jinja2", reason="needs the extra plot")
pytest.importorskip("matplotlib", reason="needs the extra plot")

from naive_summary import binned, brier

from calibrant.cli.app import run
from calibrant.datasets import path
from calibrant.datasets.loaders import rows_of
from calibrant.report import headline, view_of
from calibrant.summary import Summary

DOCS = Path(__file__).resolve().parent.parent / "docs"


def nba(to: Path) -> list[str]:
    """Games in the order in which they were played; the file has the newest first."""
    rows = [*rows_of("fivethirtyeight/nba_games.csv.gz")][::-1]
    lines = [f"{row['date']},{row['prob1']},{row['prob1_outcome']}" for row in rows]
    to.write_text("\n".join(["date,prob1,prob1_outcome", *lines]) + "\n")
    return ["--raw", "prob1", "--outcome", "prob1_outcome", "--time", "date"]


def frankfurt(to: Path) -> list[str]:
    """Probability of rain as the share of the ensemble with more than 0.2 mm."""
    rows = rows_of("weather_pop/frankfurt_ecmwf.csv.gz")
    members = ["CTR", *(f"P{i}" for i in range(1, 51))]
    lines = []
    for row in rows:
        wet = sum(float(row[name]) > 0.2 for name in members)
        lines.append(f"{wet / len(members)},{int(float(row['obs']) > 0.2)}")
    to.write_text("\n".join(["p,y", *lines]) + "\n")
    return []


def language_model(to: Path) -> list[str]:
    """What a language model says of its own answers; it does not always say."""
    packed = path("llm_mmlu_pro/gpt-4.1-nano.csv.gz")
    to.write_bytes(gzip.decompress(packed.read_bytes()))
    return ["--raw", "verbal_numerical_confidence", "--on-error", "skip"]


STREAMS = {"nba": nba, "frankfurt": frankfurt, "language_model": language_model}
# From the handbook's table of the data: rounds, Brier score and ECE of the raw forecasts.
KNOWN = {
    "nba": (8886, 0.215, 0.048),
    "frankfurt": (3617, 0.224, 0.247),
    "language_model": (None, None, 0.257),
}


@pytest.fixture(scope="module", params=sorted(STREAMS))
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Summary, list[dict[str, Any]], str]:
    place = tmp_path_factory.mktemp(request.param)
    source = place / "data.csv"
    words = STREAMS[request.param](source)
    files = [
        "--out",
        place / "o.jsonl",
        "--summary",
        place / "s.json",
        "--report",
        place / "r.html",
    ]
    assert run(["replay", str(source), *words, "--seed", "17", *map(str, files)]) == 0
    rows = [json.loads(line) for line in (place / "o.jsonl").read_text().splitlines()]
    summary = Summary.from_dict(json.loads((place / "s.json").read_text()))
    return request.param, summary, rows, (place / "r.html").read_text()


def columns(summary: Summary, rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    names = summary.settings["columns"]
    found = {"raw": names["raw"], "forecast": "forecast", "mean": "mean", "y": names["outcome"]}
    return {key: [row[name] for row in rows] for key, name in found.items()}


def test_the_raw_forecasts_are_as_bad_as_is_known(told: tuple[Any, ...]) -> None:
    name, summary, _, _ = told
    rounds, score, ece = KNOWN[name]
    assert rounds is None or summary["n_rounds"] == rounds
    assert score is None or summary["raw"]["brier"] == pytest.approx(score, abs=6e-4)
    assert summary["raw"]["ece"] == pytest.approx(ece, abs=6e-4)


def test_every_number_of_the_summary_follows_from_the_rows(told: tuple[Any, ...]) -> None:
    _, whole, rows, _ = told
    found = columns(whole, rows)
    summary = whole.summary
    assert summary["n_rounds"] == len(rows)
    assert summary["base_rate"] == pytest.approx(np.mean(found["y"]))
    for name in ("raw", "forecast", "mean"):
        assert summary[name]["brier"] == pytest.approx(brier(found[name], found["y"]))
        assert summary[name]["ece"] == pytest.approx(binned(found[name], found["y"], 1, 10))
    for name in ("raw", "mean"):
        error = binned(found[name], found["y"], 2)
        assert summary[name]["calibration_l2"] == pytest.approx(error)


def test_calibration_is_mended_and_accuracy_kept(told: tuple[Any, ...]) -> None:
    _, found, _, _ = told
    summary = found.summary
    assert summary["forecast"]["ece"] < 0.7 * summary["raw"]["ece"]
    assert summary["forecast"]["calibration_l2"] < summary["raw"]["calibration_l2"]
    assert summary["regret_brier"]["value"] < 0.005
    assert summary["certificate_holds"] is True


def test_rows_that_say_nothing_are_counted(told: tuple[Any, ...]) -> None:
    name, summary, _, _ = told
    assert (summary["n_skipped"] > 0) == (name == "language_model")
    assert name != "language_model" or (summary["n_skipped"] + summary["n_rounds"] == 12_032)


def test_the_headline_says_what_the_rows_say(told: tuple[Any, ...]) -> None:
    _, summary, rows, page = told
    found, head = columns(summary, rows), summary.headline
    assert head is not None

    def inside(name: str) -> list[int]:
        top = math.inf if head.high == 1.0 else head.high
        return [t for t, value in enumerate(found[name]) if head.low <= value < top]

    for name, said, meant, count in (
        ("raw", head.raw_said, head.raw_meant, head.raw_count),
        ("forecast", head.now_said, head.now_means, head.now_count),
    ):
        where = inside(name)
        assert count == len(where) > 0
        assert said == pytest.approx(np.mean([found[name][t] for t in where]))
        assert meant == pytest.approx(np.mean([found["y"][t] for t in where]))
    seen = html.unescape(page).replace("\xa0", " ")
    assert all(told in seen for told in view_of(summary).opening(summary))


def test_the_page_about_reports_quotes_the_headline(told: tuple[Any, ...]) -> None:
    _, summary, _, _ = told
    page = (DOCS / "how-to" / "report.md").read_text()
    assert headline(summary) in " ".join(page.split())


def test_the_report_gives_the_command_and_the_seed(told: tuple[Any, ...]) -> None:
    _, summary, _, page = told
    assert summary.settings["seed"] == 17
    assert "--seed 17" in summary.settings["command"]
    assert "--seed 17" in page
