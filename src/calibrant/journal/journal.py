"""A durable table in one file."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from calibrant.classes import ClassCalibrant, ClassTicket
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, InvalidType, TicketError, UnknownName, UnknownTicket
from calibrant.groups import GroupRecalibrator, Period
from calibrant.groups.names import names_of
from calibrant.journal import events
from calibrant.journal.events import Asked, Event, Group, Told
from calibrant.journal.fold import Fold
from calibrant.journal.forms import AnyTicket, Keyed, form_of, form_type
from calibrant.journal.ledger import Ledger, check_id
from calibrant.journal.recover import take_snapshots, verified
from calibrant.journal.settings import Settings
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.store import Line
from calibrant.journal.vault import Vault
from calibrant.recalibrate import Recalibrator, Table
from calibrant.recalibrate.keyed import Key, check_pattern, checked_key
from calibrant.recalibrate.keyed_record import Certificates
from calibrant.recalibrate.preview import Preview
from calibrant.recalibrate.promise import FAILURE

EVERY: Final = 20_000
"""After this many events of its own a journal writes snapshots."""
LAST: Final = (1 << 63) - 1

REFUSED: Final = (UnknownName, InvalidInput, InvalidType, TicketError)
"""Errors of questions that change nothing."""

Done = TypeVar("Done")

_inherited: list[SqliteStore] = []
"""Stores of processes from which this one was forked: theirs to close."""


class Journal:
    """A table whose calls are on disk before they are answered, in one file.

    Several processes and threads of one machine may use the same file.  An id is known for ever:
    to tell the same again returns the same answer, to tell something else raises
    :class:`calibrant.errors.Contradiction`.

    Parameters
    ----------
    path
        The file; made if it is not there.
    pattern
        What each key begins as: a recalibrator without a forecast.  Needed for a new stream;
        if given for one that is there, it must be the same.  Without keys, one with groups or
        with classes will do as well.
    stream
        Which stream of the file.
    keyed
        Whether forecasts name a key; without keys the stream is the pattern itself, with its
        coins.
    seed
        What the draws of a new keyed stream depend on, with the keys; None takes secret
        entropy from the system.
    unknown, most_open
        What becomes of outcomes without a forecast, ``"refuse"`` or ``"keep"``, and how many
        forecasts may be open, for a new stream; as many outcomes are kept, 100,000 by default.
    keep
        For how many seconds the ids of a new stream are known at least, until ``calibrant
        purge`` forgets older ones; None for ever.
    secret_file
        A file with the key under which secrets are sealed in ``path``; made if it is not there.

    Notes
    -----
    The state is a fold of the log: whoever opens the file plays the events behind the last
    snapshot again, and compares each answer with the one in the log.  The file holds the secret
    that decides the draws; nobody who chooses outcomes may read it.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Journal, Recalibrator
    >>> place = tempfile.TemporaryDirectory()
    >>> file = f"{place.name}/streams.db"
    >>> with Journal(file, Recalibrator(resolution=10, buckets=10), seed=7) as journal:
    ...     first = journal.forecast("north", 0.83, id="order 1")
    >>> with Journal(file) as journal:
    ...     again = journal.forecast("north", 0.83, id="order 1")
    ...     closed = journal.observe("order 1", 1)
    >>> again.value == first.value, closed.outcome
    (True, 1)
    >>> place.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        pattern: Recalibrator | GroupRecalibrator | ClassCalibrant | None = None,
        *,
        stream: str = "main",
        keyed: bool = True,
        seed: int | None = None,
        unknown: str = "refuse",
        most_open: int | None = None,
        keep: float | None = None,
        secret_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self._path, self._name = Path(os.fspath(path)), stream
        self._turn, self._process = threading.RLock(), os.getpid()
        self._ledger: Ledger | None = None
        self._since, self._own, self._compiled = dict[int, int](), 0, False
        self._secret_file, self._vault = secret_file, Vault(secret_file)
        self._store = SqliteStore(self._path, vault=self._vault)
        try:
            self._line = self._opened(pattern, seed, Settings(keyed, unknown, most_open, keep=keep))
        except BaseException:
            self._store.close()
            raise

    def _opened(self, pattern: Any, seed: int | None, wanted: Settings) -> Line:
        """Return the stream, which is made if it is not there."""

        def opened(ledger: Ledger) -> Line:
            line = ledger.lines.get(self._name)
            if line is not None:
                return _same(ledger, line, pattern)
            if pattern is None:
                raise InvalidInput(f"pattern must be given for a new stream, got {pattern!r}")
            _check_new(pattern, wanted.keyed)
            model: Any = Table(pattern, seed=seed) if wanted.keyed else pattern
            number = 1 + max((line.number for line in ledger.lines.values()), default=0)
            line = Line(number, self._name, wanted.to_json(), model.to_bytes())
            ledger.put_stream(line)
            return line

        return self._within(opened)

    # ------------------------------------------------------------------ one by one

    def forecast(
        self,
        key: Key | None,
        raw: Any,
        *,
        id: str | None = None,
        time: check.When = None,
        groups: Any = None,
    ) -> Any:
        """Announce a calibrated forecast in a key's stream; return its ticket.

        Under an id that was told before, the same question gets the same answer.  ``raw`` is a
        number, or one for each class, ``groups`` the names of groups, where the stream has them.
        """
        name = secrets.token_hex(16) if id is None else check_id(id)
        key = None if key is None else checked_key(key)
        when = None if time is None else check.moment(time)
        return self._one(events.FORECAST, name, key, _raw(raw), when, _groups(groups))

    def observe(self, ticket: AnyTicket | str, outcome: int, time: check.When = None) -> Any:
        """Report the outcome of a forecast, given its ticket or its id; return its ticket.

        None if the outcome came before its forecast and is kept until then.
        """
        when = None if time is None else check.moment(time)
        return self._one(events.OUTCOME, _name(ticket), None, outcome, when)

    def correct(self, ticket: AnyTicket | str, outcome: int, *, was: int | None = None) -> Any:
        """Replace the outcome of a forecast, once; ``was``, if told, must be what stands."""
        return self._one(events.CORRECTION, _name(ticket), None, outcome, was=was)

    def expire(self, ticket: AnyTicket | str) -> Any:
        """Drop an open forecast whose outcome is known never to come; return its ticket."""
        return self._one(events.EXPIRY, _name(ticket), None, 0)

    def _one(
        self,
        kind: int,
        id: str,
        key: Key | None,
        x: Any,
        time: float | None = None,
        groups: tuple[Group, ...] = (),
        was: Any = None,
    ) -> Any:
        one = Asked(self._line.number, kind, id, key, x, time, groups=groups, was=was)
        return self._enter([one])[0]

    def coin_of(self, ticket: AnyTicket | str) -> Any:
        """Return the coin that decided a draw, given the ticket or its id, for audits."""
        name = _name(ticket)

        def asked(ledger: Ledger) -> Any:
            fold: Any = self._fold(ledger)
            if not isinstance(ticket, str):
                return fold.model.coin_of(ticket)
            forecast = ledger.find(self._line.number, events.FORECAST, name)
            if forecast is None:
                raise UnknownTicket(f"forecast must be one that was made here, got {name!r}")
            return fold.model.coin_of(fold.ticket(forecast))

        return self._within(asked)

    def compile(self) -> Self:
        """Let Numba compile the steps of one-by-one calls, as the stream's own ``compile`` does.

        So it stays while this object does: nothing of it is in the file.
        """
        self._within(lambda ledger: self._fold(ledger).model.compile())
        self._compiled = True
        return self

    # ------------------------------------------------------------------ batches

    def play(
        self, keys: Any, kind: Any, id: Any, x: Any, time: Any = None, groups: Any = None
    ) -> list[Any]:
        """Play a log of forecasts and outcomes in its order; return the ticket of each.

        Parameters
        ----------
        keys
            Whose forecast each row is; None for outcomes, and in a stream without keys.
        kind
            ``"forecast"`` (or 0) or ``"outcome"`` (or 1), for each event.
        id, x, time
            Name of each forecast, the raw forecast or the outcome, and when.
        groups
            Names of the groups of each forecast, in a stream with groups.

        Notes
        -----
        All is written in one transaction.  Events before the first that cannot be are kept,
        and the error of that one is raised; to play the same again does no harm.
        """
        values, stream = check.listed(x, "x"), self._line.number
        told = {"keys": keys, "kind": kind, "id": id, "time": time, "groups": groups}
        columns = {name: _listed(column, name, len(values)) for name, column in told.items()}
        check.same_length(x=values, **columns)
        asked = [
            Asked(stream, _kind(made), check_id(name), key, value, when, groups=_groups(told))
            for value, key, made, name, when, told in zip(values, *columns.values(), strict=True)
        ]
        return self._enter(asked)

    def _enter(self, asked: Sequence[Asked]) -> list[Any]:
        def entered(ledger: Ledger) -> tuple[list[Any], Told | None]:
            told, tickets = list[Event](), list[Any]()
            for one in asked:
                (answer,), rows = ledger.enter([one])
                told += rows
                if answer.event is None:
                    self._store.add_events(told)
                    return [], answer
                tickets.append(self._ticket(ledger, answer.event))
            self._store.add_events(told)
            self._own += len(told)
            return tickets, None

        tickets, failed = self._within(entered)
        if failed is not None:
            failed.result()
        return tickets

    def _ticket(self, ledger: Ledger, event: Event) -> Any:
        """Return the ticket that an event is about, with its outcome as it stands."""
        fold = ledger.folds[event.stream]
        if event.kind == events.FORECAST and event.id not in fold.early:
            known = ledger.find(event.stream, events.CORRECTION, event.id)
            known = known or ledger.find(event.stream, events.OUTCOME, event.id)
            return fold.ticket(event, None if known is None else int(known.x))
        forecast = ledger.find(event.stream, events.FORECAST, event.id)
        told = None if event.kind == events.EXPIRY else int(event.x)
        return None if forecast is None else fold.ticket(forecast, told)

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        """How many keys there are."""
        return self._within(lambda ledger: len(_table(self._fold(ledger))))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._within(lambda ledger: list(_table(self._fold(ledger)))))

    def __contains__(self, key: object) -> bool:
        return self._within(lambda ledger: key in _table(self._fold(ledger)))

    def __getitem__(self, key: Key) -> Recalibrator:
        """Return a lone copy of a key's stream, as it is now."""
        return self._within(lambda ledger: _table(self._fold(ledger))[key])

    def certificates(self, failure: float = FAILURE, *, together: bool = False) -> Certificates:
        """Return what :meth:`.Table.certificates` returns of the streams of all keys."""
        return self._within(
            lambda ledger: _table(self._fold(ledger)).certificates(failure, together=together)
        )

    def certificate(self, failure: float = FAILURE) -> Any:
        """Return what was measured and promised in a stream without keys."""
        found = self.state()
        if isinstance(found, Table):
            raise InvalidInput("certificate must be asked of a stream without keys")
        return found.certificate(failure)

    def preview(self, raw: Any) -> tuple[Reals, Reals]:
        """Return draws and means of raw forecasts, each as the very next round; nothing changes.

        In a binary stream without keys.  Each has a coin of its own, the first that of the next
        round.
        """

        def seen(ledger: Ledger) -> tuple[Reals, Reals]:
            model = self._fold(ledger).model
            if not isinstance(model, Recalibrator):
                told = "preview must be asked of a binary stream without keys"
                raise InvalidType(f"{told}, got {type(model).__name__}")
            return Preview(model).many(raw)

        return self._within(seen)

    def state(self) -> Any:
        """Return a copy of the whole stream as it is now."""
        return self._within(lambda ledger: self._fold(ledger).model.copy())

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return that many events of the stream behind a place."""
        place = check.whole(after, "after", high=LAST), check.whole(limit, "limit", high=LAST)
        return self._within(lambda _: self._store.events(self._line.number, *place))

    def tickets(self) -> tuple[list[Ticket], list[Ticket]]:
        """Return what the log holds: rounds in the order of learning, and forecasts that wait.

        A round's ticket has the outcome that stands.
        """
        return self._within(self._tickets)

    def _tickets(self, ledger: Ledger) -> tuple[list[Ticket], list[Ticket]]:
        fold, made, learned = self._fold(ledger), dict[str, Event](), dict[str, tuple[int, int]]()
        for event in self._all_events():
            if event.kind == events.FORECAST:
                made[event.id] = event
            elif event.kind == events.OUTCOME:
                learned[event.id] = event.seq, int(event.x)
            elif event.kind == events.CORRECTION:
                learned[event.id] = learned[event.id][0], int(event.x)
        # An outcome that came first was learned with its forecast.
        order = {id: max(made[id].seq, learned[id][0]) for id in learned if id in made}
        closed = [
            fold.ticket(made[id], learned[id][1]) for id in sorted(order, key=order.__getitem__)
        ]
        return closed, [fold.ticket(one) for one in made.values() if fold.waits(one.id)]

    def _all_events(self) -> Iterator[Event]:
        after = 0
        while part := self._store.events(self._line.number, after, EVERY):
            yield from part
            after = part[-1].seq

    def verify(self) -> int:
        """Play the whole log again from its beginning; return how many events there were.

        Raises :class:`calibrant.errors.DamagedLog` if any answer differs.
        """
        return self._within(lambda _: verified(self._store))

    def _fold(self, ledger: Ledger) -> Fold:
        return ledger.folds[self._line.number]

    # ------------------------------------------------------------------ turns

    def _within(self, work: Callable[[Ledger], Done]) -> Done:
        """Do something at this process's turn, with the log as it stands then."""
        with self._turn:
            self._after_fork()
            known, self._ledger = self._ledger, None
            ledger, done = self._store.write(lambda: self._done(work, known))
            ledger.forget_fresh()
            # Only now: what was applied before an error may not be on disk.
            self._ledger = ledger
            return done

    def _done(self, work: Callable[[Ledger], Done], known: Ledger | None) -> tuple[Ledger, Done]:
        """Do something with the log as it stands, and return the ledger that did."""
        ledger = Ledger(self._store) if known is None else known
        ledger.catch_up()
        if known is None and self._compiled:
            self._fold(ledger).model.compile()
        before = ledger.seq
        try:
            done = work(ledger)
        except REFUSED:
            self._ledger = ledger if ledger.seq == before else None
            raise
        if self._own and self._own + ledger.tail >= EVERY:
            take_snapshots(self._store, ledger, self._since)
            self._own = ledger.tail = 0
        return ledger, done

    def _after_fork(self) -> None:
        """Open the file again in a forked process: connections and coins are not inherited."""
        if self._process != os.getpid():
            _inherited.append(self._store)
            self._ledger, self._process = None, os.getpid()
            self._turn, self._store = threading.RLock(), SqliteStore(self._path, vault=self._vault)

    def close(self) -> None:
        """Let go of the file; snapshots are written first, so that it opens soon again."""
        with self._turn:
            if self._process != os.getpid():
                return
            if self._ledger is not None and self._own:
                self._own = EVERY
                self._within(lambda ledger: None)
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # What happened lies in the file: what is loaded elsewhere opens it there.
        return {"path": self._path, "stream": self._name, "secret_file": self._secret_file}

    def __setstate__(self, given: dict[str, Any]) -> None:
        self.__init__(**given)  # type: ignore[misc]

    def __deepcopy__(self, memo: object) -> Self:
        # Whoever copies a model with its journal wants the same stream: there are no two of it.
        return self

    def __repr__(self) -> str:
        return f"Journal({os.fspath(self._path)!r}, stream={self._name!r})"


def _same(ledger: Ledger, line: Line, pattern: Any) -> Line:
    """Return a stream that is there, if it is what was asked for."""
    if pattern is not None and not ledger.folds[line.number].form.made_of(pattern):
        raise InvalidInput(f"pattern must be that of the stream, got {pattern!r}")
    return ledger.stream(line.name)


def _check_new(pattern: Any, keyed: bool) -> None:
    if form_type(pattern) in (None, Keyed) or pattern.issued:
        raise InvalidInput(f"pattern must be a recalibrator without a forecast, got {pattern!r}")
    if isinstance(pattern, Recalibrator):
        check_pattern(pattern)
    form_of(pattern)
    if keyed and not isinstance(pattern, Recalibrator):
        raise InvalidInput("keyed must be False for streams with groups or classes, got True")


def _name(ticket: object) -> str:
    return check_id(ticket.id if isinstance(ticket, (Ticket, ClassTicket)) else ticket)


def _raw(raw: Any) -> Any:
    """Return a raw forecast: a probability, or a list of them, which its model checks."""
    raw = raw.tolist() if hasattr(raw, "tolist") else raw
    return list(raw) if isinstance(raw, (list, tuple)) else check.probability(raw)


def _groups(groups: Any) -> tuple[Group, ...]:
    """Return names of groups, each once."""
    names = names_of(groups)
    for name in names:
        if isinstance(name, Period):
            raise InvalidType(f"group must be a string or a whole number, got {name!r}")
    return names  # type: ignore[return-value]


def _table(fold: Fold) -> Table:
    if not isinstance(fold.model, Table):
        raise InvalidType("keys must be asked of a keyed stream, got one without keys")
    return fold.model


def _kind(kind: object) -> int:
    first, then = events.FORECAST, events.OUTCOME
    told: dict[str | int, int] = {"forecast": first, "outcome": then, 0: first, 1: then}
    found = told.get(kind) if isinstance(kind, (str, int)) else None
    if found is None:
        raise InvalidInput(f"kind must be 'forecast' (0) or 'outcome' (1), got {kind!r}")
    return int(found)


def _listed(column: Any, name: str, length: int) -> list[Any]:
    return [None] * length if column is None else check.listed(column, name)
