"""The attack on coins, at toy size: earlier coins give their key away, coins of today do not.

An adversary who may choose raw forecasts steers the pair to weight 1/2.  Then each draw shows the
highest bit of its coin.  All keys of the earlier coins lie on one cycle, on which a round is a
step: so of T bits in a row the adversary makes a table of T windows, tries every T-th place of
the cycle, and finds the key after as many tries as there are keys, over T.  Here the cycle is cut
down to 2**24 places; with all of it, the same takes a GPU some minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calibrant import Recalibrator
from calibrant.calibrators import Anchored
from calibrant.core.codec import Document
from calibrant.kernels.coin import GAMMA, MASK, coin, coins
from calibrant.kernels.layout import BLOCKS, KEY, SECRET, WIDTH, unpack

PLACES = 1 << 24
SEEN = 1 << 12
WINDOW = 64
KNOWN = 11213997
"""Where on the cycle the key is that is to be found: one with 63 bits, as all keys had."""
BITS = np.uint64(1) << np.arange(WINDOW, dtype=np.uint64)[::-1]

Guessed = Callable[[int, int, int], np.ndarray]
"""Coins under the key of a place, from a clock on, so many."""


def earlier(place: int, first: int, count: int) -> np.ndarray:
    clocks = np.arange(first, first + count, dtype=np.uint64)
    return coin(np.uint64(place * GAMMA & MASK), clocks)  # type: ignore[arg-type, return-value]


def today(place: int, first: int, count: int) -> np.ndarray:
    made: np.ndarray = coins(place, 0, 0, np.arange(first, first + count, dtype=np.uint64))
    return made


def high_bits(values: np.ndarray) -> np.ndarray:
    return (values >= 0.5).astype(np.uint64)


def searched(bits: np.ndarray, guessed: Guessed) -> int | None:
    """Baby steps and giant steps: where the key is, after PLACES / SEEN tries."""
    windows = np.lib.stride_tricks.sliding_window_view(bits, WINDOW) @ BITS
    table = dict(zip(windows.tolist(), range(len(windows)), strict=True))
    for step in range(0, PLACES, len(windows)):
        found = table.get(int(high_bits(guessed(step, 0, WINDOW)) @ BITS))
        if found is not None:
            return step - found
    return None


def test_bits_of_earlier_coins_give_the_key_away() -> None:
    bits = high_bits(earlier(KNOWN, 0, SEEN))
    found = searched(bits, earlier)
    assert found == KNOWN
    assert (earlier(found, SEEN, 1000) == earlier(KNOWN, SEEN, 1000)).all()


def test_the_same_search_finds_nothing_among_coins_of_today() -> None:
    bits = high_bits(today(KNOWN, 0, SEEN))
    assert searched(bits, today) is None
    # The bits seen say nothing of later ones, for a reader who takes any bit of the past as told.
    later = high_bits(today(KNOWN, SEEN, 1000))
    agreed = [(bits[lag : lag + 1000] == later).mean() for lag in range(SEEN - 1000)]
    # 3096 proportions of 1000 trials: 1e-6 / 3096 each.
    assert max(abs(share - 0.5) for share in agreed) < 6.34 * np.sqrt(1 / 4 / 1000)


# The whole attack, on draws.

HARVEST, ATTACK = 1500, 1500


def with_short_key(coins: str) -> Recalibrator:
    """A recalibrator whose key, or secret, is one of 2**24 that the adversary goes through."""
    rec = Recalibrator(Anchored(resolution=10), buckets=1, seed=3)
    stored = Document.read(rec.to_bytes())
    settings = stored.settings | {"coins": coins}
    rec = Recalibrator.from_bytes(
        Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()
    )
    words, row = rec._rows.state()[0], rec._row
    if coins == "splitmix64":
        words[row + words[BLOCKS] + KEY] = KNOWN * GAMMA & MASK
    else:
        words[row + SECRET], words[row + SECRET + 1] = KNOWN, 0
    return rec


def weight_at(rec: Recalibrator, raw: float) -> tuple[float, float, float]:
    """The mixture for a raw forecast, which is public: both values, and the lower one's weight."""
    place, weight, *_ = rec._rows.peek(rec._row, raw)
    values, (_, cell, side) = rec._issuer.values, unpack(place)
    step = 1 << (side >> WIDTH)
    low = cell - (side & 1) * step
    return values[low], values[min(low + step, len(values) - 1)], weight


def even_raw(rec: Recalibrator) -> float | None:
    """A raw forecast under which the pair is even, within 2**-30, if the adversary finds one."""
    grid = np.linspace(0.0, 1.0, 41)
    for low, high in zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True):
        ends = [weight_at(rec, raw) for raw in (low, high)]
        if ends[0][:2] != ends[1][:2] or (ends[0][2] - 0.5) * (ends[1][2] - 0.5) > 0:
            continue
        for _ in range(60):
            middle = 0.5 * (low + high)
            weight = weight_at(rec, middle)[2]
            if abs(weight - 0.5) < 2.0**-30:
                return middle
            if (weight - 0.5) * (ends[0][2] - 0.5) > 0:
                low = middle
            else:
                high = middle
    return None


def harvested(rec: Recalibrator) -> list[tuple[int, int]]:
    """Steer the pair to weight 1/2; return clocks, and the bits that draws gave away."""
    seen, rng = [], np.random.default_rng(1)
    for _ in range(HARVEST):
        raw = even_raw(rec)
        ticket = rec.forecast(0.5 if raw is None else raw)
        if raw is not None:
            assert ticket.clock is not None
            seen.append((ticket.clock, int(ticket.value == max(ticket.mixture.values))))
        # Outcomes as the pair says keep gaps small, so that it can be steered on.
        rec.observe(ticket, int(rng.random() < ticket.mean))
    return seen


def attacked(rec: Recalibrator, guess: Callable[[int], float]) -> Any:
    """Let the event happen when the coin foretells the lower of two values, and not otherwise."""
    for _ in range(ATTACK):
        *_, weight = weight_at(rec, 0.5)
        ticket = rec.forecast(0.5)
        assert ticket.clock is not None
        rec.observe(ticket, int(guess(ticket.clock) < weight))
    return rec.certificate()


def fitting(seen: list[tuple[int, int]], guessed: Guessed) -> int | None:
    """The key that fits all bits, searched for with baby steps and giant steps."""
    clocks = np.array([clock for clock, _ in seen])
    bits = np.array([bit for _, bit in seen], np.uint64)
    # Windows of rounds without a gap, each found again at its place on the cycle.
    runs = np.flatnonzero(clocks[WINDOW - 1 :] - clocks[: len(clocks) - WINDOW + 1] == WINDOW - 1)
    table = {int(bits[s : s + WINDOW] @ BITS): int(clocks[s]) for s in runs.tolist()}
    reach = sorted(set(table.values()))
    width = next(n for n in range(1, len(reach) + 1) if n == len(reach) or reach[n] != reach[0] + n)
    for step in range(0, PLACES, width):
        found = table.get(int(high_bits(guessed(step, 0, WINDOW)) @ BITS))
        if found is not None:
            return step - found
    return None


def test_with_earlier_coins_the_certificate_is_broken() -> None:
    rec = with_short_key("splitmix64")
    seen = harvested(rec)
    assert len(seen) == HARVEST
    key = fitting(seen, earlier)
    assert key == KNOWN
    assert rec.certificate().holds
    record = attacked(rec, lambda clock: float(earlier(key, clock, 1)[0]))
    assert not record.holds
    assert record.c1 > 0.25 > 0.13 > record.bound("C1")
    assert record.c2 > 0.1 > 0.02 > record.bound("C2")


@pytest.mark.slow
def test_with_coins_of_today_it_holds() -> None:
    rec = with_short_key("siphash-2-4")
    seen = harvested(rec)
    assert len(seen) == HARVEST
    assert fitting(seen, today) is None
    # A guess is all that is left.
    record = attacked(rec, lambda clock: float(today(KNOWN + 1, clock, 1)[0]))
    assert record.holds
    assert record.c1 < 0.1
    assert record.c2 < 0.01
