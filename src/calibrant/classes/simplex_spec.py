"""What a recalibrator of whole vectors is, apart from its state."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from calibrant.calibrators.layout import Layout
from calibrant.classes import vectors
from calibrant.classes.roster import layout_of_cells
from calibrant.core import check
from calibrant.core.arrays import Reals, frozen
from calibrant.core.limits import refuse_large
from calibrant.errors import InvalidInput
from calibrant.recalibrate.secret import OLD, SAFE

LIMIT: Final = 10_000


@dataclass(frozen=True)
class SimplexSpec:
    """What a recalibrator of whole vectors is: frozen, and shared by streams that are alike.

    Attributes
    ----------
    classes
        Number of classes.
    resolution, cells
        Into how many parts the grid and raw forecasts divide 1.
    limit
        How many grid points, and how many cells, there may be.
    coins
        How coins are thrown.
    """

    classes: int
    resolution: int = 10
    cells: int = 5
    limit: int = LIMIT
    coins: str = SAFE

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", vectors.class_count(self.classes))
        for name in ("resolution", "cells", "limit"):
            object.__setattr__(self, name, check.whole(getattr(self, name), name, low=1))
        check.choice(self.coins, "coins", (SAFE, OLD))
        self._check_size("resolution", self.resolution, "grid points")
        self._check_size("cells", self.cells, "cells of raw forecasts")

    def _check_size(self, name: str, parts: int, what: str) -> None:
        """Refuse a grid with more points than the limit allows, or memory."""
        size = vectors.grid_size(self.classes, parts)
        if size > self.limit:
            raise InvalidInput(
                f"{name} {parts} with {self.classes} classes must give at most {self.limit} "
                f"{what}, got {size}: take TopLabel or OneVsRest, or raise limit"
            )
        # A tuple for each point while the grid is made, and its numbers afterwards.
        refuse_large(size * (2 * self.classes + 8))

    @functools.cached_property
    def values(self) -> Reals:
        """The grid over the simplex, a point a row."""
        return frozen(vectors.grid(self.classes, self.resolution) / self.resolution)

    @property
    def points(self) -> int:
        """Number of grid points."""
        return len(self.values)

    @functools.cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """The number of each cell, by the nearest vector of raw forecasts in it."""
        made = map(tuple, vectors.grid(self.classes, self.cells).tolist())
        return {place: number for number, place in enumerate(made)}

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a cell's row."""
        return layout_of_cells(self.points, self.classes)

    @functools.cached_property
    def cover(self) -> float:
        """The squared distance within which every vector has a grid point."""
        return vectors.cover(self.classes, self.resolution)


@functools.lru_cache(maxsize=32)
def shared_spec(spec: SimplexSpec) -> SimplexSpec:
    """Return the one spec that all streams with equal settings share."""
    return spec
