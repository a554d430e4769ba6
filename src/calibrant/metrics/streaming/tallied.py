"""The common face of streaming metrics that remember one tally over equal buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.place import bucket, buckets_of
from calibrant.errors import CalibrantError, CorruptState, InvalidInput
from calibrant.metrics.cells import checked_rounds
from calibrant.metrics.state import open_state, seal_state
from calibrant.metrics.tally import Tally


class Tallied(ABC):
    """Remember sums over buckets of equal width; a subclass says what to make of them.

    The memory depends on the number of buckets only.  All sums are whole numbers (see
    :mod:`calibrant.metrics.fixed`), so the order of updates does not matter, ``revert``
    undoes ``update`` without a trace, and merged parts equal the whole.
    """

    _powers: ClassVar[int]
    _size_name: ClassVar[str] = "resolution"

    def __init__(self, size: int) -> None:
        self._size = check.whole(size, self._size_name, low=1, high=1 << 20)
        self._tally = Tally(self._size, self._powers)

    @abstractmethod
    def result(self) -> Any:
        """Return the metric over all rounds so far."""

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return self._tally.rounds

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round."""
        value = check.probability(forecast, "forecast")
        self._tally.add(bucket(value, self._size), value, check.outcome(outcome))

    def revert(self, forecast: float, outcome: int) -> None:
        """Take back one earlier round, as if it had never been.

        A round that cannot have been added is refused; not every wrong one can be told.
        """
        value = check.probability(forecast, "forecast")
        self._tally.remove(bucket(value, self._size), value, check.outcome(outcome))

    def update_many(self, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds at once; exactly the same as one :meth:`update` for each."""
        values, binary = checked_rounds(forecasts, outcomes)
        self._tally.add_many(buckets_of(values, self._size), values, binary)

    def merge(self, other: Tallied) -> None:
        """Add all rounds of ``other``, of the same class and size; ``other`` stays as it is."""
        if type(other) is not type(self) or other._size != self._size:
            raise InvalidInput(f"other must be like {self!r}, got {other!r}")
        self._tally.merge(other._tally)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        return seal_state(type(self).__name__, size=self._size, **self._tally.to_dict())

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        size, counts, sums = open_state(state, cls.__name__, "size", "counts", "sums")
        try:
            restored = cls(size)
        except CalibrantError as error:
            raise CorruptState(str(error)) from None
        restored._tally.load(counts, sums)
        return restored

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size_name}={self._size})"


class Gridded(Tallied):
    """Remember sums over the cells of a fine grid."""

    def __init__(self, resolution: int = 1024) -> None:
        super().__init__(resolution)
