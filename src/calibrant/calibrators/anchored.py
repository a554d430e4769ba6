"""Average-gap hedging with an anchor: calibrated, and close to the forecast that came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant import bounds
from calibrant.calibrators.base import Account, Calibrator
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.kernels import anchor, two_point
from calibrant.kernels.rule import Rule
from calibrant.registry import calibrators


@calibrators.add("anchored")
@dataclass(frozen=True, kw_only=True)
class Anchored(Calibrator):
    """Hedge as ``foster_hart`` does, but let the forecast of the round pull at every cell.

    Each cell leans by its average gap plus ``c (q - g)``, where q is the forecast that came in
    and g the cell's value.  A rule that has learned nothing thus announces q, spread over the
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

    name = "anchored"
    kernels = Rule(
        "anchored",
        two_point.make_draw(anchor.score, anchor.weigh, anchor.start, nearest=True),
        anchor.update,
        anchor.amend,
        head=anchor.OWN_HEAD,
        cell=anchor.OWN_CELL,
        settings=anchor.SETTINGS,
        anchored=True,
    )
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

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C2 in expectation."""
        grid = self.lattice
        return bounds.anchored(
            rounds, grid.cells, grid.half_cell, buckets=buckets, **self._settings
        )

    def measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C2 with the counts and delays that were seen."""
        if account.delay == 0 or not self._knows(account):
            return super().measured(account)
        return bounds.anchored_late(account.counts, self.lattice.half_cell, **self._waits(account))

    def regret(self, account: Account) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if account.delay == 0 or self.strength == 0.0 or not self._knows(account):
            return super().regret(account)
        waits = self._waits(account)
        return bounds.anchored_late_regret(account.counts, self.lattice.half_cell, **waits)

    def _knows(self, account: Account) -> bool:
        """Say whether there is a theorem about the late outcomes of an account."""
        return self.name == Anchored.name and account.lag > 0 and len(account.counts) == 1

    def _waits(self, account: Account) -> dict[str, Any]:
        told = {"delay": account.delay, "lag": account.lag, "missing": account.missing}
        return told | self._settings

    def _measured(self, account: Account) -> bounds.Bound | None:
        """Return the bound on C2 with the counts that were seen."""
        return bounds.anchored_measured(account.counts, self.lattice.half_cell, **self._settings)

    def _regret(self, account: Account) -> bounds.Bound | None:
        """Return the bound on the squared loss of the draws beyond the anchors'."""
        if self.strength == 0.0:
            return None
        return bounds.anchored_regret(account.counts, self.lattice.half_cell, **self._settings)

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
