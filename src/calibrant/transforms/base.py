"""What every transform is: parameters, a kernel, and the words of a fresh state."""

from __future__ import annotations

import abc
import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant.core.arrays import Words
from calibrant.errors import CorruptState, InvalidType
from calibrant.kernels.transforms.kernel import Kernel
from calibrant.registry import transforms
from calibrant.transforms.online import Online

State: TypeAlias = list[Any]
"""Words of a state: floats where a word is a real, ints elsewhere."""


@dataclass(frozen=True)
class Transform(abc.ABC):
    """A rule that turns the raw forecast of a round into another, and learns from the outcome.

    A transform is a value: parameters, and nothing that changes.  What it learns is in its
    state, which :meth:`fresh` begins and :attr:`kernel` works on; :meth:`online` puts both
    together.

    Notes
    -----
    ``notes`` is how many of the last words of a state are notes; those of the parts of a
    composite lie inside, and :meth:`note_positions` knows them all.
    """

    name: ClassVar[str]
    reference: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    cost: ClassVar[str]

    @property
    @abc.abstractmethod
    def kernel(self) -> Kernel:
        """The functions that predict and learn."""

    @property
    def notes(self) -> int:
        """How many notes a state ends with: words that need not be kept."""
        return 0

    @abc.abstractmethod
    def fresh(self) -> State:
        """Return the words of a state that has seen nothing."""

    @property
    def size(self) -> int:
        """Number of words of a state."""
        return len(self.fresh())

    def note_positions(self) -> list[int]:
        """Return which words of a state are notes, which may be set to zero at any time."""
        size = self.size
        return list(range(size - self.notes, size))

    def constants(self) -> list[int]:
        """Return which words of a state never change, such as parameters and positions."""
        return []

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return between which numbers a word must be that says where to go on."""
        return {}

    def verify(self, words: Words) -> None:
        """Refuse a stored state with which the kernel would go astray."""
        fresh = flat_of(self.fresh())
        if len(words) != len(fresh):
            raise CorruptState(f"state must have {len(fresh)} words, got {len(words)}")
        low = np.full(len(fresh), np.iinfo(np.int64).min)
        high = np.full(len(fresh), np.iinfo(np.int64).max)
        fixed = self.constants()
        low[fixed] = high[fixed] = fresh[fixed]
        for place, (least, most) in self.limits().items():
            low[place], high[place] = least, most
        for place in np.flatnonzero((words < low) | (words > high))[:1].tolist():
            allowed = f"from {low[place]} to {high[place]}"
            raise CorruptState(f"word {place} must be {allowed}, got {words[place]}")

    def online(self) -> Online:
        """Return the transform at work on a fresh state."""
        return Online(self)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name, ready for JSON; transforms among them as descriptions."""
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    @property
    def description(self) -> dict[str, Any]:
        """Name and parameters, from which :func:`from_description` makes the transform again."""
        return {"name": self.name, "parameters": self.parameters}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return the transform with these :attr:`parameters`; those left out have defaults."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in parameters:
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise InvalidType(f"parameters of {cls.name} must be among {listed}, got {name!r}")
        return cls(**{name: _revived(value) for name, value in parameters.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return from_description, (self.description,)

    def _set(self, **values: Any) -> None:
        """Replace parameters by their checked values, while the object is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def flat_of(words: State) -> Words:
    """Return words as an array, reals by their bits."""
    real = np.array([type(word) is float for word in words], bool)
    plain, flat = np.array(words, object), np.zeros(len(words), np.int64)
    flat[~real] = plain[~real].astype(np.int64)
    flat.view(np.float64)[real] = plain[real].astype(np.float64)
    return flat


def shifted(part: Transform, start: int) -> tuple[list[int], dict[int, tuple[int, int]]]:
    """Return constants and limits of a part of a composite that starts at ``start``."""
    constants = [start + place for place in part.constants()]
    return constants, {start + place: limit for place, limit in part.limits().items()}


def from_description(description: dict[str, Any]) -> Transform:
    """Return the transform that a description names, with the parameters given there.

    >>> from_description({"name": "online_platt", "parameters": {"gamma": 0.5}}).gamma
    0.5
    """
    made: Any = transforms.get(description["name"])
    transform: Transform = made.from_parameters(description["parameters"])
    return transform


def _plain(value: Any) -> Any:
    if isinstance(value, Transform):
        return value.description
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return None if value == math.inf else value


def _revived(value: Any) -> Any:
    if isinstance(value, dict):
        return from_description(value)
    if isinstance(value, list):
        return tuple(_revived(item) for item in value)
    return value
