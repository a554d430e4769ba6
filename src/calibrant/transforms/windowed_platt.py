"""Platt scaling fitted to a window of past rounds."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels.transforms import window_platt
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform
from calibrant.transforms.online_platt import clipping, positive

__all__ = ["WindowedPlatt"]

WIDEST = 1 << 20


@transforms.add("windowed_platt")
@dataclass(frozen=True)
class WindowedPlatt(Transform):
    """Fit slope and intercept of the log-odds to the last rounds, every so often.

    What many do with a batch calibrator today; here for comparison.

    Parameters
    ----------
    window
        How many rounds are kept.
    every
        Rounds from one fit to the next.
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

    name = "windowed_platt"
    kernel = window_platt.KERNEL
    notes = window_platt.NOTES
    reference = "Platt 1999"
    guarantee = "none"
    assumption = "independent rounds, and then only in the limit"
    cost = "O(window / every) a round, some ten times over; O(window) memory"

    window: int = 500
    every: int = 50
    ridge: float = 1.0
    clip: float = 0.01

    def __post_init__(self) -> None:
        self._set(
            window=check.whole(self.window, "window", low=2, high=WIDEST),
            every=check.whole(self.every, "every", low=1, high=WIDEST),
            ridge=positive(self.ridge, "ridge"),
            clip=clipping(self.clip),
        )

    def fresh(self) -> State:
        """Return an empty window, slope 1 and intercept 0."""
        head: State = [self.window, self.every, 0, 0, self.every, self.clip, self.ridge]
        return [*head, 1.0, 0.0, *[0.0] * (2 * self.window + 1)]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [window_platt.WINDOW, window_platt.EVERY, window_platt.LOW, window_platt.RIDGE]

    def limits(self) -> dict[int, tuple[int, int]]:
        """Return where positions may be."""
        return {
            window_platt.FILLED: (0, self.window),
            window_platt.NEXT: (0, self.window - 1),
            window_platt.DUE: (1, self.every),
        }
