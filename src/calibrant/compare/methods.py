"""The methods: our own, River's logistic regressions and scikit-learn's batch calibrators."""

from __future__ import annotations

import importlib
import math
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, cast

import numpy as np

from calibrant import registry
from calibrant.compare.method import Announced, Method, Played, Stream
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.kernels.compile import SHORT, available
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.simulate import Noise, Threshold, play_many
from calibrant.transforms import Transform

PILOT: Final = 100
"""Rounds after which a method is known to be slow, or not to be."""
FEW: Final = 5
PATIENCE: Final = 2.0
"""Seconds of plain Python for which the compiler is started though the stream is short."""


def own_methods(settings: dict[str, Any]) -> Iterator[Method]:
    """Yield the raw forecasts, the default, and whatever the registries hold.

    ``settings`` are for the recalibrators, the default among them.
    """
    yield Raw()
    yield Default("calibrant", _first_line(Calibrant), settings)
    for name in registry.calibrators.names():
        yield Recalibrated(name, _first_line(registry.calibrators.get(name)), settings)
    for name in registry.transforms.names():
        yield Alone(name, _first_line(registry.transforms.get(name)))


def _first_line(made: type) -> str:
    return (made.__doc__ or "").partition("\n")[0].replace("``", "")


# ------------------------------------------------------------------------- as they are


@dataclass(frozen=True)
class Coinless:
    """A player that announces what it predicts.

    Attributes
    ----------
    predict, teach
        From a raw forecast to the forecast, and what to do with it and its outcome.
    kept
        Everything that must be kept in order to go on.
    """

    predict: Callable[[float], float]
    teach: Callable[[float, int], object]
    kept: Callable[[], bytes]

    def announce(self, raw: float) -> Announced:
        forecast = self.predict(raw)
        return Announced(forecast, forecast)

    def learn(self, raw: float, outcome: int) -> None:
        self.teach(raw, outcome)

    def size(self) -> int:
        return len(self.kept())


@dataclass(frozen=True)
class Raw(Method):
    """The raw forecasts."""

    kind: ClassVar[str] = "raw"

    name: str = "raw"
    about: str = "The raw forecasts as they are."

    def start(self, seed: int) -> Coinless:
        return Coinless(lambda raw: raw, lambda raw, outcome: None, bytes)

    def play(self, stream: Stream, seed: int) -> Played:
        return Played(stream.raw, stream.raw, 0, 0.0)


# ------------------------------------------------------------------------- Algorithm 1


@dataclass(frozen=True)
class Recalibrated(Method):
    """Algorithm 1 with the calibrator of that name; ``settings`` are the recalibrator's."""

    kind: ClassVar[str] = "calibrator"
    on_grid: ClassVar[bool] = True

    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, seed: int) -> Recalibrator:
        """Return a fresh recalibrator."""
        return Recalibrator(self.name, seed=seed, **self.settings)

    def start(self, seed: int) -> Ticketed:
        return Ticketed(self.make(seed))

    def play(self, stream: Stream, seed: int) -> Played:
        warm_up(stream, lambda: self.make(seed).compile(), lambda part: self._run(part, seed))
        return self._run(stream, seed)

    def _run(self, stream: Stream, seed: int) -> Played:
        made = self.make(seed)
        began = time.process_time()
        run = made.replay(stream.raw, stream.outcomes, **stream.delivery)
        seconds = time.process_time() - began
        # A mean is a sum of products and may round to just above 1.
        return Played(run.forecast, np.minimum(run.mean, 1.0), len(made.to_bytes()), seconds)

    def adversarial(self, rounds: int, seed: int) -> float:
        """Play the same game in a kernel, which is compiled for rules that are slow."""
        made, players = self.make(seed), (Noise(), Threshold())
        sizes: dict[str, Any] = {"buckets": made.buckets, "prior": made.prior}
        games = play_many(made.calibrator, *players, rounds=rounds, seeds=[seed], **sizes)
        return float(games.c2[0, 0])


@dataclass(frozen=True)
class Default(Recalibrated):
    """Experts first, calibrate last."""

    kind: ClassVar[str] = "default"

    def make(self, seed: int) -> Recalibrator:
        return Calibrant(seed=seed, **self.settings)

    def adversarial(self, rounds: int, seed: int) -> float:
        return Method.adversarial(self, rounds, seed)


class Ticketed:
    """A recalibrator whose outcomes come before the next forecast."""

    def __init__(self, recalibrator: Recalibrator) -> None:
        self._recalibrator = recalibrator

    def announce(self, raw: float) -> Announced:
        self._ticket = self._recalibrator.forecast(raw)
        return Announced(self._ticket.mean, self._ticket.value)

    def learn(self, raw: float, outcome: int) -> None:
        self._recalibrator.observe(self._ticket, outcome)

    def size(self) -> int:
        return len(self._recalibrator.to_bytes())


# -------------------------------------------------------------------------- transforms


@dataclass(frozen=True)
class Alone(Method):
    """A transform that is not followed by anything."""

    kind: ClassVar[str] = "transform"

    @property
    def transform(self) -> Transform:
        """The rule with its default parameters."""
        return cast(Transform, registry.transforms.get(self.name)())

    def start(self, seed: int) -> Coinless:
        online = self.transform.online()
        return Coinless(online.predict_one, online.learn_one, online.to_bytes)

    def play(self, stream: Stream, seed: int) -> Played:
        if stream.available is not None:
            return super().play(stream, seed)
        warm_up(stream, lambda: self.transform.kernel.machine, self._run)
        return self._run(stream)

    def _run(self, stream: Stream) -> Played:
        online = self.transform.online()
        began = time.process_time()
        forecasts = online.replay(stream.raw, stream.outcomes)
        seconds = time.process_time() - began
        return Played(forecasts, forecasts, len(online.to_bytes()), seconds)


def warm_up(stream: Stream, prepare: Callable[[], object], run: Callable[[Stream], Played]) -> None:
    """Let the compiler do its work beforehand, if it will have any.

    Batches of more than 20,000 rounds are compiled by themselves; a shorter one is where
    plain Python would take too long for somebody who waits.
    """
    if not available():
        return
    if len(stream) > SHORT:
        run(stream.first(SHORT + 1))
        return
    part = stream.first(PILOT)
    # On a stream of a few pilots plain Python is done before one could tell.
    if len(stream) > FEW * PILOT and run(part).seconds / PILOT * len(stream) > PATIENCE:
        prepare()
        run(part)


CLIP: Final = 1e-3
"""How close to 0 and 1 raw forecasts may come before their log-odds are taken."""


def river_methods() -> list[Method]:
    """Return both methods; River is imported when one of them starts."""
    return [
        Logistic("river_sgd", "River's LogisticRegression on the log-odds, SGD(0.01).", "SGD"),
        Logistic("river_newton", "The same with optim.Newton(0.1).", "Newton"),
    ]


@dataclass(frozen=True)
class Logistic(Method):
    """Two weights, learned one outcome at a time.

    ``optimizer`` names the class in ``river.optim``; its settings are River's defaults.
    """

    kind: ClassVar[str] = "river"

    optimizer: str

    def start(self, seed: int) -> Coinless:
        optimizer = getattr(importlib.import_module("river.optim"), self.optimizer)
        steps = {"SGD": 0.01, "Newton": 0.1}
        linear: Any = importlib.import_module("river.linear_model")
        made = linear.LogisticRegression(optimizer=optimizer(steps[self.optimizer]))
        return Coinless(
            lambda raw: made.predict_proba_one(_features(raw))[True],
            lambda raw, outcome: made.learn_one(_features(raw), bool(outcome)),
            lambda: pickle.dumps(made),
        )


def _features(raw: float) -> dict[str, float]:
    inside = min(max(raw, CLIP), 1.0 - CLIP)
    return {"logit": math.log(inside / (1.0 - inside))}


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
