"""Average-gap hedging with an anchor that forgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.bounds import Bound
from calibrant.calibrators.anchored import Anchored
from calibrant.calibrators.base import Account
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.kernels import anchor, fading, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators

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

    name = "fading"
    kernels = Rule(
        "fading",
        two_point.make_draw(fading.score, fading.weigh, anchor.start, nearest=True),
        fading.update,
        fading.amend,
        head=anchor.OWN_HEAD,
        cell=fading.OWN_CELL,
        settings=fading.SETTINGS,
        anchored=True,
    )
    reference = "Foster and Hart 2021, with an anchor and a half-life"
    guarantee = "none about the long run; small errors in every window are measured, not proved"
    assumption = "none is enough"
    cost = "O(1) near the anchor, at most O(K)"

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

    def bound(
        self, rounds: int, *, buckets: int = 1, prior: int = 0, delay: int = 0
    ) -> Bound | None:
        """Return None: no theorem about the long run."""
        return None

    def measured(self, account: Account) -> Bound | None:
        """Return None: no theorem about the long run."""
        return None

    def regret(self, account: Account) -> Bound | None:
        """Return None: no theorem about the long run."""
        return None

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write strength, patience and half-life into the header."""
        super().set_parameters(words, reals, buckets)
        reals[fading.HALF_LIFE] = self.half_life
        words[fading.TIMED] = self.timed
