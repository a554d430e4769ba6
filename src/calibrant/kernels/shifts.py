"""Experts who shift and scale a forecast of a number, and the mixture of what they say.

A raw forecast is known by its quantiles ``q[j]`` at the J levels ``(j + 1/2)/J``.  Its centre
``c`` is their mean, its spread ``d`` their mean distance from c, its shape ``u[j] = (q[j] - c)/d``.
An expert says a centre and a spread of its own, and so the quantiles ``centre + spread u[j]``;
the loss of these is twice the mean pinball loss, which is the CRPS, but for levels 1/J apart.

    expert 0                     c, d
    experts by moments           centre = y' + b (c - c'), where ' is a mean over past rounds
                                 spread = d e'/d', or e' for the flat one, with e = |y - centre|
    experts by descent           centre = c + a, spread = d k; a and k go down the slope of the loss

    mixture      centre and spread are the means of those of experts, by weights w
    learn        w[i] *= exp(-loss[i] / unit), then w[i] = (1 - s) w[i] / sum of w + s w0[i]
                 unit = the mean loss, or an eighth of how far losses are apart if that is more

Without the eighth a round that is worth many others, as where spreads of raw forecasts differ by
orders of magnitude, leaves all weight with whoever was lucky in it.  States of earlier versions go
on without.

The mixture has the raw shape again: to average centres and spreads is to average quantiles, whose
loss is at most the average loss.  Moments forget by a factor a round, and start with the raw
spread.  Where outcomes lie on atoms of raw forecasts, such as no rain, these must not move: the
mixture says c and d as long as one outcome in 20 is one of the quantiles.

A late outcome is learned from what experts said then, for their weights, and from what they would
say now, for themselves.  One of N that wait at a time counts less, whatever it is and however late
(:mod:`calibrant.kernels.crowd`)::

    w[i] *= exp(-loss[i] / (N unit)), and the share s is s/N
    moments learn the part 1/sqrt(N) of a round, or less where outcomes that wait together are
    alike: rounds remembered and what is forgotten go by it, also those that came before others
    waited
    descents learn the part 1/N at most: steps and squared slopes go by it

How much they are alike is told by errors e, outcomes less the centre that was announced, over the
spread that was.  They may be large and all of one sign, where forecasts are far off; so with
running means R of the last N errors and E of the last 2 N, from which no error is missing,

    TOGETHER += (e - E) (R - E),    SQUARES += (e - E)**2
    same = 1 + (N - 1) 7.6 TOGETHER/SQUARES

held between 1 and N.  If N in a row have the same error, TOGETHER is on average 1/7.6 of SQUARES;
if all are independent it is about 0, whatever their mean.  States of earlier versions have no words
for it, and learn every outcome whole.

A round with a number beyond :data:`LARGEST` teaches nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calibrant.kernels.crowd import EARLIER, GAIN, LEAST_MEMORY, RECENT, SQUARES, TOGETHER, same_of
from calibrant.kernels.layout import REAL, REAL_COUNT, SHARE, STATE, Section
from calibrant.kernels.portable import exp
from calibrant.kernels.wary import CROWDS, wary_part

GRID: Final = 16
"""At how many levels, in the middle of as many equal parts, raw forecasts are known."""
LARGEST: Final = 1e70
"""Beyond this squares could leave the limits of reals."""
FADES: Final = (1.0, 0.99, 0.95, 299.0 / 300.0, 1.0, 0.99)
"""What a round leaves of the moments of those before, for each expert by moments."""
SLOPED: Final = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0)
"""Whether an expert by moments learns the slope b; else b is 1."""
FLAT: Final = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
"""Whether an expert by moments says the same spread whatever the raw one is."""
RATES: Final = (0.1, 0.3)
"""The steps of experts by descent, in mean spreads."""
ADAPTIVE: Final = (0.0, 1.0)
"""Whether steps are divided by the root of the sum of squared slopes."""
MOMENTS: Final = len(FADES)
DESCENTS: Final = len(RATES)
EXPERTS: Final = 1 + MOMENTS + DESCENTS
SAID: Final = 2 * (EXPERTS - 1)
"""Numbers that experts other than the raw forecast say in a round."""
RAW_WEIGHT: Final = 0.5
"""The raw forecast is right until something speaks against."""
SHARED: Final = 3e-4
"""Which part of the weights returns to the first weights in each round."""
FADE: Final = 0.995
"""What a round leaves of the mean loss and of the mean spread of those before."""
APART: Final = 8.0
"""By how much an outcome moves logarithms of weights apart at most."""
ENOUGH: Final = 2.5
"""Rounds that an expert by moments must remember to say something of its own."""
SHRINK: Final = 5.0
"""With how many rounds the slope 1 is believed."""
STEEPEST: Final = 10.0
MOST: Final = 1e12
"""By which factor a spread is scaled at most, up or down."""
RARE: Final = 20.0
"""One outcome on an atom in so many makes the stream one of atoms."""

POSITIVE: Final = (0.0, REAL[1])
STRETCHES: Final = (1.0 / MOST, MOST)


def section(follows: bool = True) -> Section:
    """Return the words of the experts and of their mixture.

    And of how much outcomes are alike, if that is followed.
    """
    part = Section()
    part.real("WEIGHT", STATE, "Weights of the experts, the raw forecast first.", SHARE, EXPERTS)
    part.real("REMEMBERED", STATE, "Rounds in the mean loss and the mean spread.", REAL_COUNT)
    part.real("LOSS", STATE, "Mean loss of the experts, by their weights.", POSITIVE)
    part.real("SPREAD", STATE, "Mean spread of raw forecasts.", POSITIVE)
    part.real("SEEN", STATE, "Outcomes that were learned.", REAL_COUNT)
    part.real("TIED", STATE, "Outcomes that were one of the raw quantiles.", REAL_COUNT)
    for _ in range(MOMENTS):
        part.real("ROUNDS", STATE, "Rounds that the moments remember.", REAL_COUNT)
        part.real("CENTRE", STATE, "Mean of raw centres.")
        part.real("OUTCOME", STATE, "Mean of outcomes.")
        part.real("VARIANCE", STATE, "Variance of raw centres.", POSITIVE)
        part.real("COVARIANCE", STATE, "Covariance of raw centres and outcomes.")
        part.real("DISTANCE", STATE, "Mean distance of outcomes from the centre said.", POSITIVE)
        part.real("WIDTH", STATE, "Mean spread of raw forecasts.", POSITIVE)
    for _ in range(DESCENTS):
        part.real("SHIFT", STATE, "By how much centres are shifted.")
        part.real("STRETCH", STATE, "By which factor spreads are scaled.", STRETCHES)
        part.real("SHIFT_SQUARES", STATE, "Sum of squared slopes along the shift.", POSITIVE)
        part.real("STRETCH_SQUARES", STATE, "Sum of squared slopes along the stretch.", POSITIVE)
    if follows:
        part.real("RECENT", STATE, "Mean of the latest errors, as many as wait at a time.")
        part.real("EARLIER", STATE, "The same of twice as many.")
        part.real("TOGETHER", STATE, "Errors times how the latest differ from more of them.")
        part.real("SQUARES", STATE, "Squares of the errors, in sum.", POSITIVE)
        part.real("ERRORS", STATE, "Errors in these means.", REAL_COUNT)
    return part


REMEMBERED, LOSS, SPREAD, SEEN, TIED = range(EXPERTS, EXPERTS + 5)
FIRST_MOMENT: Final = EXPERTS + 5
ROUNDS, CENTRE, OUTCOME, VARIANCE, COVARIANCE, DISTANCE, WIDTH = range(7)
MOMENT_WORDS: Final = 7
FIRST_DESCENT: Final = FIRST_MOMENT + MOMENTS * MOMENT_WORDS
SHIFT, STRETCH, SHIFT_SQUARES, STRETCH_SQUARES = range(4)
DESCENT_WORDS: Final = 4
FOLLOWED: Final = FIRST_DESCENT + DESCENTS * DESCENT_WORDS
"""Where the likeness of outcomes is followed; words as in `calibrant.kernels.crowd`."""
ERRORS: Final = 4
LIKENESS: Final = 7.6 / GAIN
"""In sum, products count by so much more than of errors that are not taken less their mean."""
BELIEVED: Final = 20.0
"""As so many squares that show outcomes to be the same a stream begins: a dozen outcomes or so."""

RAW_CENTRE, RAW_SPREAD, SHAPE = range(3)
LOSSES: Final = SHAPE + GRID
EVEN: Final = LOSSES + EXPERTS
CAPPED: Final = EVEN + 1
ROOM: Final = CAPPED + 1
"""Numbers of scratch room: centre, spread and shape of a raw forecast, losses of experts; above 0
unless outcomes that came before others waited count more, as in the fourth version; and above 0
unless one outcome may move weights by anything, as in the fifth."""
TOLD: Final = 4
"""Numbers that a round tells: centre and spread of the raw forecast and of the mixture."""


def fresh(follows: bool = True) -> list[float]:
    """Return the words before the first round, with or without how much outcomes are alike.

    >>> len(fresh()) == len(section())
    True
    """
    words = [first_weight(k) for k in range(EXPERTS)] + [0.0] * (5 + MOMENTS * MOMENT_WORDS)
    words += [0.0, 1.0, 0.0, 0.0] * DESCENTS
    first = 0.0, 0.0, BELIEVED / GAIN, BELIEVED, 0.0
    return [*words, *first] if follows else words


def first_weight(k: int) -> float:
    """Return the weight with which an expert starts."""
    return RAW_WEIGHT if k == 0 else (1.0 - RAW_WEIGHT) / (EXPERTS - 1)


def measure(numbers: Any, start: int, room: Any) -> bool:
    """Write centre, spread and shape of a raw forecast; say whether they can be reckoned with."""
    total = 0.0
    for j in range(GRID):
        if not -LARGEST <= numbers[start + j] <= LARGEST:
            return False
        total += numbers[start + j]
    centre, away = total / GRID, 0.0
    for j in range(GRID):
        away += abs(numbers[start + j] - centre)
    spread = away / GRID
    room[RAW_CENTRE], room[RAW_SPREAD] = centre, spread
    for j in range(GRID):
        room[SHAPE + j] = (numbers[start + j] - centre) / spread if spread > 0.0 else 0.0
    return True


# ------------------------------------------------------------------------- what experts say


def between(number: float, low: float, high: float) -> float:
    """Return a number, or the end that it lies beyond."""
    return min(max(number, low), high)


def moved_centre(marks: Any, at: int, sloped: float, c: float) -> float:
    """Return the centre that moments at ``at`` make of a raw one."""
    slope, own = 1.0, marks[at + VARIANCE]
    if sloped > 0.0 and own > 0.0 and marks[at + ROUNDS] > 0.0:
        shrink = SHRINK / marks[at + ROUNDS]
        found = (marks[at + COVARIANCE] + shrink * own) / (own * (1.0 + shrink))
        slope = between(found, -STEEPEST, STEEPEST)
    centre: float = marks[at + OUTCOME] + slope * (c - marks[at + CENTRE])
    return centre


def scaled_spread(marks: Any, at: int, flat: float, d: float) -> float:
    """Return the spread that moments at ``at`` make of a raw one."""
    whole = d if flat > 0.0 else marks[at + WIDTH]
    if whole <= 0.0:
        return d
    return d * between(marks[at + DISTANCE] / whole, 1.0 / MOST, MOST)


def say(marks: Any, at: int, c: float, d: float, said: Any) -> None:
    """Write the centre and the spread of every expert but the raw forecast."""
    place = at + FIRST_MOMENT
    for k in range(MOMENTS):
        speaks = marks[place + ROUNDS] > ENOUGH
        said[2 * k] = moved_centre(marks, place, SLOPED[k], c) if speaks else c
        said[2 * k + 1] = scaled_spread(marks, place, FLAT[k], d) if speaks else d
        place += MOMENT_WORDS
    for k in range(MOMENTS, MOMENTS + DESCENTS):
        said[2 * k] = c + marks[place + SHIFT]
        said[2 * k + 1] = d * marks[place + STRETCH]
        place += DESCENT_WORDS


def tied(marks: Any, at: int) -> bool:
    """Say whether outcomes lie on atoms of raw forecasts."""
    hits: float = marks[at + TIED]
    return hits > 0.0 and hits * RARE >= marks[at + SEEN]


def mix(marks: Any, at: int, c: float, d: float, said: Any) -> tuple[float, float]:
    """Return centre and spread of the mixture."""
    if tied(marks, at) or marks[at + SEEN] <= 0.0:
        return c, d
    centre, spread = marks[at] * c, marks[at] * d
    for k in range(EXPERTS - 1):
        centre += marks[at + 1 + k] * said[2 * k]
        spread += marks[at + 1 + k] * said[2 * k + 1]
    return centre, between(spread, d / MOST, d * MOST)


def announce(
    marks: Any, at: int, numbers: Any, start: int, room: Any, said: Any, told: Any, to: int
) -> None:
    """Let experts speak: write what they say, and centre and spread, raw and mixed.

    Of a raw forecast that cannot be reckoned with, zeros are written.
    """
    if measure(numbers, start, room):
        c, d = room[RAW_CENTRE], room[RAW_SPREAD]
        say(marks, at, c, d, said)
        centre, spread = mix(marks, at, c, d, said)
        told[to], told[to + 1], told[to + 2], told[to + 3] = c, d, centre, spread
        return
    for k in range(SAID):
        said[k] = 0.0
    for k in range(TOLD):
        told[to + k] = 0.0


# ---------------------------------------------------------------------------- what they learn


def loss_of(room: Any, centre: float, spread: float, y: float) -> float:
    """Return the loss of a shape with that centre and spread: twice its mean pinball loss."""
    total = 0.0
    for j in range(GRID):
        off, level = y - (centre + spread * room[SHAPE + j]), (j + 0.5) / GRID
        total += level * off if off > 0.0 else (level - 1.0) * off
    return 2.0 * total / GRID


def learn(
    marks: Any, at: int, numbers: Any, start: int, room: Any, said: Any, y: float, crowd: float
) -> None:
    """Learn the outcome of a forecast about which experts said ``said``, one of ``crowd``.

    If there are others, centre and spread of the mixture stand behind what experts said.
    """
    if not (-LARGEST <= y <= LARGEST and measure(numbers, start, room)):
        return
    c, d, part = room[RAW_CENTRE], room[RAW_SPREAD], 1.0
    if crowd > 1.0:
        same = same_of(marks, at + FOLLOWED, crowd - 1.0)
        part = wary_part(crowd, same, marks[at + SEEN])
        compare(marks, at + FOLLOWED, crowd, y - said[SAID], said[SAID + 1])
        if room[EVEN] > 0.0:
            level(marks, at, part * marks[at + SEEN])
    count(marks, at, numbers, start, d, y, part)
    weigh(marks, at, room, said, y, crowd, part)
    place = at + FIRST_MOMENT
    for k in range(MOMENTS):
        learn_moments(marks, place, FADES[k], SLOPED[k], c, d, y, part)
        place += MOMENT_WORDS
    # A step is seen in outcomes only once all that wait have come: together they make one.
    step = min(part, 1.0 / crowd) if room[EVEN] > 0.0 else part
    for k in range(DESCENTS):
        descend(marks, place, RATES[k], ADAPTIVE[k], marks[at + SPREAD], room, y, step)
        place += DESCENT_WORDS


def compare(marks: Any, at: int, crowd: float, off: float, spread: float) -> None:
    """Learn from how far an outcome was off whether it is alike those before it."""
    error = between(off / spread, -MOST, MOST) if spread > 0.0 else 0.0
    before = marks[at + ERRORS]
    marks[at + ERRORS] = before + 1.0
    if before > 0.0:
        away, kept = error - marks[at + EARLIER], CROWDS * crowd + LEAST_MEMORY
        more = away * (marks[at + RECENT] - marks[at + EARLIER]) * LIKENESS
        marks[at + TOGETHER] += more - marks[at + TOGETHER] / kept
        marks[at + SQUARES] += away * away - marks[at + SQUARES] / kept
    gain = 1.0 / (before + 1.0)
    marks[at + RECENT] += (error - marks[at + RECENT]) * max(gain, 1.0 / crowd)
    marks[at + EARLIER] += (error - marks[at + EARLIER]) * max(gain, 0.5 / crowd)


def level(marks: Any, at: int, most: float) -> None:
    """Let moments remember no more rounds than all outcomes so far would be by the present part.

    Those that came first, before others waited, would count more than all that follow.
    """
    for k in range(MOMENTS):
        place = at + FIRST_MOMENT + k * MOMENT_WORDS
        marks[place + ROUNDS] = min(marks[place + ROUNDS], most)


def faded(fade: float, part: float) -> float:
    """Return what a part of a round leaves of what was before, given what a whole one leaves."""
    return 1.0 - (1.0 - fade) * part


def count(marks: Any, at: int, numbers: Any, start: int, d: float, y: float, part: float) -> None:
    """Count an outcome, and whether it is one of the raw quantiles; follow the mean spread."""
    marks[at + SEEN] += 1.0
    hit = 0.0
    for j in range(GRID):
        if numbers[start + j] == y:
            hit = 1.0
    marks[at + TIED] += hit
    marks[at + REMEMBERED] = marks[at + REMEMBERED] * faded(FADE, part) + part
    marks[at + SPREAD] += (d - marks[at + SPREAD]) * part / marks[at + REMEMBERED]


def weigh(marks: Any, at: int, room: Any, said: Any, y: float, crowd: float, part: float) -> None:
    """Weigh experts anew by the losses of what they said, in units of the mean loss."""
    most = least = loss_of(room, room[RAW_CENTRE], room[RAW_SPREAD], y)
    room[LOSSES] = least
    mean = marks[at] * least
    for k in range(1, EXPERTS):
        loss = loss_of(room, said[2 * k - 2], said[2 * k - 1], y)
        room[LOSSES + k] = loss
        mean += marks[at + k] * loss
        least, most = min(least, loss), max(most, loss)
    marks[at + LOSS] += (mean - marks[at + LOSS]) * part / marks[at + REMEMBERED]
    unit = max(marks[at + LOSS], (most - least) / APART if room[CAPPED] > 0.0 else 0.0)
    usual, total, share = unit * crowd, 0.0, SHARED / crowd
    for k in range(EXPERTS):
        if usual > 0.0:
            marks[at + k] *= exp((least - room[LOSSES + k]) / usual)
        total += marks[at + k]
    for k in range(EXPERTS):
        own = marks[at + k] / total if total > 0.0 else first_weight(k)
        marks[at + k] = (1.0 - share) * own + share * first_weight(k)


def learn_moments(
    marks: Any, at: int, fade: float, sloped: float, c: float, d: float, y: float, part: float
) -> None:
    """Let moments remember a part of a round; the first one tells nothing of the spread."""
    off = abs(y - moved_centre(marks, at, sloped, c)) if marks[at + ROUNDS] > 0.0 else d
    marks[at + ROUNDS] = marks[at + ROUNDS] * faded(fade, part) + part
    gain = part / marks[at + ROUNDS]
    across, up = c - marks[at + CENTRE], y - marks[at + OUTCOME]
    marks[at + CENTRE] += gain * across
    marks[at + OUTCOME] += gain * up
    marks[at + VARIANCE] = (1.0 - gain) * (marks[at + VARIANCE] + gain * across * across)
    marks[at + COVARIANCE] = (1.0 - gain) * (marks[at + COVARIANCE] + gain * across * up)
    marks[at + DISTANCE] += gain * (off - marks[at + DISTANCE])
    marks[at + WIDTH] += gain * (d - marks[at + WIDTH])


def descend(
    marks: Any,
    at: int,
    rate: float,
    adaptive: float,
    usual: float,
    room: Any,
    y: float,
    part: float,
) -> None:
    """Take a part of a step down the slope of the loss of what the expert would say."""
    centre = room[RAW_CENTRE] + marks[at + SHIFT]
    spread = room[RAW_SPREAD] * marks[at + STRETCH]
    along_shift, along_stretch = 0.0, 0.0
    for j in range(GRID):
        u = room[SHAPE + j]
        slope = (1.0 if y < centre + spread * u else 0.0) - (j + 0.5) / GRID
        along_shift += 2.0 * slope / GRID
        along_stretch += 2.0 * slope * u / GRID
    marks[at + SHIFT_SQUARES] += along_shift * along_shift * part
    marks[at + STRETCH_SQUARES] += along_stretch * along_stretch * part
    shift = step_of(rate, adaptive, marks[at + SHIFT_SQUARES]) * along_shift * part
    stretch = step_of(rate, adaptive, marks[at + STRETCH_SQUARES]) * along_stretch * part
    marks[at + SHIFT] -= usual * shift
    scaled = marks[at + STRETCH] * max(0.1, 1.0 - stretch)
    marks[at + STRETCH] = between(scaled, 1.0 / MOST, MOST)


def step_of(rate: float, adaptive: float, squares: float) -> float:
    """Return the step of a descent, by all slopes so far where it adapts."""
    return rate / math.sqrt(squares) if adaptive > 0.0 and squares > 0.0 else rate


def replay(
    marks: Any, at: int, numbers: Any, outcomes: Any, room: Any, said: Any, told: Any
) -> None:
    """Play a batch: announce and learn in turn, and note centres and spreads."""
    for t in range(len(outcomes)):
        announce(marks, at, numbers, t * GRID, room, said, told, TOLD * t)
        learn(marks, at, numbers, t * GRID, room, said, outcomes[t], 1.0)
