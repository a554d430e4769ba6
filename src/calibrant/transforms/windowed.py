"""Transforms refitted, every so often, to a window of past rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from calibrant.core import check
from calibrant.core.limits import refuse_large
from calibrant.kernels.transforms import window
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, rules
from calibrant.transforms.online_platt import clipping, positive

WIDEST = 1 << 20


@dataclass(frozen=True)
class Windowed(Transform):
    """A transform that is refitted, every so often, to the last rounds."""

    checks = rules(
        window=partial(check.whole, low=2, high=WIDEST),
        every=partial(check.whole, low=1, high=WIDEST),
    )
    fixed: ClassVar[tuple[int, ...]] = window.WINDOW, window.EVERY

    window: int = 500
    every: int = 50

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return where positions may be."""
        return {
            window.FILLED: (0, self.window),
            window.NEXT: (0, self.window - 1),
            window.DUE: (1, self.every),
        }


@transforms.add("windowed_isotonic")
@dataclass(frozen=True)
class WindowedIsotonic(Windowed):
    """Fit a rising curve to the last rounds, every so often.

    The curve is the least-squares fit among all that never fall, straight between the points and
    constant beyond them; before the first fit, the raw forecast.

    Parameters
    ----------
    window
        How many rounds are kept.
    every
        Rounds from one fit to the next.

    Notes
    -----
    No promise.

    References
    ----------
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass
    probability estimates".

    Examples
    --------
    >>> online = WindowedIsotonic(window=100, every=10).online()
    >>> _ = online.replay([0.2, 0.8] * 50, [0, 1] * 50)
    >>> online.predict_one(0.1), round(online.predict_one(0.5), 6)
    (0.0, 0.5)
    """

    kernel = window.CURVE
    reference = "Zadrozny and Elkan 2002"
    assumption = "independent rounds, and then only in the limit"
    cost = "O(log window + window log(window) / every) a round; O(window) memory"

    @property
    def notes(self) -> int:
        """The room in which the fit is made."""
        return window.NOTED * self.window

    def fresh(self) -> State:
        """Return an empty window."""
        refuse_large(window.TABLES * self.window)
        head: State = [self.window, self.every, 0, 0, self.every, 0]
        return [*head, *[0.0] * (window.TABLES * self.window)]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return where positions may be."""
        return super().limits() | {window.KNOTS: (0, self.window)}


@transforms.add("windowed_platt")
@dataclass(frozen=True)
class WindowedPlatt(Windowed):
    """Fit slope and intercept of the log-odds to the last rounds, every so often.

    What many do with a batch calibrator today; here for comparison.

    Parameters
    ----------
    window, every
        As in :class:`~calibrant.transforms.WindowedIsotonic`.
    ridge
        How strongly the fit is pulled to slope 1 and intercept 0.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.

    Notes
    -----
    No promise.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".

    Examples
    --------
    >>> online = WindowedPlatt(window=100, every=10).online()
    >>> _ = online.replay([0.9] * 100, [1, 0] * 50)
    >>> round(online.predict_one(0.9), 1)
    0.5
    """

    kernel = window.LINE
    checks = Windowed.checks | rules(ridge=positive, clip=clipping)
    fixed = *Windowed.fixed, window.LOW, window.RIDGE
    notes = 1
    reference = "Platt 1999"
    assumption = "independent rounds, and then only in the limit"
    cost = "O(window / every) a round, some ten times over; O(window) memory"

    ridge: float = 1.0
    clip: float = 0.01

    def fresh(self) -> State:
        """Return an empty window, slope 1 and intercept 0."""
        refuse_large(2 * self.window)
        head: State = [self.window, self.every, 0, 0, self.every, self.clip, self.ridge]
        return [*head, 1.0, 0.0, *[0.0] * (2 * self.window + 1)]
