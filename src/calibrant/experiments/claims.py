"""What is claimed: a sentence, the number that speaks to it, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from calibrant.report.tables import shown

VERDICTS: Final = {True: "holds", False: "does not hold", None: "not measured"}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper or of ours, the number that speaks to it, and the verdict.

    Attributes
    ----------
    key
        A short name for the number, unlike any other of its experiment.
    said
        What is claimed.
    value
        What was measured; nan if it was not.
    bar
        What the number must be, in words.
    holds
        Whether it is; None if nothing was measured.
    source
        ``"paper"`` if the paper claims it, ``"ours"`` if this package does.
    misses
        Seeds whose draws alone miss the bar, where draws were judged one by one.
    """

    key: str
    said: str
    value: float
    bar: str
    holds: bool | None
    source: str = "paper"
    misses: tuple[int, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.holds]

    @property
    def shown(self) -> str:
        """The number as it is printed."""
        return shown(self.value)

    @property
    def failure(self) -> str:
        """What is missed and by which seeds, in words.

        >>> at_most("error", "it is small", 0.3, 0.2).failure
        'error does not hold: it is small: 0.3000, must be at most 0.2'
        """
        told = f"{self.key} {self.verdict}: {self.said}: {self.shown}, must be {self.bar}"
        seeds = ", ".join(map(str, self.misses))
        return f"{told}; draws of these seeds alone miss it: {seeds}" if seeds else told


def below(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is below the bar.

    >>> below("c2", "the error is small", 0.004, 0.01).verdict
    'holds'
    """
    return Claim(key, said, float(value), f"below {bar:.4g}", bool(value < bar), source)


def at_most(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is at most the bar."""
    return Claim(key, said, float(value), f"at most {bar:.4g}", bool(value <= bar), source)


def at_least(key: str, said: str, value: float, bar: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is at least the bar."""
    return Claim(key, said, float(value), f"at least {bar:.4g}", bool(value >= bar), source)


Judge: TypeAlias = Callable[[str, str, float, float, str], Claim]
"""Judges a value by a bar: :func:`below`, :func:`at_most` or :func:`at_least`."""


def near(key: str, said: str, value: float, bar: float, off: float, source: str = "paper") -> Claim:
    """Return a claim that holds if the value is no further than ``off`` from the bar.

    >>> near("loss", "as good as a coin", 0.262, 0.25, 0.01).verdict
    'does not hold'
    """
    told = f"{bar:.4g} ± {off:.4g}"
    return Claim(key, said, float(value), told, bool(abs(value - bar) <= off), source)


def unmeasured(key: str, said: str, bar: str, source: str = "paper") -> Claim:
    """Return a claim that this run has nothing to say about."""
    return Claim(key, said, math.nan, bar, None, source)
