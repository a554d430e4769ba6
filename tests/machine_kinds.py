"""Every kind of recalibrator as the machine plays it: what goes in, what comes out, which verbs.

A kind is an adapter.  Its ``verbs`` say what the machine may call; to let the machine play
another call of a kind, add the word to its family's line in :data:`VERBS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from machine_adapters import (
    Binary,
    ByBoth,
    ByClass,
    ByTop,
    Classes,
    Grouping,
    Groups,
    Intervals,
    Judging,
    Kind,
    Quantiles,
    Transforming,
    Watching,
)
from machine_contexts import Contexts

from calibrant import Calibrant, Recalibrator
from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator
from calibrant.monitor import GroupWatch, Monitor, Watch
from calibrant.registry import calibrators, transforms
from calibrant.regression import (
    ConformalInterval,
    QuantileRecalibrator,
    interval_methods,
)

__all__ = ["COMPILED", "KINDS", "Kind"]

OPENED = "forecast id time observe expire correct replay late compile"
TICKETS = f"{OPENED} predict peek learn"
"""Calls that everything with tickets has.

``id`` and ``time`` are arguments of forecast, ``peek`` is a prediction of which nobody makes a
round: the twin never hears of it.
"""
VERBS = {
    "binary": f"{TICKETS} coin again log",
    "weighted": f"{TICKETS} coin log",
    "timed": f"{OPENED} coin log",
    "groups": f"{TICKETS} coin again log",
    "classes": f"{TICKETS} coin log",
    "quantiles": f"{TICKETS} coin log",
    "intervals": f"{TICKETS} log",
    "monitor": "learn replay restart skip",
    "watch": "learn replay restart",
    "online": "predict peek learn replay",
}
"""The verbs of each family.

``again``: a second correction of one outcome is found out; ``late``: replay takes ``available``,
``time`` and ``carry``; ``log``: there are play, forecast_many and observe_many; ``coin``: something
is drawn.  A ``restart`` forgets all rounds but their number, and ``skip`` counts rounds that bring
nothing.
"""
GRID = [k / 20 for k in range(21)]
OFF_GRID = [(3 * k + 1) / 97 for k in range(32)]
PEEKED = [(7 * k + 2) / 101 for k in range(14)]
"""Raw forecasts that are looked at, and that no round is made of."""


ONES = st.integers(0, 1)
UNIT = st.sampled_from(GRID + OFF_GRID)
OFF = st.sampled_from(OFF_GRID)
ASKED = st.sampled_from(PEEKED)
KNOWN = st.sampled_from([{}, {"age": 0.5}, {"age": -2.0, "plan": "gold"}, {"plan": "silver"}])
NAMES = st.sampled_from([(), ("a",), ("a", "b"), ("b", "c")])
VECTORS = [(0.7, 0.2, 0.1), (0.1, 0.6, 0.3), (0.2, 0.2, 0.6), (1.0, 0.0, 0.0), (0.4, 0.3, 0.3)]
LOOKED = [(0.65, 0.25, 0.1), (0.15, 0.55, 0.3), (0.25, 0.15, 0.6)]
REALS = st.sampled_from([-3.5, -1.25, -0.1, 0.3, 0.8, 2.1, 7.0])


def binary(
    name: str,
    made: Callable[..., Any],
    family: str = "binary",
    raws: Any = UNIT,
    **options: Any,
) -> Kind:
    """Return the kind of a binary recalibrator with these options."""

    def make(seed: int, max_open: int) -> Any:
        return made(seed=seed, max_open=max_open, **options)

    return Binary(name, make, _verbs(family), raws, ASKED, ONES)


def _verbs(family: str) -> frozenset[str]:
    return frozenset(VERBS[family].split())


def _recalibrators() -> list[Kind]:
    def kind(name: str) -> Kind:
        family = "weighted" if calibrators.get(name)().weighted else "binary"
        return binary(name, Recalibrator, family, method=name, resolution=4, buckets=3)

    timed = {"method": "fading", "unit": "time", "half_life": 3.0, "resolution": 4, "buckets": 3}
    return [
        *map(kind, calibrators.names()),
        binary("fading in time", Recalibrator, "timed", **timed),
    ]


def _calibrants() -> list[Kind]:
    last = {"method": "foster_hart", "resolution": 4, "buckets": 3}
    return [
        binary("Calibrant", Calibrant),
        binary("Calibrant raw_safe", Calibrant, raws=OFF, raw_safe=0.01),
        binary("Calibrant log", Calibrant, loss="log"),
        binary("Calibrant foster_hart", Calibrant, **last),
    ]


def _contexts() -> list[Kind]:
    def make(seed: int, max_open: int) -> Any:
        return Calibrant(context=16, seed=seed, max_open=max_open)

    raws, peeks = st.tuples(UNIT, KNOWN), st.tuples(ASKED, KNOWN)
    return [Contexts("Calibrant context", make, _verbs("binary"), raws, peeks, ONES)]


def _groups() -> list[Kind]:
    def kind(form: str) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            sizes = {"resolution": 4, "buckets": 2, "max_open": max_open}
            return GroupRecalibrator(["a"], form=form, seed=seed, **sizes)

        raws, peeks = st.tuples(UNIT, NAMES), st.tuples(ASKED, NAMES)
        return Groups(f"groups {form}", make, _verbs("groups"), raws, peeks, ONES)

    return [kind("l2"), kind("exponential")]


def _classes() -> list[Kind]:
    raws, peeks, told = st.sampled_from(VECTORS), st.sampled_from(LOOKED), st.integers(0, 2)

    def kind(adapter: type[Kind], name: str, made: Any, **options: Any) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            return made(classes=3, seed=seed, max_open=max_open, **options)

        return adapter(name, make, _verbs("classes"), raws, peeks, told)

    plain = {"engine": "recalibrator", "resolution": 4, "buckets": 3}
    return [
        kind(ByBoth, "ClassCalibrant", ClassCalibrant, **plain),
        kind(ByBoth, "ClassCalibrant of Calibrants", ClassCalibrant),
        kind(ByClass, "OneVsRest", OneVsRest, **plain),
        kind(ByClass, "OneVsRest of Calibrants", OneVsRest),
        kind(ByTop, "TopLabel conditional", TopLabel, **plain),
        kind(ByTop, "TopLabel conditional of Calibrants", TopLabel),
        kind(ByTop, "TopLabel", TopLabel, conditional=False, **plain),
        kind(Classes, "simplex", SimplexRecalibrator, resolution=3, cells=2),
    ]


def _numbers() -> list[Kind]:
    raws = st.tuples(REALS, st.sampled_from([0.5, 1.0, 2.5]))
    peeks = st.tuples(REALS, st.just(1.7))

    def quantile(method: str) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            return QuantileRecalibrator(method, [0.1, 0.5, 0.8], seed=seed, max_open=max_open)

        return Quantiles(f"quantile {method}", make, _verbs("quantiles"), raws, peeks, REALS)

    def interval(method: str) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            return ConformalInterval(method, seed=seed, max_open=max_open)

        return Intervals(f"interval {method}", make, _verbs("intervals"), REALS, REALS, REALS)

    return [*map(quantile, ("mixed", "pit", "tracker")), *map(interval, interval_methods.names())]


def _others() -> list[Kind]:
    def monitor(lag: int) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            return Monitor(buckets=4, lag=lag)

        return Judging(f"Monitor lag {lag}", make, _verbs("monitor"), UNIT, ASKED, ONES)

    def online(name: str) -> Kind:
        def make(seed: int, max_open: int) -> Any:
            return transforms.get(name)().online()

        return Transforming(f"Online {name}", make, _verbs("online"), UNIT, ASKED, ONES)

    def watch(seed: int, max_open: int) -> Any:
        return Watch(buckets=4)

    def groups(seed: int, max_open: int) -> Any:
        return GroupWatch(buckets=4)

    both = Watching("Watch", watch, _verbs("watch"), UNIT, ASKED, ONES)
    many = Grouping("GroupWatch", groups, _verbs("watch"), UNIT, ASKED, ONES)
    return [monitor(1), monitor(3), both, many, *map(online, transforms.names())]


KINDS: dict[str, Kind] = {
    kind.name: kind
    for family in (_recalibrators, _calibrants, _contexts, _groups, _classes, _numbers, _others)
    for kind in family()
}
"""Every kind by name."""


def _compiled() -> list[str]:
    """Return one kind of each adapter, class and set of verbs, and the one with a budget."""
    found = {
        (type(kind), type(kind.make(0, 2)), kind.verbs): name
        for name, kind in reversed(KINDS.items())
        if kind.has("compile")
    }
    return [*reversed(found.values()), "Calibrant raw_safe"]


COMPILED = _compiled()
"""Kinds that are played compiled: compiling takes longer than playing."""
