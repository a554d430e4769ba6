"""Announce grid points, or numbers, that no test catches out: rules without buckets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from calibrant.core import check
from calibrant.kernels.coin import coin
from calibrant.kernels.layout import COUNT, SHARE
from calibrant.kernels.portable import log, turn
from calibrant.kernels.transforms import aosa, defensive, interval, regret
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, rules
from calibrant.transforms.buckets import FINEST, seeded, steps


@transforms.add("aosa")
@dataclass(frozen=True)
class AOSA(Transform):
    """Announce grid points that are close, round by round, to perfectly calibrated ones.

    Deterministic, and safe against an adversary who sees everything.  Among the grid points that
    the rule allows it takes one near the raw forecast.

    Parameters
    ----------
    resolution
        Number m of steps of the first grid, for m^2 rounds; then twice as many, and so on.
    limit
        Number of steps at most.

    Notes
    -----
    In an epoch of m^2 rounds the l1 distance to the nearest calibrated sequence is at most
    m + m - 1, so about 4 sqrt(T) in all until the limit is reached.  :meth:`distance` gives the
    bound of a run, which is usually much smaller.  No promise about C1, which no deterministic
    rule can give.

    References
    ----------
    Arunachaleswaran, Collina, Roth and Shi (2025), "An elementary predictor obtaining
    2 sqrt(T) + 1 distance to calibration".

    Examples
    --------
    >>> transform = AOSA()
    >>> online = transform.online()
    >>> told = online.replay([0.5] * 100, [0, 1] * 50)
    >>> transform.distance(online.words) <= 2 * (4 + 8 + 16)
    True
    """

    kernel = aosa.KERNEL
    fixed = (aosa.LIMIT,)
    notes = 1
    reference = "Arunachaleswaran, Collina, Roth and Shi 2025"
    guarantee = "distance to calibration <= 2m - 1 in each epoch of m^2 rounds"
    cost = "O(log m) a round, O(m) memory"

    resolution: int = 4
    limit: int = 512

    def __post_init__(self) -> None:
        first = check.whole(self.resolution, "resolution", low=1, high=FINEST)
        self._set(resolution=first, limit=check.whole(self.limit, "limit", low=first, high=FINEST))

    def fresh(self) -> State:
        """Return biases of zero."""
        first = self.resolution
        return [self.limit, first, first * first, 0.0, 0.0, *[0] * (self.limit + 2)]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return where positions may be."""
        return {aosa.STEPS: (1, self.limit), aosa.LEFT: (1, self.limit * self.limit)}

    def distance(self, words: Sequence[Any]) -> float:
        """Return an upper bound of the run's l1 distance to calibration, summed over rounds."""
        steps = words[aosa.STEPS]
        present = sum(abs(bias) for bias in words[aosa.BIASES : aosa.BIASES + steps + 1])
        found: float = words[aosa.ERROR] + words[aosa.DISTANCE] + present / steps
        return found


@transforms.add("interval")
@dataclass(frozen=True)
class Interval(Transform):
    """Announce a point, or an interval between the midpoints of two neighbouring cells.

    An interval is judged at the end that is nearer to the outcome; with this much freedom a
    deterministic rule is calibrated, and fast.  The forecast is the middle of the interval;
    ``online().interval_one(raw)`` gives the interval itself.

    Parameters
    ----------
    resolution
        Number m of cells of [0, 1], of equal length.

    Notes
    -----
    Judged at the better ends, C1 <= 1/(2m) + m/T on every sequence of outcomes.  No promise about
    the C1 of the middles.

    References
    ----------
    Gupta and Ramdas (2022), "Faster online calibration without randomization: interval forecasts
    and the power of two choices".

    Examples
    --------
    >>> online = Interval(resolution=10).online()
    >>> for outcome in (1, 1, 0, 1):
    ...     online.learn_one(0.42, outcome)
    >>> online.interval_one(0.42)
    (0.55, 0.65)
    """

    kernel = interval.KERNEL
    checks = rules(resolution=steps)
    fixed = (interval.CELLS,)
    notes = 2
    reference = "Gupta and Ramdas 2022"
    guarantee = "C1 at the better ends <= 1/(2m) + m/T"
    cost = "O(m) a round at worst"

    resolution: int = 10

    def fresh(self) -> State:
        """Return empty cells."""
        return [self.resolution, *[0] * (2 * self.resolution + 2)]

    def interval(self, words: State, raw: float) -> tuple[float, float]:
        """Return the interval that is announced for a raw forecast."""
        start = min(int(raw * self.resolution), self.resolution - 1)
        low, high = interval.search(words, 0, start)
        return (2 * low + 1) / (2 * self.resolution), (2 * high + 1) / (2 * self.resolution)


@transforms.add("recalibrate_regret")
@dataclass(frozen=True)
class RecalibrateRegret(Transform):
    """Draw grid points that are calibrated, and lose little to the raw forecast.

    One set of grid points serves all raw forecasts, so it learns from few rounds.  It matches the
    raw forecast's loss where Algorithm 1 may beat it.

    Parameters
    ----------
    resolution
        Number m of steps of the grid 0, 1/m, ..., 1.
    seed
        What the draws depend on.  Whoever knows it, or works it out of very many draws, foresees
        them: against a real adversary take :class:`calibrant.Recalibrator`, whose draws follow
        from a secret.

    Notes
    -----
    In expectation over the draws both C1 and the average regret in squared loss are
    O(1/m + sqrt(m/T)), with the step sqrt((m + 2) / t) in round t.  Each round moves along the
    coordinates by at most 1/m + 8/m^2 in expectation, for both outcomes; the tests check that.

    References
    ----------
    Okoroafor, Kleinberg and Sun (2024), "Faster recalibration of an online predictor via
    approachability".

    Examples
    --------
    >>> online = RecalibrateRegret(resolution=10).online()
    >>> online.predict_one(0.33)
    0.3
    """

    kernel = regret.KERNEL
    checks = rules(resolution=steps, seed=seeded)
    fixed = regret.RESOLUTION, regret.KEY
    notes = 1
    reference = "Okoroafor, Kleinberg and Sun 2024"
    guarantee = "E C1, E regret = O(1/m + sqrt(m/T))"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(log m) a round"

    resolution: int = 20
    seed: int = 0

    def fresh(self) -> State:
        """Return coordinates of zero."""
        return [self.resolution, self.seed, 0, 0.0, *[0.0] * (self.resolution + 1), 0]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return where the clock and the coordinates may be."""
        cells = range(regret.CELLS, regret.CELLS + self.resolution + 1)
        return {regret.CLOCK: COUNT, regret.REGRET: SHARE} | dict.fromkeys(cells, (-1.0, 1.0))


FORMS: Final = ("K29", "K29*")
MOST_FEATURES: Final = 1 << 12


@transforms.add("defensive")
@dataclass(frozen=True)
class Defensive(Transform):
    """Announce the forecast at which a kernel test of the past would not bet either way.

    Deterministic; it uses the raw forecast as a covariate.  The kernel is Gaussian in forecast and
    raw forecast, replaced by random features, so that the work does not grow with time.

    Parameters
    ----------
    form
        ``"K29"``, or ``"K29*"``, which takes its own error into account in advance.
    features
        Number D of pairs of random features.
    width
        The width of the kernel exp(-distance^2 / (4 width^2)).
    seed
        What the features depend on.

    Notes
    -----
    With r = y - p and the features' own kernel K, for which K(z, z) = 1: K29* keeps
    sum_st r_s r_t K(z_s, z_t) <= sum_t p_t (1 - p_t) <= T/4, and K29 keeps it <= sum_t r_t^2, up to
    the precision of the bisection and whatever the outcomes.  So every function of forecast and
    raw forecast with norm 1 in the kernel's space has an average gap of at most 1/(2 sqrt T):
    smooth calibration, without randomisation.  No promise about C1.

    References
    ----------
    Vovk, Takemura and Shafer (2005), "Defensive forecasting"; Rahimi and Recht (2007), "Random
    features for large-scale kernel machines".

    Examples
    --------
    >>> online = Defensive().online()
    >>> _ = online.replay([0.8] * 200, [0, 1] * 100)
    >>> round(online.predict_one(0.8), 1)
    0.5
    """

    kernel = defensive.KERNEL
    checks = rules(
        form=partial(check.choice, options=FORMS),
        features=partial(check.whole, low=1, high=MOST_FEATURES),
        width=partial(check.real, low=0.001, rule="a finite number of at least 0.001"),
        seed=seeded,
    )
    reference = "Vovk, Takemura and Shafer 2005"
    guarantee = "gap of every function of kernel norm 1 <= 1/(2 sqrt T) (K29*), 1/sqrt(T) (K29)"
    cost = "O(40 D) a round"

    form: str = "K29*"
    features: int = 32
    width: float = 0.1
    seed: int = 0

    @property
    def notes(self) -> int:
        """The sums, turned by the present raw forecast."""
        return defensive.NOTED * self.features

    def fresh(self) -> State:
        """Return random frequencies and sums of zero."""
        size = self.features
        drawn = [self._frequencies(d) for d in range(size)]
        head: State = [size, int(self.form == "K29*"), 0, 1.0 / size]
        tables = [v for v, _ in drawn] + [w for _, w in drawn]
        return [*head, *tables, *[0.0] * (4 * size)]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        tables = range(defensive.PER, defensive.TABLES + 2 * self.features)
        return [defensive.FEATURES, defensive.STAR, *tables]

    def _frequencies(self, d: int) -> tuple[float, float]:
        """Return two independent normal numbers of variance 1/(2 width^2) (Box and Muller)."""
        spread = math.sqrt(-log(1.0 - coin(self.seed, 2 * d))) / self.width
        cosine, sine = turn(2.0 * math.pi * coin(self.seed, 2 * d + 1))
        return spread * cosine, spread * sine
