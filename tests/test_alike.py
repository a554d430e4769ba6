"""Outcomes that wait together: how much they are alike, and what they count if they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.late import crowd, score, shifted, streams
from benchmarks.quality import score as scores
from calibrant import Calibrant, bounds
from calibrant.datasets.loaders import load_recessions
from calibrant.errors import InvalidType
from calibrant.kernels import anchor
from calibrant.kernels import crowd as crowds
from calibrant.kernels.layout import SAME
from calibrant.transforms import ExpertMixture, Identity, OnlinePlatt, from_description

OWN = (Identity(), OnlinePlatt())


def followed(errors: np.ndarray, size: int) -> float:
    """As one of how many the next outcome counts, after these errors."""
    reals = list(crowds.FIRST)
    for error in errors.tolist():
        crowds.compare(reals, 0, float(size), error)
    return crowds.same_of(reals, 0, size - 1.0)


# How much outcomes are alike.


def test_before_the_first_outcome_all_that_wait_may_be_the_same() -> None:
    assert followed(np.zeros(0), 100) == 100.0


@pytest.mark.parametrize("size", [10, 100, 1_000])
def test_outcomes_of_a_crowd_count_as_about_one(size) -> None:
    rng = np.random.default_rng(size)
    found = [
        followed(np.repeat(rng.choice([-0.5, 0.5], 30), size)[: 30 * size - size // 2], size)
        for _ in range(10)
    ]
    assert min(found) > 0.4 * size
    assert np.mean(found) > 0.7 * size


@pytest.mark.parametrize("size", [2, 10, 100, 1_000])
def test_independent_outcomes_count_as_hardly_more_than_themselves(size) -> None:
    rng = np.random.default_rng(size)
    found = [followed(rng.choice([-0.5, 0.5], 30 * size + 1_000), size) for _ in range(10)]
    assert np.mean(found) < 3.0
    assert max(found) < 1.5 + 0.5 * math.sqrt(size)


def test_forecasts_that_are_all_off_by_the_same_are_not_a_crowd() -> None:
    rng = np.random.default_rng(5)
    found = [followed(0.2 + rng.choice([-0.5, 0.5], 4_000), 100) for _ in range(10)]
    assert np.mean(found) < 4.0


def test_half_a_crowd_counts_as_half() -> None:
    # Several games at a time: of those that wait, a part is the same.
    rng = np.random.default_rng(6)
    found = [followed(np.repeat(rng.choice([-0.5, 0.5], 200), 50), 200) for _ in range(10)]
    assert 25 < np.mean(found) < 100


def test_errors_of_zero_for_long_leave_no_number_undefined() -> None:
    reals = list(crowds.FIRST)
    reals[crowds.TOGETHER] = reals[crowds.SQUARES] = 0.0
    assert crowds.same_of(reals, 0, 7.0) == 8.0
    reals[crowds.TOGETHER] = -1.0
    assert crowds.same_of(reals, 0, 7.0) == 1.0


def test_experts_learn_a_root_of_independent_outcomes_and_little_of_the_same() -> None:
    assert crowds.part_of(100.0, 1.0, 0) == 0.1
    assert crowds.part_of(100.0, 5.0, 10**9) == 0.1
    assert crowds.part_of(100.0, 100.0, 10**9) == pytest.approx(0.01, rel=1e-3)
    believed = [1.0 / crowds.part_of(100.0, 100.0, n) for n in (0, 100, 10_000, 10**9)]
    assert believed == sorted(believed, reverse=True)
    # After as many results as are doubted, half.
    n = int(crowds.DOUBT * 99) - 1
    assert crowds.part_of(100.0, 100.0, n) == pytest.approx(0.005)


# What it is good for.


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 100, 1_000])
def test_results_that_many_forecasts_wait_for_leave_raw_forecasts_alone(size) -> None:
    found = np.array([score(crowd(30_000, size, seed), seed) for seed in range(20)])
    raw, mean, binned, c2 = found.T
    assert (mean - raw).mean() <= 0.001
    assert (c2 - binned).mean() <= 0.001


@pytest.mark.slow
def test_thirty_results_leave_raw_forecasts_alone() -> None:
    found = np.array([score(crowd(1_500, 50, seed), seed) for seed in range(60)])
    raw, mean, _, _ = found.T
    assert (mean - raw).mean() <= 0.001
    assert np.sort(mean - raw)[-6] <= 0.005


@pytest.mark.slow
def test_recession_probabilities_are_drawn_no_worse_calibrated_than_they_came() -> None:
    # A quarter's rows wait for one result; the bar is that of the quality panel.
    made = load_recessions()
    told = {"time": made.time, "available": made.available}
    runs = [Calibrant(seed=k).replay(made.raw, made.outcomes, **told) for k in range(10)]
    c2 = np.mean([scores.c2(run.forecast, made.outcomes) for run in runs])
    assert c2 <= scores.c2_in_bins(made.raw, made.outcomes)
    mean = np.mean([scores.brier(run.mean, made.outcomes) for run in runs])
    assert mean <= scores.brier(made.raw, made.outcomes) - 0.0005


def test_what_is_wrong_with_crowds_is_still_corrected() -> None:
    raw, mean, binned, c2 = score(crowd(6_000, 10, 1, slope=0.5), 1)
    assert mean <= raw - 0.005
    assert c2 <= binned / 2


def test_a_shift_is_corrected_though_all_outcomes_are_late() -> None:
    raw, mean, binned, c2 = score(shifted(6_000, 100, 1), 1)
    assert mean <= raw - 0.02
    assert c2 <= binned / 3


def test_what_an_outcome_counts_does_not_depend_on_it() -> None:
    model = Calibrant(seed=3)
    rng, waiting = np.random.default_rng(2), []
    for k in range(300):
        waiting.append(model.forecast(float(rng.random())))
        if k >= 12:
            model.observe(waiting.pop(0), int(rng.random() < 0.5))
    counted = []
    for outcome in (0, 1):
        other = model.copy()
        other.observe(waiting[0].id, outcome)
        counted.append(other._rows.state()[1][SAME])
    assert 1.0 <= counted[0] == counted[1] <= 13.0


def test_prompt_outcomes_leave_the_sums_alone() -> None:
    rng = np.random.default_rng(2)
    raw, outcomes = rng.random(200), rng.integers(0, 2, 200)
    one = Calibrant(OWN, seed=1)
    other = Calibrant(ExpertMixture(OWN, share=6e-4), seed=1)
    assert one.replay(raw, outcomes).mean.tolist() == other.replay(raw, outcomes).mean.tolist()
    model = Calibrant(OWN, seed=1)
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        model.observe(model.forecast(p), y)
    assert model == one


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_batches_and_restarts_follow_the_same_sums(loss) -> None:
    rng = np.random.default_rng(4)
    raw, outcomes, times = rng.random(90), rng.integers(0, 2, 90), np.arange(90.0)
    known = times // 15 * 15 + 15.0
    one, other = (Calibrant(OWN, loss=loss, seed=2) for _ in range(2))
    run = one.replay(raw, outcomes, time=times, available=known)
    means, due = [], []
    for t, (p, y) in enumerate(zip(raw.tolist(), outcomes.tolist(), strict=True)):
        while due and due[0][0] <= t:
            other.observe(due[0][1], due.pop(0)[2])
            other = Calibrant.from_bytes(other.to_bytes())
        ticket = other.forecast(p, time=float(t))
        means.append(ticket.mean)
        due.append((known[t], ticket.id, y))
    assert run.mean.tolist() == means
    assert one == other


def test_machine_code_of_mixtures_that_follow_it_has_a_name_of_its_own() -> None:
    # Programs are found on disk by name, and two of one name would be taken for one.
    one, other = Calibrant(OWN).spec, Calibrant(ExpertMixture(OWN, share=3e-4)).spec
    assert one.program is not other.program
    assert one.program.name != other.program.name


# What is promised.


@pytest.mark.parametrize("name", ["crowds of 10", "ones late by 20", "heavy tail, ones later"])
def test_gaps_are_never_doubted_more_than_the_bound_reckons_with(name) -> None:
    made = next(stream for stream in streams(600, 3) if stream.name == name)
    model, due = Calibrant(OWN, seed=1), {}
    at = model.spec.layout.row + model.spec.layout.blocks
    for t in range(600):
        for ticket, outcome in due.pop(t, []):
            model.observe(ticket, outcome)
            words, reals = model._rows.state()
            row = model.spec.layout.row
            lag, missing = (words[row + crowds.LONGEST_LAG], words[row + crowds.MOST_OUTSTANDING])
            learned, known = words[at + anchor.LEARNED], min(lag, missing)
            guessed = min(missing, crowds.GUESS / learned)
            most = max(anchor.DOUBT * known, anchor.CAUTION * max(known, guessed))
            assert reals[at + anchor.TRUST] >= learned / (learned + most) - 1e-12
        ticket = model.forecast(float(made.raw[t]))
        due.setdefault(int(made.known[t]), []).append((ticket, int(made.outcomes[t])))


def test_certificates_reckon_with_the_doubt() -> None:
    told = {"delay": 5, "lag": 5, "missing": 5}
    usual, doubted = (
        bounds.late_cost(10**5, 100.0, **told, caution=caution)
        for caution in (anchor.CAUTION, anchor.DOUBT)
    )
    assert usual == bounds.late_cost(10**5, 100.0, **told) < doubted
    b, T = anchor.DOUBT * 5, 10**5
    more = 2 * b * math.log(1 + T / b) - 80 * math.log(1 + T / 40)
    assert (doubted - usual) * T == pytest.approx(more)
    times = np.arange(3_000.0)
    values = []
    for experts in (OWN, ExpertMixture(OWN, share=3e-4)):
        model = Calibrant(experts, method="anchored", seed=1)
        model.replay(np.full(3_000, 0.4), times % 2 == 0, time=times, available=times + 3.0)
        values.append(model.certificate().bound("C2"))
    b = anchor.DOUBT * 2
    more = 2 * b * math.log(1 + 3_000 / b) - 32 * math.log(1 + 3_000 / 16)
    assert values[0] - values[1] == pytest.approx(more / 3_000, rel=0.01)


# Descriptions.


def test_descriptions_of_earlier_versions_mean_what_they_did() -> None:
    before = ExpertMixture(OWN)
    assert "alike" not in before.description["parameters"]
    assert from_description(before.description) == before
    after = ExpertMixture(OWN, alike=True)
    assert after.description["parameters"]["alike"] is True
    assert from_description(after.description) == after != before
    # Four words for the sums, and none for totals that nobody reads any more.
    assert after.size == before.size + len(crowds.FIRST) - 2
    assert Calibrant().spec.transform.alike is True
    with pytest.raises(InvalidType, match="alike must be True or False, got 1"):
        ExpertMixture(OWN, alike=1)
