"""The paper's construction for several classes: calibrated vectors from a grid over the simplex."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.bounds.harmonic import harmonic
from calibrant.classes.base import ClassRecalibrator
from calibrant.classes.certificate import SimplexCertificate
from calibrant.classes.hedge import hedge, prices, solver
from calibrant.classes.run import ClassRun
from calibrant.classes.simplex_points import cover, grid, grid_size, nearest
from calibrant.classes.ticket import SimplexTicket
from calibrant.classes.waiting import Entry
from calibrant.core import check
from calibrant.core.gate import passing
from calibrant.errors import InvalidInput, StaleForecast
from calibrant.kernels.coin import coin
from calibrant.recalibrate.secret import block_key

__all__ = ["SimplexRecalibrator"]

Reals = NDArray[np.float64]

LIMIT: Final = 10_000
MOST_NOTED: Final = 256
"""Predictions without an outcome that are remembered."""


class Cell:
    """The calibrator of one cell of raw forecasts.

    ``counts[i, y]`` is how often point i was announced and outcome y came; ``clock`` counts
    forecasts, and with ``key`` fixes the coins.
    """

    __slots__ = ("clock", "counts", "key")

    def __init__(self, points: int, classes: int, key: int) -> None:
        self.counts = np.zeros((points, classes), np.int64)
        self.clock, self.key = 0, key

    def gaps(self, values: Reals) -> Reals:
        """Return frequency of outcomes minus announced vector, for each point; 0 if unused."""
        visits = self.counts.sum(axis=1, keepdims=True)
        return np.where(visits > 0, self.counts / np.maximum(visits, 1) - values, 0.0)


class SimplexRecalibrator(ClassRecalibrator[SimplexTicket, ClassRun]):
    """Make whole vectors calibrated: full multiclass calibration, for a few classes.

    Whenever (0.5, 0.3, 0.2) is announced, the three classes come with these frequencies,
    whatever the outcomes.  Raw forecasts are split into cells, and each cell has a calibrator
    of its own that announces points of a grid over the simplex.

    Parameters
    ----------
    classes
        Number of classes K, numbered from 0.
    resolution
        The grid has all vectors of multiples of 1/resolution.
    cells
        Raw forecasts belong to the nearest vector of multiples of 1/cells.
    limit
        How many grid points, and how many cells, there may be.
    seed, key, max_open
        As in :class:`calibrant.Recalibrator`.

    Notes
    -----
    Both numbers are C(m + K - 1, K - 1): the cost is exponential in K, and cannot help being so
    (calibration over classes is PPAD-hard, Hazan and Kakade 2012).  Every round that is not
    trivial solves a linear program with a column for each grid point.

    Each round mixes at most K points such that, whichever class comes, the expected growth of
    ``sum_i |S_i|**2 / n_i`` is at most d + 2/(n_i + 1), d the squared distance within
    which every vector has a grid point; among these mixtures it takes one whose expected squared
    distance from the raw forecast is least.  For every distribution q of the outcome the
    grid point g nearest to q has 2 <E, q - g> - |E|**2 <= |q - g|**2 <= d, so such a mixture
    exists.  Summing up, the drawn vectors have in expectation
    ``C2 <= d + (2/T) sum over cells and points of H(n)``, H the harmonic numbers, if outcomes
    come before the next forecast.  Late ones are learned where they belong, without a bound.

    References
    ----------
    Kuleshov and Ermon (2017), "Multiclass prediction"; Foster and Hart (2021) for the potential
    in the binary case.

    Examples
    --------
    >>> rec = SimplexRecalibrator(classes=3, resolution=5, cells=5, seed=7)
    >>> ticket = rec.forecast([0.62, 0.2, 0.18])
    >>> ticket.value
    array([0.6, 0.2, 0.2])
    >>> rec.observe(ticket, 1)
    >>> SimplexRecalibrator(classes=20)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: resolution 10 with 20 classes must give at most 10000 grid
    points, got 20030010: take TopLabel or OneVsRest, or raise limit
    """

    kind: ClassVar = "simplex"

    def __init__(
        self,
        classes: int,
        *,
        resolution: int = 10,
        cells: int = 5,
        limit: int = LIMIT,
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 1_000_000,
    ) -> None:
        solver()
        super().__init__(classes, seed, key, max_open)
        self._build(resolution, cells, limit)

    def _build(self, resolution: Any, cells: Any, limit: Any) -> None:
        self._resolution = check.whole(resolution, "resolution", low=1)
        self._cells = check.whole(cells, "cells", low=1)
        self._limit = check.whole(limit, "limit", low=1)
        self._refuse("resolution", self._resolution, "grid points")
        self._refuse("cells", self._cells, "cells of raw forecasts")
        self._values = grid(self._classes, self._resolution) / self._resolution
        places = map(tuple, grid(self._classes, self._cells).tolist())
        self._place_of = {place: number for number, place in enumerate(places)}
        self._touched: dict[int, Cell] = {}
        self._noted: dict[bytes, tuple[int, int]] = {}

    def _refuse(self, name: str, number: int, what: str) -> None:
        size = grid_size(self._classes, number)
        if size > self._limit:
            raise InvalidInput(
                f"{name} {number} with {self._classes} classes must give at most {self._limit} "
                f"{what}, got {size}: take TopLabel or OneVsRest, or raise limit"
            )

    @property
    def resolution(self) -> int:
        """Number of parts into which the grid divides 1."""
        return self._resolution

    @property
    def cells(self) -> int:
        """Number of parts into which raw forecasts divide 1."""
        return self._cells

    @property
    def points(self) -> int:
        """Number of grid points."""
        return len(self._values)

    # ---------------------------------------------------------------- a round

    def _cell(self, raw: Reals) -> tuple[int, Cell]:
        place = self._place_of[nearest(raw, self._cells)]
        if place not in self._touched:
            key = block_key(self._secret, place)
            self._touched[place] = Cell(self.points, self._classes, key)
        return place, self._touched[place]

    def _mixture(self, cell: Cell, raw: Reals) -> tuple[NDArray[np.int64], Reals, int]:
        """Return points, weights, and the point on which this cell's next coin falls."""
        table = prices(cell.gaps(self._values), self._values)
        distances = ((self._values - raw) ** 2).sum(axis=1)
        points, weights = hedge(table, distances, cover(self._classes, self._resolution))
        fallen = np.searchsorted(np.cumsum(weights), coin(cell.key, cell.clock), "right")
        return points, weights, int(points[min(int(fallen), len(points) - 1)])

    def _announce(self, raw: Reals) -> tuple[SimplexTicket, int, int]:
        place, cell = self._cell(raw)
        points, weights, index = self._mixture(cell, raw)
        cell.clock += 1
        mean = _mean(self._values[points], weights)
        ticket = self._ticket(SimplexTicket, raw, self._value(index), mean)
        ticket.points, ticket.weights = self._values[points], weights
        return ticket, place, index

    def _settle(self, entry: Entry, outcome: int) -> None:
        self._touched[entry.place].counts[entry.slot, outcome] += 1

    def _drop(self, entry: Entry) -> None:
        """Do nothing: a cell keeps no tickets."""

    def _predict(self, raw: Reals) -> Reals:
        _, cell = self._cell(raw)
        _, _, index = self._mixture(cell, raw)
        self._noted[raw.tobytes()] = cell.clock, index
        if len(self._noted) > MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        return self._value(index)

    def _book(self, raw: Reals, outcome: int) -> None:
        _, cell = self._cell(raw)
        noted = self._noted.pop(raw.tobytes(), None)
        clock, index = noted or self._now(cell, raw)
        if clock != cell.clock:
            raise StaleForecast(
                "a forecast in the same cell came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        cell.clock += 1
        cell.counts[index, outcome] += 1

    def _now(self, cell: Cell, raw: Reals) -> tuple[int, int]:
        return cell.clock, self._mixture(cell, raw)[2]

    def _value(self, index: int) -> Reals:
        return np.array(self._values[index])

    def _play(self, rows: Reals, outcomes: NDArray[np.int64]) -> ClassRun:
        forecast, mean = np.empty_like(rows), np.empty_like(rows)
        for row, told in enumerate(outcomes.tolist()):
            ticket, place, index = self._announce(rows[row])
            self._touched[place].counts[index, told] += 1
            forecast[row], mean[row] = ticket.value, ticket.mean
        return ClassRun(forecast, mean, self.issued)

    # ------------------------------------------------------------------ state

    def certificate(self) -> SimplexCertificate:
        """Return what was measured so far, and the theorem's bound beside it."""
        waiting = self.open
        with passing(self._gate):
            counts = [cell.counts for cell in self._touched.values()]
            whole = sum(counts, np.zeros_like(self._values, np.int64))
            each = sum(map(self._squares, counts))
            expired = self.issued - self.rounds - waiting
            told = self.rounds, waiting, expired
            if self.rounds == 0:
                return SimplexCertificate(*told, 0.0, 0.0, None)
            c2, c2_cells = self._squares(whole) / self.rounds, each / self.rounds
            return SimplexCertificate(*told, c2, c2_cells, self._bound(counts))

    def _squares(self, counts: NDArray[np.int64]) -> float:
        """Return the sum of |S|**2 / n over the points that were announced."""
        visits = counts.sum(axis=1)
        seen = visits > 0
        gaps = counts[seen] - visits[seen, None] * self._values[seen]
        return float(((gaps**2).sum(axis=1) / visits[seen]).sum())

    def _bound(self, counts: list[NDArray[np.int64]]) -> float | None:
        if self.delay:
            return None
        paid = sum(float(harmonic(part.sum(axis=1)).sum()) for part in counts)
        return cover(self._classes, self._resolution) + 2.0 * paid / self.rounds

    def _settings(self) -> dict[str, Any]:
        return {"resolution": self._resolution, "cells": self._cells, "limit": self._limit}

    def _arrays(self) -> dict[str, NDArray[np.int64]]:
        used = [(place, cell) for place, cell in sorted(self._touched.items()) if cell.clock]
        cells = [(place, cell.clock) for place, cell in used]
        rows = [np.argwhere(cell.counts) for _, cell in used]
        told = [
            np.column_stack([np.full(len(at), place), at, cell.counts[tuple(at.T)]])
            for (place, cell), at in zip(used, rows, strict=True)
        ]
        counts = np.concatenate([np.empty((0, 4), np.int64), *told])
        return {"cells": np.array(cells, np.int64).reshape(-1), "counts": counts.reshape(-1)}

    def _load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        self._build(settings["resolution"], settings["cells"], settings["limit"])
        for place, clock in arrays["cells"].reshape(-1, 2).tolist():
            check.whole(place, "place", high=len(self._place_of) - 1)
            cell = Cell(self.points, self._classes, block_key(self._secret, place))
            cell.clock = check.whole(clock, "clock", low=1)
            self._touched[place] = cell
        for place, point, outcome, count in arrays["counts"].reshape(-1, 4).tolist():
            check.whole(min(point, outcome, count), "count")
            self._touched[place].counts[point, outcome] = count


def _mean(points: Reals, weights: Reals) -> Reals:
    total: Reals = (points * weights[:, None]).sum(axis=0)
    return total
