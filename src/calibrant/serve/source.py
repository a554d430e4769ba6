"""The streams of a service as the live page and the routes ask for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np

from calibrant.errors import UnknownName
from calibrant.journal.fold import Fold
from calibrant.journal.ledger import Ledger
from calibrant.journal.settings import Settings
from calibrant.kinds.binary import Binary, of_many, step_of
from calibrant.live import Board
from calibrant.recalibrate import Table
from calibrant.recalibrate.keyed_record import Certificates
from calibrant.serve.chronicle import LEARNING, TOLERANCE, chronicle_in, pattern_of
from calibrant.summary import AnySummary, Glance, Part, Told, Windows, summarise_collected
from calibrant.summary.collected import windows_of

WORST: Final = 20
"""Keys that the page lists."""
FAILURE: Final = 0.05


class Fleet(Binary):
    """Streams distinguished by a key, summarised together: what is promised is promised to each."""

    def __init__(self, found: Certificates) -> None:
        self._found = found

    def promised(self, certificate: Any) -> dict[str, Any]:
        """Return what was measured in all keys, and whether every promise was kept."""
        found = self._found
        told = found.promised < 1.0
        errors = [_mean(column, found.rounds) for column in (found.c1, found.c2)]
        counts = [int(column.sum()) for column in (found.rounds, found.open, found.expired)]
        names = ("rounds", "open", "expired", "c1", "c2", "holds", "failure", "early")
        holds = bool(found.holds[told].all()) if told.any() else None
        values = (*counts, *errors, holds, FAILURE, None)
        own = SimpleNamespace(**dict(zip(names, values, strict=True)))
        return of_many(own, {}, 0, math.nan)

    def bound(self, recalibrator: Any, rounds: int) -> tuple[float, float]:
        """Return that no theorem is about all keys together."""
        return math.nan, math.nan


def _mean(values: Any, weights: Any) -> float:
    return float(np.dot(values, weights) / max(int(weights.sum()), 1))


def glance_of(fold: Fold) -> Glance:
    """Return a stream at a glance."""
    expired = fold.issued - fold.learned - fold.open
    return chronicle_in(fold).glance(open=fold.open, expired=max(expired, 0))


def board_of(fold: Fold) -> Board:
    """Return what the alarms of a stream say."""
    chronicle = chronicle_in(fold)
    watch = chronicle.watched()
    told = watch.judged, watch.missing, watch.assumptions, LEARNING
    return Board(watch.alarms, chronicle.alpha, *told, step_of(pattern_of(fold.model)))


def story_of(fold: Fold) -> AnySummary:
    """Return the summary of a stream; of a keyed one, that of all keys together."""
    collector, model = chronicle_in(fold).collector(), fold.model
    if isinstance(model, Table):
        told = Told(None, {}, {"n_skipped": 0, "n_unresolved": 0}, {}, None)
        return Fleet(model.certificates()).summarise(collector, pattern_of(model), told)
    parts = chronicle_in(fold).breakdown()
    return cast(AnySummary, summarise_collected(collector, model, breakdown=parts))


class Streams:
    """The streams of a service, as a source of the live page.

    Parameters
    ----------
    ledger
        Returns all streams as they are now.
    """

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger

    def streams(self) -> Sequence[str]:
        """Return the names of all streams that are there."""
        return [line.name for line in list(self._ledger().lines.values()) if line.gone is None]

    def fold(self, name: str) -> Fold:
        """Return the state of a stream."""
        ledger = self._ledger()
        line = ledger.lines.get(name)
        if line is None or line.gone is not None:
            raise UnknownName(f"stream must be one that is there, got {name!r}")
        return ledger.folds[line.number]

    def glance(self, name: str) -> Glance:
        """Return what is asked for every second."""
        return glance_of(self.fold(name))

    def board(self, name: str) -> Board:
        """Return what the alarms say."""
        return board_of(self.fold(name))

    def story(self, name: str) -> AnySummary:
        """Return the whole summary."""
        return story_of(self.fold(name))

    def windows(self, name: str, level: int | None) -> Windows | None:
        """Return errors in windows of one length."""
        return windows_of(chronicle_in(self.fold(name)).collector(), level)

    def certificate(self, name: str) -> str:
        """Return the certificate in words."""
        model = self.fold(name).model
        if not isinstance(model, Table):
            return str(model.certificate())
        found = model.certificates()
        told, kept = int((found.promised < 1.0).sum()), int(found.holds.sum())
        kept_by = f"something is promised to {told:,} of them by now, and kept for {kept:,}"
        return (
            f"{len(found):,} keys; {kept_by if told else 'too early to promise anything to any'}."
        )

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return what the stream was made with, and how it is watched."""
        ledger, fold = self._ledger(), self.fold(name)
        stored = Settings.from_json(ledger.lines[name].settings)
        told = stored.made.items()
        made = {name: value for name, value in told if name != "seed" and value not in (None, {})}
        own = {"keyed": stored.keyed, "unknown": stored.unknown, "alarm": stored.alarm}
        watch = chronicle_in(fold).watch
        watched = {"patience": watch.horizon, "tolerance of the alarm": TOLERANCE}
        return own | made | watched | {"rounds before the alarm": LEARNING}

    def keys(self, name: str) -> Sequence[Part]:
        """Return the keys with the largest errors."""
        model = self.fold(name).model
        if not isinstance(model, Table):
            return []
        worst, nan = model.certificates().worst(WORST), (math.nan,) * 5
        rows = zip(worst.key, worst.rounds, worst.c1, worst.c2, worst.promised, strict=True)
        return [
            Part(str(key), int(rounds), *nan, float(c1), float(c2), float(p) if p < 1.0 else None)
            for key, rounds, c1, c2, p in rows
        ]
