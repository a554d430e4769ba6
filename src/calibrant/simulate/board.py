"""The board of a game: everything that is known to all before the draw."""

from __future__ import annotations

import functools
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.core.grid import Grid
from calibrant.core.mixture import Mixture
from calibrant.kernels import games
from calibrant.kernels.layout import Reals, Words

Kind = TypeVar("Kind", bound=np.generic)
Setting: TypeAlias = float | int
"""A parameter of a player: whole numbers are kept as such, others as doubles."""


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


def views(board: NDArray[np.int64]) -> tuple[Words, Reals]:
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
