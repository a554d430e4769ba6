"""Average gaps with an anchor: the forecast of the round pulls at every cell.

The score of a cell is its average gap plus ``c (q - g)``, where q is the anchor (what came in)
and g the cell's value, so that a rule without gaps announces the anchor itself.  How strong
the pull is depends on what hedging was good for: c falls exponentially once the mean
forecasts have beaten their anchors, and comes back when they lose.

Late outcomes come in crowds that tell little more than one.  With d others that wait at a time, as
far as is known, the pull falls 1 + d times as slowly with the regret, or as if the patience were
2 (d**2 n)**(1/3) after n outcomes if that is more; and average gaps count by n / (n + 8 d), or
by n / (n + 128 r) if r others are the same, as far as a mixture in front can tell.
States of earlier versions go on as they did, see :func:`by_lag`.

A second rule forgets, with a half-life in rounds or in time.  The average gap of a cell is one
over its visits with weights that halve with every half-life.  It does not move while the cell is
left alone, for all weights fade alike; so fading is done when the cell is visited, and exactly.
A late outcome counts by what its forecast's age has left of it.  The gap and the visits of the
long run are counted besides, for the record.

A third rule plays on a grid that becomes finer as outcomes come in.  The state has room for the
finest grid.  A block begins with every 2**STEP-th of its points, and puts one between each two
whenever what is left to learn costs less than the floor of the grid in use: see :func:`due`.  No
count is lost, since a finer grid has all points of the coarser one.
"""

from __future__ import annotations

from typing import Final

from calibrant.kernels.crowd import counts_by_lag
from calibrant.kernels.layout import (
    BUCKETS,
    CELL,
    CELLS,
    COUNT,
    CROWD,
    DERIVED,
    FIXED,
    GAP,
    GAP_AND_COUNT,
    HEAD,
    INDEX,
    LAG,
    MIXED,
    NOW,
    PARAMETERS,
    REAL,
    REAL_COUNT,
    SAME,
    SCALE,
    SHARE,
    STATE,
    VALUES,
    VISITS,
    WIDTH,
    Reals,
    Section,
    Words,
)
from calibrant.kernels.portable import exp_plain, log
from calibrant.kernels.rule import Amend, Mean, Rule, Update
from calibrant.kernels.two_point import Draw, Score, Weigh, make_draw, mean, recall

SETTINGS: Final = Section()
STRENGTH: Final = PARAMETERS + SETTINGS.real("STRENGTH", FIXED, "The strongest pull, c.")
IMPATIENCE: Final = PARAMETERS + SETTINGS.real(
    "IMPATIENCE", FIXED, "1 / R0: how fast the pull falls with the regret."
)

OWN_HEAD: Final = Section(HEAD)
LEARNED: Final = OWN_HEAD.whole("LEARNED", STATE, "Outcomes learned in this block.", COUNT)
REGRET: Final = OWN_HEAD.real(
    "REGRET", STATE, "How much more than the anchor's loss the mean forecast's was."
)
PULL: Final = OWN_HEAD.real(
    "PULL", STATE, "How strongly the anchor pulls at present.", (0.0, REAL[1])
)
WAITED: Final = OWN_HEAD.real(
    "WAITED", STATE, "For how many forecasts of this block outcomes were late, in sum.", REAL_COUNT
)
TRUST: Final = OWN_HEAD.real(
    "TRUST",
    STATE,
    "How far average gaps are believed: less while most outcomes are yet to come.",
    SHARE,
)
CAUTION: Final = 8.0
"""After so many crowds of outcomes average gaps are believed by half."""
DOUBT: Final = 128.0
"""The same where outcomes of a crowd are the same."""

FIRST: Final = len(OWN_HEAD)
"""Words of a block before its cells."""

OWN_CELL: Final = Section(GAP_AND_COUNT)
AVERAGE: Final = OWN_CELL.real(
    "AVERAGE", DERIVED, "Average gap of the cell.", (-1.0, 1.0), ratio=(GAP, VISITS)
)
CELL_WORDS: Final = len(OWN_CELL)


def start(words: Words, reals: Reals, at: int) -> int:
    """Search from the grid point nearest to the anchor, as if the grid were even."""
    top = (words[CELLS] & INDEX) - 1
    return int(reals[MIXED] * top + 0.5)


def make_score(first: int, size: int) -> Score:
    """Return the score of cells of so many words behind a head of ``first``.

    The average gap of cell ``k``, and the pull.
    """

    def score(words: Words, reals: Reals, at: int, table: int, k: int) -> float:
        pull = reals[at + PULL] * (reals[MIXED] - reals[table + words[CELLS] + VALUES + k])
        found: float = reals[at + first + size * k + AVERAGE] * reals[at + TRUST] + pull
        return found

    return score


def make_weigh(score: Score) -> Weigh:
    """Return the comparison of the scores of ``k`` and ``k + 1``."""

    def weigh(words: Words, reals: Reals, at: int, table: int, k: int) -> tuple[float, float]:
        here = score(words, reals, at, table, k)
        above = score(words, reals, at, table, k + 1)
        return here, -above

    return weigh


score: Final = make_score(FIRST, CELL_WORDS)
weigh: Final = make_weigh(score)


def update(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, and what the mean forecast lost to the anchor."""
    count(words, reals, at + FIRST + CELL_WORDS * k, words[SCALE] * outcome - words[table + k])
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)


def count(words: Words, reals: Reals, where: int, gap: int) -> None:
    """Count one more visit of a cell, with its scaled gap."""
    words[where] += gap
    words[where + 1] += 1
    average(words, reals, where)


def learned(words: Words, reals: Reals, at: int, expected: float, outcome: int) -> None:
    """Count what the mean forecast lost to the anchor, and how late that was known."""
    words[at + LEARNED] += 1
    middle, anchor, others = expected - outcome, reals[MIXED] - outcome, reals[CROWD] - 1.0
    lost = middle * middle - anchor * anchor
    if counts_by_lag(words):
        lost = by_lag(words, reals, at, lost)
    elif others > 0.0:
        doubt = DOUBT * (reals[SAME] - 1.0)
        waiting = max(CAUTION * others, doubt) / words[BUCKETS]
        reals[at + WAITED] += (reals[LAG] - 1.0) / words[BUCKETS]
        reals[at + TRUST] = words[at + LEARNED] / (words[at + LEARNED] + waiting)
    adjust(words, reals, at, lost)


def by_lag(words: Words, reals: Reals, at: int, lost: float) -> float:
    """Return what a loss counted in earlier versions, and believe gaps as these did.

    By 1/L if L forecasts were made in between; gaps by n / (n + 2 W) after n outcomes that were
    late by W forecasts on average.
    """
    lag = reals[LAG]
    if lag > 1.0:
        lost /= lag
        reals[at + WAITED] += (lag - 1.0) / words[BUCKETS]
    if reals[at + WAITED] > 0.0:
        square = words[at + LEARNED] * 1.0 * words[at + LEARNED]
        reals[at + TRUST] = square / (square + 2.0 * reals[at + WAITED])
    return lost


def make_amend(first: int, mean: Mean) -> Amend:
    """Return what replaces an outcome, in cells behind a head of ``first``, for a rule's mean."""

    def amend(
        words: Words,
        reals: Reals,
        at: int,
        table: int,
        k: int,
        side: int,
        weight: float,
        change: int,
    ) -> None:
        where = at + first + CELL_WORDS * k
        words[where] += words[SCALE] * change
        average(words, reals, where)
        expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
        relearned(words, reals, at, expected, change)

    return amend


def relearned(words: Words, reals: Reals, at: int, expected: float, change: int) -> None:
    """Count what the mean forecast lost to the anchor after an outcome was replaced."""
    adjust(words, reals, at, 2.0 * change * (reals[MIXED] - expected))


amend: Final = make_amend(FIRST, mean)


def average(words: Words, reals: Reals, where: int) -> None:
    """Divide the gap of a cell by its draws."""
    reals[where + AVERAGE] = words[where] * 1.0 / (words[where + 1] * 1.0 * words[SCALE])


def adjust(words: Words, reals: Reals, at: int, lost: float) -> None:
    """Add to the regret, and let the pull follow."""
    regret, impatience = reals[at + REGRET] + lost, reals[IMPATIENCE]
    if reals[CROWD] > 1.0:
        impatience = slowed(impatience, reals[CROWD], words[at + LEARNED] * 1.0)
    reals[at + REGRET] = regret
    fall = regret * impatience
    reals[at + PULL] = reals[STRENGTH] * exp_plain(0.0 if fall > 0.0 else fall)


def slowed(impatience: float, crowd: float, count: float) -> float:
    """Return how fast the pull falls after ``count`` outcomes that come ``crowd`` at a time.

    Only so slowly does the regret of those that wait not matter in the end.
    """
    others = crowd - 1.0
    slow = 0.5 * exp_plain(log(others * others * count) * (-1.0 / 3.0))
    return min(impatience / crowd, slow)


FADING_SETTINGS: Final = Section(SETTINGS)
HALF_LIFE: Final = PARAMETERS + FADING_SETTINGS.real(
    "HALF_LIFE", FIXED, "After how long a visit counts half."
)
TIMED: Final = PARAMETERS + FADING_SETTINGS.whole(
    "TIMED", FIXED, "One if the half-life is in the caller's time, 0 if in outcomes of the block."
)

FADING_CELL: Final = Section(GAP_AND_COUNT)
FADING_CELL.real("AVERAGE", STATE, "Average gap of the cell, as far as remembered.", (-1.0, 1.0))
KEPT: Final = FADING_CELL.real(
    "KEPT", STATE, "Sum of the fading weights as of the latest visit, which counts one.", REAL_COUNT
)
LAST: Final = FADING_CELL.real("LAST", STATE, "When the latest visit was.")
FADING_WORDS: Final = len(FADING_CELL)

LN2: Final = 0.6931471805599453


score_fading: Final = make_score(FIRST, FADING_WORDS)
weigh_fading: Final = make_weigh(score_fading)


def left(reals: Reals, age: float) -> float:
    """Return what an age leaves of a weight of one."""
    return exp_plain(-LN2 * (max(age, 0.0) / reals[HALF_LIFE]))


def update_fading(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, for the long run and as far as it is remembered."""
    where = at + FIRST + FADING_WORDS * k
    words[where] += words[SCALE] * outcome - words[table + k]
    words[where + 1] += 1
    now = reals[NOW] if words[TIMED] == 1 else words[at + LEARNED] * 1.0
    visit(reals, where, now, outcome - reals[table + words[CELLS] + VALUES + k])
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)


def visit(reals: Reals, where: int, now: float, gap: float) -> None:
    """Add one gap to the average, the newest in full, older ones by what is left of them."""
    share, last = 1.0, reals[where + LAST]
    if now >= last or reals[where + KEPT] == 0.0:
        kept = left(reals, now - last)
        reals[where + KEPT] *= kept
        reals[where + LAST] = now
    else:
        share = left(reals, last - now)
    reals[where + KEPT] += share
    reals[where + AVERAGE] += share * (gap - reals[where + AVERAGE]) / reals[where + KEPT]


def amend_fading(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, change: int
) -> None:
    """Replace an outcome: ``change`` is the new one less the old one.

    The average moves by the share that the round still has in it.  In rounds its age is the
    number of forecasts since, spread evenly over the buckets: exact for one bucket in which
    every outcome came before the next forecast.  No average leaves what outcomes can give.
    """
    where = at + FIRST + FADING_WORDS * k
    words[where] += words[SCALE] * change
    then = words[at + LEARNED] - reals[LAG] / words[BUCKETS]
    if words[TIMED] == 1:
        then = reals[NOW]
    share = left(reals, reals[where + LAST] - then)
    value = reals[table + words[CELLS] + VALUES + k]
    moved = reals[where + AVERAGE] + share * change / reals[where + KEPT]
    reals[where + AVERAGE] = min(max(moved, -value), 1.0 - value)
    expected = mean(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    relearned(words, reals, at, expected, change)


GROWING_HEAD: Final = Section(OWN_HEAD)
STEP: Final = GROWING_HEAD.whole(
    "STEP",
    STATE,
    "How often the step between grid points in use can still be halved: 2**STEP cells.",
    (0, 7),
)
NEXT: Final = GROWING_HEAD.whole(
    "NEXT", STATE, "After how many outcomes of this block the step is halved next.", COUNT
)
FIRST_GROWING: Final = len(GROWING_HEAD)
"""Words of a block before its cells."""

ENOUGH: Final = 48
"""Iterations after which a fixed point that is approached by a factor of 3 at least is exact."""


score_growing: Final = make_score(FIRST_GROWING, CELL_WORDS)


def due(resolution: int) -> int:
    """Return how many outcomes a grid of so many steps is worth: what is left is below its floor.

    The least T with ``K (1 + ln(T/K))/T <= 1/(4 N^2)`` for K = N + 1.  With x = T/K this is the
    fixed point of ``x = 4 N^2 (1 + ln x)``, a contraction by ``1/(1 + ln x) < 1/3``.

    >>> due(1), due(2), due(20)
    (30, 263, 361299)
    """
    floor = 4.0 * resolution * resolution
    x = floor
    for _ in range(ENOUGH):
        x = floor * (1.0 + log(x))
    return int((resolution + 1) * x) + 1


def start_growing(words: Words, reals: Reals, at: int) -> int:
    """Search from the point in use that is nearest to the anchor."""
    width = words[at + STEP] & INDEX
    top = ((words[CELLS] & INDEX) - 1) >> width
    nearest: int = int(reals[MIXED] * top + 0.5) << width
    return nearest


def search_growing(
    words: Words, reals: Reals, at: int, table: int, near: int, found: float
) -> tuple[int, float]:
    """Go from a point with a score to the first without one, or to a pair.

    The scores of the ends point inwards, so there is one.
    """
    step, cells = 1 << (words[at + STEP] & INDEX), words[CELLS] & INDEX
    ahead = step if found > 0.0 else -step
    far = near
    # A state that somebody made up may have ends that point outwards.
    while found * ahead > 0.0 and 0 <= far + ahead < cells:
        far += ahead
        found = score_growing(words, reals, at, table, far)
    if not found * ahead < 0.0:
        return far, 1.0
    low = min(far - ahead, far)
    here = score_growing(words, reals, at, table, low)
    above = -score_growing(words, reals, at, table, low + step)
    return low, above / (here + above)


def draw_growing(
    words: Words, reals: Reals, at: int, cells: int, table: int, u: float
) -> tuple[int, int, float]:
    """Return the cell on which the coin falls, its side in the pair, and the low one's weight."""
    low = start_growing(words, reals, at)
    found, weight = score_growing(words, reals, at, table, low), 1.0
    if found != 0.0:
        low, weight = search_growing(words, reals, at, table, low, found)
    width = words[at + STEP] & INDEX
    side = 1 if u >= weight else 0
    return low + (side << width), side | (width << WIDTH), weight


def mean_growing(
    words: Words, reals: Reals, cells: int, table: int, cell: int, side: int, weight: float
) -> float:
    """Return the mean of the announced pair, as far apart as it was then."""
    step = 1 << (side >> WIDTH)
    low = table + cells + VALUES + ((cell - (side & 1) * step) & CELL)
    middle: float = reals[low] * weight + reals[low + step * (weight < 1.0)] * (1.0 - weight)
    return middle


def update_growing(
    words: Words, reals: Reals, at: int, table: int, k: int, side: int, weight: float, outcome: int
) -> None:
    """Count the outcome at the drawn cell, and halve the step if that is due."""
    count(
        words, reals, at + FIRST_GROWING + CELL_WORDS * k, words[SCALE] * outcome - words[table + k]
    )
    expected = mean_growing(words, reals, words[CELLS] & INDEX, table, k, side, weight)
    learned(words, reals, at, expected, outcome)
    if words[at + STEP] > 0 and words[at + LEARNED] >= words[at + NEXT]:
        grow(words, at)


def grow(words: Words, at: int) -> None:
    """Put a point between each two in use."""
    words[at + STEP] -= 1
    width = words[at + STEP] & INDEX
    words[at + NEXT] = due(((words[CELLS] & INDEX) - 1) >> width) if width > 0 else 0


amend_growing: Final = make_amend(FIRST_GROWING, mean_growing)

draw: Final = make_draw(score, weigh, start, nearest=True)
draw_fading: Final = make_draw(score_fading, weigh_fading, start, nearest=True)


def _rule(
    name: str,
    words: tuple[Section, ...],
    draw: Draw,
    learn: Update,
    amend: Amend,
    mean: Mean = mean,
) -> Rule:
    head, cell, settings = words
    return Rule(name, draw, learn, amend, mean, recall, head, cell, settings, anchored=True)


ANCHORED: Final = _rule("anchored", (OWN_HEAD, OWN_CELL, SETTINGS), draw, update, amend)
_words = OWN_HEAD, FADING_CELL, FADING_SETTINGS
FADING: Final = _rule("fading", _words, draw_fading, update_fading, amend_fading)
_words = GROWING_HEAD, OWN_CELL, SETTINGS
GROWING: Final = _rule("growing", _words, draw_growing, update_growing, amend_growing, mean_growing)
