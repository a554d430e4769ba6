"""Data that do not come with the package: where they are, and what is said if they are not."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from calibrant.core.arrays import Reals
from calibrant.stream.failure import Unreadable

Rows: TypeAlias = list[dict[str, str]]

SOURCES: Final = {
    "free917": "questions from github.com/percyliang/sempre (freebase/data), the schema from "
    "github.com/sivareddyg/graph-parser (data/freebase/schema)",
    "llm_mmlu_pro": "github.com/Linwei94/LLM-Calibration-Study (results)",
    "llm_multiple_choice": "github.com/bplaut/llm-calibration-and-correctness-prediction "
    "(main_results)",
}
"""Where each directory of data comes from."""


def require(data: Path, name: str) -> Path:
    """Return the path of a file below the data directory, or say where to get it.

    Examples
    --------
    >>> require(Path("nowhere"), "free917/free917_forecasts.csv")
    Traceback (most recent call last):
    calibrant.stream.failure.Unreadable: nowhere/free917/free917_forecasts.csv: not there; set
    --data to the directory that holds free917 (questions from github.com/percyliang/sempre
    (freebase/data), the schema from github.com/sivareddyg/graph-parser (data/freebase/schema))
    """
    path, folder = data / name, name.partition("/")[0]
    if not path.exists():
        told = f"set --data to the directory that holds {folder} ({SOURCES[folder]})"
        raise Unreadable(f"{path}: not there; {told}")
    return path


def read_text(path: Path) -> str:
    """Return a text file, packed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as lines:
            return str(lines.read())
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: cannot be read: {error}") from error


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise Unreadable(f"{path}: not JSON: {error}") from error


def read_table(path: Path, *needed: str) -> Rows:
    """Return the rows of a comma-separated file, packed or not, that has these columns."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    rows = list(reader)
    for name in needed:
        if name not in (reader.fieldnames or ()):
            raise Unreadable(f"{path}: no column {name!r}")
    return rows


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
