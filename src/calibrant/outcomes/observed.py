"""Outcomes that are seen only for some forecasts, with a known probability."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Self

from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.ticket import Ticket
from calibrant.errors import CorruptState, InvalidType
from calibrant.kernels.coin import coin
from calibrant.outcomes.forecaster import Forecaster
from calibrant.recalibrate.secret import block_key, secret_of

KIND: Final = "observed only"
DOMAIN: Final = 0x0B5E
"""A number that tells the coins here from those of a recalibrator with the same seed."""


class ObservedOnly:
    """Undo a known bias in which outcomes are seen, by dropping some of them at random.

    A round whose outcome was going to be seen with probability ``q`` is learned with
    probability ``floor / q``.  Then every round is learned with probability ``floor``,
    whatever its forecast was: the rounds that are learned are a fair selection of all.
    Weights 1/q would have the same mean; whole-number counts have no room for them.

    Parameters
    ----------
    recalibrator
        Anything with the ``forecast`` and ``observe`` of
        :class:`~calibrant.recalibrate.Recalibrator`.
    floor
        The smallest probability with which an outcome is seen.
    seed, key
        What the dropping depends on besides the ticket's number; as in ``Recalibrator``.

    Notes
    -----
    Exact if ``q`` is the true probability of seeing the outcome given everything that was
    known when that was decided, and the decision did not depend on the outcome.
    Nothing can be learned about forecasts whose outcome is never seen: ``q`` must be at
    least ``floor`` everywhere.  About ``floor`` times the rounds are learned, so bounds hold
    with that many.  Tickets that are dropped or never seen stay open until they expire.

    References
    ----------
    Horvitz and Thompson, J. Am. Stat. Assoc. 47 (1952): weights by 1/q.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> rec = Recalibrator(seed=1)
    >>> seen = ObservedOnly(rec, floor=0.1, seed=2)
    >>> for k in range(1000):
    ...     ticket = seen.forecast(0.8)
    ...     _ = seen.observe(ticket, 1, probability=0.5)
    >>> seen.observed, seen.learned == rec.rounds, 150 < seen.learned < 250
    (1000, True, True)
    """

    treatment: Final = "thinned to one probability"

    __slots__ = ("_key", "_recalibrator", "floor", "learned", "observed")

    def __init__(
        self,
        recalibrator: Forecaster,
        floor: float,
        *,
        seed: int | None = None,
        key: str | int | None = None,
    ) -> None:
        self.floor = check.real(floor, "floor", low=1e-9, high=1.0, rule="a number from 1e-9 to 1")
        self._recalibrator = recalibrator
        self._key = block_key(_own(secret_of(seed, key)), DOMAIN)
        self.observed = self.learned = 0

    @property
    def recalibrator(self) -> Forecaster:
        """The recalibrator that makes the forecasts."""
        return self._recalibrator

    def forecast(self, raw: float, *, id: str | None = None, time: float | None = None) -> Ticket:
        """Announce a forecast."""
        return self._recalibrator.forecast(raw, id=id, time=time)

    def observe(
        self, ticket: Ticket, outcome: int, *, probability: float, time: float | None = None
    ) -> Ticket | None:
        """Report an outcome that was seen, and how likely it was to be seen.

        Returns the ticket if its outcome was learned, or None if it was dropped.  The ticket
        itself is needed: the coin depends on its number.
        """
        told = check.outcome(outcome)
        chance = self._checked_chance(probability)
        if not isinstance(ticket, Ticket):
            raise InvalidType(f"ticket must be a Ticket, got {ticket!r}")
        done = None
        if coin(self._key, ticket.number) * chance < self.floor:
            done = self._recalibrator.observe(ticket, told, time=time)
            self.learned += 1
        self.observed += 1
        return done

    def to_bytes(self) -> bytes:
        """Return everything but the recalibrator's own state; treat it as secret."""
        settings = {
            "floor": self.floor.hex(),
            "key": self._key,
            "observed": self.observed,
            "learned": self.learned,
        }
        return Document(KIND, settings).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, recalibrator: Forecaster) -> Self:
        """Return what :meth:`to_bytes` stored, around a recalibrator stored at the same time."""
        s = Document.from_bytes(data, KIND).settings
        try:
            made = cls(recalibrator, float.fromhex(s["floor"]), seed=0)
            made._key = check.whole(s["key"], "key", high=(1 << 63) - 1)
            made.observed = check.whole(s["observed"], "observed")
            made.learned = check.whole(s["learned"], "learned", high=made.observed)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"state must be of {KIND!r}, got {error}") from error
        return made

    def __repr__(self) -> str:
        told = f"learned {self.learned} of {self.observed} observed"
        return f"ObservedOnly({self._recalibrator!r}, floor={self.floor:g}, {told})"

    def _checked_chance(self, probability: Any) -> float:
        rule = f"a number from {self.floor:g}, the floor, to 1"
        return check.real(probability, "probability", low=self.floor, high=1.0, rule=rule)


def _own(secret: bytes) -> bytes:
    return hashlib.blake2b(secret, digest_size=16, person=b"observed only").digest()
