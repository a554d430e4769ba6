"""Algorithm 1: the theorem of each subroutine, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.blackwell import blackwell_adaptive, blackwell_fixed, blackwell_sqrt
from calibrant.bounds.game import Bound
from calibrant.bounds.gaps import foster99, foster_hart, regret_matching
from calibrant.bounds.pairs import exponential_regret, polynomial_regret
from calibrant.core import check
from calibrant.errors import InvalidInput

_THEOREMS: dict[str, Callable[..., Bound]] = {
    "foster_hart": foster_hart,
    "regret_matching": regret_matching,
    "exponential_regret": exponential_regret,
    "polynomial_regret": polynomial_regret,
    "blackwell_fixed": blackwell_fixed,
    "blackwell_sqrt": blackwell_sqrt,
    "blackwell_adaptive": blackwell_adaptive,
    "foster99": foster99,
}


def theorem_names() -> tuple[str, ...]:
    """Return the names of the calibration theorems.

    Examples
    --------
    >>> "foster_hart" in theorem_names()
    True
    """
    return tuple(_THEOREMS)


def theorem(method: str) -> Callable[..., Bound]:
    """Return the bound of a calibrator by its name.

    Examples
    --------
    >>> theorem("foster_hart")(100, 11, 0.05).quantity
    'C2'
    """
    return _THEOREMS[check.choice(method, "method", theorem_names())]


def algorithm1(
    method: str, rounds: int, cells: int, half_cell: float, buckets: int, **options: Any
) -> Bound:
    """Bound the calibration error of Algorithm 1, however rounds fall into buckets.

    Parameters
    ----------
    method
        Name of the calibrator's theorem.
    rounds, cells, half_cell, buckets
        T, K, h and M, as in ``foster_hart``.
    **options
        What else that theorem takes.

    Notes
    -----
    ``C_T <= sum_j (T_j/T) C^(j)`` on every path, for C1 by the triangle inequality and for
    C2 by Jensen's (Lemma 3 of the paper).  The right side is bounded here.  Equal T_j, which
    the paper assumes, are the worst case and need no assumption:
    ``sum_j sqrt(T_j) <= sqrt(M T)``.  In effect T becomes T/M.

    Examples
    --------
    >>> round(algorithm1("regret_matching", 10_000, 11, 0.05, buckets=10).value, 5)
    0.16012
    """
    return theorem(method)(rounds, cells, half_cell, buckets=buckets, **options)


def algorithm1_measured(
    method: str, bucket_rounds: ArrayLike, cells: int, half_cell: float, **options: Any
) -> Bound:
    """Bound the calibration error of Algorithm 1 from how many rounds each bucket had.

    Parameters
    ----------
    method, cells, half_cell, **options
        As in ``algorithm1``; a failure probability is not taken.
    bucket_rounds
        T_j, one number per bucket.

    Notes
    -----
    The average of the instances' bounds, weighted by their rounds.  It bounds the expected
    error if the raw forecasts do not react to the draws; if they do, T_j is random and only
    ``algorithm1`` and ``foster_hart_measured`` hold as they stand.

    Examples
    --------
    >>> bound = algorithm1_measured("regret_matching", [9_000, 1_000, 0, 0], 11, 0.05)
    >>> round(bound.value, 5)
    0.09405
    """
    if "failure" in options:
        raise InvalidInput(f"failure must be left out, got {options['failure']!r}")
    given = (check.whole(rounds, "bucket_rounds") for rounds in np.ravel(bucket_rounds))
    used = [rounds for rounds in given if rounds]
    if not used:
        raise InvalidInput(f"bucket_rounds must hold a number above 0, got {bucket_rounds!r}")
    parts = [theorem(method)(rounds, cells, half_cell, **options) for rounds in used]
    mean = float(np.average([part.value for part in parts], weights=used))
    assumption = f"{parts[0].assumption}; the raw forecasts do not react to the draws"
    return replace(parts[0], value=mean, assumption=assumption)
