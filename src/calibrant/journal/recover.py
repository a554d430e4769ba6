"""Streams again from their log: a snapshot, and the events behind it."""

from __future__ import annotations

import gc
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from calibrant.errors import CorruptState, DamagedLog
from calibrant.journal.again import replay_all
from calibrant.journal.events import Event
from calibrant.journal.fold import PARTS, WITNESSED, Fold, Witness, parts_of
from calibrant.journal.forms import Model
from calibrant.journal.seen import Seen
from calibrant.journal.sql import Store
from calibrant.journal.store import Line, Moment, Snapshot

AT_ONCE: Final = 50_000
"""Events that are played together: enough for machine code to be worth it."""
FILTER: Final = -1
"""Under which number the filter of ids is among the snapshots."""
IDS: Final = "ids 1"

Witnesses = Callable[[Model, Line, bytes | None], Witness]
"""Returns who follows a stream: somebody new, or as stored."""


def begun(line: Line, witnesses: Witnesses | None = None) -> Fold:
    """Return a stream as it is before the first event that the log has of it."""
    fold = Fold.of(line)
    if witnesses is not None:
        fold.witness = witnesses(fold.model, line, None)
    return fold


def recovered(
    store: Store, lines: Sequence[Line], witnesses: Witnesses | None = None
) -> tuple[dict[int, Fold], Seen, int, int]:
    """Return every stream as its log makes it, the ids that were seen, and the last place.

    Each event behind the snapshots is played again, and its answer compared with that in the log;
    how many these are is told last.
    """
    found, last = store.snapshots(), store.last()
    folds, (seen, upto) = started(found, lines, witnesses), seen_of(found)
    after = min((fold.seq for fold in folds.values()), default=0)
    seen.add_all(store.names(upto, after))
    return folds, seen, last, play(store, folds, after, last, seen)


def started(
    snapshots: Sequence[Snapshot], lines: Sequence[Line], witnesses: Witnesses | None = None
) -> dict[int, Fold]:
    """Return every stream as its latest snapshot holds it, or as it is before its first event."""
    found = _held(snapshots, lines, witnesses)
    return {line.number: found.get(line.number) or begun(line, witnesses) for line in lines}


def _held(
    snapshots: Sequence[Snapshot], lines: Sequence[Line], witnesses: Witnesses | None
) -> dict[int, Fold]:
    """Return the streams that have a snapshot; a damaged one is passed over.

    So is, where streams are followed, one that was written while nobody did.
    """
    found, known = dict[int, Fold](), {line.number: line for line in lines}
    for snapshot in snapshots:
        line = known.get(snapshot.stream)
        if line is None or line.number in found:
            continue
        fold = _opened(snapshot)
        if fold is not None and witnesses is not None:
            fold = _followed(fold, snapshot, line, witnesses)
        if fold is not None:
            found[line.number] = fold
    return found


def seen_of(snapshots: Sequence[Snapshot]) -> tuple[Seen, int]:
    """Return the ids that were seen up to a place; none up to 0 where no filter is whole."""
    for snapshot in snapshots:
        if snapshot.stream == FILTER and snapshot.shape == IDS:
            with suppress(CorruptState):
                return Seen.from_body(snapshot.body), snapshot.seq
    return Seen(), 0


def _opened(snapshot: Snapshot) -> Fold | None:
    try:
        if snapshot.shape not in PARTS:
            return None
        return Fold.from_body(snapshot.body, snapshot.seq, snapshot.shape)
    except CorruptState:
        return None


def _followed(fold: Fold, snapshot: Snapshot, line: Line, witnesses: Witnesses) -> Fold | None:
    """Return a stream with who followed it, if the snapshot holds them."""
    if snapshot.shape != WITNESSED:
        return None
    try:
        told = parts_of(snapshot.body, snapshot.shape)[1]
        fold.witness = witnesses(fold.model, line, told)
    except CorruptState:
        return None
    return fold


def play(
    store: Store,
    folds: dict[int, Fold],
    after: int,
    upto: int,
    seen: Seen | None = None,
    *,
    strict: bool = True,
) -> int:
    """Play the events behind a place, many at a time; return how many there were.

    Events of streams that are not among those to be played are refused, or left out.
    """
    count, some, tail = 0, AT_ONCE, store.tail(after, upto)
    while some == AT_ONCE:
        with _undisturbed():
            some = _play_some(store, folds, list(itertools.islice(tail, AT_ONCE)), seen, strict)
        count += some
    return count


def _play_some(
    store: Store, folds: dict[int, Fold], events: list[Event], seen: Seen | None, strict: bool
) -> int:
    for number, some in by_stream(events).items():
        fold = folds.get(number)
        if fold is None and not strict:
            continue
        if fold is None:
            told = f"event {some[0].seq} must be of a stream"
            raise DamagedLog(f"{told}, got number {number}")
        replay_all(fold, some, store.find)
    if seen is not None:
        seen.add_all(event[1:4] for event in events)
    return len(events)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let nobody look for garbage among many events, none of which is: a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def by_stream(events: Iterable[Event]) -> dict[int, list[Event]]:
    """Return the events of each stream, in their order."""
    found = defaultdict[int, list[Event]](list)
    for event in events:
        found[event.stream].append(event.whole())
    return found


def verified(store: Store) -> int:
    """Play the whole log from its beginning and compare every answer, and every snapshot.

    Returns how many events there were; raises :class:`calibrant.errors.DamagedLog` of the first
    that differs.
    """
    folds = {line.number: begun(line) for line in store.streams()}
    waiting = sorted(store.snapshots(), key=lambda snapshot: snapshot.seq)
    count, done = 0, 0
    for snapshot in waiting:
        count += play(store, folds, done, snapshot.seq)
        done = max(done, snapshot.seq)
        if snapshot.stream == FILTER:
            _compare_ids(store, snapshot)
        else:
            _compare(folds[snapshot.stream], snapshot)
    return count + play(store, folds, done, store.last())


def _compare(fold: Fold, snapshot: Snapshot) -> None:
    where = f"snapshot of stream {snapshot.stream} at event {snapshot.seq}"
    found = _opened(snapshot)
    if found is None:
        raise DamagedLog(f"{where} must be as it was written, got other bytes")
    # Read and written again: an earlier release may have laid the same state out otherwise.
    if found.body() != fold.body():
        raise DamagedLog(f"{where} must be what its events amount to, got another state")


def _compare_ids(store: Store, snapshot: Snapshot) -> None:
    seen, upto = seen_of([snapshot])
    where = f"filter of ids at event {snapshot.seq}"
    if not upto:
        raise DamagedLog(f"{where} must be as it was written, got other bytes")
    lost = next((name for name in store.names(0, upto) if name not in seen), None)
    if lost is not None:
        raise DamagedLog(f"{where} must hold every id, got one without {lost[2]!r}")


def fresh_snapshots(store: Store, upto: int, witnesses: Witnesses | None = None) -> list[Snapshot]:
    """Return a snapshot of each stream that has changed, made by playing the tail on copies.

    And of each that has none, for as long as one has none the whole log is its tail.
    """
    lines = store.streams()
    folds = _held(store.snapshots(), lines, witnesses)
    since = {number: fold.seq for number, fold in folds.items()}
    folds |= {line.number: begun(line, witnesses) for line in lines if line.number not in folds}
    play(store, folds, min((fold.seq for fold in folds.values()), default=0), upto)
    return snapshots_of(folds, upto, since)


def snapshots_of(folds: dict[int, Fold], upto: int, since: dict[int, int]) -> list[Snapshot]:
    """Return a snapshot of each stream that has changed.

    ``since`` holds up to which event each stream has a snapshot, and is brought up to date.
    """
    changed = {number: fold for number, fold in folds.items() if fold.seq > since.get(number, -1)}
    made = [Snapshot(number, upto, fold.shape, fold.body()) for number, fold in changed.items()]
    since.update(dict.fromkeys(folds, upto))
    return made


def ids_of(seen: Seen, upto: int) -> list[Snapshot]:
    """Return a snapshot of the ids that were seen, if many are new."""
    return [Snapshot(FILTER, upto, IDS, seen.body())] if seen.is_due() else []


def take_snapshots(store: Store, ledger: Any, since: dict[int, int]) -> None:
    """Write snapshots of a ledger at rest, within a transaction of the store."""
    made = snapshots_of(ledger.folds, ledger.seq, since) + ids_of(ledger.seen, ledger.seq)
    store.put_snapshots(made, ledger.seq)
    store.put_moment(Moment(ledger.seq, time.time()))
