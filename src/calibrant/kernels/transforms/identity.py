"""The raw forecast as it is."""

from __future__ import annotations

from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.transforms.kernel import Kernel


def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the raw forecast."""
    return raw


def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Learn nothing."""


KERNEL = Kernel(predict, learn)
