"""Which outcomes stand of the tickets that were corrected last."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Words

CORRECTED: Final = 4_096
"""Corrected tickets of which is remembered, and stored, which outcome stands."""
NONE: Final[dict[int, Any]] = {}
"""What streams without corrections have in common."""


class Corrections:
    """The outcomes that stand, by number of the ticket, oldest correction first.

    Nothing else is kept of closed tickets.  A ticket that was stored before its correction still
    says what stood then: only here is known that something else stands.

    Examples
    --------
    >>> made = Corrections()
    >>> made.note(17, 1)
    >>> made.get(17), made.get(18)
    (1, None)
    """

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told = NONE

    @property
    def stands(self) -> bool:
        """Whether a correction is remembered."""
        return bool(self._told)

    def get(self, number: int) -> Any:
        """Return the outcome that stands of a ticket, or None if no correction is remembered."""
        return self._told.get(number)

    def note(self, number: int, outcome: Any) -> None:
        """Remember a correction, and of others the latest only."""
        told = self._told = self._told or {}
        told.pop(number, None)
        while len(told) >= CORRECTED:
            del told[next(iter(told))]
        told[number] = outcome

    def put_back(self, number: int, outcome: Any) -> None:
        """Know of a ticket what was known before its last correction, which was interrupted."""
        self._told.pop(number, None)
        if outcome is not None:
            self._told = self._told | {number: outcome}

    def stored(self) -> dict[str, Words]:
        """Return what a document holds of corrections: nothing before the first."""
        if not self._told:
            return {}
        words = np.empty((len(self._told), 2), np.int64)
        words[:, 0] = [*self._told]
        words.view(np.float64)[:, 1] = [*self._told.values()]
        return {"corrected": words.reshape(-1)}

    def load(self, words: Words, issued: int) -> None:
        """Remember what a document holds of corrections."""
        lines = np.ascontiguousarray(words.reshape(-1, 2))
        numbers, outcomes = lines[:, 0], lines.view(np.float64)[:, 1]
        known = (numbers >= 0) & (numbers < issued) & np.isfinite(outcomes)
        if not known.all() or len(lines) > CORRECTED or len(np.unique(numbers)) < len(lines):
            raise ValueError("corrections that were never made")
        self._told = dict(zip(numbers.tolist(), outcomes.tolist(), strict=True))
