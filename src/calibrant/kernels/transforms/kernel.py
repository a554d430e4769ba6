"""The two functions of a transform, and whole batches played with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibrant.kernels.compile import available, compiled, mark
from calibrant.kernels.layout import Reals, Words
from calibrant.kernels.portable import log, logit

Predict: TypeAlias = Callable[[Words, Reals, int, float], float]
Learn: TypeAlias = Callable[[Words, Reals, int, float, float, int], None]
Given: TypeAlias = Callable[[Words, Reals, int, float, float, float], float]
Partly: TypeAlias = Callable[[Words, Reals, int, float, float, int, float], None]
Keep: TypeAlias = Callable[[Words, Reals, int, Any, int], None]
Late: TypeAlias = Callable[[Words, Reals, int, float, float, int, float, float, Any, int], None]
Alike: TypeAlias = Callable[[Words, Reals, int, float], float]
Wide: TypeAlias = Callable[[Words, Reals, int], int]
Recall: TypeAlias = Callable[[Words, Reals, int, Any, int], bool]
Replay: TypeAlias = Callable[[Words, Reals, Any, Any, Any], None]

NONE, ODDS, BOTH = range(3)
"""Which logarithms of the raw forecast a transform looks at: none, the log-odds, or these and the
logarithm of the complement."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """What a transform does; see :mod:`calibrant.kernels.transforms`.

    Two kernels are the same only if they are one object: whoever makes kernels out of
    others keeps what it made.

    Some transforms need to know of a round whose outcome comes late what they said then, and
    not only in sum: ``keep(words, reals, at, to, first)`` writes that, after a prediction,
    into ``kept`` words of ``to`` from ``first`` on, and
    ``late(words, reals, at, raw, told, outcome, crowd, part, to, first)`` learns the outcome as one
    of ``crowd`` that wait at a time, of which experts learn a part.  Without them a late outcome is
    learned by predicting again.  ``alike(words, reals, at, others)`` says as one of how many that
    are the same an outcome counts, among so many others, where a transform can tell.
    ``wide(words, reals, at)`` says how many cells apart neighbours on the last stage's grid must be
    at least, where a transform watches for swaps of models.

    Whoever asks several transforms may spare them work: ``given`` is ``predict`` with two more
    arguments, the log-odds of the raw forecast and the logarithm of its complement, of which
    ``logs`` says which are looked at; and ``partly`` is ``learn`` of an outcome that counts only in
    part, which is one more argument.

    Where an expert reads what is known of a round besides, in so many ``slots``, the mixture keeps
    that too, as the last of its kept words: ``recall(words, reals, at, to, first)`` reads them back
    and says whether they are the same as before.
    """

    predict: Predict
    learn: Learn
    kept: int = 0
    keep: Keep | None = None
    late: Late | None = None
    alike: Alike | None = None
    given: Given | None = None
    logs: int = NONE
    partly: Partly | None = None
    slots: int = 0
    recall: Recall | None = None
    wide: Wide | None = None

    @property
    def told(self) -> int:
        """How many of the kept words are of what is known besides: none where nothing is kept."""
        return min(self.slots, self.kept)

    @functools.cached_property
    def replay(self) -> Replay:
        """Plays a batch on a state that starts at word 0, plain."""
        return _make_replay(self.predict, self.learn)

    @functools.cached_property
    def machine(self) -> Replay | None:
        """The same compiled, or None where there is no compiler."""
        if not available():
            return None
        return compiled(self.replay, f"transform_{mark(self.replay)}", nogil=True)


def by_logs(given: Given, partly: Partly, logs: int) -> Kernel:
    """Return the kernel of a transform that looks at logarithms and may learn in part."""

    def learn(words: Words, reals: Reals, at: int, raw: float, told: float, outcome: int) -> None:
        partly(words, reals, at, raw, told, outcome, 1.0)

    return Kernel(ask(given, logs), learn, given=given, logs=logs, partly=partly)


def ask(given: Given, logs: int) -> Predict:
    """Return a prediction that takes the logarithms itself."""

    def predict(words: Words, reals: Reals, at: int, raw: float) -> float:
        odds = logit(raw) if logs >= ODDS else 0.0
        less = log(1.0 - raw) if logs == BOTH else 0.0
        return given(words, reals, at, raw, odds, less)

    return predict


def _make_replay(predict: Predict, learn: Learn) -> Replay:
    def replay(words: Words, reals: Reals, raw: Any, outcomes: Any, forecasts: Any) -> None:
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            told = predict(words, reals, 0, p)
            forecasts[t] = told
            learn(words, reals, 0, p, told, y)

    return replay
