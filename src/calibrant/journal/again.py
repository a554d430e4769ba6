"""Events of a log again, many at once: their answers are compared as columns.

1. Cut the events where one cannot be part of a batch: what is no forecast and no outcome, an
   outcome that was kept for later, the forecast that it was kept for, one whose draw is hidden, and
   each event of a model that has no ``play``.
2. Play each run of them by the model's own ``play``; lay the answers out as the log has them.
3. If the bytes differ, name the first event that does.  What cannot be played as a batch is played
   one by one, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.journal.events import CHECK, CORRECTION, FORECAST, OUTCOME, Event, read_key
from calibrant.journal.fold import AT_ONCE, Fold, Run, differs
from calibrant.journal.forms import Lone
from calibrant.journal.store import Named
from calibrant.recalibrate.late import Played

FEW: Final = 50
"""Up to this many events are played one by one."""
LONG: Final = 10_000
"""From this many events on, machine code is worth its start where they are played one by one."""
NEVER: Final = float("nan")


Find = Callable[[list[Named]], dict[Named, Event]]
"""Looks events up by stream, kind and id."""


def replay_all(fold: Fold, events: Sequence[Event], find: Find) -> None:
    """Let events of a stream happen again; those before the state that is there are left out.

    ``find`` looks up earlier events, of which whoever follows the stream is told again.
    """
    rest = [event for event in events if event.seq > fold.seq]
    if len(rest) > LONG and not fold.form.batches:
        fold.quicken()
    for run in _runs(fold, rest):
        if len(run) <= FEW or not _play(fold, run, find):
            for event in run:
                fold.replay(event, _since(fold, event, find))


def _since(fold: Fold, event: Event, find: Find) -> int:
    """Return the event by which a corrected outcome was learned."""
    if event.kind != CORRECTION or fold.witness is None:
        return 0
    names = [(event.stream, kind, event.id) for kind in (FORECAST, OUTCOME)]
    return max((each.seq for each in find(names).values()), default=0)


def _runs(fold: Fold, events: Sequence[Event]) -> Iterator[list[Event]]:
    """Yield the events in order, cut where one cannot be part of a batch."""
    if not fold.form.batches:
        yield from ([event] for event in events)
        return
    run, early = list[Event](), {*fold.early}
    for event in events:
        kept = event.kind == OUTCOME and event.told != AT_ONCE
        if event.kind > OUTCOME or kept or event.id in early or event.more is not None:
            yield run
            yield [event]
            run = []
            if kept:
                early.add(event.id)
        else:
            run.append(event)
    yield run


def _play(fold: Fold, run: Sequence[Event], find: Find) -> bool:
    """Play a run as one batch; say whether that could be done."""
    open = _open(fold, run, find)
    if open is None:
        return False
    try:
        played = _played(fold, run)
    except (CalibrantError, ArithmeticError, LookupError, TypeError, ValueError):
        return False
    made = np.array([event.kind == FORECAST for event in run])
    told = b"".join(event.answer for event in run if event.kind == FORECAST)
    found = _answers(fold, played, made)
    wide = found.itemsize + CHECK
    if len(told) != len(found) * wide:
        raise differs(next(event for event in run if event.kind == FORECAST))
    logged = np.frombuffer(told, np.uint8).reshape(len(found), wide)[:, :-CHECK]
    same = (logged == found.view(np.uint8).reshape(logged.shape)).all(axis=1)
    if not same.all():
        raise differs(run[int(np.flatnonzero(made)[int(np.argmin(same))])])
    fold.seq = run[-1].seq
    if fold.witness is not None:
        fold.witness.played(_columns(run, played, open))
    return True


def _open(fold: Fold, run: Sequence[Event], find: Find) -> dict[str, Event] | None:
    """Return forecasts of before that a run closes, for who follows; None if one is not in the log.

    A state that was handed over may have brought such a ticket along.
    """
    if fold.witness is None:
        return {}
    made = {event.id for event in run if event.kind == FORECAST}
    missing = [event.id for event in run if event.kind == OUTCOME and event.id not in made]
    found = find([(run[0].stream, FORECAST, id) for id in missing])
    if len(found) < len(missing):
        return None
    return {event.id: event.whole() for event in found.values()}


def _columns(run: Sequence[Event], played: Played, open: dict[str, Event]) -> Run:
    """Return what happened in a run, for who follows."""
    seq, _, kind, id, _, x, time, *_ = zip(*run, strict=True)
    made = [each == FORECAST for each in kind]
    open |= {event.id: event for event in run if event.kind == FORECAST}
    asked = [open[each] for each in id]
    raw, since = [event.x for event in asked], [event.time for event in asked]
    # A mean is a sum of products and may round to just above 1.
    told = raw, played.value.tolist(), np.clip(played.mean, 0.0, 1.0).tolist(), since
    return Run(list(seq), made, list(id), *told, [int(each) for each in x], list(time))


def _played(fold: Fold, run: Sequence[Event]) -> Played:
    """Return what came of a run."""
    _, _, kind, id, key, x, time, *_ = zip(*run, strict=True)
    stamps = [NEVER if moment is None else moment for moment in time]
    given: Any = list(kind), list(id), list(x), stamps
    model: Any = fold.model
    if fold.keyed:
        read = {text: read_key(text) for text in {*key}}
        given = ([read[text] for text in key], *given)
    elif any(text is not None for text in key):
        raise ValueError("a stream without keys has none in its log")
    return cast(Played, model.play(*given))


def _answers(fold: Fold, played: Played, made: Any) -> Any:
    """Return the forecasts of a run as the log has them, without their checksums."""
    kept = cast(Lone, fold.form).kept
    form = [(name, "<i8") for name in ("number", "place", "clock")]
    form += [(name, "<f8") for name in ("weight", "mixed")]
    columns: list[tuple[Any, ...]] = [*form, ("kept", "<i8", (kept,))]
    answers = np.empty(int(made.sum()), columns)
    for name in answers.dtype.names or ():
        answers[name] = getattr(played, name)[made]
    return answers
