"""Recalibrators behind other libraries' verbs: by row, by label, one at a time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel, recalibrator
from calibrant.classes.vectors import TOLERANCE, shared_out
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.kernels.compile import SHORT
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.recalibrate.preview import Preview

Key: TypeAlias = str | int | None


def make(method: str, seed: int | None, options: dict[str, Any], key: Key = None) -> Recalibrator:
    """Return the default for ``"calibrant"``, and otherwise Algorithm 1 with that calibrator.

    >>> make("foster_hart", 7, {"buckets": 10})
    Recalibrator('foster_hart', resolution=20, grid='endpoints', buckets=10, prior=1, rounds=0)
    """
    if method == "calibrant":
        return Calibrant(seed=seed, key=key, **options)
    return Recalibrator(method, seed=seed, key=key, **options)


def make_untimed(
    method: str, seed: int | None, options: dict[str, Any], key: Key = None
) -> Recalibrator:
    """Return a recalibrator for rounds without times; refuse a rule that needs times."""
    engine = make(method, seed, options, key)
    if getattr(engine.calibrator, "timed", False):
        raise InvalidInput("unit must be 'rounds': there are no times here, got 'time'")
    return engine


class Live:
    """One stream of a host library: looks change nothing, rounds are learned.

    Steps are compiled by themselves once so many rounds were learned that it is worth while
    (see :meth:`calibrant.Recalibrator.compile`); what is announced stays the same to the bit.

    Attributes
    ----------
    engine
        The recalibrator.
    look
        Return the mean of the next round (True), or its draw (False), for a raw forecast that was
        checked.
    left
        After how many rounds the steps will be compiled.

    Examples
    --------
    >>> live = Live(make("calibrant", 7, {}))
    >>> live.look(0.83, True) == live.look(0.83, True)
    True
    >>> live.learn(0.83, 1)
    >>> live.engine.rounds
    1
    """

    __slots__ = ("engine", "left", "look")

    def __init__(self, engine: Recalibrator) -> None:
        self.engine, self.look, self.left = engine, Preview(engine).seen, SHORT

    def learn(self, raw: float, outcome: int) -> None:
        """Make a round of what a look shows now."""
        self.engine.learn_one(raw, outcome)
        self.left -= 1
        if self.left == 0:
            self.engine.compile()

    def __getstate__(self) -> Recalibrator:
        return self.engine

    def __setstate__(self, engine: Recalibrator) -> None:
        self.__init__(engine)  # type: ignore[misc]


Engine: TypeAlias = Recalibrator | ClassCalibrant | OneVsRest | TopLabel


def engine_for(classes: int, method: str, seed: int | None, options: dict[str, Any]) -> Engine:
    """Return a binary recalibrator for two classes, and one over classes for more.

    >>> engine_for(3, "foster_hart", 7, {})
    ClassCalibrant(classes=3, engine='recalibrator', rounds=0)
    """
    binary = make_untimed(method, seed, options)
    if classes == 2:
        return binary
    if method == "calibrant":
        return recalibrator(classes, engine="calibrant", seed=seed, **options)
    return recalibrator(classes, engine="recalibrator", seed=seed, method=method, **options)


def learn_rows(engine: Engine, rows: Reals, outcomes: Words) -> None:
    """Play rows in their order; the outcome is the number of a column."""
    engine.replay(rows[:, 1] if isinstance(engine, Recalibrator) else rows, outcomes)


def preview_rows(engine: Engine, rows: Reals) -> tuple[Reals, Reals]:
    """Return draws and means of every row as the very next round; nothing is learned.

    >>> rows = np.array([[0.17, 0.83]])
    >>> [made.round(3).tolist() for made in preview_rows(engine_for(2, "foster_hart", 7, {}), rows)]
    [[[0.15, 0.85]], [[0.175, 0.825]]]
    """
    if isinstance(engine, Recalibrator):
        drawn, mean = Preview(engine).many(rows[:, 1])
        return np.column_stack([1.0 - drawn, drawn]), np.column_stack([1.0 - mean, mean])
    if isinstance(engine, (ClassCalibrant, OneVsRest)):
        return engine.preview(rows)
    drawn, mean = engine.preview(rows)
    tops = rows.argmax(axis=1)
    return shared_out(rows, tops, drawn), shared_out(rows, tops, mean)


Label: TypeAlias = Hashable
Scores: TypeAlias = dict[Any, float]
First: TypeAlias = tuple[Any, float] | float | None
"""The calibrated label and its raw forecast; the raw forecast of True alone; or no label at all."""
YES_NO: Final = frozenset({False, True})


class Announced(NamedTuple):
    """A forecast over labels that waits for its outcome.

    Attributes
    ----------
    sample
        The drawn probabilities: what to announce against an adversary.
    mean
        The expected probabilities: sharper, and without the guarantee.
    label
        The label whose probability was calibrated; the other labels share the rest.
    ticket
        The receipt.
    """

    sample: Scores
    mean: Scores
    label: Any
    ticket: Ticket


class LabelStreams:
    """Recalibrate scores by label, whatever labels may come.

    Yes and no (True and False, or 1 and 0) are one binary stream.  Other labels may turn up at
    any time, so that their number is never known: the label that a score puts first is
    calibrated, with a stream for each (see :class:`calibrant.classes.TopLabel`), and the
    others share the rest in proportion to their scores.

    Parameters
    ----------
    method, seed, options
        ``"calibrant"`` or the name of a calibrator, and its recalibrator's settings.

    Examples
    --------
    >>> streams = LabelStreams("foster_hart", 7, {})
    >>> score = {False: 0.17, True: 0.83}
    >>> mean, first = streams.look(score, True)
    >>> {label: round(p, 3) for label, p in mean.items()}
    {False: 0.175, True: 0.825}
    >>> score = {"cat": 0.6, "dog": 0.4}
    >>> streams.learn(streams.first(score), score, "bird")
    >>> list(streams.look(score, True)[0])
    ['cat', 'dog', 'bird']
    """

    def __init__(self, method: str, seed: int | None, options: dict[str, Any]) -> None:
        self._method, self._seed, self._options = method, seed, options
        # The binary stream is made at once: settings that are wrong are refused here.
        self._yes = Live(make_untimed(method, seed, options))
        self._others: dict[Label, Live] = {}
        self._labels: dict[Label, None] = {}
        self._simple = True

    def look(self, score: Scores, mean: bool) -> tuple[Scores, First]:
        """Return the mean of the next round, or its draw, and what learning it needs."""
        # The usual case, written out: River spends less on a whole round than on ten calls.
        if self._simple and len(score) == 2 and True in score and False in score:
            raw = score[True]
            if type(raw) is not float or not 0.0 <= raw <= 1.0:
                raw = _inside(raw)
            chance = self._yes.look(raw, mean)
            return {False: 1.0 - chance, True: chance}, raw
        first = self.first(score)
        return self._spread(score, first, self._seen(first, mean)), first

    def first(self, score: Scores) -> First:
        """Return the raw forecast that a round with this score would have."""
        if self._simple and score.keys() <= YES_NO:
            return _inside(score.get(True, 0.0)) if score else None
        if not score:
            return None
        label = max(score, key=score.__getitem__)
        return label, _inside(score[label])

    def learn(self, first: First, score: Scores, outcome: Label) -> None:
        """Make a round of a score and its outcome; an empty score is none."""
        if type(first) is float and outcome in YES_NO:
            self._yes.learn(first, 1 if outcome else 0)
            return
        if isinstance(first, tuple):
            self._live(first[0]).learn(first[1], int(outcome == first[0]))
        if outcome not in YES_NO or not score.keys() <= YES_NO or not self._simple:
            self._simple = False
            self._labels |= dict.fromkeys((*score, outcome))

    def forecast(self, score: Scores) -> Announced:
        """Announce a forecast for a score, to be observed later."""
        if (first := self.first(score)) is None:
            raise InvalidInput(f"score must have at least one label, got {score!r}")
        label, raw = first if isinstance(first, tuple) else (True, first)
        ticket = self._of(first).engine.forecast(raw)
        mean = min(max(ticket.mean, 0.0), 1.0)
        sample, expected = (self._spread(score, first, p) for p in (ticket.value, mean))
        return Announced(sample, expected, label, ticket)

    def observe(self, announced: Announced, outcome: Label) -> None:
        """Learn the outcome of a forecast that was announced earlier."""
        whose = announced.ticket.issuer.fingerprint
        lives = (self._yes, *self._others.values())
        owner = next((one for one in lives if one.engine._issuer.fingerprint == whose), self._yes)
        owner.engine.observe(announced.ticket, int(outcome == announced.label))

    def compile(self) -> None:
        """Compile the steps of every stream there is."""
        for live in self._others.values() or (self._yes,):
            live.engine.compile()

    def engines(self) -> dict[Any, Recalibrator]:
        """Return the recalibrators by the label whose probability they calibrate."""
        used = {label: live.engine for label, live in self._others.items()}
        return used or {True: self._yes.engine}

    def _seen(self, first: First, mean: bool) -> float:
        if first is None:
            return 0.0
        return self._of(first).look(first[1] if isinstance(first, tuple) else first, mean)

    def _of(self, first: First) -> Live:
        return self._live(first[0]) if isinstance(first, tuple) else self._yes

    def _live(self, label: Label) -> Live:
        if label not in self._others:
            engine = make_untimed(self._method, self._seed, self._options, repr(label))
            self._others[label] = Live(engine)
        return self._others[label]

    def _spread(self, score: Scores, first: First, chance: float) -> Scores:
        """Give the first label its chance, and the others the rest."""
        if first is None:
            return {}
        if not isinstance(first, tuple):
            return {False: 1.0 - chance, True: chance}
        labels = list(dict.fromkeys((*score, *self._labels)))
        if len(labels) == 1:
            return {labels[0]: 1.0}
        row = np.array([[score.get(each, 0.0) for each in labels]])
        at = np.array([labels.index(first[0])])
        shares = shared_out(row, at, np.array([chance]))[0]
        return dict(zip(labels, shares.tolist(), strict=True))


def _inside(score: Any) -> float:
    """Return a score as a number in [0, 1]; rounding may have carried it a little outside."""
    if type(score) is float and 0.0 <= score <= 1.0:
        return score
    raw = float(score)
    if -TOLERANCE <= raw <= 1.0 + TOLERANCE:
        return min(max(raw, 0.0), 1.0)
    return check.probability(raw, "score")
