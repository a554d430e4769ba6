"""By which name a group goes, and which block it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels.groups import ROOM


class Period(NamedTuple):
    """A group that begins anew whenever its number goes up, such as a month or a season.

    Periods of one name share a place: when the next one begins, the last one is over, and takes
    no more outcomes.

    Examples
    --------
    >>> str(Period("month", 11))
    'month 11'
    """

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


Name: TypeAlias = str | int | Period
Key: TypeAlias = str | int | tuple[str]


def names_of(groups: Any, declared: tuple[Name, ...] = ()) -> tuple[Name, ...]:
    """Return the groups of one round by name, each once.

    ``groups`` is a name or several, a mapping of names to whether they apply, or a mask over
    the ``declared`` ones.

    >>> names_of(["a", 3, "a"]), names_of({"a": True, "b": False})
    (('a', 3), ('a',))
    >>> names_of([True, False, True], ("a", "b", "c"))
    ('a', 'c')
    """
    if groups is None:
        return ()
    if isinstance(groups, (str, Period, int, np.integer)):
        return (_name(groups),)
    if isinstance(groups, Mapping):
        groups = [name for name, applies in groups.items() if flag(applies, name)]
    given = _listed(groups)
    if given and all(isinstance(part, (bool, np.bool_)) for part in given):
        given = _unmasked(given, declared)
    names = tuple(dict.fromkeys(_name(part) for part in given))
    if len(names) >= ROOM:
        raise InvalidInput(
            f"groups of a round must be at most {ROOM - 1}, got {len(names)}: "
            "the first is " + repr(names[0])
        )
    return names


def flag(value: Any, name: Any) -> bool:
    """Return whether a round is in group ``name``."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidType(f"membership in {name!r} must be True or False, got {value!r}")
    return bool(value)


def _listed(groups: Any) -> list[Any]:
    if isinstance(groups, (set, frozenset)):
        # Their order is not the same in every process.
        return sorted(groups, key=lambda part: (isinstance(part, str), str(part)))
    if isinstance(groups, Iterable) and not isinstance(groups, bytes) and not _scalar(groups):
        return list(groups)
    raise InvalidType(f"groups must be names, a mask or a mapping, got {groups!r}")


def _scalar(groups: Any) -> bool:
    return isinstance(groups, np.ndarray) and groups.ndim == 0


def _unmasked(mask: list[Any], declared: tuple[Name, ...]) -> list[Any]:
    if len(mask) != len(declared):
        raise InvalidInput(
            f"mask must have one entry for each of {len(declared)} declared groups, got {len(mask)}"
        )
    return [name for name, applies in zip(declared, mask, strict=True) if applies]


def _name(value: Any) -> Name:
    if type(value) is str:
        return value
    if isinstance(value, Period):
        return Period(_text(value.name), check.whole(value.number, "number of a period"))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise InvalidType(f"group must be a string, a whole number or a Period, got {value!r}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidType(f"name of a period must be a string, got {value!r}")
    return str(value)


class Roster:
    """Which group has which place, and which period of it is running.

    Examples
    --------
    >>> roster = Roster(2)
    >>> roster.enter(("b", Period("month", 3)))
    [0, -2]
    >>> roster.running((Period("month", 2), "b", "new"))
    [0]
    >>> roster.enter(("b", "new"))
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: groups must be at most 2 (see max_groups), got one more: 'new'
    """

    __slots__ = ("most", "numbers", "places")

    def __init__(self, most: int) -> None:
        self.most = most
        self.places: dict[Key, int] = {}
        self.numbers: list[int] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def copy(self) -> Roster:
        """Return the same, apart."""
        made = Roster(self.most)
        made.places, made.numbers = dict(self.places), list(self.numbers)
        return made

    def running(self, names: tuple[Name, ...]) -> list[int]:
        """Return the places of those that are known and not over, in order; nothing changes."""
        found = [(self.places.get(_key(name), -1), name) for name in names]
        return sorted(place for place, name in found if place >= 0 and self._runs(place, name))

    def enter(self, names: tuple[Name, ...]) -> list[int]:
        """Return the places of all, in order; ``-1 - place`` for a period that begins.

        New groups get a place each; an error leaves everything as it was.
        """
        self._check(names)
        return [
            place if runs else -1 - place for place, runs in sorted(self._enter(n) for n in names)
        ]

    def enter_column(self, column: NDArray[Any]) -> Words:
        """Return the place of each name in a column of strings or of whole numbers."""
        names, first, inverse = np.unique(column, return_index=True, return_inverse=True)
        places = np.empty(len(names), np.int64)
        for k in np.argsort(first).tolist():
            places[k] = self.enter((names[k].item(),))[0]
        return places[inverse]

    def names(self) -> list[Name]:
        """Return all groups by place, each period with the number that is running."""
        return [
            Period(key[0], number) if isinstance(key, tuple) else key
            for key, number in zip(self.places, self.numbers, strict=True)
        ]

    def _runs(self, place: int, name: Name) -> bool:
        return not isinstance(name, Period) or self.numbers[place] == name.number

    def _check(self, names: tuple[Name, ...]) -> None:
        new, seen = 0, set[Key]()
        for name in names:
            key = _key(name)
            if key in seen:
                raise InvalidInput(f"groups of a round must be apart, got {name!r} and another")
            seen.add(key)
            if key not in self.places:
                new += 1
            elif isinstance(name, Period) and name.number < (now := self.numbers[self.places[key]]):
                raise InvalidInput(
                    f"number of period {name.name!r} must not go down from {now}, got {name.number}"
                )
            if len(self) + new > self.most:
                raise InvalidInput(
                    f"groups must be at most {self.most} (see max_groups), got one more: {name!r}"
                )

    def _enter(self, name: Name) -> tuple[int, bool]:
        place = self.places.setdefault(_key(name), len(self))
        number = name.number if isinstance(name, Period) else 0
        if place == len(self):
            self.numbers.append(-1 if isinstance(name, Period) else 0)
        runs = self.numbers[place] == number
        self.numbers[place] = number
        return place, runs


def _key(name: Name) -> Key:
    return (name.name,) if isinstance(name, Period) else name
