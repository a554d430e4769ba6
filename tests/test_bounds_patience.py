"""The least patience: what the proof asks of it, and where less is refused."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from calibrant import Calibrant, Recalibrator, bounds
from calibrant.errors import InvalidInput
from calibrant.registry import calibrators

LEAST = 2.85
BELOW = [float(np.nextafter(LEAST, 0.0)), 2.84, 2.0, 0.0, -1.0]
SIZES = {
    "rounds": 100,
    "cells": 3,
    "half_cell": 0.25,
    "counts": [[5, 0, 7]],
    "resolution": 2,
    "doublings": 0,
    "values": [0.0, 0.5, 1.0],
    "variance": 1.0,
    "logs": 1.0,
    "delay": 1,
    "lag": 1,
    "missing": 1,
}

THEOREMS = [
    name
    for name in bounds.__all__
    if inspect.isfunction(getattr(bounds, name))
    and "patience" in inspect.signature(getattr(bounds, name)).parameters
]
RULES = [
    name
    for name in calibrators.names()
    if "patience" in inspect.signature(calibrators.get(name)).parameters
]


def called(name, **options):
    """Call a theorem with sizes that fit each other, and these options."""
    theorem = getattr(bounds, name)
    known = inspect.signature(theorem).parameters
    return theorem(**{key: size for key, size in SIZES.items() if key in known}, **options)


def refusal(call, *arguments, **options):
    with pytest.raises(InvalidInput) as refused:
        call(*arguments, **options)
    return str(refused.value)


def test_all_that_take_a_patience_are_here() -> None:
    assert {"anchored", "growing", "anchored_measured", "growing_regret"} <= set(THEOREMS)
    assert {"anchored", "fading", "growing"} <= set(RULES)


# Where the proof needs it.


def enough(patience):
    """The proof's condition: the curvature of p is paid for by what the pull leaves over."""
    return 2 * math.exp(1 / patience) <= patience


def test_the_least_patience_is_where_the_proofs_condition_begins_rounded_up() -> None:
    """2 exp(1/R) = R has the one solution 1/W(1/2), with W Lambert's function: 2.84306."""
    root = 1 / float(lambertw(0.5).real)
    assert root == pytest.approx(2.84306, abs=5e-6)
    assert enough(root + 1e-9)
    assert not enough(root - 1e-9)
    assert math.ceil(100 * root) / 100 == LEAST


@given(st.floats(LEAST, 1e6))
def test_the_condition_holds_from_the_least_patience_on(patience) -> None:
    assert enough(patience)


@given(st.floats(0.01, 2.843))
def test_the_condition_fails_below_its_threshold(patience) -> None:
    assert not enough(patience)


def potential(regret, patience):
    """p of the proof, for a strength of 1."""
    return patience * math.exp(regret / patience) if regret < 0 else patience + regret


def overshoot(regret, patience, grown):
    """What the derivative leaves out of p's growth, for a pull of 1 before the round."""
    pull = math.exp(min(regret / patience, 0.0))
    rise = potential(regret + grown, patience) - potential(regret, patience)
    return (rise - pull * grown) / pull


@given(st.floats(-60, 30), st.floats(0.5, 50), st.floats(-1, 1))
def test_the_derivative_leaves_out_no_more_than_the_curvature(regret, patience, grown) -> None:
    allowed = math.exp(1 / patience) / (2 * patience) * grown**2
    assert overshoot(regret, patience, grown) <= allowed + 1e-9 * patience


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 1))
def test_a_round_changes_the_regret_by_twice_the_distance_at_most(mean, anchor, y) -> None:
    grown = (mean - y) ** 2 - (anchor - y) ** 2
    assert abs(grown) <= min(1, 2 * abs(mean - anchor)) + 1e-12


@given(st.floats(-60, 30), st.floats(0, 1), st.floats(0, 1), st.integers(0, 1))
def test_the_step_of_the_proof_holds_with_the_least_patience(regret, mean, anchor, y) -> None:
    grown = (mean - y) ** 2 - (anchor - y) ** 2
    assert overshoot(regret, LEAST, grown) <= (mean - anchor) ** 2 + 1e-12


def test_the_step_of_the_proof_fails_with_a_patience_below_two() -> None:
    """Near an end of [0, 1] the regret grows by twice the distance, and p curves by 1/R."""
    grown = (0.99 - 0) ** 2 - (0.98 - 0) ** 2
    assert overshoot(-30.0, 1.9, grown) > 0.01**2


# Where less is refused.


@pytest.mark.parametrize("name", THEOREMS)
def test_a_theorem_refuses_less_and_takes_the_least(name) -> None:
    for patience in BELOW:
        text = f"patience must be a finite number of at least 2.85, got {patience!r}"
        assert refusal(called, name, patience=patience) == text
    assert float(called(name, patience=LEAST)) > 0.0


@pytest.mark.parametrize("name", RULES)
def test_a_rule_refuses_less_and_takes_the_least(name) -> None:
    rule = calibrators.get(name)
    for patience in BELOW:
        text = f"patience must be at least 2.85, got {patience!r}"
        assert refusal(rule, patience=patience) == text
        for kind in (Recalibrator, Calibrant):
            assert refusal(kind, method=name, patience=patience) == text
    assert rule(patience=LEAST).patience == LEAST
