"""States of the first version: whole recalibrators inside, and tickets beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.classes.roster import layout_of_cells, packed_rows
from calibrant.classes.vectors import class_count, grid_size
from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import name_key
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS
from calibrant.recalibrate.binary import spec_of
from calibrant.recalibrate.body import packed, unpacked
from calibrant.recalibrate.secret import part_of
from calibrant.recalibrate.spec import Spec
from calibrant.recalibrate.version1 import migrated

Lines = list[list[int]]


def migrated_reduction(document: Document) -> Document:
    """Return the document of a recalibrator that is made of binary ones as one of version 2."""
    s, own = document.settings, dict(document.settings["own"])
    kind, first = own.pop("engine"), s["classes"] if own.get("conditional") else 0
    inner = {
        int(name.removeprefix("engine ")): _nested(words, kind)
        for name, words in document.arrays.items()
        if name.startswith("engine ")
    }
    template = _nested(document.arrays["template"], kind)
    if any(part.settings != template.settings for part in inner.values()):
        raise ValueError("recalibrators inside that differ in their settings")
    spec, _ = spec_of(template.shape, template.settings)
    rows = {number: part.arrays["row"] for number, part in sorted(inner.items())}
    row = rows.pop(first) if first in rows else _fresh(spec, s["secret"], first)
    counts = unpacked(row, spec.layout)[[ISSUED, ROUNDS, LONGEST_LAG]].tolist()
    if counts != [s["issued"], s["learned"], s["lag"]]:
        raise ValueError(f"counts {counts} of which others were told outside")
    found = {
        (k, line[1]): [*line[1:5], *line[6:]]
        for k, part in inner.items()
        for line in part.arrays["tickets"].reshape(-1, 8 + spec.kept).tolist()
    }
    return _document(document, template.settings | own, row, rows, _parts(document, found, first))


def _nested(words: Words, kind: str) -> Document:
    """Return the document that words hold: the number of its bytes, and these."""
    data = words[1:].astype("<i8").tobytes()[: int(words[0])]
    return migrated(Document.from_bytes(data, kind))


def _fresh(spec: Spec, secret: str, number: int) -> Words:
    """Return the row of a number before its first round."""
    row = spec.layout.fresh.copy()
    spec.seat(row, part_of(bytes.fromhex(secret), number))
    return packed(row, spec.layout)


def _parts(document: Document, found: dict[tuple[int, int], list[int]], first: int) -> Lines:
    """Return open tickets, each with the words of its parts, which are found by row and number."""
    lines, own = [], document.settings["own"]
    classes = class_count(document.settings["classes"])
    for number, top, slot, time in document.arrays["waiting"].reshape(-1, 4).tolist():
        used, head = [(first, slot)], [number, time, top]
        if "renormalise" in own:
            used, head = [(k, slot) for k in range(classes)], [number, time]
        elif own["conditional"]:
            used = [(first, number), (top, slot)]
        if any(part not in found for part in used):
            raise ValueError("tickets that nothing inside waits for")
        lines.append(head + [word for part in used for word in found[part]])
    return lines


def migrated_simplex(document: Document) -> Document:
    """Return the document of a recalibrator on a grid over the simplex as one of version 2."""
    s, own, arrays = document.settings, document.settings["own"], document.arrays
    layout = layout_of_cells(grid_size(s["classes"], own["resolution"]), s["classes"])
    row = layout.fresh.copy()
    row[[ISSUED, ROUNDS]] = s["issued"], s["learned"]
    row[[LONGEST_LAG, MOST_OUTSTANDING]] = s["lag"]
    cells = {}
    for cell, clock in arrays["cells"].reshape(-1, 2).tolist():
        cells[cell] = layout.fresh.copy()
        cells[cell][ISSUED] = clock
    for cell, point, outcome, count in arrays["counts"].reshape(-1, 4).tolist():
        if min(point, outcome) < 0:
            raise ValueError("counts at negative places")
        layout.blocks_of(cells[cell])[point, outcome] = count
        cells[cell][ROUNDS] += count
    rows = {cell: packed(words, layout) for cell, words in sorted(cells.items())}
    # The clocks of open tickets are not known.
    waiting = arrays["waiting"].reshape(-1, 4).tolist()
    lines = [[number, time, cell, index, -1] for number, cell, index, time in waiting]
    return _document(document, own, packed(row, layout), rows, lines)


def _document(
    document: Document, own: dict[str, Any], row: Words, rows: dict[int, Words], lines: Lines
) -> Document:
    """Return a document of version 2, with lines of open tickets that lack their keys."""
    s = document.settings
    names = {int(number): name_key(name) for number, name in s["names"].items()}
    tickets = [[names.get(line[0], line[0]), *line] for line in sorted(lines)]
    arrays = {
        "row": row,
        "secret": np.frombuffer(bytes.fromhex(s["secret"]), "<i8").astype(np.int64),
        "tickets": np.array(tickets, np.int64).reshape(-1),
    }
    settings = own | {"classes": s["classes"], "max_open": s["max_open"]}
    return Document(document.kind, settings, arrays | packed_rows(list(rows.items())), 2)
