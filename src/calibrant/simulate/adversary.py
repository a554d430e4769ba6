"""What an adversary is, and where the ready-made ones are found by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from calibrant.errors import InvalidType
from calibrant.kernels import games
from calibrant.kernels.layout import Words
from calibrant.registry import Registry
from calibrant.simulate.announcement import Announcement
from calibrant.simulate.board import Setting, announce, new_board, put, tables, views
from calibrant.simulate.coins import Coins


class Adversary(ABC):
    """Nature in the paper's protocol: it reveals features and chooses outcomes.

    A subclass is a frozen dataclass of parameters.  Its methods are pure: whatever
    they remember of earlier rounds is in the announcement's history, and their
    randomness is the round's coins.

    Notes
    -----
    The guarantees allow an adversary to see everything but the draw of the present
    round.  An :class:`~calibrant.simulate.Announcement` holds exactly that.

    Examples
    --------
    >>> class Stubborn(Adversary):
    ...     def choose(self, announcement, coins):
    ...         return 1
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import play
    >>> recalibrator = Recalibrator(resolution=10, buckets=1, prior=0, seed=1)
    >>> float(play(recalibrator, "constant", Stubborn(), 50).forecast[-1])
    1.0
    """

    name: ClassVar[str] = "custom"
    sees: ClassVar[str] = "the announcement"

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return the round's features (step 1); none by default."""
        return ()

    @abstractmethod
    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return the outcome, 0 or 1 (step 4)."""


class BuiltInAdversary(Adversary):
    """An adversary that is a kernel: the same function decides alone and in batches."""

    code: ClassVar[int]
    """The number by which :func:`calibrant.kernels.games.chance` knows the adversary."""

    @property
    @abstractmethod
    def settings(self) -> tuple[Setting, ...]:
        """The parameters, as the kernel reads them."""

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return what the kernel reveals: one number or none."""
        board = new_board()
        self.sit_down(board, coins)
        feature = games.reveal(*views(board))
        return () if math.isnan(feature) else (feature,)

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return the outcome on which the kernel decides."""
        history = announcement.history
        board = new_board(history.grid)
        tables(board, games.COUNT)[:] = history.counts
        tables(board, games.ONES)[:] = history.ones
        announce(board, announcement.mixture)
        board.view(np.float64)[games.RAW] = announcement.raw
        self.sit_down(board, coins)
        return games.choose(*views(board))

    def sit_down(self, board: Words, coins: Coins) -> None:
        """Write the adversary, its settings and its coins on the board."""
        board[games.ADVERSARY] = self.code
        board[games.NATURE_KEY], board[games.ROUND] = coins.key, coins.round
        put(board, games.RULES, self.settings)


adversaries: Registry[type[BuiltInAdversary] | type[Adversary]] = Registry("adversary")
"""Every ready-made adversary by name."""


def get_adversary(adversary: Adversary | str) -> Adversary:
    """Return an adversary, given itself or the name of one with its default parameters."""
    if isinstance(adversary, Adversary):
        return adversary
    if isinstance(adversary, str):
        made: Adversary = adversaries.get(adversary)()
        return made
    raise InvalidType(f"adversary must be an Adversary or the name of one, got {adversary!r}")
