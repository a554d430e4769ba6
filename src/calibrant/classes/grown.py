"""A document of the default for several classes with one class more.

The new class is the last one once more: all that was counted and learned of the last class so far
counts as that of the new one too.  A caller that keeps the last class spare, a class that no
outcome has had and no raw forecast means, so has classes that were there all the time, with raw
forecasts of 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from calibrant.classes.roster import packed_rows
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.kernels import scaling as kernel
from calibrant.kernels.mended import kept_words, words_of_one
from calibrant.kernels.scaling import experts
from calibrant.recalibrate.secret import APART, SYSTEM, Secret, secret_of

HEAD: Final = 4
"""What a line of an open ticket has before its vectors: key, number, time, first class."""


def grown(document: Document, secret: Secret, parts: int, most: int) -> Document:
    """Return a document with one class more, whose coins follow from another secret.

    Parameters
    ----------
    document
        What is stored of K classes.
    secret
        The secret of these.
    parts
        Words of a part of an open ticket.
    most
        Up to so many classes each has a row, and a part in every ticket.
    """
    classes, arrays = document.settings["classes"], document.arrays
    each, stays, alike = classes <= most, classes < most, document.settings["alike"]
    made = {
        "front": grown_mixture(arrays["front"].view(np.float64), classes).view(np.int64),
        "tickets": _tickets(arrays["tickets"], classes, parts, (each, stays, alike)),
        APART: np.frombuffer(after(secret), "<i8").astype(np.int64),
    }
    settings = document.settings | {"classes": classes + 1, "secret_from": after(secret).origin}
    rows = _rows(arrays, classes, stays)
    return replace(document, settings=settings, arrays=arrays | rows | made)


def after(secret: Secret) -> Secret:
    """Return the secret after a class was added: rows change their numbers, and no coin returns.

    >>> before = secret_of(7, None)
    >>> after(before) == before, after(before).seeded
    (False, True)
    """
    made = secret_of(int.from_bytes(secret, "little", signed=True), "grown")
    return Secret.of(made, secret.origin if secret.seeded in (True, None) else SYSTEM)


def _rows(arrays: dict[str, Words], classes: int, stays: bool) -> dict[str, Words]:
    """Return the rows by their new numbers, that of the last class twice."""
    table = arrays["numbers"].reshape(-1, 2)
    cuts = np.split(arrays["rows"], np.cumsum(table[:, 1])[:-1])
    kept = dict(zip(table[:, 0].tolist(), cuts, strict=False))
    own = {k: body for k, body in kept.items() if k < classes and stays}
    own |= {classes: own[classes - 1]} if own else {}
    tops = {k + 1: body for k, body in kept.items() if k > classes}
    return packed_rows([*own.items(), *tops.items()])


def _tickets(words: Words, classes: int, parts: int, has: tuple[bool, bool, bool]) -> Words:
    """Return the lines of open tickets with a number more in each vector, and a part more.

    ``has`` says whether each class has a part, still has one, and whether words of experts are
    kept.
    """
    each, stays, alike = has
    kept, width = kept_words(classes) if alike else 0, parts * classes if each else 0
    lines = words.reshape(-1, HEAD + 2 * classes + kept + width + 2 * parts)
    nothing, cuts = np.zeros((len(lines), 1), np.int64), np.array([1, 2]) * classes
    raw, mean, said, rest = np.split(lines[:, HEAD:], [*cuts, cuts[1] + kept], axis=1)
    own = rest[:, : width if stays else 0]
    more = [_said(said, classes) if alike else said, own, own[:, -parts:], rest[:, width:]]
    return np.hstack([lines[:, :HEAD], raw, nothing, mean, nothing, *more]).reshape(-1)


def _said(words: Words, classes: int) -> Words:
    """Return what experts said, packed, who said nothing of the new class."""
    size, count = words_of_one(classes), experts(classes + 1) - 1
    table = words.reshape(len(words), experts(classes) - 1, size)[:, :count]
    # A word more where those of one expert are full.
    wider = words_of_one(classes + 1) - size
    return np.pad(table, ((0, 0), (0, 0), (0, wider))).reshape(len(words), count * (size + wider))


# ------------------------------------------------------------------------- the mixture


def grown_mixture(state: Reals, classes: int) -> Reals:
    """Return the state of the mixture with one class more, which is as the last one was.

    Logs are read less their mean, x, which a class more changes.  With K classes before, n after,
    and s the last class, of which no raw forecast has anything::

        x_k before = x_k after + (x_s after) / K = x_k after + (x_s before) / n

    Matrices read that off the last class, as they did, so that they say what they said.  A vector
    scaling takes the mean of x_s for it.  What the new class is taken for was never counted.
    """
    many, followed = classes < kernel.MOST_CLASSES, state[kernel.state_words(classes) :]
    state = state[: kernel.state_words(classes)]
    head = state[: kernel.VECTORS].copy()
    if classes == kernel.MOST_CLASSES:
        weights = head[kernel.WEIGHTS : kernel.BLENDS]
        weights[kernel.FEW :] = 0.0
        weights /= weights.cumsum()[-1]
    cuts = [kernel.VECTORS, kernel.matrices_at(classes), kernel.confusions_at(classes)]
    _, vectors, matrices, confusions = np.split(state, cuts)
    made = [_vector(part, classes) for part in vectors.reshape(3, -1)]
    if many:
        made += [_matrix(part, classes) for part in matrices.reshape(2, -1)]
        tables = confusions.reshape(2, classes, classes)
        made += [np.pad(table, ((0, 1), (0, 1))).reshape(-1) for table in tables]
    # Nothing was ever said of the new class, and it never came.
    return np.concatenate([head, *made, followed, np.zeros(2 if len(followed) else 0)])


def _vector(part: Reals, classes: int) -> Reals:
    """Return a vector scaling with one class more."""
    steep, shift, square, cross, flat = part[1:].reshape(5, classes).copy()
    seen = flat - kernel.PRIOR
    moved = cross[-1] / seen[-1] / (classes + 1) if seen[-1] > 0.0 else 0.0
    shift += steep * moved
    square -= moved * (2.0 * cross - moved * seen)
    cross -= moved * seen
    groups = np.stack([steep, shift, square, cross, flat])
    return np.concatenate([part[:1], np.hstack([groups, groups[:, -1:]]).reshape(-1)])


def _matrix(part: Reals, classes: int) -> Reals:
    """Return a matrix scaling with one class more."""
    cuts = [1, 1 + classes, 1 + classes + classes * (classes + 1)]
    count, variances, weights, inverse = np.split(part, cuts)
    seen = _read_off(np.insert(weights.reshape(classes, -1), classes - 1, 0.0, axis=1), classes)
    new = seen[-1:].copy()
    new[:, [classes - 1, classes]] = new[:, [classes, classes - 1]]
    rows = [seen[:-1], new, seen[-1:]]
    table = inverse.reshape(classes + 1, classes + 1)
    for axis in (0, 1):
        table = np.insert(table, classes - 1, 0.0, axis=axis)
    table[classes - 1, classes - 1] = 1.0 / kernel.PRIOR
    table = _read_off(_read_off(table, classes).T, classes).T
    return np.concatenate([count, variances, variances[-1:], *map(np.ravel, [*rows, table])])


def _read_off(table: Reals, classes: int) -> Reals:
    """Let the last class, in the column after the new one's, stand for what the mean changed."""
    made, new = table.copy(), table[:, classes - 1]
    # One after the other: the same bits everywhere.
    total = table[:, : classes + 1].cumsum(axis=1)[:, -1] - new
    made[:, classes] += total / classes - new
    return made
