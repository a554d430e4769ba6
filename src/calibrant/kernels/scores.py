"""Losses of one forecast as kernel functions, by code."""

from __future__ import annotations

import math

from calibrant.kernels.layout import LOSS, RAW_INFINITE, RAW_LOSS, Reals, Words
from calibrant.kernels.portable import log

SQUARED, LOG, MISCLASSIFICATION, SPHERICAL = range(4)


def charge(code: int, forecast: float, outcome: int) -> float:
    """Return the loss of ``forecast`` under the loss with that code.

    >>> charge(SQUARED, 0.5, 1), charge(MISCLASSIFICATION, 0.5, 1)
    (0.25, 0.0)
    """
    if code == SQUARED:
        miss = outcome - forecast
        return miss * miss
    return charge_other(code, forecast, outcome)


def bill(words: Words, reals: Reals, row: int, forecast: float, outcome: int) -> None:
    """Add the raw forecast's loss to the account of a row; infinite losses are counted."""
    if words[LOSS] == SQUARED:
        miss = outcome - forecast
        reals[row + RAW_LOSS] += miss * miss
        return
    cost = charge_other(words[LOSS], forecast, outcome)
    enter(words, reals, row + RAW_LOSS, row + RAW_INFINITE, cost)


def refund(words: Words, reals: Reals, total: int, infinite: int, cost: float) -> None:
    """Take a loss off an account again."""
    if cost < math.inf:
        reals[total] -= cost
    else:
        words[infinite] -= 1


def enter(words: Words, reals: Reals, total: int, infinite: int, cost: float) -> None:
    """Add a loss to an account: its total, or the number of infinite losses."""
    if cost < math.inf:
        reals[total] += cost
    else:
        words[infinite] += 1


def charge_other(code: int, forecast: float, outcome: int) -> float:
    """Return the loss under the codes other than `SQUARED`, which is the common one."""
    hit = forecast if outcome == 1 else 1.0 - forecast
    if code == LOG:
        return -log(hit)
    if code == MISCLASSIFICATION:
        return 1.0 if (forecast >= 0.5) != (outcome == 1) else 0.0
    return 1.0 - hit / math.sqrt(forecast * forecast + (1.0 - forecast) * (1.0 - forecast))
