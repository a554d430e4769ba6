"""Genotypes of one patient: how many minor alleles there are at each place."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check

Alleles: TypeAlias = NDArray[np.int8]

RULE: Final = "0, 1 or 2, or below 0 if it is not known"


def alleles_of(values: ArrayLike, name: str) -> Alleles:
    """Return ``values`` as int8; what is not known, nan among it, is below 0.

    >>> alleles_of([0.0, 2.0, np.nan], "genotypes")
    array([ 0,  2, -1], dtype=int8)
    """
    row = check.numbers(values, name, f"numbers, each {RULE}")
    if row.dtype.kind == "f":
        row = np.where(np.isnan(row), -1.0, row)
    if row.dtype.kind != "b" and row.max(initial=0) > 2:
        check.refuse_first(row > 2, row, name, RULE)
    if row.dtype.kind == "f":
        check.refuse_first((row >= 0) & (row != np.floor(row)), row, name, RULE)
    return row if row.dtype == np.int8 else np.where(row < 0, -1, row).astype(np.int8)
