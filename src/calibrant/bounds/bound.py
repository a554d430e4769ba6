"""The value of a theorem, with what it speaks about and when it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Quantity: TypeAlias = Literal["C1", "C2", "pseudo C1", "pseudo C2", "regret", "pseudo regret"]
Source: TypeAlias = Literal["paper", "cited", "sharper"]


@dataclass(frozen=True)
class Bound:
    """A number that a quantity stays below, per round.

    Attributes
    ----------
    value
        The bound, an average over rounds.
    quantity
        ``C1`` or ``C2`` of the drawn forecasts, or their ``regret``, the average extra loss;
        with ``pseudo`` before it, the same of the announced mixtures.
    assumption
        When the bound holds, in words.
    theorem
        The theorem that the bound comes from.
    source
        ``paper`` for the constants of Kuleshov and Ermon, ``cited`` for those of another
        publication, ``sharper`` for those proved in the docstring at hand.

    Examples
    --------
    >>> from calibrant.bounds import foster_hart
    >>> bound = foster_hart(rounds=10_000, cells=11, half_cell=0.05)
    >>> print(bound)
    C2 <= 0.01109 in expectation over the draws, against an adversary who sees the mixture
    and the past but never the draw (average gap; sharper)
    >>> round(float(bound.as_c1()), 4)
    0.1053
    """

    value: float
    quantity: Quantity
    assumption: str
    theorem: str
    source: Source

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"{self.quantity} <= {self.value:.4g} {self.assumption} ({self.theorem}; {self.source})"
        )

    def as_c1(self) -> Bound:
        """Return what this says about C1: ``C1 <= sqrt(C2)``, by Jensen's inequality."""
        if self.quantity == "C2":
            return replace(self, value=math.sqrt(self.value), quantity="C1")
        if self.quantity == "pseudo C2":
            return replace(self, value=math.sqrt(self.value), quantity="pseudo C1")
        return self
