"""Exact sums per bucket, kept apart by outcome: what the streaming metrics remember."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core.arrays import Bits, Reals, Words
from calibrant.errors import CorruptState, InvalidInput
from calibrant.metrics.fixed import SCALE, fixed, fixed_sums_by_key, real
from calibrant.metrics.state import whole_numbers


class Tally:
    """Count rounds, and add up powers of their forecasts, by bucket and outcome.

    Entry ``2 * bucket + outcome`` of ``counts`` is the number of rounds, and of
    ``sums[q]`` the sum of forecast to the power ``q + 1`` in units of ``2**-60``.  All
    are whole numbers, so the order of rounds does not matter and a round can be taken
    back without a trace.

    Parameters
    ----------
    buckets : int
        How many buckets there are.
    powers : int
        How many powers of the forecast to add up: 0, 1 or 2.

    Examples
    --------
    >>> tally = Tally(2, 1)
    >>> tally.add(0, 0.25, 1)
    >>> tally.counts, tally.real_sums(0).tolist()
    ([0, 1, 0, 0], [[0.0, 0.25], [0.0, 0.0]])
    """

    def __init__(self, buckets: int, powers: int) -> None:
        self.counts = [0] * (2 * buckets)
        self.sums = [[0] * (2 * buckets) for _ in range(powers)]

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return sum(self.counts)

    def add(self, bucket: int, forecast: float, outcome: int) -> None:
        """Add one round."""
        key = 2 * bucket + outcome
        self.counts[key] += 1
        for sums, addend in zip(self.sums, _powers(forecast), strict=False):
            sums[key] += fixed(addend)

    def remove(self, bucket: int, forecast: float, outcome: int) -> None:
        """Take back one round that was added before."""
        key = 2 * bucket + outcome
        count = self.counts[key] - 1
        pairs = zip(self.sums, _powers(forecast), strict=False)
        rest = [sums[key] - fixed(addend) for sums, addend in pairs]
        if count < 0 or not all(0 <= total <= count * SCALE for total in rest):
            told = f"forecast {forecast!r}, outcome {outcome!r}"
            raise InvalidInput(f"round must be one that was added before, got {told}")
        self.counts[key] = count
        for sums, total in zip(self.sums, rest, strict=True):
            sums[key] = total

    def add_many(self, buckets: Words, forecasts: Reals, outcomes: Bits) -> None:
        """Add many rounds; the same as :meth:`add` for each, in any order."""
        keys, size = 2 * buckets + outcomes, len(self.counts)
        _add_into(self.counts, np.bincount(keys, minlength=size).tolist())
        powers = (forecasts, forecasts * forecasts)
        for sums, addends in zip(self.sums, powers, strict=False):
            _add_into(sums, fixed_sums_by_key(keys, addends, size))

    def merge(self, other: Tally) -> None:
        """Add all rounds of ``other``, which has the same shape."""
        _add_into(self.counts, other.counts)
        for sums, more in zip(self.sums, other.sums, strict=True):
            _add_into(sums, more)

    def table(self) -> Words:
        """Return the counts as an array with one row per bucket, columns outcome 0 and 1."""
        return np.array(self.counts, dtype=np.int64).reshape(-1, 2)

    def real_sums(self, power: int) -> Reals:
        """Return ``sums[power]`` as real numbers, shaped like :meth:`table`."""
        return np.array([real(total) for total in self.sums[power]]).reshape(-1, 2)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums for JSON; those beyond 2**53 travel as text."""
        return {"counts": list(self.counts), "sums": [[str(s) for s in row] for row in self.sums]}

    def load(self, counts: Any, sums: Any) -> None:
        """Take over what :meth:`to_dict` of a tally of the same shape returned."""
        size, powers = len(self.counts), len(self.sums)
        numbers = whole_numbers(counts, "counts", size)
        if not isinstance(sums, list) or len(sums) != powers:
            raise CorruptState(f"sums must be a list of {powers} lists, got {sums!r}")
        rows = [whole_numbers(row, "sums", size) for row in sums]
        for row in rows:
            if any(s > n * SCALE for s, n in zip(row, numbers, strict=True)):
                raise CorruptState(f"sums must be at most the counts, got {row!r}")
        self.counts, self.sums = numbers, rows


def _powers(forecast: float) -> tuple[float, float]:
    return forecast, forecast * forecast


def _add_into(totals: list[int], more: list[int]) -> None:
    totals[:] = map(int.__add__, totals, more)
