"""Recalibrators behind verbs that speak of labels: any labels, which may turn up at any time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from calibrant.classes import ClassCalibrant, MendedTicket
from calibrant.classes.vectors import TOLERANCE, shared_out
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.integrations.live import Live, make_untimed
from calibrant.kernels.compile import SHORT
from calibrant.recalibrate import Recalibrator

Label: TypeAlias = Hashable
Scores: TypeAlias = dict[Any, float]
First: TypeAlias = float | Scores | None
"""The raw forecast of True; the scores of other labels, which sum to 1; or no label at all."""
YES_NO: Final = frozenset({False, True})


class Streams(Protocol):
    """What a host library asks of recalibrators by label, wherever they are."""

    def look(self, score: Any, mean: bool) -> tuple[Scores, Any]:
        """Return the mean of the next round, or its draw, and what learning it needs."""

    def first(self, score: Any) -> Any:
        """Return what learning a round with this score needs."""

    def learn(self, first: Any, score: Any, outcome: Any) -> None:
        """Make a round of a score and its outcome."""

    def forecast(self, score: Any) -> Announced:
        """Announce a forecast for a score, to be observed later."""

    def observe(self, announced: Any, outcome: Any) -> None:
        """Learn the outcome of a forecast that was announced earlier."""

    def compile(self) -> None:
        """Compile the steps."""

    def engines(self) -> dict[Any, Any]:
        """Return the recalibrator by label."""


class Announced(NamedTuple):
    """A forecast over labels that waits for its outcome.

    Attributes
    ----------
    sample
        The drawn probabilities: what to announce against an adversary.
    mean
        The expected probabilities: sharper, and without the guarantee.
    label
        The label whose drawn probability is calibrated, True of yes and no; the others share the
        rest.  None where a label that never came is the likeliest.
    ticket
        The receipt.
    """

    sample: Scores
    mean: Scores
    label: Any
    ticket: Any

    @property
    def id(self) -> Any:
        """The name of the forecast, by which a shared stream knows it everywhere."""
        return self.ticket.id


class Labels:
    """The default for several classes by label, where labels may turn up at any time.

    The last class of a :class:`calibrant.classes.ClassCalibrant` is spare: it stands for all labels
    that never came.  A label that comes first takes its number, once there is another spare class
    (:meth:`calibrant.classes.ClassCalibrant.grown`), and was there all the time with a score of 0.

    Parameters
    ----------
    settings
        What the recalibrator is made with, besides the number of classes.

    Examples
    --------
    >>> labels = Labels({"seed": 7})
    >>> labels.look({"cat": 0.6, "dog": 0.4}, True)
    {'cat': 0.6, 'dog': 0.4}
    >>> for _ in range(50):
    ...     labels.learn({"cat": 0.6, "dog": 0.4}, "bird")
    >>> list(labels.numbers), bool(labels.look({"cat": 0.6, "dog": 0.4}, True)["bird"] > 0.8)
    (['cat', 'dog', 'bird'], True)
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._known: Known | None = None
        self._issuers: frozenset[str] = frozenset()
        self._left = SHORT

    @property
    def numbers(self) -> dict[Label, int]:
        """The class of each label that came so far."""
        return {} if self._known is None else self._known.numbers

    @property
    def engine(self) -> ClassCalibrant | None:
        """The recalibrator, once there is a label."""
        return None if self._known is None else self._known.engine

    def look(self, score: Scores, mean: bool) -> Scores:
        """Return the mean of the next round, or its draw; nothing changes."""
        known = self._known
        if known is None:
            return score
        row = known.row(score)
        if mean:
            return known.told(known.engine.predict_mean_one(row), score)
        drawn, means = known.engine.preview(row[None])
        return known.drawn(means[0], drawn[0], score)

    def learn(self, score: Scores, outcome: Label) -> None:
        """Make a round of a score and its outcome."""
        known = self._with((*score, outcome))
        known.engine.learn_one(known.row(score), known.numbers[outcome])
        self._known = known
        self._count()

    def know(self, label: Label) -> None:
        """Have a label among those that came, without a round."""
        self._known = self._with((label,))

    def forecast(self, score: Scores) -> Announced:
        """Announce a forecast, to be observed later."""
        known = self._with(score)
        ticket = known.engine.forecast(known.row(score))
        self._known, self._issuers = known, self._issuers | {ticket.issuer}
        mean = known.told(ticket.mean, score)
        drawn = known.drawn(ticket.mean, ticket.value, score)
        return Announced(drawn, mean, [*known.numbers, None][ticket.top], ticket)

    def observe(self, ticket: MendedTicket, outcome: Label) -> None:
        """Learn the outcome of a forecast that was announced earlier, maybe with fewer labels."""
        known = self._with((outcome,))
        ours = ticket.issuer in self._issuers
        known.engine.observe(ticket.id if ours else ticket, known.numbers[outcome])
        self._known = known
        self._count()

    def compile(self) -> None:
        """Compile the steps, now and of every recalibrator with a label more."""
        self._left = 0
        if self._known is not None:
            self._known.engine.compile()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.compile()

    def _with(self, labels: Iterable[Label]) -> Known:
        """Return what there is with these labels too; nothing changes but that."""
        known = self._known
        for label in labels:
            if known is None:
                known = Known(ClassCalibrant(2, **self._settings), {label: 0})
            elif label not in known.numbers:
                numbers = known.numbers | {label: len(known.numbers)}
                known = Known(known.engine.grown(), numbers)
        assert known is not None
        if self._left <= 0 and known is not self._known:
            known.engine.compile()
        return known

    def __getstate__(self) -> dict[str, Any]:
        # Machine code is not stored: what is loaded waits for it again.
        return self.__dict__ | {"_left": SHORT}


class Known(NamedTuple):
    """The recalibrator of all labels that came so far, and the class of each.

    >>> known = Known(ClassCalibrant(3, seed=7), {"cat": 0, "dog": 1})
    >>> known.row({"cat": 0.5, "owl": 0.5}).tolist()
    [0.5, 0.0, 0.5]
    >>> known.told(np.array([0.5, 0.25, 0.25]), {"cat": 0.5, "owl": 0.5})
    {'owl': 0.25, 'cat': 0.5, 'dog': 0.25}
    """

    engine: ClassCalibrant
    numbers: dict[Label, int]

    def row(self, score: Scores) -> Reals:
        """Return a score as a vector; labels that never came are the spare class."""
        spare = len(self.numbers)
        row = np.zeros(spare + 1)
        for label, p in score.items():
            row[self.numbers.get(label, spare)] += p
        return row

    def told(self, row: Reals, score: Scores) -> Scores:
        """Return a vector by label; the spare class goes to labels of the score that never came.

        If there are none, all share it in proportion.
        """
        new = {label: p for label, p in score.items() if label not in self.numbers}
        *own, spare = row.tolist()
        of_new = {label: spare * p for label, p in shared(new).items()}
        return shared(of_new | dict(zip(self.numbers, own, strict=True)))

    def drawn(self, mean: Reals, draw: Reals, score: Scores) -> Scores:
        """Return a draw by label, in which the first one keeps its number."""
        told, top = self.told(mean, score), int(mean.argmax())
        if top == len(self.numbers) or len(told) == 1:
            return told
        at = list(told).index([*self.numbers][top])
        row = np.array([[*told.values()]])
        shares = shared_out(row, np.array([at]), np.array([draw[top]]))[0]
        return dict(zip(told, shares.tolist(), strict=True))


def shared(score: Scores) -> Scores:
    """Return numbers by label over their sum; even ones if that is 0.

    >>> shared({"cat": 0.5, "dog": 1.5}), shared({"cat": 0.0})
    ({'cat': 0.25, 'dog': 0.75}, {'cat': 1.0})
    """
    total = sum(score.values())
    even = 1.0 / max(len(score), 1)
    return {label: p / total if total > 0.0 else even for label, p in score.items()}


class LabelStreams:
    """Recalibrate scores by label, whatever labels may come.

    Yes and no (True and False, or 1 and 0) are one binary stream.  Once another label turned up,
    all are classes: see :class:`Labels`.

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
        # The binary stream is made at once: settings that are wrong are refused here.
        self._yes = Live(make_untimed(method, seed, options))
        inside = {"engine": "recalibrator", "method": method} if method != "calibrant" else {}
        self._classes = Labels({"seed": seed} | inside | options)
        self._simple = True

    def look(self, score: Scores, mean: bool) -> tuple[Scores, First]:
        """Return the mean of the next round, or its draw, and what learning it needs."""
        # The usual case, written out: River spends less on a whole round than on ten calls.
        if self._simple and len(score) == 2 and True in score and False in score:
            raw = score[True]
            if type(raw) is not float or not 0.0 <= raw <= 1.0:
                raw = _inside(raw)
            chance = self._yes.mean(raw) if mean else self._yes.look(raw, mean)
            return {False: 1.0 - chance, True: chance}, raw
        first = self.first(score)
        if isinstance(first, dict):
            return self._classes.look(first, mean), first
        if first is None:
            return {}, None
        chance = self._yes.look(first, mean)
        return {False: 1.0 - chance, True: chance}, first

    def first(self, score: Scores) -> First:
        """Return what learning a round with this score needs."""
        if not score:
            return None
        if self._simple and score.keys() <= YES_NO:
            return raw_of(score)
        return _distribution(score)

    def learn(self, first: First, score: Scores, outcome: Label) -> None:
        """Make a round of a score and its outcome; an empty score is none."""
        if type(first) is float and outcome in YES_NO and self._simple:
            self._yes.learn(first, 1 if outcome else 0)
        elif score:
            self._simple = False
            self._classes.learn(_distribution(score), outcome)
        elif outcome not in YES_NO or not self._simple:
            self._simple = False
            self._classes.know(outcome)

    def forecast(self, score: Scores) -> Announced:
        """Announce a forecast for a score, to be observed later."""
        first = self.first(score)
        if first is None:
            raise InvalidInput(f"score must have at least one label, got {score!r}")
        if isinstance(first, dict):
            self._simple = False
            return self._classes.forecast(first)
        ticket = self._yes.engine.forecast(first)
        mean = min(max(ticket.mean, 0.0), 1.0)
        sample, expected = ({False: 1.0 - p, True: p} for p in (ticket.value, mean))
        return Announced(sample, expected, True, ticket)

    def observe(self, announced: Announced, outcome: Label) -> None:
        """Learn the outcome of a forecast that was announced earlier."""
        if isinstance(announced.ticket, Ticket):
            self._yes.engine.observe(announced.ticket, int(outcome == announced.label))
        else:
            self._classes.observe(announced.ticket, outcome)

    def compile(self) -> None:
        """Compile the steps of the recalibrator in use."""
        if self._simple:
            self._yes.engine.compile()
        else:
            self._classes.compile()

    def engines(self) -> dict[Any, Recalibrator | ClassCalibrant]:
        """Return the recalibrator by label: one of True, or one of all classes."""
        engine = self._classes.engine
        if engine is None:
            return {True: self._yes.engine}
        return dict.fromkeys(self._classes.numbers, engine)


def raw_of(score: Scores) -> float:
    """Return the raw forecast of True in a score of yes and no."""
    return _inside(score.get(True, 0.0))


def _distribution(score: Scores) -> Scores:
    """Return a score whose numbers sum to 1, as near as a raw forecast must."""
    inside = {label: _inside(p) for label, p in score.items()}
    return inside if abs(sum(inside.values()) - 1.0) <= TOLERANCE else shared(inside)


def _inside(score: Any) -> float:
    """Return a score as a number in [0, 1]; rounding may have carried it a little outside."""
    if type(score) is float and 0.0 <= score <= 1.0:
        return score
    raw = float(score)
    if -TOLERANCE <= raw <= 1.0 + TOLERANCE:
        return min(max(raw, 0.0), 1.0)
    return check.probability(raw, "score")


def both(chance: float) -> Scores:
    """Return the probabilities of yes and no, given that of yes."""
    return {False: 1.0 - chance, True: chance}
