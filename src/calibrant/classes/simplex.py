"""The paper's construction for several classes: calibrated vectors from a grid over the simplex."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from calibrant.bounds.game import azuma, harmonic, harmonic_cap, probable
from calibrant.calibrators.arena import Arena
from calibrant.classes.base import ClassRecalibrator
from calibrant.classes.certificate import LARGEST, SimplexCertificate
from calibrant.classes.roster import Roster
from calibrant.classes.run import ClassRun
from calibrant.classes.simplex_spec import LIMIT, SimplexSpec, shared_spec
from calibrant.classes.ticket import ClassIssuer, SimplexTicket
from calibrant.classes.vectors import nearest
from calibrant.classes.version1 import migrated_simplex
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.errors import ForeignTicket, RepeatedTicket, needed
from calibrant.kernels.alone import count_overtaken
from calibrant.kernels.crowd import count_forecast
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.intact import Kept, Spans
from calibrant.recalibrate.promise import FAILURE, first_round
from calibrant.recalibrate.secret import Secret, coin_at, fingerprint, secret_of
from calibrant.recalibrate.stream import came_between

ALL: Final = -1
"""The number of the row that counts the rounds of all cells."""
DUST: Final = 1e-9
"""Weights below this are what the solver rounds off."""


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
    seed, key, secret, max_open
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
    grid point g nearest to q has ``2 <E, q - g> - |E|**2 <= |q - g|**2 <= d``, so such a mixture
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

    __slots__ = ("_spec", "_undo", "_values")

    _undo: Kept

    kind: ClassVar = "simplex"
    _tickets: ClassVar[Any] = SimplexTicket
    migrations: ClassVar[dict[int, Migration]] = ClassRecalibrator.migrations | {
        1: migrated_simplex
    }

    def __init__(
        self,
        classes: int,
        *,
        resolution: int = 10,
        cells: int = 5,
        limit: int = LIMIT,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
    ) -> None:
        solver()
        spec = SimplexSpec(classes, resolution, cells, limit)
        self._begin(spec, secret_of(seed, key, secret), max_open)

    def _begin(self, spec: SimplexSpec, secret: Secret, max_open: Any) -> None:
        self._spec = spec = shared_spec(spec)
        self._classes, self._values, self._secret = spec.classes, spec.values, secret
        # The row that counts every round belongs to no cell.
        arena = Arena(spec.layout)
        issuer = ClassIssuer(fingerprint(secret, self.kind, spec.classes), self._values)
        # The coins of a cell follow from its number and the stream's secret: rows are alike.
        roster = Roster(arena, ALL, len(spec.places) - 1)
        self._enter(roster, issuer, "dqqq", max_open)

    @property
    def spec(self) -> SimplexSpec:
        """What this stream is, apart from its state."""
        return self._spec

    @property
    def resolution(self) -> int:
        """Number of parts into which the grid divides 1."""
        return self._spec.resolution

    @property
    def cells(self) -> int:
        """Number of parts into which raw forecasts divide 1."""
        return self._spec.cells

    @property
    def points(self) -> int:
        """Number of grid points."""
        return self._spec.points

    # ---------------------------------------------------------------- a round

    def _row_of(self, cell: int) -> Words:
        """Return the words of a cell, to be written to."""
        start = self._roster.place(cell)
        return self._arena.flat()[start : start + len(self._arena.layout.fresh)]

    def _look(self, raw: Reals) -> SimplexTicket:
        spec, number, values = self._spec, self.issued, self._values
        cell = spec.places[nearest(raw, spec.cells)]
        row = self._row_of(cell)
        counts, clock = self._arena.layout.blocks_of(row), int(row[ISSUED])
        table = prices(_gaps(counts, values), values)
        distances = ((values - raw) ** 2).sum(axis=1)
        points, weights = hedge(table, distances, spec.cover)
        u = coin_at(self._secret, spec.coins, cell, clock)
        fallen = int(np.searchsorted(np.cumsum(weights), u, "right"))
        index = int(points[min(fallen, len(points) - 1)])
        head, mixture = (self._counter.whose, number, number), (values[points], weights)
        return SimplexTicket(head, (cell, index, clock), values[index], raw, mixture)

    def _issue(self, raw: Reals) -> SimplexTicket:
        ticket = self._look(raw)
        self._undo = self._kept(self._spans(ticket))
        self._count(ticket.cell)
        return ticket

    def _take_back(self, number: int, most: int) -> None:
        # All rounds are counted first: without a forecast there, what is kept is older.
        if self._own(ISSUED) != number:
            self._put_back(self._undo)

    def _spans(self, ticket: SimplexTicket) -> Spans:
        size = len(self._arena.layout.fresh)
        cells = [self._roster.place(ticket.cell)] if ticket.cell in self._roster else []
        return [(row, row + size) for row in (self._row, *cells)]

    def _count(self, cell: int) -> None:
        """Count a forecast in a cell."""
        row = self._row_of(cell)
        count_forecast(self._arena.flat(), self._row)
        row[ISSUED] += 1

    def _learn(self, ticket: SimplexTicket, outcome: int) -> None:
        kept = self._kept(self._spans(ticket))
        try:
            self._learn_there(ticket, outcome)
        except BaseException:
            self._put_back(kept)
            raise

    def _learn_there(self, ticket: SimplexTicket, outcome: int) -> None:
        row, own = self._row_of(ticket.cell), self._arena.flat()[self._row :]
        self._arena.layout.blocks_of(row)[ticket.index, outcome] += 1
        row[ROUNDS] += 1
        own[ROUNDS] += 1
        own[LONGEST_LAG] = max(own[LONGEST_LAG], own[ISSUED] - 1 - ticket.number)

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
        return self._flip(self._secret_at(ticket.number), ticket.cell, ticket)

    def _commit(self, seen: SimplexTicket, rounds: int, outcome: int) -> None:
        if seen.clock != self._row_of(seen.cell)[ISSUED]:
            raise came_between("a forecast in the same cell")
        kept = self._kept(self._spans(seen))
        try:
            if rounds != self.rounds:
                count_overtaken(self._arena.flat(), self._row, rounds)
            seen._number = self.issued
            self._count(seen.cell)
            self._learn_there(seen, outcome)
        except BaseException:
            self._put_back(kept)
            raise

    def _run(self, rows: Reals, drawn: Reals, mean: Reals, first: int, left: Pending) -> ClassRun:
        return ClassRun(drawn, mean, first, pending=left)

    # ------------------------------------------------------------------ state

    def certificate(self, failure: float = FAILURE) -> SimplexCertificate:
        """Return what was measured so far, and the theorem's bound beside it.

        What is said to hold about this very run may fail with probability ``failure``.
        """
        chance = probable(failure)
        with self._gate:
            waiting, rounds = len(self._counter), self.rounds
            told = rounds, waiting, self.issued - rounds - waiting
            seeded = self._secret.seeded
            if rounds == 0:
                return SimplexCertificate(*told, 0.0, 0.0, None, failure=chance, seeded=seeded)
            counts = [self._arena.layout.blocks_of(row) for _, row in self._touched()]
            whole = sum(counts, np.zeros_like(self._values, np.int64))
            each = sum(map(self._squares, counts))
            c2, c2_cells = self._squares(whole) / rounds, each / rounds
            bound = self._bound(counts)
            promise = self._promise(bound, len(counts), chance)
            return SimplexCertificate(*told, c2, c2_cells, bound, *promise, seeded=seeded)

    def _promise(
        self, bound: float | None, cells: int, failure: float
    ) -> tuple[float | None, float, int | None]:
        """Return what is sure of this run, how likely it may fail, and from when on there is such.

        A round adds ``2 <E, v> - |E|**2 = |v|**2 - |v - E|**2`` to the potential, apart from what
        vanishes; that lies in [-2, 2] and has at most the mean that the bound allows for, so that
        Azuma's inequality adds twice what it says about [-1, 1].
        """
        chance = probable(failure)
        if bound is None:
            return None, chance, None
        sure = bound + 2.0 * azuma(self.rounds, chance)
        if sure < LARGEST:
            return sure, chance, None

        def says(rounds: int) -> bool:
            visited = min(rounds, cells * self.points)
            paid = 2.0 * visited * harmonic_cap(rounds / visited) / rounds
            return self._spec.cover + paid + 2.0 * azuma(rounds, chance) < LARGEST

        return None, chance, first_round(says, self.rounds)

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
        return self._spec.cover + 2.0 * paid / self.rounds

    def _settings(self) -> dict[str, Any]:
        spec = self._spec
        return {"resolution": spec.resolution, "cells": spec.cells, "limit": spec.limit}

    @property
    def _throws(self) -> str:
        return self._spec.coins

    def _set_up(self, document: Document, secret: Secret) -> None:
        s = document.settings
        names = ("classes", "resolution", "cells", "limit", "coins")
        self._begin(SimplexSpec(*(s[name] for name in names)), secret, s["max_open"])

    def _check_rows(self) -> None:
        rows, blocks_of = self._touched(), self._arena.layout.blocks_of
        self._check_sums(rows, "cells")
        if any(blocks_of(row).sum() != row[ROUNDS] for _, row in rows):
            raise ValueError("counts that are not those of the rounds")

    def _check_tickets(self, lines: Words) -> None:
        made = {cell: int(row[ISSUED]) for cell, row in self._touched()}
        for number, _, cell, index, clock in lines[:, 1:].tolist():
            known = 0 <= number < self.issued and -1 <= clock < made.get(cell, -1)
            if not known or not 0 <= index < self.points:
                raise ValueError("tickets that were never issued")


def _gaps(counts: Words, values: Reals) -> Reals:
    """Return frequency of outcomes minus announced vector, for each point; 0 if unused."""
    visits = counts.sum(axis=1, keepdims=True)
    return np.where(visits > 0, counts / np.maximum(visits, 1) - values, 0.0)


def solver() -> Any:
    """Return SciPy's ``linprog``, or say what to install."""
    told = "a grid over the simplex needs scipy"
    return needed("scipy.optimize", told, "classes").linprog


def prices(gaps: Reals, values: Reals) -> Reals:
    """Return by how much the potential may grow, for each grid point i and outcome y.

    With E_i the average gap and g_i the value of point i, it is
    ``2 <E_i, e_y - g_i> - |E_i|**2``: what a round at i with outcome y adds to
    ``sum_i |S_i|**2 / n_i``, apart from a term that vanishes as i is announced more often.

    >>> prices(np.array([[0.1, -0.1]]), np.array([[0.5, 0.5]])).round(3).tolist()
    [[0.18, -0.22]]
    """
    held = (gaps * values).sum(axis=1, keepdims=True)
    return np.asarray(2.0 * (gaps - held) - (gaps**2).sum(axis=1, keepdims=True))


def hedge(table: Reals, distances: Reals, allowed: float) -> tuple[Words, Reals]:
    """Return the points to mix, and their weights, that stay closest to the raw forecast.

    Among all mixtures whose expected price (``table``: a point a row, an outcome a column) is at
    most ``allowed`` whichever outcome comes, take one with the least expected distance.  There
    is such a mixture wherever every distribution of outcomes has a point that is cheap enough,
    by von Neumann's minimax theorem.  At most as many points are mixed as there are outcomes.

    Examples
    --------
    >>> table = np.array([[0.4, -0.4], [-0.4, 0.4], [0.0, 0.0]])
    >>> points, weights = hedge(table, np.array([0.0, 0.1, 0.9]), 0.0)
    >>> points.tolist(), weights.round(6).tolist()
    ([0, 1], [0.5, 0.5])
    """
    best = int(distances.argmin())
    if table[best].max() <= allowed:
        return np.array([best]), np.ones(1)
    limits, shares = np.full(table.shape[1], allowed), np.ones((1, len(table)))
    points, weights = _support(_solved(distances, table.T, limits, shares, (0.0, None)))
    if len(points) > table.shape[1]:
        # All outcomes are at the limit: some mixture of fewer of these points is as cheap.
        own, weights = _minimax(table[points])
        points = points[own]
    return points, weights


def _minimax(table: Reals) -> tuple[Words, Reals]:
    """Return the mixture whose dearest outcome is as cheap as possible: a vertex, so few points."""
    points, outcomes = table.shape
    limited = np.hstack([table.T, -np.ones((outcomes, 1))])
    shares, free = np.append(np.ones(points), 0.0)[None], [(0.0, None)] * points + [(None, None)]
    costs = np.append(np.zeros(points), 1.0)
    return _support(_solved(costs, limited, np.zeros(outcomes), shares, free)[:-1])


def _solved(costs: Reals, limited: Reals, limits: Reals, shares: Reals, within: Any) -> Any:
    told = {"A_ub": limited, "b_ub": limits, "A_eq": shares, "b_eq": [1.0], "bounds": within}
    return solver()(costs, **told, method="highs-ds").x


def _support(weights: Reals) -> tuple[Words, Reals]:
    points = np.flatnonzero(weights > DUST)
    return points, weights[points] / weights[points].sum()
