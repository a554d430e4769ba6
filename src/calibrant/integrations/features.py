"""Yes and no behind verbs that speak of labels, where an expert reads some of the features."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.labels import YES_NO, Announced, Scores, both, raw_of
from calibrant.integrations.live import Live, make_told
from calibrant.recalibrate import Calibrant
from calibrant.recalibrate.context import words_of

Names: TypeAlias = tuple[Hashable, ...]


def names_of(context: Any) -> Names:
    """Return the names of features: one, several or none.

    >>> names_of("hour"), names_of(["hour", 3]), names_of(None)
    (('hour',), ('hour', 3), ())
    """
    if context is None or isinstance(context, str):
        return () if context is None else (context,)
    if isinstance(context, Mapping | bytes) or not isinstance(context, Iterable):
        raise InvalidType(f"context must be names of features, got {context!r}")
    return tuple(context)


class Scored(NamedTuple):
    """A score, and what is known besides.

    >>> Scored.of({True: 0.8, False: 0.2}, {"hour": 7, "day": "Monday"}, ("hour", "plan")).context
    {'hour': 7}
    """

    score: Scores
    context: dict[str, Any]

    @classmethod
    def of(cls, score: Scores, x: Any, names: Names) -> Scored:
        """Return a score beside those of the named features that ``x`` has."""
        if not isinstance(x, Mapping):
            raise InvalidType(f"x must have features by name where context names some, got {x!r}")
        return cls(score, {str(name): x[name] for name in names if name in x})


class Told(NamedTuple):
    """What learning a round needs: its raw forecast, and what is known besides in words."""

    raw: float
    context: dict[str, Any]
    words: list[int]


class ToldStream:
    """Yes and no by label, with features; verbs as :class:`.LabelStreams` has them.

    Parameters
    ----------
    names
        Which features an expert reads.
    method, seed, options
        As there.

    Examples
    --------
    >>> stream = ToldStream(("hour",), "calibrant", 7, {})
    >>> score = Scored({False: 0.2, True: 0.8}, {"hour": 7})
    >>> mean, first = stream.look(score, True)
    >>> stream.learn(first, score, True)
    >>> stream.engines()[True].rounds
    1
    """

    def __init__(
        self, names: Names, method: str, seed: int | None, options: dict[str, Any]
    ) -> None:
        self._live = ToldLive(make_told(len(names), method, seed, options))

    def look(self, score: Scored, mean: bool) -> tuple[Scores, Told | None]:
        """Return the mean of the next round, or its draw, and what learning it needs."""
        first = self.first(score)
        if first is None:
            return {}, None
        return both(self._live.look(first.raw, mean, first.words)), first

    def first(self, score: Scored) -> Told | None:
        """Return what learning a round with this score needs; None if there is no label."""
        for label in score.score:
            if label not in YES_NO:
                raise _no_label(label)
        words = words_of(score.context, self._live.engine.spec.slots)
        return Told(raw_of(score.score), score.context, words) if score.score else None

    def learn(self, first: Told | None, score: Scored, outcome: Hashable) -> None:
        """Make a round of a score and its outcome; an empty score is none."""
        told = yes_no(outcome)
        if first is not None:
            self._live.learn_told(first.raw, told, first.context)

    def forecast(self, score: Scored) -> Announced:
        """Announce a forecast for a score, to be observed later."""
        first = self.first(score)
        if first is None:
            raise InvalidInput(f"score must have at least one label, got {score.score!r}")
        ticket = self._engine.forecast(first.raw, context=first.context)
        mean = min(max(ticket.mean, 0.0), 1.0)
        return Announced(both(ticket.value), both(mean), True, ticket)

    def observe(self, announced: Announced, outcome: Hashable) -> None:
        """Learn the outcome of a forecast that was announced earlier."""
        ticket: Ticket = announced.ticket
        self._engine.observe(ticket, yes_no(outcome))

    def compile(self) -> None:
        """Compile the steps of the recalibrator."""
        self._engine.compile()

    def engines(self) -> dict[Any, Calibrant]:
        """Return the recalibrator of True."""
        return {True: self._engine}

    @property
    def _engine(self) -> Calibrant:
        engine = self._live.engine
        assert isinstance(engine, Calibrant)
        return engine


class ToldLive(Live):
    """One stream of a host library, whose rounds come with features."""

    __slots__ = ()

    def learn_told(self, raw: float, outcome: int, context: dict[str, Any]) -> None:
        """Make a round of what a look with this context shows now."""
        assert isinstance(self.engine, Calibrant)
        self.engine.learn_one(raw, outcome, context=context)
        self.left -= 1
        if self.left == 0:
            self.engine.compile()


def yes_no(outcome: Hashable) -> int:
    """Return an outcome as 0 or 1; refuse any other label."""
    if outcome not in YES_NO:
        raise _no_label(outcome)
    return int(bool(outcome))


def _no_label(label: Hashable) -> InvalidInput:
    return InvalidInput(f"labels must be True and False where context is told, got {label!r}")
