"""A transform at work: one round at a time, or a whole batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Stateful
from calibrant.errors import CorruptState, InvalidType

if TYPE_CHECKING:
    from calibrant.transforms.base import Transform

KIND: Final = "transform"
SHORT: Final = 20_000
"""Batches up to this long do not start the compiler: compiling would take longer."""
NOTHING: Final = -1.0
"""No raw forecast."""


class Online(Stateful):
    """A transform and its state.

    Parameters
    ----------
    transform
        The rule.

    Notes
    -----
    Not for several threads at a time.  One by one, in batches and after a restart, plain and
    compiled, the forecasts are the same to the bit.

    Examples
    --------
    >>> from calibrant.transforms import BucketMeans
    >>> online = BucketMeans(buckets=10).online()
    >>> online.predict_one(0.83)
    0.83
    >>> online.learn_one(0.83, 1)
    >>> online.predict_one(0.88), online.rounds
    (1.0, 1)
    """

    kind: ClassVar = KIND

    def __init__(self, transform: Transform) -> None:
        self._set_up(transform)

    def _set_up(self, transform: Transform) -> None:
        self._transform = transform
        self._predict, self._learn = transform.kernel.predict, transform.kernel.learn
        fresh = transform.fresh()
        self._real = np.array([type(word) is float for word in fresh], bool)
        self._plain: list[Any] | None = fresh
        self._flat = np.zeros(len(fresh), np.int64)
        self._notes = transform.note_positions()
        self._rounds = 0
        self._asked, self._told = NOTHING, 0.0

    @property
    def transform(self) -> Transform:
        """The rule."""
        return self._transform

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._rounds

    @property
    def words(self) -> list[Any]:
        """A copy of the state: floats where a word is a real, ints elsewhere."""
        return list(self._words())

    def predict_one(self, raw: float) -> float:
        """Return the forecast for a raw one; changes nothing."""
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        words = self._plain or self._words()
        self._told = self._predict(words, words, 0, raw)
        self._asked = raw
        return self._told

    def learn_one(self, raw: float, outcome: int) -> None:
        """Learn the outcome of a round with that raw forecast."""
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        if type(outcome) is not int or not 0 <= outcome <= 1:
            outcome = check.outcome(outcome)
        words = self._plain or self._words()
        # The notes are still those of the last prediction.
        told = self._told if raw == self._asked else self._predict(words, words, 0, raw)
        self._asked = NOTHING
        self._learn(words, words, 0, raw, told, outcome)
        self._rounds += 1

    def interval_one(self, raw: float) -> tuple[float, float]:
        """Return the interval that an interval forecaster announces for a raw forecast."""
        interval = getattr(self._transform, "interval", None)
        if interval is None:
            raise InvalidType(
                f"transform must be one that announces intervals, got {self._transform.name!r}"
            )
        low, high = interval(self._words(), check.probability(raw))
        return low, high

    def replay(self, raw: Any, outcomes: Any) -> Reals:
        """Play a batch of rounds; return the forecasts, each made before its outcome was used."""
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        forecasts = np.empty(len(raws))
        self._asked = NOTHING
        machine = self._batch_function(len(raws))
        if machine is not None:
            flat = self._array()
            machine(flat, flat.view(np.float64), raws, told, forecasts)
        else:
            words = self._words()
            self._transform.kernel.replay(words, words, raws.tolist(), told.tolist(), forecasts)
        self._rounds += len(raws)
        return forecasts

    def __repr__(self) -> str:
        return f"Online({self._transform!r}, rounds={self._rounds})"

    def _batch_function(self, rounds: int) -> Any:
        """Return the compiled batch if it is worth it: for long ones, or once it exists."""
        kernel = self._transform.kernel
        made = kernel.__dict__.get("machine")
        return made if made is not None or rounds <= SHORT else kernel.machine

    def _words(self) -> list[Any]:
        """Go over to the list, on which plain Python is fast."""
        if self._plain is None:
            reals = self._flat.view(np.float64)
            mixed = np.where(self._real, reals.astype(object), self._flat.astype(object))
            self._plain = mixed.tolist()
        return self._plain

    def _array(self) -> Words:
        """Go over to the array, on which compiled code works."""
        if self._plain is not None:
            plain, real = np.array(self._plain, object), self._real
            self._flat[~real] = plain[~real].astype(np.int64)
            self._flat.view(np.float64)[real] = plain[real].astype(np.float64)
            self._plain = None
        return self._flat

    def _document(self) -> Document:
        words = self._array().copy()
        words[self._notes] = 0
        settings = {**self._transform.description, "rounds": self._rounds}
        return Document(KIND, settings, {"words": words})

    def _restore(self, document: Document) -> None:
        from calibrant.transforms.base import from_description

        try:
            self._set_up(from_description(document.settings))
            self._rounds = check.whole(document.settings["rounds"], "rounds")
            words = document.arrays["words"].copy()
            self._transform.verify(words)
            words[self._notes] = 0
            self._flat, self._plain = words, None
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"state must be of a transform, got {error}") from error
