"""States of the first version: counts, names and tickets in the settings, blocks with keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.core.desk import Desk, name_key
from calibrant.groups.spec import (
    SETTINGS,
    GroupSpec,
    GroupTicket,
    key_of_names,
    names_again,
    stored,
)
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import LOGS, MEMBERSHIPS
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, RAW_LOSS, ROUNDS, SECRET
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.secret import OLD
from calibrant.recalibrate.version1 import moved_blocks


def migrated(document: Document) -> Document:
    """Return a document of the first version as one of the second."""
    s = document.settings | {"coins": OLD}
    spec = GroupSpec.made(**{name: s[name] for name in SETTINGS})
    names = [name for part in s["groups"] for name in names_again([part])]
    blocks = np.zeros((spec.buckets + len(names), spec.layout.stride), np.int64)
    moved_blocks(blocks, np.arange(len(blocks)), document.arrays["blocks"], spec.rule)
    row = spec.layout.fresh.copy()
    _write_own(row, s)
    spec.layout.blocks_of(row)[:] = blocks[: spec.buckets]
    tickets = [GroupTicket.from_dict(part) for part in s["tickets"]]
    held = {key_of_names(ticket.groups): ticket.groups for ticket in tickets}
    recent = ((check.probability(v), check.outcome(y)) for v, y in s["recent"])
    arrays = {"row": packed(row, spec.layout), "tickets": _lines(spec, tickets)}
    arrays |= stored(blocks[spec.buckets :, FIRST:], names, recent, held)
    kept = {name: s[name] for name in ("max_open", "rules", "declared")}
    return Document(document.kind, spec.settings | kept, arrays, 2)


def _write_own(row: Words, s: dict[str, Any]) -> None:
    row[SECRET : SECRET + 2] = np.frombuffer(bytes.fromhex(s["secret"]), "<i8")
    row[[ISSUED, ROUNDS]] = s["issued"], s["learned"]
    row[[LONGEST_LAG, MOST_OUTSTANDING, MEMBERSHIPS]] = s["lag"], s["crowd"], s["memberships"]
    row.view(np.float64)[[LOGS, RAW_LOSS]] = [float.fromhex(s[k]) for k in ("logs", "charged")]


def _lines(spec: GroupSpec, tickets: list[GroupTicket]) -> Words:
    """Return open tickets as the desk keeps them."""
    desk = Desk(spec.fields)
    for ticket in tickets:
        key = name_key(ticket.id) if isinstance(ticket.id, str) else ticket.id
        desk.add(key, 0, ticket.number, *ticket.fields)
    return desk.words().reshape(-1)
