"""The quantile tracker: coverage that is right for any sequence, not only in expectation."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant import bounds
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kernels import quantiles
from calibrant.kernels.compile import available, compiled
from calibrant.regression.base import reals_of, words_of
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.level_method import LevelMethod, Played, Said, Ties
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import SHORT, shape_of
from calibrant.regression.tables import Reals

__all__ = ["Tracker"]

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

    def __init__(self, levels: Reals, secret: bytes, max_open: int, *, step: float = 0.02) -> None:
        given = check.real(step, "step")
        if given <= 0.0:
            raise InvalidInput(f"step must be above 0, got {step!r}")
        self.levels = levels
        self._step = given
        self._marks = [given, *levels.tolist(), *[0.0] * (2 * len(levels))]

    @property
    def width(self) -> int:
        """One position a level."""
        return len(self.levels)

    @property
    def positions(self) -> Reals:
        """Where each level stands on the raw quantile function."""
        return np.array(self._marks[1 : 1 + len(self.levels)])

    def announce(self) -> Said:
        """Say where the levels stand."""
        places = self.positions
        inner, outer = _cornered(np.sort(places)[None], self.levels)
        return Said(places, inner[0], outer[0], outer[0], outer[0], 0)

    def look(self) -> Said:
        """Say the same: nothing is drawn."""
        return self.announce()

    def learn(self, slot: int, events: list[int]) -> None:
        """Move every level."""
        many = len(self.levels)
        for m, (level, event) in enumerate(zip(self.levels.tolist(), events, strict=True)):
            quantiles.advance(self._marks, many, level, m, event)
        quantiles.count_sorted(self._marks, many, sum(events))

    def play(self, raw: Distributions, outcomes: Reals, first: int, ties: Ties) -> Played:
        """Play a batch in one go."""
        many = len(self.levels)
        head = shape_of(raw.values, raw.levels, many, random=ties.random, first=first, key=ties.key)
        places, found = np.empty((len(outcomes), many)), np.empty((len(outcomes), many))
        given = raw.values.ravel(), raw.levels.ravel(), outcomes
        written = places.ravel(), found.ravel()
        if found.size > SHORT and available():
            marks = np.array(self._marks)
            machine = compiled(quantiles.replay_tracker, "tracker", nogil=True)
            machine(head, self.levels, marks, *given, *written)
            self._marks = marks.tolist()
        else:
            values, levels, told = (array.tolist() for array in given)
            own = head.tolist(), self.levels.tolist(), self._marks
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
        hits, sorted_hits = self._marks[1 + many : 1 + 2 * many], self._marks[1 + 2 * many :]
        found = zip(self.levels.tolist(), hits, sorted_hits, strict=True)
        return tuple(
            LevelRow(p, after / rounds, "C1", abs(hit / rounds - p), bound)
            for p, hit, after in found
        )

    def options(self) -> dict[str, Any]:
        """Return what it was made with."""
        return {"step": self._step}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        """Return positions and counts."""
        return {}, {"marks": words_of(np.array(self._marks))}

    def load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        """Read positions and counts back."""
        marks = reals_of(arrays["marks"])
        if len(marks) != len(self._marks) or marks[0] != self._step or not np.isfinite(marks).all():
            raise ValueError(f"marks that are not of {len(self.levels)} levels")
        self._marks = marks.tolist()


def _cornered(places: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Return which raw levels become ours; those that left [0, 1] say nothing."""
    low, high = places < EDGE, places > 1.0 - EDGE
    inner = np.where(low, 0.0, np.where(high, 1.0, places))
    return inner, np.where(low, 0.0, np.where(high, 1.0, levels))
