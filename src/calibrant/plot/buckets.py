"""What became of the raw forecasts of each bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.metrics import binomial_band
from calibrant.plot.canvas import entry, probability_axis
from calibrant.plot.drawing import Drawing
from calibrant.plot.palette import LIGHT, Style, looks
from calibrant.summary import BucketRow, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH: Final[Style] = {
    "marker": "_",
    "markersize": 9.0,
    "markeredgewidth": 1.6,
    "color": LIGHT["ink"],
}
"""How the frequency of outcome 1 is marked."""


@dataclass(frozen=True, eq=False)
class BucketMap(Drawing):
    """For each bucket of raw forecasts: what was said, what was said instead, what happened.

    Attributes
    ----------
    low, high
        The bucket.
    count
        Rounds.
    mean_raw, mean_forecast, rate
        Average raw forecast, average drawn forecast and frequency of outcome 1 over the
        rounds of the bucket; nan without rounds.
    band_low, band_high
        Exact binomial 95 % limits of the frequency.
    """

    entry_width: ClassVar[float] = 1.15

    low: Reals
    high: Reals
    count: Words
    mean_raw: Reals
    mean_forecast: Reals
    rate: Reals
    band_low: Reals
    band_high: Reals

    def _ink(self, ax: Axes) -> list[Any]:
        given, used = looks(["raw", "forecast"]), self.count > 0
        x = self.mean_raw[used]
        _ink_truth(ax, x, self.rate[used], self.band_low[used], self.band_high[used])
        ax.vlines(x, x, self.mean_forecast[used], LIGHT["soft"], "-", linewidth=0.8, zorder=1.5)
        for name, y in (("raw", x), ("forecast", self.mean_forecast[used])):
            ax.plot(x, y, linestyle="", clip_on=False, zorder=3.0, **given[name].mark(5.0))
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set(xlabel="raw forecast, bucket by bucket", ylabel="probability")
        probability_axis(ax.xaxis)
        probability_axis(ax.yaxis)
        entries = [entry(look.label, linestyle="", **look.mark(5.0)) for look in given.values()]
        return [*entries, entry("what happened", linestyle="", **TRUTH)]


def buckets(
    source: Any,
    forecast: ArrayLike | None = None,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int = 20,
    ax: Axes | None = None,
) -> BucketMap:
    """Draw what raw forecasts were turned into, next to what happened, bucket by bucket.

    Parameters
    ----------
    source : Summary, list of BucketRow, or array_like
        A summary, its rows, or the raw forecasts.
    forecast, outcomes : array_like, optional
        The recalibrated forecasts and the outcomes, beside raw forecasts.
    buckets : int
        Buckets of equal width for arrays.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> drawn = buckets([0.9, 0.9, 0.1], [0.5, 0.6, 0.1], [1, 0, 0], buckets=2)
    >>> drawn.mean_forecast.tolist(), drawn.rate.tolist()
    ([0.1, 0.55], [0.0, 0.5])
    """
    return prepare_buckets(source, forecast, outcomes, buckets=buckets).draw(ax)


def prepare_buckets(
    source: Any,
    forecast: ArrayLike | None = None,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int = 20,
) -> BucketMap:
    """Return the numbers that :func:`buckets` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = source.buckets
    if isinstance(source, list) and source and isinstance(source[0], BucketRow):
        return _of_rows(source)
    return _of_arrays(source, forecast, outcomes, check.whole(buckets, "buckets", low=1))


def _of_rows(rows: list[BucketRow]) -> BucketMap:
    count = np.array([row.count for row in rows], dtype=np.int64)
    names = ("low", "high", "mean_raw", "mean_forecast", "rate")
    columns: Style = {name: np.array([getattr(row, name) for row in rows]) for name in names}
    ones = np.rint(np.where(count > 0, columns["rate"], 0.0) * count)
    band_low, band_high = binomial_band(ones, count)
    return BucketMap(count=count, band_low=band_low, band_high=band_high, **columns)


def _of_arrays(raw: Any, forecast: Any, outcomes: Any, size: int) -> BucketMap:
    values = check.probabilities(raw)
    after, binary = check.probabilities(forecast, "forecast"), check.outcomes(outcomes)
    check.same_length(raw=values, forecast=after, outcomes=binary)
    index = buckets_of(values, size)
    count = np.bincount(index, minlength=size)
    sums = [np.bincount(index, each, size) for each in (values, after, binary)]
    mean_raw, mean_forecast, rate = (s / np.where(count > 0, count, np.nan) for s in sums)
    edges, band = np.arange(size + 1) / size, binomial_band(sums[2], count)
    return BucketMap(
        edges[:-1],
        edges[1:],
        count,
        mean_raw,
        mean_forecast,
        rate,
        band_low=band[0],
        band_high=band[1],
    )


def _ink_truth(ax: Axes, x: Reals, rate: Reals, low: Reals, high: Reals) -> None:
    ax.vlines(x, low, high, LIGHT["ink"], "-", linewidth=5.0, alpha=0.18, zorder=1.2)
    ax.plot(x, rate, linestyle="", zorder=2.0, **TRUTH)
