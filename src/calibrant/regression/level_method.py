"""The ways to recalibrate quantiles: positions before, events after; and the quantile tracker.

The other way, :mod:`calibrant.regression.pit`, has a module of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant import bounds
from calibrant.bounds import Bound
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.errors import InvalidInput
from calibrant.kernels import quantiles
from calibrant.kernels.layout import FIXED, ROUNDS, STATE, Section
from calibrant.registry import Registry
from calibrant.regression.curves import machine_for, shape_of
from calibrant.regression.distribution import Distributions
from calibrant.regression.method import OWN, Method, Ties, check_once
from calibrant.regression.record import LevelRow
from calibrant.regression.ticket import QuantileTicket

quantile_methods: Registry[type[LevelMethod]] = Registry("method")
"""What :class:`calibrant.regression.QuantileRecalibrator` can do."""

Played = tuple[Reals, Reals, Reals, Reals, Reals, Distributions]

EDGE: Final = 1e-6
"""Positions nearer to 0 or 1 say nothing about the whole distribution."""


class Said(NamedTuple):
    """What a method announces before it knows the distribution.

    ``asked`` are the positions at which the raw distribution will be asked for quantiles; the
    last as many as there are levels are those to announce.  ``inner`` becomes ``outer``, which was
    ``drawn`` before sorting; ``places`` and ``weights`` say where the draws fell.
    """

    asked: Reals
    inner: Reals
    outer: Reals
    outer_mean: Reals
    drawn: Reals
    places: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


class LevelMethod(Method):
    """A way to recalibrate quantiles at fixed levels.

    Levels are learned without a look at distributions, only from whether outcomes fell below the
    quantiles that were asked for.  Experts may move the distribution before: see :meth:`mixed`.

    Parameters
    ----------
    levels
        The levels to follow.
    **options
        The method's own.
    """

    @abstractmethod
    def __init__(self, levels: Reals, **options: Any) -> None: ...

    @property
    def width(self) -> int:
        """How many positions a round asks for: those where draws are made, and the levels."""
        return self.drawn + len(self.levels)

    @property
    def fields(self) -> str:
        """Quantiles, their shares of atoms, place and weight of each draw, and advice."""
        return "d" * (2 * self.width) + "q" * self.drawn + "d" * (self.drawn + self.advice)

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued, given quantiles, shares and draws."""
        found, shares = reals[:, : self.width], reals[:, self.width : 2 * self.width]
        fits = ~np.isnan(found).any(axis=1) & ((shares >= 0.0) & (shares <= 1.0)).all(axis=1)
        return np.asarray(fits)

    def mixed(self, raw: Distributions) -> tuple[Distributions, tuple[float, ...]]:
        """Return the distribution whose levels are moved, and what :meth:`heed` will need."""
        return raw, ()

    @property
    def experts(self) -> tuple[int, int]:
        """Where the words of experts start and end: nowhere, if there are none."""
        return 0, 0

    def heed(self, ticket: QuantileTicket, outcome: float) -> None:
        """Let experts learn an outcome, if there are any."""

    @abstractmethod
    def announce(self) -> Said:
        """Make a forecast."""

    def look(self) -> Said:
        """Return what :meth:`announce` would; change nothing."""
        return self.announce()

    @abstractmethod
    def play(self, raw: Distributions, outcomes: Reals, ties: Ties) -> Played:
        """Play a batch, exactly as one by one.

        Returns quantiles, what :class:`Said` calls inner, outer, outer mean and drawn, and the
        distributions whose levels were moved.
        """

    @abstractmethod
    def rows(self, rounds: int, delay: int, failure: float) -> tuple[LevelRow, ...]:
        """Return what was measured at each level, and the bound beside it."""

    def coin(self, secret: bytes, ticket: QuantileTicket, level: int) -> float:
        """Return the coin that drew a chance for one of the levels that are learned."""
        raise InvalidInput(f"level must be None where nothing is drawn, got {level!r}")

    @abstractmethod
    def read_first(self, row: Words, document: Document, slots: list[int]) -> Words:
        """Write a state of the first version into a row; return what tickets keep of draws."""


@quantile_methods.add("tracker")
class Tracker(LevelMethod):
    """Move along the raw quantile function until coverage is right.

    For each level p a position q, at first p: ``q += step (p - covered)`` after each outcome,
    where covered is 1 if the outcome was at most the raw quantile at q.  Beyond 0 and 1 the
    quantile is infinite.  Coverage is right for any sequence, not only in expectation.

    Parameters
    ----------
    step
        How far a position moves.  Large steps reach the right coverage sooner and jitter more.
    """

    guarantee = "|coverage - p| <= (1 + step)/(step T) at each level, before sorting"
    reference = "Deshpande, Marx and Kuleshov (2024), AISTATS"

    def __init__(self, levels: Reals, *, step: float = 0.02) -> None:
        self.levels, self._options = levels, {"step": check.above(step, "step", 1e100)}
        self.section, many = Section(), len(levels)
        self.section.real("STEP", FIXED, "How far a position moves.")
        self.section.real("POSITIONS", STATE, "Where each level stands.", words=many)
        self.section.real("COVERED", STATE, "How often each level covered.", words=many)
        self.section.real("SORTED", STATE, "How often it did after sorting.", words=many)
        self._fresh = [self._options["step"], *levels.tolist(), *[0.0] * (2 * many)]

    @property
    def positions(self) -> Reals:
        """Where each level stands on the raw quantile function."""
        marks, at = self._seat.reals(), self._seat.at
        return np.array(marks[at + 1 : at + 1 + len(self.levels)])

    def announce(self) -> Said:
        """Say where the levels stand; nothing is drawn."""
        places = self.positions
        inner, outer = _cornered(np.sort(places)[None], self.levels)
        return Said(places, inner[0], outer[0], outer[0], outer[0])

    def learn(self, ticket: QuantileTicket, met: list[int]) -> None:
        """Move every level."""
        marks, at, many = self._seat.reals(), self._seat.at, len(self.levels)
        for m, (level, event) in enumerate(zip(self.levels.tolist(), met, strict=True)):
            quantiles.advance(marks, at, many, level, m, event)
        quantiles.count_sorted(marks, at, many, sum(met), 1.0)

    def amend(self, ticket: QuantileTicket, before: list[int], after: list[int]) -> None:
        """Move every level to where it would stand if it had met what it meets now."""
        (words, marks), at, many = self._seat.state(), self._seat.at, len(self.levels)
        changes = [new - old for new, old in zip(after, before, strict=True)]
        for m, change in enumerate(changes):
            check_once(int(marks[at + 1 + many + m]) + change, words[self._seat.row + ROUNDS])
        for m, change in enumerate(changes):
            quantiles.amend(marks, at, many, m, change)
        quantiles.count_sorted(marks, at, many, sum(before), -1.0)
        quantiles.count_sorted(marks, at, many, sum(after), 1.0)

    def play(self, raw: Distributions, outcomes: Reals, ties: Ties) -> Played:
        """Play a batch in one go."""
        many, seat = len(self.levels), self._seat
        head = shape_of(raw.values, raw.levels, many, 0, ties.random)
        places, found = np.empty((len(outcomes), many)), np.empty((len(outcomes), many))
        coins = ties.coins.from_(seat.issued, len(outcomes))
        given = raw.values.ravel(), raw.levels.ravel(), outcomes, coins
        written = places.ravel(), found.ravel()
        machine = machine_for(quantiles.replay_tracker, "tracker", found.size)
        if machine is not None:
            machine(head, self.levels, seat.flat(), seat.at, *given, *written)
        else:
            values, levels, told, thrown = (array.tolist() for array in given)
            own = head.tolist(), self.levels.tolist(), seat.reals(), seat.at
            quantiles.replay_tracker(*own, values, levels, told, thrown, *written)
        inner, outer = _cornered(np.sort(places, axis=1), self.levels)
        return found, inner, outer, outer, outer, raw

    def rows(self, rounds: int, delay: int, failure: float) -> tuple[LevelRow, ...]:
        """Return coverage after and before sorting, the latter beside its bound."""
        many, marks, levels = len(self.levels), self._seat.part(), self.levels.tolist()
        if not rounds:
            return tuple(LevelRow(p, float("nan"), "C1", 0.0, None) for p in levels)
        bound = bounds.quantile_tracker(rounds, self._options["step"], delay=delay)
        found = zip(levels, marks[1 + many : 1 + 2 * many], marks[1 + 2 * many :], strict=True)
        off = ((p, after / rounds, "C1", abs(hit / rounds - p)) for p, hit, after in found)
        return tuple(LevelRow(*row, bound, *_promise(row[0], bound, rounds)) for row in off)

    def read_first(self, row: Words, document: Document, slots: list[int]) -> Words:
        """Read positions and counts of the first version."""
        marks = document.arrays["marks"]
        if len(marks) != len(row) - OWN or marks[0] != row[OWN]:
            raise ValueError(f"marks that are not of {len(self.levels)} levels")
        row[OWN:] = marks
        return np.empty((len(slots), 0), np.int64)


def _promise(level: float, bound: Bound, rounds: int) -> tuple[Bound | None, int | None]:
    """Return the bound if it says something, or else from about which round on it does."""
    most = max(level, 1.0 - level)
    if bound.value < most:
        return bound, None
    # The bound falls as rounds grow, from whatever height.
    first = bound.value * rounds / most
    return None, math.floor(first) + 1 if first < math.inf else None


def _cornered(places: Reals, levels: Reals) -> tuple[Reals, Reals]:
    """Return which raw levels become ours; those that left [0, 1] say nothing."""
    low, high = places < EDGE, places > 1.0 - EDGE
    inner = np.where(low, 0.0, np.where(high, 1.0, places))
    return inner, np.where(low, 0.0, np.where(high, 1.0, levels))
