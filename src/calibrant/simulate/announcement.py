"""What an adversary may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Reals
from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.kernels import games
from calibrant.simulate.board import announce, new_board, tables, views

Kind = TypeVar("Kind", bound=np.generic)


class Book:
    """The running record of a game, written by whoever plays it, after each round."""

    def __init__(self, grid: Grid, rounds: int) -> None:
        self.grid = grid
        self.rounds = 0
        self.raw, self.mean = np.empty(rounds), np.empty(rounds)
        self.drawn = np.empty(rounds, np.int64)
        self.outcomes = np.empty(rounds, np.uint8)
        self.board = new_board(grid)

    def add(self, raw: float, mixture: Mixture, drawn: int, outcome: int) -> None:
        """Enter a finished round."""
        t = self.rounds
        self.raw[t], self.mean[t] = raw, mixture.mean
        self.drawn[t], self.outcomes[t] = drawn, outcome
        announce(self.board, mixture)
        board, sheet = views(self.board)
        sheet[games.RAW] = raw
        games.close_round(board, sheet, drawn, outcome)
        self.rounds = t + 1


class History:
    """All rounds before the present one, read-only.

    Arrays have one entry for each of those rounds; ``counts``, ``ones`` and ``gaps``
    one for each grid value.

    Examples
    --------
    >>> book = Book(Grid("endpoints", 2), rounds=5)
    >>> history = History(book)
    >>> book.add(0.4, Mixture((1,), (1.0,), (0.5,)), drawn=1, outcome=1)
    >>> history.rounds, history.counts, history.ones, history.gaps
    (1, (0, 1, 0), (0, 1, 0), (0.0, 0.5, 0.0))
    >>> history.outcomes[0] = 0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """

    __slots__ = ("_book",)

    def __init__(self, book: Book) -> None:
        self._book = book

    @property
    def rounds(self) -> int:
        """Number of rounds before this one."""
        return self._book.rounds

    @property
    def grid(self) -> Grid:
        """The values that can be announced."""
        return self._book.grid

    @property
    def raw(self) -> Reals:
        """The raw forecasts."""
        return self._past(self._book.raw)

    @property
    def mean(self) -> Reals:
        """The means of the announced mixtures."""
        return self._past(self._book.mean)

    @property
    def forecast(self) -> Reals:
        """The drawn forecasts."""
        drawn: Reals = self.grid.values[self._book.drawn[: self.rounds]]
        return drawn

    @property
    def outcomes(self) -> Bits:
        """The outcomes."""
        return self._past(self._book.outcomes)

    @property
    def counts(self) -> tuple[int, ...]:
        """How often each grid value was drawn, n_i."""
        return tuple(tables(self._book.board, games.COUNT).tolist())

    @property
    def ones(self) -> tuple[int, ...]:
        """How many of the outcomes were 1 then, Y_i."""
        return tuple(tables(self._book.board, games.ONES).tolist())

    @property
    def gaps(self) -> tuple[float, ...]:
        """Outcomes less forecasts for each grid value, S_i."""
        board, scale = views(self._book.board)[0], self.grid.denominator
        return tuple(games.gap(board, k) / scale for k in range(self.grid.cells))

    def _past(self, array: NDArray[Kind]) -> NDArray[Kind]:
        past = array[: self.rounds]
        past.flags.writeable = False
        return past


@dataclass(frozen=True, slots=True)
class Announcement:
    """A forecast before the coin is tossed: all that an adversary decides on.

    There is no way from here to the draw: neither the ticket nor the recalibrator is
    part of it, and the history ends with the round before.

    Attributes
    ----------
    features
        What nature revealed about the round (step 1).
    raw
        The raw forecast (step 2).
    mixture
        What the recalibrator is about to draw from (step 3).
    history
        All earlier rounds.
    """

    features: tuple[float, ...]
    raw: float
    mixture: Mixture
    history: History

    @property
    def round(self) -> int:
        """Number of rounds before this one."""
        return self.history.rounds

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return self.mixture.mean
