"""Streams of confidences with what came of them, read from the data directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from calibrant.core.arrays import Bits, Reals
from calibrant.experiments.files import numbers, read_table, require

CONFIDENCES: Final = {
    "verbal": "verbal_numerical_confidence",
    "token": "logit_perplexity_confidence",
}
MODELS: Final = ("dense", "lex", "lex_oof")
END: Final = "_confidence"
SUFFIX: Final = ".csv.gz"


@dataclass(frozen=True, eq=False)
class Stream:
    """Raw forecasts and outcomes in the order in which they came."""

    name: str
    raw: Reals
    outcomes: Bits

    def __len__(self) -> int:
        return len(self.raw)


def sound(name: str, raw: Reals, outcomes: Reals) -> Stream:
    """Return a stream of the rows in which both columns are what they should be.

    >>> sound("three", np.array([0.5, np.nan, 0.9]), np.array([1.0, 0.0, -1.0])).raw.tolist()
    [0.5]
    """
    kept = (raw >= 0.0) & (raw <= 1.0) & ((outcomes == 0.0) | (outcomes == 1.0))
    return Stream(name, raw[kept], (outcomes[kept] == 1.0).astype(np.uint8))


def free917(data: Path) -> Iterator[Stream]:
    """Yield the shipped forecasts of three rankers over the 917 questions."""
    needed = [f"{model}_{column}" for model in MODELS for column in ("p", "correct")]
    rows = read_table(require(data, "free917/free917_forecasts.csv"), *needed)
    for model in MODELS:
        right = numbers(rows, f"{model}_correct")
        yield sound(f"free917 {model}", numbers(rows, f"{model}_p"), right)


def mmlu_pro(data: Path) -> Iterator[Stream]:
    """Yield what six models said of their answers, and how likely their words were."""
    for path in sorted(require(data, "llm_mmlu_pro").glob(f"*{SUFFIX}")):
        rows = read_table(path, "correct", *CONFIDENCES.values())
        for told, column in CONFIDENCES.items():
            raw = numbers(rows, column)
            if not np.isnan(raw).all():
                name = f"mmlu pro {path.name.removesuffix(SUFFIX)} {told}"
                yield sound(name, raw, numbers(rows, "correct"))


def multiple_choice(data: Path) -> Iterator[Stream]:
    """Yield the largest probability of each of five models on five sets of questions."""
    for path in sorted(require(data, "llm_multiple_choice").glob(f"*{SUFFIX}")):
        rows = read_table(path)
        for column in (name for name in rows[0] if name.endswith(END)):
            model = column.removesuffix(END)
            name = f"{path.name.removesuffix(SUFFIX)} {model}"
            yield sound(name, numbers(rows, column), numbers(rows, f"{model}_correct"))
