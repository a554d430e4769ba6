"""The rounds that all methods play: raw forecasts, outcomes, and when these became known."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.errors import InvalidInput
from calibrant.recalibrate.delivery import arrivals, schedule, times


@dataclass(frozen=True, eq=False)
class Stream:
    """Rounds in the order of time.

    Attributes
    ----------
    raw, outcomes
        What came in, and what happened.
    time
        When each forecast was made.
    available
        When each outcome became known, infinite if never; None if all were known at once.

    Examples
    --------
    >>> Stream.of([0.9, 0.2, 0.6], [1, 0, 1]).events.tolist()
    [0, -1, 1, -2, 2, -3]
    >>> late = Stream.of([0.9, 0.2, 0.6], [1, 0, 1], available=[2.0, 1.0, np.inf])
    >>> late.events.tolist(), late.scored.tolist()
    ([0, 1, -2, -1, 2], [True, True, False])
    """

    raw: Reals
    outcomes: Bits
    time: Reals
    available: Reals | None = None

    @classmethod
    def of(cls, raw: Any, outcomes: Any, *, time: Any = None, available: Any = None) -> Self:
        """Return a stream after a look at its arrays; rules as in :meth:`Recalibrator.replay`."""
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        if not check.same_length(raw=raws, outcomes=told):
            raise InvalidInput("raw must hold one forecast at least, got none")
        when = times(time, len(raws))
        known = None if available is None else arrivals(available, when)
        if known is not None:
            known = np.where(np.isnan(known), np.inf, known)
        return cls(raws, told, when, known)

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def scored(self) -> Mask:
        """Which rounds have an outcome, be it after the last forecast."""
        if self.available is None:
            return np.ones(len(self), np.bool_)
        return np.isfinite(self.available)

    @functools.cached_property
    def events(self) -> Words:
        """What happened in order: ``i`` for the forecast of round i, ``-1 - i`` for its outcome."""
        rounds = np.arange(len(self), dtype=np.int64)
        if self.available is None:
            return np.column_stack([rounds, -1 - rounds]).ravel()
        return schedule(0, rounds, self.available, self.time, sys.maxsize).events

    @property
    def delivery(self) -> dict[str, Any]:
        """What ``replay`` has to be told about late outcomes."""
        if self.available is None:
            return {}
        return {"time": self.time, "available": self.available}

    def first(self, rounds: int) -> Stream:
        """Return the first so many rounds."""
        known = None if self.available is None else self.available[:rounds]
        return Stream(self.raw[:rounds], self.outcomes[:rounds], self.time[:rounds], known)
