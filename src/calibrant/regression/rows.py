"""Ask whole tables of distributions for their quantiles, compiled where it pays."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.kernels import quantiles
from calibrant.kernels.compile import available, compiled

SHORT: Final = 20_000
"""Quantiles up to which the compiler is not started: it would take longer than they do."""


def shape_of(
    values: Reals,
    levels: Reals,
    asked: int,
    *,
    shared: bool = True,
    random: bool = True,
    first: int = 0,
    key: int = 0,
) -> Words:
    """Return the header that the kernels read; see :mod:`calibrant.kernels.quantiles`."""
    size = levels.shape[1]
    between = size if len(levels) > 1 else 0
    apart = 0 if shared else asked
    head = size, values.shape[1], between, asked, apart, int(random), first, key
    return np.array(head, np.int64)


def ask(
    values: Reals, levels: Reals, positions: Reals, *, random: bool = True
) -> tuple[Reals, Reals]:
    """Return the quantiles of every row at its positions, and the shares of atoms.

    ``positions`` is a table of as many rows, or of one for all.

    >>> x, share = ask(np.array([[0.0, 0.0, 4.0]]), np.array([[0.0, 0.5, 1.0]]), np.array([[0.25]]))
    >>> x.tolist(), share.tolist()
    ([[0.0]], [[0.5]])
    """
    many, shared = positions.shape[1], len(positions) != len(values) or len(values) == 1
    head = shape_of(values, levels, many, shared=shared, random=random)
    out, shares = np.empty((len(values), many)), np.empty((len(values), many))
    given = values.ravel(), levels.ravel(), positions.ravel()
    if out.size > SHORT and available():
        compiled(quantiles.fill, "rows", nogil=True)(head, *given, out.ravel(), shares.ravel())
    else:
        row, level, asked = (array.tolist() for array in given)
        quantiles.fill(head.tolist(), row, level, asked, out.ravel(), shares.ravel())
    return out, shares
