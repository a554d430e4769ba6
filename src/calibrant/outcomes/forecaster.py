"""What the treatments need of a recalibrator."""

from __future__ import annotations

from typing import Protocol

from calibrant.core.ticket import Ticket


class Forecaster(Protocol):
    """Anything that issues tickets and learns their outcomes by id."""

    def forecast(self, raw: float, *, id: str | None = None, time: float | None = None) -> Ticket:
        """Announce a forecast for a raw one."""

    def observe(
        self, ticket: Ticket | int | str, outcome: int, time: float | None = None
    ) -> Ticket:
        """Learn the outcome of a ticket."""
