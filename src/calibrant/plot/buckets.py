"""What happens bucket by bucket, and where forecasts lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.place import buckets_of
from calibrant.metrics import binomial_band
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, Drawing, Style, entry, looks
from calibrant.summary import BucketRow, Histogram, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUTH: Style = {"marker": "_", "markersize": 9.0, "markeredgewidth": 1.6, "color": LIGHT["ink"]}
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
        x, low, high = (a[used] for a in (self.mean_raw, self.band_low, self.band_high))
        ax.vlines(x, low, high, LIGHT["ink"], "-", linewidth=5.0, alpha=0.18, zorder=1.2)
        ax.plot(x, self.rate[used], linestyle="", zorder=2.0, **TRUTH)
        ax.vlines(x, x, self.mean_forecast[used], LIGHT["soft"], "-", linewidth=0.8, zorder=1.5)
        for name, y in (("raw", x), ("forecast", self.mean_forecast[used])):
            ax.plot(x, y, linestyle="", clip_on=False, zorder=3.0, **given[name].mark(5.0))
        labels = {"xlabel": "raw forecast, bucket by bucket", "ylabel": "probability"}
        canvas.unit_square(ax, diagonal=False, **labels)
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
    low, high = binomial_band(ones, count)
    return BucketMap(count=count, band_low=low, band_high=high, **columns)


def _of_arrays(raw: Any, forecast: Any, outcomes: Any, size: int) -> BucketMap:
    values = check.probabilities(raw)
    after, binary = check.probabilities(forecast, "forecast"), check.outcomes(outcomes)
    check.same_length(raw=values, forecast=after, outcomes=binary)
    index = buckets_of(values, size)
    count = np.bincount(index, minlength=size)
    sums = [np.bincount(index, each, size) for each in (values, after, binary)]
    before, now, rate = (s / np.where(count > 0, count, np.nan) for s in sums)
    edges, (low, high) = np.arange(size + 1) / size, binomial_band(sums[2], count)
    return BucketMap(edges[:-1], edges[1:], count, before, now, rate, low, high)


@dataclass(frozen=True, eq=False)
class Spread(Drawing):
    """Counts of forecasts in intervals of equal width.

    Attributes
    ----------
    edges
        Borders of the intervals, one more than there are intervals.
    counts
        How many forecasts fell into each, by kind; the first kind is drawn upwards, all
        others downwards.
    """

    edges: Reals
    counts: Mapping[str, Words]

    def share(self, name: str) -> Reals:
        """Return the fraction of all forecasts of a kind in each interval."""
        return np.asarray(self.counts[name] / max(1, int(self.counts[name].sum())))

    def _ink(self, ax: Axes) -> list[Any]:
        from matplotlib.patches import Patch
        from matplotlib.ticker import MaxNLocator

        given = looks(self.counts)
        top = max([0.0, *(float(self.share(name).max(initial=0.0)) for name in given)])
        for place, (name, look) in enumerate(given.items()):
            heights = -self.share(name) if place else self.share(name)
            part = (a[heights != 0.0] for a in (self.edges[:-1], heights, np.diff(self.edges)))
            ax.bar(*part, align="edge", **look.bar())
        ax.axhline(0.0, color=LIGHT["soft"], linewidth=0.8)
        down = -1.08 * top if len(given) > 1 else 0.0
        ax.set(xlim=(-0.02, 1.02), ylim=(down or 0.0, 1.08 * top or 1.0))
        ax.set(xlabel="forecast", ylabel="share of rounds")
        canvas.probability_axis(ax.xaxis)
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter(lambda value, _: f"{100.0 * abs(value):g} %")
        return [Patch(label=look.label, **look.bar()) for look in given.values()]


def histogram(source: Any, *, intervals: int = 50, ax: Axes | None = None) -> Spread:
    """Draw how often forecasts fall into each part of [0, 1].

    Parameters
    ----------
    source : Summary, Histogram, array_like, or mapping
        Forecasts.  With a mapping of names to arrays the first points up and the others
        down; a summary gives raw and drawn forecasts.
    intervals : int
        How many intervals of equal width, for arrays.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> histogram([0.1, 0.2, 0.9, 1.0], intervals=2).counts["forecast"].tolist()
    [2, 2]
    """
    return prepare_histogram(source, intervals=intervals).draw(ax)


def prepare_histogram(source: Any, *, intervals: int = 50) -> Spread:
    """Return the numbers that :func:`histogram` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = source.histogram
    if isinstance(source, Histogram):
        return Spread(source.edges, {"raw": source.raw, "forecast": source.forecast})
    size = check.whole(intervals, "intervals", low=1)
    counts = {name: _count(given, size) for name, given in canvas.named(source).items()}
    return Spread(np.arange(size + 1) / size, counts)


def _count(forecasts: ArrayLike, size: int) -> Words:
    index = buckets_of(check.probabilities(forecasts, "forecasts"), size)
    return np.bincount(index, minlength=size)
