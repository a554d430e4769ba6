"""Platt scaling fitted to a window of past rounds."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.kernels.transforms import window_platt
from calibrant.registry import transforms
from calibrant.transforms.base import State
from calibrant.transforms.online_platt import clipping, positive
from calibrant.transforms.windowed_isotonic import Windowed


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

    name = "windowed_platt"
    kernel = window_platt.KERNEL
    notes = window_platt.NOTES
    reference = "Platt 1999"
    guarantee = "none"
    assumption = "independent rounds, and then only in the limit"
    cost = "O(window / every) a round, some ten times over; O(window) memory"

    ridge: float = 1.0
    clip: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(ridge=positive(self.ridge, "ridge"), clip=clipping(self.clip))

    def fresh(self) -> State:
        """Return an empty window, slope 1 and intercept 0."""
        head: State = [self.window, self.every, 0, 0, self.every, self.clip, self.ridge]
        return [*head, 1.0, 0.0, *[0.0] * (2 * self.window + 1)]

    def constants(self) -> list[int]:
        """Return where the parameters are."""
        return [*super().constants(), window_platt.LOW, window_platt.RIDGE]
