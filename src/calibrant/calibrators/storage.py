"""The state of a recalibrator in the two forms in which it is worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels.layout import (
    ADVICE,
    ASKED,
    BLOCKS,
    BUCKETS,
    CELLS,
    CHARGED,
    EDGES,
    EPSILON,
    EXCESS,
    FRONT,
    HEAD,
    LAG,
    MIDDLE,
    NOTED,
    NOW,
    PASSED,
    PULL,
    REGRET,
    STRIDE,
    TABLE,
    TRUST,
    VALUES,
    WAITED,
    WEIGHT,
)

if TYPE_CHECKING:
    from calibrant.calibrators.base import Calibrator

__all__ = ["Storage"]


class Storage:
    """One flat state, either as an array or as a list; whichever was used last is the truth.

    Compiled code works on the array.  Plain Python works on a list of the same words,
    with a float wherever a word is a real: reading and writing it takes a third of the
    time that an array or a view of one takes (measured: 2.2 instead of 4.3 us a round).
    Each form is made from the other when it is asked for.
    """

    def __init__(
        self, rule: Calibrator, flat: NDArray[np.int64], front: Sequence[Any] = (), kept: int = 0
    ) -> None:
        if front:
            start = len(flat)
            flat = np.concatenate([flat, np.zeros(len(front) + kept, np.int64)])
            flat[FRONT], flat[ADVICE] = start, start + len(front)
            front = [*front, *[0] * kept]
        self._flat, self._reals = flat, flat.view(np.float64)
        self._front_parts = list(_runs(front, len(flat) - len(front)))
        self._rule = rule
        first, stride = int(flat[BLOCKS]), int(flat[STRIDE])
        self._starts = range(first, first + int(flat[BUCKETS]) * stride, stride)
        self.plain: list[Any] | None = None
        if front:
            self.words()[-len(front) :] = front

    def words(self) -> list[Any]:
        """Return the list, made from the array if need be; changes go there from now on."""
        if self.plain is None:
            self.plain = self._flat.tolist()
            for part in self._real_parts():
                self.plain[part] = self._reals[part].tolist()
        return self.plain

    def flat(self) -> NDArray[np.int64]:
        """Return the array, made from the list if need be; changes go there from now on."""
        if self.plain is not None:
            plain, self.plain = self.plain, None
            reals = self._real_parts()
            kept = [plain[part] for part in reals]
            for part in reals:
                plain[part] = [0] * len(plain[part])
            self._flat[:] = plain
            for part, values in zip(reals, kept, strict=True):
                self._reals[part] = values
        return self._flat

    def _real_parts(self) -> list[slice]:
        """Return which words are reals, as slices."""
        flat, rule = self._flat, self._rule
        cells, table = int(flat[CELLS]), int(flat[TABLE])
        ours = (CHARGED, WEIGHT, MIDDLE, PASSED, LAG, NOW, EPSILON, EXCESS, *rule.real_parameters)
        parts = [slice(k, k + 1) for k in ours] + self._front_parts
        parts.append(slice(int(flat[EDGES]), int(flat[EDGES]) + int(flat[BUCKETS]) + 1))
        parts.append(slice(table + cells + VALUES - 1, int(flat[BLOCKS])))
        first, stop, stride = self._starts.start, self._starts.stop, self._starts.step
        parts += [
            slice(first + k, stop, stride) for k in (ASKED, NOTED, REGRET, PULL, WAITED, TRUST)
        ]
        for at in self._starts if rule.cell_words > 2 else ():
            end = at + HEAD + rule.cell_words * cells
            parts += [slice(at + HEAD + k, end, rule.cell_words) for k in range(2, rule.cell_words)]
        return parts


def _runs(words: Sequence[Any], start: int) -> Iterator[slice]:
    """Yield where the reals among ``words`` lie in a state in which they start at ``start``."""
    for real, run in groupby(words, lambda word: type(word) is float):
        end = start + len(list(run))
        if real:
            yield slice(start, end)
        start = end
