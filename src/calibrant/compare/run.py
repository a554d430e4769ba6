"""From rounds to a comparison."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from calibrant import metrics
from calibrant.compare import method as scores
from calibrant.compare.comparison import KINDS, Comparison, Row
from calibrant.compare.method import Method, Played, Stream
from calibrant.compare.methods import own_methods, river_methods, scikit_methods
from calibrant.core import check
from calibrant.errors import MissingExtra, UnknownName
from calibrant.kernels.compile import available as compiler

PEERS: Final[dict[str, tuple[str, Callable[[], list[Method]]]]] = {
    "river": ("river", river_methods),
    "scikit-learn": ("sklearn", scikit_methods),
}
"""Other libraries by kind of method: the module that must be there, and the methods."""

Progress = Callable[[int, int, str], None]
"""Called with how many methods are done, how many there are, and which is next."""


def methods_by_name(settings: dict[str, Any] | None = None) -> dict[str, Method]:
    """Return every method there is, installed or not.

    >>> list(methods_by_name())[:2]
    ['raw', 'calibrant']
    """
    own = own_methods(settings or {})
    others = (method for _, methods in PEERS.values() for method in methods())
    return {method.name: method for method in (*own, *others)}


def compare(
    raw: Any,
    outcomes: Any,
    *,
    time: Any = None,
    available: Any = None,
    methods: Iterable[str] | None = None,
    peers: bool = True,
    adversarial_rounds: int = 2_000,
    window: int | None = None,
    seed: int = 0,
    title: str = "one stream",
    progress: Progress = lambda done, total, name: None,
    **settings: Any,
) -> Comparison:
    """Play one stream with every method, the raw forecasts among them, and score all alike.

    Each forecast is made before its outcome is used, and outcomes are learned as they become
    known.  Brier score and log loss are of the mean forecast, calibration errors of the one that
    is announced.  Methods without a coin announce their mean, which the adversary sees.

    Parameters
    ----------
    raw, outcomes
        Flat arrays of one length, in the order of time.
    time, available
        As in ``Recalibrator.replay``; rounds whose outcome never became known are not scored.
    methods, peers
        Names that :func:`methods_by_name` lists, by default all, and whether other libraries'
        methods take part where these are installed.
    adversarial_rounds
        Rounds of the game against the paper's adversary; 0 leaves it out.
    window
        Rounds of a window; by default 5,000, or less so that there are eight of them.
    seed, title
        What draws and games depend on, and what the stream is called.
    progress
        Called before each method and after the last.
    **settings
        Arguments of ``Recalibrator`` and ``Calibrant``: resolution, buckets, grid, prior.

    Examples
    --------
    >>> made = compare([0.9, 0.2] * 60, [1, 0, 1, 1] * 30, methods=["bucket_means"], seed=1)
    >>> made.rounds, [row.name for row in made.rows], made.row("raw").adversarial_l2
    (120, ['raw', 'bucket_means'], 1.0)
    """
    stream = Stream.of(raw, outcomes, time=time, available=available)
    games = check.whole(adversarial_rounds, "adversarial_rounds")
    length = scores.window_for(int(stream.scored.sum()))
    if window is not None:
        length = check.whole(window, "window", low=1)
    chosen, absent = _chosen(methods, peers, settings)
    rows, costs = [], {}
    for done, method in enumerate(chosen):
        progress(done, len(chosen), method.name)
        played = method.play(stream, seed)
        against = method.adversarial(games, seed) if games else math.nan
        rows.append(_row(method, played, stream, length, against))
        costs[method.name] = 1e6 * played.seconds / len(stream)
    progress(len(chosen), len(chosen), "")
    known, timing = stream.outcomes[stream.scored], {"microseconds": costs, "compiler": compiler()}
    told = len(known), len(stream) - len(known), float(known.mean()) if len(known) else math.nan
    return Comparison(title, *told, length, games, seed, settings, absent, tuple(rows), timing)


def _row(method: Method, played: Played, stream: Stream, window: int, against: float) -> Row:
    kept = stream.scored
    outcomes, mean, forecast = stream.outcomes[kept], played.mean[kept], played.forecast[kept]
    exact, some = method.on_grid, len(outcomes) > 0
    return Row(
        name=method.name,
        kind=method.kind,
        about=method.about,
        cells="values" if exact else "buckets",
        brier=metrics.brier(mean, outcomes),
        log_loss=scores.log_loss(mean, outcomes) if some else math.nan,
        brier_drawn=metrics.brier(forecast, outcomes),
        calibration_l1=scores.calibration(forecast, outcomes, power=1, exact=exact),
        calibration_l2=scores.calibration(forecast, outcomes, power=2, exact=exact),
        smooth=scores.smooth(forecast, outcomes),
        worst_window_l2=scores.worst_window(forecast, outcomes, window, exact=exact),
        adversarial_l2=against,
        state_bytes=played.size,
    )


def _chosen(
    names: Iterable[str] | None, peers: bool, settings: dict[str, Any]
) -> tuple[list[Method], tuple[str, ...]]:
    """Return the methods that take part, the raw forecasts first, and what is not installed."""
    found = ((kind, importlib.util.find_spec(module)) for kind, (module, _) in PEERS.items())
    known, missing = methods_by_name(settings), tuple(kind for kind, spec in found if spec is None)
    if names is None:
        left_out = missing if peers else tuple(PEERS)
        taken = [method for method in known.values() if method.kind not in left_out]
        return taken, missing if peers else ()
    wanted = dict.fromkeys(["raw", *names])
    for name in wanted:
        _require(name, known, missing)
    return [known[name] for name in wanted], ()


def _require(name: str, known: dict[str, Method], missing: tuple[str, ...]) -> None:
    if name not in known:
        listed = ", ".join(repr(each) for each in known)
        raise UnknownName(f"method must be one of {listed}, got {name!r}")
    if (kind := known[name].kind) in missing:
        told = f"{name} needs {KINDS[kind]}, which is not installed here"
        raise MissingExtra(f"{told}: pip install {kind}")
