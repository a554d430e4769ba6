"""Vectors over classes mended online: raw, scaled, and mixed, and experts that do so.

The state is a run of reals, and ``room`` is scratch.  Experts read the logs of the raw forecast,
less their mean, x, and say a vector each:

- raw: the raw forecast;
- temperature: softmax(a x), for two memories;
- vector: softmax(a_k x_k + b_k), for three memories;
- matrix: softmax(W x + b), for two memories, up to `MOST_CLASSES` classes;
- confusion: raw C, row j of C the chances of the classes where the raw forecast means j, for two
  memories, up to as many classes.

Pseudo-code of a round, with y the class that came::

    mixed = sum of w_i * (what expert i said)            forecast
    w_i <- w_i * max(what i said of y, LEAST), over their sum          learn
    w_i <- (1 - SHARE) * w_i + SHARE * start_i
    each expert: one Newton step on the log loss, with the curvature of its memory so far

Of an outcome that is one of several that wait, experts learn a part: gradient and curvature count
by it, and so does what is forgotten.  :mod:`calibrant.kernels.mended` says which part, and plays
rounds.

The curvature of a temperature is a number, of a vector two by two for each class, of a matrix one
for all classes, whose inverse follows by rank-one updates, over the class's part of all variance.
Confusions are counted: of every round the part that the current confusion says row j had in it.

The log loss makes mixtures of likelihoods exact: no step size, and at most log(1/start_i) more loss
in all than expert i, plus what changing over costs (Herbster and Warmuth, 1998).
"""

from __future__ import annotations

from typing import Any, Final

from calibrant.kernels.portable import exp_plain, log

MOST_CLASSES: Final = 32
"""Up to so many classes there are matrices: their words grow with the square of the number."""
ROUNDS: Final = 0
WEIGHTS: Final = 1
"""Where the weights of experts start."""
MANY, FEW = 10, 6
"""Experts with matrices, and without."""
BLENDS: Final = WEIGHTS + MANY
"""Where the two weights of a blend start."""
TEMPERATURES: Final = BLENDS + 2
TEMPERATURE_WORDS: Final = 3
"""Temperature, its curvature, and the rounds remembered."""
VECTORS: Final = TEMPERATURES + 2 * TEMPERATURE_WORDS
FOREVER: Final = 1e18
TEMPERATURE_MEMORIES: Final = (FOREVER, 200.0)
VECTOR_MEMORIES: Final = (FOREVER, 1000.0, 200.0)
MATRIX_MEMORIES: Final = (FOREVER, 1000.0)
CONFUSION_MEMORIES: Final = (FOREVER, 500.0)

SHARE: Final = 3e-4
"""Which part of the weights starts anew in every round."""
LEAST: Final = 1e-5
"""What an expert is taken to have said of the class that came, at least."""
SMALLEST: Final = 1e-6
"""What a raw forecast says of a class, at least, before its logarithm is taken."""
PRIOR: Final = 10.0
"""The curvature before the first round."""
VARIANCE: Final = 5.0
"""The variance of the classes before the first round."""
ROW_COUNT, CELL_COUNT = 5.0, 1e-3
"""What each row of a confusion starts with where it is right, and each of its cells."""
STEEPEST, FARTHEST = 20.0, 20.0
SOUND: Final = 1e9
"""A curvature that a round changes by more than this factor is not one: it starts anew."""


def experts(classes: int) -> int:
    """Return how many experts there are."""
    return MANY if classes <= MOST_CLASSES else FEW


def vector_words(classes: int) -> int:
    """Return the words of one vector scaling: rounds, a, b, and three of curvature a class."""
    return 1 + 5 * classes


def matrix_words(classes: int) -> int:
    """Return the words of one matrix scaling: rounds, variances, weights, inverse curvature."""
    return 1 + classes + classes * (classes + 1) + (classes + 1) * (classes + 1)


def matrices_at(classes: int) -> int:
    """Return where the matrices start."""
    return VECTORS + 3 * vector_words(classes)


def confusions_at(classes: int) -> int:
    """Return where the confusions start, which is where the state ends if there are none."""
    return matrices_at(classes) + (2 * matrix_words(classes) if classes <= MOST_CLASSES else 0)


def state_words(classes: int) -> int:
    """Return the length of a state."""
    return confusions_at(classes) + (2 * classes * classes if classes <= MOST_CLASSES else 0)


def room_words(classes: int) -> int:
    """Return the length of the scratch room."""
    return said_at(classes, experts(classes))


def said_at(classes: int, expert: int) -> int:
    """Return where in the room an expert's vector is.

    Before these are the logs and a 1, a step of the same length, errors, and the mixture.
    """
    return 4 * classes + 2 + expert * classes


def mixed_at(classes: int) -> int:
    """Return where in the room the mixture is."""
    return 3 * classes + 2


def begin(state: Any, classes: int) -> None:
    """Write the state before the first round over zeros."""
    count = experts(classes)
    for i in range(count):
        state[WEIGHTS + i] = start(i, count)
    state[BLENDS], state[BLENDS + 1] = 0.5, 0.5
    for i in range(2):
        at = TEMPERATURES + i * TEMPERATURE_WORDS
        state[at], state[at + 1] = 1.0, 1.0
    for i in range(3):
        at = VECTORS + i * vector_words(classes) + 1
        for k in range(classes):
            state[at + k] = 1.0
            state[at + 2 * classes + k] = state[at + 4 * classes + k] = PRIOR
    for i in range(2 if count == MANY else 0):
        at = matrices_at(classes) + i * matrix_words(classes) + 1 + classes
        for k in range(classes):
            state[at + k * (classes + 2)] = 1.0
        begin_inverse(state, at + classes * (classes + 1), classes + 1)


def begin_inverse(state: Any, at: int, size: int) -> None:
    """Write the inverse curvature before the first round."""
    for i in range(size):
        for j in range(size):
            state[at + i * size + j] = 1.0 / PRIOR if i == j else 0.0


def start(expert: int, count: int) -> float:
    """Return the weight of an expert before the first round: half for the raw forecast."""
    return 0.5 if expert == 0 else 0.5 / (count - 1)


# ---------------------------------------------------------------------- forecasts


def forecast(state: Any, room: Any, classes: int, raws: Any, at: int) -> None:
    """Write to the room what each expert says of a raw forecast, and their mixture."""
    read(room, classes, raws, at)
    for i in range(2):
        say_temperature(state, room, classes, i)
    for i in range(3):
        say_vector(state, room, classes, i)
    if classes <= MOST_CLASSES:
        for i in range(2):
            say_matrix(state, room, classes, i)
            say_confusion(state, room, classes, i)
    mixed = mixed_at(classes)
    for k in range(classes):
        total = 0.0
        for i in range(experts(classes)):
            total += state[WEIGHTS + i] * room[said_at(classes, i) + k]
        room[mixed + k] = min(total, 1.0)


def read(room: Any, classes: int, raws: Any, at: int) -> None:
    """Write the raw forecast over its sum, and the logs of its numbers less their mean."""
    said, whole, total = said_at(classes, 0), 0.0, 0.0
    for k in range(classes):
        whole += raws[at + k]
        room[k] = log(max(raws[at + k], SMALLEST))
        total += room[k]
    for k in range(classes):
        room[said + k] = raws[at + k] / whole
        room[k] -= total / classes
    room[classes] = 1.0


def say_temperature(state: Any, room: Any, classes: int, i: int) -> None:
    """Write what a temperature says."""
    said, a = said_at(classes, 1 + i), state[TEMPERATURES + i * TEMPERATURE_WORDS]
    for k in range(classes):
        room[said + k] = a * room[k]
    normalise(room, said, classes)


def say_vector(state: Any, room: Any, classes: int, i: int) -> None:
    """Write what a vector scaling says."""
    said, at = said_at(classes, 3 + i), VECTORS + i * vector_words(classes) + 1
    for k in range(classes):
        room[said + k] = state[at + k] * room[k] + state[at + classes + k]
    normalise(room, said, classes)


def say_matrix(state: Any, room: Any, classes: int, i: int) -> None:
    """Write what a matrix scaling says."""
    said, size = said_at(classes, 6 + i), classes + 1
    at = matrices_at(classes) + i * matrix_words(classes) + 1 + classes
    for k in range(classes):
        total = 0.0
        for j in range(size):
            total += state[at + k * size + j] * room[j]
        room[said + k] = total
    normalise(room, said, classes)


def say_confusion(state: Any, room: Any, classes: int, i: int) -> None:
    """Write what a confusion says."""
    said, raw = said_at(classes, 8 + i), said_at(classes, 0)
    at = confusions_at(classes) + i * classes * classes
    for k in range(classes):
        room[said + k] = 0.0
    for j in range(classes):
        share = room[raw + j] / row_total(state, at + j * classes, classes)
        for k in range(classes):
            room[said + k] += share * (state[at + j * classes + k] + CELL_COUNT)
        room[said + j] += share * ROW_COUNT


def row_total(state: Any, at: int, classes: int) -> float:
    """Return the sum of a row of a confusion, with what the row started with."""
    total = ROW_COUNT + classes * CELL_COUNT
    for k in range(classes):
        total += state[at + k]
    return total


def normalise(room: Any, at: int, classes: int) -> None:
    """Make a distribution of logits: the softmax."""
    most, total = room[at], 0.0
    for k in range(1, classes):
        most = max(most, room[at + k])
    for k in range(classes):
        room[at + k] = exp_plain(room[at + k] - most)
        total += room[at + k]
    for k in range(classes):
        room[at + k] /= total


# ------------------------------------------------------------------------ learning


def teach(state: Any, room: Any, classes: int, outcome: int, part: float) -> None:
    """Let experts learn a part of the class that came after what :func:`forecast` left."""
    for i in range(2):
        learn_temperature(state, room, classes, outcome, part, i)
    for i in range(3):
        learn_vector(state, room, classes, outcome, part, i)
    if classes <= MOST_CLASSES:
        for i in range(2):
            learn_matrix(state, room, classes, outcome, part, i)
            learn_confusion(state, room, classes, outcome, part, i)
    state[ROUNDS] += 1.0


def weigh(state: Any, at: int, count: int, room: Any, said: int, stride: int) -> None:
    """Weigh experts by what they said of the class that came, and let a part start anew."""
    total = 0.0
    for i in range(count):
        state[at + i] *= max(room[said + i * stride], LEAST)
        total += state[at + i]
    share(state, at, count, total, SHARE)


def share(state: Any, at: int, count: int, total: float, part: float) -> None:
    """Divide weights by their sum, and let a part of them start anew."""
    for i in range(count):
        state[at + i] = (1.0 - part) * (state[at + i] / total) + part * start(i, count)


def remembered(state: Any, at: int, memory: float, part: float) -> float:
    """Count a part of a round; return which part of what was before stays in memory."""
    state[at] += part
    if state[at] <= memory:
        return 1.0
    kept = 1.0 - part / memory
    state[at] *= kept
    return kept


def learn_temperature(
    state: Any, room: Any, classes: int, outcome: int, part: float, i: int
) -> None:
    """Take a Newton step of a temperature."""
    said, at = said_at(classes, 1 + i), TEMPERATURES + i * TEMPERATURE_WORDS
    mean, square = 0.0, 0.0
    for k in range(classes):
        mean += room[said + k] * room[k]
        square += room[said + k] * room[k] * room[k]
    kept = remembered(state, at + 2, TEMPERATURE_MEMORIES[i], part)
    state[at + 1] = max(kept * state[at + 1] + part * (square - mean * mean), SMALLEST)
    step = part * (mean - room[outcome]) / (state[at + 1] + CELL_COUNT)
    state[at] = min(max(0.0, state[at] - step), STEEPEST)


def learn_vector(state: Any, room: Any, classes: int, outcome: int, part: float, i: int) -> None:
    """Take a Newton step of the two numbers of each class of a vector scaling."""
    said, first = said_at(classes, 3 + i), VECTORS + i * vector_words(classes)
    kept = remembered(state, first, VECTOR_MEMORIES[i], part)
    fresh = PRIOR - kept * PRIOR
    for k in range(classes):
        p, x, a = room[said + k], room[k], first + 1 + k
        b, square, cross, flat = a + classes, a + 2 * classes, a + 3 * classes, a + 4 * classes
        error, weight = part * (p - (1.0 if k == outcome else 0.0)), part * (p * (1.0 - p))
        state[square] = fresh + kept * state[square] + weight * x * x
        state[cross] = kept * state[cross] + weight * x
        state[flat] = fresh + kept * state[flat] + weight
        det = max(state[square] * state[flat] - state[cross] * state[cross], 1.0)
        steep = (state[flat] * x - state[cross]) * error / det
        shift = (state[square] - state[cross] * x) * error / det
        state[a] = min(max(-STEEPEST, state[a] - steep), STEEPEST)
        state[b] = min(max(-FARTHEST, state[b] - shift), FARTHEST)


def learn_matrix(state: Any, room: Any, classes: int, outcome: int, part: float, i: int) -> None:
    """Take a Newton step of a matrix scaling."""
    said, size = said_at(classes, 6 + i), classes + 1
    first = matrices_at(classes) + i * matrix_words(classes)
    weights = first + 1 + classes
    kept = remembered(state, first, MATRIX_MEMORIES[i], part)
    spread, total = 1.0, 0.0
    for k in range(classes):
        p = room[said + k]
        spread -= p * p
        state[first + 1 + k] = kept * state[first + 1 + k] + part * (p * (1.0 - p))
        total += state[first + 1 + k]
    spread = part * max(spread, 1.0 - room[said + outcome])
    steer(state, room, classes, weights + classes * size, spread, kept)
    step = classes + 1
    for k in range(classes):
        error = room[said + k] - (1.0 if k == outcome else 0.0)
        own = (state[first + 1 + k] + VARIANCE) / (total + VARIANCE)
        pull = part * error / max(own, 0.2 / classes)
        for j in range(size):
            at = weights + k * size + j
            state[at] = min(max(-STEEPEST, state[at] - pull * room[step + j]), STEEPEST)


def steer(state: Any, room: Any, classes: int, at: int, weight: float, kept: float) -> None:
    """Add a round to the inverse curvature of a matrix; write the direction of its step.

    What was forgotten of the first curvature is put back a column a round, in turn.
    """
    size, step = classes + 1, classes + 1
    if kept < 1.0:
        for j in range(size * size):
            state[at + j] /= kept
        turn = int(state[ROUNDS]) % size
        for j in range(size):
            room[step + j] = state[at + turn * size + j]
        back = PRIOR * (1.0 - kept) * size
        shrink(state, room, at, size, step, back, 1.0 + back * room[step + turn])
    grown = 1.0
    for i in range(size):
        room[step + i] = 0.0
        for j in range(size):
            room[step + i] += state[at + i * size + j] * room[j]
        grown += weight * (room[i] * room[step + i])
    shrink(state, room, at, size, step, weight, grown)
    for j in range(size):
        room[step + j] /= max(grown, 1.0)


def shrink(
    state: Any, room: Any, at: int, size: int, step: int, weight: float, grown: float
) -> None:
    """Take a rank-one part off an inverse curvature, or begin anew where that is none."""
    if not 1.0 <= grown <= SOUND:
        begin_inverse(state, at, size)
        for j in range(size):
            room[step + j] = 0.0
        return
    for i in range(size):
        part = weight / grown * room[step + i]
        for j in range(size):
            state[at + i * size + j] -= part * room[step + j]


def learn_confusion(state: Any, room: Any, classes: int, outcome: int, part: float, i: int) -> None:
    """Count the class that came in the rows of a confusion, each by its part in the round."""
    raw, said = said_at(classes, 0), room[said_at(classes, 8 + i) + outcome]
    at = confusions_at(classes) + i * classes * classes
    kept = 1.0 - part / CONFUSION_MEMORIES[i]
    for j in range(classes):
        row = at + j * classes
        own = state[row + outcome] + CELL_COUNT + (ROW_COUNT if j == outcome else 0.0)
        had = room[raw + j] * (own / row_total(state, row, classes)) / max(said, LEAST * LEAST)
        for k in range(classes):
            state[row + k] *= kept
        state[row + outcome] += part * min(had, 1.0)
