"""Following a live stream: one round at a time, outcomes late, corrections, merging, stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import HandyGate
from calibrant.core.stateful import Migration, Stateful
from calibrant.core.ticket import Ticket
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.kernels import tallies
from calibrant.summary.collector import Collector, LogLoss
from calibrant.summary.recent import Recent
from calibrant.summary.together import LOG_UNIT, Rounds, absorb, holds, summed, surprise, swap

PIECE: Final = tallies.WINDOW
"""Rounds that wait before they are added together."""
WAITS: Final = 64
"""Classes of waiting times: class k is from 2**(k - 1) to below 2**k, class 0 below 1."""
LONGEST: Final = 2.0**62
WORD: Final = 1 << 62
ROUND: Final = "round must be one that was taken before, with the other outcome, got"


class Followed(Collector):
    """What a follower had seen when it was asked: a collector that goes no further."""

    _logs: tuple[int, int]
    _ordered: bool

    @classmethod
    def of(cls, words: Words, logs: list[int], ordered: bool) -> Followed:
        """Return a collector with these words, which are its own from now on."""
        made = cls.__new__(cls)
        made._adopt(words)
        made._logs, made._ordered = (logs[0], logs[1]), ordered
        return made

    @property
    def windowed(self) -> int:
        return self.rounds if self._ordered else 0

    def log_loss(self, name: str) -> LogLoss:
        if name == "forecast":
            return super().log_loss(name)
        place = 0 if name == "raw" else 1
        value = self._logs[place] / LOG_UNIT / self.rounds if self.rounds else float("nan")
        return LogLoss(value, super().log_loss(name).clipped)

    def update(self, *rounds: Any, **options: Any) -> None:
        """Refuse rounds: these go to the follower."""
        raise InvalidInput("rounds must be told to the follower, got them at its collector")


class Follower(Stateful):
    """Follow a live stream in constant memory, in the order in which outcomes become known.

    A round is taken when its outcome is learned.  That order is the stream's own: it is what a log
    of events holds, so a replay of the log gives the same numbers to the last bit, however late
    outcomes were and wherever the follower was stored in between.

    Parameters
    ----------
    values
        The values that may be drawn, in ascending order, or a recalibrator that draws them.
    allowed
        How far draws may be off and still be called calibrated: half a step of the grid, unless
        told.

    Notes
    -----
    Rounds wait in a short list and are added to the sums together, at most 625 at a time.  Nobody
    can tell: whoever asks gets an answer about all of them, and a stored state holds them all.

    All sums are whole numbers, so that a corrected outcome leaves no trace in any of them, and
    followers can be merged in any order.  Points of the trace and windows are history: what was
    computed there before a correction stays as it was known then.  A merged follower has neither.

    Safe to call from several threads: every call holds the follower's gate.

    Examples
    --------
    >>> follower = Follower([0.0, 0.5, 1.0])
    >>> follower.take(0.3, 0.5, 0.4, 0), follower.take(0.8, 1.0, 0.9, 0)
    (1, 2)
    >>> follower.correct(2, 0.8, 1.0, 0.9, 1)
    >>> collector = follower.collector()
    >>> collector.rounds, round(collector.buckets("raw").brier(), 6)
    (2, 0.065)
    """

    kind: ClassVar = "follower"
    version: ClassVar = 2
    migrations: ClassVar[dict[int, Migration]] = {1: lambda document: _migrated(document)}

    __slots__ = (
        "_cells", "_gate", "_logs", "_new", "_ordered", "_recent", "_summed", "_waits", "_words",
    )  # fmt: skip

    def __init__(self, values: ArrayLike | Any, *, allowed: float | None = None) -> None:
        if not hasattr(values, "calibrator"):
            values = Collector(values).values
        else:
            from calibrant.summary.kind import collector_for

            if allowed is None and hasattr(values.calibrator, "resolution"):
                allowed = 0.5 / float(values.calibrator.resolution)
            values = collector_for(values).values
        if allowed is None:
            allowed = half_step(np.asarray(values))
        self._adopt(tallies.flat(np.asarray(values)))
        self._recent = Recent(check.real(allowed, "allowed", low=0.0, high=1.0, rule="in [0, 1]"))

    def _adopt(self, words: Words) -> None:
        cells = int(words[tallies.CELLS])
        values = words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells]
        self._words, self._summed = words, int(words[tallies.ROUNDS])
        self._cells: dict[float, int] = {value: k for k, value in enumerate(values.tolist())}
        self._new: list[tuple[float, int, float, int, float]] = []
        self._logs, self._ordered = [0, 0], True
        self._waits: Words = np.zeros(WAITS, np.int64)
        self._gate = HandyGate()

    # -------------------------------------------------------------------- rounds

    def take(
        self, raw: float, forecast: float, mean: float, outcome: int, waited: float = 0.0
    ) -> int:
        """Add a round whose outcome was just learned; return its number, counted from 1.

        Parameters
        ----------
        raw, forecast, mean
            What came in, what was drawn, and what was announced on average.
        outcome
            0 or 1.
        waited
            How late the outcome was, in any unit, such as seconds or forecasts made meanwhile.
        """
        cell = self._cells.get(forecast, -1) if type(forecast) is float else -1
        plain = type(raw) is float is type(mean) and (outcome == 0 or outcome == 1)
        if cell < 0 or not plain or not (0.0 <= raw <= 1.0 and 0.0 <= mean <= 1.0):
            raw, cell, mean, outcome = self._checked(raw, forecast, mean, outcome)
        if type(waited) is not float or not 0.0 <= waited < LONGEST:
            waited = check.real(waited, "waited", low=0.0, high=LONGEST, rule="0 or more")
        gate = self._gate
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        try:
            self._new.append((raw, cell, mean, outcome, waited))
            number = self._summed + len(self._new)
            if len(self._new) >= PIECE:
                self._flush()
        finally:
            token.append(None)
        return number

    def take_many(
        self,
        raw: Sequence[float],
        forecast: Sequence[float],
        mean: Sequence[float],
        outcome: Sequence[int],
        waited: Sequence[float],
    ) -> int:
        """Add rounds in their order, as :meth:`take` does one; return how many there are then."""
        check.same_length(raw=raw, forecast=forecast, mean=mean, outcome=outcome, waited=waited)
        cells = self._cells
        found = [cells.get(value, -1) if type(value) is float else -1 for value in forecast]
        rows = list(zip(raw, found, mean, outcome, waited, strict=True))
        for k, (x, cell, m, y, late) in enumerate(rows):
            plain = cell >= 0 and type(x) is float is type(m) and type(late) is float
            plain = plain and 0.0 <= x <= 1.0 and 0.0 <= m <= 1.0 and (y == 0 or y == 1)
            if not (plain and 0.0 <= late < LONGEST):
                late = check.real(late, "waited", low=0.0, high=LONGEST, rule="0 or more")
                rows[k] = *self._checked(x, forecast[k], m, y), late
        with self._gate:
            self._new += rows
            number = self._summed + len(self._new)
            if len(self._new) >= PIECE:
                self._flush()
            return number

    def settle(self, ticket: Ticket, waited: float = 0.0) -> int:
        """Add the round of a closed ticket; return its number, counted from 1."""
        raw, forecast, mean = _told(ticket)
        if ticket.outcome is None:
            raise InvalidInput(f"ticket must be closed, got {ticket!r}")
        return self.take(raw, forecast, mean, ticket.outcome, waited)

    def correct(self, number: int, raw: float, forecast: float, mean: float, outcome: int) -> None:
        """Correct the outcome of a round that was taken with the other one.

        Parameters
        ----------
        number
            What :meth:`take` returned: which round it was.
        raw, forecast, mean
            As they were then.
        outcome
            What the outcome was after all.
        """
        raw, cell, mean, outcome = self._checked(raw, forecast, mean, outcome)
        number = check.whole(number, "number", low=1)
        with self._gate:
            self._flush()
            told, _ = _rounds([(raw, cell, mean, outcome, 0.0)])
            if number > self._summed or not holds(self._words, told):
                raise InvalidInput(f"{ROUND} number {number}, raw forecast {raw!r}")
            words, logs = self._words.copy(), list(self._logs)
            swap(words, told, number, self._ordered)
            _add_logs(words, logs, told)
            _add_logs(words, logs, told._replace(outcome=1 - told.outcome), -1)
            self._words, self._logs = words, logs

    def merge(self, other: Follower) -> None:
        """Add all rounds of another follower with the same values.

        What has no order has no trace and no windows: the merged follower tells neither, and
        numbers the rounds that it takes from then on after all of both.
        """
        if not isinstance(other, Follower):
            raise InvalidType(f"other must be a Follower, got {other!r}")
        if other._cells != self._cells:
            told = f"{len(other._cells)} others than these {len(self._cells)}"
            raise InvalidInput(f"values must be the same to merge, got {told}")
        with other._gate:
            other._flush()
            words, logs, waits = other._words.copy(), list(other._logs), other._waits.copy()
            rounds = other._summed
        with self._gate:
            self._flush()
            words, rounds = summed(self._words, words), self._summed + rounds
            logs = [one + more for one, more in zip(self._logs, logs, strict=True)]
            waits, recent = self._waits + waits, Recent(self._recent.allowed)
            # No call between these: interrupted, all is merged or nothing.
            self._words, self._summed, self._logs, self._waits = words, rounds, logs, waits
            self._recent, self._ordered = recent, False

    def stamp(self, time: check.Time) -> None:
        """Say when the latest round was taken: that is told where the next window turns out bad.

        Only times of rounds that end a window, each 625th, are kept.
        """
        time = check.moment(time)
        with self._gate:
            if (self._summed + len(self._new)) % PIECE == 0:
                self._flush()
                self._recent = replace(self._recent)
                self._recent.stamp(time)

    def _checked(
        self, raw: Any, forecast: Any, mean: Any, outcome: Any
    ) -> tuple[float, int, float, int]:
        value = check.probability(forecast, "forecast")
        cell = self._cells.get(value, -1)
        if cell < 0:
            if len(self._cells) <= tallies.FINE:
                raise InvalidInput(f"forecast must be a value of the grid, got {value!r}")
            # A budget may announce raw forecasts, which are any numbers: three digits will do.
            cell = self._cells[float(self._snapshot().nearest(np.array([value]))[0])]
        numbers = check.probability(raw), check.probability(mean, "mean")
        return numbers[0], cell, numbers[1], check.outcome(outcome)

    def _flush(self) -> None:
        """Add the rounds that wait to the sums."""
        if not self._new:
            return
        told, waited = _rounds(self._new)
        words, logs, recent = self._words.copy(), list(self._logs), replace(self._recent)
        absorb(words, told, self._ordered, recent.end)
        _add_logs(words, logs, told)
        waits = self._waits + np.bincount(np.frexp(np.floor(waited))[1], minlength=WAITS)
        rounds = self._summed + len(self._new)
        # No call between these.
        self._words, self._logs, self._waits, self._recent = words, logs, waits, recent
        self._new, self._summed = [], rounds

    # ------------------------------------------------------------------ findings

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        with self._gate:
            return self._summed + len(self._new)

    @property
    def merged(self) -> bool:
        """Whether the rounds come from several followers, so that there is no trace."""
        return not self._ordered

    def collector(self) -> Collector:
        """Return all that was seen so far, for :func:`calibrant.summary.summarise_collected`."""
        with self._gate:
            self._flush()
            return self._snapshot()

    def _snapshot(self) -> Followed:
        return Followed.of(self._words.copy(), self._logs, self._ordered)

    def glance(self, **told: Any) -> Any:
        """Return the stream at a glance: see :func:`calibrant.summary.glance`."""
        from calibrant.summary.glance import glance

        return glance(self, **told)

    def sums(self) -> tuple[Words, Words, Recent | None]:
        """Return all sums, how many outcomes waited less than 1, then below 2, 4, 8, and windows.

        None of them changes when the follower goes on.
        """
        with self._gate:
            self._flush()
            # What changes is written to copies.
            recent = self._recent if self._ordered and len(self._recent.times) else None
            return self._words, self._waits, recent

    # --------------------------------------------------------------------- state

    def __repr__(self) -> str:
        told = ", merged" if self.merged else ""
        return f"Follower(values={len(self._cells)}, rounds={self.rounds}{told})"

    def _document(self) -> Document:
        with self._gate:
            self._flush()
            logs = [part for total in self._logs for part in divmod(total, WORD)]
            arrays = {"words": self._words, "logs": np.array(logs, np.int64), "waits": self._waits}
            arrays["recent"] = self._recent.words()
            settings = {"ordered": self._ordered, "recent": self._recent.settings()}
            return Document(self.kind, settings, arrays, self.version)

    def _restore(self, document: Document) -> None:
        words, logs = document.arrays["words"], document.arrays["logs"].tolist()
        cells = int(words[tallies.CELLS]) if len(words) > tallies.CELLS else 0
        if not 0 < cells <= len(words) or len(words) != tallies.level_at(cells, tallies.LEVELS):
            raise CorruptState(f"state must be of a follower, got {len(words)} words")
        waits = document.arrays["waits"]
        if len(logs) != 4 or len(waits) != WAITS:
            raise CorruptState("state must be of a follower, got sums of other sizes")
        self._adopt(_sound(words.copy()))
        high, low, *mean = logs
        self._logs = [high * WORD + low, mean[0] * WORD + mean[1]]
        self._waits = waits.copy()
        self._ordered = bool(document.settings["ordered"])
        self._recent = Recent.of(document.settings["recent"], document.arrays["recent"])


def _told(ticket: Any) -> tuple[float, float, float]:
    """Return raw forecast, draw and mean of a ticket."""
    if not isinstance(ticket, Ticket):
        raise InvalidType(f"ticket must be a Ticket, got {ticket!r}")
    # A mean is a sum of products and may round to just above 1.
    return ticket.raw, ticket.value, min(max(ticket.mean, 0.0), 1.0)


def _rounds(rows: list[tuple[float, int, float, int, float]]) -> tuple[Rounds, Reals]:
    """Return rounds as arrays, and how long each waited."""
    numbers = np.fromiter(chain.from_iterable(rows), np.float64, 5 * len(rows))
    columns = np.ascontiguousarray(numbers.reshape(-1, 5).T)
    cell, outcome = columns[1:4:2].astype(np.int64)
    return Rounds(columns[0:3:2], cell, outcome), columns[4]


def _add_logs(words: Words, logs: list[int], told: Rounds, sign: int = 1) -> None:
    """Add the logarithms of rounds, or take them back."""
    units, clipped = surprise(told)
    for place, at in enumerate((tallies.RAW, tallies.MEAN)):
        logs[place] += sign * units[place]
        words[at + tallies.CLIPPED] += sign * clipped[place]


def _sound(words: Words) -> Words:
    """Return the words of a state, if rounds could have left them."""
    cells, rounds = int(words[tallies.CELLS]), int(words[tallies.ROUNDS])
    values = Collector(words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells]).values
    fresh = tallies.flat(values)
    fixed = slice(tallies.EDGES, tallies.TRACE), slice(tallies.FIRST, tallies.counts_at(cells))
    same = all((words[part] == fresh[part]).all() for part in fixed)
    counts: Any = words[tallies.counts_at(cells) : tallies.cross_at(cells)]
    filled, stride = int(words[tallies.FILLED]), int(words[tallies.STRIDE])
    groups = [words[tallies.level_at(cells, k) + tallies.GROUP] for k in range(tallies.LEVELS)]
    if not same or counts.sum() != rounds or (counts < 0).any():
        raise CorruptState("state must be of a follower, got sums that no rounds leave")
    if not 0 <= filled < tallies.POINTS or stride < 1 or min(groups) < 1:
        raise CorruptState("state must be of a follower, got a trace that no rounds leave")
    return words


def half_step(values: Reals) -> float:
    """Return half the largest distance of neighbours among values.

    >>> half_step(np.array([0.0, 0.25, 1.0]))
    0.375
    """
    return float(np.diff(values).max(initial=0.0)) / 2.0


def _migrated(document: Document) -> Document:
    """Return a state of version 1 with no windows to judge yet."""
    words = document.arrays["words"]
    cells = int(words[tallies.CELLS])
    step = half_step(words.view(np.float64)[tallies.VALUES : tallies.VALUES + cells])
    new = Recent(step, ended=int(words[tallies.ROUNDS]) // PIECE)
    settings = document.settings | {"recent": new.settings()}
    return Document(document.kind, settings, document.arrays | {"recent": new.words()}, 2)
