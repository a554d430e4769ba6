"""What the body of a stored state says of groups: names as text, recent rounds as words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words


def text_words(data: Any) -> Words:
    """Return JSON-ready data as words.

    >>> text_of(text_words(["a", ["month", 3]]))
    ['a', ['month', 3]]
    """
    text = json.dumps(data).encode()
    return np.frombuffer(text.ljust(-(-len(text) // 8) * 8), "<i8").astype(np.int64)


def text_of(words: Words) -> Any:
    """Return the data of which :func:`text_words` made words."""
    return json.loads(words.astype("<i8").tobytes())


def recent_words(recent: Iterable[tuple[float, int]]) -> Words:
    """Return draws and outcomes as words, two a round."""
    rounds = list(recent)
    words = np.empty((len(rounds), 2), np.int64)
    words.view(np.float64)[:, 0] = [value for value, _ in rounds]
    words[:, 1] = [outcome for _, outcome in rounds]
    return words.reshape(-1)


def recent_of(words: Words) -> list[tuple[float, int]]:
    """Return the draws and outcomes of which :func:`recent_words` made words."""
    rounds = np.ascontiguousarray(words.reshape(-1, 2))
    values, outcomes = rounds.view(np.float64)[:, 0].tolist(), rounds[:, 1].tolist()
    return [
        (check.probability(value), check.outcome(outcome))
        for value, outcome in zip(values, outcomes, strict=True)
    ]
