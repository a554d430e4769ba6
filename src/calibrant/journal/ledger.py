"""Events entered in order: looked up, applied, written in one transaction, and answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calibrant import errors
from calibrant.core import check
from calibrant.journal import events
from calibrant.journal.again import replay_all
from calibrant.journal.events import Asked, Event, Told
from calibrant.journal.fold import KEPT, Fold
from calibrant.journal.recover import Witnesses, begun, by_stream, recovered
from calibrant.journal.seen import Mark
from calibrant.journal.settings import Settings
from calibrant.journal.sql import Store
from calibrant.journal.store import Line, Named
from calibrant.recalibrate.keyed import checked_key

LONGEST: Final = 256
"""Bytes of an id at most."""
CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what else ends a line."""
KINDS: Final = (events.FORECAST, events.OUTCOME, events.CORRECTION, events.EXPIRY)


class Looked(NamedTuple):
    """What the store knows of some ids, and which ones it may know."""

    found: dict[Named, Event]
    maybe: set[Named]


class Ledger:
    """All streams of a store, as far as the log goes, and what is about to be written.

    One thread at a time may call :meth:`enter`; another may meanwhile :meth:`write` what was
    entered before.

    Attributes
    ----------
    folds, settings
        State and settings of each stream, by number.
    lines
        The streams by name, deleted ones among them.
    seen
        Which ids may be in the log.
    seq
        Place of the last event that was entered.
    tail
        Events behind the snapshots, which were played again when the ledger was made.
    """

    def __init__(self, store: Store, witnesses: Witnesses | None = None) -> None:
        self.store, self.code, self._witnesses = store, events.code_digest(), witnesses
        self._fresh, self._marks = dict[Named, Event](), dict[Named, Mark]()
        self._read_streams()
        found = recovered(store, store.streams(), witnesses)
        self.folds, self.seen, self.seq, self.tail = found

    def _read_streams(self) -> None:
        lines = self.store.streams()
        self.lines = {line.name: line for line in lines}
        self.settings = {line.number: Settings.from_json(line.settings) for line in lines}
        self._gone = {line.number for line in lines if line.gone is not None}

    def catch_up(self) -> None:
        """Take over what other processes have written since."""
        last = self.store.last()
        if last == self.seq:
            return
        for number, new in by_stream(self.store.tail(self.seq, last)).items():
            if number not in self.folds:
                self._meet(number)
            replay_all(self.folds[number], new, self.store.find)
            self.seen.add_all(event[1:4] for event in new)
        self.seq = last

    def _meet(self, number: int) -> None:
        """Take over a stream that another process has made."""
        self._read_streams()
        for line in self.lines.values():
            if line.number == number:
                self.folds[number] = begun(line, self._witnesses)

    def stream(self, name: str, *, gone: bool = False) -> Line:
        """Return a stream by its name."""
        if name not in self.lines:
            self._read_streams()
        line = self.lines.get(name)
        if line is None or (line.gone is not None and not gone):
            raise errors.UnknownName(f"stream must be one that is there, got {name!r}")
        if line.number not in self.folds:
            self.folds[line.number] = begun(line, self._witnesses)
        return line

    def put_stream(self, line: Line) -> None:
        """Add a stream, or change one, within a transaction of the store."""
        self.store.put_stream(line)
        self.lines[line.name] = line
        self.settings[line.number] = Settings.from_json(line.settings)
        (self._gone.discard if line.gone is None else self._gone.add)(line.number)
        if line.number not in self.folds:
            self.folds[line.number] = begun(line, self._witnesses)

    # ------------------------------------------------------------------ entering

    def enter(self, asked: Sequence[Asked]) -> tuple[list[Told], list[Event]]:
        """Apply requests in order; return what to tell, and what must be on disk before.

        A request that cannot be met is answered by itself, and leaves no trace.
        """
        asked = [named(one) for one in asked]
        looked, rows = self._looked_up(asked), list[Event]()
        told = []
        for one in asked:
            try:
                answer = self._entered(one, looked)
            except errors.CalibrantError as error:
                answer = Told("refused", None, error)
            else:
                if answer.status != events.REPEATED and answer.event is not None:
                    rows.append(answer.event)
            told.append(answer)
        return told, rows

    def write(self, rows: Sequence[Event]) -> None:
        """Put events on disk in one transaction of their own."""
        if rows:
            with self.store.writing():
                self.store.add_events(rows)
            self.settle(rows)

    def forget_fresh(self) -> None:
        """Look for everything in the store from now on."""
        self._fresh.clear()

    def settle(self, rows: Sequence[Event]) -> None:
        """Look for events in the store from now on: they are there."""
        for row in rows:
            self._fresh.pop(row[1:4], None)

    def _looked_up(self, asked: Sequence[Asked]) -> Looked:
        """Return what the store knows of the ids of some requests."""
        seen, fresh = self.seen, self._fresh
        self._marks = {name: seen.mark(name) for name in map(_name_of, asked)}
        maybe = {name for name, mark in self._marks.items() if seen.holds(mark)}
        wanted = [name for name in maybe if name not in fresh]
        return Looked(self.store.find(wanted) if wanted else {}, maybe)

    def find(self, stream: int, kind: int, id: str) -> Event | None:
        """Return an event by what it is about, or None."""
        name = stream, kind, id
        event = self._fresh.get(name)
        if event is None and name in self.seen:
            event = self.store.find([name]).get(name)
        return None if event is None else event.whole()

    def _before(self, name: Named, looked: Looked) -> Event | None:
        """Return an event that was looked up, or that is about to be written."""
        event = self._fresh.get(name) or looked.found.get(name)
        if event is None and name in looked.maybe:
            # Asked again: what was about to be written then may be on disk since.
            event = self.store.find([name]).get(name)
        return None if event is None else event.whole()

    def _entered(self, one: Asked, looked: Looked) -> Told:
        fold = self.folds.get(one.stream)
        if fold is None or one.stream in self._gone:
            # Also one that was deleted since the request began.
            raise errors.UnknownName(f"stream must be one that is there, got number {one.stream}")
        one = self._read(fold, as_kept(one))
        before = self._before(_name_of(one), looked)
        if before is not None:
            return self._repeated(one, before)
        if one.kind == events.FORECAST:
            return self._forecast(fold, one)
        if one.kind == events.OUTCOME:
            return self._outcome(fold, one)
        if one.kind == events.CORRECTION:
            return self._correction(fold, one)
        if one.kind == events.EXPIRY:
            self._forecast_of(fold, one)
            return self._apply(fold, one, events.DROPPED)
        return self._apply(fold, one._replace(early=True), events.TAKEN)

    def _read(self, fold: Fold, one: Asked) -> Asked:
        """Return what is asked as the stream has it: a checked outcome, a draw to be hidden."""
        settings = self.settings[one.stream]
        if one.kind == events.FORECAST:
            return one._replace(hidden=True) if settings.hides else one
        if one.kind in (events.OUTCOME, events.CORRECTION):
            outcome = self._read_outcome(fold, settings, one.x)
            was = None if one.was is None else self._read_outcome(fold, settings, one.was)
            return one if outcome is one.x and was is one.was else one._replace(x=outcome, was=was)
        return one

    @staticmethod
    def _read_outcome(fold: Fold, settings: Settings, told: Any) -> int:
        return fold.form.outcome(told if settings.labels is None else settings.number_of(told))

    def _repeated(self, one: Asked, before: Event) -> Told:
        """Return what was told before, if the same was asked."""
        now: tuple[Any, ...] = _number(one.x), one.time, events.key_text(one.key), one.groups
        groups = events.read_more(before.more).groups
        was: tuple[Any, ...] = before.raw, before.time, before.key, groups
        if one.kind != events.FORECAST:
            now, was = now[:1], was[:1]
        if now != was:
            if one.kind in (events.OUTCOME, events.CORRECTION):
                now, was = ((self.settings[one.stream].told(told[0]),) for told in (now, was))
            told = f"id {one.id!r} must be told as before, with {_said(was)}, got {_said(now)}"
            raise errors.Contradiction(told, stored=_values(was), told=_values(now))
        if one.was is not None:
            self._check_replaced(one)
        return Told(events.REPEATED, before)

    def _check_replaced(self, one: Asked) -> None:
        """Refuse a correction that is told again and says that it replaced something else."""
        outcome = self.find(one.stream, events.OUTCOME, one.id)
        if outcome is not None and outcome.x != one.was:
            told, stood = (self.settings[one.stream].told(x) for x in (one.was, int(outcome.x)))
            raise errors.Contradiction(
                f"id {one.id!r} must be told as before, with was={stood!r}, got was={told!r}",
                stored={"was": stood},
                told={"was": told},
            )

    def _forecast(self, fold: Fold, one: Asked) -> Told:
        most = self.settings[one.stream].most_open
        check_id(one.id)
        if one.id not in fold.early and self.find(one.stream, events.OUTCOME, one.id) is not None:
            # Of a ticket that came with a state which was handed over, or is gone by one.
            raise errors.Contradiction(f"id {one.id!r} must be new, got one whose outcome is known")
        if most is not None and fold.open >= most:
            raise errors.TooManyOpen(f"open forecasts must be at most {most}, got one more")
        return self._apply(fold, one, events.MADE)

    def _outcome(self, fold: Fold, one: Asked) -> Told:
        check_id(one.id)
        if fold.waits(one.id):
            return self._apply(fold, one, events.LEARNED)
        if self.find(one.stream, events.FORECAST, one.id) is not None:
            raise errors.ExpiredTicket(f"forecast {one.id!r} must be open, got one that expired")
        settings = self.settings[one.stream]
        if settings.unknown != "keep":
            raise errors.UnknownTicket(f"forecast must be one that was made here, got {one.id!r}")
        if len(fold.early) >= settings.most_early:
            most = f"outcomes without a forecast must be at most {settings.most_early}"
            raise errors.TooManyOpen(f"{most}, got one more")
        return self._apply(fold, one, events.EARLY)

    def _correction(self, fold: Fold, one: Asked) -> Told:
        forecast = self._forecast_of(fold, one, open=False)
        outcome = self.find(one.stream, events.OUTCOME, one.id)
        if outcome is None:
            raise errors.UnknownTicket(f"forecast {one.id!r} must have an outcome, got one without")
        if one.was is not None and outcome.x != one.was:
            stands, told = (self.settings[one.stream].told(x) for x in (int(outcome.x), one.was))
            raise errors.RepeatedTicket(
                f"was must be the outcome that stands, {stands!r}, got {told!r}"
            )
        if outcome.x == one.x:
            return Told(events.REPEATED, outcome)
        key, body = events.read_key(forecast.key), fold.past(forecast, int(outcome.x))
        told = one._replace(key=key, body=body, groups=events.read_more(forecast.more).groups)
        told = told._replace(since=max(forecast.seq, outcome.seq))
        return self._apply(fold, told, events.CORRECTED)

    def _forecast_of(self, fold: Fold, one: Asked, open: bool = True) -> Event:
        forecast = self.find(one.stream, events.FORECAST, one.id)
        if forecast is None:
            raise errors.UnknownTicket(f"forecast must be one that was made here, got {one.id!r}")
        if open and not fold.waits(one.id):
            if self.find(one.stream, events.OUTCOME, one.id) is not None:
                raise errors.Contradiction(
                    f"forecast {one.id!r} must be open, got one with an outcome"
                )
            raise errors.ExpiredTicket(f"forecast {one.id!r} must be open, got one that expired")
        return forecast

    def _apply(self, fold: Fold, one: Asked, status: str) -> Told:
        seq = self.seq + 1
        answer = fold.apply(one, seq)
        # What is no number is told by the text behind the code.
        plain = one.kind not in (events.EXPIRY, events.STATE) and not isinstance(one.x, list)
        said = events.key_text(one.key), float(one.x) if plain else 0.0, one.time, answer, self.code
        event = Event(seq, one.stream, one.kind, one.id, *said, one.more).sealed()
        self.seq = fold.seq = seq
        self._fresh[event[1:4]] = event
        self.seen.put(self._marks[event[1:4]])
        return Told(events.EARLY if answer == KEPT else status, event)

    # ------------------------------------------------------------------ looking

    def standing(self, stream: int, id: str) -> tuple[Event, str, int | None]:
        """Return a forecast by its id, what became of it, and the outcome that stands.

        So far as that is on disk: nobody is shown what a power cut may undo.
        """
        names = [(stream, kind, id) for kind in KINDS]
        # Before the store is asked: what is written meanwhile is found there.
        waits = self.folds[stream].waits(id) or any(name in self._fresh for name in names)
        found = self.store.find([name for name in names if name in self.seen])
        forecast = found.get((stream, events.FORECAST, id))
        if forecast is None:
            raise errors.UnknownTicket(f"forecast must be one that was made here, got {id!r}")
        stands = found.get((stream, events.CORRECTION, id)) or found.get(
            (stream, events.OUTCOME, id)
        )
        if stands is not None:
            told = "learned" if stands.whole().kind == events.OUTCOME else "corrected"
            return forecast.whole(), told, int(stands.x)
        return forecast.whole(), "open" if waits else "expired", None


def _name_of(one: Asked) -> Named:
    return one.stream, one.kind, one.id


def named(one: Asked) -> Asked:
    """Return what is asked under an id that is a string of no other type, if it is a string."""
    if type(one.id) is str or not isinstance(one.id, str):
        return one
    return one._replace(id=str.__str__(one.id))


def as_kept(one: Asked) -> Asked:
    """Return what is asked in numbers that a database keeps: of Python, and no zero with a sign."""
    x, key, time = _plain(one.x), one.key, one.time
    key = None if key is None else checked_key(key)
    time = None if time is None else check.moment(time) or 0.0
    if x is one.x and key is one.key and time is one.time:
        return one
    return one._replace(x=x, key=key, time=time)


def _plain(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_plain(part) for part in x]
    made = x.tolist() if hasattr(x, "tolist") else x
    return (made or 0.0) if type(made) is float else made


def check_id(id: object) -> str:
    """Return an id if it is one: up to 256 bytes of UTF-8 without control characters."""
    if not isinstance(id, str):
        raise errors.InvalidType(f"id must be a string that is not empty, got {id!r}")
    try:
        size = len(id.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= LONGEST or CONTROL.search(id):
        rule = f"id must be 1 to {LONGEST} bytes of UTF-8 without control characters"
        raise errors.InvalidInput(f"{rule}, got {id[:80]!r}")
    return str.__str__(id)


def _number(x: object) -> object:
    return float(x) if isinstance(x, (int, float)) else x


def _values(told: tuple[object, ...]) -> dict[str, object]:
    names = ("x", "time", "key", "groups")
    return {k: v for k, v in zip(names, told, strict=False) if v is not None and v != ()}


def _said(told: tuple[object, ...]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in _values(told).items())
