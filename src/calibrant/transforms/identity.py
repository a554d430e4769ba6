"""The raw forecast as it is."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.kernels.transforms import identity
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform


@transforms.add("identity")
@dataclass(frozen=True)
class Identity(Transform):
    """Announce the raw forecast as it is.

    Useful as an expert in a mixture, which then never falls far behind the raw forecasts.

    Notes
    -----
    No promise of its own.

    Examples
    --------
    >>> Identity().online().predict_one(0.3)
    0.3
    """

    kernel = identity.KERNEL
    reference = "none"
    guarantee = "none"
    assumption = "none"
    cost = "O(1) a round, no memory"

    def fresh(self) -> State:
        """Return no words."""
        return []
