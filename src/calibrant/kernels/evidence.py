"""Evidence against a stream of forecasts, round by round, in one flat state of doubles.

::

    header | edges | sums of the whole stream | bucket 0 | bucket 1 | ... | bucket M-1 | accounts

Every number that a bet contributes is ``q(y) / r(y)``: the probability that an *alternative*
gave to the outcome, over the one that the forecast allows.  The alternative ``q`` is fixed
before the outcome; ``r`` is the point of the allowed interval that is nearest to it, so
that the mean of the ratio is at most 1 whatever the chance of the outcome is inside that
interval (for ``q`` above the interval, ``q/r > (1-q)/(1-r)``: the mean grows with the
chance, and it is 1 at ``r``).  Without a tolerance the interval is the forecast itself.

The *accounts* hold the money of fixed alternatives for the whole stream, odds raised to a power and
multiplied by a factor, and of one account that never bets.  Before a round, each account gives
the same share of its money away, and all get the same part of what was given::

    share = 1 / (round + 2000)
    for each account k:
        money[k] = (1 - share) * money[k] + share * sum(money) / accounts
        money[k] *= q_k(y) / r_k(y)

Gifts leave the sum as it is, so its mean stays 1; and after a long right time there is still
money on every alternative.  States of earlier versions have no accounts, and go on without.

A *sum* is what the change alarm remembers of one alternative: the largest product of its
ratios over all rounds from which it could have been started, and that round.  Counts are
doubles too, exact up to 2**53.  Plain Python works on a list, compiled code on an array.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

from calibrant.kernels.layout import Reals
from calibrant.kernels.place import bucket_of
from calibrant.kernels.portable import exp, log, logit, sigmoid

BUCKETS, TOLERANCE, CLIP, LIMIT, CHANGE_LIMIT, ROUNDS, NOW, HIGHEST, HIGHEST_AT = range(9)
"""Which word is which.

- ``BUCKETS``: Number of buckets M.
- ``TOLERANCE``: How far a forecast may be from the chance of its outcome.
- ``CLIP``: A forecast below this is read as "at most this", one above its complement likewise.
- ``LIMIT``: Logarithm of the evidence at which the alarm rings.
- ``CHANGE_LIMIT``: Value of a weighted sum at which the change alarm rings.
- ``ROUNDS``: Rounds so far.
- ``NOW``: Logarithm of the evidence.
- ``HIGHEST``: Its largest value so far, at least 0.
- ``HIGHEST_AT``: Rounds after which it had that value.
"""
ALARM, PRODUCT, PLATT, SLOPE = range(9, 13)
"""Which word is which.

- ``ALARM``: Rounds after which the alarm rang, or 0.
- ``PRODUCT``: Logarithm of the product of all buckets' evidence.
- ``PLATT``: Logarithm of the evidence of the online Platt alternative.
- ``SLOPE``: Its slope and, behind it, its intercept.
"""
CURVATURE: Final = 14
"""Three words: its matrix of second derivatives, upper half, with the prior's."""
CHANGE, SINCE, LEADER, HEADER = range(17, 21)
"""Which word is which.

- ``CHANGE``: Rounds after which the change alarm rang, or 0.
- ``SINCE``: The round from which its sum was started, counted from 1.
- ``LEADER``: Which sum it was: its number in the whole stream, or beyond that 1 + the bucket's.
- ``HEADER``: Words in the header.
"""

SHIFTS: Final = (0.8, 0.6666666666666666, 0.5, 0.25, 1.25, 1.5, 2.0, 4.0)
"""By what the odds of all forecasts may have to be multiplied."""
SLOPES: Final = ("-1", "0", "1/2", "3/4", "5/4", "3/2")
"""To which power the odds of all forecasts may have to be raised."""
SHIFTED: Final = len(SHIFTS)
SUMS: Final = SHIFTED + len(SLOPES)
"""Sums of the whole stream."""
LOCAL: Final = (0.3333333333333333, 0.6666666666666666, 1.5, 3.0)
"""By what the odds of one bucket's forecasts may have to be multiplied."""
PER_BUCKET: Final = len(LOCAL)
"""Sums of a bucket."""

FACTORS: Final = (
    *(1.0, 0.8, 0.6666666666666666, 0.4444444444444444, 1.25, 1.5, 2.25),
    *(1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    *(0.6666666666666666, 0.6666666666666666, 1.5, 1.5),
)
"""By what each account multiplies the odds; the first account does not bet."""
POWERS: Final = (0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 2, 5, 2, 5)
"""To which power each account raises them before, by its place in `powers_of`."""
ACCOUNTS: Final = len(FACTORS)
SETTLED: Final = 2000.0
"""The share that is given away is one over so many rounds more than there were."""

COUNT, ONES, TOTAL, RATE, SHIFT, TURN, FIRMNESS, EVIDENCE, TOP, WEIGHT, LOCAL_SUMS = range(11)
"""Which word is which.

- ``COUNT``: Rounds in the bucket.
- ``ONES``: Outcomes that were 1.
- ``TOTAL``: Sum of the forecasts.
- ``RATE``: Logarithm of the evidence of a constant rate, learned by the rule of KT.
- ``SHIFT``: Logarithm of the evidence of shifted odds, the shift learned by Newton's.
- ``TURN``: That shift, in log-odds.
- ``FIRMNESS``: Sum of second derivatives behind it, with the prior's.
- ``EVIDENCE``: Logarithm of the mean of the two: the bucket's evidence.
- ``TOP``: Its largest value so far, at least 0.
- ``WEIGHT``: The evidence itself, up to `CAP`.
- ``LOCAL_SUMS``: Where the bucket's sums start.
"""
STRIDE: Final = LOCAL_SUMS + 2 * PER_BUCKET
"""Words of a bucket."""

CAP: Final = 600.0
"""Evidence counts for at most e to this power, so that it can be added up."""
MOST: Final = 1e280
"""Largest value of a sum."""
RICHEST: Final = 1e259
"""Most money that counts in an account: all together stay below e to the power `CAP`."""
LN2: Final = 0.6931471805599453


def size(buckets: int) -> int:
    """Return the number of words for so many buckets; accounts lie behind them."""
    return blocks_at(buckets) + buckets * STRIDE


def sums_at(buckets: int) -> int:
    """Return where the sums of the whole stream start."""
    return HEADER + buckets + 1


def blocks_at(buckets: int) -> int:
    """Return where the first bucket starts."""
    return sums_at(buckets) + 2 * SUMS


def fresh(
    buckets: int, tolerance: float, clip: float, limit: float, change_limit: float, grid: bool
) -> list[float]:
    """Return the state before the first round, with a grid of accounts or without."""
    reals = [0.0] * size(buckets)
    reals[BUCKETS], reals[TOLERANCE], reals[CLIP] = float(buckets), tolerance, clip
    reals[LIMIT], reals[CHANGE_LIMIT] = limit, change_limit
    reals[SLOPE] = reals[CURVATURE] = reals[CURVATURE + 2] = 1.0
    reals[HEADER : HEADER + buckets] = [j / buckets for j in range(buckets)]
    reals[HEADER + buckets] = 2.0
    for at in range(blocks_at(buckets), size(buckets), STRIDE):
        reals[at + FIRMNESS] = reals[at + WEIGHT] = 1.0
    return reals + [1.0 / ACCOUNTS] * (ACCOUNTS if grid else 0)


def follow_many(reals: Reals, forecasts: Any, outcomes: Any) -> None:
    """Add rounds in order."""
    for t in range(len(forecasts)):
        follow(reals, forecasts[t], outcomes[t])


def follow(reals: Reals, forecast: float, outcome: int) -> None:
    """Add one round."""
    clip, tolerance = reals[CLIP], reals[TOLERANCE]
    low = min(forecast - tolerance, 1.0 - clip)
    high = max(forecast + tolerance, clip)
    inside = min(max(forecast, clip), 1.0 - clip)
    odds = inside / (1.0 - inside)
    reals[ROUNDS] += 1.0
    buckets = int(reals[BUCKETS])
    at = blocks_at(buckets) + STRIDE * bucket_of(reals, HEADER, buckets, forecast)
    reals[at + TOTAL] += forecast
    judge_bucket(reals, at, odds, low, high, outcome)
    judge_line(reals, inside, low, high, outcome)
    if len(reals) > size(buckets):
        judge_grid(reals, size(buckets), odds, low, high, outcome)
    add_up(reals, buckets)
    look_for_change(reals, at, odds, low, high, outcome)


def ratio(q: float, clip: float, low: float, high: float, outcome: int) -> float:
    """Return what a bet on ``q`` pays: its probability over the nearest one from low to high.

    Alternatives beyond ``clip`` are moved there, so nothing is divided by 0: ``low`` is
    at most 1 - clip, ``high`` at least clip, and a nearest point inside is ``q`` itself.

    >>> ratio(0.75, 1e-6, 0.5, 0.5, 1), ratio(0.75, 1e-6, 0.5, 0.5, 0)
    (1.5, 0.5)
    >>> ratio(0.75, 1e-6, 0.4, 0.8, 1)
    1.0
    """
    if q < clip:
        q = clip
    elif q > 1.0 - clip:
        q = 1.0 - clip
    nearest = low if q < low else (high if q > high else q)
    return q / nearest if outcome else (1.0 - q) / (1.0 - nearest)


def judge_bucket(reals: Reals, at: int, odds: float, low: float, high: float, outcome: int) -> None:
    """Let the two alternatives of a bucket bet, and learn."""
    clip, count, ones = reals[CLIP], reals[at + COUNT], reals[at + ONES]
    reals[at + RATE] += log(ratio((ones + 0.5) / (count + 1.0), clip, low, high, outcome))
    reals[at + COUNT] = count + 1.0
    reals[at + ONES] = ones + outcome
    turned = odds * exp(reals[at + TURN])
    q = turned / (1.0 + turned)
    reals[at + SHIFT] += log(ratio(q, clip, low, high, outcome))
    reals[at + FIRMNESS] += q * (1.0 - q)
    reals[at + TURN] = turn(reals[at + TURN] + (outcome - q) / reals[at + FIRMNESS])
    evidence = log_mean(reals[at + RATE], reals[at + SHIFT])
    reals[PRODUCT] += evidence - reals[at + EVIDENCE]
    reals[at + EVIDENCE] = evidence
    reals[at + TOP] = max(reals[at + TOP], evidence)
    reals[at + WEIGHT] = exp(min(evidence, CAP))


def turn(value: float) -> float:
    """Return a shift of log-odds that leaves room for both outcomes: from -30 to 30."""
    return min(max(value, -30.0), 30.0)


def log_mean(first: float, second: float) -> float:
    """Return the logarithm of the mean of two numbers given by theirs.

    >>> round(exp(log_mean(log(1.0), log(3.0))), 12)
    2.0
    """
    more, less = max(first, second), min(first, second)
    return more + log(1.0 + exp(less - more)) - LN2


def judge_line(reals: Reals, inside: float, low: float, high: float, outcome: int) -> None:
    """Let the online Platt alternative bet, and take one Newton step."""
    x, at = logit(inside), CURVATURE
    q = sigmoid(reals[SLOPE] * x + reals[SLOPE + 1])
    reals[PLATT] += log(ratio(q, reals[CLIP], low, high, outcome))
    firm, wrong = q * (1.0 - q), outcome - q
    reals[at] += firm * x * x
    reals[at + 1] += firm * x
    reals[at + 2] += firm
    a, b, c = reals[at], reals[at + 1], reals[at + 2]
    # The prior has determinant 1 and the rest adds to it.
    determinant = max(a * c - b * b, 1.0)
    reals[SLOPE] = turn(reals[SLOPE] + wrong * (c * x - b) / determinant)
    reals[SLOPE + 1] = turn(reals[SLOPE + 1] + wrong * (a - b * x) / determinant)


def judge_grid(reals: Reals, at: int, odds: float, low: float, high: float, outcome: int) -> None:
    """Share out what every account gives away, and let all but the first bet."""
    powers = powers_of(odds)
    share = 1.0 / (reals[ROUNDS] + SETTLED)
    gift = share * all_money(reals, at) / ACCOUNTS
    for k in range(ACCOUNTS):
        money = (1.0 - share) * reals[at + k] + gift
        if k > 0:
            turned = powers[POWERS[k]] * FACTORS[k]
            money *= ratio(turned / (1.0 + turned), reals[CLIP], low, high, outcome)
        reals[at + k] = min(money, RICHEST)


def powers_of(odds: float) -> tuple[float, float, float, float, float, float, float]:
    """Return the odds to the powers 1, 1/2, 3/4, 7/8, 9/8, 5/4 and 3/2.

    >>> [round(power, 3) for power in powers_of(256.0)]
    [256.0, 16.0, 64.0, 128.0, 512.0, 1024.0, 4096.0]
    """
    root = sqrt(odds)
    fourth = sqrt(root)
    eighth = sqrt(fourth)
    most = root * fourth
    return odds, root, most, most * eighth, odds * eighth, odds * fourth, odds * root


def all_money(reals: Reals, at: int) -> float:
    """Return what the accounts have together."""
    total = 0.0
    for k in range(at, at + ACCOUNTS):
        total += reals[k]
    return total


def add_up(reals: Reals, buckets: int) -> None:
    """Average the mean of the buckets, their product and the line; note its height.

    A third each; with accounts, these have 12 parts of 20, the buckets 6, product and line 1 each.
    """
    total = 0.0
    for at in range(blocks_at(buckets), size(buckets), STRIDE):
        total += reals[at + WEIGHT]
    both = exp(min(reals[PRODUCT], CAP)) + exp(min(reals[PLATT], CAP))
    mean = (total / buckets + both) / 3.0
    if len(reals) > size(buckets):
        mean = (6.0 * total / buckets + both + 12.0 * all_money(reals, size(buckets))) / 20.0
    reals[NOW] = log(mean)
    if reals[NOW] > reals[HIGHEST]:
        reals[HIGHEST] = reals[NOW]
        reals[HIGHEST_AT] = reals[ROUNDS]
    if reals[ALARM] == 0.0 and reals[NOW] >= reals[LIMIT]:
        reals[ALARM] = reals[ROUNDS]


def look_for_change(
    reals: Reals, at: int, odds: float, low: float, high: float, outcome: int
) -> None:
    """Move the sums of the whole stream and of one bucket; note the first that is too high.

    The weights of all sums add up to 1: one half is shared by those of the whole stream,
    the other by those of the buckets.
    """
    root = sqrt(odds)
    fourth = sqrt(root)
    bent = (1.0 / odds, 1.0, root, root * fourth, odds * fourth, odds * root)
    clip, buckets = reals[CLIP], int(reals[BUCKETS])
    start = sums_at(buckets)
    best, leader, place = 0.0, 0, 0
    for k in range(SUMS):
        turned = odds * SHIFTS[k] if k < SHIFTED else bent[k - SHIFTED]
        factor = ratio(turned / (1.0 + turned), clip, low, high, outcome)
        value = move(reals, start + 2 * k, factor)
        if value > best:
            best, leader, place = value, k, start + 2 * k
    best /= 2.0 * SUMS
    start = at + LOCAL_SUMS
    share = 2.0 * PER_BUCKET * buckets
    for k in range(PER_BUCKET):
        turned = odds * LOCAL[k]
        factor = ratio(turned / (1.0 + turned), clip, low, high, outcome)
        value = move(reals, start + 2 * k, factor) / share
        if value > best:
            leader = SUMS + (at - blocks_at(buckets)) // STRIDE
            best, place = value, start + 2 * k
    if best >= reals[CHANGE_LIMIT] and reals[CHANGE] == 0.0:
        reals[CHANGE] = reals[ROUNDS]
        reals[SINCE] = reals[place + 1]
        reals[LEADER] = float(leader)


def move(reals: Reals, place: int, factor: float) -> float:
    """Return a sum after one more factor; where it had fallen to 1 it starts from here."""
    value: float = reals[place]
    if value <= 1.0:
        value = 1.0
        reals[place + 1] = reals[ROUNDS]
    value *= factor
    if value > MOST:
        value = MOST
    reals[place] = value
    return value
