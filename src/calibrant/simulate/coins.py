"""Where the randomness of a game comes from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from calibrant.core import check
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
