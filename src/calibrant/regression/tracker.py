"""The quantile tracker: coverage that is right for any sequence, not only in expectation."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import quantiles
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.layout import FIXED, ROUNDS, STATE, Section
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.level_method import Arrays, LevelMethod, Played, Said, Ties, check_once
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import SHORT, shape_of
from calibrant.regression.seat import OWN, row_layout
from calibrant.regression.ticket import QuantileTicket

EDGE: Final = 1e-6
"""Positions nearer to 0 or 1 say nothing about the whole distribution."""


@quantile_methods.add("tracker")
class Tracker(LevelMethod):
    """Move along the raw quantile function until coverage is right.

    For each level p a position q, at first p: ``q += step (p - covered)`` after each outcome,
    where covered is 1 if the outcome was at most the raw quantile at q.  Beyond 0 and 1 the
    quantile is infinite.

    Parameters
    ----------
    step
        How far a position moves.  Large steps reach the right coverage sooner and jitter more.
    """

    name = "tracker"
    guarantee = "|coverage - p| <= (1 + step)/(step T) at each level, before sorting"
    assumption = "none: any sequence, every time"
    reference = "Deshpande, Marx and Kuleshov (2024), AISTATS"

    def __init__(self, levels: Reals, *, step: float = 0.02) -> None:
        given = check.real(step, "step")
        if given <= 0.0:
            raise InvalidInput(f"step must be above 0, got {step!r}")
        self.levels, self._step = levels, given

    @functools.cached_property
    def layout(self) -> Layout:
        """The step, and for each level its position and two counts."""
        part, many = Section(), len(self.levels)
        part.real("STEP", FIXED, "How far a position moves.")
        part.real("POSITIONS", STATE, "Where each level stands.", words=many)
        part.real("COVERED", STATE, "How often each level covered the outcome.", words=many)
        part.real("SORTED", STATE, "How often it did after sorting.", words=many)
        return row_layout(part, [self._step, *self.levels.tolist(), *[0.0] * (2 * many)])

    def verify(self, row: Words) -> None:
        """Refuse positions that are no numbers."""
        if not np.isfinite(row[OWN:].view(np.float64)).all():
            raise ValueError(f"marks that are not of {len(self.levels)} levels")

    def compile(self) -> None:
        """Do nothing: what takes time in a step is to ask the raw distribution."""

    @property
    def width(self) -> int:
        """One position a level."""
        return len(self.levels)

    @property
    def positions(self) -> Reals:
        """Where each level stands on the raw quantile function."""
        return np.array(self._seat.part()[1 : 1 + len(self.levels)])

    def announce(self) -> Said:
        """Say where the levels stand."""
        marks, at = self._seat.reals(), self._seat.at
        places = np.array(marks[at + 1 : at + 1 + len(self.levels)])
        inner, outer = _cornered(np.sort(places)[None], self.levels)
        return Said(places, inner[0], outer[0], outer[0], outer[0])

    def look(self) -> Said:
        """Say the same: nothing is drawn."""
        return self.announce()

    def learn(self, ticket: QuantileTicket, events: list[int]) -> None:
        """Move every level."""
        marks, at, many = self._seat.reals(), self._seat.at, len(self.levels)
        for m, (level, event) in enumerate(zip(self.levels.tolist(), events, strict=True)):
            quantiles.advance(marks, at, many, level, m, event)
        quantiles.count_sorted(marks, at, many, sum(events), 1.0)

    def amend(self, ticket: QuantileTicket, before: list[int], after: list[int]) -> None:
        """Move every level to where it would stand if it had met what it meets now."""
        (words, marks), at, many = self._seat.state(), self._seat.at, len(self.levels)
        changes = [new - old for new, old in zip(after, before, strict=True)]
        rounds = words[self._seat.row + ROUNDS]
        for m, change in enumerate(changes):
            check_once(int(marks[at + 1 + many + m]) + change, rounds)
        for m, change in enumerate(changes):
            quantiles.amend(marks, at, many, m, change)
        quantiles.count_sorted(marks, at, many, sum(before), -1.0)
        quantiles.count_sorted(marks, at, many, sum(after), 1.0)

    def play(self, raw: Distributions, outcomes: Reals, first: int, ties: Ties) -> Played:
        """Play a batch in one go."""
        many, seat = len(self.levels), self._seat
        head = shape_of(raw.values, raw.levels, many, random=ties.random, first=first, key=ties.key)
        places, found = np.empty((len(outcomes), many)), np.empty((len(outcomes), many))
        given = raw.values.ravel(), raw.levels.ravel(), outcomes
        written = places.ravel(), found.ravel()
        if found.size > SHORT and available():
            machine = compiled(quantiles.replay_tracker, "tracker", nogil=True)
            machine(head, self.levels, seat.flat(), seat.at, *given, *written)
        else:
            values, levels, told = (array.tolist() for array in given)
            own = head.tolist(), self.levels.tolist(), seat.reals(), seat.at
            quantiles.replay_tracker(*own, values, levels, told, *written)
        inner, outer = _cornered(np.sort(places, axis=1), self.levels)
        return Played(found, inner, outer, outer, outer)

    def rows(self, rounds: int, delay: int) -> tuple[LevelRow, ...]:
        """Return coverage after and before sorting, the latter beside its bound."""
        many = len(self.levels)
        if not rounds:
            nothing = float("nan")
            return tuple(LevelRow(p, nothing, "C1", 0.0, None) for p in self.levels.tolist())
        bound = bounds.quantile_tracker(rounds, self._step, delay=delay)
        marks = self._seat.part()
        hits, sorted_hits = marks[1 + many : 1 + 2 * many], marks[1 + 2 * many :]
        found = zip(self.levels.tolist(), hits, sorted_hits, strict=True)
        return tuple(
            LevelRow(p, after / rounds, "C1", abs(hit / rounds - p), bound)
            for p, hit, after in found
        )

    def options(self) -> dict[str, Any]:
        """Return what it was made with."""
        return {"step": self._step}

    def read_first(
        self, row: Words, settings: dict[str, Any], arrays: Arrays, slots: list[int]
    ) -> Words:
        """Read positions and counts of the first version."""
        marks = arrays["marks"]
        if len(marks) != len(row) - OWN or marks[0] != row[OWN]:
            raise ValueError(f"marks that are not of {len(self.levels)} levels")
        row[OWN:] = marks
        return np.empty((len(slots), 0), np.int64)


def _cornered(places: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Return which raw levels become ours; those that left [0, 1] say nothing."""
    low, high = places < EDGE, places > 1.0 - EDGE
    inner = np.where(low, 0.0, np.where(high, 1.0, places))
    return inner, np.where(low, 0.0, np.where(high, 1.0, levels))
