"""Regret matching over all pairs of cells."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant import bounds
from calibrant.calibrators.exponential_regret import AllPairs
from calibrant.kernels import pairs
from calibrant.registry import calibrators

_draw = pairs.make_draw(pairs.polynomial_rates)


@calibrators.add("polynomial_regret")
@dataclass(frozen=True, kw_only=True)
class PolynomialRegret(AllPairs):
    """Play the stationary law of the positive regrets between all pairs of cells.

    The form in which Foster and Vohra first proved calibration.  Restricted to
    neighbours it is ``regret_matching``, which needs O(1) instead of O(K^3) a round.
    A cell that regrets nothing is announced alone.

    Parameters
    ----------
    updates
        ``"realised"`` (default): the drawn cell learns.  ``"expected"``: every cell learns
        by its weight in the mixture.

    Notes
    -----
    Blackwell's condition holds with equality for the stationary law, so the sum of
    squared positive regrets grows by at most a constant a round; the bound follows
    by Cauchy-Schwarz over cells.

    References
    ----------
    Foster and Vohra (1998), "Asymptotic calibration"; Hart and Mas-Colell (2000).

    Examples
    --------
    >>> rule = PolynomialRegret(resolution=10)
    >>> state = rule.update(rule.start(), 5, 1)
    >>> rule.forecast(state).values
    (0.4,)
    """

    name = "polynomial_regret"
    kernels = pairs.make_rule("polynomial_regret", _draw)
    reference = "Foster and Vohra 1998; Hart and Mas-Colell 2000"
    guarantee = "E C2 <= h^2 + sqrt(K(K-1)/T)"
    assumption = "the outcome is chosen without sight of the round's coin"
    cost = "O(K^3) a round, O(K) memory"

    updates: str = "realised"

    def _bound(self, rounds: int, buckets: int, prior: int, delay: int) -> bounds.Bound | None:
        """Return the bound on C2, of the draws or of the mixtures."""
        grid = self.lattice
        return bounds.polynomial_regret(
            rounds,
            grid.cells,
            grid.half_cell,
            buckets=buckets,
            prior=prior,
            realised=self.updates == "realised",
        )
