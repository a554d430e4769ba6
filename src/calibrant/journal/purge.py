"""What may be forgotten: deleted streams, and ids that are older than their stream says.

1. A stream that is marked as deleted goes with its events, its snapshots and its name.
2. Of a stream that keeps ids for a while only, find the last place that the log had come to before
   that while began.  Play the log up to there; the state there is what the stream begins with from
   now on, and events up to there go unless their forecast is open.

When the log had come where is noted with every snapshot, and by every purge.
"""

from __future__ import annotations

from typing import NamedTuple

from calibrant.journal.events import FORECAST
from calibrant.journal.fold import Fold
from calibrant.journal.recover import play
from calibrant.journal.settings import Settings
from calibrant.journal.sql import Store
from calibrant.journal.store import Line, Moment


class Purged(NamedTuple):
    """How much is gone: streams, and events of others."""

    streams: int
    events: int


def purge(store: Store, now: float) -> Purged:
    """Forget what may be forgotten, in one transaction; this process must own the store."""
    with store.writing():
        lines, seq = store.streams(), store.last()
        gone = [line for line in lines if line.gone is not None]
        for line in gone:
            store.purge(line.number)
        events = sum(_forget_ids(store, line, now) for line in lines if line.gone is None)
        store.put_moment(Moment(seq, now))
    return Purged(len(gone), events)


def _forget_ids(store: Store, line: Line, now: float) -> int:
    """Let a stream begin behind what is too old; return how many events went."""
    keep = Settings.from_json(line.settings).keep
    upto = 0 if keep is None else place_before(store.moments(), now - keep)
    if upto <= line.seq:
        return 0
    fold = Fold.of(line)
    play(store, {line.number: fold}, line.seq, upto, strict=False)
    going = [
        event.seq
        for event in store.tail(0, upto)
        if event.stream == line.number
        and not (event.kind == FORECAST and fold.waits(event.id))
        and event.id not in fold.early
    ]
    fold.seq = upto
    store.put_stream(line._replace(body=fold.body(), seq=upto))
    store.drop_snapshots(line.number)
    store.drop_events(going)
    return len(going)


def place_before(moments: list[Moment], time: float) -> int:
    """Return the last place to which the log had come before a time, or 0.

    A clock that was set back counts as if it had stood still.

    >>> place_before([Moment(5, 10.0), Moment(9, 30.0), Moment(12, 20.0), Moment(15, 40.0)], 25.0)
    5
    """
    found, latest = 0, float("-inf")
    for moment in moments:
        latest = max(latest, moment.time)
        if latest < time:
            found = moment.seq
    return found
