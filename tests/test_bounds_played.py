"""Small games against the calibrators themselves, solved exactly: no adversary beats a theorem.

The adversary sees the state, picks the raw forecast of the round from a few, sees the mixture,
and picks the outcome; the draw falls by the mixture.  All of them are tried, to the last round.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import players
import pytest
from naive_bounds import c1, c2, empty, played

from calibrant.calibrators import Account
from calibrant.kernels.layout import MIXED
from calibrant.registry import calibrators

ANCHORS = (0.3, 0.8)
FAINT = {"strength": 0.02, "patience": 2.85}
"""Hardly any pull, so that a few rounds are enough for a bound below what is trivial."""
LENGTHS = [3, pytest.param(4, marks=pytest.mark.slow)]
ERRORS = {"C1": c1, "C2": c2}


def joins(name):
    """Whether a rule mixes two points and has a theorem about its draws."""
    rule = calibrators.get(name)()
    promised = rule.bound(1)
    return not rule.kernels.full_support and promised is not None and promised.quantity in ERRORS


NAMES = [name for name in calibrators.names() if joins(name)]
PULLED = [name for name in NAMES if calibrators.get(name).kernels.anchored]


def made(name, resolution, **options):
    """A rule with the options that it has; ``growing`` with little room to grow."""
    rule = calibrators.get(name)
    known = {field.name for field in dataclasses.fields(rule)}
    given = {"doublings": 1} | options
    return rule(resolution=resolution, **{k: v for k, v in given.items() if k in known})


@dataclass(frozen=True)
class Position:
    """Where a game stands: the rule's state, and what can be counted without it.

    ``tally`` has for each cell how often it was drawn and how many of its outcomes were 1;
    ``regret`` is how much more the mean forecasts lost than the raw ones.
    """

    state: Any
    tally: tuple[tuple[int, int], ...]
    regret: float = 0.0


def aimed(state, raw):
    """The state with the raw forecast of the round written where the rule looks for it."""
    after = state.copy()
    after.view(np.float64)[MIXED] = raw
    return after


def opening(rule):
    return Position(rule.start(), empty(rule.lattice.values))


def advanced(rule, position, raw, cell, y, mixture=None):
    """The position after one more round, told which cell was drawn and what came."""
    state = aimed(position.state, raw)
    lost = ((mixture or rule.forecast(state)).mean - y) ** 2 - (raw - y) ** 2
    tally = played(position.tally, cell, y)
    return Position(rule.update(state, cell, y), tally, position.regret + lost)


def nothing(*_):
    return 0.0


def game_value(rule, rounds, payoff, *, gain=nothing, anchors=ANCHORS, begin=None):
    """The largest expected payoff at the end, plus what each round brought.

    ``payoff(position)`` must follow from the state and ``gain(position, cell, raw, outcome)`` from
    what is known when the outcome comes, for states that were met before are not played again.
    """
    met: dict[tuple[bytes, int], float] = {}

    def value(position, left):
        if left == 0:
            return payoff(position)
        key = position.state.tobytes(), left
        if key not in met:
            met[key] = max(best(position, raw, left) for raw in anchors)
        return met[key]

    def best(position, raw, left):
        state = aimed(position.state, raw)
        mixture = rule.forecast(state)
        drawn = list(zip(mixture.indices, mixture.weights, strict=True))

        def after(cell, y):
            return advanced(rule, position, raw, cell, y, mixture)

        return max(
            sum(w * (gain(position, k, raw, y) + value(after(k, y), left - 1)) for k, w in drawn)
            for y in (0, 1)
        )

    return value(begin or opening(rule), rounds)


def error_of(rule, quantity):
    grid = [float(value) for value in rule.lattice.values]
    return lambda position: ERRORS[quantity](grid, position.tally)


def account_of(position):
    counts, ones = (np.array(column)[None] for column in zip(*position.tally, strict=True))
    block = position.state[players.block_of(position.state) :]
    return Account(counts, ones, 0, np.array([0.5]), block[None])


def field(name):
    """What the adversary may play as raw forecasts: rules that do not look at them get one."""
    return ANCHORS if name in PULLED else ANCHORS[:1]


def test_the_rules_with_two_points_and_a_theorem_join() -> None:
    assert {"anchored", "foster_hart", "growing", "regret_matching"} <= set(NAMES)
    assert {"anchored", "growing"} <= set(PULLED)


# The worst case, and what was counted.


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("resolution", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_no_adversary_pushes_the_error_above_the_worst_case(name, resolution, rounds) -> None:
    rule = made(name, resolution, **FAINT)
    promised = rule.bound(rounds)
    value = game_value(rule, rounds, error_of(rule, promised.quantity), anchors=field(name))
    assert 0.2 < value <= promised.value


@pytest.mark.slow
@pytest.mark.parametrize("name", PULLED)
def test_in_seven_rounds_the_worst_case_of_a_pulled_rule_is_below_what_is_trivial(name) -> None:
    rule = made(name, 1, **FAINT)
    promised = rule.bound(7).value
    assert promised < 1.0
    assert 0.3 < game_value(rule, 7, error_of(rule, "C2"), anchors=(0.3,)) <= promised


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("grid", ["endpoints", "midpoints"])
@pytest.mark.parametrize("resolution", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_no_adversary_pushes_c2_above_what_is_promised_for_the_counts(
    name, resolution, grid, rounds
) -> None:
    rule = made(name, resolution, grid=grid, **FAINT)
    if rule.bound(1).quantity == "C2":
        error = error_of(rule, "C2")

        def beyond(position):
            return error(position) - rule.measured(account_of(position)).value

        assert -1.0 < game_value(rule, rounds, beyond, anchors=field(name)) <= 1e-12


# Accuracy: what the draws and the means lose beyond the raw forecasts.


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("strength", [4.0, 50.0])
@pytest.mark.parametrize("resolution", [1, 2, 3])
@pytest.mark.parametrize("name", PULLED)
def test_no_adversary_makes_the_draws_lose_more_than_promised(
    name, resolution, strength, rounds
) -> None:
    rule = made(name, resolution, strength=strength)
    values = rule.lattice.values

    def lost(position, cell, raw, y):
        return ((values[cell] - y) ** 2 - (raw - y) ** 2) / rounds

    def promised(position):
        return rule.regret(account_of(position)).value

    assert game_value(rule, rounds, lambda p: -promised(p), gain=lost) <= 1e-12
    finest = resolution << rule.doublings
    assert game_value(rule, rounds, nothing, gain=lost) > 0.5 / (2 * finest) ** 2


def harmonic(position):
    return sum(1 / t for n, _ in position.tally for t in range(1, n + 1))


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("grid", ["endpoints", "midpoints"])
@pytest.mark.parametrize("strength", [1.0, 50.0])
@pytest.mark.parametrize("name", PULLED)
def test_no_adversary_makes_the_means_lose_more_than_calibration_leaves(
    name, strength, grid, rounds
) -> None:
    """c E[R] <= T f + sum H(n) - E[T C2], with the C2 that the certificate leaves out."""
    rule = made(name, 2, strength=strength, grid=grid)
    error = error_of(rule, "C2")

    def beyond(position):
        left = harmonic(position) - rounds * error(position)
        return strength * position.regret - rounds * floor_of(rule) - left

    assert game_value(rule, rounds, beyond) <= 1e-12


def test_on_a_grid_that_stays_away_from_the_ends_half_a_cell_squared_is_not_enough() -> None:
    """Raw forecasts of 0 and 1 that come true cost the only cell, 1/2, more than h^2."""
    rule, rounds = made("anchored", 1, strength=4.0, grid="midpoints"), 3
    error = error_of(rule, "C2")

    def beyond(position, floor):
        left = harmonic(position) - rounds * error(position)
        return rule.strength * position.regret - rounds * floor - left

    enough, less = floor_of(rule), rule.lattice.half_cell**2
    assert game_value(rule, rounds, lambda p: beyond(p, less), anchors=(0.0, 1.0)) > 0.5
    assert game_value(rule, rounds, lambda p: beyond(p, enough), anchors=(0.0, 1.0)) <= 0.0


# The potential of the proof: what it gains beyond its last terms is the floor, at most.


def floor_of(rule):
    """f of the theorem, before any grid has grown; midpoints stay away from both ends."""
    half = 1 / (2 * rule.resolution)
    return half**2 * (1 if rule.grid == "endpoints" else 1 + 2 * rule.strength)


def potential_of(rule):
    c, R0 = rule.strength, rule.patience
    error = error_of(rule, "C2")

    def potential(position):
        regret, rounds = position.regret, sum(n for n, _ in position.tally)
        p = c * R0 * math.exp(regret / R0) if regret < 0 else c * (R0 + regret)
        return rounds * error(position) + p - c * R0

    return potential


def last_term_of(rule):
    """(y - r)^2/(n + 1) with r the frequency at the cell so far: the theorem puts 1/(n + 1)."""

    def term(position, cell, raw, y):
        n, ones = position.tally[cell]
        frequency = ones / n if n else rule.lattice.values[cell]
        return -((y - frequency) ** 2) / (n + 1)

    return term


@pytest.mark.parametrize("rounds", LENGTHS)
@pytest.mark.parametrize("options", [FAINT, {}, {"strength": 50.0, "patience": 20.0}])
@pytest.mark.parametrize("grid", ["endpoints", "midpoints"])
@pytest.mark.parametrize("resolution", [1, 2, 3])
@pytest.mark.parametrize("name", PULLED)
def test_no_adversary_raises_the_potential_by_more_than_the_floor_a_round(
    name, resolution, grid, options, rounds
) -> None:
    rule = made(name, resolution, grid=grid, **options)
    found = game_value(rule, rounds, potential_of(rule), gain=last_term_of(rule))
    assert found <= rounds * floor_of(rule) + 1e-12


@pytest.mark.parametrize("turn", [1, 2])
def test_while_the_grid_grows_the_potential_gains_what_each_grid_allows(turn) -> None:
    """From 28 rounds on, with 30 outcomes to the finer grid: two rounds on each."""
    rule = made("growing", 1)
    begin = opening(rule)
    for t in range(28):
        mixture = rule.forecast(aimed(begin.state, 0.4))
        begin = advanced(rule, begin, 0.4, mixture.indices[t % turn], int(t % 3 == 0))
    potential = potential_of(rule)
    found = game_value(rule, 4, potential, gain=last_term_of(rule), begin=begin)
    assert rule.forecast(begin.state).indices == (0, 2)
    assert found - potential(begin) <= 2 / 4 + 2 / 16 + 1e-12
