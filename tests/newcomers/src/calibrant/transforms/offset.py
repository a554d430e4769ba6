"""The raw forecast, moved by its mean error."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.kernels.transforms import offset
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.online_platt import positive

__all__ = ["Offset"]


@transforms.add("offset")
@dataclass(frozen=True)
class Offset(Transform):
    """Add to the raw forecast what outcomes were above raw forecasts on average.

    Parameters
    ----------
    prior
        How many rounds without error are imagined before the first.

    Notes
    -----
    No promise.

    Examples
    --------
    >>> online = Offset(prior=1.0).online()
    >>> online.learn_one(0.5, 1)
    >>> online.predict_one(0.25)
    0.5
    """

    name = "offset"
    kernel = offset.KERNEL
    reference = "none"
    guarantee = "none"
    assumption = "none"
    cost = "O(1) a round"

    prior: float = 10.0

    def __post_init__(self) -> None:
        self._set(prior=positive(self.prior, "prior"))

    def fresh(self) -> State:
        """Return no error yet."""
        return [self.prior, 0.0, 0]

    def constants(self) -> list[int]:
        """Return where the parameter is."""
        return [offset.PRIOR]
