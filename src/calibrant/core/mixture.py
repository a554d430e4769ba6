"""A randomised forecast before the coin is tossed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mixture:
    """Grid points and the probabilities with which they are announced.

    This, and not the draw, is what an adversary may see before choosing an outcome.

    Examples
    --------
    >>> mixture = Mixture(indices=(3, 4), weights=(0.25, 0.75), values=(0.5, 0.6))
    >>> mixture.mean
    0.575
    >>> mixture.draw(0.2), mixture.draw(0.25)
    (3, 4)
    """

    indices: tuple[int, ...]
    weights: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The expected forecast."""
        total = 0.0
        # One by one, as the kernels add: from Python 3.12 on, sum() compensates its rounding.
        for weight, value in zip(self.weights, self.values, strict=True):
            total += weight * value
        return total

    def draw(self, coin: float) -> int:
        """Return the grid index on which a coin in [0, 1) falls."""
        below = 0.0
        for index, weight in zip(self.indices, self.weights, strict=True):
            below += weight
            if coin < below:
                return index
        return self.indices[-1]
