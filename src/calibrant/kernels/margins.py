"""Sums over patients for many features at once, and which features stand out.

A table has one column a feature and the rows below; all of it are whole numbers.  ``learn`` is
the compiled pass; :mod:`calibrant.learners.online_svm` makes the same pass over whole rows, with
NumPy, out of the same functions ``pull`` and ``spread``.
"""

from __future__ import annotations

from typing import Any

SIGNED, TOTAL, SQUARES, UNSEEN, UNSEEN_SIGNED, ROWS = range(6)
"""Which word is which.

- ``SIGNED``: Sum of sign times value over the rounds whose margin was broken.
- ``TOTAL``: Sum of values over all rounds.
- ``SQUARES``: Sum of squared values over all rounds.
- ``UNSEEN``: Rounds in which the value was not known.
- ``UNSEEN_SIGNED``: Sum of signs over those of them whose margin was broken.
"""


def pull(signed: Any, total: Any, known: Any, balance: Any) -> Any:
    """Return ``known`` times the sum of sign times (value - mean) over broken margins."""
    return signed * known - total * balance


def spread(total: Any, squares: Any, known: Any) -> Any:
    """Return ``known`` squared times the variance of a feature."""
    return squares * known - total * total


def learn(
    table: Any, row: Any, sign: int, rounds: float, balance: float, bar: float, found: Any
) -> int:
    """Add a row to the sums, list in ``found`` what stands out, and return how many do.

    ``sign`` is 1 or -1 if the margin was broken, else 0; ``rounds`` and ``balance`` count it
    already.  A feature stands out if its pull squared exceeds ``bar`` times its spread.
    """
    count = 0
    for i in range(len(row)):
        value = row[i]
        if value < 0:
            table[UNSEEN, i] += 1
            table[UNSEEN_SIGNED, i] += sign
        else:
            table[SIGNED, i] += sign * value
            table[TOTAL, i] += value
            table[SQUARES, i] += value * value
        known, total = rounds - table[UNSEEN, i], float(table[TOTAL, i])
        towards = pull(float(table[SIGNED, i]), total, known, balance - table[UNSEEN_SIGNED, i])
        if towards * towards > bar * spread(total, float(table[SQUARES, i]), known):
            found[count] = i
            count += 1
    return count
