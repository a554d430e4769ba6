"""What late outcomes cost: the anchored last stage under any delays, and mixtures in crowds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.anchored import checked_anchor
from calibrant.bounds.bound import Bound
from calibrant.bounds.foster_hart import visits
from calibrant.bounds.game import EXPECTED
from calibrant.bounds.harmonic import harmonic
from calibrant.core import check
from calibrant.kernels.anchor import CAUTION
from calibrant.kernels.rounds import GUESS

_THEOREM = "average gap with an anchor, under delay"


def anchored_late(
    counts: ArrayLike,
    half_cell: float,
    *,
    delay: int,
    lag: int,
    missing: int,
    strength: float = 4.0,
    patience: float = 3.0,
    end: float = 0.0,
) -> Bound:
    """Bound C2 of the rule ``anchored``, in one bucket, whose outcomes may come late.

    Parameters
    ----------
    counts, half_cell
        Visits of each cell; and half the largest distance between neighbours, h.
    delay
        The most outcomes that came later and were outstanding when a forecast was made, D.
    lag
        The most forecasts that were made between one and its outcome, L.
    missing
        The most outcomes that were missing when a forecast was made, those that never came
        included.
    strength, patience, end
        As in :func:`calibrant.bounds.anchored`.

    Notes
    -----
    With P the largest crowd that the rule may have reckoned with, the least of ``missing`` and
    ``max(L, 10000)``, and ``B = max(R0 (1 + P), 2 (P^2 T)^(1/3))``,

        E C2 <= f + (1/T) [(1 + 2D) sum H(n_i) + 2 (D + 1) + 16 P ln(1 + T/(8P))
                           + c (3 B + 10.1 D^(2/3) T^(1/3) + 1.25 (D + 1 + (L + 1)(1 + log2 D)))].

    Delays may depend on outcomes and on everything that was announced before; an outcome is
    chosen without sight of the coins of its own round and of later ones.  Without delay this
    is no statement: use :func:`calibrant.bounds.anchored_measured`.  The proof is in
    docs/theory/late.md.

    Examples
    --------
    >>> counts = [[50_000] * 20]
    >>> for D in (1, 10, 100):
    ...     print(round(anchored_late(counts, 0.025, delay=D, lag=D, missing=D).value, 4))
    0.008
    0.0371
    0.2012
    """
    table = np.atleast_2d(visits(counts))
    c, R0, floor = checked_anchor(strength, patience, half_cell, end)
    D, L = check.whole(delay, "delay", low=1), check.whole(lag, "lag", low=1)
    P, T = min(check.whole(missing, "missing", low=1), max(L, GUESS)), float(table.sum())
    gaps = (1 + 2 * D) * float(harmonic(table).sum()) + 2 * (D + 1)
    trust = 2.0 * CAUTION * P * math.log1p(T / (CAUTION * P))
    surprised = D + 1 + (L + 1) * (1.0 + math.log2(D))
    slow = max(R0 * (1 + P), 2.0 * (P * P * T) ** (1 / 3))
    pull = c * (3.0 * slow + 10.1 * (D * D * T) ** (1 / 3) + 1.25 * surprised)
    return Bound(floor + (gaps + trust + pull) / T, "C2", EXPECTED, _THEOREM, "sharper")


def anchored_late_regret(counts: ArrayLike, half_cell: float, **options: float) -> Bound:
    """Bound how much more than the anchors the draws lose, in squared loss, under delay.

    Notes
    -----
    The potential of :func:`anchored_late` is at least c times the regret of the mean forecasts, so
    that is at most the bound on C2 over c; a draw loses at most h^2 more than its mean on average.

    Examples
    --------
    >>> told = {"delay": 10, "lag": 10, "missing": 10}
    >>> round(anchored_late_regret([[50_000] * 20], 0.025, **told).value, 4)
    0.0099
    """
    found = anchored_late(counts, half_cell, **options)  # type: ignore[arg-type]
    c = check.real(options.get("strength", 4.0), "strength", low=1e-300, rule="above 0")
    h = check.real(half_cell, "half_cell")
    return Bound(found.value / c + h * h, "regret", EXPECTED, _THEOREM, "sharper")


def mixture_in_crowds(
    rounds: int,
    experts: int,
    share: float,
    crowd: int,
    eta: float = 2.0,
    start: float | None = None,
) -> Bound:
    """Return how much more than an expert a mixture may lose whose outcomes come in crowds.

    Parameters
    ----------
    rounds, experts, share, eta, start
        As in :func:`calibrant.bounds.mixture`.
    crowd
        Number N: forecasts are made in batches of at most N, all outcomes of a batch come
        before the next one begins, and each moves the weights by 1/N.

    Notes
    -----
    With ``n`` batches and w the expert's first weight,

        T regret <= (N/eta) [-ln w - T ln(1 - share/N) + n share exp(eta)/2],

    which is N times what a mixture loses to whom all rounds of a batch are one.  For batches of
    N forecasts each the last term is ``share exp(eta)/(2 eta)`` a round.  The proof is in
    docs/theory/late.md; for outcomes that come one by one and late there is no such statement.

    Examples
    --------
    >>> round(mixture_in_crowds(10**6, 7, 3e-4, crowd=100, start=0.5).value, 6)
    0.000739
    """
    T, N = check.whole(rounds, "rounds", low=1), check.whole(crowd, "crowd", low=1)
    s = check.real(share, "share", low=0.0, high=0.5, rule="a number in [0, 0.5]")
    rate = check.real(eta, "eta", low=1e-12, high=2.0, rule="a number above 0 and at most 2")
    K = check.whole(experts, "experts", low=1)
    first = 1.0 / K if start is None else check.real(start, "start", low=1e-300, high=1.0)
    switched = math.ceil(T / N) * s * math.exp(rate) / 2.0 if N > 1 else 0.0
    total = -math.log(first) - T * math.log1p(-s / N) + switched
    told = f"for batches of {N} forecasts, the last of which may be smaller"
    theorem = "exponential weights with a fixed share, in crowds"
    return Bound(N * total / (rate * T), "regret", told, theorem, "sharper")
