"""Which states become golden files: groups, classes, numbers, and the command line's sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from golden.state_cases import FACTS, Case, Step, facts, measured, refused, step, stream
from golden.state_steps import RULES, Night

from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator, Period
from calibrant.kinds.numbers import Seen
from calibrant.regression import (
    ConformalInterval,
    Distribution,
    QuantileRecalibrator,
    interval_methods,
)
from calibrant.stream import Options
from calibrant.summary import Collector, Follower, NumberCollector
from calibrant.transforms import BucketMeans

SOLVED = 1e-9
"""What a linear program gives depends in its last digits on who solves it."""

# -------------------------------------------------------------------------- groups

NAMED: list[Any] = [["north"], ["south", 7], "north", {"mapping": {"south": True, "x": False}}]
PERIODS: list[Any] = [[{"period": ["month", 1 + k // 3]}, "all"] for k in range(20)]
MASKS: list[Any] = [[True, False, True], [False, True, False], [False] * 3, [True] * 3]


def argued(part: Any) -> Any:
    """Return groups as the maker gives them, where a file would have them as data."""
    if isinstance(part, dict):
        [(kind, said)] = part.items()
        return Period(*said) if kind == "period" else said
    return [argued(each) for each in part] if isinstance(part, list) else part


def grouped(name: str, rec: Any, each: list[Any], **more: Any) -> Case:
    """Return the case of a group recalibrator whose rounds have these groups, over and over."""
    contexts = [1 + k // 5 for k in range(30)] if more.get("rules") == "functions" else [None] * 30
    raw, outcomes = stream(10, 20)
    groups = [each[k % len(each)] for k in range(20)]
    rec.replay(raw, outcomes, groups=argued(groups[:10]), contexts=contexts[:10])
    given = {"groups": argued(groups[9]), "context": contexts[9]}
    first = rec.forecast(0.2, id="a", **given)
    second = rec.forecast(0.9, **given)
    rec.observe(second, 1, time=3.0)
    rec.correct(rec.observe("a", 0), 1)
    rec.predict_one(0.35, **given)
    rec.learn_one(0.35, 1, **given)
    numbered = rec.forecast(0.85, **given)
    rec.forecast(0.15, id="named", **given)
    rec.forecast(0.55, id="named in time", time=36.0, **given)
    tickets = [rec.forecast(0.45, time=37.0, **given), second, first]
    asked: dict[str, Any] = {"groups": groups[10], "context": contexts[12]}
    steps = [*facts(), step("groups"), step("predict_one", 0.41, **asked)]
    steps += [step("learn_one", 0.41, 0, **asked), step("forecast", 0.12, **asked)]
    steps.append(refused("observe", "named in time", 1, time=1.0))
    at = len(steps)
    steps += [step("observe", numbered.number, 0), step("observe", "named", 1)]
    steps += [step("observe", "named in time", 1, time=60.0), step("observe", {"ticket": 0}, 0)]
    steps += [step("correct", {"ticket": 1}, 0), step("correct", {"answer": at}, 1)]
    steps += [step("forecast", 0.7, id="later", **asked), step("observe", "later", 1)]
    rows = {"groups": groups[10:16], "contexts": contexts[14:20]}
    steps += [step("replay", *stream(6, 21), **rows)]
    steps += [step("forecast", 0.66, groups=groups[19], context=contexts[24])]
    return Case(name, rec, [*steps, *facts(), step("groups")], tickets, more)


def groups() -> Iterator[Case]:
    """Yield both forms, and every way in which groups are told."""
    sized: dict[str, Any] = {"resolution": 3, "buckets": 2, "seed": 21}
    nobody: list[Any] = [None]
    for form in ("l2", "exponential"):
        yield grouped(f"groups_{form}", GroupRecalibrator(form=form, **sized), NAMED)
    made = GroupRecalibrator(["a", "b", "c"], grid="midpoints", **sized)
    yield grouped("groups_masks", made, MASKS)
    made = GroupRecalibrator(RULES["intervals"], form="exponential", prior=0, **sized)
    yield grouped("groups_intervals", made, nobody, rules="intervals")
    made = GroupRecalibrator(horizon=500, max_groups=9, prior=3, **sized)
    yield grouped("groups_periods", made, PERIODS)
    made = GroupRecalibrator(RULES["functions"], max_open=50, key="north", **sized)
    yield grouped("groups_functions", made, NAMED, rules="functions")
    made = GroupRecalibrator(RULES["mapping"], **sized)
    yield grouped("groups_mapping", made, nobody, rules="mapping")


# ------------------------------------------------------------------------- classes


def vectors(rounds: int, classes: int, seed: int) -> tuple[list[list[float]], list[int]]:
    """Return raw forecasts over classes, and outcomes."""
    rng = np.random.default_rng(seed)
    raw = rng.multinomial(64, [1 / classes] * classes, rounds) / 64
    raw[0] = np.eye(classes)[1]
    return raw.tolist(), rng.integers(0, classes, rounds).tolist()


def classed(name: str, rec: Any, **more: Any) -> Case:
    """Return the case of a recalibrator over classes."""
    raw, outcomes = vectors(8, rec.classes, 30)
    rec.replay(raw[:4], outcomes[:4])
    rec.predict_one(raw[4])
    rec.learn_one(raw[4], outcomes[4])
    tickets = [rec.forecast(p, time=20.0) for p in raw[:5]]
    for place in (3, 0, 4):
        rec.observe(tickets[place], outcomes[place])
    rec.forecast(raw[5], id="named")
    rec.forecast(raw[6], id="named in time", time=36.0)
    steps = [*facts(), step("predict_one", raw[7]), step("learn_one", raw[7], outcomes[7])]
    steps += [step("forecast", raw[0]), step("observe", tickets[1].number, 1)]
    steps.append(refused("observe", "named in time", 0, time=1.0))
    steps += [step("observe", "named in time", 0, time=40.0), step("observe", "named", 2)]
    steps += [step("observe", {"answer": 7}, 1), step("replay", raw[:5], outcomes[:5])]
    steps = [*steps, step("forecast", raw[3], id="later"), step("observe", "later", 0), *facts()]
    if "near" in more:
        steps = [one | ({"near": more["near"]} if "near" not in one else {}) for one in steps]
    return Case(name, rec, steps, more={k: v for k, v in more.items() if k != "near"})


def classes() -> Iterator[Case]:
    """Yield recalibrators over classes, of both engines."""
    own = BucketMeans(buckets=2)
    small: dict[str, Any] = {"seed": 31, "resolution": 3}
    plain: dict[str, Any] = {"engine": "recalibrator", "buckets": 2, **small}
    yield classed("class_calibrant", ClassCalibrant(3, experts=own, **small))
    yield classed("class_calibrant_recalibrator", ClassCalibrant(4, **plain))
    yield classed("one_vs_rest_calibrant", OneVsRest(3, experts=own, **small))
    yield classed("one_vs_rest_divide", OneVsRest(3, renormalise="divide", **plain))
    project = {"method": "running_mean", "renormalise": "project"}
    yield classed("one_vs_rest_project", OneVsRest(3, **project, **plain))
    yield classed("top_label_calibrant", TopLabel(3, experts=own, **small))
    yield classed("top_label_recalibrator", TopLabel(3, **plain))
    alone: dict[str, Any] = {"conditional": False}
    yield classed("top_label_alone_calibrant", TopLabel(4, experts=own, **alone, **small))
    yield classed("top_label_alone", TopLabel(4, prior=0, **alone, **plain))
    simplex = SimplexRecalibrator(3, resolution=3, cells=2, seed=32)
    yield classed("simplex", simplex, needs="scipy", near=SOLVED)


# ------------------------------------------------------------------------- numbers

NORMAL = [{"normal": [float(k), 1.0 + k / 4]} for k in range(6)]
SAMPLES = [{"samples": [0.0, 0.0, float(k), 2.0 * k, 9.0]} for k in range(6)]
QUANTILES = [{"quantiles": [[0.1, 0.5, 0.9], [k - 2.0, k + 0.5, k + 3.0]]} for k in range(6)]
NUMBERS = [0.5, 2.5, 0.0, 4.0, 2.75, 9.5]


def distribution(said: dict[str, Any]) -> Distribution:
    """Return the distribution that a file would say so."""
    [(kind, parts)] = said.items()
    if kind == "samples":
        return Distribution.from_samples(parts)
    return Distribution.normal(*parts) if kind == "normal" else Distribution.from_quantiles(*parts)


def numbered(name: str, rec: Any, raw: list[Any], given: list[Any]) -> Case:
    """Return the case of a forecaster of numbers: what it is given, and how a file says that."""
    rec.replay(raw, NUMBERS)
    rec.predict_one(raw[0])
    rec.learn_one(raw[0], 1.5)
    tickets = [rec.forecast(p, time=20.0) for p in raw[:5]]
    for place in (3, 0, 4):
        rec.observe(tickets[place], NUMBERS[place])
    rec.forecast(raw[5], id="named")
    rec.forecast(raw[2], id="named in time", time=36.0)
    steps = [*facts(), step("predict_one", given[1]), step("learn_one", given[1], 0.25)]
    steps += [step("forecast", given[2]), step("observe", tickets[1].number, 3.0)]
    steps.append(refused("observe", "named in time", 0.0, time=1.0))
    steps += [step("observe", "named in time", 0.0, time=40.0), step("observe", "named", 2.0)]
    steps += [step("observe", {"answer": 7}, -1.0), step("replay", given, NUMBERS[::-1])]
    more = [step("forecast", given[4], id="later"), step("observe", "later", 0.0)]
    return Case(name, rec, [*steps, *more, *facts()])


def numbers() -> Iterator[Case]:
    """Yield quantile recalibrators and conformal intervals."""
    pit: dict[str, Any] = {"method": "pit", "resolution": 3}
    forms: dict[str, tuple[dict[str, Any], list[Any]]] = {
        "pit_atoms": (pit | {"levels": 2, "prior": 3}, SAMPLES),
        "pit_below": (pit | {"levels": [0.5], "ties": "below", "calibrator": "anchored"}, SAMPLES),
        "mixed": ({"method": "mixed", "levels": [0.1, 0.9], "resolution": 3}, NORMAL),
        "mixed_curves": ({"method": "mixed", "levels": [0.5], "resolution": 3}, QUANTILES),
        "tracker": ({"method": "tracker", "levels": [0.1, 0.5, 0.9]}, NORMAL),
        "tracker_atoms": ({"method": "tracker", "levels": 3, "step": 0.1}, SAMPLES),
        "tracker_below": ({"method": "tracker", "levels": [0.3], "ties": "below"}, QUANTILES),
    }
    for name, (options, given) in forms.items():
        rec = QuantileRecalibrator(**options, seed=41, max_open=100)
        yield numbered(f"quantiles_{name}", rec, [*map(distribution, given)], given)
    centres = [0.0, 1.0, 2.0, 3.5, 4.0, 5.25]
    for method in interval_methods.names():
        windowed = method in ("aci_quantile", "agaci", "dtaci", "pid")
        window = {"window": 5} if windowed else {}
        band = ConformalInterval(method, coverage=0.8, seed=42, **window)
        yield numbered(f"interval_{method}", band, centres, centres)
    late = ConformalInterval(coverage=0.8, seed=42)
    for k in range(15):
        late.forecast(1.0 * k, id=f"late {k}")
    late.observe("late 3", 2.5)
    yield numbered("interval_late", late, centres, centres)
    band = ConformalInterval("pid", coverage=0.7, score="given", seed=42, window=5, gain=0.5)
    yield scored("interval_scores", band)
    for method in ("agaci", "blend"):
        band = ConformalInterval(method, coverage=0.7, score="given", seed=42)
        yield scored(f"interval_scores_{method}", band)


def scored(name: str, band: Any) -> Case:
    """Return the case of intervals around scores that are given."""
    band.replay(None, NUMBERS, scorecasts=[1.0] * 6)
    band.forecast(scorecast=0.5, id="named")
    steps = [*facts(), step("forecast", scorecast=1.0), step("observe", "named", 2.0)]
    steps += [step("replay", None, NUMBERS), step("forecast"), *facts()]
    return Case(name, band, steps)


# ------------------------------------------------------ sessions of the command line

SESSION = [f"session.recalibrator.{fact}" for fact in (*FACTS, "certificate")]


def rows_of(kind: str, rows: int, seed: int) -> str:
    """Return a table of comma-separated values; outcomes come late."""
    raw, outcomes = stream(rows, seed)
    late = np.random.default_rng(seed).integers(0, 4, rows).tolist()
    columns: dict[str, list[Any]] = {"t": list(range(100 * seed, 100 * seed + rows))}
    columns["known"] = [t + wait for t, wait in zip(columns["t"], late, strict=True)]
    columns["y"] = outcomes
    if kind == "class":
        table, columns["y"] = vectors(rows, 3, seed)
        columns |= {f"p{k}": [row[k] for row in table] for k in range(3)}
    elif kind == "number":
        columns |= {"mu": [round(8 * p, 3) for p in raw], "sd": [1.0 + p for p in raw]}
    elif kind == "score":
        # Smaller ones later: the largest must have been kept.
        columns["p"] = [round((10 * p - 4.0) / seed, 4) for p in raw]
    else:
        columns["p"] = raw
    if kind == "known":
        # The outcomes of four rows of the first night come in the second.
        columns["who"] = [f"w{8 * (seed - 1) + k}" for k in range(rows)]
        columns["y"] = ["" if seed == 1 and k >= 8 else y for k, y in enumerate(outcomes)]
    columns["sex"] = ["fm"[y] for y in outcomes]
    lines = [",".join(map(str, line)) for line in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *lines]) + "\n"


def sessions() -> Iterator[Case]:
    """Yield what a nightly job keeps, for each kind of stream."""
    plain: dict[str, Any] = {"method": "foster_hart", "resolution": 3, "buckets": 2}
    made: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "binary": (plain, {"raw": "p"}),
        "default": ({"resolution": 4}, {"raw": "p"}),
        "score": (plain | {"scale": "score"}, {"raw": "p"}),
        "group": ({"resolution": 3, "buckets": 2, "group": ("sex",)}, {"raw": "p"}),
        "class": (plain | {"proba": ("p0", "p1", "p2")}, {}),
        "known": (plain, {"raw": "p", "id": "who"}),
        "number": ({"normal": ("mu", "sd"), "levels": (0.2, 0.7), "resolution": 3}, {}),
    }
    for name, (options, job) in made.items():
        night = Night(Options(seed=51, **options).session())
        columns: dict[str, Any] = {"outcome": "y", "time": "t", "available": "known", **job}
        night.play(rows_of(name, 12, 1), **columns)
        asked = [*map(step, SESSION[:-1]), measured(SESSION[-1])]
        asked += [step("session.counts"), step("session.last"), step("session.collector.rounds")]
        steps = [*asked, step("play", rows_of(name, 6, 2), **columns), *asked]
        more: dict[str, Any] = {"needs": "pyarrow"}
        yield Case(f"session_{name}", night, steps, more=more)


def collectors() -> Iterator[Case]:
    """Yield the collectors of a summary."""
    grid = [0.0, 0.5, 1.0]
    raw, outcomes = stream(9, 61)
    drawn = [round(2 * p) / 2 for p in raw]
    made = Collector(grid)
    made.update(raw, drawn, raw[::-1], outcomes)
    asked: list[Step] = [step("rounds"), measured("trace"), measured("mean_drawn")]
    asked += [measured("log_loss", series) for series in ("raw", "forecast", "mean")]
    steps = [*asked, step("update", raw[:3], drawn[:3], raw[:3], outcomes[:3]), *asked]
    yield Case("collector", made, steps)
    seen = [[[1.0, 2.0], [0.5, 3.0]], [0.4, 0.9], [0.1, 0.3]]
    follower = NumberCollector([0.3, 0.8])
    follower.update(Seen(*map(np.array, seen)), Seen(*map(np.array, seen)), [0.8, 1.5])
    names = ("coverage", "infinite", "pinball", "crps", "pit")
    asked = [step("rounds"), *(measured(name, k) for name in names for k in (0, 1))]
    more = step("update", {"seen": seen}, {"seen": seen}, [2.5, -1.0])
    yield Case("collector_of_numbers", follower, [*asked, more, *asked])


def followers() -> Iterator[Case]:
    """Yield followers of live streams: one in order, one merged."""
    grid = [0.0, 0.5, 1.0]
    raw, outcomes = stream(9, 63)
    rows = [[p, round(2 * p) / 2, 1 - p, y] for p, y in zip(raw, outcomes, strict=True)]
    for name in ("follower", "follower_merged"):
        made = Follower(grid)
        for k, row in enumerate(rows):
            made.take(*row, 3.0**k)
        if name == "follower_merged":
            made.merge(made.copy())
        asked: list[Step] = [step("rounds"), step("merged"), measured("glance")]
        wrong = [*rows[2][:3], 1 - rows[2][3]]
        steps = [*asked, step("take", *rows[4], 7.0), step("correct", 3, *wrong), *asked]
        yield Case(name, made, [*steps, refused("correct", 99, *wrong)])


FAMILIES = (groups, classes, numbers, sessions, collectors, followers)
