"""States of the first version: whole recalibrators inside, and tickets beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.classes.roster import layout_of_cells, packed_rows
from calibrant.classes.vectors import grid_size
from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import name_key
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS
from calibrant.recalibrate.binary import spec_of
from calibrant.recalibrate.body import packed, unpacked
from calibrant.recalibrate.secret import secret_of
from calibrant.recalibrate.version1 import migrated


def migrated_reduction(document: Document) -> Document:
    """Return the document of a recalibrator that is made of binary ones as one of version 2."""
    s, own = document.settings, dict(document.settings["own"])
    kind, classes = own.pop("engine"), s["classes"]
    first = classes if own.get("conditional") else 0
    inner = {
        int(name.removeprefix("engine ")): _nested(words, kind)
        for name, words in document.arrays.items()
        if name.startswith("engine ")
    }
    template = _nested(document.arrays["template"], kind)
    if any(part.settings != template.settings for part in inner.values()):
        raise ValueError("recalibrators inside that differ in their settings")
    row = inner[first].arrays["row"] if first in inner else _fresh(template, s["secret"], first)
    _check_counts(row, template, s)
    bodies = [(number, inner[number].arrays["row"]) for number in sorted(inner) if number != first]
    arrays = _stored(s, row, packed_rows(bodies))
    numbers = [*range(classes)] if "renormalise" in own else None
    arrays["tickets"] = _parts(document, inner, first, own, numbers)
    settings = template.settings | own | {"classes": classes, "max_open": s["max_open"]}
    return Document(document.kind, settings, arrays, 2)


def _nested(words: Words, kind: str) -> Document:
    """Return the document that words hold: the number of its bytes, and these."""
    data = words[1:].astype("<i8").tobytes()[: int(words[0])]
    return migrated(Document.from_bytes(data, kind))


def _fresh(template: Document, secret: str, number: int) -> Words:
    """Return the row of a number before its first round."""
    spec, _ = spec_of(template.shape, template.settings)
    row = spec.layout.fresh.copy()
    seed = int.from_bytes(bytes.fromhex(secret), "little", signed=True)
    spec.seat(row, secret_of(seed, number))
    return packed(row, spec.layout)


def _check_counts(row: Words, template: Document, s: dict[str, Any]) -> None:
    spec, _ = spec_of(template.shape, template.settings)
    counts = unpacked(row, spec.layout)[[ISSUED, ROUNDS, LONGEST_LAG]].tolist()
    if counts != [s["issued"], s["learned"], s["lag"]]:
        raise ValueError(f"counts {counts} of which others were told outside")


def _stored(s: dict[str, Any], row: Words, rows: dict[str, Words]) -> dict[str, Words]:
    secret = np.frombuffer(bytes.fromhex(s["secret"]), "<i8").astype(np.int64)
    return {"row": row, "secret": secret} | rows


def _parts(
    document: Document,
    inner: dict[int, Document],
    first: int,
    own: dict[str, Any],
    everyone: list[int] | None,
) -> Words:
    """Return open tickets, each with the words of its parts."""
    found = {number: _lines(part) for number, part in inner.items()}
    lines = []
    for number, top, slot, time in document.arrays["waiting"].reshape(-1, 4).tolist():
        head = [_key(number, document.settings["names"]), number, time]
        if everyone is not None:
            used = [(k, slot) for k in everyone]
        elif own["conditional"]:
            used, head = [(first, number), (top, slot)], [*head, top]
        else:
            used, head = [(first, slot)], [*head, top]
        if any(n not in found.get(k, {}) for k, n in used):
            raise ValueError("tickets that nothing inside waits for")
        lines.append([*head, *(word for k, n in used for word in found[k][n])])
    return np.array(sorted(lines, key=lambda line: line[1]), np.int64).reshape(-1)


def _lines(part: Document) -> dict[int, list[int]]:
    """Return the words of open tickets inside, by number, without key and time."""
    spec, _ = spec_of(part.shape, part.settings)
    table = part.arrays["tickets"].reshape(-1, 8 + spec.kept)
    return {line[1]: [*line[1:5], *line[6:]] for line in table.tolist()}


def _key(number: int, names: dict[str, str]) -> int:
    name = names.get(str(number))
    return number if name is None else name_key(name)


def migrated_simplex(document: Document) -> Document:
    """Return the document of a recalibrator on a grid over the simplex as one of version 2."""
    s, own, arrays = document.settings, document.settings["own"], document.arrays
    layout = layout_of_cells(grid_size(s["classes"], own["resolution"]), s["classes"])
    row = layout.fresh.copy()
    row[[ISSUED, ROUNDS, LONGEST_LAG, MOST_OUTSTANDING]] = (
        s["issued"],
        s["learned"],
        s["lag"],
        s["lag"],
    )
    cells = {}
    for cell, clock in arrays["cells"].reshape(-1, 2).tolist():
        cells[cell] = layout.fresh.copy()
        cells[cell][ISSUED] = clock
    for cell, point, outcome, count in arrays["counts"].reshape(-1, 4).tolist():
        if min(point, outcome) < 0:
            raise ValueError("counts at negative places")
        layout.blocks_of(cells[cell])[point, outcome] = count
        cells[cell][ROUNDS] += count
    rows = [(cell, packed(words, layout)) for cell, words in sorted(cells.items())]
    told = _stored(s, packed(row, layout), packed_rows(rows))
    told["tickets"] = _draws(arrays["waiting"], s["names"])
    settings = own | {"classes": s["classes"], "max_open": s["max_open"]}
    return Document(document.kind, settings, told, 2)


def _draws(waiting: Words, names: dict[str, str]) -> Words:
    """Return open tickets with cell and grid point, whose clocks are not known."""
    lines = [
        [_key(number, names), number, time, cell, index, -1]
        for number, cell, index, time in waiting.reshape(-1, 4).tolist()
    ]
    return np.array(sorted(lines, key=lambda line: line[1]), np.int64).reshape(-1)
