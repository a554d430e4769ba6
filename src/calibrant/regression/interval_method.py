"""What every way to find conformal intervals is: a rule over a flat state, and a bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.bounds import Bound, step_sizes
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kernels import intervals as kernel
from calibrant.regression.base import reals_of, words_of
from calibrant.regression.rows import SHORT
from calibrant.regression.tables import Reals

__all__ = ["IntervalMethod", "Record", "above", "scale_of"]


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
    """

    name: ClassVar[str]
    guarantee: ClassVar[str]
    assumption: ClassVar[str]
    reference: ClassVar[str]
    program: ClassVar[kernel.IntervalProgram]
    room: ClassVar[int] = kernel.HEAD

    def _start(self, coverage: float, step: float, scale: float | None) -> None:
        self._state = [0.0] * self.room
        self._state[kernel.ALPHA] = 1.0 - coverage
        self._state[kernel.STEP] = step
        self._state[kernel.SCALE] = 0.0 if scale is None else scale

    @property
    def radius(self) -> float:
        """The radius that the next forecast announces."""
        return self._state[kernel.RADIUS]

    @property
    def coverage(self) -> float:
        """Which part of scores was covered; nan without any."""
        rounds = self._state[kernel.ROUNDS]
        return 1.0 - self._state[kernel.MISSES] / rounds if rounds else float("nan")

    def learn(self, radius: float, score: float) -> None:
        """Learn a score for which that radius was announced."""
        self.program.learn(self._state, radius, score)

    def play(self, scores: Reals) -> Reals:
        """Play a batch of scores; return the radii announced before each."""
        radii = np.empty(len(scores))
        machine = self.program.machine if len(scores) > SHORT else None
        if machine is not None:
            state = np.array(self._state)
            machine.replay(state, scores, radii)
            self._state = state.tolist()
        else:
            self.program.replay(self._state, scores.tolist(), radii)
        return radii

    def measured(self) -> float:
        """Return the distance of coverage from its target."""
        s = self._state
        return abs(s[kernel.MISSES] / s[kernel.ROUNDS] - s[kernel.ALPHA])

    def by_steps(self, delay: int) -> Bound | None:
        """Return the bound that follows from the steps that were made; None without any."""
        s = self._state
        moves = s[kernel.RISE] + s[kernel.FALL]
        if not moves:
            return None
        ends = s[kernel.FIRST_INVERSE] + s[kernel.LAST_INVERSE]
        return step_sizes(
            int(s[kernel.ROUNDS]),
            s[kernel.HIGH] - s[kernel.LOW],
            moves,
            (ends + s[kernel.VARIATION]) / 2.0,
            idle=int(s[kernel.IDLE]),
            delay=delay,
        )

    @abstractmethod
    def record(self, delay: int) -> Record:
        """Return what was measured and its bound, after at least one round."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return what it was made with, coverage aside."""

    def state(self) -> NDArray[np.int64]:
        """Return what it remembers, as words."""
        return words_of(np.array(self._state))

    def load(self, words: NDArray[np.int64]) -> None:
        """Take in what :meth:`state` gave."""
        found = reals_of(words)
        fixed = [kernel.ALPHA, kernel.STEP, kernel.SCALE]
        if len(found) != self.room or np.isnan(found).any():
            raise ValueError(f"a state that is not of {self.name}")
        if found[fixed].tolist() != [self._state[k] for k in fixed]:
            raise ValueError(f"a state of {self.name} with other settings")
        self._state = found.tolist()


def above(value: Any, name: str) -> float:
    """Return a number above 0."""
    number = check.real(value, name)
    if number <= 0.0:
        raise InvalidInput(f"{name} must be above 0, got {value!r}")
    return number


def scale_of(scale: Any) -> float | None:
    """Return what scores are measured by: a number above 0, or None for the largest so far."""
    return None if scale is None else above(scale, "scale")
