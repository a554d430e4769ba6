"""What late outcomes cost: the anchored last stage under any delays, and mixtures in crowds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.anchored import anchored_measured, anchored_regret, checked_pull
from calibrant.bounds.game import Bound, harmonic
from calibrant.bounds.gaps import visits
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kernels.anchor import CAUTION
from calibrant.kernels.crowd import GUESS

RATIO = 1.5
"""A round surprises if more wait than so many times what was reckoned with."""


def late_cost(
    rounds: int,
    logs: float,
    *,
    delay: int,
    lag: int,
    missing: int,
    buckets: int = 1,
    strength: float = 4.0,
    patience: float = 3.0,
    caution: float = CAUTION,
) -> float:
    """Return what late outcomes add to the bound on C2 of a rule with an anchor.

    Parameters
    ----------
    rounds, buckets
        T, and the buckets that were used, M.  With a delay there must be one.
    logs
        The sum of the harmonic numbers of all counts.
    delay
        The most outcomes that came later, or were corrected later, and were outstanding when a
        forecast was made, D; may be 0.
    lag
        The most forecasts that were made between one and the last word about its outcome, L.
    missing
        The most outcomes that were missing when a forecast was made, those that never came
        included, N.
    strength, patience
        c and R0 of the rule.
    caution
        After how many crowds average gaps are believed by half, at most, b: 8 for the rule alone,
        `calibrant.kernels.anchor.DOUBT` behind a mixture that follows how much outcomes are alike.

    Notes
    -----
    With G = 10000, ``m = min(N, G)`` and ``l = min(N, L)`` the cost is, over T,

        2 D logs + 2 (D + M) + 2 b l ln(1 + T/(b l))
        + min(16 m ln(1 + T/(8 m)), M (4 sqrt(8 G) + 2))
        + c M [R0 (1 + m + l) + 4 min(m^2 t, m G)^(1/3) + 2 (l^2 t)^(1/3)],      t = T/M,

    and with D > 0 also ``c [23.2 (D^2 T)^(1/3) + 1.25 (D + 1 + (L + 1)(1 + log(D)/log(1.5)))]``.
    The proof is in docs/theory/late.md.

    Examples
    --------
    >>> [round(late_cost(10**k, 200.0, delay=1, lag=1, missing=1), 5) for k in (4, 6, 8)]
    [0.32046, 0.01126, 0.00048]
    """
    T, M = check.whole(rounds, "rounds", low=1), check.whole(buckets, "buckets", low=1)
    D, L, N = _waits(delay, lag, missing)
    strength, patience = checked_pull(strength, patience)
    if D and M > 1:
        raise InvalidInput(f"buckets must be 1 where outcomes were late, got {M}")
    m, known, t = min(N, GUESS), min(N, L), T / M
    guessed = min(_doubt(m, T, CAUTION), M * (4.0 * math.sqrt(CAUTION * GUESS) + 2.0))
    trust = 2.0 * D * logs + 2.0 * (D + M) + _doubt(known, T, caution) + guessed
    roots = 4.0 * min(m * m * t, m * GUESS) ** (1 / 3) + 2.0 * (known * known * t) ** (1 / 3)
    pull = M * (patience * (1 + m + known) + roots)
    if D:
        surprised = D + 1 + (L + 1) * (1.0 + math.log(D) / math.log(RATIO))
        pull += 23.2 * (D * D * T) ** (1 / 3) + 1.25 * surprised
    return float(trust + strength * pull) / T


def _waits(delay: int, lag: int, missing: int) -> tuple[int, int, int]:
    N, L = check.whole(missing, "missing", low=1), check.whole(lag, "lag")
    return check.whole(delay, "delay", high=min(L, N)), L, N


def _doubt(crowd: int, rounds: int, caution: float) -> float:
    """Return the price of believing average gaps less, by ``n/(n + caution crowd)``."""
    if crowd == 0:
        return 0.0
    return 2.0 * caution * crowd * math.log1p(rounds / (caution * crowd))


def anchored_late(
    counts: ArrayLike, half_cell: float, *, delay: int, lag: int, missing: int, **options: Any
) -> Bound:
    """Bound C2 of the rule ``anchored`` whose outcomes may come late, or be corrected.

    Parameters
    ----------
    counts, half_cell
        Visits of each cell, a row for each bucket; and half the largest distance between
        neighbours, h.
    delay, lag, missing
        As in :func:`late_cost`.
    options
        ``strength``, ``patience``, ``end`` and ``failure`` as in
        :func:`calibrant.bounds.anchored_measured`.

    Notes
    -----
    The bound of :func:`calibrant.bounds.anchored_measured` and :func:`late_cost`.  Delays may
    depend on outcomes and on everything that was announced before; an outcome is chosen without
    sight of the coins of its own round and of later ones.

    Examples
    --------
    >>> counts = [[50_000] * 20]
    >>> for D in (1, 10, 100):
    ...     print(round(anchored_late(counts, 0.025, delay=D, lag=D, missing=D).value, 4))
    0.0122
    0.0563
    0.2871
    """
    prompt = anchored_measured(counts, half_cell, **options)
    waits = {"delay": delay, "lag": lag, "missing": missing}
    return _dearer(prompt, counts, 1.0, options, waits)


def anchored_late_regret(
    counts: ArrayLike, half_cell: float, *, delay: int, lag: int, missing: int, **options: Any
) -> Bound:
    """Bound how much more than the anchors the draws lose, in squared loss, under delay.

    Notes
    -----
    The bound of :func:`calibrant.bounds.anchored_regret` and :func:`late_cost` over c.

    Examples
    --------
    >>> told = {"delay": 10, "lag": 10, "missing": 10}
    >>> round(anchored_late_regret([[50_000] * 20], 0.025, **told).value, 4)
    0.0147
    """
    prompt = anchored_regret(counts, half_cell, **options)
    waits = {"delay": delay, "lag": lag, "missing": missing}
    return _dearer(prompt, counts, 1.0 / options.get("strength", 4.0), options, waits)


def _dearer(
    bound: Bound, counts: ArrayLike, factor: float, options: dict[str, Any], waits: dict[str, int]
) -> Bound:
    table = np.atleast_2d(visits(counts))
    rule = {name: options[name] for name in ("strength", "patience") if name in options}
    used = int((table.sum(-1) > 0).sum())
    logs = float(harmonic(table).sum())
    cost = late_cost(int(table.sum()), logs, buckets=used, **waits, **rule)
    return late_by(bound, factor * cost)


def late_by(bound: Bound, cost: float) -> Bound:
    """Return a bound for prompt outcomes with what late ones add to it."""
    return replace(bound, value=bound.value + cost, theorem=f"{bound.theorem}, under delay")


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
