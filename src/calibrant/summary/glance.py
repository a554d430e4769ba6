"""What a page asks every second: counts, scores and curves from sums, in a millisecond."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.kernels import tallies
from calibrant.kernels.tallies import BUCKET_WORDS, BUCKETS, COARSE
from calibrant.metrics import CalibrationCurve
from calibrant.summary.follower import Follower
from calibrant.summary.recent import Recent, sums, sums_of_values
from calibrant.summary.together import exact, gaps

CONFIDENCE: Final = 0.95
QUANTILE: Final = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Glance:
    """A stream at a glance.

    Attributes
    ----------
    rounds, ones
        Outcomes learned, and how many of them were 1.
    brier, c1, c2
        Scores of ``"raw"``, ``"forecast"`` and ``"mean"``, each of all rounds, as in a summary; nan
        without rounds.
    curves
        Reliability of the three in 20 equal buckets, with score bands.
    drawn
        The average drawn forecast in each bucket of raw forecasts.
    waits
        How many outcomes waited less than 1, from 1 to below 2, from 2 to below 4, and so on.
    open, expired
        Forecasts that wait for their outcome, and those that waited too long.
    alarms
        What alarms say, as they told it.
    recent
        What was found in the latest windows of rounds; None before the first has ended, and where
        rounds have no order.
    """

    rounds: int
    ones: int
    brier: Mapping[str, float]
    c1: Mapping[str, float]
    c2: Mapping[str, float]
    curves: Mapping[str, CalibrationCurve]
    drawn: Reals
    waits: Words
    open: int = 0
    expired: int = 0
    alarms: Mapping[str, Any] = field(default_factory=dict)
    recent: Recent | None = None

    @property
    def base_rate(self) -> float:
        """The frequency of outcome 1."""
        return self.ones / self.rounds if self.rounds else math.nan

    def waited(self, share: float) -> float:
        """Return before what time this share of outcomes was known, to a factor of 2.


        >>> follower = Follower([0.0, 1.0])
        >>> for seconds in (0.0, 3.0, 3.0, 100.0):
        ...     _ = follower.take(0.5, 1.0, 0.5, 1, seconds)
        >>> glance(follower).waited(0.5), glance(follower).waited(1.0)
        (4.0, 128.0)
        """
        total = int(self.waits.sum())
        if not total:
            return math.nan
        return 2.0 ** int(np.searchsorted(np.cumsum(self.waits), share * total))


def glance(
    follower: Follower, *, open: int = 0, expired: int = 0, alarms: Mapping[str, Any] | None = None
) -> Glance:
    """Return a stream at a glance; takes a millisecond where a summary takes a hundred.

    Parameters
    ----------
    follower
        Who followed the stream.
    open, expired
        How many forecasts wait for an outcome, and how many waited too long.
    alarms
        What alarms say, by name.

    Notes
    -----
    Bands are Wilson's score intervals at 95 %, which need no iteration; those of a summary are
    exact, and a little wider.

    Examples
    --------
    >>> follower = Follower([0.0, 0.5, 1.0])
    >>> _ = follower.take(0.3, 0.5, 0.4, 0), follower.take(0.8, 1.0, 0.9, 1)
    >>> seen = glance(follower, open=3)
    >>> seen.rounds, seen.base_rate, round(seen.brier["raw"], 6), seen.open
    (2, 0.5, 0.065, 3)
    """
    words, waits, recent = follower.sums()
    rounds, cells = int(words[tallies.ROUNDS]), int(words[tallies.CELLS])
    tables = {
        name: _table(words, at) for name, at in (("raw", tallies.RAW), ("mean", tallies.MEAN))
    }
    counts = words[tallies.counts_at(cells) : tallies.counts_at(cells) + 2 * cells]
    found = {name: _of_buckets(table, rounds) for name, table in tables.items()}
    found["forecast"] = (
        tuple(float(each[0]) / rounds for each in exact(words, counts[None]))
        if rounds
        else (math.nan,) * 3
    )
    curves = {name: _curve(*sums(_pairs(table))) for name, table in tables.items()}
    curves["forecast"] = _curve(*sums_of_values(words, counts))
    order = ("raw", "forecast", "mean")
    brier, c1, c2 = ({name: found[name][k] for name in order} for k in range(3))
    ones = int(counts[1::2].sum())
    by_name = {name: curves[name] for name in order}
    told = (by_name, _drawn(words, cells), waits, open, expired, alarms or {}, recent)
    return Glance(rounds, ones, brier, c1, c2, *told)


def _table(words: Words, at: int) -> Words:
    return words[at + BUCKETS : at + BUCKETS + BUCKET_WORDS].reshape(1, 2 * COARSE, 5)


def _pairs(table: Words) -> Words:
    return np.asarray(table[0].reshape(COARSE, 2, 5))


def _of_buckets(table: Words, rounds: int) -> tuple[float, ...]:
    """Return Brier score, C1 and C2 over the buckets of a series."""
    if not rounds:
        return (math.nan,) * 3
    pairs = _pairs(table)
    _, ones, total = sums(pairs)
    squares = (pairs[..., 3] * tallies.FROM_HIGH + pairs[..., 4] * tallies.FROM_LOW).sum()
    with_one = (pairs[:, 1, 1] * tallies.FROM_HIGH + pairs[:, 1, 2] * tallies.FROM_LOW).sum()
    error = float(squares) + int(ones.sum()) - 2.0 * float(with_one)
    return tuple(float(x) / rounds for x in (error, np.abs(ones - total).sum(), gaps(table)[0]))


def _drawn(words: Words, cells: int) -> Reals:
    cross = words[tallies.cross_at(cells) : tallies.level_at(cells, 0)].reshape(COARSE, cells)
    values = words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells]
    return np.asarray(cross @ values / _or_nan(cross.sum(1)))


def _or_nan(count: Words) -> Reals:
    return np.where(count > 0, count, np.nan)


def _curve(count: Words, ones: Words, total: Reals) -> CalibrationCurve:
    edges, divisor = np.arange(COARSE + 1) / COARSE, _or_nan(count)
    low, high = score_band(ones, count)
    means = total / divisor, ones / divisor
    return CalibrationCurve(edges[:-1], edges[1:], count, *means, low, high, CONFIDENCE)


def score_band(ones: Words, counts: Words) -> tuple[Reals, Reals]:
    """Return Wilson's score limits at 95 % for the probability behind each frequency.

    References
    ----------
    Wilson, Journal of the American Statistical Association 22 (1927), 209-212.

    Examples
    --------
    >>> low, high = score_band(np.array([0, 7]), np.array([10, 10]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.3968], [0.2775, 0.8922])
    """
    z2, n = QUANTILE * QUANTILE, np.maximum(counts, 1)
    middle = (ones + z2 / 2.0) / (n + z2)
    spread = QUANTILE * np.sqrt(np.maximum(ones * (n - ones) / n + z2 / 4.0, 0.0)) / (n + z2)
    none = counts == 0
    low = np.where(none | (ones == 0), 0.0, middle - spread)
    high = np.where(none | (ones == counts), 1.0, middle + spread)
    return low, high
