"""Batch calibrators of scikit-learn, fitted anew every thousand rounds."""

from __future__ import annotations

import importlib
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.compare.method import Method, Played
from calibrant.compare.player import Announced
from calibrant.compare.stream import Stream
from calibrant.core.arrays import Bits, Reals, Words

CLIP: Final = 1e-3
"""How close to 0 and 1 raw forecasts may come before their log-odds are taken."""
EVERY: Final = 1_000
WINDOW: Final = 5_000
ROUND_BYTES: Final = 9
"""A raw forecast and its outcome, which a refit must have at hand."""


def scikit_methods() -> list[Method]:
    """Return all four; scikit-learn is imported when one of them starts."""
    often = f"fitted anew every {EVERY:,} rounds"
    history = {"": (None, "all outcomes so far"), "_5000": (WINDOW, f"the last {WINDOW:,}")}
    shapes = {"platt": "logistic regression on the log-odds", "isotonic": "isotonic regression"}
    return [
        Refitted(f"sklearn_{shape}{mark}", f"scikit-learn's {what}, {often} to {of}.", shape, last)
        for shape, what in shapes.items()
        for mark, (last, of) in history.items()
    ]


@dataclass(frozen=True)
class Refitted(Method):
    """A batch calibrator and the outcomes it is fitted to.

    Attributes
    ----------
    shape
        ``"platt"`` or ``"isotonic"``.
    window
        How many of the last outcomes; None for all of them.
    """

    kind: ClassVar[str] = "scikit-learn"

    shape: str
    window: int | None

    def start(self, seed: int) -> Refits:
        return Refits(self.shape, self.window)

    def play(self, stream: Stream, seed: int) -> Played:
        """Return the forecasts, those between two fits at once."""
        refits, forecasts = self.start(seed), np.empty(len(stream))
        pieces = list(_news(stream))
        began = time.process_time()
        for start, news in enumerate(pieces):
            part = slice(EVERY * start, EVERY * (start + 1))
            refits.keep(stream.raw[news], stream.outcomes[news])
            refits.fit()
            forecasts[part] = refits.apply(stream.raw[part])
        seconds = time.process_time() - began
        return Played(forecasts, forecasts, refits.size(), seconds)


def _news(stream: Stream) -> Iterator[Words]:
    """Yield for each fit the rounds whose outcomes became known since the one before."""
    events, done = stream.events, 0
    order, made = -1 - events[events < 0], np.flatnonzero(events >= 0)
    for start in range(0, len(stream), EVERY):
        # Of the events before this forecast, as many were forecasts as rounds came before.
        known = int(made[start]) - start
        yield order[done:known]
        done = known


class Refits:
    """A fit and what the next one is made of; the raw forecast until there is one."""

    def __init__(self, shape: str, window: int | None) -> None:
        self._window = window
        self._make, self._columns = _regression(shape), _COLUMNS[shape]
        self._raw: Reals = np.empty(0)
        self._outcomes: Bits = np.empty(0, np.uint8)
        self._waiting: list[tuple[float, int]] = []
        self._fitted: Any = None
        self._announced = 0

    def announce(self, raw: float) -> Announced:
        if self._announced % EVERY == 0 and self._waiting:
            told, outcomes = zip(*self._waiting, strict=True)
            self.keep(np.array(told), np.array(outcomes, np.uint8))
            self._waiting.clear()
            self.fit()
        self._announced += 1
        forecast = float(self.apply(np.array([raw]))[0])
        return Announced(forecast, forecast)

    def learn(self, raw: float, outcome: int) -> None:
        self._waiting.append((raw, outcome))

    def size(self) -> int:
        kept = len(self._raw) + len(self._waiting)
        return len(pickle.dumps(self._fitted)) + ROUND_BYTES * kept

    def keep(self, raw: Reals, outcomes: Bits) -> None:
        """Add outcomes to those that the next fit is made of."""
        first = 0 if self._window is None else -self._window
        self._raw = np.concatenate([self._raw, raw])[first:]
        self._outcomes = np.concatenate([self._outcomes, outcomes])[first:]

    def fit(self) -> None:
        """Fit anew; without both outcomes there is nothing to fit, and the old fit stays."""
        if len(np.unique(self._outcomes)) == 2:
            self._fitted = self._make().fit(self._columns(self._raw), self._outcomes)

    def apply(self, raw: Reals) -> Reals:
        """Return what the present fit makes of raw forecasts."""
        if self._fitted is None:
            return raw
        ask = getattr(self._fitted, "predict_proba", self._fitted.predict)
        told = np.asarray(ask(self._columns(raw)), np.float64)
        return told if told.ndim == 1 else told[:, 1]


def _regression(shape: str) -> Callable[[], Any]:
    """Return what makes a regression that is not fitted yet."""
    if shape == "platt":
        linear: Any = importlib.import_module("sklearn.linear_model")
        return lambda: linear.LogisticRegression()
    isotonic: Any = importlib.import_module("sklearn.isotonic")
    return lambda: isotonic.IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")


def _log_odds(raw: Reals) -> Reals:
    inside = np.clip(raw, CLIP, 1.0 - CLIP)
    return np.asarray(np.log(inside / (1.0 - inside)))[:, None]


_COLUMNS: Final[dict[str, Callable[[Reals], Reals]]] = {
    "platt": _log_odds,
    "isotonic": lambda raw: raw,
}
"""What each shape is regressed on."""
