"""What certificates promise of the run at hand, from when on, and in which words."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.bounds import foster_hart, foster_hart_measured
from calibrant.bounds.game import ESTIMATED, EXPECTED, PATHWISE, azuma, by_chance, estimated
from calibrant.recalibrate.promise import LATEST, first_round, promised, tally, too_early
from calibrant.registry import calibrators
from calibrant.transforms import Identity

PROMISING = [name for name in calibrators.names() if calibrators.get(name)().bound(10) is not None]


def played(rec: Recalibrator, rounds: int, seed: int = 1) -> Recalibrator:
    rng = np.random.default_rng(seed)
    chance = rng.random(rounds)
    rec.replay(chance, rng.random(rounds) < chance**2)
    return rec


# From when on.


@pytest.mark.parametrize("method", PROMISING)
def test_a_few_rounds_are_too_early_and_hold_nothing(method: str) -> None:
    made = played(Recalibrator(method, buckets=1, resolution=4, seed=1), 2).certificate()
    assert made.holds is None
    assert made.early is not None
    assert str(made).splitlines()[2] == f"  {too_early(made.early)}"
    assert "<=" not in str(made)


@pytest.mark.parametrize("method", PROMISING)
def test_a_promise_has_begun_by_the_round_that_was_told(method: str) -> None:
    sizes = {"buckets": 1, "resolution": 4}
    first = played(Recalibrator(method, seed=1, **sizes), 2).certificate().early
    made = played(Recalibrator(method, seed=1, **sizes), first).certificate()
    assert made.early is None
    assert made.holds is True
    assert min(made.promised("C1") or 1.0, made.promised("C2") or 1.0) < 1.0


def test_the_worst_case_says_nothing_one_round_sooner() -> None:
    rec = played(Recalibrator(buckets=2, resolution=5, prior=0, seed=1), 3)
    first, rule = rec.certificate().early, rec.calibrator
    about = [rule.bound(n, buckets=2, failure=0.025).value for n in (first - 1, first)]
    assert about[1] < 1.0 <= about[0]


def test_a_promise_that_never_comes_is_not_dated() -> None:
    assert first_round(lambda rounds: rounds > 4 * LATEST, 1) is None
    assert too_early(None) == "too early to promise anything"


def test_two_rounds_of_the_default_promise_nothing() -> None:
    model = Calibrant(seed=7)
    for raw, outcome in [(0.83, 1), (0.79, 0)]:
        model.observe(model.forecast(raw), outcome)
    made = model.certificate()
    assert made.holds is None
    assert [made.promised(name) for name in ("C1", "C2", "regret")] == [None] * 3
    assert len(str(made).splitlines()) == 3
    assert "too early" in str(made)


def test_a_link_that_is_broken_is_told_however_early() -> None:
    made = played(Calibrant(seed=7), 3000).certificate()
    assert made.holds is True
    link = made.links[0]
    broken = type(link)(link.expert, link.weight, link.loss, 0.5, link.bound)
    assert type(made)(**{**vars(made), "links": (broken,)}).holds is False


def test_regret_to_the_raw_forecast_adds_up_both_links() -> None:
    made = played(Calibrant(seed=7), 3000).certificate()
    own = min(bound.value for bound in made.sure if bound.quantity == "regret")
    raw = next(link.bound for link in made.links if link.expert == "identity")
    assert made.promised("regret") == own + raw
    small = type(made)(**{**vars(made), "most_regret": own + raw / 2})
    assert small.promised("regret") is None


@pytest.mark.parametrize(
    ("loss", "most"),
    [("squared", (1.0 - 2.0**-14) ** 2), ("log", 14.0 * math.log(2.0))],
)
def test_regret_is_compared_with_the_most_a_draw_can_lose(loss: str, most: float) -> None:
    made = played(Calibrant(loss=loss, seed=1), 100).certificate()
    assert made.most_regret == pytest.approx(most)


# What each number is.


def test_bounds_from_counts_are_called_estimates() -> None:
    made = played(Recalibrator(seed=1), 200).certificate()
    kinds = [bound.assumption for bound in made.bounds]
    assert set(kinds) == {EXPECTED, ESTIMATED}
    worst, counted_in = foster_hart(100, 11, 0.05), foster_hart_measured([60, 40], 0.05)
    assert estimated(counted_in).assumption == ESTIMATED
    assert estimated(None) is None
    assert estimated(worst).value == worst.value


def test_what_is_true_of_every_run_is_no_estimate() -> None:
    made = played(Recalibrator("blackwell", updates="expected", seed=1), 200).certificate()
    assert {b.assumption for b in made.bounds if b.quantity == "pseudo C1"} == {PATHWISE}


@pytest.mark.parametrize("method", PROMISING)
def test_every_clause_is_said_once(method: str) -> None:
    for rounds in (3, 600):
        told = played(Recalibrator(method, seed=1), rounds).certificate().details().splitlines()
        clauses = [line for line in told if line.endswith(":")]
        assert len(clauses) == len(set(clauses)) > 0


def test_details_tell_every_bound_and_none_that_says_nothing() -> None:
    made = played(Recalibrator(seed=1), 3000).certificate()
    for bound in (*made.sure, *made.bounds):
        assert f"{bound.quantity} <= {bound.value:.4g}" in made.details()
    early = played(Recalibrator(prior=0, seed=1), 3).certificate().details()
    assert "C2 not limited yet" in early
    assert "<=" not in early


# Numbers of rounds that nobody fixed.


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8, 9, 1000, 10**6])
def test_rounds_left_to_chance_pay_for_every_power_of_two(rounds: int) -> None:
    j = math.ceil(math.log2(rounds))
    share = 0.05 / ((j + 1) * (j + 2))
    needed = math.sqrt(2 * 2**j * math.log(1 / share)) / rounds
    assert azuma(rounds, by_chance(0.05, rounds)) >= needed
    assert sum(1 / ((k + 1) * (k + 2)) for k in range(60)) <= 1.0


# Outcomes that never come.


def selective(rounds: int) -> Recalibrator:
    """Play fair coins of which only those are reported that a draw makes look bad."""
    rec, rng = Recalibrator(buckets=1, resolution=10, max_open=10, seed=3), random.Random(5)
    for _ in range(rounds):
        ticket, outcome = rec.forecast(0.5), int(rng.random() < 0.5)
        if outcome == (ticket.value < ticket.mean or ticket.value == 0.0):
            rec.observe(ticket, outcome)
    return rec


def test_reports_that_look_at_the_draw_break_the_promise_and_the_certificate_warns() -> None:
    rec = selective(12_000)
    made = rec.certificate()
    assert made.c2 > 0.2
    assert made.c2 > made.promised("C2")
    assert made.holds is False
    assert made.expired == rec.issued - rec.rounds - rec.open > 1000
    head = str(made).splitlines()[0]
    assert f"{made.expired} expired without an outcome" in head
    assert "no promise holds if draws decide which outcomes are reported" in head


def test_nothing_is_said_of_reports_while_none_is_missing() -> None:
    assert "reported" not in str(played(Recalibrator(seed=1), 50).certificate())
    assert tally(3, 2, 0) == "3 rounds, 2 open, 0 expired"
    assert tally(3, 2, 1).startswith("3 rounds, 2 open, 1 expired without an outcome;")


@pytest.mark.parametrize(("holds", "word"), [(True, "kept"), (False, "exceeded")])
def test_a_promise_says_whether_it_was_kept(holds: bool, word: str) -> None:
    assert promised({"C2": 0.5}, 0.05, holds).endswith(f"C2 <= 0.5; {word}")
    assert promised({"C1": 0.5}, None, holds).startswith("promised for any outcomes whatsoever")


def test_a_budget_that_was_not_needed_is_told_before_the_promise() -> None:
    own = {"method": "anchored", "resolution": 20, "grid": "endpoints"}
    model = Calibrant(Identity(), **own, raw_safe=0.1, seed=1)
    for k in range(300):
        # The raw forecast lies on the grid, so that nothing can be lost to it.
        model.observe(model.forecast(1.0), int(k % 50 > 0))
    made = model.certificate()
    assert made.budget.fallbacks == 0
    assert made.promised("regret") == 0.1
    last = str(made).splitlines()[2]
    assert last.startswith("  loss beyond raw ")
    assert "surely; promised with probability 0.95" in last
