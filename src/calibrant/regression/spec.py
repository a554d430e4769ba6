"""What a stream of numbers is, apart from its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NumberSpec:
    """What a stream of numbers is: equal, and of one hash, for streams with equal settings.

    Attributes
    ----------
    kind, method
        Which kind of stream, and the name of its method.
    target
        What the method aims at: the levels that are followed, or the part to be covered.
    choice
        How an outcome on an atom is judged, or what a score is.
    options
        The method's own settings, by name.
    coins
        How coins are thrown.
    alike, even
        Whether late outcomes count as some of many, and as all before; not so in states of
        earlier versions.
    capped
        Whether one outcome moves weights of experts by no more than some; not so in these either.
    bent
        Whether ends of intervals move faster where coverage is far away, and slower where outcomes
        are late; not so in these either.
    """

    kind: str
    method: str
    target: float | tuple[float, ...]
    choice: str
    options: tuple[tuple[str, Any], ...]
    coins: str
    alike: bool = True
    even: bool = True
    capped: bool = True
    bent: bool = True

    @property
    def listed(self) -> Any:
        """The target as JSON-ready data."""
        return list(self.target) if isinstance(self.target, tuple) else self.target
