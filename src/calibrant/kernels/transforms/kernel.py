"""The two functions of a transform, and whole batches played with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from calibrant.kernels.compile import available, compiled, mark
from calibrant.kernels.layout import Reals, Words

__all__ = ["Kernel", "Learn", "Predict"]

Predict: TypeAlias = Callable[[Words, Reals, int, float], float]
Learn: TypeAlias = Callable[[Words, Reals, int, float, float, int], None]
Keep: TypeAlias = Callable[[Words, Reals, int, Any, int], None]
Late: TypeAlias = Callable[[Words, Reals, int, float, float, int, float, Any, int], None]
Replay: TypeAlias = Callable[[Words, Reals, Any, Any, Any], None]


@dataclass(frozen=True, eq=False)
class Kernel:
    """What a transform does; see :mod:`calibrant.kernels.transforms`.

    Two kernels are the same only if they are one object: whoever makes kernels out of
    others keeps what it made.

    Some transforms need to know of a round whose outcome comes late what they said then, and
    not only in sum: ``keep(words, reals, at, to, first)`` writes that, after a prediction,
    into ``kept`` words of ``to`` from ``first`` on, and
    ``late(words, reals, at, raw, told, outcome, lag, to, first)`` learns the outcome once ``lag``
    forecasts were made from that one on, itself included.  Without them a late outcome is
    learned by predicting again.
    """

    predict: Predict
    learn: Learn
    kept: int = 0
    keep: Keep | None = None
    late: Late | None = None

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


def _make_replay(predict: Predict, learn: Learn) -> Replay:
    def replay(words: Words, reals: Reals, raw: Any, outcomes: Any, forecasts: Any) -> None:
        for t in range(len(raw)):
            p, y = raw[t], int(outcomes[t])
            told = predict(words, reals, 0, p)
            forecasts[t] = told
            learn(words, reals, 0, p, told, y)

    return replay
