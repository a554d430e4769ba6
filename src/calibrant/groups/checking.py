"""Checking rules: groups that follow from the context and the past."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from calibrant.core import check
from calibrant.errors import InvalidType
from calibrant.groups.names import Name, Period, flag, names_of

RECENT: Final = 64
"""How many of the last rounds a rule may look at."""


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
        named: list[tuple[Any, Any]]
        if isinstance(groups, Mapping):
            named = list(groups.items())
        else:
            parts = _parts(groups)
            named = [(None, part) if callable(part) else (part, None) for part in parts]
        for name, rule in named:
            if rule is not None and not callable(rule):
                raise InvalidType(f"rule of group {name!r} must be a function, got {rule!r}")
        self.rules: tuple[tuple[Name | None, Rule], ...] = tuple(
            (_declared(name), rule) for name, rule in named if rule is not None
        )
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


def _declared(name: Any) -> Name | None:
    return None if name is None else names_of([name])[0]
