"""States of the first version: counts among the settings, and one head for all rules' blocks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.kernels.layout import (
    EXCESS,
    FALLBACKS,
    ISSUED,
    LONGEST_LAG,
    MIXED_INFINITE,
    MIXED_LOSS,
    MOST_OUTSTANDING,
    RAW_INFINITE,
    RAW_LOSS,
    RESERVED,
    ROUNDS,
    SECRET,
    SETTLED,
)
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.spec import Spec, made_rule
from calibrant.transforms import from_description

HEAD: Final = {
    "POSITION": 0,
    "CLOCK": 1,
    "LEARNED": 3,
    "FRESH": 4,
    "TOTAL": 5,
    "REGRET": 10,
    "PULL": 11,
    "WAITED": 12,
    "TRUST": 13,
    "STEP": 14,
    "NEXT": 15,
}
"""Where the words of a block's head stood that are part of a state."""
FIRST: Final = 20
"""Words of a block before its cells."""
TAIL: Final = 4
"""Words after them."""


def migrated(document: Document) -> Document:
    """Return a recalibrator's document of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    transform = from_description(s["front"]) if "front" in s else None
    safe = s.get("raw_safe")
    spec = Spec(
        made_rule(s["method"], s["parameters"]),
        s["buckets"],
        s["prior"],
        s["loss"],
        transform,
        None if safe is None else float.fromhex(safe),
    )
    row = spec.layout.fresh.copy()
    _write_own(row, s, spec)
    touched = arrays["touched"]
    blocks = spec.layout.blocks_of(row)
    if len(touched) and (np.diff(touched, prepend=-1) <= 0).any():
        raise ValueError("buckets that are not in order")
    moved_blocks(blocks, touched, arrays["blocks"], spec.rule)
    if transform is not None:
        row[spec.layout.transform :] = arrays["front"]
    tickets = moved_tickets(arrays["tickets"], transform is not None, spec.kept)
    settings = spec.settings | {"max_open": s["max_open"]}
    state = {"row": packed(row, spec.layout), "tickets": tickets}
    return Document(document.kind, settings, state, 2)


def _write_own(row: Words, s: dict[str, Any], spec: Spec) -> None:
    reals = row.view(np.float64)
    row[SECRET : SECRET + 2] = np.frombuffer(bytes.fromhex(s["secret"]), "<i8")
    row[[ISSUED, ROUNDS, LONGEST_LAG]] = s["issued"], s["learned"], s["lag"]
    row[MOST_OUTSTANDING], row[RAW_INFINITE] = s["crowd"], s["endless"]
    reals[RAW_LOSS] = float.fromhex(s["charged"])
    if spec.transform is not None:
        reals[MIXED_LOSS], row[MIXED_INFINITE] = float.fromhex(s["passed"]), s["boundless"]
    if spec.raw_safe is not None:
        reals[EXCESS] = float.fromhex(s["excess"])
        row[[RESERVED, SETTLED, FALLBACKS]] = s["safe"]


def moved_blocks(blocks: Words, touched: Words, words: Words, rule: Any) -> None:
    """Write old blocks, of the buckets that were touched, where new ones stand."""
    kernels, cells = rule.kernels, rule.lattice.cells
    end = FIRST + len(kernels.cell) * cells
    old = words.reshape(len(touched), end + TAIL)
    for place, field in enumerate(kernels.head.fields):
        if field.name in HEAD:
            blocks[touched, place] = old[:, HEAD[field.name]]
    blocks[touched, len(kernels.head) :] = old[:, FIRST:end]


def moved_tickets(words: Words, mixes: bool, kept: int) -> Words:
    """Return old open tickets as new ones, whose clocks are not known."""
    old = words.reshape(-1, 6 + mixes + kept)
    clocks = np.full((len(old), 1), -1)
    mixed = old[:, 6:7] if mixes else old[:, 4:5]
    return np.hstack([old[:, :6], clocks, mixed, old[:, 6 + mixes :]]).reshape(-1)
