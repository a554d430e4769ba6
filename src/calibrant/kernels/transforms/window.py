"""A window of past rounds, to which a curve or a line is fitted anew every so often.

The curve is monotone, fitted by pooling adjacent violators, and straight between the fitted
points.  The line is that of the log-odds: slope and intercept.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.portable import sigmoid_short
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.kernels.transforms.platt import log_odds

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


KNOTS, CURVE_ROUNDS = range(5, 7)
"""Which word is which.

- ``KNOTS``: Points of the fitted curve.
- ``CURVE_ROUNDS``: (reals) Eight tables as long as the window: the raw forecasts and outcomes in
  it; where the knots are and how high; and four notes, the room in which the fit is made.
"""
TABLES: Final = 8
NOTED: Final = 4


def predict_curve(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the height of the curve; without one, the raw forecast."""
    window, knots = words[at + WINDOW] & INDEX, words[at + KNOTS] & INDEX
    left = at + CURVE_ROUNDS + 2 * window
    heights = left + window
    if knots == 0:
        return raw
    if raw <= reals[left]:
        first: float = reals[heights]
        return first
    low, high = 0, knots
    while high - low > 1:
        middle = (low + high) >> 1
        if reals[left + middle] <= raw:
            low = middle
        else:
            high = middle
    base: float = reals[heights + low]
    if high == knots:
        return base
    part = (raw - reals[left + low]) / (reals[left + high] - reals[left + low])
    height: float = min(base + (reals[heights + high] - base) * part, 1.0)
    return height


def learn_curve(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Put the round into the window, and fit when it is time."""
    if entered(words, reals, at, at + CURVE_ROUNDS, raw, outcome):
        fit_curve(words, reals, at)


def fit_curve(words: Words, reals: Reals, at: int) -> None:
    """Fit the curve to the window."""
    window, filled = words[at + WINDOW] & INDEX, words[at + FILLED] & INDEX
    rows, keys = at + CURVE_ROUNDS, at + CURVE_ROUNDS + 4 * window
    for t in range(filled):
        reals[keys + t] = reals[rows + t]
        reals[keys + window + t] = reals[rows + window + t]
    sort(reals, keys, window, filled)
    blocks = pool(reals, keys, window, filled)
    words[at + KNOTS] = mark(reals, keys, window, blocks, rows + 2 * window)


def sort(reals: Reals, keys: int, window: int, count: int) -> None:
    """Sort ``count`` pairs by their key, by way of a heap with the largest on top.

    Each pair is a key and, ``window`` words further, its value.
    """
    for start in range(count // 2 - 1, -1, -1):
        sink(reals, keys, window, start, count)
    for last in range(count - 1, 0, -1):
        swap(reals, keys, keys + last)
        swap(reals, keys + window, keys + window + last)
        sink(reals, keys, window, 0, last)


def sink(reals: Reals, keys: int, window: int, node: int, count: int) -> None:
    """Let a pair sink in the heap until no child is larger."""
    child = 2 * node + 1
    while child < count:
        if child + 1 < count and reals[keys + child] < reals[keys + child + 1]:
            child += 1
        if reals[keys + child] <= reals[keys + node]:
            return
        swap(reals, keys + node, keys + child)
        swap(reals, keys + window + node, keys + window + child)
        node, child = child, 2 * child + 1


def swap(reals: Reals, here: int, there: int) -> None:
    """Exchange two words."""
    kept = reals[here]
    reals[here] = reals[there]
    reals[there] = kept


def pool(reals: Reals, keys: int, window: int, count: int) -> int:
    """Pool sorted pairs into blocks with rising means; return how many.

    Of each block: first key, sum, last key, weight, ``window`` words apart.  They take
    the place of pairs that were read before.
    """
    sums, lasts, weights = keys + window, keys + 2 * window, keys + 3 * window
    top = -1
    for t in range(count):
        key, value = reals[keys + t], reals[sums + t]
        if top >= 0 and reals[lasts + top] == key:
            # Equal keys share a point, whatever their outcomes.
            reals[sums + top] += value
            reals[weights + top] += 1.0
        else:
            top = settled(reals, keys, window, top) + 1
            reals[keys + top] = key
            reals[lasts + top] = key
            reals[sums + top] = value
            reals[weights + top] = 1.0
    return settled(reals, keys, window, top) + 1


def settled(reals: Reals, keys: int, window: int, top: int) -> int:
    """Merge the last block into those before it as long as its mean is not above theirs."""
    sums, lasts, weights = keys + window, keys + 2 * window, keys + 3 * window
    while top > 0:
        below = reals[sums + top - 1] * reals[weights + top]
        if below < reals[sums + top] * reals[weights + top - 1]:
            return top
        reals[sums + top - 1] += reals[sums + top]
        reals[weights + top - 1] += reals[weights + top]
        reals[lasts + top - 1] = reals[lasts + top]
        top -= 1
    return top


def mark(reals: Reals, keys: int, window: int, blocks: int, knots: int) -> int:
    """Write the ends of the blocks as knots; return how many."""
    made = 0
    for b in range(blocks):
        height = reals[keys + window + b] / reals[keys + 3 * window + b]
        first, last = reals[keys + b], reals[keys + 2 * window + b]
        reals[knots + made] = first
        reals[knots + window + made] = height
        made += 1
        if last > first:
            reals[knots + made] = last
            reals[knots + window + made] = height
            made += 1
    return made


CURVE: Final = Kernel(predict_curve, learn_curve)


LOW, RIDGE, SLOPE, INTERCEPT, LINE_ROUNDS = range(5, 10)
"""Which word is which.

- ``LOW``: (real) How far raw forecasts are kept away from 0 and 1.
- ``RIDGE``: (real) How strongly slope and intercept are pulled to 1 and 0.
- ``LINE_ROUNDS``: (reals) The log-odds of the window, then the outcomes, then a note: the present
  log-odds.
"""

ITERATIONS: Final = 50
SHORTEST: Final = 1e-9
"""Steps are halved until they are shorter than this part."""
ENOUGH: Final = 1e-18
"""Square of the gradient at which the fit stops."""


def predict_line(words: Words, reals: Reals, at: int, raw: float) -> float:
    """Return the probability by the last fit."""
    x = log_odds(raw, reals[at + LOW])
    reals[at + LINE_ROUNDS + 2 * (words[at + WINDOW] & INDEX)] = x
    return sigmoid_short(reals[at + SLOPE] * x + reals[at + INTERCEPT])


def learn_line(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
    """Put the round into the window, and fit when it is time."""
    x = reals[at + LINE_ROUNDS + 2 * (words[at + WINDOW] & INDEX)]
    if entered(words, reals, at, at + LINE_ROUNDS, x, outcome):
        fit_line(words, reals, at)


def fit_line(words: Words, reals: Reals, at: int) -> None:
    """Minimise the log loss on the window plus ridge/2 |(slope, intercept) - (1, 0)|^2.

    Newton's method from the last fit.  The loss is convex, so a step along which the gradient
    does not get shorter is halved until it does.
    """
    a, b = reals[at + SLOPE], reals[at + INTERCEPT]
    g, h, p, q, r = derivatives(words, reals, at, a, b)
    length, left = g * g + h * h, ITERATIONS
    while length > ENOUGH and left > 0:
        whole = p * r - q * q
        along, across = (r * g - q * h) / whole, (p * h - q * g) / whole
        step = 1.0
        g, h, p, q, r = derivatives(words, reals, at, a - along, b - across)
        while g * g + h * h >= length and step > SHORTEST:
            step *= 0.5
            g, h, p, q, r = derivatives(words, reals, at, a - step * along, b - step * across)
        a -= step * along
        b -= step * across
        length, left = g * g + h * h, left - 1
    reals[at + SLOPE] = a
    reals[at + INTERCEPT] = b


def derivatives(
    words: Words, reals: Reals, at: int, a: float, b: float
) -> tuple[float, float, float, float, float]:
    """Return both first derivatives at (a, b), and the second ones: aa, ab, bb."""
    ridge, window = reals[at + RIDGE], words[at + WINDOW] & INDEX
    g, h, p, q, r = ridge * (a - 1.0), ridge * b, ridge, 0.0, ridge
    for t in range(words[at + FILLED]):
        x = reals[at + LINE_ROUNDS + t]
        told = sigmoid_short(a * x + b)
        gap, bend = told - reals[at + LINE_ROUNDS + window + t], told * (1.0 - told)
        g += gap * x
        h += gap
        p += bend * x * x
        q += bend * x
        r += bend
    return g, h, p, q, r


LINE: Final = Kernel(predict_line, learn_line)
