"""The log: forecasts of many keys, and outcomes that are late, early, repeated, corrected or never.

Keys differ in what happens to them, so that each way is compared on all keys that it can express:

| keys | what happens besides late outcomes |
|---|---|
| ``plain`` | outcomes that are told again |
| ``never`` | outcomes that never come |
| ``early`` | outcomes that are told before their forecasts, or never come |
| ``mended`` | outcomes that are corrected, forecasts that are given up, outcomes that never come |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["BATCH", "TRAITS", "Event", "batches", "made_log", "trait_of"]

TRAITS = ("plain", "never", "early", "mended")
BATCH = 50
"""Forecasts that are asked for together."""
LATE = 5.0
"""How many batches later an outcome comes, on average."""
PHASES = ("forecast", "outcome", "correction", "expiry")


class Event(NamedTuple):
    """Something that happens: a kind, whose, which round, and the raw forecast or outcome."""

    kind: str
    key: str
    id: str
    x: float


def trait_of(key: str) -> str:
    """Return what happens to a key.

    >>> trait_of("key 6")
    'early'
    """
    return TRAITS[int(key.split()[1]) % len(TRAITS)]


def made_log(events: int, keys: int, seed: int = 0) -> list[Event]:
    """Return a log of about so many events, and no more, in their order.

    >>> [event.kind for event in made_log(4, 1)]
    ['forecast', 'forecast', 'outcome', 'outcome']
    """
    rng = np.random.default_rng(seed)
    timed: list[tuple[int, Event]] = []
    number = 0
    while True:
        found = happens(rng, number, f"key {rng.integers(keys)}")
        if len(timed) + len(found) > events:
            break
        timed += found
        number += 1
    timed.sort(key=lambda pair: (pair[0], PHASES.index(pair[1].kind)))
    return [event for _, event in timed]


def happens(rng: np.random.Generator, number: int, key: str) -> list[tuple[int, Event]]:
    """Return what happens in a round, each with its time in batches."""
    trait, id, start = trait_of(key), f"round {number}", 1 + number // BATCH
    raw, chance, luck = rng.random(3)
    outcome = float(chance < raw**1.5)
    told, again = start + rng.geometric(1 / LATE, 2) - 1
    forecast = (start, Event("forecast", key, id, float(raw)))
    late = (int(told), Event("outcome", key, id, outcome))
    more = (int(told + again), Event("outcome", key, id, outcome))
    if trait == "plain":
        return [forecast, late, more] if luck < 0.2 else [forecast, late]
    if luck < 0.05:
        return [forecast]
    if trait == "early" and luck < 0.3:
        return [forecast, (start - 1, late[1])]
    if trait == "mended" and luck < 0.1:
        return [forecast, (int(told), Event("expiry", key, id, 0.0))]
    if trait == "mended" and luck < 0.3:
        return [forecast, late, (int(told + again), Event("correction", key, id, 1 - outcome))]
    return [forecast, late]


def batches(log: list[Event]) -> list[list[Event]]:
    """Return the log cut where the kind changes."""
    made: list[list[Event]] = []
    for event in log:
        if not made or made[-1][0].kind != event.kind:
            made.append([])
        made[-1].append(event)
    return made
