"""The paper's construction for several classes: calibrated vectors from a grid over the simplex."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from calibrant.bounds.game import harmonic
from calibrant.calibrators.arena import Arena
from calibrant.classes import vectors
from calibrant.classes.base import ClassRecalibrator, Look
from calibrant.classes.certificate import SimplexCertificate
from calibrant.classes.hedge import hedge, prices, solver
from calibrant.classes.roster import Roster
from calibrant.classes.run import ClassRun
from calibrant.classes.simplex_cells import layout_of_cells
from calibrant.classes.simplex_points import cover, grid, grid_size, nearest
from calibrant.classes.ticket import SimplexIssuer, SimplexTicket
from calibrant.classes.version1 import migrated_simplex
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.core.stateful import Migration
from calibrant.errors import ForeignTicket, InvalidInput, RepeatedTicket, StaleForecast
from calibrant.kernels.coin import coin
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS
from calibrant.kernels.rounds import count_forecast
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.secret import block_key, secret_of

LIMIT: Final = 10_000
ALL: Final = -1
"""The number of the row that counts the rounds of all cells."""


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
    >>> _ = rec.observe(ticket, 1)
    >>> SimplexRecalibrator(classes=20)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: resolution 10 with 20 classes must give at most 10000 grid
    points, got 20030010: take TopLabel or OneVsRest, or raise limit
    """

    __slots__ = ("_cells", "_limit", "_place_of", "_resolution", "_values")

    kind: ClassVar = "simplex"
    migrations: ClassVar[dict[int, Migration]] = {1: migrated_simplex}

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
        self._begin(classes, resolution, cells, limit, secret_of(seed, key), max_open)

    def _begin(
        self, classes: Any, resolution: Any, cells: Any, limit: Any, secret: bytes, max_open: Any
    ) -> None:
        count = vectors.class_count(classes)
        self._resolution = check.whole(resolution, "resolution", low=1)
        self._cells = check.whole(cells, "cells", low=1)
        self._limit = check.whole(limit, "limit", low=1)
        self._refuse("resolution", count, self._resolution, "grid points")
        self._refuse("cells", count, self._cells, "cells of raw forecasts")
        self._values = grid(count, self._resolution) / self._resolution
        places = map(tuple, grid(count, self._cells).tolist())
        self._place_of = {place: number for number, place in enumerate(places)}
        # The row that counts every round belongs to no cell.
        arena = Arena(layout_of_cells(len(self._values), count))
        issuer = SimplexIssuer(self._fingerprint(count, secret), self._values)
        told = secret, Roster(arena, ALL, _seat), SimplexTicket, issuer, "dqqq"
        self._enter(count, *told, max_open)

    def _refuse(self, name: str, classes: int, number: int, what: str) -> None:
        size = grid_size(classes, number)
        if size > self._limit:
            raise InvalidInput(
                f"{name} {number} with {classes} classes must give at most {self._limit} "
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

    def _cell_of(self, raw: Reals) -> int:
        return self._place_of[nearest(raw, self._cells)]

    def _row_of(self, cell: int) -> Words:
        """Return the words of a cell, to be written to."""
        start = self._roster.place(cell)
        return self._arena.flat()[start : start + len(self._arena.layout.fresh)]

    def _mixture(self, cell: int, raw: Reals) -> tuple[Words, Reals, int, int]:
        """Return points, weights, the point on which the cell's next coin falls, and its clock."""
        row = self._row_of(cell)
        counts, clock = self._arena.layout.blocks_of(row), int(row[ISSUED])
        table = prices(_gaps(counts, self._values), self._values)
        distances = ((self._values - raw) ** 2).sum(axis=1)
        points, weights = hedge(table, distances, cover(self._classes, self._resolution))
        u = coin(block_key(self._secret, cell), clock)
        fallen = np.searchsorted(np.cumsum(weights), u, "right")
        return points, weights, int(points[min(int(fallen), len(points) - 1)]), clock

    def _issue(self, raw: Reals) -> SimplexTicket:
        cell = self._cell_of(raw)
        points, weights, index, clock = self._mixture(cell, raw)
        number, mixture = self.issued, (self._values[points], weights)
        self._count(cell)
        place = cell, index, clock
        value = self._values[index]
        return SimplexTicket(self._counter.whose, number, number, place, value, raw, mixture)

    def _count(self, cell: int) -> None:
        """Count a forecast in a cell."""
        self._row_of(cell)[ISSUED] += 1
        count_forecast(self._arena.flat(), self._row)

    def _learn(self, ticket: SimplexTicket, outcome: int) -> None:
        self._enter_outcome(ticket.cell, ticket.index, ticket.number, outcome)

    def _enter_outcome(self, cell: int, index: int, number: int, outcome: int) -> None:
        row, own = self._row_of(cell), self._arena.flat()[self._row :]
        self._arena.layout.blocks_of(row)[index, outcome] += 1
        row[ROUNDS] += 1
        own[ROUNDS] += 1
        own[LONGEST_LAG] = max(own[LONGEST_LAG], own[ISSUED] - 1 - number)

    def _correct(self, ticket: SimplexTicket, outcome: int) -> None:
        if ticket.cell not in self._roster or not 0 <= ticket.index < self.points:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        counts = self._arena.layout.blocks_of(self._row_of(ticket.cell))[ticket.index]
        before = self._outcome(ticket.outcome)
        if counts[before] < 1:
            raise RepeatedTicket(
                f"outcome {before} must have been counted where it is corrected, "
                f"got {counts.tolist()}: was it corrected already?"
            )
        counts[before] -= 1
        counts[outcome] += 1

    def _coin(self, ticket: SimplexTicket) -> float:
        clock = self._known_clock(ticket.clock, ticket)
        return coin(block_key(self._secret, ticket.cell), clock)

    def _look(self, raw: Reals) -> Look:
        cell = self._cell_of(raw)
        _, _, index, clock = self._mixture(cell, raw)
        return cell, index, clock

    def _drawn(self, raw: Reals, look: Look) -> Reals:
        return np.array(self._values[look[1]])

    def _expected(self, raw: Reals) -> Reals:
        points, weights, *_ = self._mixture(self._cell_of(raw), raw)
        total: Reals = (self._values[points] * weights[:, None]).sum(axis=0)
        return total

    def _book(self, raw: Reals, look: Look, outcome: int) -> None:
        cell, index, clock = look
        if clock != self._row_of(cell)[ISSUED]:
            raise StaleForecast(
                "a forecast in the same cell came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        number = self.issued
        self._count(cell)
        self._enter_outcome(cell, index, number, outcome)

    # ----------------------------------------------------------------- batches

    def _play(self, rows: Reals, outcomes: Words) -> ClassRun:
        first, forecast, mean = self.issued, np.empty_like(rows), np.empty_like(rows)
        for row, told in enumerate(outcomes.tolist()):
            ticket = self._issue(rows[row])
            self._learn(ticket, told)
            forecast[row], mean[row] = ticket.value, ticket.mean
        return ClassRun(forecast, mean, first)

    def _run(self, tickets: list[SimplexTicket], first: int, pending: Pending) -> ClassRun:
        value = self._stacked(ticket.value for ticket in tickets)
        mean = self._stacked(ticket.mean for ticket in tickets)
        return ClassRun(value, mean, first, pending=pending)

    # ------------------------------------------------------------------ state

    def certificate(self) -> SimplexCertificate:
        """Return what was measured so far, and the theorem's bound beside it."""
        with passing(self._gate):
            waiting, rounds = len(self._counter), self.rounds
            told = rounds, waiting, self.issued - rounds - waiting
            if rounds == 0:
                return SimplexCertificate(*told, 0.0, 0.0, None)
            counts = [self._arena.layout.blocks_of(row) for _, row in self._touched()]
            whole = sum(counts, np.zeros_like(self._values, np.int64))
            each = sum(map(self._squares, counts))
            c2, c2_cells = self._squares(whole) / rounds, each / rounds
            return SimplexCertificate(*told, c2, c2_cells, self._bound(counts))

    def _touched(self) -> list[tuple[int, Words]]:
        """Return the cells that made a forecast."""
        return [(cell, row) for cell, row in self._roster.used() if cell != ALL]

    def _squares(self, counts: Words) -> float:
        """Return the sum of |S|**2 / n over the points that were announced."""
        visits = counts.sum(axis=1)
        seen = visits > 0
        gaps = counts[seen] - visits[seen, None] * self._values[seen]
        return float(((gaps**2).sum(axis=1) / visits[seen]).sum())

    def _bound(self, counts: list[Words]) -> float | None:
        if self.delay:
            return None
        paid = sum(float(harmonic(part.sum(axis=1)).sum()) for part in counts)
        return cover(self._classes, self._resolution) + 2.0 * paid / self.rounds

    def _shown(self) -> dict[str, Any]:
        return self._settings()

    def _settings(self) -> dict[str, Any]:
        return {"resolution": self._resolution, "cells": self._cells, "limit": self._limit}

    def _set_up(self, document: Document, secret: bytes) -> None:
        s = document.settings
        told = s["classes"], s["resolution"], s["cells"], s["limit"]
        self._begin(*told, secret, s["max_open"])

    @property
    def _most(self) -> int:
        return len(self._place_of) - 1

    def _check_rows(self) -> None:
        rows, blocks_of = self._touched(), self._arena.layout.blocks_of
        issued, rounds = (sum(int(row[place]) for _, row in rows) for place in (ISSUED, ROUNDS))
        if (issued, rounds) != (self.issued, self.rounds):
            raise ValueError("cells whose rounds are not those of all together")
        if any(blocks_of(row).sum() != row[ROUNDS] for _, row in rows):
            raise ValueError("counts that are not those of the rounds")

    def _check_tickets(self, lines: Words) -> None:
        made = {cell: int(row[ISSUED]) for cell, row in self._touched()}
        for number, _, cell, index, clock in lines[:, 1:].tolist():
            known = 0 <= number < self.issued and -1 <= clock < made.get(cell, -1)
            if not known or not 0 <= index < self.points:
                raise ValueError("tickets that were never issued")


def _seat(row: Words, number: int) -> None:
    """Write nothing: the coins of a cell follow from its number and the stream's secret."""


def _gaps(counts: Words, values: Reals) -> Reals:
    """Return frequency of outcomes minus announced vector, for each point; 0 if unused."""
    visits = counts.sum(axis=1, keepdims=True)
    return np.where(visits > 0, counts / np.maximum(visits, 1) - values, 0.0)
