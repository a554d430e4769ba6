"""Streams again from their log: a snapshot, and the events behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calibrant.errors import CorruptState, DamagedLog
from calibrant.journal.events import CORRECTION, FORECAST, OUTCOME, Event
from calibrant.journal.fold import PARTS, WITNESSED, Fold, Model, Witness, parts_of
from calibrant.journal.store import Line, Snapshot, Store
from calibrant.loading import load

Witnesses = Callable[[Model, Line, bytes | None], Witness]
"""Returns who follows a stream: somebody new, or as stored."""


def begun(line: Line, witnesses: Witnesses | None = None) -> Fold:
    """Return a stream before its first event."""
    model = load(line.body)
    return Fold(model, witness=None if witnesses is None else witnesses(model, line, None))


def recovered(
    store: Store, lines: Sequence[Line], witnesses: Witnesses | None = None
) -> tuple[dict[int, Fold], int]:
    """Return every stream as its log makes it, and the place of the last event.

    Each event behind the snapshots is played again, and its answer compared with that in the log.
    """
    folds, last = started(store, lines, witnesses), store.last()
    _play(store, folds, min((fold.seq for fold in folds.values()), default=0), last)
    return folds, last


def started(
    store: Store, lines: Sequence[Line], witnesses: Witnesses | None = None
) -> dict[int, Fold]:
    """Return every stream as its latest snapshot holds it; a damaged one is passed over.

    So is, where streams are followed, one that was written while nobody did.
    """
    found, known = dict[int, Fold](), {line.number: line for line in lines}
    for snapshot in store.snapshots():
        line = known.get(snapshot.stream)
        fold = None if snapshot.stream in found or line is None else _opened(snapshot)
        if fold is not None and witnesses is not None:
            fold = _followed(fold, snapshot, line, witnesses)  # type: ignore[arg-type]
        if fold is not None:
            found[snapshot.stream] = fold
    return {line.number: found.get(line.number) or begun(line, witnesses) for line in lines}


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


def _play(store: Store, folds: dict[int, Fold], after: int, upto: int) -> int:
    """Play the events behind a place; return how many there were."""
    count = 0
    for event in store.tail(after, upto):
        fold = folds.get(event.stream)
        if fold is None:
            raise DamagedLog(f"event {event.seq} must be of a stream, got number {event.stream}")
        if event.seq > fold.seq:
            play_again(store, fold, event)
        count += 1
    return count


def play_again(store: Store, fold: Fold, event: Event) -> None:
    """Let an event of the log happen again."""
    since = 0
    if event.kind == CORRECTION and fold.witness is not None:
        names = [(event.stream, kind, event.id) for kind in (FORECAST, OUTCOME)]
        since = max((each.seq for each in store.find(names).values()), default=0)
    fold.replay(event.whole(), since)


def verified(store: Store) -> int:
    """Play the whole log from its beginning and compare every answer, and every snapshot.

    Returns how many events there were; raises :class:`calibrant.errors.DamagedLog` of the first
    that differs.
    """
    lines = store.streams()
    folds = {line.number: begun(line) for line in lines}
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
    early, *_, state = parts_of(snapshot.body, snapshot.shape)
    if [early, state] != parts_of(fold.body(), fold.shape):
        raise DamagedLog(f"{where} must be what its events amount to, got another state")


def take_snapshots(store: Store, folds: dict[int, Fold], upto: int, since: dict[int, int]) -> None:
    """Write a snapshot of each stream that has changed, within a transaction of the store.

    ``since`` holds up to which event each stream has a snapshot, and is brought up to date.
    """
    changed = {number: fold for number, fold in folds.items() if fold.seq > since.get(number, -1)}
    made = [Snapshot(number, upto, fold.shape, fold.body()) for number, fold in changed.items()]
    store.put_snapshots(made, upto)
    since.update(dict.fromkeys(folds, upto))
