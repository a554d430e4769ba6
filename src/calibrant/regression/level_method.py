"""What every way to recalibrate quantiles is: positions before, events after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.calibrators.layout import Layout
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.errors import InvalidInput, RepeatedTicket
from calibrant.kernels.coin import coin
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.seat import Seat
from calibrant.regression.ticket import QuantileTicket

Arrays = dict[str, Words]


class Ties(NamedTuple):
    """How an outcome on an atom is judged: by coins, or always as covered."""

    random: bool
    key: int


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

    Parameters
    ----------
    levels
        The levels to follow.
    **options
        The method's own.
    """

    name: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    reference: ClassVar[str]

    levels: Reals
    drawn: int = 0
    """How many chances are drawn in a round."""

    _seat: Seat

    @abstractmethod
    def __init__(self, levels: Reals, **options: Any) -> None: ...

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The words of a row in which the method works."""

    def sit(self, seat: Seat, secret: bytes) -> None:
        """Work in that part of a row from now on, with draws that follow from the secret."""
        self._seat = seat

    @abstractmethod
    def verify(self, row: Words) -> None:
        """Refuse a row with which the method would go astray."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many positions a round asks for."""

    @abstractmethod
    def announce(self) -> Said:
        """Make a forecast."""

    @abstractmethod
    def look(self) -> Said:
        """Return what :meth:`announce` would; change nothing."""

    @abstractmethod
    def learn(self, ticket: QuantileTicket, events: list[int]) -> None:
        """Learn which positions were covered by the outcome of a ticket."""

    @abstractmethod
    def amend(self, ticket: QuantileTicket, before: list[int], after: list[int]) -> None:
        """Replace which positions were covered by the outcome of a ticket."""

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
    def compile(self) -> None:
        """Compile single steps, if there are any and a compiler."""

    def coin(self, secret: bytes, ticket: QuantileTicket, level: int) -> float:
        """Return the coin that drew a chance for one of the levels that are learned."""
        raise InvalidInput(f"level must be None where nothing is drawn, got {level!r}")

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued, given what was kept of their draws."""
        return np.ones(len(words), bool)

    @abstractmethod
    def read_first(
        self, row: Words, settings: dict[str, Any], arrays: Arrays, slots: list[int]
    ) -> Words:
        """Write a state of the first version into a row; return what tickets keep of draws."""


def check_once(counted: int, rounds: int) -> None:
    """Refuse to correct what cannot have been counted."""
    if not 0 <= counted <= rounds:
        raise RepeatedTicket(
            "outcome must have been counted to be corrected, "
            f"got {counted} covered in {rounds} rounds then: was it corrected already?"
        )


def events_of(quantiles: Reals, shares: Reals, outcomes: Reals, first: int, key: int) -> Mask:
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
