"""The two-point rule: the one search and the one hedge that most calibrators share.

A rule gives each grid cell a *score*: positive where outcomes were above the
cell's value, negative where below, zero where the cell may be announced as it
is.  A cell without a score is announced alone; otherwise two neighbours whose scores point
towards each other are announced with probabilities inversely proportional to
their weights, which makes the expected drift of the rule's potential vanish
whatever the outcome.  A rule is therefore three functions:

``score(words, reals, at, table, k)``
    sign and size of cell ``k``'s score.  An end cell whose score points off the grid is
    announced alone (on a grid from 0 to 1 none ever does).
``weigh(words, reals, at, table, k)``
    how strongly the score of ``k`` points up and that of ``k + 1`` down, on one scale; if both
    are positive, ``k`` is drawn in proportion to the latter.
``update(words, reals, at, table, cell, side, weight, outcome)``
    learn an outcome.

Why the search is O(1).  Let ``p`` be the remembered position, the cell drawn
last.  Claim: every score left of ``p`` points weakly up and every score right of ``p``
weakly down.  The claim holds at the start: all scores are zero, or the prior's, which
change sign at ``p``.  Suppose it holds before a round, and let the score of ``p`` be positive
(the other case mirrors it).  If ``p + 1`` has no score it is announced alone, and the
claim holds with ``p + 1`` for ``p``; otherwise its score is negative and the pair
``(p, p + 1)`` is announced.  Whichever is drawn, only its own score changes, and
all scores on its left are weakly positive, all on its right weakly negative: the claim
holds again with the drawn cell for ``p``.  So the search looks at two cells.

The claim needs each outcome to be learned before the next forecast *of the same
block*, a rule whose score at a cell depends on that cell alone, and a position
that only draws move.  Late or corrected outcomes flip a cell far from ``p``;
scores that add up several groups change at many cells at once.  Then a pair whose scores point
towards each other still exists on either side of ``p``, because the scores at the ends of the
grid point inwards, and ``settle`` finds one in O(log K): doubling steps away from
``p``, then bisection.  Forgetting scales a cell's score by a positive
factor, which keeps its sign, so it does not break the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from calibrant.kernels.layout import CELL, INDEX, POSITION, VALUES, Reals, Words

Score: TypeAlias = Callable[..., Any]
Weigh: TypeAlias = Callable[..., tuple[float, float]]
Start: TypeAlias = Callable[[Words, Reals, int], int]
Draw: TypeAlias = Callable[[Words, Reals, int, int, int, float], tuple[int, int, float]]


def make_draw(
    score: Score, weigh: Weigh, start: Start | None = None, nearest: bool = False
) -> Draw:
    """Return ``draw(words, reals, at, cells, table, u)`` for a rule's ``score`` and ``weigh``.

    ``start(words, reals, at)`` says where to begin the search: by default at the last draw.
    ``nearest`` asks for the first pair on the way, where there may be several: the search
    then goes from cell to cell.

    ``draw`` returns the cell on which the coin ``u`` falls, its side in the pair (0 low,
    1 high) and the probability of the low cell; a cell announced alone has weight one.
    """
    settle = make_settle(score, weigh, start, nearest)

    def draw(
        words: Words, reals: Reals, at: int, cells: int, table: int, u: float
    ) -> tuple[int, int, float]:
        low = words[at + POSITION] & INDEX if start is None else start(words, reals, at)
        found = score(words, reals, at, table, low)
        if found == 0 or cells < 2:
            return low, 0, 1.0
        # No jump hangs on a sign or on the coin: the processor would guess either wrong
        # half of the time, which costs compiled code as much as the rest of the round.
        # At an end that points off the grid, the pair beside it does not face each other.
        inner = 0 < low < cells - 1
        low -= int(found < 0)
        if not inner:
            low = min(max(low, 0), cells - 2)
        here, above = weigh(words, reals, at, table, low)
        if here > 0 and above > 0:
            weight = above / (here + above)
        else:
            low, weight = settle(words, reals, at, cells, table)
        side = 1 if u >= weight else 0
        return low + side, side, weight

    return draw


def make_settle(
    score: Score, weigh: Weigh, start: Start | None = None, nearest: bool = False
) -> Callable[[Words, Reals, int, int, int], tuple[int, float]]:
    """Return the search for a pair wherever it lies: its low cell, and that cell's weight."""

    def settle(words: Words, reals: Reals, at: int, cells: int, table: int) -> tuple[int, float]:
        near = words[at + POSITION] & INDEX if start is None else start(words, reals, at)
        found = score(words, reals, at, table, near)
        ahead = 1 if found > 0 else -1
        end = cells - 1 if found > 0 else 0
        if found == 0 or near == end:
            return near, 1.0
        far, step = near + ahead, 1
        found = score(words, reals, at, table, far)
        while found * ahead > 0 and far != end:
            near, step = far, step if nearest else 2 * step
            far = min(max(near + ahead * step, 0), cells - 1)
            found = score(words, reals, at, table, far)
        if found * ahead > 0:
            return end, 1.0
        # Now the score of `near` points to `far`, and that of `far` back or nowhere.
        while found != 0 and abs(far - near) > 1:
            middle = (near + far) >> 1
            between = score(words, reals, at, table, middle)
            if between * ahead > 0:
                near = middle
            else:
                far, found = middle, between
        if found == 0:
            return far, 1.0
        low = min(near, far)
        here, above = weigh(words, reals, at, table, low)
        return low, above / (here + above)

    return settle


def mean(
    words: Words, reals: Reals, cells: int, table: int, cell: int, side: int, weight: float
) -> float:
    """Return the mean of the announced pair, the same whichever of the two was drawn."""
    low = table + cells + VALUES + ((cell - side) & CELL)
    middle: float = reals[low] * weight + reals[low + (weight < 1.0)] * (1.0 - weight)
    return middle


def recall(words: Words, reals: Reals, at: int, cells: int, table: int, number: int) -> bool:
    """Say that a pair needs no recalling: its ticket carries all of it."""
    return True
