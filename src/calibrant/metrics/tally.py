"""Sums that do not depend on the order: fixed-point numbers, tallies, and their stored form.

Every addend is rounded to the nearest multiple of ``2**-60`` (ties to even) and added
as a whole number.  Such sums can be merged in any order and taken back exactly, which
sums of doubles cannot.  The rounding is at most ``2**-61`` per addend, and none at all
for numbers in [0, 1] that are 0 or at least ``2**-8``.

Arrays are split into two words of 30 bits; both words, and the partial sums of up to
``CHUNK`` of them, are whole numbers below 2**53, so doubles add them without error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from calibrant.core.arrays import Bits, Reals, Words
from calibrant.errors import CalibrantError, CorruptState, InvalidInput

Made = TypeVar("Made")

_BITS = 60
_WORD = float(1 << 30)
SCALE = 1 << _BITS
CHUNK = 1 << 15
_EXACT_ADDEND = float((1 << 53) // CHUNK)


def fixed(value: float) -> int:
    """Return the whole number of units of ``2**-60`` nearest to ``value``.

    >>> fixed(0.5) == SCALE // 2, fixed(-3.0) == -3 * SCALE
    (True, True)
    """
    whole = int(value)
    return (whole << _BITS) + round((value - whole) * SCALE)


def real(units: int) -> float:
    """Return the double nearest to ``units * 2**-60``."""
    return units / SCALE


def fixed_sum(values: Reals) -> int:
    """Return the sum of :func:`fixed` over any finite ``values``.

    >>> fixed_sum(np.array([0.1, 1e300, -1e300])) == fixed(0.1)
    True
    """
    return sum(_chunk_sum(values[part]) for part in chunks(len(values)))


def fixed_sums_by_key(keys: Words, values: Reals, size: int) -> list[int]:
    """Return, for each key below ``size``, the sum of :func:`fixed` over its values.

    The values lie in [0, 1] and there are fewer than 2**32 of them.
    """
    totals = np.zeros((2, size), dtype=np.int64)
    for part in chunks(len(values)):
        for total, word in zip(totals, _words(values[part]), strict=True):
            total += np.bincount(keys[part], weights=word, minlength=size).astype(np.int64)
    return list(map(_join, *totals.tolist()))


def chunks(length: int) -> Iterator[slice]:
    """Cut ``length`` rows into slices of at most ``CHUNK``.

    >>> [part.stop for part in chunks(CHUNK + 1)] == [CHUNK, 2 * CHUNK]
    True
    """
    return (slice(start, start + CHUNK) for start in range(0, length, CHUNK))


def _chunk_sum(values: Reals) -> int:
    whole = np.trunc(values)
    high, low = _words(values - whole)
    return (_whole_sum(whole) << _BITS) + _join(int(high.sum()), int(low.sum()))


def _whole_sum(values: Reals) -> int:
    if np.abs(values).max() < _EXACT_ADDEND:
        return int(values.sum())
    return sum(map(int, values.tolist()))


def _words(values: Reals) -> tuple[Reals, Reals]:
    # Scaling by powers of two and taking off the floor lose nothing; only rint rounds,
    # and it rounds ties as the whole number would, since the high word counts as even.
    scaled = values * _WORD
    high = np.floor(scaled)
    scaled -= high
    scaled *= _WORD
    return high, np.rint(scaled, out=scaled)


def _join(high: int, low: int) -> int:
    return (high << 30) + low


_VERSION = 1


def seal_state(kind: str, **content: Any) -> dict[str, Any]:
    """Return ``content`` with the name of its class and the version of the format."""
    return {"kind": kind, "version": _VERSION, **content}


def open_state(state: Any, kind: str, *names: str) -> list[Any]:
    """Return the values called ``names`` of a state of class ``kind``.

    >>> open_state({"kind": "X", "version": 1, "a": 2}, "X", "a")
    [2]
    >>> open_state({"kind": "Y"}, "X", "a")
    Traceback (most recent call last):
    calibrant.errors.CorruptState: state must be of kind 'X' and version 1, got 'Y' and None
    """
    if not isinstance(state, Mapping):
        raise CorruptState(f"state must be a dictionary, got {state!r}")
    found = (state.get("kind"), state.get("version"))
    if found != (kind, _VERSION):
        told = f"{found[0]!r} and {found[1]!r}"
        raise CorruptState(f"state must be of kind {kind!r} and version {_VERSION}, got {told}")
    missing = [name for name in names if name not in state]
    if missing:
        raise CorruptState(f"state must have an entry {missing[0]!r}, got {sorted(state)!r}")
    return [state[name] for name in names]


def whole_numbers(values: Any, name: str, length: int) -> list[int]:
    """Return ``length`` whole numbers of at least 0, given as numbers or as text.

    >>> whole_numbers([1, "1152921504606846976"], "sums", 2)
    [1, 1152921504606846976]
    """
    rule = f"{length} whole numbers of at least 0"
    if not isinstance(values, list) or len(values) != length:
        raise CorruptState(f"{name} must be {rule}, got {values!r}")
    for value in values:
        if not str(value).isdecimal():
            raise CorruptState(f"{name} must be {rule}, got {value!r}")
    return [int(value) for value in values]


def restored(make: Callable[..., Made], *given: Any, **options: Any) -> Made:
    """Return a metric made of stored settings, which may be anything."""
    try:
        return make(*given, **options)
    except CalibrantError as error:
        raise CorruptState(str(error)) from None


class Kept:
    """A metric that is what its dictionary says."""

    to_dict: Callable[..., dict[str, Any]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()


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
