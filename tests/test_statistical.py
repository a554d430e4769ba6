"""Every calibrator with a bound against every adversary, and rates; fixed seeds throughout.

A bound in expectation is held against the mean of several games plus six standard errors,
and its high-probability form, at a failure probability of 1e-9, against every single
game.  A bound that holds on every path is held against every game as it stands.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import registered
from numpy.typing import NDArray

from calibrant import Recalibrator, bounds
from calibrant.bounds import Bound
from calibrant.calibrators import Calibrator
from calibrant.metrics import calibration_error
from calibrant.registry import calibrators
from calibrant.simulate import (
    Adversary,
    Bernoulli,
    Coins,
    Drifting,
    Games,
    GreedyAccuracy,
    GreedyCalibration,
    Informed,
    Linear,
    Logistic,
    Periodic,
    Threshold,
    adversaries,
    games,
    play,
    play_many,
)
from calibrant.simulate.adversary import BuiltInAdversary

pytestmark = pytest.mark.slow

FAILURE = 1e-9
SEEDS = 6
MEASURES = ("c1", "c2", "pseudo_c1", "pseudo_c2", "loss", "mean_loss", "raw_loss")


@dataclass(frozen=True)
class Rule:
    """A calibrator with the sizes at which it is played."""

    method: str
    options: tuple[tuple[str, Any], ...] = ()
    resolution: int = 20
    rounds: int = 10_000

    def __str__(self) -> str:
        return "-".join([self.method, *(f"{value}" for _, value in self.options)])

    @property
    def calibrator(self) -> Calibrator:
        made: Calibrator = calibrators.get(self.method)(
            resolution=self.resolution, **dict(self.options)
        )
        return made

    def games(self, forecaster: Any, adversary: Any, **options: Any) -> Games:
        sizes = {"rounds": self.rounds, "seeds": SEEDS} | options
        return play_many(self.calibrator, forecaster, adversary, **sizes)


FIXED = (("step", "fixed"), ("horizon", 10_000))
ALL_PAIRS = {"resolution": 4}
RULES = [
    Rule("foster_hart"),
    Rule("foster_hart", (("grid", "midpoints"),)),
    Rule("foster_hart", (("grid", "arcsine"),)),
    Rule("anchored"),
    Rule("anchored", (("strength", 1.0), ("grid", "midpoints"))),
    Rule("foster99"),
    Rule("foster99", (("grid", "midpoints"),)),
    Rule("regret_matching"),
    Rule("regret_matching", (("grid", "logit"),)),
    Rule("blackwell"),
    Rule("blackwell", (("step", "sqrt"),)),
    Rule("blackwell", FIXED),
    Rule("blackwell", (*FIXED, ("updates", "expected"))),
    Rule("exponential_regret", **ALL_PAIRS),
    Rule("exponential_regret", (("horizon", 10_000), ("updates", "realised")), **ALL_PAIRS),
    Rule("polynomial_regret", **ALL_PAIRS),
    Rule("polynomial_regret", (("updates", "expected"),), **ALL_PAIRS),
    Rule("growing", resolution=2),
]
RULES += [
    Rule(name, **(ALL_PAIRS if registered.on_all_cells(name) else {}))
    for name in calibrators.names()
    if registered.bounded(name) and name not in {rule.method for rule in RULES}
]
SETUPS = [(1, 0), (1, 1), (5, 0), (5, 1)]
"""Buckets and prior."""

KERNELS = [
    name for name in adversaries.names() if issubclass(adversaries.get(name), BuiltInAdversary)
]

players = pytest.mark.parametrize("adversary", KERNELS)
rules = pytest.mark.parametrize("rule", RULES, ids=str)


def forecaster_for(adversary: str, buckets: int) -> Any:
    """Raw forecasts that know something where there is something to know."""
    if buckets == 1 or not adversaries.get(adversary)().reveal(Coins(0, 0)):
        return "uniform"
    return Informed(0.1, 0.8)


def measured(games: Games, quantity: str) -> NDArray[np.float64]:
    found: NDArray[np.float64] = getattr(games, quantity.lower().replace(" ", "_"))[:, -1]
    return found


def likely(rule: Rule, buckets: int, prior: int) -> float | None:
    """The bound of a single game that fails with probability 1e-9; None for a sure one.

    Infinite where a theorem of another kind speaks of the mean alone.
    """
    made, T = rule.calibrator, rule.rounds
    grid, told = made.lattice, dict(rule.options)
    sizes = {"rounds": T, "cells": grid.cells, "half_cell": grid.half_cell, "buckets": buckets}
    if made.bound(T).quantity.startswith("pseudo"):  # type: ignore[union-attr]
        return None
    if rule.method == "foster99":
        return _likely_foster99(sizes, prior)
    if rule.method in ("anchored", "blackwell", "growing"):
        expected: Bound = made.bound(T, buckets=buckets, prior=prior)  # type: ignore[assignment]
        return expected.value + bounds.azuma(T, FAILURE)
    if "horizon" in told:
        sizes["step"] = "fixed"
    if rule.method in ("exponential_regret", "polynomial_regret"):
        sizes["realised"] = True
    if rule.method not in bounds.theorem_names():
        return math.inf
    return bounds.theorem(rule.method)(**sizes, prior=prior, failure=FAILURE).value


def _likely_foster99(sizes: dict[str, Any], prior: int) -> float:
    """Azuma's inequality for the potential of the proof: T more of it cost its root."""
    T, k = sizes["rounds"], min(sizes["cells"] * sizes["buckets"], sizes["rounds"])
    slow = sizes["half_cell"] + math.sqrt(k * (1.0 + math.log(T / k)) / T)
    value = max(bounds.foster99(**sizes, prior=prior).value, slow)
    return value + math.sqrt((1.0 + prior * k / T) * bounds.azuma(T, FAILURE))


@players
@rules
def test_every_calibrator_stays_below_its_bound(rule: Rule, adversary: str) -> None:
    for buckets, prior in SETUPS:
        games = rule.games(
            forecaster_for(adversary, buckets), adversary, buckets=buckets, prior=prior
        )
        bound = rule.calibrator.bound(rule.rounds, buckets=buckets, prior=prior)
        assert bound is not None
        assert_below(measured(games, bound.quantity), bound, likely(rule, buckets, prior))


def assert_below(errors: NDArray[np.float64], bound: Bound, most: float | None) -> None:
    if most is None:
        assert errors.max() <= bound.value
    else:
        spread = 6.0 * errors.std(ddof=1) / math.sqrt(len(errors))
        assert errors.mean() <= bound.value + spread
        assert errors.max() <= most


@functools.cache
def learned_streams() -> list[tuple[NDArray[np.float64], NDArray[np.uint8]]]:
    """Raw forecasts of a learner and outcomes that do not depend on what is made of them."""
    games = [play(Recalibrator(seed=0), Logistic(), Linear(), 2_000, seed=s) for s in range(4)]
    return [(game.raw, game.outcomes) for game in games]


@rules
def test_every_calibrator_stays_below_its_bound_behind_a_learner(rule: Rule) -> None:
    rule = Rule(rule.method, rule.options, rule.resolution, 2_000)
    for buckets, prior in SETUPS[::3]:
        bound = rule.calibrator.bound(2_000, buckets=buckets, prior=prior)
        assert bound is not None
        # Errors of mixtures are not kept by a replay; in the mean those of draws are larger.
        most = likely(rule, buckets, prior)
        if most is None:
            bound = bounds.drawn(bound, 2_000, rule.calibrator.lattice.cells, buckets=buckets)
            most = math.inf
        power = 1 if bound.quantity == "C1" else 2
        errors = []
        for seed, (raw, outcomes) in enumerate(learned_streams()):
            fresh = Recalibrator(rule.calibrator, buckets=buckets, prior=prior, seed=seed)
            forecast = fresh.replay(raw, outcomes).forecast
            errors.append(calibration_error(forecast, outcomes, power=power))
        assert_below(np.array(errors), bound, most)


@players
@pytest.mark.parametrize("rule", [RULES[0], RULES[5], RULES[9]], ids=str)
def test_the_regret_to_the_raw_forecast_stays_below_its_bound(rule: Rule, adversary: str) -> None:
    buckets = 10
    games = rule.games(forecaster_for(adversary, buckets), adversary, buckets=buckets)
    bound = rule.calibrator.bound(rule.rounds, buckets=buckets, prior=1)
    assert bound is not None
    regret = (games.loss - games.raw_loss)[:, -1]
    spread = 6.0 * regret.std(ddof=1) / math.sqrt(SEEDS)
    assert regret.mean() <= bounds.regret_bound(bound, "squared", buckets).value + spread


def test_every_calibrator_with_a_bound_is_played() -> None:
    bounded = set(filter(registered.bounded, calibrators.names()))
    assert bounded == {rule.method for rule in RULES}
    assert bounded != set(calibrators.names())


@pytest.mark.parametrize("adversary", ["threshold", "greedy_calibration", "greedy_accuracy"])
def test_the_baseline_without_a_bound_fails_where_the_others_do_not(adversary: str) -> None:
    baseline = Rule("running_mean").games("constant", adversary)
    assert baseline.c1.min() > 0.4
    assert baseline.c2.min() > 0.2
    for rule in RULES[:11]:
        games = rule.games("constant", adversary)
        assert games.c1.max() < 0.08
        assert games.c2.max() < 0.02


@players
def test_compiled_games_are_the_plain_ones_bit_for_bit(
    adversary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rule in RULES:
        short = Rule(rule.method, rule.options, 6, 40)
        sizes = {"buckets": 3, "seeds": 2, "checkpoints": [1, 17, 40]}
        plain = short.games(forecaster_for(adversary, 3), adversary, **sizes)
        with monkeypatch.context() as patch:
            patch.setattr(games, "SHORT", 0)
            compiled = short.games(forecaster_for(adversary, 3), adversary, **sizes)
        for name in MEASURES:
            assert getattr(plain, name).tolist() == getattr(compiled, name).tolist(), name


# ---------------------------------------------------- measured ranges, N = 20 and T = 20,000


LONG = 20_000
RANGES = [
    (Rule("foster_hart", (), 20, LONG), "C2", 0.0089, 0.00005, 0.0015),
    (Rule("regret_matching", (), 20, LONG), "C1", 0.0583, 0.0002, 0.033),
    (Rule("blackwell", (("step", "fixed"), ("horizon", LONG)), 20, LONG),
     "C1", 0.0575, 0.004, 0.029),
    (Rule("blackwell", (("step", "sqrt"),), 20, LONG), "C1", 0.117, 0.010, 0.037),
]  # fmt: skip
STREAMS: list[Adversary] = [
    Threshold(),
    Bernoulli(0.5),
    Periodic((0, 1)),
    GreedyCalibration(),
    Drifting(length=LONG),
]


@pytest.mark.parametrize(("rule", "quantity", "promised", "low", "high"), RANGES, ids=str)
def test_the_errors_of_long_games_are_where_they_were_measured(
    rule: Rule, quantity: str, promised: float, low: float, high: float
) -> None:
    bound = rule.calibrator.bound(LONG)
    assert bound is not None
    assert bound.quantity == quantity
    assert bound.value == pytest.approx(promised, rel=0.01)
    means = [
        measured(rule.games("constant", stream, prior=0, seeds=5), quantity).mean()
        for stream in STREAMS
    ]
    assert min(means) >= low
    assert max(means) <= high < promised


def test_regret_matching_stops_at_half_a_cell_where_the_average_gap_does_not() -> None:
    sizes = {"prior": 0, "rounds": LONG}
    slack = Rule("regret_matching", (), 10).games("constant", Threshold(), **sizes)
    exact = Rule("foster_hart", (), 10).games("constant", Threshold(), **sizes)
    assert slack.c1.mean() == pytest.approx(0.05, abs=0.012)
    assert exact.c1.mean() < 0.002


def test_the_two_aims_of_greedy_accuracy_differ() -> None:
    rule = Rule("foster_hart")
    regret = rule.games("uniform", GreedyAccuracy("regret"), buckets=10)
    loss = rule.games("uniform", GreedyAccuracy("loss"), buckets=10)
    assert (regret.loss - regret.raw_loss).min() > (loss.loss - loss.raw_loss).max() + 0.05
    assert loss.loss.min() > regret.loss.max() + 0.03


# --------------------------------------------------------------------------------- rates


HORIZONS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000]


@functools.cache
def slopes(adversary: Adversary) -> tuple[float, float]:
    """Slopes of C1 and C2 against T on logarithmic axes, with N the cube root of T."""
    errors = []
    for T in HORIZONS:
        rule = Rule("foster_hart", (), round(T ** (1 / 3)), T)
        games = rule.games("constant", adversary, prior=0, seeds=8)
        errors.append((games.c1.mean(), games.c2.mean()))
    c1, c2 = np.polyfit(np.log(HORIZONS), np.log(errors), 1)[0]
    return float(c1), float(c2)


def test_errors_fall_at_the_rate_of_the_theorem_against_the_greedy_adversary() -> None:
    c1, c2 = slopes(GreedyCalibration())
    assert -0.45 < c1 <= -0.28
    assert -0.85 < c2 <= -0.58


def test_errors_fall_faster_on_independent_outcomes() -> None:
    c1, c2 = slopes(Bernoulli(0.5))
    assert c1 < slopes(GreedyCalibration())[0] - 0.03
    assert c2 < slopes(GreedyCalibration())[1] - 0.03


# The rules over all pairs at the size of the others.


@pytest.mark.parametrize(
    "adversary",
    [Threshold(), Bernoulli(0.3), Periodic((0, 1)), GreedyCalibration(), Drifting()],
    ids=lambda adversary: adversary.name,
)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("exponential_regret", {}),
        ("exponential_regret", {"horizon": 20_000, "updates": "realised"}),
        ("polynomial_regret", {}),
        ("polynomial_regret", {"updates": "expected"}),
    ],
    ids=str,
)
def test_all_pairs_of_a_fine_grid_stay_below_their_bounds(name, options, adversary) -> None:
    rule = calibrators.get(name)(resolution=20, **options)
    games = play_many(rule, "constant", adversary, rounds=20_000, seeds=2, buckets=1, prior=0)
    bound = rule.bound(20_000)
    measured = getattr(games, bound.quantity.lower().replace(" ", "_"))[:, -1]
    # In the mean for realised updates; two games are far enough below for each to be.
    assert measured.max() <= bound.value
    assert rule.lattice.cells == 21
