"""One small stream of every kind with tickets, and what goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from calibrant import Calibrant, Recalibrator
from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator
from calibrant.recalibrate.corrections import Corrections
from calibrant.recalibrate.stream import Stream
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator


class One(NamedTuple):
    """A kind of stream: how to make it, one raw forecast, and two outcomes."""

    make: Callable[..., Stream[Any]]
    raw: Any
    outcomes: tuple[Any, Any]


RAW = [0.6, 0.3, 0.1]
EVERYONE = {
    "recalibrator": One(Recalibrator, 0.4, (0, 1)),
    "calibrant": One(Calibrant, 0.4, (0, 1)),
    "context": One(lambda **o: Calibrant(context=16, **o), 0.4, (0, 1)),
    "full support": One(lambda **o: Recalibrator("regret_matching", **o), 0.4, (0, 1)),
    "groups": One(GroupRecalibrator, 0.4, (0, 1)),
    "class calibrant": One(lambda **o: ClassCalibrant(classes=3, **o), RAW, (0, 2)),
    "one vs rest": One(lambda **o: OneVsRest(classes=3, **o), RAW, (0, 2)),
    "top label": One(lambda **o: TopLabel(classes=3, **o), RAW, (0, 2)),
    "simplex": One(lambda **o: SimplexRecalibrator(classes=3, resolution=4, **o), RAW, (0, 2)),
    "quantiles": One(QuantileRecalibrator, Distribution.normal(0.0, 1.0), (-0.5, 2.0)),
    "pit": One(
        lambda **o: QuantileRecalibrator(method="pit", **o),
        Distribution.normal(0.0, 1.0),
        (-0.5, 2.0),
    ),
    "interval": One(lambda seed: ConformalInterval(), 0.5, (0.25, 900.0)),
}


def forget_corrections(rec: Stream[Any]) -> None:
    """Let a stream know no more of its corrections than counts show, as after many others."""
    rec._counter.corrections = Corrections()
