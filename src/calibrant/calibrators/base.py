"""What every calibrator is: parameters, kernels over flat state, and a bound."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.bounds import Bound
from calibrant.bounds.game import estimated
from calibrant.calibrators.arena import Arena
from calibrant.calibrators.layout import layout_of
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.grid import GRIDS, Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import InvalidInput
from calibrant.kernels.anchor import CAUTION
from calibrant.kernels.layout import BLOCKS, CELLS, POSITION, ROWS, SCRATCH, TABLE, WIDTH
from calibrant.kernels.rounds import Program, assemble
from calibrant.kernels.rule import Rule

MAX_BUCKETS = 1 << 20
MAX_PRIOR = 1 << 20


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
    blocks
        The words of each bucket's block.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most.
    lag, missing
        The most forecasts between one and its outcome, and the most outcomes that were missing at
        a forecast; 0 where that was not counted.
    caution
        After how many crowds of late outcomes a rule with an anchor believes these by half.
    swaps
        Whether a transform in front may ask for the first grid after a swap of models.
    fallbacks
        Outcomes that were learned besides, of rounds in which the raw forecast was announced.
    """

    counts: Words
    ones: Words
    prior: int
    centres: Reals
    blocks: Words
    delay: int = 0
    lag: int = 0
    missing: int = 0
    caution: float = CAUTION
    swaps: bool = False
    fallbacks: int = 0

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
    kernels: ClassVar[Rule]
    prior_in_cells: ClassVar[bool] = True
    most_rounds: ClassVar[int] = (1 << 62) - 1
    """How many rounds a cell can count."""
    late: ClassVar[bool] = False
    """Whether the rule's theorems say something about late outcomes."""
    reference: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str] = "the outcome is chosen without sight of the round's coin"
    cost: ClassVar[str] = "O(1) a round, O(log K) after late outcomes"

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

    @functools.cached_property
    def program(self) -> Program:
        """All steps of the rule on its own."""
        return assemble(self.kernels)

    @property
    def timed(self) -> bool:
        """Whether the rule needs to know when forecasts were made."""
        return False

    @property
    def doublings(self) -> int:
        """How often the step between grid points in use can be halved."""
        return 0

    @property
    def weighted(self) -> bool:
        """Whether learning needs the mixture, and not only the draw."""
        return False

    def bound(
        self,
        rounds: int,
        *,
        buckets: int = 1,
        prior: int = 0,
        delay: int = 0,
        failure: float | None = None,
        swaps: bool = False,
    ) -> Bound | None:
        """Return what the theorem promises after ``rounds`` rounds, or None without one.

        With ``delay`` so many outcomes may be outstanding when a forecast is made; most
        theorems say nothing about that.  With ``failure`` the promise is about a single run, and
        may fail with that probability.  With ``swaps`` a transform in front may ask for the first
        grid after a swap of models, where there is one.
        """
        if delay and not self.late:
            return None
        bound = self._bound_with_swaps if swaps else self._bound
        return bound(rounds, buckets, prior, delay, failure)

    def speaks(self, account: Account) -> bool:
        """Say whether the rule's theorems are about the delays of an account."""
        return self.late or account.delay == 0

    def worst(self, account: Account, rounds: int, failure: float | None = None) -> Bound | None:
        """Return what is promised after so many rounds whose outcomes come as those at hand did."""
        told: dict[str, Any] = {"prior": account.prior, "delay": account.delay}
        return self.bound(rounds, buckets=account.buckets, failure=failure, **told)

    def measured(self, account: Account) -> Bound | None:
        """Return the bound with what was counted put in, or None where there is none.

        Counts are random, so this estimates a bound on the expectation, and is none.
        """
        return estimated(self._measured(account)) if self.speaks(account) else None

    def regret(self, account: Account) -> Bound | None:
        """Return a bound of the rule's own on the squared loss beyond the raw forecast's.

        An estimate as well, from what was counted.
        """
        return estimated(self._regret(account)) if self.speaks(account) else None

    def probable(self, account: Account, failure: float) -> Bound | None:
        """Return the bound for the very counts at hand, which fails with that probability."""
        return self._probable(account, failure) if self.speaks(account) else None

    def probable_regret(self, account: Account, failure: float) -> Bound | None:
        """Return what :meth:`regret` says about the very counts at hand."""
        return self._regret(account, failure) if self.speaks(account) else None

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> Bound | None:
        return None

    def _bound_with_swaps(self, *told: Any) -> Bound | None:
        return self._bound(*told)

    def _probable(self, account: Account, failure: float) -> Bound | None:
        return self._bound(account.rounds, account.buckets, account.prior, account.delay, failure)

    def _measured(self, account: Account, failure: float | None = None) -> Bound | None:
        return None

    def _regret(self, account: Account, failure: float | None = None) -> Bound | None:
        return None

    def start(self, *, prior: int = 0, centre: Fraction | float = 0.5) -> Words:
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

    def forecast(self, state: Words) -> Mixture:
        """Return the mixture that the rule announces in ``state``."""
        words = self._opened(state).words()
        low, side, weight = self._drawn(words, 0.0)
        if self.kernels.full_support:
            return self.mixture(tuple(self.law(words)))
        step = 1 << (side >> WIDTH)
        indices = (low,) if weight == 1.0 else (low, low + step)
        weights = (1.0,) if weight == 1.0 else (weight, 1.0 - weight)
        return Mixture(indices, weights, tuple(float(self.lattice.values[k]) for k in indices))

    def update(self, state: Words, index: int, outcome: int) -> Words:
        """Return the state after the drawn ``index`` met ``outcome``; ``state`` is left alone."""
        mixture, told = self.forecast(state), check.outcome(outcome)
        if index not in mixture.indices:
            listed = ", ".join(map(str, mixture.indices))
            raise InvalidInput(f"index must be one of the mixture's {listed}, got {index!r}")
        arena = self._opened(state)
        words = arena.words()
        cell, side, weight = self._drawn(words, float(index != mixture.indices[0]))
        if self.kernels.full_support:
            cell, side = index, 0
        at = words[ROWS] + words[BLOCKS]
        self.kernels.update(words, words, at, words[TABLE], cell, side, weight, told)
        words[at + POSITION] = index
        after = arena.flat()
        after.flags.writeable = False
        return after

    def mixture(self, law: tuple[float, ...]) -> Mixture:
        """Return a law over all grid points as a mixture over those it may draw."""
        indices = tuple(k for k, weight in enumerate(law) if weight > 0.0)
        values = self.lattice.values
        return Mixture(
            indices, tuple(law[k] for k in indices), tuple(float(values[k]) for k in indices)
        )

    def law(self, words: list[Any]) -> list[float]:
        """Return the weights that the last draw left in the scratch room."""
        return list(words[words[SCRATCH] : words[SCRATCH] + words[CELLS]])

    def flat(self, buckets: int, *, prior: int, centres: list[Fraction]) -> Words:
        """Return the flat state of fresh blocks; see :mod:`calibrant.kernels.layout`."""
        layout = layout_of(self, buckets, prior, tuple(centres))
        return layout.alone.copy()

    def scratch(self, cells: int) -> int:
        """Return how many words of scratch room the rule needs."""
        return 0

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return between which numbers words of a block must be, where the parameters say more."""
        return {POSITION: (0, self.lattice.cells - 1)}

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write the rule's own parameters into the header."""

    def begin(self, block: Words, reals: Reals, prior: int, centre: Fraction, scale: int) -> None:
        """Write a block before its first round.

        Each grid point was announced ``prior`` times, with mean outcome ``centre``.
        """
        grid = self.lattice
        block[POSITION] = grid.nearest(centre.numerator, centre.denominator)
        if prior and self.prior_in_cells:
            cells = self.cells_of(block)
            cells[:, 0] = prior * (int(centre * scale) - numerators_at(grid, scale))
            cells[:, 1] = prior

    def tallies_of(self, blocks: Words, scale: int) -> tuple[Words, Words]:
        """Return rounds and ones of each block (row) and grid point (column).

        ``blocks`` are what was learned: the words of blocks less those of fresh ones.
        """
        cells = self.cells_of(blocks)
        gaps, counts = cells[..., 0], cells[..., 1]
        return counts, (gaps + counts * numerators_at(self.lattice, scale)) // scale

    def counted(self, now: Any, begun: Any, value: int, scale: int) -> tuple[int, int]:
        """Return rounds and ones of one cell, by its words and those of a fresh row.

        ``value`` is the grid point times the scale of gaps.
        """
        count = now[1] - begun[1]
        return count, (now[0] - begun[0] + count * value) // scale

    def worst_blocks(self, counts: Words, *, swaps: bool = False) -> Any:
        """Return blocks after so many visits of their cells, as far as bounds look at them.

        ``swaps`` is that of an :class:`Account`.
        """
        return counts

    def cells_of(self, block: NDArray[Any]) -> NDArray[Any]:
        """Return the cells of a block, a cell a row; of several blocks, a table each."""
        first, size = len(self.kernels.head), len(self.kernels.cell)
        cells = (block.shape[-1] - first) // size
        return block[..., first:].reshape(*block.shape[:-1], cells, size)

    def _opened(self, state: Words) -> Arena:
        """Return a copy of a state to work on."""
        return Arena(layout_of(self, 1), state.copy())

    def _drawn(self, words: list[Any], coin: float) -> tuple[int, int, float]:
        at = words[ROWS] + words[BLOCKS]
        return self.kernels.draw(words, words, at, words[CELLS], words[TABLE], coin)


def numerators_at(grid: Grid, scale: int) -> Words:
    """Return the grid's values times ``scale``, which their denominator divides."""
    return np.array(grid.numerators, np.int64) * (scale // grid.denominator)


def check_rate(rule: Any) -> None:
    """Check the learning rate of a rule's settings, and the horizon that one is made for."""
    if rule.eta is not None:
        positive = check.real(rule.eta, "eta", low=1e-12, rule="a finite number above 0")
        object.__setattr__(rule, "eta", positive)
    if rule.horizon is not None:
        object.__setattr__(rule, "horizon", check.whole(rule.horizon, "horizon", low=1))
