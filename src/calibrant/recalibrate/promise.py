"""The words of every certificate: what was counted, what is promised, and from when on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from calibrant.bounds import Bound
from calibrant.core.seeded import Seeded

FAILURE: Final = 0.05
"""How likely bounds on this very run may fail, unless somebody asks for another chance."""
LATEST: Final = 10**9
"""A promise that begins later than this is not worth mentioning."""
AGAINST: Final = "against any adversary who does not see the draw"
ALWAYS: Final = "for any outcomes whatsoever"
REPORTED: Final = (
    " without an outcome; the rest is about rounds with one, and no promise holds if draws decide "
    "which outcomes are reported"
)
EARLY: Final = "too early to promise anything"


def tally(rounds: int, open: int, expired: int) -> str:
    """Return how many rounds there were, and what becomes of tickets whose outcome never came.

    >>> tally(150, 1, 0)
    '150 rounds, 1 open, 0 expired'
    """
    told = f"{rounds} rounds, {open} open, {expired} expired"
    return told + REPORTED if expired else told


@dataclass(frozen=True)
class Counted(Seeded):
    """What certificates start with; see :class:`~calibrant.Certificate`."""

    method: str
    rounds: int
    open: int
    expired: int
    delay: int

    def _head(self) -> str:
        return f"{self.method}: {tally(self.rounds, self.open, self.expired)}"

    def _nothing(self, bound: Bound | None, first: int | None) -> str:
        """Return why nothing is promised."""
        if self.rounds == 0:
            return "no rounds yet"
        return "no guarantee" if bound is None else too_early(first)


def promised(values: Mapping[str, float], failure: float | None, holds: bool | None) -> str:
    """Return what is promised of this run, except with probability ``failure``, and if it was kept.

    >>> promised({"C1": 0.25, "C2": 0.0625}, 0.05, True)[:41]
    'promised with probability 0.95, against a'
    """
    sure = ALWAYS if failure is None else f"with probability {1.0 - failure:g}, {AGAINST}"
    limits = ", ".join(f"{name} <= {value:.4g}" for name, value in values.items())
    return f"promised {sure}: {limits}; {'kept' if holds else 'exceeded'}"


def too_early(first: int | None) -> str:
    """Return that nothing can be promised yet, and from when on.

    >>> too_early(140), too_early(None)
    ('too early to promise anything; from about round 140 on', 'too early to promise anything')
    """
    return EARLY if first is None else f"{EARLY}; from about round {first} on"


def first_round(says: Callable[[int], bool], after: int) -> int | None:
    """Return from about which round on a bound says something; None if that is too far away.

    It is found by doubling and halving, as if a bound that says something went on doing so.

    >>> first_round(lambda rounds: rounds > 1000, after=3), first_round(lambda _: False, after=3)
    (1001, None)
    """
    low, high = after, after + 1
    while not says(high):
        if high > LATEST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if says(middle) else (middle, high)
    return high


def told_apart(bounds: Iterable[Bound], says: Callable[[Bound], bool]) -> list[str]:
    """Return bounds by what they are, each clause once, and below it what it is about."""
    lines = []
    for clause, found in groupby(bounds, key=lambda bound: bound.assumption):
        lines.append(f"  {clause}:")
        lines += [f"    {b.quantity} {_limit(b, says(b))}" for b in found]
    return lines


def _limit(bound: Bound, says: bool) -> str:
    value = f"<= {bound.value:.4g}" if says else "not limited yet"
    return f"{value} ({bound.theorem}; {bound.source})"
