"""Exponential weights with a fixed share over several transforms.

Words: parameters, the cumulative loss of the mixture, where the notes and where the parts
start (relative to the mixture's own start); the weights, the cumulative losses and the shares of
the experts; under the log loss likelihoods whose logarithm is not taken yet, of the experts and of
the mixture; then the parts, then the notes: the experts' forecasts and what else a form
needs.

Numba cannot loop over functions of different kinds.  So the parts are folded into two
functions, each of which calls the one before it and then its own part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from calibrant.kernels import bits
from calibrant.kernels.crowd import compare, same_of
from calibrant.kernels.layout import INDEX, Reals, Words
from calibrant.kernels.portable import (
    POWER_2,
    POWER_3,
    POWER_4,
    POWER_5,
    POWER_6,
    POWER_7,
    POWER_8,
    POWER_9,
    POWER_10,
    POWER_11,
    exp,
    exp_short,
    lanes,
    log,
    log_ratio,
    logit,
)
from calibrant.kernels.swaps import FRESH, least_step, noticed
from calibrant.kernels.transforms import kernel as types
from calibrant.kernels.transforms.context import SLOTS
from calibrant.kernels.transforms.kernel import BOTH, ODDS, Kernel, ask
from calibrant.kernels.transforms.means import Absorb, Advise
from calibrant.kernels.transforms.parts import Part, fold

REST, RATE, UNIT, LOSS, NOTES, PARTS = range(6)
"""Which word is which.

- ``REST``: (real) One minus the share.
- ``RATE``: (real) eta, negated.
- ``UNIT``: (real) 1 / (2 eta), or in mixtures that watch for swaps of models ``WATCH``: what they
  saw of raw forecasts, see :mod:`calibrant.kernels.swaps`.
- ``LOSS``: (real) Cumulative loss of the mixture.
- ``NOTES``: Where the notes start.
- ``PARTS``: Where each part starts, from here on.
"""

WATCH: Final = UNIT

LEAST: Final = 2.0**-1022
"""One over a smaller number may be infinite."""
FLOOR: Final = 1e-290
"""No weight falls below it, so that no expert is lost for ever when nothing is shared."""
BITS: Final = 15
FIELD: Final = 0x7FFF
FINE: Final = 32767.0
PER_FINE: Final = 1.0 / FINE
"""Forecasts of rounds that wait are kept to 15 bits."""
DUE: Final = 1e-200
"""A likelihood below this is added to the losses."""

Forms: TypeAlias = Callable[[int, int, bool], tuple["Combine", "Reweigh"]]
Combine: TypeAlias = Callable[[Words, Reals, int, int], float]
Reweigh: TypeAlias = Callable[[Words, Reals, int, int, float, int], None]
Soften: TypeAlias = Callable[[Words, Reals, int, int, float, int, float], None]


@functools.cache
def make_mixture(
    parts: tuple[Part, ...], form: Forms, alike: bool = False, swaps: bool = False
) -> Kernel:
    """Return the kernel of a mixture of all experts of ``parts``.

    With ``alike`` it follows how much outcomes that wait together are, with ``swaps`` besides
    whether raw forecasts look like those of another model.
    """
    advise, absorb = fold(parts, PARTS)
    count = sum(part.width for part in parts)
    combine, reweigh = form(len(parts), count, swaps)
    soften = log_softened if form is bayes else squared_softened
    where = sums_at(len(parts), count, form is bayes) if alike else 0
    given, logs = _make_given(advise, combine), max(part.logs for part in parts)
    slots, recall = _reading(parts, packed(count))
    return Kernel(
        ask(given, logs),
        _make_learn(absorb, reweigh, swaps),
        packed(count) + slots,
        _make_keep(count),
        _make_late(advise, absorb, soften(len(parts), count), count, logs, (where, swaps)),
        _make_alike(where) if alike else None,
        given,
        logs,
        slots=slots,
        recall=recall,
        wide=wide if swaps else None,
    )


def _reading(parts: tuple[Part, ...], behind: int) -> tuple[int, types.Recall | None]:
    """Return how many slots an expert reads, and what fills them with the words ``behind``."""
    for k, part in enumerate(parts):
        if (kernel := part.kernel) is not None and kernel.slots:
            # A mixture finds them behind what its own experts said.
            fill = kernel.recall or _make_fill(kernel.slots)
            return kernel.slots, _make_recall(PARTS + k, fill, behind + kernel.told - kernel.kept)
    return 0, None


@functools.cache
def _make_fill(slots: int) -> types.Recall:
    def fill(words: Words, reals: Reals, reader: int, to: Any, first: int) -> bool:
        start, same = reader + (words[reader + SLOTS] & INDEX), True
        for k in range(slots):
            told = to[first + k]
            same = same and words[start + k] == told
            words[start + k] = told
        return same

    return fill


def _make_recall(where: int, fill: types.Recall, behind: int) -> types.Recall:
    def recall(words: Words, reals: Reals, at: int, to: Any, first: int) -> bool:
        return fill(words, reals, at + (words[at + where] & INDEX), to, first + behind)

    return recall


def _make_given(advise: Advise, combine: Combine) -> types.Given:
    def given(words: Words, reals: Reals, at: int, raw: float, odds: float, less: float) -> float:
        out = at + (words[at + NOTES] & INDEX)
        advise(words, reals, at, raw, odds, less, out)
        return combine(words, reals, at, out)

    return given


def _make_learn(absorb: Absorb, reweigh: Reweigh, swaps: bool) -> types.Learn:
    def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
        out = at + (words[at + NOTES] & INDEX)
        reweigh(words, reals, at, out, told, outcome)
        absorb(words, reals, at, raw, out, outcome, 1.0)
        if swaps:
            words[at + WATCH] = noticed(words[at + WATCH], raw)

    return learn


def wide(words: Words, reals: Reals, at: int) -> int:
    """Return how many cells apart neighbours on the last stage's grid must be at least."""
    return least_step(words[at + WATCH])


def packed(count: int) -> int:
    """Return how many words hold that many forecasts, of 15 bits each."""
    return (count + 3) // 4


def _make_keep(count: int) -> types.Keep:
    def keep(words: Words, reals: Reals, at: int, to: Any, first: int) -> None:
        out = at + (words[at + NOTES] & INDEX)
        for i in range(count // 4):
            k = out + 4 * i
            low = (int(reals[k + 1] * FINE + 0.5) << BITS) + int(reals[k] * FINE + 0.5)
            high = (int(reals[k + 3] * FINE + 0.5) << BITS) + int(reals[k + 2] * FINE + 0.5)
            to[first + i] = (high << 2 * BITS) + low
        if count & 3:
            word = 0
            for k in range(count - 1, (count & ~3) - 1, -1):
                word = (word << BITS) + int(reals[out + k] * FINE + 0.5)
            to[first + count // 4] = word

    return keep


def sums_at(parts: int, count: int, log: bool) -> int:
    """Return where the likeness of outcomes is followed: behind weights, losses and shares.

    And behind likelihoods that are due, under the log loss.
    """
    return PARTS + parts + 3 * count + (count + 1 if log else 0)


def _make_alike(where: int) -> types.Alike:
    def alike(words: Words, reals: Reals, at: int, others: float) -> float:
        return same_of(reals, at + where, others)

    return alike


def _make_late(
    advise: Advise, absorb: Absorb, soften: Soften, count: int, logs: int, own: tuple[int, bool]
) -> types.Late:
    where, swaps = own

    def late(
        words: Words,
        reals: Reals,
        at: int,
        raw: float,
        told: float,
        outcome: int,
        crowd: float,
        part: float,
        to: Any,
        first: int,
    ) -> None:
        out = at + (words[at + NOTES] & INDEX)
        for k in range(count):
            reals[out + k] = ((to[first + (k >> 2)] >> (BITS * (k & 3))) & FIELD) * PER_FINE
        soften(words, reals, at, out, told, outcome, 1.0 / crowd)
        # Experts learn from what they would say now, and less of it: many such outcomes at a
        # time tell little more than one.
        odds = logit(raw) if logs >= ODDS else 0.0
        less = log(1.0 - raw) if logs == BOTH else 0.0
        advise(words, reals, at, raw, odds, less, out)
        absorb(words, reals, at, raw, out, outcome, part)
        if where > 0:
            compare(reals, at + where, crowd, outcome - told)
        if swaps:
            words[at + WATCH] = FRESH

    return late


def squared_softened(parts: int, count: int) -> Soften:
    """Return what a late outcome does to weights under the squared loss.

    Exponents and shares count by ``part``: of so many rounds that wait at a time, each may move
    the weights only so far.
    """
    weights = PARTS + parts
    shares = weights + 2 * count

    def soften(
        words: Words, reals: Reals, at: int, out: int, told: float, outcome: int, part: float
    ) -> None:
        rate, total = reals[at + RATE] * part, 0.0
        for k in range(count):
            gap = reals[out + k] - outcome
            weight = reals[at + weights + k] * exp_short(rate * (gap * gap))
            reals[out + count + k] = weight
            total += weight
        scale = (1.0 - (1.0 - reals[at + REST]) * part) / total
        for k in range(count):
            weight = reals[out + count + k] * scale + reals[at + shares + k] * part
            reals[at + weights + k] = weight if weight > FLOOR else FLOOR
        charge(reals, at, at + weights + count, out, count, told, outcome)

    return soften


def log_softened(parts: int, count: int) -> Soften:
    """Return the same for the log loss."""
    weights = PARTS + parts
    losses = weights + count
    shares = losses + count
    due = shares + count

    def soften(
        words: Words, reals: Reals, at: int, out: int, told: float, outcome: int, part: float
    ) -> None:
        total = 0.0
        for k in range(count):
            likely = reals[out + k] if outcome == 1 else 1.0 - reals[out + k]
            book(reals, at + losses + k, at + due + k, likely)
            weight = reals[at + weights + k] * exp(part * log(likely)) if likely > 0.0 else 0.0
            reals[out + count + k] = weight
            total += weight
        scale = (1.0 - (1.0 - reals[at + REST]) * part) / total if total > LEAST else 0.0
        for k in range(count):
            weight = reals[out + count + k] * scale + reals[at + shares + k] * part
            if total > LEAST:
                reals[at + weights + k] = weight if weight > FLOOR else FLOOR
        book(reals, at + LOSS, at + due + count, told if outcome == 1 else 1.0 - told)

    return soften


def substitution(parts: int, count: int, swaps: bool) -> tuple[Combine, Reweigh]:
    """Return the form for the squared loss that loses nothing beyond the weights' potential.

    With M_y = sum_k w_k exp(-eta (p_k - y)^2) it announces 1/2 + ln(M_1 / M_0) / (2 eta), whose
    loss is at most -ln(M_y) / eta for both outcomes as long as eta <= 2 (Vovk 1990).

    Notes: the forecasts, and zeros up to a round number; exp(-eta loss) of all these for
    outcome 0, then for outcome 1.
    """
    weights = PARTS + parts
    shares = weights + 2 * count
    padded = bits.lanes(count)

    def combine(words: Words, reals: Reals, at: int, out: int) -> float:
        at, out = at & INDEX, out & INDEX
        likelihoods(reals, out, count, padded, reals[at + RATE])
        # Places that do not change are added up once: plain Python would do it in each turn.
        none, one, own, zeros, ones = 0.0, 0.0, at + weights, out + padded, out + 2 * padded
        for k in range(count):
            weight = reals[own + k]
            none += weight * reals[zeros + k]
            one += weight * reals[ones + k]
        unit = -0.5 / reals[at + RATE] if swaps else reals[at + UNIT]
        told: float = 0.5 + log_ratio(one, none) * unit
        return 0.0 if told < 0.0 else (1.0 if told > 1.0 else told)

    def reweigh(words: Words, reals: Reals, at: int, out: int, told: float, outcome: int) -> None:
        at, out = at & INDEX, out & INDEX
        likely, total, own, share = out + padded + padded * outcome, 0.0, at + weights, at + shares
        # M_y once more, to the bit: cheaper than room for it in every row.
        for k in range(count):
            total += reals[own + k] * reals[likely + k]
        scale = reals[at + REST] / total
        for k in range(count):
            weight = reals[own + k] * reals[likely + k] * scale + reals[share + k]
            reals[own + k] = weight if weight > FLOOR else FLOOR
        charge(reals, at, own + count, out, count, told, outcome)

    return combine, reweigh


def likelihoods(reals: Reals, out: int, count: int, padded: int, rate: float) -> None:
    """Write exp(-eta loss) of forecasts for both outcomes behind them.

    That is :func:`~calibrant.kernels.portable.exp_short` of both, in line: plain Python would spend
    as long on the calls.
    """
    # An eighth is exact, so the order of these factors does not matter.
    eighth, zeros, ones = 0.125 * rate, out + padded, out + 2 * padded
    # Compiled, several at a time.
    for k in range(lanes(count)):
        p = reals[out + k]
        q = 1.0 - p
        r, s = eighth * (p * p), eighth * (q * q)
        z, y = r * r, s * s
        w, v = z * z, y * y
        third = (POWER_8 + POWER_9 * r) + z * (POWER_10 + POWER_11 * r)
        inner = (POWER_4 + POWER_5 * r) + z * (POWER_6 + POWER_7 * r) + w * third
        root = (1.0 + r) + z * (POWER_2 + POWER_3 * r) + w * inner
        third = (POWER_8 + POWER_9 * s) + y * (POWER_10 + POWER_11 * s)
        inner = (POWER_4 + POWER_5 * s) + y * (POWER_6 + POWER_7 * s) + v * third
        other = (1.0 + s) + y * (POWER_2 + POWER_3 * s) + v * inner
        root, other = root * root, other * other
        root, other = root * root, other * other
        reals[zeros + k] = root * root
        reals[ones + k] = other * other


def mean(parts: int, count: int, swaps: bool) -> tuple[Combine, Reweigh]:
    """Return the form for the squared loss that announces the weighted mean.

    exp(-eta (p - y)^2) is concave in p on [0, 1] as long as eta <= 1/2, so the mean's loss
    is at most -ln(M_y) / eta (Kivinen and Warmuth 1999).

    Notes: the forecasts, and exp(-eta loss) times the weight.
    """
    weights = PARTS + parts
    shares = weights + 2 * count

    def combine(words: Words, reals: Reals, at: int, out: int) -> float:
        middle = 0.0
        for k in range(count):
            middle += reals[at + weights + k] * reals[out + k]
        return min(middle, 1.0)

    def reweigh(words: Words, reals: Reals, at: int, out: int, told: float, outcome: int) -> None:
        rate, total = reals[at + RATE], 0.0
        for k in range(count):
            gap = reals[out + k] - outcome
            reals[out + count + k] = reals[at + weights + k] * exp_short(rate * (gap * gap))
        for k in range(count):
            total += reals[out + count + k]
        scale = reals[at + REST] / total
        for k in range(count):
            weight = reals[out + count + k] * scale + reals[at + shares + k]
            reals[at + weights + k] = weight if weight > FLOOR else FLOOR
        charge(reals, at, at + weights + count, out, count, told, outcome)

    return combine, reweigh


def bayes(parts: int, count: int, swaps: bool) -> tuple[Combine, Reweigh]:
    """Return the form for the log loss: the mean, under weights that are posterior odds.

    Where every expert called the outcome impossible, or all but, the weights stay as they are.

    Notes: the forecasts, and the likelihoods.
    """
    weights = PARTS + parts
    losses = weights + count
    shares = losses + count
    due = shares + count

    def combine(words: Words, reals: Reals, at: int, out: int) -> float:
        none, one = 0.0, 0.0
        for k in range(count):
            one += reals[at + weights + k] * reals[out + k]
            none += reals[at + weights + k] * (1.0 - reals[out + k])
        share: float = one / (none + one)
        return share

    def reweigh(words: Words, reals: Reals, at: int, out: int, told: float, outcome: int) -> None:
        total = 0.0
        for k in range(count):
            likely = reals[out + k] if outcome == 1 else 1.0 - reals[out + k]
            reals[out + count + k] = likely
            total += reals[at + weights + k] * likely
        scale = reals[at + REST] / total if total > LEAST else 0.0
        for k in range(count):
            likely = reals[out + count + k]
            weight = reals[at + weights + k] * likely * scale + reals[at + shares + k]
            if total > LEAST:
                reals[at + weights + k] = weight if weight > FLOOR else FLOOR
            book(reals, at + losses + k, at + due + k, likely)
        book(reals, at + LOSS, at + due + count, told if outcome == 1 else 1.0 - told)

    return combine, reweigh


def charge(
    reals: Reals, at: int, losses: int, out: int, count: int, told: float, outcome: int
) -> None:
    """Add the squared losses of a round."""
    for k in range(count):
        gap = reals[out + k] - outcome
        reals[losses + k] += gap * gap
    gap = told - outcome
    reals[at + LOSS] += gap * gap


def book(reals: Reals, loss: int, due: int, likely: float) -> None:
    """Multiply a likelihood, and add its logarithm to the loss when it has become small."""
    product = reals[due] * likely
    if product < DUE:
        reals[loss] -= log(product)
        product = 1.0
    reals[due] = product
