"""The groups of a round: their names, the rules from which they follow, and their blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels.groups import ROOM

RECENT: Final = 64
"""How many of the last rounds a rule may look at."""


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


TEXT: Final = {str}
"""The types of the names of most rounds."""


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
    if type(groups) in (list, tuple) and set(map(type, groups)) == TEXT and len(groups) < ROOM:
        return tuple(dict.fromkeys(groups))
    if isinstance(groups, (str, Period)) or check.is_integer(groups):
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
    return check.listed(groups, "groups", "be names, a mask or a mapping")


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
        if not isinstance(value.name, str):
            raise InvalidType(f"name of a period must be a string, got {value.name!r}")
        return Period(str(value.name), check.whole(value.number, "number of a period"))
    if isinstance(value, str):
        return str(value)
    if check.is_integer(value) and not isinstance(value, bool):
        return int(value)
    raise InvalidType(f"group must be a string, a whole number or a Period, got {value!r}")


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

    def noted(self, names: tuple[Name, ...]) -> tuple[int, list[tuple[int, int]]]:
        """Return what is needed to undo that names are entered."""
        known = [self.places[key] for name in names if (key := _key(name)) in self.places]
        return len(self), [(place, self.numbers[place]) for place in known]

    def undo(self, noted: tuple[int, list[tuple[int, int]]]) -> None:
        """Know the groups again that were known then, with the periods that were running."""
        count, running = noted
        while len(self.places) > count:
            self.places.popitem()
        del self.numbers[count:]
        for place, number in running:
            self.numbers[place] = number

    def running(self, names: tuple[Name, ...]) -> list[int]:
        """Return the places of those that are known and not over, in order; nothing changes."""
        if set(map(type, names)) <= TEXT:
            return sorted([self.places[name] for name in names if name in self.places])
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


@dataclass(frozen=True)
class History:
    """What a checking rule may know besides the context.

    Attributes
    ----------
    issued
        Forecasts made before this one.
    rounds
        Outcomes learned.
    raw
        The raw forecast of the round.
    recent
        Draw and outcome of the last rounds whose outcomes were learned, 64 at most, the latest
        last.

    Examples
    --------
    >>> after_a_one = lambda context, history: history.outcomes[-1:] == (1,)
    >>> after_a_one(None, History(2, 2, 0.5, ((0.5, 0), (0.45, 1))))
    True
    """

    issued: int
    rounds: int
    raw: float
    recent: tuple[tuple[float, int], ...]

    @property
    def outcomes(self) -> tuple[int, ...]:
        """The last outcomes."""
        return tuple(outcome for _, outcome in self.recent)

    @property
    def forecasts(self) -> tuple[float, ...]:
        """The draws that they met."""
        return tuple(forecast for forecast, _ in self.recent)


Rule: TypeAlias = Callable[[Any, History], Any]


@dataclass(frozen=True)
class TimeIntervals:
    """The rule that makes intervals of time to groups: strongly adaptive calibration.

    The intervals are the geometric covering: [i L, (i + 1) L) for L = ``shortest`` times a power
    of two and i = 1, 2, ...; in round t the intervals of all lengths up to t contain it, about
    log2(t / shortest) of them.  Any stretch of time is a union of few, so that forecasts that are
    calibrated on each are calibrated on it.

    Parameters
    ----------
    shortest
        Length of the shortest intervals.  Below the number of grid points there is nothing to
        be learned in one.

    Notes
    -----
    Memory is for one interval of each length: one that is over makes room for the next.

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz (2015), "Strongly adaptive online learning".

    Examples
    --------
    >>> rule = TimeIntervals(shortest=4)
    >>> [str(period) for period in rule(None, History(8, 8, 0.5, ()))]
    ['interval of 4: 2', 'interval of 8: 1']
    """

    shortest: int = 256

    pure: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shortest", check.whole(self.shortest, "shortest", low=1))

    def __call__(self, context: Any, history: History) -> tuple[Period, ...]:
        """Return the intervals that contain the present round."""
        now, length, found = history.issued + 1, self.shortest, []
        while length <= now:
            found.append(Period(f"interval of {length}:", now // length))
            length *= 2
        return tuple(found)


class CheckingRules:
    """What a recalibrator was told about its groups: declared names, and rules.

    Parameters
    ----------
    groups
        None; names; a rule or several, each of which returns the names that apply; or a mapping
        of names to rules, each of which says whether its name applies.

    Examples
    --------
    >>> rules = CheckingRules({"likely": lambda context, history: history.raw > 0.5})
    >>> rules.names("north", None, History(0, 0, 0.8, ()))
    ('north', 'likely')
    """

    def __init__(self, groups: Any) -> None:
        self.given = groups
        named: list[tuple[Any, Any]] = (
            list(groups.items())
            if isinstance(groups, Mapping)
            else [(None, part) if callable(part) else (part, None) for part in _parts(groups)]
        )
        self.rules: list[tuple[Name | None, Rule]] = []
        for name, rule in named:
            if rule is not None and not callable(rule):
                raise InvalidType(f"rule of group {name!r} must be a function, got {rule!r}")
            if rule is not None:
                self.rules.append((None if name is None else names_of([name])[0], rule))
        self.declared = names_of([name for name, _ in named if name is not None])
        self.pure = all(getattr(rule, "pure", False) for _, rule in self.rules)

    def names(self, groups: Any, context: Any, history: History) -> tuple[Name, ...]:
        """Return the names of a round: those given for it, then those of the rules."""
        found = list(names_of(groups, self.declared))
        for name, rule in self.rules:
            told = rule(context, history)
            if name is None:
                found += names_of(told, self.declared)
            elif flag(told, name):
                found.append(name)
        return names_of(found) if self.rules else tuple(found)


def _parts(groups: Any) -> list[Any]:
    if groups is None:
        return []
    if callable(groups) or isinstance(groups, (str, Period)) or not isinstance(groups, Iterable):
        return [groups]
    return list(groups)
