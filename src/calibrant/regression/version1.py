"""States of numbers of the first version: counts in the settings, and a list of open tickets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import name_key
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS, SECRET
from calibrant.recalibrate.body import packed
from calibrant.regression.registry import interval_methods, quantile_methods
from calibrant.regression.seat import OWN
from calibrant.regression.tables import target_levels

SPARE: Final = 15
"""A word of the head that was never used."""
UNUSED: Final = {"saocp": [SPARE, *range(50, 64)]}
"""Words of a method's state that were never used, where there were more."""


def interval_migrated(document: Document) -> Document:
    """Return a document of conformal intervals of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    options = dict(s["own"])
    name, coverage, score = (options.pop(key) for key in ("method", "coverage", "score"))
    layout = interval_methods.get(name)(coverage, **options).layout  # type: ignore[call-arg]
    row = layout.fresh.copy()
    write_own(row, s)
    state = np.delete(arrays["state"], UNUSED.get(name, [SPARE]))
    fixed = ~layout.stored[OWN:]
    if len(state) != len(row) - OWN:
        raise ValueError(f"a state that is not of {name}")
    if (state[fixed] != row[OWN:][fixed]).any():
        raise ValueError(f"a state of {name} with other settings")
    row[OWN:] = state
    settings = {"method": name, "coverage": coverage, "score": score, "options": options}
    heads, times, _ = waiting(s, arrays)
    tickets = np.hstack([heads, times, arrays["kept"].reshape(len(heads), 3)])
    body = {"row": packed(row, layout), "tickets": tickets.reshape(-1)}
    return Document(document.kind, settings | {"max_open": s["max_open"]}, body, 2)


def quantile_migrated(document: Document) -> Document:
    """Return a document of recalibrated quantiles of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    own = s["own"]
    levels = target_levels(np.ascontiguousarray(arrays["levels"]).view(np.float64))
    method = quantile_methods.get(own["method"])(levels, **own["options"])
    row = method.layout.fresh.copy()
    write_own(row, s)
    heads, times, slots = waiting(s, arrays)
    drawn = method.read_first(row, s, arrays, slots)
    kept = arrays["kept"].reshape(len(heads), 2 * method.width)
    tickets = np.hstack([heads, times, kept, drawn])
    settings = {"method": own["method"], "levels": levels.tolist(), "ties": own["ties"]}
    settings |= {"options": own["options"], "max_open": s["max_open"]}
    body = {"row": packed(row, method.layout), "tickets": tickets.reshape(-1)}
    return Document(document.kind, settings, body, 2)


def write_own(row: Words, s: dict[str, Any]) -> None:
    """Write the counts that stood in the settings into a row."""
    row[SECRET : SECRET + 2] = np.frombuffer(bytes.fromhex(s["secret"]), "<i8")
    row[[ISSUED, ROUNDS, LONGEST_LAG]] = s["issued"], s["learned"], s["lag"]
    row[MOST_OUTSTANDING] = s["crowd"]


def waiting(s: dict[str, Any], arrays: dict[str, Words]) -> tuple[Words, Words, list[int]]:
    """Return keys with numbers, times, and slots of the tickets that were open."""
    lines = arrays["waiting"].reshape(-1, 4)
    numbers = lines[:, 0]
    names = {int(number): name_key(name) for number, name in s["names"].items()}
    keys = np.array([names.get(n, n) for n in numbers.tolist()], np.int64)
    return np.stack([keys, numbers], axis=1), lines[:, 3:], lines[:, 2].tolist()
