"""Exact values and whole mixtures, counted as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check
from calibrant.errors import CorruptState, InvalidInput
from calibrant.metrics import tally
from calibrant.metrics.calibration import calibration_error
from calibrant.metrics.cells import Cells, as_cells, checked_weights

_MOST = 1 << 20


class ExactCells(tally.Kept):
    """Follow how often each value was forecast and how often the outcome was 1 then.

    Parameters
    ----------
    values : array_like, optional
        The grid: the only values that may be forecast.  Without it any value may, as
        long as there are not too many different ones.
    limit : int
        How many different values there may be, at most; this caps the memory.

    Notes
    -----
    ``result()`` is a :class:`~calibrant.metrics.Cells`, which every metric over exact
    values takes: C^p, rho, the decomposition, all regrets, smooth error, ATB, AUC and
    V-calibration.

    Examples
    --------
    >>> cells = ExactCells([0.0, 0.5, 1.0])
    >>> cells.update_many([0.5, 0.5, 1.0], [1, 0, 1])
    >>> cells.update(0.0, 1)
    >>> cells.calibration_error()
    0.25
    >>> cells.update(0.3, 1)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: forecast must be a value of the grid, got 0.3
    """

    def __init__(self, values: ArrayLike | None = None, *, limit: int = 4096) -> None:
        self._limit = check.whole(limit, "limit", low=1, high=_MOST)
        self._closed = values is not None
        self._counts: dict[float, tuple[int, int]] = {}
        if values is not None:
            grid = np.unique(check.probabilities(values, "values") + 0.0).tolist()
            self._refuse_too_many(len(grid))
            self._counts = dict.fromkeys(grid, (0, 0))

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return sum(zeros + ones for zeros, ones in self._counts.values())

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round."""
        value = check.probability(forecast, "forecast") + 0.0
        event = check.outcome(outcome)
        self._make_room([value])
        self._add(value, 1 - event, event)

    def revert(self, forecast: float, outcome: int) -> None:
        """Take back one earlier round, as if it had never been."""
        value = check.probability(forecast, "forecast") + 0.0
        event = check.outcome(outcome)
        if self._counts.get(value, (0, 0))[event] == 0:
            told = f"forecast {forecast!r}, outcome {outcome!r}"
            raise InvalidInput(f"round must be one that was added before, got {told}")
        self._add(value, event - 1, -event)

    def update_many(self, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds at once; exactly the same as one :meth:`update` for each."""
        cells = as_cells(forecasts, outcomes)
        self._make_room(cells.values.tolist())
        zeros, ones = (a.astype(np.int64).tolist() for a in (cells.zeros, cells.ones))
        for value, zero, one in zip(cells.values.tolist(), zeros, ones, strict=True):
            self._add(value, zero, one)

    def merge(self, other: ExactCells) -> None:
        """Add all rounds of ``other``, of the same grid or limit; ``other`` stays as it is."""
        if not isinstance(other, ExactCells) or other._shape() != self._shape():
            raise InvalidInput(
                f"other must be ExactCells of the same grid and limit, got {other!r}"
            )
        self._make_room(list(other._counts))
        for value, (zeros, ones) in list(other._counts.items()):
            self._add(value, zeros, ones)

    def result(self) -> Cells:
        """Return the values that were forecast, with their sums."""
        used = sorted((v, z + o, o) for v, (z, o) in self._counts.items() if z + o)
        columns = np.array(used, dtype=np.float64).reshape(-1, 3).T
        return Cells(*np.ascontiguousarray(columns))

    def calibration_error(self, *, power: float = 1.0) -> float:
        """Return C^p over all rounds so far."""
        return calibration_error(self.result(), power=power)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        values = sorted(self._counts)
        zeros, ones = ([self._counts[v][y] for v in values] for y in (0, 1))
        content = {"limit": self._limit, "closed": self._closed, "values": values}
        return tally.seal_state("ExactCells", **content, zeros=zeros, ones=ones)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ExactCells:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        names = ("limit", "closed", "values", "zeros", "ones")
        limit, closed, values, *tables = tally.open_state(state, "ExactCells", *names)
        made = tally.restored(cls, values, limit=limit)
        if list(made._counts) != values or not isinstance(closed, bool):
            raise CorruptState(f"values must be distinct and in order, got {values!r}")
        zeros, ones = (tally.whole_numbers(table, "counts", len(values)) for table in tables)
        made._closed = closed
        made._counts = dict(zip(values, zip(zeros, ones, strict=True), strict=True))
        return made

    def __repr__(self) -> str:
        grid = f"{sorted(self._counts)}, " if self._closed else ""
        return f"ExactCells({grid}limit={self._limit})"

    def _shape(self) -> tuple[int, list[float] | None]:
        return self._limit, sorted(self._counts) if self._closed else None

    def _make_room(self, values: list[float]) -> None:
        new = [value for value in values if value not in self._counts]
        if new and self._closed:
            raise InvalidInput(f"forecast must be a value of the grid, got {new[0]!r}")
        self._refuse_too_many(len(self._counts) + len(new))

    def _refuse_too_many(self, different: int) -> None:
        if different > self._limit:
            rule = f"at most {self._limit} different values"
            raise InvalidInput(f"forecasts must be {rule}, got {different}")

    def _add(self, value: float, zeros: int, ones: int) -> None:
        old = self._counts.get(value, (0, 0))
        new = (old[0] + zeros, old[1] + ones)
        if new == (0, 0) and not self._closed:
            del self._counts[value]
        else:
            self._counts[value] = new


class ExpectedCells(tally.Kept):
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
        counts = np.array([tally.real(zeros + ones) for zeros, ones in pairs])
        ones = np.array([tally.real(ones) for _, ones in pairs])
        used = counts > 0.0
        return Cells(self._values[used], counts[used], ones[used])

    def calibration_error(self, *, power: float = 1.0) -> float:
        """Return the expected C^p over all rounds so far."""
        return calibration_error(self.result(), power=power)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        content = {"values": self._values.tolist(), "rounds": self._rounds}
        return tally.seal_state("ExpectedCells", **content, sums=[str(n) for n in self._sums])

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ExpectedCells:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        values, rounds, sums = tally.open_state(state, "ExpectedCells", "values", "rounds", "sums")
        made = tally.restored(cls, values)
        made._sums = tally.whole_numbers(sums, "sums", len(made._sums))
        [made._rounds] = tally.whole_numbers([rounds], "rounds", 1)
        return made

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
        return tally.fixed_sums_by_key(keys, table.ravel(), len(self._sums))

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
