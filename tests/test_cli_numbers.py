"""The command line on forecasts of numbers: quantiles, and normal distributions."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")
pytest.importorskip("jinja2", reason="needs the extra plot")
pytest.importorskip("matplotlib", reason="needs the extra plot")

from calibrant.cli import ExitCode
from calibrant.cli.app import run
from calibrant.kinds.numbers import NumberSummary
from calibrant.kinds.numbers.view import code, drawings, promise
from calibrant.regression import Distributions, QuantileRecalibrator
from calibrant.report import headline, render
from calibrant.summary import read_summary

ROWS = 300
QUANTILES = "q10,q50,q90"


@pytest.fixture
def rain(tmp_path: Path) -> Path:
    generator = np.random.default_rng(8)
    mean = generator.normal(size=ROWS)
    outcomes = mean + 0.2 + generator.normal(size=ROWS)
    path = tmp_path / "rain.csv"
    rows = [
        f"{t},{m - 0.6:.4f},{m:.4f},{m + 0.6:.4f},{m:.4f},0.5,{y:.4f}"
        for t, (m, y) in enumerate(zip(mean, outcomes, strict=True))
    ]
    path.write_text("\n".join(["t,q10,q50,q90,mu,sd,y", *rows]) + "\n")
    return path


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


def summarised(path: Path) -> NumberSummary:
    found = read_summary(json.loads(path.read_text()))
    assert isinstance(found, NumberSummary)
    return found


def test_one_command_writes_rows_summary_report_pictures_and_state(
    rain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, summary, report = (tmp_path / name for name in ("o.csv", "s.json", "r.html"))
    plots, stored = tmp_path / "plots", tmp_path / "state"
    words = ("replay", rain, "--quantiles", QUANTILES, "--seed", 5, "--state", stored)
    assert ran(*words, "--out", out, "--summary", summary, "--report", report, "--plots", plots,
               "--prefix", "new_") == 0  # fmt: skip
    captured = capsys.readouterr()
    assert captured.err == "calibrant: outcomes from column 'y'\n"
    assert "300 rounds, mixed, seed 5" in captured.out
    assert re.search(r"^level +raw covered +covered +raw pinball +pinball +C2 +bound$",
                     captured.out, re.MULTILINE)  # fmt: skip
    assert "\nproven for each level: the bounds above\n" in captured.out
    found = summarised(summary)
    last = captured.out.rpartition("\n\n")[2]
    assert " ".join(last.split()) == headline(found)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    names = ["new_forecast_0.1", "new_forecast_0.5", "new_forecast_0.9", "new_ticket"]
    assert list(rows[0])[-4:] == names
    given = np.array([[float(row[name]) for name in QUANTILES.split(",")] for row in rows])
    rec = QuantileRecalibrator("mixed", [0.1, 0.5, 0.9], seed=5)
    raw = Distributions.from_quantiles([0.1, 0.5, 0.9], given)
    made = rec.replay(raw, [float(row["y"]) for row in rows])
    assert [[float(row[name]) for name in names[:3]] for row in rows] == made.quantiles.tolist()
    assert len(list(plots.iterdir())) == 6
    page = report.read_text()
    for told in ("What quantiles meant", "Where outcomes fell", "Coverage over time",
                 "<caption>Level by level</caption>", "The guarantee was kept at every level.",
                 "QuantileRecalibrator(&#39;mixed&#39;, levels=[0.1, 0.5, 0.9]"):  # fmt: skip
        assert told in page
    assert ran(*words[:2], "--state", stored, "--again") == 0
    assert "600 rounds, mixed" in capsys.readouterr().out
    assert ran(*words[:2], "--state", stored, "--normal", "mu,sd") == ExitCode.STATE


def test_the_command_and_the_code_of_a_summary_make_it_again(
    rain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("--quantiles", QUANTILES, "--resolution", 20, "--prior", 3, "--seed", 1),
        ("--normal", "mu,sd", "--method", "tracker", "--levels", "0.2,0.8", "--seed", 2),
    ):
        summary, again = tmp_path / "s.json", tmp_path / "again.json"
        assert ran("replay", rain, *words, "--summary", summary, "--force") == 0
        told = summarised(summary)
        command = shlex.split(told.settings["command"])
        assert command[:2] == ["calibrant", "replay"]
        assert ran(*command[1:], "--summary", again, "--force") == 0
        first, second = json.loads(summary.read_text()), json.loads(again.read_text())
        del first["timing"], second["timing"]
        assert first == second
        made = eval(code(told), {"QuantileRecalibrator": QuantileRecalibrator})
        rows = list(csv.DictReader(rain.read_text().splitlines()))
        columns = {name: [float(row[name]) for row in rows] for name in rows[0]}
        raw = (
            Distributions.normal(columns["mu"], columns["sd"])
            if "--normal" in words
            else Distributions.from_quantiles(
                [0.1, 0.5, 0.9], np.column_stack([columns[n] for n in QUANTILES.split(",")])
            )
        )
        made.replay(raw, columns["y"])
        found = [row["measured"] for row in told.summary["levels"]]
        assert found == [row.measured for row in made.certificate().levels]


def test_json_has_the_numbers_of_the_summary(
    rain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rain.write_text(rain.read_text() + "300,1,0,2,1,1,3\n301,1,2,3,1,1,\n")
    assert ran("replay", rain, "--quantiles", QUANTILES, "--seed", 5, "--json", "--on-error",
               "skip", "--outcome", "y") == 0  # fmt: skip
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["n_rounds"], told["n_skipped"]) == ("numbers", ROWS, 1)
    assert told["n_unresolved"] == 1
    assert [row["level"] for row in told["levels"]] == [0.1, 0.5, 0.9]
    assert told["forecast"]["crps"] < told["raw"]["crps"]
    assert "detail" not in told
    assert ran("replay", rain, "--quantiles", QUANTILES, "--on-error", "skip") == 0
    shown = capsys.readouterr().out
    assert "bad rows passed over: 1" in shown
    assert "rows without an outcome: 1" in shown


def test_a_filter_answers_line_by_line(rain: Path, tmp_path: Path) -> None:
    whole, lines = tmp_path / "whole.csv", tmp_path / "lines.csv"
    words = ("replay", rain, "--normal", "mu,sd", "--levels", "0.5", "--seed", 5)
    assert ran(*words, "--out", whole) == 0
    assert ran(*words, "--out", lines, "--batch-rows", 1) == 0
    assert whole.read_bytes() == lines.read_bytes()


def test_reports_compare_numbers_with_numbers_only(
    rain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, binary = (tmp_path / name for name in ("1.json", "2.json", "b.json"))
    assert ran("replay", rain, "--quantiles", QUANTILES, "--seed", 5, "--summary", one) == 0
    assert ran("replay", rain, "--normal", "mu,sd", "--method", "tracker", "--seed", 5,
               "--summary", two) == 0  # fmt: skip
    games = tmp_path / "games.csv"
    games.write_text("p,y\n0.5,1\n0.4,0\n")
    assert ran("replay", games, "--seed", 5, "--summary", binary) == 0
    page = tmp_path / "page.html"
    capsys.readouterr()
    assert ran("report", one, two, "--out", page) == 0
    assert f"{one}: Your 80 % interval held" in capsys.readouterr().out
    text = page.read_text()
    assert '<th scope="col" class="n">CRPS before</th>' in text
    assert '<th scope="col" class="n">coverage error before</th>' in text
    assert "every sequence of outcomes whatsoever" in text
    assert ran("report", one, binary, "--out", tmp_path / "x.html") == ExitCode.USAGE
    assert "summaries must be all of probabilities or all of numbers, got both" in (
        capsys.readouterr().err
    )
    assert "x.html" not in os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--quantiles", QUANTILES, "--raw", "mu"], "--raw and --quantiles exclude each other"),
        (["--quantiles", QUANTILES, "--normal", "mu,sd"],
         "--quantiles and --normal exclude each other"),
        (["--normal", "mu,sd", "--proba", "a,b"], "--proba and --normal exclude each other"),
        (["--normal", "mu,sd", "--logit"], "scale must be left out: it is for probabilities, and"),
        (["--normal", "mu,sd", "--percent"], "scale must be left out"),
        (["--normal", "mu,sd", "--score"], "scale must be left out"),
        (["--normal", "mu,sd", "--group", "t"], "group must be left out: it is for probabilities"),
        (["--normal", "mu,sd", "--buckets", "3"], "buckets must be left out"),
        (["--normal", "mu,sd", "--raw-safe", "0.1"], "raw_safe must be left out"),
        (["--normal", "mu,sd", "--method", "blackwell"], "method must be one of 'mixed', 'pit'"),
        (["--normal", "mu"], "--normal must name two columns, of means and of standard deviations"),
        (["--normal", "mu,sd", "--levels", "a"], "--levels must be numbers, got 'a'"),
        (["--normal", "mu,sd", "--levels", ","], "--levels needs at least one number"),
        (["--normal", "mu,sd", "--levels", "0.9,0.1"], "levels[1] must be above the one before"),
        (["--normal", "mu,sd", "--levels", "0,1"], "levels[0] must be between 0 and 1, got 0.0"),
        (["--quantiles", "mu,sd"], "the name of each column of quantiles must end in its level"),
        (["--levels", "0.5"], "levels must be left out: levels are of quantiles or normal"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told_in_one_line(
    rain: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert ran("replay", rain, *words) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert told in lines[0]


def test_awkward_runs_have_a_report(
    rain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, summary = tmp_path / "few.csv", tmp_path / "s.json"
    source.write_text("q10,q50,y\n1,2,\n")
    words = ("replay", source, "--quantiles", "q10,q50", "--summary", summary, "--force")
    assert ran(*words, "--seed", 5) == 0
    empty = summarised(summary)
    assert headline(empty) == "No outcome is known yet, so nothing can be said."
    assert "How to reproduce it" in render([empty])
    source.write_text("q10,q50,y\n1,2,1.5\nx,1,1\n1,2,\n")
    assert ran(*words, "--on-error", "skip", "--method", "tracker") == 0
    one = summarised(summary)
    page = render([dataclasses.replace(one, summary={**one.summary, "seed": None})])
    assert "1 round · 2 levels · 1 rows skipped · 1 without an outcome yet" in page
    assert "tracker, no seed" in page
    assert drawings(one)["coverage_over_time"] is not None
    verdicts = {
        kept: promise(dataclasses.replace(one, summary={"certificate_holds": kept}))
        for kept in (True, False, None)
    }
    assert verdicts[True] == "The guarantee was kept at every level."
    assert verdicts[False].startswith("A bound was exceeded in this run.")
    assert verdicts[None] == "Nothing is promised here that could be checked."
    assert ran("replay", rain, "--normal", "mu,sd", "--levels", "0.25", "--summary", summary,
               "--force") == 0  # fmt: skip
    assert re.fullmatch(r"Your 0\.25 quantile was above [\d.]+ % of outcomes; now it is above "
                        r"[\d.]+ %\. CRPS [\d.]+ → [\d.]+ \(lower is better\)\. The guarantee was "
                        r"kept at every level\.", headline(summarised(summary)))  # fmt: skip
