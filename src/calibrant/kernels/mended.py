"""Rounds of vectors that are mended: outcomes at once or late, blends, and batches.

An outcome that is one of N = 1 + d that wait at a time counts less, whatever it is and however late
(:mod:`calibrant.kernels.crowd`)::

    w_i <- w_i * max(what i said of y when the forecast was made, LEAST)**(1/N), over their sum
    w_i <- (1 - SHARE/N) * w_i + SHARE/N * start_i
    each expert: a Newton step from what it would say now, of which it learns the part 1/sqrt(N),
    or less where outcomes that wait together are alike

How much they are alike is followed as of binary outcomes, with vectors for errors: the outcome, 1
at its class and 0 elsewhere, less the mixture.  Products of errors are inner products.  The words
for that stand behind those of the experts, in a pair for each class and two for all: the first
pair, the two, then the other pairs.  A state of earlier versions has none, and learns every outcome
whole.

What experts said is kept by square roots of 15 bits each, four to a word.

``blend`` mixes two vectors in the same way: what was mended, and what recalibrators made of each of
its numbers.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calibrant.kernels.crowd import GAIN, LEAST_MEMORY, SQUARES, TOGETHER, same_of
from calibrant.kernels.portable import exp_plain, log
from calibrant.kernels.scaling import (
    BLENDS,
    LEAST,
    ROUNDS,
    SHARE,
    WEIGHTS,
    experts,
    forecast,
    mixed_at,
    said_at,
    share,
    state_words,
    teach,
    weigh,
)
from calibrant.kernels.wary import CROWDS, PRIOR, wary_part

BLEND_LEAST: Final = 1e-3
BLEND_START, BLEND_EVEN = 0.8, 0.5
"""The weight of what was mended before the first round, now and in states of earlier versions: of
the two it is the one that is less misled by the outcomes that come first."""
BITS: Final = 15
FIELD: Final = 0x7FFF
FINE: Final = 32767.0
PER_WORD: Final = 4


def followed_words(classes: int) -> int:
    """Return how many words follow how much outcomes are alike."""
    return 2 + 2 * classes


def begin_following(state: Any, classes: int) -> None:
    """Write these words before the first round, over zeros.

    Squared errors of a vector over two classes are twice those of a binary forecast.
    """
    at = state_words(classes)
    state[at + TOGETHER] = 2.0 * PRIOR / GAIN
    state[at + SQUARES] = 2.0 * PRIOR
    state[BLENDS], state[BLENDS + 1] = BLEND_START, 1.0 - BLEND_START


def follow(state: Any, classes: int, crowd: float, ours: Any, first: int, outcome: int) -> None:
    """Learn from an error how much it is alike those before it, of ``crowd`` at a time."""
    at, product, square = state_words(classes), 0.0, 0.0
    for k in range(classes):
        pair = at + (0 if k == 0 else 2 + 2 * k)
        error = (1.0 if k == outcome else 0.0) - ours[first + k]
        recent, earlier = state[pair], state[pair + 1]
        product += error * ((recent - 0.5 * earlier) / crowd)
        square += error * error
        state[pair] = recent * (1.0 - 1.0 / crowd) + error
        state[pair + 1] = earlier * (1.0 - 0.5 / crowd) + error
    kept = 1.0 - 1.0 / (LEAST_MEMORY + CROWDS * crowd)
    state[at + TOGETHER] = state[at + TOGETHER] * kept + product
    state[at + SQUARES] = state[at + SQUARES] * kept + square


# ---------------------------------------------------------------- what experts said


def kept_words(classes: int) -> int:
    """Return how many words keep what all experts but the raw forecast said."""
    return (experts(classes) - 1) * words_of_one(classes)


def words_of_one(classes: int) -> int:
    """Return how many words keep what one of them said."""
    return (classes + PER_WORD - 1) // PER_WORD


def keep(room: Any, classes: int, kept: Any, first: int) -> None:
    """Keep what experts say."""
    size = words_of_one(classes)
    for i in range(1, experts(classes)):
        said = said_at(classes, i)
        for j in range(size):
            word = 0
            for k in range(min(PER_WORD * j + PER_WORD, classes) - 1, PER_WORD * j - 1, -1):
                word = (word << BITS) + int(math.sqrt(min(room[said + k], 1.0)) * FINE + 0.5)
            kept[first + (i - 1) * size + j] = word


def recalled(kept: Any, first: int, classes: int, expert: int, k: int) -> float:
    """Return what an expert said of class ``k``."""
    word = kept[first + (expert - 1) * words_of_one(classes) + k // PER_WORD]
    root: float = ((word >> (BITS * (k % PER_WORD))) & FIELD) / FINE
    return root * root


# ------------------------------------------------------------------------- learning


def learn(state: Any, room: Any, classes: int, outcome: int) -> None:
    """Learn the class that came at once, after what :func:`forecast` left in the room."""
    weigh(state, WEIGHTS, experts(classes), room, said_at(classes, 0) + outcome, classes)
    teach(state, room, classes, outcome, 1.0)


def learn_late(
    state: Any, room: Any, classes: int, ours: Any, kept: Any, t: int, outcome: int, crowd: int
) -> None:
    """Learn a class that is one of so many outcomes that wait at a time.

    The room has what experts say now; ``ours`` and ``kept`` have in row ``t`` what the mixture
    and they said when the forecast was made.
    """
    many, first = float(crowd), t * kept_words(classes)
    same = same_of(state, state_words(classes), many - 1.0)
    part = wary_part(many, same, state[ROUNDS])
    count, total = experts(classes), 0.0
    for i in range(count):
        likely = room[said_at(classes, 0) + outcome]
        if i > 0:
            likely = recalled(kept, first, classes, i, outcome)
        state[WEIGHTS + i] *= exp_plain(log(max(likely, LEAST)) / many)
        total += state[WEIGHTS + i]
    share(state, WEIGHTS, count, total, SHARE / many)
    teach(state, room, classes, outcome, part)
    follow(state, classes, many, ours, t * classes, outcome)


def late(
    state: Any, room: Any, classes: int, raws: Any, ours: Any, kept: Any, outcome: int, crowd: int
) -> None:
    """Learn the outcome of one forecast that was made before."""
    forecast(state, room, classes, raws, 0)
    learn_late(state, room, classes, ours, kept, 0, outcome, crowd)


# ------------------------------------------------------------------------- blends


def blend(state: Any, classes: int, ours: Any, theirs: Any, at: int, out: Any) -> None:
    """Write the mixture of two vectors; the second is divided by its sum first."""
    total = 0.0
    for k in range(classes):
        total += theirs[at + k]
    for k in range(classes):
        other = theirs[at + k] / total if total > 0.0 else 1.0 / classes
        out[at + k] = min(state[BLENDS] * ours[at + k] + state[BLENDS + 1] * other, 1.0)


def learn_blend(
    state: Any, classes: int, ours: Any, theirs: Any, at: int, outcome: int, crowd: int
) -> None:
    """Weigh two vectors by what they said of the class that came, one of ``crowd`` outcomes."""
    total, part = 0.0, SHARE / crowd
    begun = BLEND_START if len(state) > state_words(classes) else BLEND_EVEN
    for k in range(classes):
        total += theirs[at + k]
    own = max(ours[at + outcome], BLEND_LEAST)
    other = max(theirs[at + outcome] / total if total > 0.0 else 1.0 / classes, BLEND_LEAST)
    if crowd > 1:
        own, other = exp_plain(log(own) / crowd), exp_plain(log(other) / crowd)
    first, second = state[BLENDS] * own, state[BLENDS + 1] * other
    both = first + second
    state[BLENDS] = (1.0 - part) * (first / both) + part * begun
    state[BLENDS + 1] = (1.0 - part) * (second / both) + part * (1.0 - begun)


# ------------------------------------------------------------------------- batches


def mend_all(
    state: Any, room: Any, classes: int, raws: Any, outcomes: Any, crowds: Any, out: Any, kept: Any
) -> None:
    """Write the mixtures of rounds whose outcomes come at once; one below 0 is not learned.

    And what experts say, where there is room for it.
    """
    mixed, size = mixed_at(classes), kept_words(classes)
    for t in range(len(outcomes)):
        forecast(state, room, classes, raws, t * classes)
        for k in range(classes):
            out[t * classes + k] = room[mixed + k]
        if len(kept) > 0:
            keep(room, classes, kept, t * size)
        if outcomes[t] < 0:
            continue
        if crowds[t] > 1:
            learn_late(state, room, classes, out, kept, t, outcomes[t], crowds[t])
        else:
            learn(state, room, classes, outcomes[t])


def blend_all(
    state: Any, classes: int, ours: Any, theirs: Any, outcomes: Any, crowds: Any, out: Any
) -> None:
    """Write the blends of rounds whose outcomes come at once; one below 0 is not learned."""
    for t in range(len(outcomes)):
        blend(state, classes, ours, theirs, t * classes, out)
        if outcomes[t] >= 0:
            learn_blend(state, classes, ours, theirs, t * classes, outcomes[t], crowds[t])
