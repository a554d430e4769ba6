"""Which states become golden files: binary forecasts, their parts, and what stands around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant import Calibrant, Recalibrator, Table, registry
from calibrant.groups import Period
from calibrant.learners import OnlineL1SVM
from calibrant.metrics import streaming
from calibrant.monitor import GroupWatch, LateWatch, Monitor, Watch
from calibrant.outcomes import ObservedOnly, PendingUnknown, WaitForHorizon
from calibrant.regression.pit import LevelCalibrator
from calibrant.transforms import BucketMeans, ExpertMixture, Identity, OnlinePlatt

Step = dict[str, Any]
NEAR = 1e-12
"""Measured numbers are sums whose last bits may depend on the machine; forecasts are not."""
FACTS = ("rounds", "issued", "open", "delay")


@dataclass
class Case:
    """A state, and what follows from it."""

    name: str
    made: Any
    steps: list[Step]
    tickets: list[Any] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    ways: tuple[str, ...] = ()
    beside: Any = None


def step(do: str, *give: Any, **named: Any) -> Step:
    """Return a call as data."""
    return {"do": do} | ({"give": list(give)} if give else {}) | ({"with": named} if named else {})


def measured(do: str, *give: Any) -> Step:
    """Return the call of what is measured, for people to read."""
    return step(do, *give) | {"near": NEAR}


def refused(do: str, *give: Any, **named: Any) -> Step:
    """Return a call that must be refused, and change nothing."""
    return step(do, *give, **named) | {"refused": True}


def facts() -> list[Step]:
    """Return the questions before and after every continuation."""
    return [*map(step, FACTS), measured("certificate")]


def stream(rounds: int, seed: int) -> tuple[list[float], list[int]]:
    """Return raw forecasts, the ends and edges of buckets among them, and outcomes."""
    rng = np.random.default_rng(seed)
    raw = np.where(rng.random(rounds) < 0.3, rng.integers(0, 5, rounds) / 4, rng.random(rounds))
    return raw.round(4).tolist(), (rng.random(rounds) < 0.25 + 0.6 * raw).astype(int).tolist()


# ------------------------------------------------------------------- recalibrators


def past(rec: Any, timed: bool) -> list[Any]:
    """Give a recalibrator a past; return a ticket that is open, and closed ones."""
    raw, outcomes = stream(14, 1)
    rec.replay(raw, outcomes, **({"time": list(range(14))} if timed else {}))
    names = [None, "a", None, "b", None, None]
    tickets = [rec.forecast(p, id=n, time=20.0) for n, p in zip(names, raw, strict=False)]
    for place in (4, 1, 0, 3):
        tickets[place] = rec.observe(tickets[place].id, outcomes[place])
    rec.correct(tickets[1], 1 - outcomes[1])
    if not timed:
        rec.predict_one(0.35)
        rec.learn_one(0.35, 1)
    rec.replay(raw[:5], outcomes[:5], available=[30, 99, 33, 33, 99], time=[30, 31, 32, 33, 34])
    rec.forecast(0.85, **({"time": 35.0} if timed else {}))
    rec.forecast(0.15, id="named", **({"time": 35.5} if timed else {}))
    rec.forecast(0.55, id="named in time", time=36.0)
    still = rec.forecast(0.45, time=37.0)
    closed = rec.observe(rec.forecast(0.65, time=38.0), 1)
    # Of a rule that draws from many points, a ticket that was found by its id has lost its law.
    found = [tickets[3]] if rec.calibrator.kernels.full_support else []
    return [still, closed, *found]


def future(rec: Any, tickets: list[Any], timed: bool) -> list[Step]:
    """Return the continuation of a recalibrator with that past."""
    raw, outcomes = stream(6, 2)
    when: dict[str, Any] = {"time": 40.0} if timed else {}
    numbered = tickets[0].number - 3
    steps = [*facts()]
    if not timed:
        steps += [step("predict_one", 0.41), step("learn_one", 0.41, 0)]
        steps += [step("predict_one", 0.0), step("predict_one", 1.0)]
    steps += [step("forecast", p, **when) for p in (0.12, 0.5, 0.83)]
    steps.append(refused("observe", "named in time", 1, time=1.0))
    at = len(steps)
    steps += [
        step("observe", numbered, 1),
        step("observe", "named", 0),
        step("observe", "named in time", 1, time=60.0),
        step("observe", {"ticket": 0}, 0),
        step("correct", {"ticket": 1}, 0),
        step("correct", {"answer": at}, 0),
        step("forecast", 0.83, id="later", time=41.0),
        step("observe", {"answer": at - 2}, 1),
        step("observe", "later", 0),
    ]
    steps.append(step("replay", raw, outcomes, **({"time": list(range(50, 56))} if timed else {})))
    late = {"time": [60, 61, 62, 63], "available": [60, 63, 99, 64]}
    steps.append(step("replay", raw[:4], outcomes[:4], **late))
    return [*steps, step("forecast", 0.66, time=70.0), *facts()]


def recalibrated(name: str, made: Any, ways: tuple[str, ...] = ()) -> Case:
    """Return the case of a recalibrator of one stream."""
    timed = getattr(made.calibrator, "unit", "rounds") == "time"
    tickets = past(made, timed)
    return Case(name, made, future(made, tickets, timed), tickets, ways=ways)


def recalibrators() -> Iterator[Case]:
    """Yield every calibrator, and what may differ besides."""
    for method in registry.calibrators.names():
        ways = () if Recalibrator(method).calibrator.weighted else ("compile",)
        made = Recalibrator(method, resolution=3, buckets=2, seed=1)
        yield recalibrated(f"recalibrator_{method}", made, ways)
    others: dict[str, dict[str, Any]] = {
        "midpoints": {"grid": "midpoints", "prior": 0},
        "one_bucket": {"buckets": 1, "prior": 3, "key": "north"},
        "log": {"loss": "log", "grid": "midpoints"},
        "misclassification": {"loss": "misclassification"},
        "spherical": {"loss": "spherical", "prior": 0},
        "few_open": {"max_open": 5, "seed": -3},
        "anchored_odd": {"method": "anchored", "strength": 2.5, "patience": 5.0, "prior": 3},
        "fading_in_time": {"method": "fading", "unit": "time", "half_life": 9.5},
        "growing_far": {"method": "growing", "resolution": 1, "doublings": 3, "prior": 0},
        "blackwell_expected": {"method": "blackwell", "updates": "expected"},
        "blackwell_eta": {"method": "blackwell", "step": "fixed", "eta": 0.3},
        "exponential_realised": {
            "method": "exponential_regret",
            "updates": "realised",
            "horizon": 99,
        },
        "polynomial_expected": {"method": "polynomial_regret", "updates": "expected"},
    }
    for name, options in others.items():
        made = Recalibrator(**{"resolution": 3, "buckets": 2, "seed": 2} | options)
        if name == "few_open":
            yield few_open(made)
        else:
            yield recalibrated(f"recalibrator_{name}", made)
    made = LevelCalibrator(0.3, "foster_hart", resolution=4, seed=3)
    yield recalibrated("level_calibrator", made)


def few_open(rec: Any) -> Case:
    """Return the case of a recalibrator of whose tickets some expired."""
    raw, outcomes = stream(9, 3)
    for p in raw:
        rec.forecast(p)
    rec.observe(6, outcomes[6])
    steps = [*facts(), step("forecast", 0.3), step("observe", 7, 1), step("observe", 9, 0)]
    steps += [step("replay", raw, outcomes), step("forecast", 0.6), *facts()]
    return Case("recalibrator_few_open", rec, steps)


def calibrants() -> Iterator[Case]:
    """Yield the default and its options."""
    own = (Identity(), BucketMeans(buckets=3, memory=20.0), OnlinePlatt())
    sized = {"resolution": 3, "seed": 4}
    cases: dict[str, Any] = {
        "looking_back": Calibrant(method="anchored", seed=4),
        "refining": Calibrant(own, doublings=3, **sized),
        "raw_safe": Calibrant(own, raw_safe=0.04, **sized),
        "log": Calibrant(own, loss="log", method="anchored", grid="midpoints", **sized),
        "own_experts": Calibrant(own, share=0.01, **sized),
        "one_transform": Calibrant(BucketMeans(buckets=3), **sized),
        "foster_hart": Calibrant(own, method="foster_hart", buckets=3, prior=3, **sized),
        "growing_safe": Calibrant(own, method="growing", raw_safe=0.03, **sized),
        "fading_in_time": Calibrant(
            own, method="fading", unit="time", half_life=9.0, loss="log", raw_safe=0.5, **sized
        ),
    }
    compiled = ("raw_safe", "foster_hart")
    for name, made in cases.items():
        ways = ("compile",) if name in compiled else ()
        yield recalibrated(f"calibrant_{name}", made, ways)


def reading() -> Iterator[Case]:
    """Yield a default whose forecasts are told what is known besides."""
    rec = Calibrant((Identity(), OnlinePlatt()), context=16, resolution=3, raw_safe=0.2, seed=4)
    raw, outcomes = stream(20, 8)
    told = [{"age": 20.0 + 7.0 * k % 50, "plan": ("gold", None)[k % 2]} for k in range(20)]
    known = {name: [each[name] for each in told] for name in told[0]}
    first = {name: column[:12] for name, column in known.items()}
    rec.replay(raw[:12], outcomes[:12], context=first)
    tickets = [rec.forecast(p, context=c, time=20.0) for p, c in zip(raw[:4], told, strict=False)]
    rec.observe(tickets[2], 1)
    rec.forecast(0.15, id="named", context=told[5])
    steps = [*facts(), step("observe", {"ticket": 1}, 0), step("observe", "named", 1)]
    given = [{"mapping": each} for each in told]
    steps += [step("predict_one", 0.4, context=given[0])]
    steps += [step("learn_one", 0.4, 1, context=given[0]), step("forecast", 0.4, context=given[1])]
    steps += [step("observe", {"ticket": 0}, 1)]
    late = {"time": list(range(30, 50)), "available": [30 + k + 5 * (k % 3) for k in range(20)]}
    steps.append(step("replay", raw, outcomes, context={"mapping": known}, **late))
    steps += [step("forecast", 0.6, context=given[7]), step("forecast", 0.6), *facts()]
    yield Case("calibrant_context", rec, steps, [tickets[0], tickets[3]], ways=("compile",))


# ---------------------------------------------------------------------- transforms

SMALL: dict[str, dict[str, Any]] = {
    "aosa": {"resolution": 2, "limit": 8},
    "bucket_hedge": {"buckets": 2, "resolution": 4},
    "bucket_means": {"buckets": 3, "memory": 30.0, "prior": 1.0},
    "cascade": {"buckets": 2, "resolution": 4},
    "chain": {"first": OnlinePlatt(), "second": BucketMeans(buckets=2)},
    "context": {"places": 16, "features": 2},
    "defensive": {"features": 4},
    "hat_means": {"cells": 3, "memory": 30.0},
    "hedging": {"buckets": 2, "resolution": 4},
    "interval": {"resolution": 4},
    "mixture": {"experts": (Identity(), BucketMeans(buckets=2)), "share": 0.01},
    "recalibrate_regret": {"resolution": 4},
    "tracking": {"buckets": 2},
    "windowed_isotonic": {"window": 8, "every": 3},
    "windowed_platt": {"window": 8, "every": 3},
}
"""Parameters with which a transform has a small state, where its own are large."""


def tables() -> Iterator[Case]:
    """Yield tables of both faces, with tickets of several keys open; one keeps the youngest."""
    capped = {"most_open": 4, "when_full": "expire"}
    some: list[tuple[str, Any, Any]] = [
        ("calibrant", Calibrant(), {}),
        ("recalibrator", Recalibrator(buckets=3), {}),
        ("capped", Calibrant(raw_safe=0.01), capped),
    ]
    for name, pattern, told in some:
        table, (raws, outcomes) = Table(pattern, seed=6, **told), stream(24, 9)
        tickets = []
        for t, (raw, outcome) in enumerate(zip(raws, outcomes, strict=True)):
            key = ("north", "south", 7)[t % 3]
            ticket = table.forecast(key, raw, id=f"n{t}" if t % 4 == 0 else None, time=float(t))
            if t % 5:
                table.observe(ticket, outcome)
            else:
                tickets.append(ticket)
        steps = [
            step("__len__"),
            step("forecast", "south", 0.3),
            # How tickets ended that expired early is not stored: the error may be another one.
            *([] if told else [step("observe", "n0", 1), step("observe", {"ticket": 1}, 0)]),
            refused("observe", "n1", 1),
            step("forecast", "new", 0.8, id="first"),
            step("observe", "first", 1),
            step("forecast", 7, 0.45),
            step("__len__"),
        ]
        yield Case(f"table_{name}", table, steps, tickets)


def transforms() -> Iterator[Case]:
    """Yield every transform, alone."""
    raw, outcomes = stream(17, 5)
    named = {name: registry.transforms.get(name) for name in registry.transforms.names()}
    made = {name: kind(**SMALL.get(name, {})).online() for name, kind in named.items()}
    own = (Identity(), OnlinePlatt(memory=40.0))
    made["mixture_log"] = ExpertMixture(own, loss="log").online()
    for name, online in made.items():
        online.replay(raw, outcomes)
        online.predict_one(0.3)
        online.learn_one(0.3, 1)
        steps = [step("rounds")]
        for p, y in zip(*stream(5, 6), strict=True):
            steps += [step("predict_one", p), step("learn_one", p, y)]
        steps += [step("learn_one", 0.77, 0), step("replay", *stream(12, 7))]
        more = [step("interval_one", 0.4)] if name == "interval" else []
        steps += [step("predict_one", 0.6), *more, step("rounds")]
        yield Case(f"transform_{name}", online, steps)


# ----------------------------------------------------------- what stands around them


def around() -> Iterator[Case]:
    """Yield monitors, what deals with outcomes that come unfairly, and learners."""
    yield from monitors()
    yield from unfair()
    rng = np.random.default_rng(8)
    genotypes = rng.integers(-1, 3, (60, 4))
    ill = (rng.random(60) < np.array([0.5, 0.05, 0.5, 0.95])[genotypes[:, 2]]).astype(int)
    svm = OnlineL1SVM(4, penalty=1.5)
    svm.replay(genotypes[:40], ill[:40])
    rows = genotypes[40:].tolist()
    names = ("rounds", "broken", "chosen", "weights", "bias", "hinge_loss")
    steps = [*map(step, names), step("predict_one", rows[0]), step("learn_one", rows[0], 1)]
    steps += [step("replay", rows, ill[40:].tolist()), *map(step, names)]
    yield Case("online_l1_svm", svm, steps)


def monitors() -> Iterator[Case]:
    """Yield monitors before and after an alarm."""
    names = ("rounds", "alarm", "alarm_after", "change", "since")
    seen = [*map(step, names), measured("evidence"), measured("table")]
    options: dict[str, dict[str, Any]] = {
        "quiet": {"buckets": 2, "stakes": "learned"},
        "alarm": {"buckets": 3, "run_length": 20.0, "alpha": 0.2, "stakes": "learned"},
        "lag": {"buckets": 2, "lag": 3, "tolerance": 0.05, "clip": 0.01, "stakes": "learned"},
        "grid": {"buckets": 2, "alpha": 0.2},
        "grid_lag": {"buckets": 2, "lag": 3, "tolerance": 0.05, "clip": 0.01},
    }
    raw, outcomes = stream(30, 9)
    for name, given in options.items():
        monitor = Monitor(**given)
        monitor.skip(5)
        told = [1 - y for y in outcomes] if name == "alarm" else outcomes
        monitor.update_many(raw, told)
        steps = [*seen, step("update", 0.7, 0), step("update_many", *stream(20, 10)), *seen]
        yield Case(f"monitor_{name}", monitor, [*steps, step("restart"), *seen[:5]])
    watch = Watch(buckets=2, learning=7, stakes="learned")
    watch.update_many(raw, raw[::-1], outcomes)
    both = [step("rounds"), step("learning")]
    both += [one | {"do": f"{name}.{one['do']}"} for name in ("raw", "calibrated") for one in seen]
    more = [step("update", 0.6, 0.5, 1), step("update_many", raw, raw, outcomes)]
    yield Case("watch", watch, [*both, *more, *both])
    yield watch_of_groups(raw, outcomes)


def watch_of_groups(raw: list[float], outcomes: list[int]) -> Case:
    """Return a watch of groups with alarms, a restart, and keys of every kind."""
    keys = [["north", 3] if k % 3 else Period("month", k // 10) for k in range(len(raw))]
    watch = GroupWatch(0.3, keys=["north", "south"], learning=2, buckets=2)
    watch.update_many(keys, raw, [1 - y for y in outcomes])
    watch.restart("north")
    seen = [*map(step, ("rounds", "keys", "alarm", "alarms"))]
    more = [step("update", "west", 0.7, 0), step("update", ["north", 3], 0.01, 1)]
    more += [step("update_many", ["north", "west"] * 15, raw, [1 - y for y in outcomes])]
    more += [step("restart", 3), *seen, step("restart"), *seen]
    return Case("group_watch", watch, [*seen, *more])


def watches_of_late_outcomes() -> Iterator[Case]:
    """Yield watches with forecasts that wait, some of them forgotten, and with an alarm."""
    raw, outcomes = stream(40, 62)
    two = LateWatch(Watch(0.3, learning=2, buckets=2), horizon=6)
    one = LateWatch(Monitor(0.3, lag=2, buckets=2), horizon=6)
    for k, p in enumerate(raw):
        two.forecast(p, 0.5, time=2.0 * k)
        one.forecast(p)
        for made in (two, one) if k >= 3 and k % 7 else ():
            made.observe(k - 3, 1 - outcomes[k - 3])
        if k % 11 == 5:
            one.forget(k)
    names = "issued", "waiting", "judged", "missing", "alarm", "alarms", "assumptions", "names"
    seen: list[Step] = [*map(step, names)]
    more = [step("observe", 38, 1), step("forget", 39), step("observe", 2, 1), *seen]
    for name, made, values in (("late_watch", two, [0.2, 0.3]), ("late_monitor", one, [0.2])):
        last = [step("forecast", *values), step("observe", 40, 0), step("restart"), *seen]
        yield Case(name, made, [*seen, *more, *last])


def unfair() -> Iterator[Case]:
    """Yield what stands around a recalibrator, which is stored beside it."""

    def inside() -> Recalibrator:
        return Recalibrator(resolution=4, buckets=2, seed=11)

    wait, pending = WaitForHorizon(inside(), 5.0), PendingUnknown(inside(), 5.0, buckets=2)
    for name, made in (("wait_for_horizon", wait), ("pending_unknown", pending)):
        for day, p in enumerate((0.2, 0.8, 0.6, 0.6, 0.1, 0.9, 0.7)):
            made.forecast(p, time=float(day), **({"id": "named"} if day == 5 else {}))
        made.observe(4, 1, 6.5)
        asked = [step("waiting"), *([step("clock"), step("lost")] if made is wait else [])]
        asked += [measured("bounds"), measured("bounds", 0.7)] if made is pending else []
        asked += [step(f"recalibrator.{fact}") for fact in FACTS]
        steps = [*asked, step("observe", "named", 1, 7.0), step("forecast", 0.4, time=8.5)]
        steps += [*asked, step("advance", 40.0), step("forecast", 0.4, time=41.0), *asked]
        yield Case(name, made, steps, beside=made.recalibrator)
    seen = ObservedOnly(inside(), 0.3, seed=12)
    tickets = [seen.forecast(p) for p in stream(8, 13)[0]]
    for ticket in tickets[:6]:
        seen.observe(ticket, 1, probability=0.8)
    asked = [step("floor"), step("observed"), step("learned"), step("recalibrator.rounds")]
    steps = [*asked, *(step("observe", {"ticket": k}, 0, probability=0.5) for k in (0, 1))]
    steps += [step("forecast", 0.2), step("observe", {"answer": 6}, 1, probability=0.3), *asked]
    yield Case("observed_only", seen, steps, tickets[6:], beside=seen.recalibrator)


def metrics() -> Iterator[Case]:
    """Yield the metrics that follow a stream."""
    raw, outcomes = stream(20, 14)
    grid = [round(4 * p) / 4 for p in raw]
    made: dict[str, Any] = {
        "bucketed_cells": streaming.BucketedCells(4),
        "equal_mass": streaming.EqualMass(20),
        "exact_cells": streaming.ExactCells(),
        "exact_cells_grid": streaming.ExactCells([0.0, 0.25, 0.5, 0.75, 1.0]),
        "mean_loss": streaming.MeanLoss("squared"),
        "mean_loss_log": streaming.MeanLoss("log"),
        "streaming_atb": streaming.StreamingATB(20),
        "streaming_auc": streaming.StreamingAUC(20),
        "streaming_smooth": streaming.StreamingSmooth(20),
        "windowed": streaming.Windowed(8, buckets=3),
    }
    for name, metric in made.items():
        values = grid if name.startswith("exact") else raw
        metric.update_many(values, outcomes)
        asked = [step("rounds"), measured("result")]
        steps = [*asked, step("update", 0.25, 1), step("update_many", values[:9], outcomes[:9])]
        yield Case(f"metric_{name}", metric, [*steps, *asked])
    cells = streaming.ExpectedCells([0.0, 0.5, 1.0])
    cells.update([0, 1], [0.25, 0.75], 1)
    asked = [step("rounds"), measured("result"), measured("calibration_error")]
    steps = [*asked, step("update", [1, 2], [0.5, 0.5], 0), *asked]
    yield Case("metric_expected_cells", cells, steps)


FAMILIES = (
    recalibrators, calibrants, reading, tables, transforms, around, metrics,
    watches_of_late_outcomes,
)  # fmt: skip
