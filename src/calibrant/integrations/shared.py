"""Streams that several processes share, in a service or in a journal, behind other verbs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput, InvalidType
from calibrant.integrations.labels import YES_NO, Announced, First, Scores, both, raw_of
from calibrant.journal import Journal
from calibrant.loading import load

CHUNK: Final = 100
"""Rounds that are announced to a service together, before their outcomes are told."""

Store: TypeAlias = Any
"""A client of a service, its address, or a journal without keys."""
Rounds: TypeAlias = tuple[list[float], list[int]]


class Receipt(NamedTuple):
    """What is known of a forecast that was announced in a store.

    Attributes
    ----------
    id
        Its name in the stream, under which the outcome is told.
    value, mean
        The draw, which carries the promise, and the mean.  The draw is nan where the stream tells
        it with the outcome.
    """

    id: str
    value: float
    mean: float


class Shared:
    """One stream of a store: what happens there is the same for whoever has the store.

    Nothing of the stream is kept here, so a copy or a pickle is another way to the same stream.
    Forecasts get random ids.  What may have failed halfway keeps its ids until it is asked
    again, so that nothing happens twice.

    Parameters
    ----------
    store
        A :class:`calibrant.client.Client`, the address of a service that asks for no token, or a
        :class:`calibrant.Journal` without keys.
    stream
        Which stream of a service; a journal has one.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Recalibrator
    >>> place = tempfile.TemporaryDirectory()
    >>> with Journal(f"{place.name}/a.db", Recalibrator(seed=7), keyed=False) as journal:
    ...     shared = Shared(journal)
    ...     shared.learn([0.83, 0.2], [1, 0])
    ...     receipt = shared.announce([0.83])[0]
    ...     shared.tell([receipt.id], [1])
    ...     shared.state().rounds
    3
    >>> place.cleanup()
    """

    def __init__(self, store: Store, stream: str = "main") -> None:
        self.store, self.stream = _opened(store), stream
        self._asked: tuple[Rounds, list[str]] | None = None

    def means(self, raws: Sequence[float]) -> Reals:
        """Return the mean of each raw forecast as the very next round; nothing changes."""
        if isinstance(self.store, Journal):
            return self.store.preview(raws)[1]
        asked, back = np.unique(check.probabilities(raws), return_inverse=True)
        found = [self.store.preview(self.stream, raw).mean for raw in asked.tolist()]
        return np.array(found)[back]

    def announce(self, raws: Sequence[float], ids: Sequence[str] | None = None) -> list[Receipt]:
        """Announce forecasts, whose outcomes may come late and be told by anybody."""
        names = _names(raws) if ids is None else list(ids)
        if isinstance(self.store, Journal):
            tickets: list[Any] = self.store.play(None, [0] * len(names), names, raws)
            return [Receipt(one.id, one.value, _inside(one.mean)) for one in tickets]
        made = self.store.forecasts(self.stream, raws, names)
        return [Receipt(one.id, _known(one.forecast), _inside(one.mean)) for one in made]

    def tell(self, ids: Sequence[str], outcomes: Sequence[int]) -> None:
        """Tell outcomes by id; the same again does no harm, another one is refused."""
        if isinstance(self.store, Journal):
            self.store.play(None, [1] * len(ids), ids, outcomes)
        else:
            from calibrant.client.asking import granted

            told = dict(zip(ids, outcomes, strict=True))
            granted(self.store.outcomes(self.stream, told))

    def learn(self, raws: Sequence[float], outcomes: Sequence[int]) -> None:
        """Make rounds of raw forecasts and their outcomes, in their order.

        A journal learns each before the next; a service does so with :data:`CHUNK` together.
        """
        rounds = [float(raw) for raw in raws], [int(outcome) for outcome in outcomes]
        asked = self._asked
        if asked is None or asked[0] != rounds:
            asked = rounds, _names(raws)
        self._asked = asked
        if isinstance(self.store, Journal):
            self._play(*asked)
        else:
            self._send(*asked)
        self._asked = None

    def _play(self, rounds: Rounds, names: list[str]) -> None:
        raws, outcomes = rounds
        ids = [name for name in names for _ in range(2)]
        both = [x for pair in zip(raws, outcomes, strict=True) for x in pair]
        self.store.play(None, [0, 1] * len(names), ids, both)

    def _send(self, rounds: Rounds, names: list[str]) -> None:
        raws, outcomes = rounds
        for start in range(0, len(names), CHUNK):
            part = slice(start, start + CHUNK)
            self.announce(raws[part], names[part])
            self.tell(names[part], outcomes[part])

    def state(self) -> Any:
        """Return a copy of the stream as it is now; a service gives it to administrators."""
        if isinstance(self.store, Journal):
            return self.store.state()
        return load(self.store.state(self.stream))

    def __getstate__(self) -> dict[str, Any]:
        return {"store": self.store, "stream": self.stream}

    def __setstate__(self, given: dict[str, Any]) -> None:
        self.__init__(**given)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Shared({self.store!r}, stream={self.stream!r})"


class SharedLabels:
    """Yes and no by label, in a stream of a store; verbs as :class:`.LabelStreams` has them.

    Parameters
    ----------
    shared
        The stream.
    """

    def __init__(self, shared: Shared) -> None:
        self.shared = shared

    def look(self, score: Scores, mean: bool) -> tuple[Scores, First]:
        """Return the mean of the next round, and what learning it needs; never a draw."""
        if not mean:
            raise no_draws("forecast_one")
        first = self.first(score)
        if first is None:
            return {}, None
        return both(_inside(self.shared.means([first])[0])), first

    def first(self, score: Scores) -> float | None:
        """Return the raw forecast of True, or None if there is no label."""
        if not score.keys() <= YES_NO:
            strange = next(label for label in score if label not in YES_NO)
            raise _no_label(strange)
        return raw_of(score) if score else None

    def learn(self, first: First, score: Scores, outcome: Hashable) -> None:
        """Make a round of a score and its outcome; an empty score is none."""
        told = _outcome(outcome)
        if isinstance(first, float):
            self.shared.learn([first], [told])

    def forecast(self, score: Scores) -> Announced:
        """Announce a forecast for a score."""
        first = self.first(score)
        if first is None:
            raise InvalidInput(f"score must have at least one label, got {score!r}")
        (receipt,) = self.shared.announce([first])
        return Announced(both(receipt.value), both(receipt.mean), True, receipt)

    def observe(self, announced: Announced | str, outcome: Hashable) -> None:
        """Learn the outcome of a forecast that was announced, here or elsewhere."""
        id = announced if isinstance(announced, str) else announced.id
        self.shared.tell([id], [_outcome(outcome)])

    def compile(self) -> None:
        """Do nothing: whoever holds the stream compiles."""

    def engines(self) -> dict[Any, Any]:
        """Return a copy of the recalibrator of True."""
        return {True: self.shared.state()}


def no_draws(verb: str) -> InvalidInput:
    """Return the error of a draw that is looked at: who shares a stream must announce it."""
    told = f"store must be None to look at a draw: {verb} announces one in a store"
    return InvalidInput(f"{told}, got a store")


def check_alone(method: str, options: dict[str, Any]) -> None:
    """Refuse settings of a recalibrator beside a store, whose stream has its own."""
    for name, value in ({"method": method} | options).items():
        if (name, value) != ("method", "calibrant"):
            told = f"{name} must be left out where there is a store: the stream has its own"
            raise InvalidInput(f"{told}, got {value!r}")


def _opened(store: Store) -> Any:
    if isinstance(store, str):
        return _client(store)
    if isinstance(store, Journal) or hasattr(store, "put_stream"):
        return store
    raise InvalidType(f"store must be a client, an address or a journal, got {store!r}")


@cache
def _client(address: str) -> Any:
    """Return the client of an address: one for all models, clones among them."""
    from calibrant.client import Client

    return Client(address)


def _names(raws: Sequence[float]) -> list[str]:
    # From the system each: processes that were forked must not share them.
    return [secrets.token_hex(16) for _ in raws]


def _known(draw: float | None) -> float:
    return math.nan if draw is None else draw


def _inside(mean: float) -> float:
    return min(max(float(mean), 0.0), 1.0)


def _outcome(outcome: Hashable) -> int:
    if outcome not in YES_NO:
        raise _no_label(outcome)
    return int(bool(outcome))


def _no_label(label: Hashable) -> InvalidInput:
    return InvalidInput(f"labels must be True and False in a store, got {label!r}")
