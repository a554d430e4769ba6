"""Running means of the outcomes in buckets of raw forecasts: several in one go.

A bank of means shares its buckets: the members differ in how fast they forget and in how
strongly they hold on to the raw forecast.  ``make_bank(count)`` returns two functions that
serve all members at once, and so cost little more than one; a single transform is a bank
of one.

Words: the number of buckets; for each member, which part of the past it keeps at a visit, and
the strength of its prior; the edges of the buckets and a sentinel; then for each bucket the
sums of outcomes and the numbers of visits of all members, both forgetting.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeAlias

from calibrant.kernels.layout import NARROW, Reals, Words
from calibrant.kernels.place import bucket_of
from calibrant.kernels.transforms.kernel import Kernel

BUCKETS, KEPT = range(2)
"""Which word is which.

- ``KEPT``: (reals) Where the members' parameters begin: how much is kept, then the priors.
"""

Advise: TypeAlias = Callable[[Words, Reals, int, float, float, float, int], None]
Absorb: TypeAlias = Callable[[Words, Reals, int, float, int, int, float], None]


def cell_of(reals: Reals, edges: int, buckets: int, width: int, raw: float) -> int:
    """Return where the cell of a raw forecast's bucket starts; each has ``width`` words."""
    size = buckets & NARROW
    return edges + size + 1 + width * (bucket_of(reals, edges, size, raw) & NARROW)


def pull(prior: float, raw: float, ones: float, visits: float) -> float:
    """Return the mean of the outcomes and of ``prior`` more, worth ``raw`` each."""
    total = prior + visits
    # Rounding is monotone, so that only a state that was made up can tell of more ones than visits.
    return (prior * raw + ones) / total if total > 0.0 and 0.0 <= ones <= visits else raw


@functools.cache
def make_bank(count: int) -> tuple[Advise, Absorb]:
    """Return the functions of a bank of ``count`` members.

    ``advise`` writes the members' forecasts to the words from ``out`` on; ``absorb``
    learns an outcome that counts in part.
    """
    edges = KEPT + 2 * count

    def advise(
        words: Words, reals: Reals, at: int, raw: float, odds: float, less: float, out: int
    ) -> None:
        cell = cell_of(reals, at + edges, words[at + BUCKETS], 2 * count, raw)
        for k in range(count):
            prior = reals[at + KEPT + count + k]
            reals[out + k] = pull(prior, raw, reals[cell + k], reals[cell + count + k])

    def absorb(
        words: Words, reals: Reals, at: int, raw: float, out: int, outcome: int, part: float
    ) -> None:
        cell = cell_of(reals, at + edges, words[at + BUCKETS], 2 * count, raw)
        for k in range(count):
            kept = reals[at + KEPT + k]
            kept += (1.0 - kept) * (1.0 - part)
            reals[cell + k] = reals[cell + k] * kept + outcome * part
            reals[cell + count + k] = reals[cell + count + k] * kept + part

    return advise, absorb


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the mean of the bucket; the raw forecast where it has none."""
    cell = cell_of(reals, at + KEPT + 2, words[at + BUCKETS], 2, raw)
    return pull(reals[at + KEPT + 1], raw, reals[cell], reals[cell + 1])


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Count the outcome in its bucket, after forgetting a little there."""
    absorb_one(words, reals, at, raw, 0, outcome, 1.0)


def partly(
    words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int, part: float
) -> None:
    """Count a part of the outcome."""
    absorb_one(words, reals, at, raw, 0, outcome, part)


absorb_one: Final = make_bank(1)[1]
KERNEL: Final = Kernel(predict, learn, partly=partly)
