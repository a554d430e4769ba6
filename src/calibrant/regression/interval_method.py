"""What every way to find conformal intervals is: a rule over a part of a row, and a bound."""

from __future__ import annotations

import functools
from abc import ABC
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.bounds import Bound, step_sizes
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput, RepeatedTicket
from calibrant.kernels import intervals as kernel
from calibrant.kernels.layout import ROUNDS, Section, Words
from calibrant.regression.rows import SHORT
from calibrant.regression.seat import OWN, Seat, row_layout


class Record(NamedTuple):
    """What a theorem speaks about, what was measured, and the bound."""

    quantity: str
    measured: float | None
    bound: Bound | None


class IntervalMethod(ABC):
    """A way to choose the radius that covers the next score.

    Parameters
    ----------
    coverage
        Which part of scores should be covered.
    **options
        The rule's own.

    Notes
    -----
    The method works in a part of a row that it is given: see :meth:`sit`.
    """

    name: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    reference: ClassVar[str]
    program: ClassVar[kernel.IntervalProgram]

    _seat: Seat
    _options: dict[str, Any]

    def _start(
        self, coverage: float, step: float, scale: float | None, section: Section = kernel.HEAD
    ) -> None:
        """Begin with the words of a section, all zero but for what is told."""
        self.section, self._fresh = section, [0.0] * len(section)
        self._fresh[kernel.ALPHA] = 1.0 - coverage
        self._fresh[kernel.STEP] = step
        self._fresh[kernel.SCALE] = 0.0 if scale is None else scale
        self._learn = self.program.learn

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row in which the method works."""
        return row_layout(self.section, self._fresh)

    def sit(self, seat: Seat, secret: bytes) -> None:
        """Work in that part of a row from now on; nothing is drawn, whatever the secret."""
        self._seat = seat

    def verify(self, row: Words) -> None:
        """Refuse a row with which the rule would go astray."""
        part = row[OWN:].view(np.float64)
        if np.isnan(part).any() or part[kernel.ROUNDS] != row[ROUNDS]:
            raise ValueError(f"a state that is not of {self.name}")

    @property
    def radius(self) -> float:
        """The radius that the next forecast announces."""
        found: float = self._seat.reals()[self._seat.at + kernel.RADIUS]
        return found

    @property
    def coverage(self) -> float:
        """Which part of scores was covered; nan without any."""
        s = self._seat.part()
        return 1.0 - s[kernel.MISSES] / s[kernel.ROUNDS] if s[kernel.ROUNDS] else float("nan")

    def learn(self, radius: float, score: float) -> None:
        """Learn a score for which that radius was announced."""
        self._learn(self._seat.reals(), self._seat.at, radius, score)

    def amend(self, radius: float, before: float, after: float) -> None:
        """Replace a score for which that radius was announced."""
        state, at = self._seat.reals(), self._seat.at
        misses = state[at + kernel.MISSES] + (after > radius) - (before > radius)
        if not 0.0 <= misses <= state[at + kernel.ROUNDS]:
            raise RepeatedTicket(
                "outcome must have been counted to be corrected, "
                f"got {misses:g} misses then: was it corrected already?"
            )
        self.program.amend(state, at, radius, before, after)

    def play(self, scores: Reals) -> Reals:
        """Play a batch of scores; return the radii announced before each."""
        radii, seat = np.empty(len(scores)), self._seat
        machine = self.program.machine if len(scores) > SHORT else None
        if machine is not None:
            machine.replay(seat.flat(), seat.at, scores, radii)
        else:
            self.program.replay(seat.reals(), seat.at, scores.tolist(), radii)
        return radii

    def compile(self) -> None:
        """Compile single steps, if there is a compiler."""
        machine, seat = self.program.machine, self._seat
        if machine is not None:
            seat.use_views()
            self._learn = lambda _, at, *told: machine.learn(seat.flat(), at, *told)

    def measured(self) -> float:
        """Return the distance of coverage from its target."""
        s = self._seat.part()
        return abs(s[kernel.MISSES] / s[kernel.ROUNDS] - s[kernel.ALPHA])

    def by_steps(self, delay: int) -> Bound | None:
        """Return the bound that follows from the steps that were made; None without any."""
        s = self._seat.part()
        moves = s[kernel.RISE] + s[kernel.FALL]
        ends = s[kernel.FIRST_INVERSE] + s[kernel.LAST_INVERSE]
        # A correction moves the radius without a step.
        if not moves or not ends:
            return None
        return step_sizes(
            int(s[kernel.ROUNDS]),
            s[kernel.HIGH] - s[kernel.LOW],
            moves,
            (ends + s[kernel.VARIATION]) / 2.0,
            idle=int(s[kernel.IDLE]),
            delay=delay,
        )

    def record(self, delay: int) -> Record:
        """Return what was measured and its bound, after at least one round.

        By default the distance of coverage from its target, and what the steps say about it.
        """
        return Record("C1", self.measured(), self.by_steps(delay))

    def options(self) -> dict[str, Any]:
        """Return what the method was made with, coverage aside."""
        return dict(self._options)


def above(value: Any, name: str) -> float:
    """Return a number above 0."""
    number = check.real(value, name)
    if number <= 0.0:
        raise InvalidInput(f"{name} must be above 0, got {value!r}")
    return number


def scale_of(scale: Any) -> float | None:
    """Return what scores are measured by: a number above 0, or None for the largest so far."""
    return None if scale is None else above(scale, "scale")
