"""Corrections that are lines between knots."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from calibrant.core import check
from calibrant.kernels.portable import logit
from calibrant.kernels.transforms import hats
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_means import remembered

MAX_CELLS: Final = 1 << 16


@transforms.add("hat_means")
@dataclass(frozen=True)
class HatMeans(Transform):
    """Add to the raw forecast the mean error of the forecasts around it.

    Errors are averaged at knots, and what is added in between lies on the line between two
    knots: no steps at the borders of buckets, and within a cell forecasts still differ.  Right
    for errors of any shape, monotone or not, that is smooth at the scale of a cell.

    Parameters
    ----------
    cells
        Number of cells between knots; with ``scale="logit"`` this many for a unit of log-odds.
    memory
        How many visits a knot remembers; infinite (or None) for all of them.
    prior
        How many rounds without error each knot starts from; it keeps the raw forecast where
        little is known.
    scale
        ``"linear"``, or ``"logit"``: knots evenly on the log-odds, so finer near 0 and 1.
    clip
        With ``"logit"``, raw forecasts are moved into [clip, 1 - clip] to find their knots.

    Notes
    -----
    A relative of calibeating (Foster and Hart 2023), whose means are of outcomes in buckets.
    No promise.

    Examples
    --------
    >>> online = HatMeans(cells=10).online()
    >>> for _ in range(100):
    ...     online.learn_one(0.8, 1)
    ...     online.learn_one(0.8, 0)
    >>> round(online.predict_one(0.8), 2), round(online.predict_one(0.85), 2)
    (0.5, 0.7)
    """

    name = "hat_means"
    notes = 0
    reference = "hat functions on calibeating; Foster and Hart 2023"
    guarantee = "none"
    assumption = "none"
    cost = "O(1) a round"

    cells: int = 20
    memory: float | None = math.inf
    prior: float = 2.0
    scale: str = "linear"
    clip: float = 1e-6

    def __post_init__(self) -> None:
        self._set(
            cells=check.whole(self.cells, "cells", low=1, high=MAX_CELLS),
            memory=remembered(self.memory),
            prior=check.real(self.prior, "prior", low=1e-9, rule="a finite number above 0"),
            scale=check.choice(self.scale, "scale", ("linear", "logit")),
            clip=check.real(self.clip, "clip", low=1e-15, high=0.49, rule="in [1e-15, 0.49]"),
        )

    @property
    def kernel(self) -> Kernel:
        """The functions for this scale."""
        return hats.PLAIN if self.scale == "linear" else hats.LOG_ODDS

    def note_positions(self) -> list[int]:
        """Return where the cell of the last prediction is noted."""
        return [hats.CELL, hats.PART]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [hats.CELLS, hats.FORGOTTEN, hats.PRIOR, hats.SCALE, hats.SHIFT, hats.REACH]

    def fresh(self) -> State:
        """Return knots without errors."""
        reach = -logit(self.clip)
        cells = self.cells if self.scale == "linear" else math.ceil(2.0 * reach * self.cells)
        shift = 0.0 if self.scale == "linear" else 0.5 * cells
        forgotten = 1.0 / (self.memory or math.inf)
        head = [cells, forgotten, self.prior, float(self.cells), shift, reach]
        return [*head, 0, 0.0, *[0.0] * (hats.WIDTH * (cells + 1))]
