"""Games the slow and obvious way."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture


def error(counts: Sequence[int], ones: Sequence[int], grid: Grid, power: int) -> Fraction:
    """Return T times C^p, exactly."""
    total = Fraction(0)
    for n, y, k in zip(counts, ones, grid.numerators, strict=True):
        gap = y - n * Fraction(k, grid.denominator)
        total += abs(gap) if power == 1 else gap**2 / max(n, 1)
    return total


def expected_error(
    counts: Sequence[int],
    ones: Sequence[int],
    grid: Grid,
    mixture: Mixture,
    outcome: int,
    power: int,
) -> Fraction:
    """Return the mean of T times C^p after a round with that outcome, over the draw."""
    total = Fraction(0)
    for index, weight in zip(mixture.indices, mixture.weights, strict=True):
        n, y = list(counts), list(ones)
        n[index] += 1
        y[index] += outcome
        total += Fraction(weight) * error(n, y, grid, power)
    return total


def kept(gaps: Sequence[Fraction], split: int) -> Fraction:
    """Return the gaps that cannot shrink on average if the probability lies at the split."""
    low = sum((max(gap, Fraction(0)) for gap in gaps[:split]), Fraction(0))
    return low + sum((max(-gap, Fraction(0)) for gap in gaps[split:]), Fraction(0))


def refuge(gaps: Sequence[Fraction], values: Sequence[float]) -> float:
    """Return the middle of the lowest room in which most is kept."""
    most = max(kept(gaps, split) for split in range(len(gaps) + 1))
    first = next(split for split in range(len(gaps) + 1) if kept(gaps, split) == most)
    last = first
    while last < len(gaps) and kept(gaps, last + 1) == most:
        last += 1
    low = values[first - 1] if first > 0 else 0.0
    high = values[last] if last < len(gaps) else 1.0
    return 0.5 * (low + high)
