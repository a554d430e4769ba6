"""How little a mixture of experts loses to the best of them."""

from __future__ import annotations

import math

from calibrant.bounds.game import Bound
from calibrant.core import check
from calibrant.errors import InvalidInput


def mixture(
    rounds: int,
    experts: int,
    share: float,
    eta: float = 2.0,
    *,
    switches: int = 0,
    start: float | None = None,
) -> Bound:
    """Return how much more than an expert a mixture with a fixed share may lose, per round.

    Parameters
    ----------
    rounds
        Number T of rounds.
    experts
        Number K of experts.
    share
        Which part of the weights returns to the first weights after each round.
    eta
        The rate: at most 2 for squared loss with the substitution, 1/2 with the weighted mean,
        1 for log loss with the weighted mean.
    switches
        How often the comparator changes from one expert to another.
    start
        First weight w of the comparator, or the least of those it switches to; 1/K by default.

    Notes
    -----
    The mixture's loss in a round is at most -ln(M)/eta, where M is the mean of exp(-eta loss) under
    the weights, and the sum of ln(M) telescopes to the logarithm of the total weight of all
    *sequences* of experts.  One of them starts with weight w, keeps at least 1 - share of it in a
    round in which it stays, and share * w in one in which it switches, so with m switches

        T regret <= [-ln w - m ln(share w) - (T - 1 - m) ln(1 - share)] / eta.

    It holds for every sequence of outcomes.

    References
    ----------
    Vovk (1990), "Aggregating strategies"; Herbster and Warmuth (1998), "Tracking the best expert".

    Examples
    --------
    >>> round(mixture(10_000, experts=10, share=1e-4).value, 6)
    0.000165
    >>> round(mixture(10_000, experts=10, share=1e-4, switches=3).value, 4)
    0.0019
    """
    T, K, m, alpha, rate = _checked(rounds, experts, switches, share, eta)
    first = 1.0 / K if start is None else check.real(start, "start", low=1e-300, high=1.0)
    moved = -m * math.log(alpha * first) if m else 0.0
    total = moved - math.log(first) - (T - 1 - m) * math.log1p(-alpha)
    against = f"a sequence of experts with {m} switches" if m else "each single expert"
    return Bound(
        total / (rate * T),
        "regret",
        f"against {against}, for every sequence of outcomes",
        "exponential weights with a fixed share",
        "cited",
    )


def _checked(
    rounds: int, experts: int, switches: int, share: float, eta: float
) -> tuple[int, int, int, float, float]:
    T = check.whole(rounds, "rounds", low=1)
    m = check.whole(switches, "switches", high=T - 1)
    alpha = check.real(share, "share", low=0.0, high=0.5, rule="a number in [0, 0.5]")
    if m and alpha == 0.0:
        raise InvalidInput(f"share must be above 0 where the comparator switches, got {share!r}")
    rate = check.real(eta, "eta", low=1e-12, high=2.0, rule="a number above 0 and at most 2")
    return T, check.whole(experts, "experts", low=1), m, alpha, rate
