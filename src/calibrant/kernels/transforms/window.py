"""A window of past rounds, to which something is fitted anew every so often."""

from __future__ import annotations

from calibrant.kernels.layout import INDEX, Reals, Words

WINDOW, EVERY, FILLED, NEXT, DUE = range(5)
"""Which word is which.

- ``WINDOW``: How many rounds the window holds.
- ``EVERY``: Rounds from one fit to the next.
- ``FILLED``: Rounds in the window.
- ``NEXT``: Where in the window the next round goes.
- ``DUE``: Rounds until the next fit.
"""


def entered(words: Words, reals: Reals, at: int, rounds: int, x: float, outcome: int) -> bool:
    """Put a round into the two tables that start at ``rounds``; say whether a fit is due."""
    window, place = words[at + WINDOW] & INDEX, words[at + NEXT] & INDEX
    reals[rounds + place] = x
    reals[rounds + window + place] = 1.0 * outcome
    words[at + NEXT] = place + 1 if place + 1 < window else 0
    words[at + FILLED] = min(words[at + FILLED] + 1, window)
    words[at + DUE] -= 1
    if words[at + DUE] > 0:
        return False
    words[at + DUE] = words[at + EVERY]
    return True
