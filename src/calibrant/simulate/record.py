"""What a game was like: every round, and the errors and losses along the way."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals
from calibrant.losses import LossLike, get_loss
from calibrant.recalibrate import Certificate

SERIES = ("forecast", "mean", "raw")


@dataclass(frozen=True, eq=False)
class Record:
    """All rounds of one game.

    Attributes
    ----------
    raw
        The raw forecasts.
    forecast
        The drawn forecasts: the calibrated ones.
    mean
        The means of the announced mixtures.
    outcomes
        0 or 1 each.
    pseudo_c1, pseudo_c2
        Calibration errors of the mixtures, each value counted with its probability.
    certificate
        The recalibrator's own account at the end, with the theorems beside it.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import play
    >>> recalibrator = Recalibrator(resolution=10, buckets=10, seed=1)
    >>> record = play(recalibrator, "informed", "bernoulli", 300)
    >>> len(record), float(record.running_c1[-1]) == record.c1
    (300, True)
    """

    raw: Reals
    forecast: Reals
    mean: Reals
    outcomes: Bits
    pseudo_c1: float
    pseudo_c2: float
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.raw)

    @functools.cached_property
    def running_c1(self) -> Reals:
        """C1 of the draws after each round."""
        before, after, _ = self._gaps
        return self._averaged(np.abs(after) - np.abs(before))

    @functools.cached_property
    def running_c2(self) -> Reals:
        """C2 of the draws after each round."""
        before, after, count = self._gaps
        return self._averaged(after**2 / count - before**2 / np.maximum(count - 1.0, 1.0))

    def running_loss(self, series: str = "forecast", loss: LossLike = "squared") -> Reals:
        """Return the mean loss after each round, of ``"forecast"``, ``"mean"`` or ``"raw"``."""
        chosen = getattr(self, check.choice(series, "series", SERIES))
        return self._averaged(get_loss(loss)(self.outcomes, chosen))

    @property
    def c1(self) -> float:
        """C1 of the draws at the end."""
        return float(self.running_c1[-1])

    @property
    def c2(self) -> float:
        """C2 of the draws at the end."""
        return float(self.running_c2[-1])

    @property
    def loss(self) -> float:
        """Mean squared loss of the draws."""
        return float(self.running_loss("forecast")[-1])

    @property
    def mean_loss(self) -> float:
        """Mean squared loss of the means."""
        return float(self.running_loss("mean")[-1])

    @property
    def raw_loss(self) -> float:
        """Mean squared loss of the raw forecasts."""
        return float(self.running_loss("raw")[-1])

    def __str__(self) -> str:
        return (
            f"{len(self)} rounds: C1 {self.c1:.5f}, C2 {self.c2:.6f}, squared loss "
            f"{self.loss:.5f}, raw {self.raw_loss:.5f}"
        )

    @functools.cached_property
    def _gaps(self) -> Reals:
        """Three rows: the gap of each round's value before it, after it, and the visits so far."""
        order = np.argsort(self.forecast, kind="stable")
        value, y = self.forecast[order], self.outcomes[order]
        first = np.searchsorted(value, value)
        ones = np.concatenate([[0.0], np.cumsum(y)])
        before, count = ones[:-1] - ones[first], np.arange(len(y)) - first + 1.0
        gaps = np.stack([before - (count - 1.0) * value, before + y - count * value, count])
        return gaps[:, np.argsort(order)]

    def _averaged(self, added: Reals) -> Reals:
        return np.cumsum(added) / np.arange(1, len(added) + 1)
