"""Quantiles of distributions in rows, and the tracker that moves along them.

A row is a curve of ``size`` knots: values that never fall, with levels that never fall from 0 to
1.  A vertical piece is an atom, a level one is a gap.  A row of size 0 is a normal distribution:
its mean and its standard deviation.

A position ``q`` is a level at which a row is asked for its quantile.  Below 0 the answer is minus
infinity and above 1 infinity; the share says with which part of an atom the position is reached,
so that an outcome on the atom counts as covered with that probability.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calibrant.kernels.portable import log

INFINITY: Final = float("inf")

SIZE, WIDTH, BETWEEN, ASKED, APART, RANDOM = range(6)
"""Which word is which.

- ``SIZE``: Knots of a row, 0 for normal distributions.
- ``WIDTH``: Numbers of a row: as many as knots, or two.
- ``BETWEEN``: Levels from one row's to the next one's: 0 where all rows share them.
- ``ASKED``: Positions asked of a row.
- ``APART``: Positions from one row's to the next one's: 0 where all rows share them.
- ``RANDOM``: Whether an outcome on an atom is covered by its share, or always.
"""

# Wichura (1988), algorithm AS 241: the quantile of the normal distribution to 16 digits.  Each pair
# is a coefficient of the polynomial above the line and one of that below, the highest power first.
MIDDLE: Final = (
    (2.5090809287301226727e3, 5.2264952788528545610e3),
    (3.3430575583588128105e4, 2.8729085735721942674e4),
    (6.7265770927008700853e4, 3.9307895800092710610e4),
    (4.5921953931549871457e4, 2.1213794301586595867e4),
    (1.3731693765509461125e4, 5.3941960214247511077e3),
    (1.9715909503065514427e3, 6.8718700749205790830e2),
    (1.3314166789178437745e2, 4.2313330701600911252e1),
    (3.3871328727963666080e0, 1.0),
)
TAIL: Final = (
    (7.74545014278341407640e-4, 1.05075007164441684324e-9),
    (2.27238449892691845833e-2, 5.47593808499534494600e-4),
    (2.41780725177450611770e-1, 1.51986665636164571966e-2),
    (1.27045825245236838258e0, 1.48103976427480074590e-1),
    (3.64784832476320460504e0, 6.89767334985100004550e-1),
    (5.76949722146069140550e0, 1.67638483018380384940e0),
    (4.63033784615654529590e0, 2.05319162663775882187e0),
    (1.42343711074968357734e0, 1.0),
)
END: Final = (
    (2.01033439929228813265e-7, 2.04426310338993978564e-15),
    (2.71155556874348757815e-5, 1.42151175831644588870e-7),
    (1.24266094738807843860e-3, 1.84631831751005468180e-5),
    (2.65321895265761230930e-2, 7.86869131145613259100e-4),
    (2.96560571828504891230e-1, 1.48753612908506148525e-2),
    (1.78482653991729133580e0, 1.36929880922735805310e-1),
    (5.46378491116411436990e0, 5.99832206555887937690e-1),
    (6.65790464350110377720e0, 1.0),
)


def normal_quantile(p: float) -> float:
    """Return where the standard normal distribution reaches ``p``.

    >>> normal_quantile(0.5), round(normal_quantile(0.975), 6), normal_quantile(0.0)
    (0.0, 1.959964, -inf)
    """
    if p <= 0.0 or p >= 1.0:
        return -INFINITY if p <= 0.0 else INFINITY
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * ratio(MIDDLE, 0.180625 - q * q)
    r = math.sqrt(-log(min(p, 1.0 - p)))
    side = 1.0 if q > 0.0 else -1.0
    if r <= 5.0:
        return side * ratio(TAIL, r - 1.6)
    return side * ratio(END, r - 5.0)


def fill_normal(levels: Any, quantiles: Any) -> None:
    """Write where the standard normal distribution reaches each level."""
    for k in range(len(levels)):
        quantiles[k] = normal_quantile(levels[k])


def fill_erfc(given: Any, found: Any) -> None:
    """Write the complementary error function of each number."""
    for k in range(len(given)):
        found[k] = math.erfc(given[k])


def ratio(table: Any, r: float) -> float:
    """Return the ratio of two polynomials in ``r``, the highest powers first."""
    over, under = 0.0, 0.0
    for top, bottom in table:
        over = over * r + top
        under = under * r + bottom
    return over / under


def first_at_least(numbers: Any, start: int, size: int, bound: float) -> int:
    """Return the first place of ``size`` from ``start`` whose number is at least ``bound``."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if numbers[start + middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


def first_above(numbers: Any, start: int, size: int, bound: float) -> int:
    """Return the first place of ``size`` from ``start`` whose number is above ``bound``."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if numbers[start + middle] <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def locate(
    values: Any, levels: Any, at: int, base: int, size: int, q: float
) -> tuple[float, float]:
    """Return the quantile at position ``q`` of the row at ``at``, and the share of its atom.

    >>> locate([0.0, 0.0, 4.0], [0.0, 0.5, 1.0], 0, 0, 3, 0.75)
    (2.0, 1.0)
    >>> locate([0.0, 0.0, 4.0], [0.0, 0.5, 1.0], 0, 0, 3, 0.25)
    (0.0, 0.5)
    """
    if q < 0.0 or q > 1.0:
        return (-INFINITY, 0.0) if q < 0.0 else (INFINITY, 1.0)
    if size == 0:
        return values[at] + values[at + 1] * normal_quantile(q), 1.0
    j = first_at_least(levels, base, size, q)
    x = values[at + j]
    if j > 0 and values[at + j - 1] < x:
        low, high = levels[base + j - 1], levels[base + j]
        x = values[at + j - 1] + (x - values[at + j - 1]) * ((q - low) / (high - low))
        if x < values[at + j]:
            return x, 1.0
        x = values[at + j]
    return x, share_of(values, levels, at, base, size, q, x)


def share_of(values: Any, levels: Any, at: int, base: int, size: int, q: float, x: float) -> float:
    """Return which part of the atom at the knot ``x`` lies below position ``q``."""
    low = levels[base + first_at_least(values, at, size, x)]
    high = levels[base + first_above(values, at, size, x) - 1]
    if high <= low:
        return 1.0
    part: float = (q - low) / (high - low)
    return min(max(part, 0.0), 1.0)


def covers(x: float, share: float, y: float, u: float) -> int:
    """Say whether an outcome lies below a quantile; on its atom the coin ``u`` decides."""
    return int(y < x or (y == x and u < share))


def fill(shape: Any, values: Any, levels: Any, asked: Any, quantiles: Any, shares: Any) -> None:
    """Write the quantiles of all rows at their positions, and the shares of their atoms."""
    size, width, between = int(shape[SIZE]), int(shape[WIDTH]), int(shape[BETWEEN])
    many, apart, random = int(shape[ASKED]), int(shape[APART]), shape[RANDOM]
    for t in range(len(values) // width):
        for m in range(many):
            q = asked[t * apart + m]
            x, share = locate(values, levels, t * width, t * between, size, q)
            quantiles[t * many + m] = x
            shares[t * many + m] = share if random else 1.0


def advance(marks: Any, at: int, many: int, target: float, m: int, covered: int) -> None:
    """Move the position of a level by what it met.

    At ``at`` stand the step, and for each level its position, how often it was covered, and how
    often it was after sorting.
    """
    marks[at + 1 + m] += marks[at] * (target - covered)
    marks[at + 1 + many + m] += covered


def amend(marks: Any, at: int, many: int, m: int, change: int) -> None:
    """Replace what a level met: ``change`` is what is covered now less what was."""
    marks[at + 1 + m] -= marks[at] * change
    marks[at + 1 + many + m] += change


def count_sorted(marks: Any, at: int, many: int, below: int, sign: float) -> None:
    """Count coverage as it is after sorting: the ``below`` highest of all levels were covered."""
    for m in range(many - below, many):
        marks[at + 1 + 2 * many + m] += sign


def replay_tracker(
    shape: Any,
    wanted: Any,
    marks: Any,
    at: int,
    values: Any,
    levels: Any,
    outcomes: Any,
    coins: Any,
    places: Any,
    quantiles: Any,
) -> None:
    """Track all levels through a batch; note positions and quantiles before they are sorted."""
    size, width, between = int(shape[SIZE]), int(shape[WIDTH]), int(shape[BETWEEN])
    many, random = int(shape[ASKED]), shape[RANDOM]
    for t in range(len(outcomes)):
        y, u, below = outcomes[t], coins[t], 0
        for m in range(many):
            q = marks[at + 1 + m]
            x, share = locate(values, levels, t * width, t * between, size, q)
            places[t * many + m], quantiles[t * many + m] = q, x
            covered = covers(x, share if random else 1.0, y, u)
            advance(marks, at, many, wanted[m], m, covered)
            below += covered
        count_sorted(marks, at, many, below, 1.0)
