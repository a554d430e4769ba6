"""What every calibrator is: parameters, kernels over flat state, and a bound."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.bounds import Bound
from calibrant.calibrators.storage import Storage
from calibrant.core import check
from calibrant.core.grid import GRIDS, Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import (
    BLOCKS,
    BUCKETS,
    CELLS,
    EDGES,
    FRESH,
    HEAD,
    HEADER,
    HOME,
    KEY,
    LAG,
    MIDDLE,
    POSITION,
    SCALE,
    SCRATCH,
    STRIDE,
    TABLE,
    TAIL,
    VALUES,
)
from calibrant.kernels.rounds import Program

__all__ = ["MAX_BUCKETS", "MAX_PRIOR", "Account", "Calibrator"]

MAX_BUCKETS = 1 << 20
MAX_PRIOR = 1 << 20
MAX_GAP = 1 << 61
"""Scaled gaps stay below it, so that four of them fit into 63 bits."""


@dataclass(frozen=True)
class Account:
    """What a run amounts to: the counts that every measured quantity follows from.

    Attributes
    ----------
    counts, ones
        Rounds, and outcomes that were one, for each bucket (row) and grid point (column).
    prior
        Pseudo-rounds with which each grid point of each bucket started.
    centres
        The middles of the buckets.
    words
        The whole state.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most.
    """

    counts: NDArray[np.int64]
    ones: NDArray[np.int64]
    prior: int
    centres: NDArray[np.float64]
    words: NDArray[np.int64]
    delay: int = 0

    @functools.cached_property
    def rounds(self) -> int:
        """Outcomes learned."""
        return int(self.counts.sum())

    @property
    def buckets(self) -> int:
        """Number of buckets."""
        return len(self.counts)


@dataclass(frozen=True, kw_only=True)
class Calibrator:
    """A rule that turns past outcomes into calibrated forecasts.

    Parameters
    ----------
    resolution
        Number of steps N of the grid; the floor of every bound is half a step.
    grid
        ``"endpoints"`` (default), ``"midpoints"``, ``"logit"`` or ``"arcsine"``;
        see :class:`calibrant.core.grid.Grid`.

    Notes
    -----
    A rule is immutable and its methods are pure: :meth:`start`, :meth:`forecast`
    and :meth:`update` take and return states, read-only arrays of 64-bit words.
    :class:`calibrant.Recalibrator` runs the same kernels in place.
    """

    name: ClassVar[str]
    program: ClassVar[Program]
    cell_words: ClassVar[int] = 2
    prior_in_cells: ClassVar[bool] = True
    real_parameters: ClassVar[tuple[int, ...]] = ()
    reference: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    cost: ClassVar[str]

    resolution: int = 20
    grid: str = "endpoints"

    def __post_init__(self) -> None:
        check.choice(self.grid, "grid", GRIDS)
        object.__setattr__(self, "resolution", self.lattice.resolution)

    @functools.cached_property
    def lattice(self) -> Grid:
        """The grid itself."""
        return Grid(self.grid, self.resolution)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def weighted(self) -> bool:
        """Whether learning needs the mixture, and not only the draw."""
        return False

    def bound(
        self, rounds: int, *, buckets: int = 1, prior: int = 0, delay: int = 0
    ) -> Bound | None:
        """Return what the theorem promises after ``rounds`` rounds, or None without one.

        With ``delay`` so many outcomes may be outstanding when a forecast is made; most
        theorems say nothing about that.
        """
        return None

    def measured(self, account: Account) -> Bound | None:
        """Return the bound tightened by what was counted, or None where there is none."""
        return None

    def regret(self, account: Account) -> Bound | None:
        """Return a bound of the rule's own on the squared loss beyond the raw forecast's."""
        return None

    def start(self, *, prior: int = 0, centre: Fraction | float = 0.5) -> NDArray[np.int64]:
        """Return the state before the first round.

        ``prior`` pseudo-rounds a grid point, with mean outcome ``centre``, say where to
        begin.  The centre is taken to the nearest fraction with a denominator below 2**16.
        """
        strength = check.whole(prior, "prior", high=MAX_PRIOR)
        check.probability(centre, "centre")
        middle = Fraction(centre).limit_denominator(1 << 16)
        words = self.flat(1, prior=strength, centres=[middle])
        words.flags.writeable = False
        return words

    def forecast(self, state: NDArray[np.int64]) -> Mixture:
        """Return the mixture that the rule announces in ``state``."""
        words = Storage(self, state.copy()).words()
        at, cells, table = words[BLOCKS], words[CELLS], words[TABLE]
        cell, side, weight = self.program.draw(words, words, at, cells, table, 0.0)
        if self.program.many:
            return self.mixture(tuple(self.law(words)))
        low = cell - side
        return self.mixture_of_pair(low, weight)

    def update(self, state: NDArray[np.int64], index: int, outcome: int) -> NDArray[np.int64]:
        """Return the state after the drawn ``index`` met ``outcome``; ``state`` is left alone."""
        mixture = self.forecast(state)
        if index not in mixture.indices:
            listed = ", ".join(map(str, mixture.indices))
            raise InvalidInput(f"index must be one of the mixture's {listed}, got {index!r}")
        storage = Storage(self, state.copy())
        words = storage.words()
        at, cells, table = words[BLOCKS], words[CELLS], words[TABLE]
        _, _, weight = self.program.draw(words, words, at, cells, table, 0.0)
        side = 0 if self.program.many else index - mixture.indices[0]
        self.program.update(words, words, at, table, index, side, weight, check.outcome(outcome))
        words[at + POSITION] = index
        after = storage.flat()
        after.flags.writeable = False
        return after

    def mixture(self, law: tuple[float, ...]) -> Mixture:
        """Return a law over all grid points as a mixture over those it may draw."""
        indices = tuple(k for k, weight in enumerate(law) if weight > 0.0)
        values = self.lattice.values
        return Mixture(
            indices,
            tuple(law[k] for k in indices),
            tuple(float(values[k]) for k in indices),
        )

    def mixture_of_pair(self, low: int, weight: float) -> Mixture:
        """Return the pair ``low``, ``low + 1`` as a mixture; one point if ``weight`` is one."""
        values = self.lattice.values
        if weight == 1.0:
            return Mixture((low,), (1.0,), (float(values[low]),))
        pair = (float(values[low]), float(values[low + 1]))
        return Mixture((low, low + 1), (weight, 1.0 - weight), pair)

    def law(self, words: list[Any]) -> list[float]:
        """Return the weights that the last draw left in the scratch room."""
        return words[words[SCRATCH] : words[SCRATCH] + words[CELLS]]

    def flat(
        self, buckets: int, *, prior: int, centres: list[Fraction], keys: list[int] | None = None
    ) -> NDArray[np.int64]:
        """Return the flat state of fresh blocks; see :mod:`calibrant.kernels.layout`."""
        grid = self.lattice
        scale = math.lcm(grid.denominator, *{c.denominator for c in centres})
        check.whole(prior, "prior", high=MAX_GAP // scale)
        edges = HEADER
        table = edges + buckets + 2
        scratch = table + 2 * grid.cells + VALUES + 1
        blocks = scratch + self._scratch(grid.cells)
        stride = HEAD + self.cell_words * grid.cells + TAIL
        words = np.zeros(blocks + buckets * stride, np.int64)
        reals = words.view(np.float64)
        words[[BUCKETS, CELLS, SCALE, EDGES]] = buckets, grid.cells, scale, edges
        words[[TABLE, SCRATCH, BLOCKS, STRIDE]] = table, scratch, blocks, stride
        reals[edges : edges + buckets] = np.arange(buckets) / buckets
        reals[edges + buckets] = 2.0
        numerators = np.array(grid.numerators) * (scale // grid.denominator)
        words[table : table + grid.cells] = numerators
        # Beyond the ends a half cell is as wide as the whole range, so slack rules stop there.
        words[table - 1] = numerators[0] - 2 * scale
        words[table + grid.cells] = numerators[-1] + 2 * scale
        values = table + grid.cells + VALUES
        reals[values : values + grid.cells] = grid.values
        reals[[values - 1, values + grid.cells]] = np.inf, -np.inf
        reals[[MIDDLE, LAG]] = float(centres[0]), 1.0
        self._set_parameters(words, reals, buckets)
        for j, centre in enumerate(centres):
            block = words[blocks + j * stride : blocks + (j + 1) * stride]
            block[POSITION] = grid.nearest(centre.numerator, centre.denominator)
            block[HOME] = block[POSITION]
            block[KEY] = keys[j] if keys else 0
            block[FRESH] = -1
            middle = int(centre * scale)
            self._set_block(block, block.view(np.float64), prior, middle, numerators, scale)
        return words

    def _scratch(self, cells: int) -> int:
        return 0

    def _set_parameters(
        self, words: NDArray[np.int64], reals: NDArray[np.float64], buckets: int
    ) -> None:
        """Write the rule's own parameters into the header."""

    def _set_block(
        self,
        words: NDArray[np.int64],
        reals: NDArray[np.float64],
        prior: int,
        centre: int,
        numerators: NDArray[np.int64],
        scale: int,
    ) -> None:
        """Write the prior: each grid point was announced ``prior`` times, with mean ``centre``."""
        step, end = self.cell_words, HEAD + self.cell_words * len(numerators)
        words[HEAD:end:step] = prior * (centre - numerators)
        words[HEAD + 1 : end : step] = prior
