"""What was measured once and stored with the package."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from calibrant.core import check

STORED: Final = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class Figures:
    """What streams of one kind cost, as measured.

    Attributes
    ----------
    method
        The kind: ``default`` or ``foster_hart``.
    buckets
        Streams of Algorithm 1 side by side in one model; they can be split between cores.
    alone_ns, table_ns
        CPU time of a forecast and its outcome in a batch: one stream, and a table of many keys.
    call_us
        CPU time of a forecast and its outcome, called one by one, compiled.
    row_bytes
        A hot key: its whole row.
    rounds, body_bytes
        What a cold or stored key takes after that many rounds.
    key_bytes
        What the table keeps of a key besides.
    ticket_bytes, stored_ticket_bytes
        An open ticket in memory, and stored.
    store_us, load_us
        CPU time of storing and of loading a key.
    """

    method: str
    buckets: int
    alone_ns: float
    table_ns: float
    call_us: float
    row_bytes: float
    rounds: tuple[int, ...]
    body_bytes: tuple[float, ...]
    key_bytes: float
    ticket_bytes: float
    stored_ticket_bytes: float
    store_us: float
    load_us: float

    def body(self, rounds: float) -> float:
        """Return the size of a stored key after that many rounds, between those measured."""
        known = np.log1p(np.array(self.rounds, float))
        return float(np.interp(np.log1p(rounds), known, self.body_bytes))


@functools.cache
def stored() -> dict[str, Any]:
    """Return the whole file: the figures, and where and by what they were measured."""
    return dict(json.loads(STORED.read_text()))


def measured(method: str = "default") -> Figures:
    """Return the figures of a kind of stream.

    Examples
    --------
    >>> measured("foster_hart").buckets
    10
    """
    known = stored()["methods"]
    told = known[check.choice(method, "method", tuple(known))]
    lists = {name: tuple(told[name]) for name in ("rounds", "body_bytes")}
    return Figures(**{**told, **lists, "method": method})
