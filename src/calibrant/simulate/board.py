"""Coins, the board, and what is announced: everything that is known to all before the draw."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals
from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.kernels import games, layout
from calibrant.kernels.coin import coin
from calibrant.kernels.games import COINS


@dataclass(frozen=True)
class Coins:
    """The random numbers of one player in one round, each a pure function of its index.

    Asking twice gives the same number, so what an adversary reveals and what it
    chooses later can rest on the same toss.

    Examples
    --------
    >>> coins = Coins(key_for(7, "nature"), round=0)
    >>> coins[0] == coins[0], coins[0] == coins[1]
    (True, False)
    """

    key: int
    round: int

    def __getitem__(self, index: int) -> float:
        """Return the number in [0, 1) at ``index``, which is from 0 to 63."""
        place = check.whole(index, "index", high=COINS - 1)
        return coin(self.key, COINS * self.round + place)


def key_for(seed: Any, player: str) -> int:
    """Return the key of a player's coins; different players of one game share nothing."""
    number = check.whole(seed, "seed", low=-(1 << 127), high=1 << 127)
    said = f"{player} {number}".encode()
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little") >> 1


Kind = TypeVar("Kind", bound=np.generic)
Setting: TypeAlias = float | int
"""A parameter of a player: whole numbers are kept as such, others as doubles."""


class Player:
    """A frozen dataclass of parameters, each kept as its check returns it.

    A player that is a kernel has a ``code``, by which :mod:`calibrant.kernels.games` knows it.
    """

    code: ClassVar[int]

    def __post_init__(self) -> None:
        for each in fields(cast(Any, self)):
            kept = self._checked(each.name, getattr(self, each.name))
            object.__setattr__(self, each.name, kept)

    def _checked(self, name: str, value: Any) -> Any:
        """Return a parameter as it is kept: a probability, unless a subclass says otherwise."""
        return check.probability(value, name)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The parameters, as the kernel reads them."""
        return tuple(getattr(self, each.name) for each in fields(cast(Any, self)))


def new_board(grid: Grid | None = None) -> NDArray[np.int64]:
    """Return a fresh board for a grid, or one without tables."""
    if grid is None:
        return np.zeros(games.TABLES, np.int64)
    return _template(grid).copy()


@functools.lru_cache(maxsize=64)
def _template(grid: Grid) -> NDArray[np.int64]:
    board = np.zeros(games.TABLES + games.WORDS * grid.cells, np.int64)
    board[games.SIZE], board[games.DENOMINATOR] = grid.cells, grid.denominator
    tables(board, games.NUMERATOR)[:] = grid.numerators
    tables(board.view(np.float64), games.VALUE)[:] = grid.values
    return board


def tables(board: NDArray[Kind], word: int) -> NDArray[Kind]:
    """Return one word of every grid value, as a view; of a board read either way."""
    return board[games.TABLES + word :: games.WORDS]


def views(board: NDArray[np.int64]) -> tuple[layout.Words, layout.Reals]:
    """Return the board as integers and as doubles, for plain kernels."""
    return board.data, board.view(np.float64).data


def put(board: NDArray[np.int64], start: int, settings: tuple[Setting, ...]) -> None:
    """Write a player's settings from word ``start`` on."""
    reals = board.view(np.float64)
    for place, setting in enumerate(settings, start):
        (board if isinstance(setting, int) else reals)[place] = setting


def announce(board: NDArray[np.int64], mixture: Mixture) -> None:
    """Put a mixture on the board; grid values between that it leaves out have weight 0."""
    sheet = board.view(np.float64)
    law = tables(sheet, games.LAW)
    law[:] = 0.0
    law[list(mixture.indices)] = mixture.weights
    board[games.FIRST], board[games.LAST] = mixture.indices[0], mixture.indices[-1]
    sheet[games.MEAN] = mixture.mean


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
        return self.grid.values[self._book.drawn[: self.rounds]]

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
