"""Calibration of announced mixtures: every value counted with its probability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check
from calibrant.errors import CalibrantError, CorruptState, InvalidInput
from calibrant.metrics.calibration import calibration_error
from calibrant.metrics.cells import Cells, checked_weights
from calibrant.metrics.fixed import fixed_sums_by_key, real
from calibrant.metrics.state import open_state, seal_state, whole_numbers


class ExpectedCells:
    """Follow the weight that mixtures put on each grid value, by outcome.

    Parameters
    ----------
    values : array_like
        The grid, distinct numbers in [0, 1] in ascending order.

    Notes
    -----
    Weights are added in units of ``2**-60``; lesser weights count as 0.  ``result()``
    is a :class:`~calibrant.metrics.Cells`, which every metric over exact values takes.

    Examples
    --------
    >>> cells = ExpectedCells([0.0, 0.5, 1.0])
    >>> cells.update([0, 1], [0.5, 0.5], 1)
    >>> cells.update([1], [1.0], 0)
    >>> cells.result().counts.tolist(), cells.result().ones.tolist()
    ([0.5, 1.5], [0.5, 0.5])
    """

    def __init__(self, values: ArrayLike) -> None:
        self._values = check.probabilities(values, "values") + 0.0
        if not len(self._values) or (np.diff(self._values) <= 0.0).any():
            raise InvalidInput(f"values must be distinct and in ascending order, got {values!r}")
        self._rounds = 0
        self._sums = [0] * (2 * len(self._values))

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return self._rounds

    def update(self, indices: ArrayLike, weights: ArrayLike, outcome: int) -> None:
        """Add one round: a mixture of the values at ``indices``, and what happened."""
        self.update_many(*_one_row(indices, weights, outcome))

    def revert(self, indices: ArrayLike, weights: ArrayLike, outcome: int) -> None:
        """Take back one earlier round, as if it had never been."""
        added = self._added(*_one_row(indices, weights, outcome))
        rest = [total - more for total, more in zip(self._sums, added, strict=True)]
        if self._rounds == 0 or min(rest) < 0:
            told = f"weights {weights!r}, outcome {outcome!r}"
            raise InvalidInput(f"round must be one that was added before, got {told}")
        self._rounds, self._sums = self._rounds - 1, rest

    def update_many(self, indices: ArrayLike, weights: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds at once; exactly the same as one :meth:`update` for each.

        Parameters
        ----------
        indices, weights : array_like
            Shape ``(rounds, support)``.
        outcomes : array_like
            0 or 1 for each round.
        """
        added = self._added(indices, weights, outcomes)
        self._rounds += len(np.asarray(outcomes))
        self._sums = [total + more for total, more in zip(self._sums, added, strict=True)]

    def merge(self, other: ExpectedCells) -> None:
        """Add all rounds of ``other``, of the same grid; ``other`` stays as it is."""
        if not isinstance(other, ExpectedCells) or not self._same_grid(other):
            raise InvalidInput(f"other must be ExpectedCells of the same grid, got {other!r}")
        self._rounds += other._rounds
        self._sums = [total + more for total, more in zip(self._sums, other._sums, strict=True)]

    def result(self) -> Cells:
        """Return the values that had weight, with their sums."""
        pairs = list(zip(self._sums[0::2], self._sums[1::2], strict=True))
        counts = np.array([real(zeros + ones) for zeros, ones in pairs])
        ones = np.array([real(ones) for _, ones in pairs])
        used = counts > 0.0
        return Cells(self._values[used], counts[used], ones[used])

    def calibration_error(self, *, power: float = 1.0) -> float:
        """Return the expected C^p over all rounds so far."""
        return calibration_error(self.result(), power=power)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        content = {"values": self._values.tolist(), "rounds": self._rounds}
        return seal_state("ExpectedCells", **content, sums=[str(total) for total in self._sums])

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ExpectedCells:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        values, rounds, sums = open_state(state, "ExpectedCells", "values", "rounds", "sums")
        try:
            restored = cls(values)
        except CalibrantError as error:
            raise CorruptState(str(error)) from None
        restored._sums = whole_numbers(sums, "sums", len(restored._sums))
        [restored._rounds] = whole_numbers([rounds], "rounds", 1)
        return restored

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpectedCells) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"ExpectedCells({self._values.tolist()})"

    def _same_grid(self, other: ExpectedCells) -> bool:
        return np.array_equal(self._values, other._values)

    def _added(self, indices: ArrayLike, weights: ArrayLike, outcomes: ArrayLike) -> list[int]:
        table, places = checked_weights(weights), np.asarray(indices)
        self._refuse_bad_indices(places, table.shape)
        binary = check.outcomes(outcomes)
        check.same_length(weights=table, outcomes=binary)
        keys = (2 * places.astype(np.int64) + binary[:, None]).ravel()
        return fixed_sums_by_key(keys, table.ravel(), len(self._sums))

    def _refuse_bad_indices(self, places: NDArray[Any], shape: tuple[int, ...]) -> None:
        rule = f"whole numbers from 0 to {len(self._values) - 1}, of shape {shape}"
        if places.shape != shape or (places.size and places.dtype.kind not in "iu"):
            raise InvalidInput(f"indices must be {rule}, got {places!r}")
        if places.size and not 0 <= places.min() <= places.max() < len(self._values):
            raise InvalidInput(f"indices must be {rule}, got {places!r}")


def _one_row(
    indices: ArrayLike, weights: ArrayLike, outcome: int
) -> tuple[NDArray[Any], NDArray[Any], list[int]]:
    return np.asarray(indices)[None], np.asarray(weights)[None], [check.outcome(outcome)]
