"""Rules with an anchor, corrected: what the right outcome would have left, regret included."""

from __future__ import annotations

import math

import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.kernels.anchor import PULL, REGRET
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

METHODS = [name for name in calibrators.names() if calibrators.get(name).kernels.anchored]
ROUNDS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=25)


def regret_and_pull(rec) -> tuple[float, float]:
    """What the only bucket remembers of its losses, and how strongly its anchor pulls."""
    flat = rec._arena.snapshot()
    reals, at = flat.view(float), players.block_of(flat)
    return float(reals[at + REGRET]), float(reals[at + PULL])


def made(kind, method, resolution=4):
    return kind(method=method, buckets=1, resolution=resolution, seed=5)


def told(rec, rounds):
    """Forecast and observe, round by round; return the closed tickets."""
    return [rec.observe(rec.forecast(p), y) for p, y in rounds]


def recounted(tickets) -> float:
    """How much more the means lost than their anchors, by the outcomes that stand now."""
    return sum(
        (t.mean - t.outcome) ** 2 - ((t.raw if t.mixed is None else t.mixed) - t.outcome) ** 2
        for t in tickets
    )


def test_every_rule_with_an_anchor_is_here() -> None:
    assert {"anchored", "fading", "growing"} <= set(METHODS)


@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(rounds=ROUNDS, wrong=st.lists(st.integers(0, 24), max_size=6))
def test_after_corrections_the_regret_is_that_of_the_outcomes_that_stand(
    method, kind, rounds, wrong
) -> None:
    rec = made(kind, method)
    tickets = told(rec, rounds)
    for k in wrong:
        ticket = tickets[k % len(tickets)]
        rec.correct(ticket, 1 - ticket.outcome)
    regret, pull = regret_and_pull(rec)
    rule = rec.calibrator
    assert regret == pytest.approx(recounted(tickets), abs=1e-12)
    # A round that is corrected after later forecasts was outstanding until then.
    ages = [len(tickets) - 1 - k % len(tickets) for k in wrong]
    others = min(sum(age > 0 for age in ages), 10_000 // (1 + len(tickets)))
    patience = max(rule.patience * (1 + others), 2.0 * math.cbrt(others**2 * len(tickets)))
    assert pull == pytest.approx(rule.strength * math.exp(min(regret / patience, 0.0)))


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(rounds=ROUNDS, raw=st.floats(0, 1), times=st.integers(1, 3))
def test_a_latest_outcome_corrected_is_one_that_was_right_at_once(
    method, rounds, raw, times
) -> None:
    right, corrected = made(Recalibrator, method), made(Recalibrator, method)
    told(right, rounds)
    *before, (p, y) = rounds
    ticket = told(corrected, [*before, (p, 1 - y)])[-1]
    for outcome in [y, 1 - y] * (times - 1) + [y]:
        corrected.correct(ticket, outcome)
    assert regret_and_pull(corrected) == pytest.approx(regret_and_pull(right), abs=1e-12)
    assert corrected.forecast(raw).mean == pytest.approx(right.forecast(raw).mean, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_corrections_reach_back_to_before_the_grid_grew(method) -> None:
    raw, outcomes = players.stream(80, 3)
    rec = made(Recalibrator, method, resolution=1)
    tickets = told(rec, zip(raw, outcomes, strict=True))
    for ticket in tickets[:60:7]:
        rec.correct(ticket, 1 - ticket.outcome)
        assert regret_and_pull(rec)[0] == pytest.approx(recounted(tickets), abs=1e-12)


SOME = calibrators.names()


def corrected_later(method: str, rounds: int) -> Recalibrator:
    """Play outcomes of 1, each told as 0 at first and corrected once all forecasts were made."""
    rec = Recalibrator(method, buckets=1, resolution=10, seed=3)
    tickets = told(rec, [(0.3, 0)] * rounds)
    for ticket in tickets:
        rec.correct(ticket, 1)
    return rec


@pytest.mark.parametrize("method", SOME)
def test_outcomes_that_are_corrected_later_break_no_promise(method) -> None:
    rec = corrected_later(method, 400)
    made = rec.certificate()
    assert made.c2 > 0.2
    assert rec.delay == made.delay == 399
    assert made.bound("C2") is None or made.bound("C2") >= made.c2
    assert made.bound("C1") is None or made.bound("C1") >= made.c1
    assert (
        not made.bounds
        or calibrators.get(method).late
        or getattr(calibrators.get(method)(), "waits", False)
    )
    assert made.promised("C2") is None


@pytest.mark.parametrize("method", SOME)
def test_an_outcome_that_is_corrected_before_the_next_forecast_was_never_late(method) -> None:
    rec = Recalibrator(method, seed=3)
    for _ in range(50):
        rec.correct(rec.observe(rec.forecast(0.3), 0), 1)
    assert rec.delay == 0


@given(data=st.data())
def test_no_more_outcomes_were_ever_wrong_or_missing_than_delay_says(data) -> None:
    rec, waiting, closed = Recalibrator(buckets=1, seed=1), [], []
    final, known = {}, []  # When the last word about each round came; what was open at each.
    for step in range(data.draw(st.integers(1, 30))):
        act = data.draw(st.sampled_from(["forecast", "observe", "correct"]))
        if act == "observe" and waiting:
            found = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            closed.append(rec.observe(found, 0))
            final[found.number] = step
        elif act == "correct" and closed:
            found = closed[data.draw(st.integers(0, len(closed) - 1))]
            rec.correct(found, 1 - found.outcome)
            final[found.number] = step
        else:
            known.append(step)
            waiting.append(rec.forecast(0.5))
    late = [sum(known[s] < at < final.get(s, -1) for s in range(len(known))) for at in known]
    assert rec.delay >= max(late, default=0)


@pytest.mark.parametrize("method", SOME)
def test_an_outcome_that_comes_between_a_look_and_its_round_was_late(method) -> None:
    rec = Recalibrator(method, buckets=1, seed=3)
    for _ in range(3):
        ticket = rec.forecast(0.3)
        rec.sample_one(0.3)
        rec.observe(ticket, 1)
        rec.learn_one(0.3, 1)
    assert rec.delay == 1
