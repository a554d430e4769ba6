"""States of the first version: counts among the settings, and one head for all rules' blocks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.kernels import layout as word
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.secret import OLD
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
    s = document.settings
    transform = from_description(s["front"]) if "front" in s else None
    safe = s.get("raw_safe")
    spec = Spec(
        made_rule(s["method"], s["parameters"]),
        s["buckets"],
        s["prior"],
        s["loss"],
        transform,
        None if safe is None else float.fromhex(safe),
        OLD,
    )
    return moved(document, spec)


def moved(document: Document, spec: Spec) -> Document:
    """Return the document of a stream of that spec as one of the second version."""
    s, arrays, mixes = document.settings, document.arrays, spec.transform is not None
    row = spec.layout.fresh.copy()
    write_own(row, s, spec)
    touched = arrays["touched"]
    blocks = spec.layout.blocks_of(row)
    if len(touched) and (np.diff(touched, prepend=-1) <= 0).any():
        raise ValueError("buckets that are not in order")
    moved_blocks(blocks, touched, arrays["blocks"], spec.rule)
    if mixes:
        row[spec.layout.transform :] = arrays["front"]
    tickets = moved_tickets(arrays["tickets"], mixes, spec.kept)
    settings = spec.settings | {"max_open": s["max_open"]}
    state = {"row": packed(row, spec.layout), "tickets": tickets}
    return Document(document.kind, settings, state, 2)


def write_own(row: Words, s: dict[str, Any], spec: Spec) -> None:
    """Write the secret, counts and losses that stood in the settings into a row."""
    reals = row.view(np.float64)
    write_counts(row, s)
    reals[word.RAW_LOSS], row[word.RAW_INFINITE] = float.fromhex(s["charged"]), s["endless"]
    if spec.transform is not None:
        reals[word.MIXED_LOSS], row[word.MIXED_INFINITE] = (
            float.fromhex(s["passed"]),
            s["boundless"],
        )
    if spec.raw_safe is not None:
        reals[word.EXCESS] = float.fromhex(s["excess"])
        row[[word.RESERVED, word.SETTLED, word.FALLBACKS]] = s["safe"]


def write_counts(row: Words, s: dict[str, Any]) -> None:
    """Write the secret and the counts that stood in the settings into a row."""
    row[word.SECRET : word.SECRET + 2] = np.frombuffer(bytes.fromhex(s["secret"]), "<i8")
    row[[word.ISSUED, word.ROUNDS, word.LONGEST_LAG]] = s["issued"], s["learned"], s["lag"]
    row[word.MOST_OUTSTANDING] = s["crowd"]


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
