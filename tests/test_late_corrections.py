"""Outcomes that are corrected late, or come between a look and its round, in every kind of stream.

Until the last word about a round it is outstanding, and promises know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.classes import OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.groups import GroupRecalibrator
from calibrant.kernels import crowd
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator

THREE = [0.5, 0.3, 0.2]
CURVE = Distribution.from_quantiles([0.25, 0.5, 0.75], [-1.0, 0.0, 1.0])
KINDS: dict[str, tuple[Callable[[], Any], Any, Any, Any]] = {
    "recalibrator": (lambda: Recalibrator(seed=1), 0.4, 0, 1),
    "calibrant": (lambda: Calibrant(seed=1), 0.4, 0, 1),
    "groups": (lambda: GroupRecalibrator(seed=1), 0.4, 0, 1),
    "exponential groups": (lambda: GroupRecalibrator(form="exponential", seed=1), 0.4, 0, 1),
    "one vs rest": (lambda: OneVsRest(3, seed=1), THREE, 1, 2),
    "top label": (lambda: TopLabel(3, conditional=False, seed=1), THREE, 0, 1),
    "simplex": (lambda: SimplexRecalibrator(3, resolution=4, seed=1), THREE, 0, 1),
    "mixed": (lambda: QuantileRecalibrator("mixed", levels=3, seed=1), CURVE, -0.5, 3.0),
    "pit": (lambda: QuantileRecalibrator("pit", levels=3, seed=1), CURVE, -0.5, 3.0),
    "tracker": (lambda: QuantileRecalibrator("tracker", levels=3, seed=1), CURVE, -0.5, 3.0),
    "aci": (lambda: ConformalInterval("aci", seed=1), 0.0, 0.1, 4.0),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_corrected_round_was_outstanding_until_then(name) -> None:
    make, raw, wrong, right = KINDS[name]
    rec = make()
    tickets = [rec.observe(rec.forecast(raw), wrong) for _ in range(6)]
    assert rec.delay == 0
    rec.correct(tickets[5], right)
    assert rec.delay == 0
    rec.correct(tickets[1], right)
    assert rec.delay == (4 if name in ("one vs rest", "top label", "simplex") else 1)
    # Every part of the state still agrees with every other.
    assert type(rec).from_bytes(rec.to_bytes()) == rec


@pytest.mark.parametrize("name", ["groups", "top label", "simplex"])
def test_an_outcome_that_comes_between_a_look_and_its_round_was_late(name) -> None:
    make, raw, wrong, _ = KINDS[name]
    rec = make()
    ticket = rec.forecast(raw)
    rec.sample_one(raw)
    rec.observe(ticket, wrong)
    rec.learn_one(raw, wrong)
    assert rec.delay == 1


@pytest.mark.parametrize("method", ["growing", "anchored"])
def test_no_class_is_promised_anything_once_its_outcomes_were_wrong(method) -> None:
    rec = OneVsRest(3, method=method, seed=1)
    tickets = [rec.observe(rec.forecast(THREE), 1) for _ in range(6)]
    before = rec.certificate().parts
    assert all(part.bounds for part in before.values())
    rec.correct(tickets[0], 2)
    for name, part in rec.certificate().parts.items():
        # There is a theorem about one of them, and it says nothing after so few rounds.
        dearer = [bound.value for bound in part.bounds if bound.quantity == "C2"]
        assert bool(dearer) == (method == "anchored" or part.delay == 0)
        assert not dearer or part.delay == 0 or min(dearer) > 10 + before[name].bound("C2")


def test_outcomes_that_wait_together_are_compared_with_the_latest_less_those_before() -> None:
    words = [0.0] * 4
    words[crowd.TOGETHER], words[crowd.SQUARES] = 1.0, 2.0
    words[crowd.RECENT], words[crowd.EARLIER] = 3.0, 2.0
    crowd.compare(words, 0, 4.0, 0.5)
    kept = 1.0 - 1.0 / (crowd.LEAST_MEMORY + crowd.CROWDS * 4.0)
    assert words[crowd.TOGETHER] == kept + 0.5 * (3.0 - 0.5 * 2.0) / 4.0
    assert words[crowd.SQUARES] == 2.0 * kept + 0.25
    assert words[crowd.RECENT] == 3.0 * 0.75 + 0.5
    assert words[crowd.EARLIER] == 2.0 * 0.875 + 0.5
