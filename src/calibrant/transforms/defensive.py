"""Defensive forecasting: no smooth test can profit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from calibrant.core import check
from calibrant.kernels.coin import coin
from calibrant.kernels.portable import log, turn
from calibrant.kernels.transforms import defensive
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.bucket_hedge import seeded

FORMS: Final = ("K29", "K29*")
MOST: Final = 1 << 12


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

    name = "defensive"
    kernel = defensive.KERNEL
    reference = "Vovk, Takemura and Shafer 2005"
    guarantee = "gap of every function of kernel norm 1 <= 1/(2 sqrt T) (K29*), 1/sqrt(T) (K29)"
    assumption = "none"
    cost = "O(40 D) a round"

    form: str = "K29*"
    features: int = 32
    width: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check.choice(self.form, "form", FORMS)
        rule = "a finite number of at least 0.001"
        self._set(
            features=check.whole(self.features, "features", low=1, high=MOST),
            width=check.real(self.width, "width", low=0.001, rule=rule),
            seed=seeded(self.seed),
        )

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
        return [
            defensive.FEATURES,
            defensive.STAR,
            *range(defensive.PER, defensive.TABLES + 2 * self.features),
        ]

    def _frequencies(self, d: int) -> tuple[float, float]:
        """Return two independent normal numbers of variance 1/(2 width^2) (Box and Muller)."""
        spread = math.sqrt(-log(1.0 - coin(self.seed, 2 * d))) / self.width
        cosine, sine = turn(2.0 * math.pi * coin(self.seed, 2 * d + 1))
        return spread * cosine, spread * sine
