"""The command line on files with columns of context."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra cli")
pytest.importorskip("pyarrow", reason="needs the extra cli")

import pyarrow
import pyarrow.parquet

from calibrant import Calibrant
from calibrant.cli.app import run
from calibrant.kinds.binary.view import code
from calibrant.summary import read_summary

ROWS = 120


def ran(*words: Any) -> int:
    return run([str(word) for word in words])


@pytest.fixture
def columns() -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    plans = [("gold", "silver", None)[k] for k in rng.integers(0, 3, ROWS)]
    return {
        "p": rng.random(ROWS).round(4).tolist(),
        "y": rng.integers(0, 2, ROWS).tolist(),
        "age": [
            None if k % 17 == 0 else float(x) for k, x in enumerate(rng.integers(20, 60, ROWS))
        ],
        "plan": plans,
    }


@pytest.fixture
def people(columns: dict[str, list[Any]], tmp_path: Path) -> Path:
    return written(columns, tmp_path / "people.csv")


def written(columns: dict[str, list[Any]], path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def means(path: Path) -> list[float]:
    with path.open() as file:
        return [float(row["mean"]) for row in csv.DictReader(file)]


def expected(columns: dict[str, list[Any]]) -> list[float]:
    told = {name: columns[name] for name in ("age", "plan")}
    run = Calibrant(seed=5, context=True).replay(columns["p"], columns["y"], context=told)
    return run.mean.tolist()


def test_rows_are_forecast_with_their_context(
    people: Path, columns: dict[str, list[Any]], tmp_path: Path
) -> None:
    out, summary = tmp_path / "o.csv", tmp_path / "s.json"
    words = "replay", people, "--context", "age,plan", "--seed", 5
    assert ran(*words, "--out", out, "--summary", summary) == 0
    assert means(out) == expected(columns)
    told = read_summary(json.loads(summary.read_text()))
    assert "context=True" in code(told)
    assert "--context age,plan" in told.settings["command"]


def test_columns_of_numbers_with_gaps_are_read_alike(
    columns: dict[str, list[Any]], tmp_path: Path
) -> None:
    table, out = tmp_path / "people.parquet", tmp_path / "o.csv"
    gaps = columns | {"age": [np.nan if x is None else x for x in columns["age"]]}
    pyarrow.parquet.write_table(pyarrow.table(gaps), table)
    assert ran("replay", table, "--context", "age,plan", "--seed", 5, "--out", out) == 0
    assert means(out) == expected(columns)


def test_a_state_goes_on_with_its_columns_of_context(
    columns: dict[str, list[Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, out = tmp_path / "state", tmp_path / "o.csv"
    for k, part in enumerate((slice(0, 50), slice(50, ROWS))):
        half = {name: column[part] for name, column in columns.items()}
        file = written(half, tmp_path / f"{k}.csv")
        more = ("--context", "age,plan", "--seed", 5) if k == 0 else ()
        assert ran("replay", file, *more, "--state", state, "--out", out, "--force") == 0
    assert means(out) == expected(columns)[50:]
    capsys.readouterr()
    assert ran("replay", file, "--again", "--state", state, "--context", "age") != 0
    told = "context must be as in the state, ('age', 'plan'), got ('age',)"
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_filter_tells_context_row_by_row(
    people: Path, columns: dict[str, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = "replay", people, "--context", "age,plan", "--seed", 5, "--flush", "--out", "-"
    assert ran(*words) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [float(row["mean"]) for row in rows] == expected(columns)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--method", "foster_hart"), "only the method calibrant has an expert that reads it"),
        (("--group", "plan"), "context must be left out: groups have a method of their own"),
        (("--by", "plan"), "--by cannot be combined with --context"),
        (("--normal", "p,age"), "context must be left out: it is for probabilities"),
        (("--proba", "p,age"), "context must be left out: it is for one stream of probabilities"),
    ],
)
def test_context_goes_with_the_default_alone(
    people: Path, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran("replay", people, "--context", "age", *words) != 0
    assert told in " ".join(capsys.readouterr().err.split())
