"""What is pending is unknown: what can be said before the horizon has passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.place import bucket
from calibrant.core.ticket import Ticket
from calibrant.metrics import binomial_band
from calibrant.outcomes.wait import Around, Forecaster, WaitForHorizon, Waiting


@dataclass(frozen=True)
class RateBounds:
    """What is known of the frequency of ones among some forecasts.

    Attributes
    ----------
    rounds
        Forecasts made, settled or not.
    ones, zeros, pending
        Outcomes known to be 1; known to be 0; not known.
    low, high
        Limits for the frequency of ones, whatever the pending outcomes will be: the frequency
        if all of those are 0, and if all are 1.
    surely_above, surely_below
        Limits for the chance behind the outcomes at the stated confidence: the lower
        limit of ``low`` and the upper limit of ``high`` (Clopper and Pearson).
    """

    rounds: int
    ones: int
    zeros: int
    pending: int
    low: float
    high: float
    surely_above: float
    surely_below: float

    def __contains__(self, forecast: float) -> bool:
        """Say whether a forecast agrees with what is known, chance included.

        >>> 0.4 in RateBounds(4, 1, 1, 2, 0.25, 0.75, 0.01, 0.99)
        True
        """
        return self.surely_above <= forecast <= self.surely_below


class PendingUnknown(Around):
    """Count a pending outcome as unknown, neither 0 nor absent, and say what that leaves open.

    The recalibrator learns as in :class:`WaitForHorizon`: early ones do not reach it early.
    What they say is given separately, as bounds on the frequency in each bucket of raw
    forecasts: ones push the lower bound up as soon as they are known, zeros pull the
    upper bound down once their horizon has passed.

    Parameters
    ----------
    recalibrator, horizon
        As in :class:`WaitForHorizon`.
    buckets
        Number of intervals of raw forecasts for which bounds are kept.
    confidence
        With which ``surely_above`` and ``surely_below`` hold, at one moment and in one
        bucket, if the outcomes of the bucket are independent and of one chance.

    Notes
    -----
    ``low`` and ``high`` assume nothing, not even that the pending resemble the settled, and
    so cannot be made narrower without an assumption (Manski, *Partial Identification of
    Probability Distributions*, 2003).

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> pending = PendingUnknown(Recalibrator(seed=1), horizon=10.0, buckets=1)
    >>> tickets = [pending.forecast(0.3, time=float(day)) for day in range(4)]
    >>> _ = pending.observe(tickets[0], 1, time=3.5)
    >>> found = pending.bounds(0.3)
    >>> found.low, found.high, found.pending
    (0.25, 1.0, 3)
    >>> _ = pending.advance(11.5)
    >>> pending.bounds(0.3).high
    0.75
    """

    kind = "pending unknown"
    treatment: Final = "pending is unknown"

    __slots__ = ("_counts", "_wait", "buckets", "confidence")

    def __init__(
        self,
        recalibrator: Forecaster,
        horizon: float,
        *,
        buckets: int = 20,
        confidence: float = 0.95,
    ) -> None:
        self._put_around(recalibrator)
        self._begin(buckets, confidence)
        self._wait = WaitForHorizon(recalibrator, horizon)

    def _begin(self, buckets: int, confidence: float) -> None:
        self.buckets = check.whole(buckets, "buckets", low=1, high=1 << 20)
        binomial_band([0], [0], confidence=confidence)
        self.confidence = float(confidence)
        self._counts = np.zeros((self.buckets, 3), np.int64)

    @property
    def waiting(self) -> int:
        """Forecasts whose horizon has not passed."""
        return self._wait.waiting

    def forecast(self, raw: float, *, time: check.Time, id: str | None = None) -> Ticket:
        """Announce a forecast; what is due by then is learned first."""
        with self._gate:
            value, _ = self._wait._checked(raw, time, id)
            self._advance(time)
            place, waiting = bucket(value, self.buckets), self.waiting
            try:
                ticket = self._wait.forecast(raw, time=time, id=id)
            except BaseException:
                if self.waiting > waiting:
                    self._counts[place, 0] += 1
                raise
            self._counts[place, 0] += 1
        return ticket

    def observe(self, ticket: Ticket | int | str, outcome: int, time: check.Time) -> Ticket | None:
        """Note what became known of an open ticket; the bounds show it at once.

        Returns what :meth:`WaitForHorizon.observe` does.
        """
        with self._gate:
            (name, before), entries = self._wait.find(ticket), self._wait._entries
            place = bucket(before.raw, self.buckets)
            try:
                found = self._wait.observe(ticket, outcome, time)
            except BaseException:
                if entries[name].outcome is not before.outcome:
                    self._counts[place, 1 if entries[name].outcome else 2] += 1
                raise
            self._counts[place, 1 if entries[name].outcome else 2] += 1
        return found

    def advance(self, time: check.Time) -> list[Ticket]:
        """Let time pass; learn all outcomes whose horizon has, and return their tickets."""
        with self._gate:
            return self._advance(time)

    def _advance(self, time: check.Time) -> list[Ticket]:
        when = check.moment(time)
        due = {name: self._wait.find(name)[1] for name in self._wait.due(when)}
        try:
            settled = self._wait.advance(when)
            self._count(due)
        except BaseException:
            # The rest of what was settled before the interrupt.
            self._count(due)
            raise
        return settled

    def _count(self, due: dict[int | str, Waiting]) -> None:
        """Count what is settled as known, and forget that it was due."""
        for name in [*due]:
            place, known = bucket(due[name].raw, self.buckets), due[name].outcome is not None
            if name not in self._wait._entries:
                # No call between these.
                self._counts[place, 2] += not known
                del due[name]

    def bounds(self, raw: float | None = None) -> RateBounds:
        """Return what is known of the bucket of ``raw``, or of all forecasts."""
        which = slice(None) if raw is None else [bucket(check.probability(raw), self.buckets)]
        with self._gate:
            counts = self._counts[which].sum(axis=0)
        rounds, ones, zeros = map(int, counts)
        low, high = (ones / rounds, (rounds - zeros) / rounds) if rounds else (0.0, 1.0)
        ends = [ones, rounds - zeros], [rounds, rounds]
        above, below = binomial_band(*ends, confidence=self.confidence)
        told = rounds, ones, zeros, rounds - ones - zeros
        return RateBounds(*told, low, high, float(above[0]), float(below[1]))

    def _written(self) -> Document:
        settings = {"confidence": self.confidence.hex(), "wait": self._wait.to_bytes().hex()}
        counts = {"counts": self._counts.flatten()}
        return Document(self.kind, {"buckets": self.buckets, **settings}, counts)

    def _restore(self, document: Document) -> None:
        s = document.settings
        self._begin(s["buckets"], float.fromhex(s["confidence"]))
        self._wait = WaitForHorizon.from_bytes(bytes.fromhex(s["wait"]), self._recalibrator)
        self._counts = document.arrays["counts"].reshape(self.buckets, 3).copy()

    def __repr__(self) -> str:
        told = f"horizon={self._wait.horizon:g}, buckets={self.buckets}, {self.waiting} wait"
        return f"PendingUnknown({self.recalibrator!r}, {told})"
