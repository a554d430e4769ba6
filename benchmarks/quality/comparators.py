"""The competitors, frozen in ``comparators.json``, and their scores on a stream."""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import rivals, score
from benchmarks.quality.streams import Stream

__all__ = ["Competitor", "competitors", "scores"]

FROZEN = pathlib.Path(__file__).with_name("comparators.json")
RESULTS = pathlib.Path(__file__).with_name("results")
VERSION = 1
"""Goes up when an algorithm changes, so that old results are not taken for new ones."""
OWN = ("calibrators", "transforms")
"""Methods that are registries of the package."""
PARTS = (*OWN, "kernels", "recalibrate")
Floats = NDArray[np.float64]
Forecasts = Callable[..., Floats]


@dataclass(frozen=True)
class Competitor:
    """A method and its settings."""

    name: str
    method: str
    settings: dict[str, Any]

    @property
    def ours(self) -> bool:
        """Whether the method is a part of the package, and no outsider."""
        return self.method in OWN

    def forecasts(self, stream: Stream) -> Floats:
        """Return the mean forecasts, each made before its outcome is used."""
        return METHODS[self.method](stream, **self.settings)

    def key(self, stream: Stream) -> str:
        """Return a name for the result that changes with anything it depends on."""
        ours = sources() if self.method in OWN else ""
        told = json.dumps([VERSION, self.method, self.settings, ours], sort_keys=True).encode()
        arrays = (stream.raw, stream.outcomes, *stream.arrivals)
        return hashlib.sha256(told + b"".join(array.tobytes() for array in arrays)).hexdigest()[:32]


def competitors() -> Iterator[Competitor]:
    """Yield the frozen list, then whatever the registries hold."""
    frozen = json.loads(FROZEN.read_text())
    for entry in frozen["competitors"]:
        yield Competitor(entry["name"], entry["method"], entry.get("settings", {}))
    for registry in frozen["registries"]:
        for name in registered(registry):
            if name not in frozen["leave"]:
                yield Competitor(f"{registry[:-1]} {name}", registry, {"name": name})


@functools.cache
def sources() -> str:
    """Return a fingerprint of the package's own methods, whose results change with them."""
    import calibrant

    package = pathlib.Path(calibrant.__file__).parent
    files = sorted(path for part in PARTS for path in (package / part).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def registered(registry: str) -> tuple[str, ...]:
    """Return the names in a registry of the package, none if there is no such registry."""
    import calibrant.registry

    names: tuple[str, ...] = ()
    if (found := getattr(calibrant.registry, registry, None)) is not None:
        names = found.names()
    return names


def scores(competitor: Competitor, stream: Stream) -> dict[str, float]:
    """Return Brier score, log loss and both calibration figures, from the cache if possible."""
    path = RESULTS / f"{competitor.key(stream)}.json"
    if path.exists():
        kept: dict[str, float] = json.loads(path.read_text())
        return kept
    forecasts = competitor.forecasts(stream)
    found = {
        "brier": score.brier(forecasts, stream.outcomes),
        "log_loss": score.log_loss(forecasts, stream.outcomes),
        "c2_in_bins": score.c2_in_bins(forecasts, stream.outcomes),
        "worst_block": score.worst_block(forecasts, stream.outcomes, exact=False),
    }
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def loop(function: Any) -> Forecasts:
    """Return a compiled loop as a method."""

    def forecasts(stream: Stream, **settings: Any) -> Floats:
        out = np.empty(len(stream))
        function(stream.raw, stream.outcomes, *stream.arrivals, out, *settings.values())
        return out

    return forecasts


def again(forecasts: Floats, stream: Stream, function: Any, *settings: Any) -> Floats:
    """Run a compiled loop on other forecasts of the same rounds."""
    out = np.empty(len(stream))
    function(forecasts, stream.outcomes, *stream.arrivals, out, *settings)
    return out


def newton(stream: Stream, rho: float, gamma: float, clip: float, beta: bool = False) -> Floats:
    """Online Platt or beta scaling."""
    return again(stream.raw, stream, rivals.newton, rho, gamma, clip, beta)


def tracking(stream: Stream, buckets: int, **settings: float) -> Floats:
    """Online Platt scaling, then running means of what it says."""
    return again(newton(stream, **settings), stream, rivals.running_mean, buckets)


def hedging(stream: Stream, buckets: int, **settings: float) -> Floats:
    """Online Platt scaling, then Foster (1999) in each bucket of what it says."""
    return again(newton(stream, **settings), stream, rivals.foster99, buckets, buckets)


def cascade(stream: Stream, buckets: int, cells: int) -> Floats:
    """Running means, then the calibrated stream with a regret coordinate."""
    means = again(stream.raw, stream, rivals.running_mean, buckets)
    return again(means, stream, rivals.regret_coordinate, cells)


def interval(stream: Stream, every: int, times: int) -> int:
    """Return after how many rounds a method is fitted anew: so many times at least, if it can be.

    A refit every 1,000 rounds would leave most streams with the raw forecast to their end.
    """
    return max(1, min(every, len(stream) // times))


def histogram(stream: Stream, every: int, times: int, buckets: int) -> Floats:
    """Histogram binning that is fitted anew every so often."""
    return again(stream.raw, stream, rivals.histogram, interval(stream, every, times), buckets)


def refits(stream: Stream, every: int, times: int, window: int, fit: Callable[..., Any]) -> Floats:
    """Fit anew every so often on the outcomes known then; the raw forecast until it works."""
    order, known = stream.arrivals
    out, every = stream.raw.copy(), interval(stream, every, times)
    for start in range(every, len(stream), every):
        seen = order[: known[start]][-window:]
        if len(np.unique(stream.outcomes[seen])) == 2:
            model = fit(stream.raw[seen], stream.outcomes[seen])
            out[start : start + every] = model(stream.raw[start : start + every])
    return out


def platt_refits(stream: Stream, every: int, times: int, window: int, clip: float) -> Floats:
    """Logistic regression on the logit, as scikit-learn's users refit it."""
    from sklearn.linear_model import LogisticRegression

    def logits(raw: Floats) -> Floats:
        inside = np.clip(raw, clip, 1.0 - clip)
        return np.log(inside / (1.0 - inside))[:, None]

    def fit(raw: Floats, outcomes: Floats) -> Callable[[Floats], Floats]:
        model = LogisticRegression().fit(logits(raw), outcomes)
        return lambda new: model.predict_proba(logits(new))[:, 1]

    return refits(stream, every, times, window, fit)


def isotonic_refits(stream: Stream, every: int, times: int, window: int) -> Floats:
    """Isotonic regression, as scikit-learn's users refit it."""
    from sklearn.isotonic import IsotonicRegression

    def fit(raw: Floats, outcomes: Floats) -> Callable[[Floats], Floats]:
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(raw, outcomes)
        return lambda new: model.predict(new)

    return refits(stream, every, times, window, fit)


def own_calibrator(stream: Stream, name: str) -> Floats:
    """Algorithm 1 with one of our calibrators and default settings: its mean forecast."""
    from calibrant import Recalibrator

    model = Recalibrator(name, seed=0).compile()
    timing = {"time": stream.issued, "available": stream.available} if stream.delayed else {}
    mean: Floats = model.replay(stream.raw, stream.outcomes, **timing).mean
    return mean


def own_transform(stream: Stream, name: str) -> Floats:
    """One of our transforms with default settings."""
    from calibrant import registry

    online = registry.transforms.get(name)().online()
    if not stream.delayed:
        return np.asarray(online.replay(stream.raw, stream.outcomes))
    order, known = stream.arrivals
    out, done = np.empty(len(stream)), 0
    for t in range(len(stream)):
        while done < known[t]:
            online.learn_one(stream.raw[order[done]], int(stream.outcomes[order[done]]))
            done += 1
        out[t] = online.predict_one(stream.raw[t])
    return out


METHODS: dict[str, Forecasts] = {
    "raw": lambda stream: stream.raw,
    "running_mean": loop(rivals.running_mean),
    "river_sgd": loop(rivals.river_sgd),
    "river_newton": loop(rivals.river_newton),
    "platt_refits": platt_refits,
    "isotonic_refits": isotonic_refits,
    "histogram": histogram,
    "streaming_isotonic": loop(rivals.streaming_isotonic),
    "online_platt": newton,
    "online_beta": lambda stream, **settings: newton(stream, beta=True, **settings),
    "tracking": tracking,
    "hedging": hedging,
    "regret_coordinate": loop(rivals.regret_coordinate),
    "cascade": cascade,
    "calibrators": own_calibrator,
    "transforms": own_transform,
}
