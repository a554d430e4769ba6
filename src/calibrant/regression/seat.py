"""Where the state of a method stands: its part of a row, behind the row's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from calibrant.calibrators.arena import Arena, Bench
from calibrant.calibrators.layout import Layout
from calibrant.kernels.batches import count_rounds
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS, ROW, STATE, Reals, Section, Words
from calibrant.kernels.rounds import count_forecast

OWN: Final = len(ROW)
"""Where the method's part of a row starts."""


def row_layout(part: Section, fresh: Sequence[float]) -> Layout:
    """Return the layout of rows that hold their own words and the part of a method.

    ``fresh`` are the numbers of the part before the first round.

    >>> from calibrant.kernels.layout import FIXED
    >>> part = Section()
    >>> part.real("STEP", FIXED, "A step."), part.real("MARK", STATE, "A mark.")
    (0, 1)
    >>> layout = row_layout(part, [0.5, 0.25])
    >>> layout.fresh[OWN:].view(float).tolist(), layout.stored[OWN:].tolist()
    ([0.5, 0.25], [False, True])
    """
    fields = [*ROW.fields, *part.fields]
    real, stored = [f.real for f in fields], [f.life == STATE for f in fields]
    words = np.zeros(len(fields), np.int64)
    own, told = np.array(real[OWN:]), np.array(fresh, np.float64)
    words[OWN:].view(np.float64)[own] = told[own]
    words[OWN:][~own] = told[~own].astype(np.int64)
    words.flags.writeable = False
    low, high = np.array([f.limits for f in fields], np.int64).T.copy()
    nothing = np.zeros(0, np.int64)
    flags = np.zeros(0, bool), np.array(real), np.array(stored)
    return Layout(nothing, words, ROW, OWN, len(part), 0, *flags, low, high)


class Seat(Bench):
    """The part of a row in which a method works, and the row's own counts before it.

    Plain steps work on the arena's list; after :meth:`use_views` they work on views of its array.
    """

    __slots__ = ("at", "row")

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self.row, self.at = arena.layout.row, arena.layout.row + OWN

    def reals(self) -> Reals:
        """Return the reals on which single steps work."""
        told: Reals = self.state()[1]
        return told

    def flat(self) -> Reals:
        """Go over to the array; return its reals, for compiled code."""
        return self.arena.flat().view(np.float64)

    def part(self) -> list[float]:
        """Return a copy of the method's part, read as reals; nothing changes."""
        told: list[float] = self.arena.row()[OWN:].view(np.float64).tolist()
        return told

    # ------------------------------------------------------------------ own counts

    def count_forecast(self) -> int:
        """Count a forecast; return its number."""
        words = self.state()[0]
        number: int = words[self.row + ISSUED]
        count_forecast(words, self.row)
        return number

    def count_outcome(self, number: int) -> None:
        """Count the outcome of the forecast with that number."""
        words, row = self.state()[0], self.row
        words[row + ROUNDS] += 1
        lag = words[row + ISSUED] - number - 1
        if lag > words[row + LONGEST_LAG]:
            words[row + LONGEST_LAG] = lag

    def count_rounds(self, rounds: int) -> None:
        """Count a batch of rounds whose outcomes came at once."""
        count_rounds(self.counts(), self.row, rounds)

    def counts(self) -> Words:
        """Return the words in the form in which they are, to change whole numbers among them."""
        listed = self.arena.listed
        return self.arena.flat() if listed is None else listed
