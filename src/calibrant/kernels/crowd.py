"""How many outcomes wait at a time, and among how many a late one counts."""

from __future__ import annotations

from typing import Final

from calibrant.kernels.coin import SPLITMIX
from calibrant.kernels.layout import COINS, ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS, Words

GUESS: Final = 10_000
"""Before any outcome was late, all that are missing may come; less likely so, the more came."""


def crowd_of(words: Words, row: int) -> int:
    """Return among how many forecasts that wait at a time an outcome counts, itself included.

    One more than the most that were missing at a forecast so far, or than the longest lag so far if
    that is less, for what never comes is missing as well.  Nothing here is about the outcome at
    hand, so that both outcomes count alike.
    """
    longest = max(words[row + LONGEST_LAG], GUESS // (1 + words[row + ROUNDS]))
    found: int = 1 + min(words[row + MOST_OUTSTANDING], longest)
    return found


def counts_by_lag(words: Words) -> bool:
    """Say whether late outcomes count by their own lag: so they did in earlier versions.

    States of these versions go on as they did, with the coins that they had.
    """
    found: bool = words[COINS] == SPLITMIX
    return found


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
