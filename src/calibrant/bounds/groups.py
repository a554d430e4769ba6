"""Calibration in every group at once: the average-gap and the exponential form."""

from __future__ import annotations

import math
from typing import Any

from calibrant.bounds import game
from calibrant.core import check

_AVERAGE = "average gaps summed over groups"
_EXPONENTIAL = "exponential gaps summed over groups"


def group_average_gap(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    groups: int = 1,
    overlap: int = 1,
    group_rounds: int | None = None,
    prior: float = 0.0,
    delay: int = 0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 in each group of the rule that adds up average gaps, whatever the outcomes.

    Parameters
    ----------
    rounds
        Rounds played, T.
    cells, half_cell
        Grid points, K, and half a cell, h.
    groups
        Groups there have been, G, buckets included; intervals of time that ended count.
    overlap
        Groups to which a round belongs, at most, d.
    group_rounds
        Rounds of the group that is asked about; by default all of them.
    prior, delay, failure
        As in ``foster_hart``; the prior is a group's.

    Notes
    -----
    With ``Q_g = sum_i S_ig^2/n_ig`` for group g, of which C2 in g is the part per round of g, and
    ``P = min(G K, d T)`` pairs of a group and a cell that can have been visited,

        E sum_g Q_g <= d T h^2 + P (1 + ln(d T/P)).

    Proof.  A round in the groups A that draws cell i with ``v = y - g_i`` adds
    ``2 theta_i v - sum_{g in A} e_ig^2 + sum_{g in A} (v - e_ig)^2/(n_ig + 1)``, where
    ``theta_i`` is the sum of the ``e_ig``.  The sum of squares is at least ``theta_i^2/d``.  With
    a pair at distance w and ``a = theta_i``, ``b = -theta_{i+1}``, the first two terms have mean at
    most ``2 a b w/(a + b) - a b/d <= d w^2/4 <= d h^2`` for either outcome; a cell whose sum is 0
    gives at most 0, and an end cell whose sum points off the grid at most
    ``2|theta| h - theta^2/d <= d h^2``.  The last term adds up to harmonic sums, and these are
    largest for equal counts.  A group that ends takes its ``Q_g`` with it, which is not
    negative.  Prior and delay are as in ``foster_hart``: k0 more for each pair, and a
    factor of one and twice the delay.

    Since each ``Q_g`` is below the sum, one small group among many has a weak bound of its own:
    the total is divided by the rounds of the group.

    References
    ----------
    Foster and Hart (2021), Forecast hedging and calibration, for one group; Gupta, Jung, Noarov,
    Pai and Roth (2022), Online multivalid learning, for scores that add up groups.

    Examples
    --------
    >>> round(group_average_gap(100_000, 11, 0.05, groups=5, overlap=2).value, 4)
    0.0101
    >>> small = group_average_gap(100_000, 11, 0.05, groups=5, overlap=2, group_rounds=10_000)
    >>> round(small.value, 4)
    0.1006
    """
    sizes, d = game.game(rounds, cells, half_cell, groups), check.whole(overlap, "overlap", low=1)
    pairs = min(sizes.cells, d * sizes.T)
    each, k0 = d * sizes.T / pairs, game.strength(prior)
    logs = pairs * game.harmonic_cap(each, k0)
    return group_average_gap_measured(
        d * sizes.T,
        logs,
        half_cell,
        rounds=sizes.T,
        group_rounds=group_rounds,
        overlap=d,
        bias=pairs * k0 * each / (each + k0),
        delay=delay,
        failure=failure,
    )


def group_average_gap_measured(
    memberships: int,
    logs: float,
    half_cell: float,
    *,
    rounds: int,
    group_rounds: int | None = None,
    overlap: int = 1,
    bias: float = 0.0,
    delay: int = 0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C2 in each group from what was counted.

    Parameters
    ----------
    memberships
        The groups of each round, added up.
    logs
        The sum of ``1/(n + 1)`` over all memberships; n is the visits of the drawn cell in the
        group.
    rounds, group_rounds, overlap, delay, failure
        As in ``group_average_gap``.
    bias
        What the prior costs: the sum of ``k0 n/(n + k0) (r - c)^2`` over visited pairs.

    Notes
    -----
    The proof of ``group_average_gap``, stopped before the worst case is taken.  A single drift
    lies in [-d, d], so that Azuma's inequality adds ``d sqrt(2 T ln(1/failure))``.

    Examples
    --------
    >>> bound = group_average_gap_measured(2000, 30.0, 0.05, rounds=1000, group_rounds=400)
    >>> round(bound.value, 4), bound.quantity
    (0.0875, 'C2')
    """
    sizes = game.game(rounds, 1, half_cell)
    late = 1.0 + 2.0 * check.whole(delay, "delay")
    total = check.whole(memberships, "memberships") * sizes.h**2 + late * logs + bias
    if failure is not None:
        total += check.whole(overlap, "overlap", low=1) * sizes.T * game.azuma(sizes.T, failure)
    value = total / _share(group_rounds, sizes.T)
    return game.Bound(value, "C2", game.probably(failure), _AVERAGE, "sharper")


def group_excess(rounds: int, memberships: int, overlap: int, failure: float) -> float:
    """Bound how far the drifts of ``group_average_gap`` add up beyond their means in one run.

    Parameters
    ----------
    rounds, memberships
        Rounds played, T, and the groups of each round, added up, m.
    overlap
        Groups to which a round can have belonged, at most, d.
    failure
        The probability with which this may fail.

    Notes
    -----
    A round in ``d_t`` groups has a drift in ``[-d_t, d_t]``, and the squares of the ``d_t`` add up
    to at most ``V = T + (m - T)(d + 1)``, as if as many rounds as possible had d groups and the
    others one.  Groups may be chosen with a look at the past, so V is random: Azuma's inequality
    is asked for every ``T 2^j``, with ``failure/((j + 1)(j + 2))`` each, and the first that is at
    least V is taken.

    Examples
    --------
    >>> round(group_excess(1000, 1000, 5, 0.05), 1), round(group_excess(1000, 2000, 2, 0.05), 1)
    (85.9, 209.4)
    """
    T = game.game(rounds, 1, 0.0).T
    extra = check.whole(memberships, "memberships", low=T) - T
    most = T + extra * (check.whole(overlap, "overlap", low=1) + 1)
    j = math.ceil(math.log2(most / T))
    part = game.share(failure, (j + 1) * (j + 2))
    return math.sqrt(2.0 * T * 2.0**j * math.log(1.0 / part))


def multivalid_rate(rounds: int, cells: int, groups: int = 1) -> float:
    """Return the rate of the exponential form that suits so many rounds: sqrt(ln(2 K G)/T).

    Examples
    --------
    >>> round(multivalid_rate(100_000, cells=21, groups=100), 5)
    0.00913
    """
    sizes = game.game(rounds, cells, 0.0, groups)
    return min(1.0, math.sqrt(math.log(2.0 * sizes.cells) / sizes.T))


def multivalid_gap(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    groups: int = 1,
    rate: float | None = None,
    prior: float = 0.0,
    failure: float | None = None,
) -> float:
    """Bound the largest gap of any cell in any group under the exponential form, per round.

    Parameters
    ----------
    rounds, cells, half_cell, groups
        As in ``group_average_gap``.
    rate
        The rate eta, at most 1; by default ``multivalid_rate``.
    prior
        Pseudo-rounds per grid point with which a group may start, k0.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    For all T, whatever T the rate was made for,

        ``E max_ig |S_ig| <= ln(2 K G)/eta + T (h + eta) + 2 k0``.

    Proof.  Let L be the sum of ``c_ig = exp(eta S_ig) + exp(-eta S_ig)`` over all pairs, at most
    ``2 K G exp(eta k0)`` at the start.  By ``exp(x) <= 1 + x + x^2`` for x up to 1, a round that
    draws i adds at most ``eta v theta_i + eta^2 sum_{g in A} c_ig``.  A pair at distance w has
    ``E theta v = w a b/(a + b) <= h E|theta|``, at most h times the mean of the sum of ``c_ig``;
    an end cell whose sum points off the grid has ``theta v <= h |theta|``.  So L grows on average
    by a factor of at most ``1 + eta h + eta^2``, and ``eta max|S| <= ln L``; Jensen's inequality
    for the expectation, Markov's for a probability.

    References
    ----------
    Gupta, Jung, Noarov, Pai and Roth (2022), Online multivalid learning.

    Examples
    --------
    >>> round(multivalid_gap(100_000, 21, 0.025, groups=100), 4)
    0.0433
    """
    sizes, k0 = game.game(rounds, cells, half_cell, groups), game.strength(prior)
    eta = multivalid_rate(rounds, cells, groups) if rate is None else _rate(rate)
    start = math.log(2.0 * sizes.cells)
    if failure is not None:
        start -= math.log(game.probable(failure))
    return (start / eta + 2.0 * k0) / sizes.T + sizes.h + eta


def multivalid(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    groups: int = 1,
    group_rounds: int | None = None,
    rate: float | None = None,
    prior: float = 0.0,
    failure: float | None = None,
) -> game.Bound:
    """Bound C1 in each group under the exponential form: K times the largest gap.

    Parameters are those of ``multivalid_gap``, and the rounds of the group that is asked about.

    Examples
    --------
    >>> round(multivalid(100_000, 11, 0.05, groups=10).value, 3)
    0.712
    """
    gap = multivalid_gap(
        rounds, cells, half_cell, groups=groups, rate=rate, prior=prior, failure=failure
    )
    value = gap * cells * rounds / _share(group_rounds, rounds)
    return game.Bound(value, "C1", game.probably(failure), _EXPONENTIAL, "sharper")


def _share(group_rounds: Any, rounds: int) -> int:
    if group_rounds is None:
        return rounds
    return check.whole(group_rounds, "group_rounds", low=1, high=rounds)


def _rate(rate: Any) -> float:
    return check.real(rate, "rate", low=1e-12, high=1.0, rule="a number above 0 and at most 1")
