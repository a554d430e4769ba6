"""What every way to recalibrate quantiles is: positions before, events after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.coin import coin
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.tables import Reals

__all__ = ["LevelMethod", "Played", "Said", "Ties", "events_of"]

Arrays = dict[str, NDArray[np.int64]]


class Ties(NamedTuple):
    """How an outcome on an atom is judged: by coins, or always as covered."""

    random: bool
    key: int


class Said(NamedTuple):
    """What a method announces before it knows the distribution.

    ``asked`` are the positions at which the raw distribution will be asked for quantiles; the
    last as many as there are levels are those to announce.  ``inner`` becomes ``outer``, which was
    ``drawn`` before sorting.
    """

    asked: Reals
    inner: Reals
    outer: Reals
    outer_mean: Reals
    drawn: Reals
    slot: int


class Played(NamedTuple):
    """What a method announced in a batch, a round a row."""

    quantiles: Reals
    inner: Reals
    outer: Reals
    outer_mean: Reals
    drawn: Reals


class LevelMethod(ABC):
    """A way to recalibrate quantiles at fixed levels.

    It never sees a distribution: only whether outcomes fell below the quantiles it asked for.
    """

    name: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    reference: ClassVar[str]

    levels: Reals

    @property
    @abstractmethod
    def width(self) -> int:
        """How many positions a round asks for."""

    @abstractmethod
    def announce(self) -> Said:
        """Make a forecast."""

    @abstractmethod
    def look(self) -> Said:
        """Return what :meth:`announce` would; change nothing.  Means are as drawn."""

    @abstractmethod
    def learn(self, slot: int, events: list[int]) -> None:
        """Learn which positions were covered by the outcome of the forecast of that slot."""

    @abstractmethod
    def play(self, raw: Distributions, outcomes: Reals, first: int, ties: Ties) -> Played:
        """Play a batch, exactly as one by one."""

    @abstractmethod
    def rows(self, rounds: int, delay: int) -> tuple[LevelRow, ...]:
        """Return what was measured at each level, and the bound beside it."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return what it was made with."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what it remembers."""

    @abstractmethod
    def load(self, settings: dict[str, Any], arrays: Arrays) -> None:
        """Take in what :meth:`state` gave."""


def events_of(
    quantiles: Reals, shares: Reals, outcomes: Reals, first: int, key: int
) -> NDArray[np.bool_]:
    """Return which quantiles of each row cover its outcome; on an atom its round's coin decides.

    >>> events_of(np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]]), np.array([2.0]), 0, 5)
    array([[False,  True]])
    """
    y = outcomes[:, None]
    covered, tied = y < quantiles, y == quantiles
    covered |= tied & (shares >= 1.0)
    for t in np.flatnonzero((tied & (shares < 1.0)).any(axis=1)).tolist():
        covered[t] |= tied[t] & (coin(key, first + t) < shares[t])
    return np.asarray(covered)
