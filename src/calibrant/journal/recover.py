"""Streams again from their log: a snapshot, and the events behind it."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.errors import CorruptState, DamagedLog
from calibrant.journal.fold import SHAPE, Fold
from calibrant.journal.store import Line, Snapshot, Store
from calibrant.loading import load


def recovered(store: Store, lines: Sequence[Line]) -> tuple[dict[int, Fold], int]:
    """Return every stream as its log makes it, and the place of the last event.

    Each event behind the snapshots is played again, and its answer compared with that in the log.
    """
    folds, last = started(store, lines), store.last()
    _play(store, folds, min((fold.seq for fold in folds.values()), default=0), last)
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


def _play(store: Store, folds: dict[int, Fold], after: int, upto: int) -> int:
    """Play the events behind a place; return how many there were."""
    count = 0
    for event in store.tail(after, upto):
        fold = folds.get(event.stream)
        if fold is None:
            raise DamagedLog(f"event {event.seq} must be of a stream, got number {event.stream}")
        if event.seq > fold.seq:
            fold.replay(event.whole())
        count += 1
    return count


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
        count += _play(store, folds, done, snapshot.seq)
        done = max(done, snapshot.seq)
        _compare(folds[snapshot.stream], snapshot)
    return count + _play(store, folds, done, store.last())


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
