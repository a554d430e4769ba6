"""Scores by label, calibrated one label a round: True where labels are yes and no."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.classes.vectors import TOLERANCE, shared_out
from calibrant.core import check
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.integrations.live import Live, make_untimed
from calibrant.recalibrate import Recalibrator

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
