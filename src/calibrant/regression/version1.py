"""States of numbers of the first version: counts in the settings, and a list of open tickets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import name_key
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.version1 import write_counts
from calibrant.regression.distribution import target_levels
from calibrant.regression.interval_method import interval_methods
from calibrant.regression.level_method import quantile_methods
from calibrant.regression.method import OWN, Method

SPARE: Final = 15
"""A word of the head that was never used."""
UNUSED: Final = {"saocp": [SPARE, *range(50, 64)]}
"""Words of a method's state that were never used, where there were more."""


def interval_migrated(document: Document) -> Document:
    """Return a document of conformal intervals of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    options = dict(s["own"])
    name, coverage, score = (options.pop(key) for key in ("method", "coverage", "score"))
    method = interval_methods.get(name)(coverage, **options)  # type: ignore[call-arg]
    row, fixed = method.layout.fresh.copy(), ~method.layout.stored[OWN:]
    state = np.delete(arrays["state"], UNUSED.get(name, [SPARE]))
    if len(state) != len(row) - OWN:
        raise ValueError(f"a state that is not of {name}")
    if (state[fixed] != row[OWN:][fixed]).any():
        raise ValueError(f"a state of {name} with other settings")
    row[OWN:] = state
    settings = {"method": name, "coverage": coverage, "score": score, "options": options}
    nothing = np.empty((len(_slots(arrays)), 0), np.int64)
    return _moved(document, settings, method, row, nothing)


def quantile_migrated(document: Document) -> Document:
    """Return a document of recalibrated quantiles of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    own = s["own"]
    levels = target_levels(np.ascontiguousarray(arrays["levels"]).view(np.float64))
    method = quantile_methods.get(own["method"])(levels, **own["options"])
    row = method.layout.fresh.copy()
    drawn = method.read_first(row, document, _slots(arrays))
    settings = {name: own[name] for name in ("method", "ties", "options")}
    return _moved(document, settings | {"levels": levels.tolist()}, method, row, drawn)


def _slots(arrays: dict[str, Words]) -> list[int]:
    """Return the slots of the tickets that were open."""
    return list(arrays["waiting"].reshape(-1, 4)[:, 2].tolist())


def _moved(
    document: Document, settings: dict[str, Any], method: Method, row: Words, drawn: Words
) -> Document:
    """Return the document of the second version with that row, and draws of its open tickets."""
    s, lines = document.settings, document.arrays["waiting"].reshape(-1, 4)
    write_counts(row, s)
    names = {int(number): name_key(name) for number, name in s["names"].items()}
    keys = np.array([names.get(n, n) for n in lines[:, 0].tolist()], np.int64)
    kept = document.arrays["kept"].reshape(len(lines), len(method.fields) - drawn.shape[1])
    tickets = np.hstack([keys[:, None], lines[:, :1], lines[:, 3:], kept, drawn])
    body = {"row": packed(row, method.layout), "tickets": tickets.reshape(-1)}
    return Document(document.kind, settings | {"max_open": s["max_open"]}, body, 2)
