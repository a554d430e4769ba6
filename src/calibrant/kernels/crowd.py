"""How many outcomes wait at a time, how much these are alike, and what a late one counts.

Outcomes that wait together may be one and the same, as the result of a game is for all forecasts
that were made during it, or have nothing to do with each other.  What was forecast and came out
tells: with errors e (outcomes less mixed forecasts) in the order in which they are learned and
N = 1 + d for d others that wait at a time,

::

    same    = 1 + d clip(c TOGETHER / SQUARES, 0, 1)
    learn e:  TOGETHER += e (RECENT / N - EARLIER / 2N)
              SQUARES  += e**2
              RECENT    = RECENT (1 - 1/N)  + e
              EARLIER   = EARLIER (1 - 1/2N) + e

where both sums forget over 500 + 2.5 N outcomes.  If N outcomes in a row are the same, TOGETHER is
on average 1/c of SQUARES; if all are independent it is 0 on average.  So it is where all forecasts
are off by the same, for the two running means are the same then.
"""

from __future__ import annotations

import math
from typing import Final

from calibrant.kernels.coin import SPLITMIX
from calibrant.kernels.layout import (
    COINS,
    ISSUED,
    LONGEST_LAG,
    MOST_OUTSTANDING,
    ROUNDS,
    Reals,
    Words,
)

GUESS: Final = 10_000
"""Before any outcome was late, all that are missing may come; less likely so, the more came."""


RECENT, EARLIER, TOGETHER, SQUARES = range(4)
"""Words by which it is followed how much outcomes are alike, all of them reals.

- ``RECENT``: Sum of the latest errors, as many as wait at a time.
- ``EARLIER``: The same of twice as many.
- ``TOGETHER``: Errors times what the mean of the latest exceeds that of twice as many, in sum.
- ``SQUARES``: Squares of the errors, in sum.
"""
GAIN: Final = 6.5
"""1 / the mean of ``(1 - exp(-x)) - (1 - exp(-x/2))`` for x from 0 to 1."""
PRIOR: Final = 0.02
"""As so many squares that show outcomes to be the same a stream begins."""
FIRST: Final = (0.0, 0.0, PRIOR / GAIN, PRIOR)
"""The words of a stream that has learned nothing."""
LEAST_MEMORY: Final = 500.0
CROWDS: Final = 2.5
"""Errors are remembered over so many, and as many crowds."""
DOUBT: Final = 72.0
"""After so many results of crowds these are believed by half."""


def crowd_of(words: Words, row: int) -> int:
    """Return among how many forecasts that wait at a time an outcome counts, itself included.

    One more than the most that were missing at a forecast so far, or than the longest lag so far if
    that is less, for what never comes is missing as well.  Nothing here is about the outcome at
    hand, so that both outcomes count alike.
    """
    longest = max(words[row + LONGEST_LAG], GUESS // (1 + words[row + ROUNDS]))
    found: int = 1 + min(words[row + MOST_OUTSTANDING], longest)
    return found


def crowd_then(words: Words, row: int, number: int) -> int:
    """Return the same for the outcome of the forecast with that number, which is not counted yet.

    Neither may the forecast be, if its outcome comes at once.
    """
    issued, learned = words[row + ISSUED], words[row + ROUNDS]
    longest = max(words[row + LONGEST_LAG], issued - number - 1, GUESS // (1 + learned))
    most = words[row + MOST_OUTSTANDING]
    found: int = 1 + min(max(most, issued - learned) if number >= issued else most, longest)
    return found


def counts_by_lag(words: Words) -> bool:
    """Say whether late outcomes count by their own lag: so they did in earlier versions.

    States of these versions go on as they did, with the coins that they had.
    """
    found: bool = words[COINS] == SPLITMIX
    return found


def same_of(reals: Reals, at: int, others: float) -> float:
    """Return as one of how many outcomes that are the same one counts, of 1 + ``others``.

    That is 1 if all are independent.  What is known of the outcome at hand does not matter.
    """
    together, squares = GAIN * reals[at + TOGETHER], reals[at + SQUARES]
    if together >= squares:
        return 1.0 + others
    return 1.0 + others * (together / squares) if together > 0.0 else 1.0


def compare(reals: Reals, at: int, crowd: float, error: float) -> None:
    """Learn from an error how much it is alike those before it, of ``crowd`` at a time."""
    recent, earlier = reals[at + RECENT], reals[at + EARLIER]
    kept = 1.0 - 1.0 / (LEAST_MEMORY + CROWDS * crowd)
    product = error * ((recent - 0.5 * earlier) / crowd)
    reals[at + TOGETHER] = reals[at + TOGETHER] * kept + product
    reals[at + SQUARES] = reals[at + SQUARES] * kept + error * error
    reals[at + RECENT] = recent * (1.0 - 1.0 / crowd) + error
    reals[at + EARLIER] = earlier * (1.0 - 0.5 / crowd) + error


def part_of(crowd: float, same: float, learned: int) -> float:
    """Return which part of an outcome experts learn.

    The outcome is one of ``crowd`` that wait at a time, of which so many are the ``same``, after so
    many were ``learned``.  Few results that many forecasts wait for are hardly believed.
    """
    slow = same * (1.0 + DOUBT * (same - 1.0) / (1.0 + learned))
    return 1.0 / max(math.sqrt(crowd), slow)


def count_forecast(words: Words, row: int) -> None:
    """Count a forecast, and how many outcomes are missing when it is made."""
    number = words[row + ISSUED]
    words[row + ISSUED] = number + 1
    missing = number - words[row + ROUNDS]
    if missing > words[row + MOST_OUTSTANDING]:
        words[row + MOST_OUTSTANDING] = missing


def count_correction(words: Words, row: int, number: int) -> None:
    """Count a round as outstanding until now, where its outcome is corrected.

    Every forecast since may have missed one outcome more than was known then.
    """
    lag = words[row + ISSUED] - number - 1
    if lag > 0:
        words[row + MOST_OUTSTANDING] += 1
        words[row + LONGEST_LAG] = max(words[row + LONGEST_LAG], lag)
