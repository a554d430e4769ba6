"""Memory, cores and sizes on disk, from measured figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from calibrant.capacity.figures import Figures, measured
from calibrant.core import check

BUSY: Final = 0.5
"""Which part of a core may be busy on average: the rest is for bursts and everything else."""
SPARE: Final = 4.0
"""How many standard deviations above the mean of open tickets are provided for."""


@dataclass(frozen=True)
class Plan:
    """What a fleet of streams needs.

    Attributes
    ----------
    figures
        What was measured.
    events_per_second, keys, delay, rounds_per_key, hot, every
        What was asked: forecasts a second over all keys, keys, mean seconds until an outcome is
        known, rounds that a key has made, the part of keys that stays unpacked, and seconds between
        checkpoints.
    open_tickets
        Forecasts that wait for their outcome, on average: rate times delay.
    most_open
        The same, with room for chance.
    memory
        Bytes of rows, packed bodies, keys and tickets.
    cores
        Cores that batches keep busy half of the time, and at least one.
    called_cores
        The same where every forecast and outcome is a call of its own.
    snapshot
        Bytes of a whole snapshot, tickets included.
    snapshot_seconds, open_seconds
        CPU time to store and to load it.
    touched
        Keys that change between two checkpoints, if all keys are alike: skew makes them fewer.
    checkpoint
        Bytes of these keys.
    hot_key
        Forecasts a second that one key can have at most: a key's rounds come one after another.
    split_hot_key
        The same where a key's buckets are dealt to cores of their own.
    """

    figures: Figures
    events_per_second: float
    keys: int
    delay: float
    rounds_per_key: float
    hot: float
    every: float
    open_tickets: float
    most_open: float
    memory: float
    cores: int
    called_cores: int
    snapshot: float
    snapshot_seconds: float
    open_seconds: float
    touched: float
    checkpoint: float
    hot_key: float
    split_hot_key: float


def plan(
    events_per_second: float,
    keys: int,
    *,
    delay: float = 0.0,
    rounds_per_key: float = 100.0,
    method: str = "default",
    hot: float = 0.1,
    every: float = 60.0,
) -> Plan:
    """Return what a fleet of streams needs.

    Parameters
    ----------
    events_per_second
        Forecasts a second, over all keys; each has one outcome.
    keys
        How many streams.
    delay
        Seconds until an outcome is known, on average.
    rounds_per_key
        How many rounds a key has made at which sizes are estimated.
    method
        ``default``, or ``foster_hart`` with N = M = 10.
    hot
        Which part of keys stays unpacked in memory.
    every
        Seconds between checkpoints of what has changed.

    Examples
    --------
    >>> made = plan(1_000, 100_000, delay=3_600)
    >>> made.open_tickets, made.cores
    (3600000.0, 1)
    """
    rate, figures = _above(events_per_second, "events_per_second"), measured(method)
    count, delay = check.whole(keys, "keys", low=1), _at_least(delay, "delay")
    rounds, every = _at_least(rounds_per_key, "rounds_per_key"), _above(every, "every")
    hot, waiting = check.probability(hot, "hot"), rate * delay
    body, most = figures.body(rounds), waiting + SPARE * math.sqrt(waiting)
    touched = count * -math.expm1(-rate * every / count)
    stored = waiting * figures.stored_ticket_bytes
    kept = hot * figures.row_bytes + (1.0 - hot) * body + figures.key_bytes
    ceiling = 1e9 / figures.alone_ns
    return Plan(
        figures, rate, count, delay, rounds, hot, every, waiting, most,
        memory=count * kept + most * figures.ticket_bytes,
        cores=_cores(rate * figures.table_ns * 1e-9),
        called_cores=_cores(rate * figures.call_us * 1e-6),
        snapshot=count * body + stored,
        snapshot_seconds=count * figures.store_us * 1e-6,
        open_seconds=count * figures.load_us * 1e-6,
        touched=touched,
        checkpoint=touched * body + stored * touched / count,
        hot_key=ceiling,
        split_hot_key=ceiling * figures.buckets,
    )  # fmt: skip


def _cores(busy: float) -> int:
    return max(1, math.ceil(busy / BUSY))


def _at_least(value: float, name: str) -> float:
    return check.real(value, name, low=0.0, rule="a number of at least 0")


def _above(value: float, name: str) -> float:
    return check.real(value, name, low=math.ulp(0.0), rule="a number above 0")
