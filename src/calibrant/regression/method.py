"""A method of numbers: a rule over its part of a row, behind the row's own words."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from calibrant.calibrators.arena import Arena, Bench
from calibrant.calibrators.layout import Layout
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.limits import bits_of
from calibrant.errors import RepeatedTicket
from calibrant.kernels.batches import count_rounds
from calibrant.kernels.crowd import count_forecast
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS, ROW, STATE, Section
from calibrant.kernels.whole import copied
from calibrant.recalibrate.secret import Coins

OWN: Final = len(ROW)
"""Where the method's part of a row starts."""


def row_layout(part: Section, fresh: Sequence[float]) -> Layout:
    """Return the layout of rows that hold their own words and the part of a method.

    ``fresh`` are the numbers of the part before the first round; whole ones are 0.

    >>> from calibrant.kernels.layout import FIXED
    >>> part = Section()
    >>> part.real("STEP", FIXED, "A step."), part.real("MARK", STATE, "A mark.")
    (0, 1)
    >>> layout = row_layout(part, [0.5, 0.25])
    >>> layout.fresh[OWN:].view(float).tolist(), layout.stored[OWN:].tolist()
    ([0.5, 0.25], [False, True])
    """
    fields = [*ROW.fields, *part.fields]
    real, stored = np.array([(f.real, f.life == STATE) for f in fields]).T.copy()
    low, high = bits_of([f.limits for f in fields], real)
    words, nothing = np.zeros(len(fields), np.int64), np.zeros(0, np.int64)
    words[OWN:].view(np.float64)[:] = fresh
    words.flags.writeable = False
    flags = nothing.astype(bool), real, stored
    return Layout(nothing, words, ROW, OWN, len(part), 0, *flags, low, high)


class Seat(Bench):
    """The part of a row in which a method works, and the row's own counts before it.

    Plain steps work on the arena's list; after :meth:`use_views` they work on views of its array.
    """

    __slots__ = ("at", "row")

    def __init__(self, arena: Arena) -> None:
        super().__init__(arena)
        self.row, self.at = arena.layout.row, arena.layout.row + OWN

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return int(self.counts()[self.row + ISSUED])

    def reals(self) -> Any:
        """Return the reals on which single steps work."""
        return self.state()[1]

    def flat(self) -> Reals:
        """Go over to the array; return its reals, for compiled code."""
        return self.arena.flat().view(np.float64)

    def part(self) -> list[float]:
        """Return a copy of the method's part, read as reals; nothing changes."""
        return list(self.arena.row()[OWN:].view(np.float64).tolist())

    # ------------------------------------------------------------------ own counts

    def count_forecast(self) -> int:
        """Count a forecast; return its number."""
        words = self.state()[0]
        number: int = words[self.row + ISSUED]
        count_forecast(words, self.row)
        return number

    def count_outcome(self, number: int) -> None:
        """Count the outcome of the forecast with that number."""
        words, row = self.state()[0], self.row
        words[row + ROUNDS] += 1
        lag = words[row + ISSUED] - number - 1
        if lag > words[row + LONGEST_LAG]:
            words[row + LONGEST_LAG] = lag

    def count_rounds(self, rounds: int) -> None:
        """Count a batch of rounds whose outcomes came at once."""
        count_rounds(self.counts(), self.row, rounds)

    def counts(self) -> Any:
        """Return the words in the form in which they are, to change whole numbers among them."""
        listed = self.arena.listed
        return self.arena.flat() if listed is None else listed


class Ties(NamedTuple):
    """How an outcome on an atom is judged: by coins, or always as covered."""

    random: bool
    coins: Coins


class Method(ABC):
    """A rule that works in the part of a row that :meth:`sit` gives it.

    ``levels`` are those that tickets tell of, ``drawn`` says how many chances are drawn in a round,
    ``advice`` how many numbers a ticket keeps for experts, and ``fields`` what the desk keeps of a
    ticket besides its time, a letter a word.
    """

    name: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str] = "none: any sequence, every time"
    reference: ClassVar[str]

    whole: ClassVar[bool] = False
    """Whether :meth:`learn` counts the outcome as well, and all of it or nothing."""
    levels: Reals = np.empty(0)
    drawn: int = 0
    advice: int = 0
    section: Section
    _fresh: list[float]
    _options: dict[str, Any]
    _seat: Seat

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row in which the method works."""
        return row_layout(self.section, self._fresh)

    @property
    @abstractmethod
    def fields(self) -> str:
        """What the desk keeps of a ticket besides its time."""

    def sit(self, seat: Seat, secret: bytes) -> None:
        """Work in that part of a row from now on, with draws that follow from the secret."""
        self._seat = seat

    def throw(self, how: str) -> None:  # noqa: B027
        """Throw coins so, where chances are drawn."""

    def follow(self, alike: bool, even: bool = True, capped: bool = True) -> None:  # noqa: B027
        """Let late outcomes count as some of many, and as all before; or not, as in the past.

        And let one outcome move weights of experts by no more than some.
        """

    def bend(self, bent: bool) -> None:  # noqa: B027
        """Let ends move faster far away and slower if outcomes are late, or as in the past."""

    @property
    def in_turn(self) -> bool:
        """Whether batches are played one by one at present, also if outcomes come at once."""
        return False

    def verify(self, row: Words) -> None:  # noqa: B027
        """Refuse a row with which the rule would go astray, if limits of words do not say all."""

    @abstractmethod
    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued, given what was kept of them."""

    def kept(self) -> list[tuple[int, Any]]:
        """Return words that are put back if an outcome is learned in part, and where they start."""
        words, row = self._seat.state()[0], self._seat.row
        return [(row, copied(words, row, row + len(self.layout.fresh)))]

    def mend(self) -> None:  # noqa: B027
        """Make the rest of the part follow again from the words that were kept."""

    def withdraw(self, number: int) -> None:  # noqa: B027
        """Take back what was announced for the forecast of that number, if anything was."""

    @abstractmethod
    def learn(self, ticket: Any, met: Any) -> None:
        """Learn what an open ticket met: the score, or which positions were covered."""

    @abstractmethod
    def amend(self, ticket: Any, before: Any, after: Any) -> None:
        """Replace what a closed ticket met."""

    def compile(self) -> None:  # noqa: B027
        """Compile single steps, if there are any and a compiler."""

    def options(self) -> dict[str, Any]:
        """Return what the method was made with, besides what it aims at."""
        return dict(self._options)


def check_once(counted: float, rounds: float, told: str = "") -> None:
    """Refuse to correct what cannot have been counted."""
    if not 0 <= counted <= rounds:
        raise RepeatedTicket(
            "outcome must have been counted to be corrected, "
            f"got {told or f'{counted} covered in {rounds} rounds'} then: was it corrected already?"
        )
