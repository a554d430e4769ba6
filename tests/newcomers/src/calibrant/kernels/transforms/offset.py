"""The raw forecast and what it missed by on average."""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.transforms.kernel import Kernel

PRIOR: Final = 0
MISSED: Final = 1
SEEN: Final = 2


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the raw forecast moved by the mean error."""
    error: float = reals[at + MISSED] / (reals[at + PRIOR] + words[at + SEEN])
    return min(max(raw + error, 0.0), 1.0)


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Add the error of the raw forecast."""
    reals[at + MISSED] += outcome - raw
    words[at + SEEN] += 1


KERNEL: Final = Kernel(predict, learn)
