"""The latest windows of a live stream: are draws calibrated now, and since when not?

::

    whenever a window of 625 rounds ends:
        put its sums beside those of the 15 windows before
        for the latest 1, 2, 4, 8 and 16 windows together:
            how likely are frequencies this far from the draws, were draws right to half a step?
        well so far, and hardly likely: draws are off, since the first of those windows
        off so far, and likely again in as many windows as showed it, or in four: well again
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.errors import CorruptState
from calibrant.kernels import tallies
from calibrant.kernels.tallies import BASE, BUCKET_WORDS, BUCKETS, COARSE, WINDOW

LENGTHS: Final = (1, 2, 4, 8, 16)
"""Windows that are judged together."""
KEPT: Final = LENGTHS[-1]
CALM: Final = 2
"""Which length, at least, must be well again before draws are."""
OFF: Final = 1e-6
"""Probability, at most, of calling draws off that are not, at the end of one window by one length.

One million windows of 625 rounds are more than most streams ever have.
"""
WELL: Final = 0.05
"""How likely frequencies must be for draws that were off to be well again."""
ROWS: Final = 6
"""Rounds, ones and the sum of forecasts of each bucket: of raw forecasts, then of draws."""
WIDTH: Final = 1 + ROWS * COARSE
"""Numbers of a window: its time, and its sums."""


@dataclass
class Recent:
    """The latest windows, and what was found in them.

    Arrays are replaced, never written to, so that a copy is as it was.

    Attributes
    ----------
    allowed
        How far draws may be off: half a step of their grid.
    tables
        Sums of each window, the latest last, (n, 6, 20).
    times
        When each ended; nan where nobody said.
    ended
        Windows so far.
    since, since_time
        From which round on draws are off, and when the window before ended; 0 and nan if they are
        not.
    length
        Which of the lengths showed that draws are off.
    well
        Whether draws were known to be well before: four windows together, or more.
    """

    allowed: float
    tables: Reals = field(default_factory=lambda: np.zeros((0, ROWS, COARSE)))
    times: Reals = field(default_factory=lambda: np.zeros(0))
    ended: int = 0
    since: int = 0
    since_time: float = math.nan
    length: int = 0
    well: bool = False

    def end(self, words: Words) -> None:
        """Take the window that is about to be closed in the sums of a follower."""
        self.tables = np.concatenate([self.tables[-KEPT:], window_of(words)[None]])
        self.times = np.append(self.times[-KEPT:], math.nan)
        self.ended += 1
        found = self._likely()
        if self.since:
            self._recover(found)
        elif len(found) and found.min() < OFF:
            self._break(int(found.argmin()))
        self.well = self.well or (not self.since and len(found) > CALM)

    def stamp(self, time: float) -> None:
        """Say when the latest window ended."""
        self.times = np.append(self.times[:-1], np.full(len(self.times[-1:]), time))

    def _likely(self) -> Reals:
        """Return how likely the draws of the latest windows are, for each length."""
        last = self.tables[: -KEPT - 1 : -1]
        sums = np.cumsum(last[:, ROWS // 2 :], axis=0)
        return likely(sums[[length - 1 for length in LENGTHS if length <= len(last)]], self.allowed)

    def _break(self, place: int) -> None:
        """Note since when draws are off."""
        length = LENGTHS[place]
        self.length, self.since = place, (self.ended - length) * WINDOW + 1
        before = self.times[-length - 1 : -length]
        self.since_time = float(before[0]) if len(before) else math.nan

    def _recover(self, found: Reals) -> None:
        """Note that draws are well again, and forget the windows in which they were not."""
        place = max(self.length, CALM)
        if place < len(found) and found[place] >= WELL:
            self.since, self.since_time, self.length, self.well = 0, math.nan, 0, True
            self.tables = self.tables[-LENGTHS[place] :]
            self.times = self.times[-LENGTHS[place] :]

    def latest(self) -> tuple[int, Reals]:
        """Return how many rounds the sentence is about, and their sums, (6, 20).

        Those of as many windows as showed that draws are off, and of four at least; of all windows
        that are kept if they are well.
        """
        many = LENGTHS[max(self.length, CALM)] if self.since else KEPT
        tables = self.tables[-many:]
        return len(tables) * WINDOW, np.asarray(tables.sum(0))

    # --------------------------------------------------------------------- stored

    def settings(self) -> dict[str, Any]:
        """Return what is no array."""
        names = ("allowed", "ended", "since", "length", "well")
        return {name: getattr(self, name) for name in names}

    def words(self) -> Words:
        """Return the rest as the words of numbers: a row for each window, its time first.

        The first row holds only since when draws are off.
        """
        rows = np.zeros((1 + len(self.tables), WIDTH))
        rows[0, 0], rows[1:, 0] = self.since_time, self.times
        rows[1:, 1:] = self.tables.reshape(len(self.tables), WIDTH - 1)
        return rows.reshape(-1).view(np.int64)

    @classmethod
    def of(cls, settings: Any, words: Words) -> Recent:
        """Return what was stored, if it could be some."""
        if len(words) % WIDTH or not 1 <= len(words) // WIDTH <= KEPT + 2:
            raise CorruptState("state must be of a follower, got windows of other sizes")
        rows = words.copy().view(np.float64).reshape(-1, WIDTH)
        tables, numbers = rows[1:, 1:].reshape(-1, ROWS, COARSE), ("ended", "since", "length")
        told: dict[str, Any] = {name: int(settings[name]) for name in numbers}
        told |= {"well": bool(settings["well"])}
        sound = min(told.values()) >= 0 and told["length"] < len(LENGTHS)
        if not sound or not (np.isfinite(tables).all() and (tables >= 0.0).all()):
            raise CorruptState("state must be of a follower, got windows that no rounds leave")
        since = float(rows[0, 0])
        return cls(float(settings["allowed"]), tables, rows[1:, 0], since_time=since, **told)


def window_of(words: Words) -> Reals:
    """Return the sums of the window under way, (6, 20), from the words of a follower."""
    cells = int(words[tallies.CELLS])
    base, counts = tallies.level_at(cells, 0) + BASE, tallies.counts_at(cells)
    own = words[tallies.RAW + BUCKETS : tallies.RAW + BUCKETS + BUCKET_WORDS]
    pairs = (own - words[base : base + BUCKET_WORDS]).reshape(COARSE, 2, 5)
    since = base + 2 * BUCKET_WORDS
    drawn = words[counts : counts + 2 * cells] - words[since : since + 2 * cells]
    return np.array([*sums(pairs), *sums_of_values(words, drawn)], np.float64)


def sums(pairs: Words) -> tuple[Words, Words, Reals]:
    """Return rounds, ones and the sum of forecasts of each bucket, (20, 2, 5)."""
    total = pairs[..., 1].sum(1) * tallies.FROM_HIGH + pairs[..., 2].sum(1) * tallies.FROM_LOW
    return pairs[..., 0].sum(1), pairs[:, 1, 0], total


def sums_of_values(words: Words, counts: Words) -> tuple[Words, Words, Reals]:
    """Return the same of draws, from the counts of values."""
    cells = len(counts) // 2
    values = words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells]
    homes = words[tallies.homes_at(cells) : tallies.homes_at(cells) + cells]
    both = counts[::2] + counts[1::2]
    columns = both, counts[1::2], both * values
    found: list[Any] = [np.bincount(homes, column, COARSE) for column in columns]
    return found[0].astype(np.int64), found[1].astype(np.int64), found[2]


def likely(tables: Reals, allowed: float = 0.0) -> Reals:
    r"""Return how likely frequencies so far from forecasts are at most, for each table.

    Parameters
    ----------
    tables
        Rounds, ones and the sum of forecasts of each bucket, (n, 3, buckets).
    allowed
        How far the chance of an outcome may be from its forecast.

    Notes
    -----
    By Chernoff's bound, which Hoeffding proved for chances that differ, :math:`n` rounds have a
    frequency :math:`q` with :math:`n\,\mathrm{KL}(q \| p) \ge x` on one side of :math:`p` with
    probability at most :math:`e^{-x}`, so on either side at most :math:`2 e^{-x}`: each bucket's
    term is at most an exponential variable plus :math:`\log 2`, and their sum over k buckets a
    Gamma variable plus :math:`k \log 2`.  No tables and no iteration, and right for rare events
    too; outcomes are taken to be independent of one another.

    References
    ----------
    Hoeffding, Journal of the American Statistical Association 58 (1963), 13-30, Theorem 1.

    Examples
    --------
    >>> good, bad = [[100.0], [52.0], [50.0]], [[100.0], [80.0], [50.0]]
    >>> [f"{p:.1g}" for p in likely(np.array([good, bad])).tolist()]
    ['1', '9e-09']
    """
    count, ones, total = tables[:, 0], tables[:, 1], tables[:, 2]
    n = np.maximum(count, 1.0)
    rate, said = ones / n, total / n
    near = np.clip(rate, said - allowed, said + allowed)
    far = (count * divergence(rate, near)).sum(1)
    used = (count > 0).sum(1)
    return _tail(np.maximum(far - used * math.log(2.0), 0.0), used)


def divergence(rate: Reals, said: Reals) -> Reals:
    """Return how surprising a frequency is, for each round, if forecasts are right."""
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(rate > 0.0, rate * np.log(rate / said), 0.0)
        zero = np.where(rate < 1.0, (1.0 - rate) * np.log((1.0 - rate) / (1.0 - said)), 0.0)
    return np.asarray(np.maximum(one + zero, 0.0))


def _tail(values: Reals, shapes: Words) -> Reals:
    """Return the probability that Gamma variables of whole shapes exceed some values."""
    x = np.minimum(values, 700.0)
    terms = np.ones((len(x), int(shapes.max(initial=1))))
    terms[:, 1:] = x[:, None] / np.arange(1, terms.shape[1])
    np.multiply.accumulate(terms, axis=1, out=terms)
    inside = np.arange(terms.shape[1]) < shapes[:, None]
    return np.where(shapes > 0, np.exp(-x) * (terms * inside).sum(1), 1.0)
