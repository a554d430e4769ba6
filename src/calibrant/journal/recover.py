"""Streams again from their log: a snapshot, and the events behind it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from calibrant.errors import CorruptState, DamagedLog
from calibrant.journal.again import replay_all
from calibrant.journal.events import Event
from calibrant.journal.fold import SHAPE, Fold
from calibrant.journal.store import Line, Snapshot, Store
from calibrant.loading import load

AT_ONCE: Final = 50_000
"""Events that are played together: enough for machine code to be worth it."""


def recovered(store: Store, lines: Sequence[Line]) -> tuple[dict[int, Fold], int]:
    """Return every stream as its log makes it, and the place of the last event.

    Each event behind the snapshots is played again, and its answer compared with that in the log.
    """
    folds, last = started(store, lines), store.last()
    play(store, folds, min((fold.seq for fold in folds.values()), default=0), last)
    return folds, last


def started(store: Store, lines: Sequence[Line]) -> dict[int, Fold]:
    """Return every stream as its latest snapshot holds it; a damaged one is passed over."""
    found = dict[int, Fold]()
    for snapshot in store.snapshots():
        fold = None if snapshot.stream in found else _opened(snapshot)
        if fold is not None:
            found[snapshot.stream] = fold
    return {line.number: found.get(line.number) or Fold(load(line.body)) for line in lines}


def _opened(snapshot: Snapshot) -> Fold | None:
    try:
        return Fold.from_body(snapshot.body, snapshot.seq) if snapshot.shape == SHAPE else None
    except CorruptState:
        return None


def play(store: Store, folds: dict[int, Fold], after: int, upto: int) -> int:
    """Play the events behind a place, many at a time; return how many there were."""
    count, tail = 0, store.tail(after, upto)
    while events := list(itertools.islice(tail, AT_ONCE)):
        for number, some in by_stream(events).items():
            fold = folds.get(number)
            if fold is None:
                told = f"event {some[0].seq} must be of a stream"
                raise DamagedLog(f"{told}, got number {number}")
            replay_all(fold, some)
        count += len(events)
    return count


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
    lines = store.streams()
    folds = {line.number: Fold(load(line.body)) for line in lines}
    waiting = sorted(store.snapshots(), key=lambda snapshot: snapshot.seq)
    count, done = 0, 0
    for snapshot in waiting:
        count += play(store, folds, done, snapshot.seq)
        done = max(done, snapshot.seq)
        _compare(folds[snapshot.stream], snapshot)
    return count + play(store, folds, done, store.last())


def _compare(fold: Fold, snapshot: Snapshot) -> None:
    where = f"snapshot of stream {snapshot.stream} at event {snapshot.seq}"
    if _opened(snapshot) is None:
        raise DamagedLog(f"{where} must be as it was written, got other bytes")
    if fold.body() != snapshot.body:
        raise DamagedLog(f"{where} must be what its events amount to, got another state")


def take_snapshots(store: Store, folds: dict[int, Fold], upto: int, since: dict[int, int]) -> None:
    """Write a snapshot of each stream that has changed, within a transaction of the store.

    ``since`` holds up to which event each stream has a snapshot, and is brought up to date.
    """
    changed = {number: fold for number, fold in folds.items() if fold.seq > since.get(number, -1)}
    made = [Snapshot(number, upto, SHAPE, fold.body()) for number, fold in changed.items()]
    store.put_snapshots(made, upto)
    since.update(dict.fromkeys(folds, upto))
