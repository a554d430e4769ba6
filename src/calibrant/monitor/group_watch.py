"""Many keys or groups under one watch, with one error rate for all of them.

::

    share of the n-th newcomer: 1 / ((k + 1) (k + 2) 2**k)  with 2**k <= n < 2**(k + 1)
    for each group of the round, its first `learning` rounds excepted:
        bet against the forecast, as a monitor does
        ring once its wealth is 1 / (alpha * share)

There are 2**k newcomers with the same k, so their shares add up to 1/(k + 1) - 1/(k + 2), and all
shares to 1, however many keys come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import Gate
from calibrant.core.stateful import Stateful
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, InvalidType, UnknownName
from calibrant.groups.certificate import rows_of
from calibrant.groups.names import Name, names_of
from calibrant.groups.spec import GroupTicket, names_again, text_of, text_words, written
from calibrant.monitor.monitor import SETTINGS, Monitor, between
from calibrant.monitor.watch import settled
from calibrant.recalibrate.keyed import KeyedTicket

KIND: Final = "group_watch"
Names: TypeAlias = tuple[Name, ...]


@dataclass(frozen=True)
class Alarm:
    """The alarm of one key.

    Attributes
    ----------
    key
        The group or key whose forecasts cannot be right.
    round
        After how many rounds of the watch the alarm rang.
    after
        After how many rounds of the key.
    since
        How many rounds of the key there were before its forecasts went wrong: an estimate.
    """

    key: Name
    round: int
    after: int
    since: int


@dataclass
class _Seat:
    """What is known of one key: its monitor, its number, its rounds, and when its alarm rang."""

    monitor: Monitor
    number: int
    rounds: int = 0
    rung: int = 0

    def follow(self, values: Reals, told: Bits, places: list[int], learning: int) -> None:
        """Add rounds of the key, which were at these places in the stream, counted from 1."""
        passed = min(max(learning - self.rounds, 0), len(values))
        self.monitor._follow(values[passed:], told[passed:])
        after = self.monitor.alarm_after
        if after is not None and not self.rung:
            self.rung = places[after - self.rounds - 1]
        self.rounds += len(values)

    def kept(self) -> tuple[Any, int, int]:
        """Return what rounds change, to be put back."""
        return self.monitor._kept(), self.rounds, self.rung

    def put_back(self, kept: Any, rounds: int, rung: int) -> None:
        """Be as before some rounds."""
        self.monitor._put_back(kept)
        self.rounds, self.rung = rounds, rung


class GroupWatch(Stateful):
    """Follow the forecasts of many groups or keys, and name those that cannot be right.

    Every key has a monitor of its own, which bets against the forecasts of that key.  The chance
    that *any* alarm *ever* rings for a key whose forecasts are right is at most alpha.

    Parameters
    ----------
    alpha
        The chance, at most, of a false alarm, over all keys and all time.
    keys
        Names that are known beforehand.  These have half of alpha in equal parts; all others share
        the other half, or all of alpha if none are known, in the order in which they appear.
    learning
        Rounds at the beginning of each key in which its forecasts are not judged, because
        the model is still learning there.
    max_keys
        More keys than this are refused.
    buckets, **options
        Settings of the monitors; see :class:`Monitor`.

    Notes
    -----
    The n-th key that was not known beforehand gets 1/((k+1)(k+2) 2**k) of what these share, with
    2**k the largest power of two up to n: the first a half, the next two a twelfth each, and so on.
    A key rings when its wealth is one over its part of alpha.  By Ville's inequality that
    happens to right forecasts with at most that probability, and the parts add up to alpha at the
    most.  Nothing is asked about how keys depend on one another: rounds may be in many groups.

    Which keys there are, and which rounds are theirs, may depend on everything known when
    the forecast is made, and on nothing later.  ``learning`` must be decided beforehand.

    Safe to call from several threads: every call holds the watch's gate.

    References
    ----------
    Vovk and Wang, "E-values: calibration, combination and applications" (2021).
    Foster and Stine, "Alpha-investing" (2008): shares for hypotheses without end.

    Examples
    --------
    >>> watch = GroupWatch(alpha=0.01)
    >>> for k in range(60):
    ...     watch.update("north", 0.5, k % 2)
    ...     watch.update(["south", "coast"], 0.9, k % 2)
    >>> watch.alarms[0]
    Alarm(key='south', round=42, after=21, since=0)
    >>> watch
    GroupWatch(alpha=0.01, keys=3, rounds=120, alarms: 'south', 'coast')
    """

    kind: ClassVar = KIND

    __slots__ = ("_declared", "_gate", "_newcomers", "_rounds", "_seats", "_settings")

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        keys: Any = (),
        learning: int = 0,
        max_keys: int = 10_000,
        buckets: int = 10,
        **options: Any,
    ) -> None:
        self._settings: dict[str, Any] = {
            **Monitor(alpha, buckets=buckets, **options)._settings,
            "alpha": between(alpha, "alpha", 1e-60, 0.5),
            "learning": check.whole(learning, "learning"),
            "max_keys": check.whole(max_keys, "max_keys", low=1),
        }
        self._declared = tuple(dict.fromkeys(_one_name(name) for name in keys))
        self._rounds = self._newcomers = 0
        self._seats: dict[Name, _Seat] = {}
        self._gate = Gate()
        self._enter(self._declared)

    # ------------------------------------------------------------------ rounds

    def update(self, key: Any, forecast: float, outcome: int) -> None:
        """Add one round of a key, in the order in which the forecasts were made.

        A round may be in several groups: then ``key`` is what
        :meth:`calibrant.groups.GroupRecalibrator.forecast` takes for ``groups``.
        """
        names = names_of(key, self._declared)
        value, told = check.probability(forecast, "forecast"), check.outcome(outcome)
        with self._gate:
            self._follow([names], np.array([value]), np.array([told], np.uint8))

    def update_many(self, keys: Any, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds in order; exactly the same as one :meth:`update` for each."""
        values, told = check.probabilities(forecasts, "forecasts"), check.outcomes(outcomes)
        check.same_length(forecasts=values, outcomes=told)
        rows = rows_of(keys, len(values), self._declared)
        with self._gate:
            self._follow(rows, values, told)

    def settle(self, ticket: Ticket, key: Any = None) -> None:
        """Add the round of a closed ticket, with its mean forecast.

        Parameters
        ----------
        ticket
            Of a :class:`calibrant.groups.GroupRecalibrator`, a :class:`calibrant.Table`, or of
            any recalibrator if the key is given.
        key
            The key or the groups of the round, in place of those that the ticket names.
        """
        _, mean, outcome = settled(ticket)
        if key is None:
            key = _key_of(ticket)
        self.update(key, mean, outcome)

    def _follow(self, rows: list[Names], values: Reals, told: Bits) -> None:
        places: dict[Name, list[int]] = {}
        for place, names in enumerate(rows):
            for name in names:
                places.setdefault(name, []).append(place)
        entered, total = self._newcomers, self._rounds + len(rows)
        kept = {name: seat.kept() for name in places if (seat := self._seats.get(name))}
        try:
            self._enter(places)
            for name, at in places.items():
                counted = [self._rounds + place + 1 for place in at]
                self._seats[name].follow(values[at], told[at], counted, self._settings["learning"])
            self._rounds = total
        except BaseException:
            self._newcomers = entered
            for name in places:
                if name in kept:
                    self._seats[name].put_back(*kept[name])
                else:
                    self._seats.pop(name, None)
            raise

    def _enter(self, names: Iterable[Name]) -> None:
        """Seat the keys that are new, all or none of them."""
        new = [name for name in names if name not in self._seats]
        if len(self._seats) + len(new) > self._settings["max_keys"]:
            most = self._settings["max_keys"]
            raise InvalidInput(f"keys must be at most {most}, got another, {new[-1]!r}")
        for name in new:
            self._seats[name] = self._seated(self._number(name), 0)

    def _number(self, name: Name) -> int:
        """Return the number of a new key: 0 if it was known beforehand, else the next."""
        if name in self._declared and name not in self._seats:
            return 0
        self._newcomers += 1
        return self._newcomers

    def _seated(self, number: int, rounds: int) -> _Seat:
        """Return the seat of a key that has that number from now on, after so many rounds."""
        options = {name: self._settings[name] for name in SETTINGS[1:]}
        monitor = Monitor(self._alpha_of(number), **options)
        monitor.skip(max(rounds, self._settings["learning"]))
        return _Seat(monitor, number, rounds)

    def _alpha_of(self, number: int) -> float:
        """Return the part of alpha that a key of that number has."""
        alpha: float = self._settings["alpha"]
        if not self._declared:
            return alpha * share(number)
        return 0.5 * alpha * (share(number) if number else 1.0 / len(self._declared))

    def restart(self, key: Any = None) -> None:
        """Forget the evidence about a key and begin anew, after its error was dealt with.

        The key becomes the next newcomer, so that the chance of any false alarm stays at most
        alpha, restarts included.  Without a key, all begin anew with the guarantee of a new watch.
        Rounds are counted on, and what is learned stays learned.
        """
        with self._gate:
            if key is None:
                self._restart_all()
            else:
                name, number = self._known(key), self._newcomers + 1
                seat = self._seated(number, self._seats[name].rounds)
                self._seats[name], self._newcomers = seat, number

    def _restart_all(self) -> None:
        before, entered = self._seats, self._newcomers
        try:
            self._seats, self._newcomers = {}, 0
            for name, seat in before.items():
                self._seats[name] = self._seated(self._number(name), seat.rounds)
        except BaseException:
            self._seats, self._newcomers = before, entered
            raise

    def _known(self, key: Any) -> Name:
        name = _one_name(key)
        if name not in self._seats:
            raise UnknownName(f"key must be one of the {len(self._seats)} watched, got {key!r}")
        return name

    # ---------------------------------------------------------------- findings

    @property
    def alpha(self) -> float:
        """The chance of a false alarm, at most, over all keys and all time."""
        return float(self._settings["alpha"])

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        with self._gate:
            return self._rounds

    @property
    def keys(self) -> Names:
        """The keys so far, those that were known beforehand first."""
        with self._gate:
            return tuple(self._seats)

    @property
    def alarm(self) -> bool:
        """Whether any alarm has rung."""
        return bool(self.alarms)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that have rung, in the order in which they did."""
        with self._gate:
            return tuple(self._alarms())

    def _alarms(self) -> Iterator[Alarm]:
        rung = [(seat.rung, name) for name, seat in self._seats.items() if seat.rung]
        for place, name in sorted(rung, key=lambda pair: pair[0]):
            monitor = self._seats[name].monitor
            yield Alarm(name, place, monitor.alarm_after or 0, monitor.since or 0)

    def __len__(self) -> int:
        return len(self._seats)

    def __contains__(self, key: object) -> bool:
        return key in self._seats

    def __getitem__(self, key: Any) -> Monitor:
        """Return a copy of the monitor of a key, whose alpha is the key's part."""
        with self._gate:
            return self._seats[self._known(key)].monitor.copy()

    # ------------------------------------------------------------------- state

    def __repr__(self) -> str:
        with self._gate:
            rung = ", ".join(repr(alarm.key) for alarm in self._alarms())
            told = f"alpha={self._settings['alpha']:g}, keys={len(self._seats)}"
            state = f"alarms: {rung}" if rung else "no alarm"
            return f"GroupWatch({told}, rounds={self._rounds}, {state})"

    def _document(self) -> Document:
        with self._gate:
            seats = self._seats.values()
            parts = [seat.monitor._document() for seat in seats]
            names = text_words([written(name) for name in self._seats])
            counts = [self._rounds, self._newcomers]
            for seat, part in zip(seats, parts, strict=True):
                own = part.settings["rounds"], part.settings["before"]
                counts += [seat.number, seat.rounds, seat.rung, *own]
        chains = [part.arrays["chains"] for part in parts]
        arrays = {
            "chains": np.concatenate([np.empty(0, np.int64), *chains]),
            "counts": np.array(counts, np.int64),
            "names": names,
        }
        declared = [written(name) for name in self._declared]
        return Document(KIND, {**self._settings, "keys": declared}, arrays)

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        options = {name: s[name] for name in (*SETTINGS[1:], "learning", "max_keys")}
        GroupWatch.__init__(self, s["alpha"], keys=_names_again(s["keys"]), **options)
        self._seats = {}
        names, (total, newcomers, *counts) = text_of(arrays["names"]), arrays["counts"].tolist()
        check.whole(len(names), "keys", high=self._settings["max_keys"])
        self._rounds = check.whole(total, "rounds")
        self._newcomers = check.whole(newcomers, "newcomers")
        rows = np.array(counts, np.int64).reshape(len(names), 5).tolist()
        chains = np.array_split(arrays["chains"], max(len(names), 1))[: len(names)]
        for name, row, chain in zip(_names_again(names), rows, chains, strict=True):
            self._seats[name] = self._reseated(name, row, chain)
        _check_seats(self._seats, self._declared, len(names))

    def _reseated(self, name: Name, row: list[int], chain: Words) -> _Seat:
        """Return the seat of a key as it was stored."""
        number, rounds, rung, played, before = row
        known = name in self._declared
        check.whole(number, "number", low=0 if known else 1, high=self._newcomers)
        seat = self._seated(number, check.whole(rounds, "rounds", high=self._rounds))
        counts = {"rounds": played, "before": before}
        document = seat.monitor._document()
        settings, version = {**document.settings, **counts}, document.version
        seat.monitor = Monitor._from_document(
            Document(document.kind, settings, {"chains": chain}, version)
        )
        seat.rung = check.whole(rung, "rung", high=self._rounds)
        if played != max(rounds, self._settings["learning"]):
            raise ValueError("a key with other rounds than its monitor")
        if (rung > 0) != seat.monitor.alarm:
            raise ValueError("a key with another alarm than its monitor")
        return seat


def share(number: int) -> float:
    """Return the part of alpha that the newcomer of that number gets; the parts add up to 1.

    >>> [round(1 / share(number)) for number in (1, 2, 3, 4, 7, 8, 1000)]
    [2, 12, 12, 48, 48, 160, 56320]
    """
    k = number.bit_length() - 1
    return 1.0 / ((k + 1) * (k + 2) << k)


def _check_seats(seats: dict[Name, _Seat], declared: Names, stored: int) -> None:
    """Refuse seats that no rounds leave."""
    numbers = [seat.number for seat in seats.values() if seat.number]
    if len(set(numbers)) < len(numbers) or len(seats) < stored:
        raise ValueError("keys that share a number or a name")
    if not set(declared) <= set(seats):
        raise ValueError("no seat for a key that was known beforehand")


def _one_name(key: Any) -> Name:
    """Return a lone key."""
    names = names_of(key)
    if len(names) != 1:
        raise InvalidInput(f"key must be one name, got {key!r}")
    return names[0]


def _names_again(parts: Any) -> Names:
    return tuple(names_again([part])[0] for part in parts)


def _key_of(ticket: Ticket) -> Any:
    """Return the groups or the key that a ticket names."""
    if isinstance(ticket, GroupTicket):
        return ticket.groups
    if isinstance(ticket, KeyedTicket):
        return ticket.key
    raise InvalidType(f"key must be given with a ticket that names none, got {ticket!r}")
