"""A method at work, one round at a time."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Announced(NamedTuple):
    """The mean, which anybody may know beforehand, and the forecast; the same without a coin."""

    mean: float
    forecast: float


class Player(Protocol):
    """Who announces forecasts and learns outcomes."""

    def announce(self, raw: float) -> Announced:
        """Return the forecast for a raw one."""

    def learn(self, raw: float, outcome: int) -> None:
        """Learn the outcome of a round with that raw forecast."""

    def size(self) -> int:
        """Return the bytes that must be kept in order to go on."""
