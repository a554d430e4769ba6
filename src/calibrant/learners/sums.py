"""The sums that a linear learner keeps for each feature, with or without a compiler."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals, Words
from calibrant.kernels import compile as machine
from calibrant.kernels.margins import (
    LEAN,
    ROWS,
    SQUARES,
    TOTAL,
    UNSEEN,
    UNSEEN_LEAN,
    learn,
    pull,
    spread,
)

Indices = Words

MANY: Final = 20_000
"""Features below which NumPy is quick enough and the compiler is not started."""


class Sums:
    """One column of whole numbers a feature; see :mod:`calibrant.kernels.margins`.

    Attributes
    ----------
    table
        The sums.
    rounds
        Rows that were added.
    broken
        Rows that were added with a sign.
    balance
        The sum of the signs.
    """

    __slots__ = ("_found", "balance", "broken", "rounds", "table")

    def __init__(self, features: int) -> None:
        self.table = np.zeros((ROWS, features), np.int64)
        self.rounds = self.broken = self.balance = 0
        self._found = np.empty(features, np.int64)

    def add(self, row: NDArray[np.int8], sign: int, level: float) -> Indices:
        """Add ``row`` and return the features whose evidence exceeds ``level``, in order.

        Evidence is the correlation of a feature with the signs times the root of how many
        there are: of the order of 1 by chance.
        """
        self.rounds += 1
        self.broken += abs(sign)
        self.balance += sign
        if machine.available() and len(row) >= MANY:
            told = sign, float(self.rounds), float(self.balance), self._bar(level), self._found
            count = machine.compiled(learn, "margins")(self.table, row, *told)
            return self._found[:count].copy()
        self._add(row, sign)
        return self.outstanding(level)

    def outstanding(self, level: float) -> Indices:
        """Return the features whose evidence exceeds ``level``, in order."""
        towards, width = self.evidence(np.s_[:])[:2]
        return np.flatnonzero(towards * towards > self._bar(level) * width)

    def evidence(self, chosen: Any) -> tuple[Reals, Reals, Reals, Reals]:
        """Return pull, spread, known rounds and mean of the ``chosen`` features."""
        part = self.table[:, chosen].astype(np.float64)
        known = self.rounds - part[UNSEEN]
        towards = pull(part[LEAN], part[TOTAL], known, self.balance - part[UNSEEN_LEAN])
        width = spread(part[TOTAL], part[SQUARES], known)
        return towards, width, known, part[TOTAL] / np.maximum(known, 1.0)

    def _add(self, row: NDArray[np.int8], sign: int) -> None:
        unseen = row < 0
        values = np.where(unseen, 0, row).astype(np.int64)
        for place, change in (
            (LEAN, sign * values),
            (TOTAL, values),
            (SQUARES, values * values),
            (UNSEEN, unseen),
            (UNSEEN_LEAN, sign * unseen),
        ):
            self.table[place] += change

    def _bar(self, level: float) -> float:
        return level * level * self.broken
