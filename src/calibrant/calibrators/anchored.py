"""Calibrators with an anchor: on one grid, on a grid that grows, and with a half-life."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from calibrant import bounds
from calibrant.bounds.game import harmonic_cap
from calibrant.calibrators.base import Account, Calibrator
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.grid import GRIDS, MAX_RESOLUTION, Grid
from calibrant.errors import InvalidInput
from calibrant.kernels import anchor
from calibrant.registry import calibrators


@calibrators.add("anchored")
@dataclass(frozen=True, kw_only=True)
class Anchored(Calibrator):
    """Hedge as ``foster_hart`` does, but let the forecast of the round pull at every cell.

    The score of each cell is its average gap plus ``c (q - g)``, where q is the forecast that came
    in and g the cell's value.  A rule that has learned nothing thus announces q, spread over the
    two grid points around it; and what it has learned moves the pair away from q only as
    far as it has to.  The pull fades once the mean forecasts have done better than q, and
    comes back when they do worse: the strength of the prior is learned.

    One bucket is enough, so that a grid of N + 1 points has N + 1 cells to learn, and not
    M (N + 1).

    Parameters
    ----------
    strength
        The strongest pull, c; 0 for none.
    patience
        How much mean forecasts must gain in all, in squared loss, for the pull to fall by a
        factor of e; at least 2.85.

    Notes
    -----
    With any pull the calibration bound is that of ``foster_hart`` plus ``c R0 / T``, and the mean
    forecast's squared loss exceeds q's by at most ``(h**2 + (1/T) sum_i H(n_i)) / c``, against any
    adversary that does not see the coin; the proof is at :func:`calibrant.bounds.anchored`.
    Late outcomes cost more, and less and less: :func:`calibrant.bounds.anchored_late`, for one
    bucket.  A prior is not needed and not used.

    References
    ----------
    The average gap: Foster (1999), Foster and Hart (2021).

    Examples
    --------
    >>> rule = Anchored(resolution=10)
    >>> state = rule.start(centre=0.32)
    >>> mixture = rule.forecast(state)
    >>> mixture.values, [round(w, 3) for w in mixture.weights]
    ((0.3, 0.4), [0.8, 0.2])
    >>> state = rule.update(state, 3, 1)
    >>> [round(w, 3) for w in rule.forecast(state).weights]
    [0.291, 0.709]
    """

    kernels = anchor.ANCHORED
    prior_in_cells = False
    reference = "Foster and Hart 2021, with an anchor"
    guarantee = "E C2 <= h^2 + (c R0 + K(1 + ln(T/K)))/T"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(1) near the anchor, at most O(K)"

    strength: float = 4.0
    patience: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        strength = check.real(self.strength, "strength", low=0.0, high=1e6, rule="in [0, 1e6]")
        patience = check.real(self.patience, "patience", low=2.85, rule="at least 2.85")
        object.__setattr__(self, "strength", strength)
        object.__setattr__(self, "patience", patience)

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C2."""
        sizes = rounds, self.lattice.cells, self.lattice.half_cell
        named: dict[str, Any] = {"buckets": buckets, "failure": failure, **self._settings}
        return bounds.anchored(*sizes, **named)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C2 with the counts, and the delays, that were seen."""
        h, table = self.lattice.half_cell, account.counts
        found = bounds.anchored_measured(table, h, failure=failure, **self._settings)
        return self._dearer(found, account)

    def _probable(self, account: Account, failure: float) -> bounds.Bound | None:
        return self._measured(account, failure)

    def _regret(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if self.strength == 0.0:
            return None
        h, table = self.lattice.half_cell, account.counts
        found = bounds.anchored_regret(table, h, failure=failure, **self._settings)
        return self._dearer(found, account, 1.0 / self.strength)

    def speaks(self, account: Account) -> bool:
        """Say whether there is a theorem: about late outcomes only in one bucket, of one grid."""
        if super().speaks(account):
            return True
        return self.waits and account.lag > 0 and account.buckets == 1

    @property
    def waits(self) -> bool:
        """Whether there is a theorem about late outcomes in one bucket."""
        return type(self) is Anchored

    def worst(
        self, account: Account, rounds: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C2 after so many rounds, with what delays cost that were seen."""
        found = self._foreseen(account, rounds, failure)
        if found is None or not self.speaks(account):
            return None
        most = min(rounds, account.counts.size)
        logs = most * harmonic_cap(rounds / most)
        return self._dearer(found, account, rounds=rounds, logs=logs)

    def _foreseen(
        self, account: Account, rounds: int, failure: float | None
    ) -> bounds.Bound | None:
        """Return the bound on C2 after so many rounds, without what delays cost besides."""
        return self._bound(rounds, account.buckets, account.prior, account.delay, failure)

    def _dearer(
        self,
        bound: bounds.Bound,
        account: Account,
        factor: float = 1.0,
        *,
        rounds: int | None = None,
        logs: float | None = None,
    ) -> bounds.Bound:
        """Return a bound with what it cost that outcomes were late, or that some never came."""
        if account.missing == 0:
            return bound
        told: dict[str, Any] = {"strength": self.strength, "patience": self.patience}
        told |= {"delay": account.delay, "lag": account.lag, "missing": account.missing}
        told["caution"] = account.caution
        used = int((account.counts.sum(-1) > 0).sum()) if rounds is None else account.buckets
        sums = float(bounds.harmonic(account.counts).sum()) if logs is None else logs
        cost = bounds.late_cost(rounds or account.rounds, sums, buckets=used, **told)
        return bounds.late_by(bound, factor * cost)

    @property
    def _settings(self) -> dict[str, float]:
        values = self.lattice.values
        end = max(float(values[0]), 1.0 - float(values[-1]))
        return {"strength": self.strength, "patience": self.patience, "end": end}

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write strength and patience into the header."""
        reals[[anchor.STRENGTH, anchor.IMPATIENCE]] = self.strength, 1.0 / self.patience

    def begin(self, block: Words, reals: Reals, prior: int, *where: Any) -> None:
        """Write a block before its first round, with the strongest pull."""
        super().begin(block, reals, prior, *where)
        reals[[anchor.PULL, anchor.TRUST]] = self.strength, 1.0


MAX_DOUBLINGS: Final = 7
"""A place has three bits for the width of its pair."""


@dataclass(frozen=True, kw_only=True)
class Finer(Anchored):
    """The anchored rule with room for a finer grid: ``resolution`` steps, each of them halved.

    Parameters
    ----------
    doublings
        How often a step can be halved.
    """

    nested: ClassVar[tuple[str, ...]] = ("endpoints",)
    """Grids that will do: those that have all points of their coarser versions."""
    most_steps: ClassVar[int] = MAX_RESOLUTION

    doublings: int = 5

    def __post_init__(self) -> None:
        check.choice(self.grid, "grid", GRIDS)
        if self.grid not in self.nested:
            listed = " or ".join(map(repr, self.nested))
            raise InvalidInput(f"grid must be {listed} to be refined, got {self.grid!r}")
        first = Grid(self.grid, self.resolution).resolution
        doublings = check.whole(self.doublings, "doublings", high=MAX_DOUBLINGS)
        if first << doublings > self.most_steps:
            most = self.most_steps >> doublings
            told = f"resolution must be at most {most} with {doublings} doublings"
            raise InvalidInput(f"{told}, got {first!r}")
        object.__setattr__(self, "doublings", doublings)
        super().__post_init__()
        object.__setattr__(self, "resolution", first)

    @functools.cached_property
    def lattice(self) -> Grid:
        """The finest grid."""
        return Grid(self.grid, self.resolution << self.doublings)


@calibrators.add("growing")
@dataclass(frozen=True, kw_only=True)
class Growing(Finer):
    """Play as ``anchored`` does, and double the resolution when a finer grid is worth it.

    A grid of N steps cannot announce better than 1/(2N) from the truth.  This rule begins with
    ``resolution`` steps and puts a point between each two as soon as what is left to learn costs
    less than that floor, ``K (1 + ln(T/K))/T <= 1/(4 N^2)`` with K = N + 1: after 361,299 outcomes
    for N = 20.  What was learned is kept, since the finer grid has all points of the coarser one.

    Parameters
    ----------
    resolution
        The first N.
    doublings
        How often it is doubled at most, up to 7; the state has room for the finest grid.
    grid
        ``"endpoints"``: the others do not have the points of their coarser versions.
    strength, patience
        As in ``anchored``.

    Notes
    -----
    The bound needs neither T nor N beforehand: as long as doublings are left it falls like
    ``(ln T/T)^(2/3)``, against any adversary that does not see the coin; the proof is at
    :func:`calibrant.bounds.growing`.  Each bucket grows by its own outcomes.  Nothing is said about
    late outcomes.  A prior is not needed and not used.

    References
    ----------
    The average gap: Foster (1999), Foster and Hart (2021).

    Examples
    --------
    >>> rule = Growing(resolution=1, doublings=2)
    >>> state = rule.start(centre=0.3)
    >>> rule.forecast(state).values
    (0.0, 1.0)
    >>> for k in range(30):
    ...     state = rule.update(state, rule.forecast(state).indices[k % 2], k % 2)
    >>> rule.forecast(state).values
    (0.0, 0.5)
    """

    kernels = anchor.GROWING
    reference = "Foster and Hart 2021, with an anchor and a grid that grows"
    guarantee = "E C2 <= (c R0 + sum_t h_t^2 + K(1 + ln(T/K)))/T, without a floor while N grows"

    def _bound(
        self, rounds: int, buckets: int, prior: int, delay: int, failure: float | None = None
    ) -> bounds.Bound | None:
        """Return the bound on C2."""
        named: dict[str, Any] = {"strength": self.strength, "patience": self.patience}
        return bounds.growing(rounds, *self._sizes, buckets=buckets, failure=failure, **named)

    def _measured(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on C2 with the counts that were seen."""
        named: dict[str, Any] = {"strength": self.strength, "patience": self.patience}
        found = bounds.growing_measured(account.counts, *self._sizes, failure=failure, **named)
        return self._dearer(found, account)

    def _regret(self, account: Account, failure: float | None = None) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if self.strength == 0.0:
            return None
        named: dict[str, Any] = {"strength": self.strength, "patience": self.patience}
        found = bounds.growing_regret(account.counts, *self._sizes, failure=failure, **named)
        return self._dearer(found, account, 1.0 / self.strength)

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.resolution, self.doublings

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of every rule, and that no step is wider than the first."""
        return super().limits() | {anchor.STEP: (0, self.doublings)}

    def begin(self, block: Words, reals: Reals, prior: int, *where: Any) -> None:
        """Write a block before its first round, with the widest step."""
        super().begin(block, reals, prior, *where)
        block[anchor.STEP] = self.doublings
        block[anchor.NEXT] = anchor.due(self.resolution) if self.doublings else 0


UNITS: Final = ("rounds", "time")
ABOVE_ZERO: Final = float(np.nextafter(0.0, 1.0))


@calibrators.add("fading")
@dataclass(frozen=True, kw_only=True)
class Fading(Anchored):
    """Play as ``anchored`` does, and forget: a round counts half after each half-life.

    What is remembered of a grid point is its average gap over recent visits.  So the draws follow
    a world that changes, and what went wrong long ago is not made up for any more: that is the
    price.

    Parameters
    ----------
    half_life
        After how long a round counts half.
    unit
        ``"rounds"``: counted in outcomes learned in the bucket.  ``"time"``: in units of the
        ``time`` of the forecasts, which must then be given; an outcome that comes late counts by
        its forecast's age.
    resolution, grid, strength, patience
        As in ``anchored``.

    Notes
    -----
    No theorem about the long run: against an adversary, errors that were forgotten may add up.
    The certificate quotes none, and shows what was measured over all rounds.  What falls in
    practice is the error of the worst stretch, as
    :func:`calibrant.metrics.windowed_calibration_error` measures it.

    A corrected outcome moves the average by the share that its round still has.

    References
    ----------
    The average gap: Foster (1999), Foster and Hart (2021).  Fading it leaves its sign alone.

    Examples
    --------
    >>> rule = Fading(resolution=10, half_life=1.0)
    >>> state = rule.start(centre=0.32)
    >>> for outcome in (1, 1, 0):
    ...     state = rule.update(state, rule.forecast(state).indices[0], outcome)
    >>> rule.forecast(state).indices
    (3, 4)
    """

    kernels = anchor.FADING
    reference = "Foster and Hart 2021, with an anchor and a half-life"
    guarantee = "none about the long run; small errors in every window are measured, not proved"
    assumption = "none is enough"

    half_life: float = 1000.0
    unit: str = "rounds"

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "a finite number above 0"
        half_life = check.real(self.half_life, "half_life", low=ABOVE_ZERO, rule=rule)
        object.__setattr__(self, "half_life", half_life)
        check.choice(self.unit, "unit", UNITS)

    @property
    def timed(self) -> bool:
        """Whether rounds fade with the time of their forecasts."""
        return self.unit == "time"

    # No theorem survives forgetting, however soon outcomes come.
    late = True
    _bound, _measured = Calibrator._bound, Calibrator._measured
    _probable, _regret = Calibrator._probable, Calibrator._regret

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write strength, patience and half-life into the header."""
        super().set_parameters(words, reals, buckets)
        reals[anchor.HALF_LIFE] = self.half_life
        words[anchor.TIMED] = self.timed
