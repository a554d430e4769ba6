from __future__ import annotations

import inspect
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from calibrant.bounds import (
    Bound,
    accuracy_at_the_edge,
    accuracy_at_the_midpoint,
    accuracy_paper,
    algorithm1,
    algorithm1_measured,
    azuma,
    best_shape,
    blackwell_adaptive,
    blackwell_fixed,
    blackwell_measured,
    blackwell_sqrt,
    brier_bound,
    drawn,
    exponential_regret,
    foster99,
    foster_hart,
    foster_hart_measured,
    half_cell,
    harmonic,
    horizon,
    horizon_regret_matching,
    internal_regret,
    paper_table,
    pinelis,
    polynomial_regret,
    regret_bound,
    regret_limit,
    regret_matching,
    resolution_paper,
    resolution_sharp,
    smallest_shape,
    swap_regret_bound,
    theorem,
    theorem_names,
)
from calibrant.bounds.game import EXPECTED, PATHWISE
from calibrant.bounds.horizon import Shape, first_size
from calibrant.core.grid import GRIDS, Grid
from calibrant.errors import CalibrantError, ImproperLoss, InvalidInput
from calibrant.losses import get_loss

PROPER = ["squared", "log", "misclassification", "spherical"]


# Sums, grids and sizes.


@given(count=st.integers(0, 300), start=st.integers(0, 20))
def test_harmonic_sums_are_what_adding_up_gives(count, start):
    slow = math.fsum(1 / (start + j) for j in range(1, count + 1))
    assert harmonic(count, start).item() == pytest.approx(slow, rel=1e-12, abs=1e-14)


@given(count=st.floats(0, 1e12), start=st.floats(0, 1e6))
def test_harmonic_sums_of_real_numbers_are_differences_of_digamma(count, start):
    exact = digamma(start + 1 + count) - digamma(start + 1)
    assert harmonic(count, start).item() == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(points=st.sets(st.integers(0, 60), min_size=1, max_size=9))
def test_half_a_cell_is_the_largest_distance_to_the_grid(points):
    grid = np.array(sorted(points)) / 60
    everywhere = np.linspace(0, 1, 7201)
    distance = np.abs(everywhere[:, np.newaxis] - grid).min(axis=1)
    assert half_cell(grid) == pytest.approx(distance.max(), abs=1e-12)


@pytest.mark.parametrize("grid", [[], [0.5, 0.5], [0.6, 0.2]])
def test_a_grid_must_increase(grid):
    with pytest.raises(InvalidInput, match=r"^grid must be increasing and not empty, got \["):
        half_cell(grid)


@pytest.mark.parametrize("name", theorem_names())
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"cells": 1.5}, "cells must be a whole number of at least 1, got 1.5"),
        ({"half_cell": -0.1}, "half_cell must be a number in [0, 1], got -0.1"),
        ({"half_cell": math.nan}, "half_cell must be a number in [0, 1], got nan"),
        ({"buckets": 0}, "buckets must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_sizes_are_named(name, change, message):
    sizes = {"rounds": 100, "cells": 11, "half_cell": 0.05, "buckets": 2} | change
    with pytest.raises(InvalidInput) as caught:
        theorem(name)(**sizes)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", theorem_names())
def test_bad_options_are_named(name):
    parameters = inspect.signature(theorem(name)).parameters
    if "prior" in parameters:
        with pytest.raises(InvalidInput, match=r"^prior must be a number of at least 0, got -1$"):
            theorem(name)(100, 11, 0.05, prior=-1)
    if "centre" in parameters:
        with pytest.raises(InvalidInput, match=r"^centre must be a number in \[0, 1\], got 2$"):
            theorem(name)(100, 11, 0.05, prior=1, centre=2)
    if "delay" in parameters:
        with pytest.raises(InvalidInput, match=r"^delay must be a whole number of at least 0"):
            theorem(name)(100, 11, 0.05, delay=-1)
    if "failure" in parameters and "realised" not in parameters:
        with pytest.raises(InvalidInput, match=r"^failure must be a number in \(0, 1\), got 0$"):
            theorem(name)(100, 11, 0.05, failure=0)
    if "realised" in parameters:
        with pytest.raises(InvalidInput, match=r"^failure must be a number in \(0, 1\), got 1$"):
            theorem(name)(100, 11, 0.05, realised=True, failure=1)
        with pytest.raises(InvalidInput, match=r"^failure must be None unless realised is true"):
            theorem(name)(100, 11, 0.05, failure=0.1)
    if "prior_scores" in parameters:
        with pytest.raises(InvalidInput, match=r"^prior_scores must be 11 finite numbers, got \["):
            theorem(name)(100, 11, 0.05, prior=1, prior_scores=[0.0])


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"^method must be one of 'foster_hart', .*, got 'f'$"):
        theorem("f")


# The value of each theorem, by its formula.


@given(T=st.integers(1, 10**7), N=st.integers(1, 100))
def test_the_average_gap_bound_follows_its_formula(T, N):
    k = min(N + 1, T)
    bound = foster_hart(T, N + 1, 1 / (2 * N))
    assert bound.quantity == "C2"
    expected = 1 / (4 * N**2) + k * (1 + math.log(T / k)) / T
    assert bound.value == pytest.approx(expected, rel=1e-12)
    assert bound.as_c1().value == pytest.approx(math.sqrt(expected), rel=1e-12)
    assert bound.as_c1().quantity == "C1"


def test_a_delay_multiplies_the_logarithm_of_the_average_gap_bound():
    log = 11 * (1 + math.log(1000 / 11)) / 1000
    assert foster_hart(1000, 11, 0.05, delay=4).value == pytest.approx(0.0025 + 9 * log)
    late = foster_hart_measured([3], 0.05, delay=4).value
    assert late == pytest.approx(0.0025 + 9 * (1 + 1 / 2 + 1 / 3) / 3)


@given(
    counts=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    prior=st.sampled_from([0, 0.5, 1, 20]),
    delay=st.integers(0, 3),
    data=st.data(),
)
def test_the_worst_case_of_the_average_gap_is_above_every_measured_case(counts, prior, delay, data):
    assume(sum(counts) > 0)
    means = [data.draw(st.floats(0, 1)) for _ in counts]
    centre = data.draw(st.floats(0, 1))
    options = {"prior": prior, "delay": delay}
    near = foster_hart_measured(counts, 0.1, means=means, centre=centre, **options)
    far = foster_hart_measured(counts, 0.1, **options)
    known = foster_hart(sum(counts), len(counts), 0.1, centre=centre, **options)
    worst = foster_hart(sum(counts), len(counts), 0.1, **options)
    slack = 1 + 1e-9
    assert near.value <= min(far.value, known.value) * slack
    assert max(far.value, known.value) <= worst.value * slack


def test_the_measured_average_gap_bound_follows_its_formula():
    counts, means = np.array([[0, 3, 5], [2, 0, 0]]), np.array([[9, 0.2, 0.4], [1.0, 9, 9]])
    centre = np.array([[0.25], [0.75]])
    total, n = 0.0, [(3, 0.2, 0.25), (5, 0.4, 0.25), (2, 1.0, 0.75)]
    for visits, mean, c in n:
        total += sum(1 / (2 + j) for j in range(1, visits + 1))
        total += 2 * visits / (visits + 2) * (mean - c) ** 2
    bound = foster_hart_measured(counts, 0.25, prior=2, means=means, centre=centre)
    assert bound.value == pytest.approx(0.0625 + total / 10)


@pytest.mark.parametrize("counts", [[], [0, 0], [-1, 3], [0.5], [math.inf]])
def test_counts_must_be_counts(counts):
    message = "^counts must be whole numbers with a sum above 0, got "
    with pytest.raises(InvalidInput, match=message):
        foster_hart_measured(counts, 0.1)


def test_a_prior_without_visits_to_its_cells_costs_nothing():
    counts = [10] + [0] * 50
    assert foster_hart_measured(counts, 0.1, prior=5).value == pytest.approx(
        foster_hart_measured([10], 0.1, prior=5).value
    )


@given(T=st.integers(11, 10**7), delta=st.floats(1e-6, 0.5))
def test_high_probability_adds_azumas_term_to_the_average_gap(T, delta):
    plain, sure = foster_hart(T, 11, 0.05), foster_hart(T, 11, 0.05, failure=delta)
    added = math.sqrt(2 * math.log(1 / delta) / T)
    assert sure.value - plain.value == pytest.approx(added)
    assert f"with probability at least {1 - delta:g}" in sure.assumption
    plain = foster_hart_measured([T], 0.05)
    assert foster_hart_measured([T], 0.05, failure=delta).value - plain.value == pytest.approx(
        added
    )


@given(T=st.integers(1, 10**7), N=st.integers(1, 100), D=st.integers(0, 50))
def test_the_regret_matching_bound_follows_its_formula(T, N, D):
    h, k = 1 / (2 * N), min(N + 1, T)
    bound = regret_matching(T, N + 1, h, delay=D)
    assert bound.quantity == "C1"
    assert bound.value == pytest.approx(h + (1 + h) * math.sqrt((1 + 2 * D) * k / T), rel=1e-12)


def test_the_regret_matching_bound_with_a_prior_follows_its_formula():
    T, k0, c, grid = 500, 3, 0.35, np.linspace(0, 1, 6)
    s, h = k0 * (c - grid), 0.1
    before = (np.maximum(np.abs(s) - h * k0, 0) ** 2).sum()
    total = h * (T + k0 * 6) + math.sqrt(6 * (before + T * 1.1**2)) + np.abs(s).sum()
    bound = regret_matching(T, 6, h, prior=k0, prior_scores=s)
    assert bound.value == pytest.approx(total / T)
    reach = math.sqrt(before) + 1.1 * math.sqrt(2 * T * math.log(2 / 0.05))
    total = h * (T + k0 * 6) + math.sqrt(6) * reach + np.abs(s).sum()
    sure = regret_matching(T, 6, h, prior=k0, prior_scores=s, failure=0.05)
    assert sure.value == pytest.approx(total / T)


def test_no_high_probability_form_is_given_for_late_outcomes():
    with pytest.raises(InvalidInput, match=r"^delay must be 0 where a failure probability is"):
        regret_matching(100, 11, 0.05, delay=1, failure=0.1)


@given(T=st.integers(1, 10**7), m=st.integers(1, 100))
def test_fosters_bound_is_the_smaller_of_the_quoted_and_the_derived(T, m):
    e, k = 1 / m, min(m, T)
    bound = foster99(T, m, e / 2)
    derived = e / 2 + math.sqrt(k * (1 + math.log(T / k)) / T)
    quoted = e / 2 + 2 * math.sqrt(k / T)
    assert bound.value == pytest.approx(min(quoted, derived))
    if k == m:
        assert bound.value <= e / 2 + 2 / math.sqrt(e * T) + 1e-12
    assert (bound.source == "cited") == (quoted <= derived)


@pytest.mark.parametrize("grid", GRIDS)
def test_fosters_bound_is_quoted_for_midpoints_only(grid):
    lattice, T = Grid(grid, 10), 10**6
    bound = foster99(T, lattice.cells, lattice.half_cell)
    assert bound.source == ("cited" if grid == "midpoints" else "sharper")
    derived = math.sqrt(lattice.cells * (1 + math.log(T / lattice.cells)) / T)
    extra = 2 * math.sqrt(10 / T) if grid == "midpoints" else derived
    assert bound.value == pytest.approx(lattice.half_cell + extra)
    fewer = foster99(T, lattice.cells, lattice.half_cell, buckets=3, visited=4)
    assert fewer.value == pytest.approx(
        lattice.half_cell + math.sqrt(4 * (1 + math.log(T / 4)) / T)
    )
    # As many visited cells as a bucket has points are no grid of midpoints.
    assert foster99(T, 11, 1 / 20, buckets=3, visited=10).source == "sharper"


def test_fosters_bound_with_a_prior_follows_its_formula():
    T, k0, h, grid = 400, 2, 0.125, (np.arange(4) + 0.5) / 4
    s = k0 * (0.5 - grid)
    before = (np.maximum(np.abs(s) - h * k0, 0) ** 2).sum() / k0
    log = 1 / 3 + math.log((100 + 2) / 3)
    total = h * 408 + math.sqrt(408 * (before + 4 * log)) + np.abs(s).sum()
    assert foster99(T, 4, h, prior=k0, prior_scores=s).value == pytest.approx(total / T)


@given(T=st.integers(1, 10**7), N=st.integers(1, 50), M=st.integers(1, 30))
def test_the_blackwell_bounds_follow_their_formulas(T, N, M):
    h, cells = 1 / (2 * N), M * (N + 1)
    sizes = (T, N + 1, h)
    fixed = blackwell_fixed(*sizes, buckets=M)
    assert fixed.value == pytest.approx(h + math.sqrt(cells / T))
    assert blackwell_sqrt(*sizes, buckets=M).value == pytest.approx(
        h + 2 * math.sqrt(2 * cells / T)
    )
    assert blackwell_adaptive(*sizes, buckets=M).value == pytest.approx(
        h + 2 * math.sqrt(2 * min(cells, T) / T)
    )
    step = math.sqrt(cells / T)
    used = max(M // 2, 1)
    measured = blackwell_fixed(*sizes, buckets=used, step=step)
    assert measured.value == pytest.approx(h + used * (N + 1) / (2 * step * T) + step / 2)
    assert measured.value <= fixed.value * (1 + 1e-12)


def test_the_measured_blackwell_bound_follows_its_formula():
    bound = blackwell_measured([[9.0, 0.0], [4.0, 1.0]], 50, 0.25)
    assert bound.value == pytest.approx(0.25 + 2 * math.sqrt(2) * (3 + 2 + 1) / 50)
    assert blackwell_measured([], 50, 0.25).value == 0.25


def test_a_start_of_gradient_descent_counts_its_distance_to_the_corners():
    start = [0.5, 0.0, -1.0]
    energy = 1.5**2 + 1 + 4
    bound = blackwell_fixed(200, 3, 0.25, start=start)
    assert bound.value == pytest.approx(0.25 + math.sqrt(energy / 200))


@pytest.mark.parametrize(
    "bound", [blackwell_fixed, blackwell_sqrt, blackwell_adaptive], ids=lambda f: f.__name__
)
def test_gradient_descent_has_an_expected_a_sure_and_a_pathwise_form(bound):
    plain = bound(1000, 11, 0.05)
    assert (plain.quantity, plain.assumption[:14]) == ("C1", "in expectation")
    sure = bound(1000, 11, 0.05, failure=0.01)
    assert sure.value - plain.value == pytest.approx(azuma(1000, 0.01))
    pathwise = bound(1000, 11, 0.05, expected=True)
    assert pathwise.value == plain.value
    assert pathwise.quantity == "pseudo C1"
    assert pathwise.assumption.startswith("for every sequence of outcomes")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: blackwell_fixed(9, 2, 0.5, step=0.0), "step must be a number above 0, got 0.0"),
        (
            lambda: blackwell_fixed(9, 2, 0.5, start=[0.0]),
            "start must be 2 numbers in [-1, 1], got [0.0]",
        ),
        (
            lambda: blackwell_fixed(9, 2, 0.5, start=[0.0, 1.5]),
            "start must be 2 numbers in [-1, 1], got [0.0, 1.5]",
        ),
        (
            lambda: blackwell_measured([-1.0], 9, 0.5),
            "increments must be finite numbers of at least 0, got [-1.0]",
        ),
        (
            lambda: internal_regret(9, 3, step="fast"),
            "step must be 'fixed', 'any-time' or a number above 0, got 'fast'",
        ),
        (lambda: azuma(0, 0.1), "rounds must be a whole number of at least 1, got 0"),
        (lambda: pinelis(5, 0, 0.1), "cells must be a whole number of at least 1, got 0"),
        (
            lambda: drawn(foster_hart(9, 2, 0.5), 9, 2),
            "bound must be one of pseudo C1, C2 or regret, got 'C2'",
        ),
        (
            lambda: algorithm1_measured("foster_hart", [3], 2, 0.5, failure=0.1),
            "failure must be left out, got 0.1",
        ),
        (
            lambda: algorithm1_measured("foster_hart", [0, 0], 2, 0.5),
            "bucket_rounds must hold a number above 0, got [0, 0]",
        ),
        (
            lambda: regret_bound(-1.0, "squared", 10),
            "calibration must be a number of at least 0, got -1.0",
        ),
        (
            lambda: regret_bound(accuracy_at_the_edge(0.1, 1.0, 5), "squared", 10),
            "calibration must be a bound on C1 or C2, got one on 'regret'",
        ),
        (
            lambda: accuracy_paper(math.inf, 20, 0.05, 1.0),
            "rate must be a number of at least 0, got inf",
        ),
        (
            lambda: brier_bound(9, 2, 0.5, 3, mean_error=2.0),
            "mean_error must be a number in [0, 1], got 2.0",
        ),
        (
            lambda: resolution_paper(0.0),
            "epsilon must be a number of at least 1e-12, got 0.0",
        ),
        (
            lambda: resolution_paper(0.1, -1.0),
            "loss must be a loss or a number above 0, got -1.0",
        ),
        (
            lambda: resolution_paper(0.1, "log"),
            "loss must be bounded, with a bounded slope, got 'log'",
        ),
        (
            lambda: resolution_sharp(1e-8, "squared"),
            "epsilon must be reachable with 65536 cells, got 1e-08",
        ),
        (
            lambda: resolution_sharp(1e-5, "squared", "logit"),
            "epsilon must be reachable with 4096 cells, got 1e-05",
        ),
        (
            lambda: resolution_sharp(1e-5, "misclassification", "arcsine"),
            "epsilon must be reachable with 4096 cells, got 1e-05",
        ),
        (
            lambda: resolution_sharp(0.1, "log", "endpoints"),
            "epsilon must be reachable with 65536 cells, got 0.1",
        ),
        (
            lambda: resolution_sharp(0.1, "squared", "linear"),
            "grid must be one of 'endpoints', 'midpoints', 'logit', 'arcsine', 'graded', "
            "got 'linear'",
        ),
        (
            lambda: regret_limit("squared", 10, 0),
            "buckets must be a whole number of at least 1, got 0",
        ),
        (
            lambda: regret_bound(
                regret_bound(exponential_regret(9, 2, 0.5), "squared", 10), "squared", 10
            ),
            "calibration must be a bound on C1 or C2, got one on 'pseudo regret'",
        ),
        (
            lambda: drawn(
                regret_bound(exponential_regret(9, 2, 0.5), "squared", 10), 9, 2, failure=0.1
            ),
            "failure must be None for a bound on regret, got 0.1",
        ),
        (
            lambda: horizon(0.002, lambda T: foster_hart(T, 11, 0.05)),
            "epsilon must be above 0.0025, the bound after 10^18 rounds, got 0.002",
        ),
        (
            lambda: horizon_regret_matching(0.1, 11, 0.05, 10),
            "epsilon must be above 2 B half_cell + cost = 0.2, got 0.1",
        ),
        (
            lambda: smallest_shape(0.1, lambda N, M, T: 1.0),
            "epsilon must be reachable with 65536 cells, got 0.1",
        ),
        (lambda: paper_table(0.1, 0), "rounds must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_arguments_are_answered_in_one_sentence(call, message):
    with pytest.raises(CalibrantError) as caught:
        call()
    assert str(caught.value) == message


@given(T=st.integers(1, 10**7), N=st.integers(1, 50), M=st.integers(1, 30))
def test_the_exponential_bounds_follow_their_formulas(T, N, M):
    K, h = N + 1, 1 / (2 * N)
    log = math.log(N * (N + 1))
    fixed = exponential_regret(T, K, h, buckets=M)
    assert fixed.quantity == "pseudo C2"
    assert fixed.value == pytest.approx(h**2 + K * math.sqrt(log * M / (2 * T)))
    late = exponential_regret(T, K, h, buckets=M, step="any-time")
    extra = 3 * math.sqrt(log * M / (8 * T)) + M * math.sqrt(log / 8) / T
    assert late.value == pytest.approx(h**2 + K * extra)
    book = h**2 + K * (2 * math.sqrt(log * M / (2 * T)) + M * math.sqrt(log / 8) / T)
    assert fixed.value <= late.value * (1 + 1e-12) <= book * (1 + 1e-9)
    best = math.sqrt(8 * log * M / T)
    if best > 0:
        same = exponential_regret(T, K, h, buckets=M, step=best)
        assert same.value == pytest.approx(fixed.value)


def test_the_exponential_bound_pays_for_a_prior_and_for_certainty():
    plain = exponential_regret(10_000, 11, 0.05, buckets=3).value
    prior = exponential_regret(10_000, 11, 0.05, buckets=3, prior=4).value
    assert prior - plain == pytest.approx(2 * 4 * 33 / 10_000)
    centred = exponential_regret(10_000, 11, 0.05, buckets=3, prior=4, centre=0.5).value
    assert centred - plain == pytest.approx(2 * 4 * 33 * 0.25 / 10_000)
    realised = exponential_regret(10_000, 11, 0.05, buckets=3, realised=True)
    assert (realised.value, realised.quantity) == (plain, "C2")
    sure = exponential_regret(10_000, 11, 0.05, buckets=3, realised=True, failure=0.1)
    assert sure.value - plain == pytest.approx(11 * azuma(10_000, 0.1))


@given(T=st.integers(1, 10**7), N=st.integers(1, 50), M=st.integers(1, 30))
def test_the_polynomial_bound_follows_its_formula(T, N, M):
    K, h = N + 1, 1 / (2 * N)
    bound = polynomial_regret(T, K, h, buckets=M)
    assert bound.quantity == "pseudo C2"
    assert bound.value == pytest.approx(h**2 + math.sqrt(M * K * (K - 1) / T))


def test_the_polynomial_bound_pays_for_a_prior_and_for_certainty():
    T, K, M, a = 5000, 6, 4, 3 * 0.7**2
    before = a**2 * M * K * (K - 1) / 2
    value = 0.01 + (math.sqrt(M * K * (before + T * (K - 1))) + a * M * K) / T
    bound = polynomial_regret(T, K, 0.1, buckets=M, prior=3, centre=0.3)
    assert bound.value == pytest.approx(value)
    reach = math.sqrt(before) + math.sqrt(2 * T * (K - 1) * math.log(2 / 0.05))
    value = 0.01 + (math.sqrt(M * K) * reach + a * M * K) / T
    sure = polynomial_regret(T, K, 0.1, buckets=M, prior=3, centre=0.3, realised=True, failure=0.05)
    assert sure.value == pytest.approx(value)
    realised = polynomial_regret(T, K, 0.1, buckets=M, prior=3, centre=0.3, realised=True)
    assert (realised.quantity, realised.value) == ("C2", bound.value)


def test_one_grid_point_leaves_nothing_to_swap():
    assert internal_regret(100, 1).value == 0.0
    assert exponential_regret(100, 1, 0.5, step="any-time").value == 0.25
    assert polynomial_regret(100, 1, 0.5).value == 0.25


def test_internal_regret_says_which_constant_is_the_books():
    assert internal_regret(100, 11).source == "cited"
    assert internal_regret(100, 11, step="any-time").source == "sharper"
    assert internal_regret(100, 11, buckets=4).value == pytest.approx(
        math.sqrt(4 * math.log(110) / 200)
    )


def test_draws_stray_from_mixtures_by_the_root_of_cells_over_rounds():
    pseudo = exponential_regret(10**6, 11, 0.05)
    mean = drawn(pseudo, 10**6, 11, buckets=2)
    assert mean.quantity == "C1"
    assert mean.value == pytest.approx(math.sqrt(pseudo.value) + math.sqrt(22 / 10**6))
    sure = drawn(pseudo, 10**6, 11, failure=0.01)
    expected = math.sqrt(pseudo.value) + 2 * math.sqrt(11 * math.log(200) / 10**6)
    assert sure.value == pytest.approx(expected)
    assert "0.99" in sure.assumption
    already = blackwell_fixed(1000, 11, 0.05, expected=True)
    assert drawn(already, 1000, 11).value == pytest.approx(already.value + math.sqrt(11 / 1000))


@pytest.mark.parametrize("loss", PROPER)
def test_a_bound_on_mixtures_gives_one_on_their_regret_and_in_the_mean_on_that_of_draws(loss):
    ends = {"low": 0.05, "high": 0.95}
    pseudo = exponential_regret(10**6, 10, 0.05)
    sure = regret_bound(pseudo, loss, 10, **ends)
    assert sure.quantity == "pseudo regret"
    assert sure.assumption == pseudo.assumption == PATHWISE
    realised = exponential_regret(10**6, 10, 0.05, realised=True)
    mean = drawn(sure, 10**6, 10, buckets=10)
    assert (mean.quantity, mean.assumption, mean.source) == ("regret", EXPECTED, sure.source)
    assert mean.value == sure.value == regret_bound(realised, loss, 10, **ends).value
    assert regret_bound(realised, loss, 10, **ends).quantity == "regret"
    assert swap_regret_bound(pseudo, loss, **ends).quantity == "pseudo regret"
    assert swap_regret_bound(realised, loss, **ends).quantity == "regret"


# Laws over all theorems.


@pytest.mark.parametrize("name", theorem_names())
@given(
    T=st.integers(1, 10**6),
    K=st.integers(1, 60),
    h=st.floats(0.005, 0.5),
    M=st.integers(1, 40),
    more=st.floats(1.0, 50.0),
)
@settings(max_examples=40)
def test_a_bound_falls_with_rounds_and_grows_with_cells_and_buckets(name, T, K, h, M, more):
    bound = theorem(name)
    value, slack = bound(T, K, h, buckets=M).value, 1 + 1e-9
    assert value > 0.0
    assert bound(math.ceil(T * more), K, h, buckets=M).value <= value * slack
    assert bound(T, K, h, buckets=math.ceil(M * more)).value * slack >= value
    assert bound(T, math.ceil(K * more), h, buckets=M).value * slack >= value


@pytest.mark.parametrize("name", theorem_names())
@settings(max_examples=40)
@given(
    rounds=st.lists(st.integers(0, 5000), min_size=1, max_size=12),
    K=st.integers(2, 30),
    h=st.floats(0.005, 0.5),
)
def test_measured_buckets_never_exceed_the_worst_case(name, rounds, K, h):
    assume(sum(rounds) > 0)
    worst = algorithm1(name, sum(rounds), K, h, len(rounds))
    found = algorithm1_measured(name, rounds, K, h)
    assert found.value <= worst.value * (1 + 1e-9)
    assert found.quantity == worst.quantity
    assert found.assumption.endswith("; the raw forecasts do not react to the draws")


@pytest.mark.parametrize("name", theorem_names())
def test_equal_buckets_are_the_worst_case(name):
    worst = algorithm1(name, 10_000, 6, 0.1, 10).value
    assert algorithm1_measured(name, [1000] * 10, 6, 0.1).value == pytest.approx(worst)


@pytest.mark.parametrize("name", ["foster_hart", "regret_matching", "foster99"])
def test_a_stronger_prior_never_improves_the_worst_case_of_c1(name):
    bound = theorem(name)
    values = [bound(10_000, 11, 0.05, prior=k0).as_c1().value for k0 in (0, 1, 5, 50)]
    assert values[1:] == sorted(values[1:])
    assert values[0] < values[-1]


# From calibration to accuracy.


def bucket_of(raw, buckets):
    inside = [j for j in range(buckets) if j / buckets <= raw]
    return inside[-1] if raw < 1 else buckets - 1


@st.composite
def runs(draw):
    M, N = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    T = draw(st.integers(1, 30))
    raw = draw(st.lists(st.integers(0, 60), min_size=T, max_size=T))
    announced = draw(st.lists(st.integers(0, N - 1), min_size=T, max_size=T))
    outcomes = draw(st.lists(st.integers(0, 1), min_size=T, max_size=T))
    return M, N, np.array(raw) / 60, np.array(announced), np.array(outcomes)


def measured_calibration(buckets, grid, announced, outcomes):
    """C1 and C2 of the buckets, averaged by their rounds."""
    total1 = total2 = 0.0
    for j, k in {*zip(buckets, announced, strict=True)}:
        rows = (buckets == j) & (announced == k)
        gap = (outcomes[rows] - grid[k]).sum()
        total1, total2 = total1 + abs(gap), total2 + gap**2 / rows.sum()
    return total1 / len(outcomes), total2 / len(outcomes)


@pytest.mark.parametrize("name", PROPER)
@settings(max_examples=40)
@given(run=runs())
def test_no_run_loses_more_to_its_raw_forecast_than_its_calibration_allows(name, run):
    """Lemma 2 on every path: arbitrary forecasts on a grid of midpoints, arbitrary outcomes."""
    M, N, raw, announced, outcomes = run
    loss, grid = get_loss(name), (np.arange(N) + 0.5) / N
    M += M % 2 if name == "misclassification" else 0
    buckets = np.array([bucket_of(p, M) for p in raw])
    c1, c2 = measured_calibration(buckets, grid, announced, outcomes)
    regret = loss(outcomes, grid[announced]).mean() - loss(outcomes, raw).mean()
    ends = {"low": float(grid[0]), "high": float(grid[-1])}
    assert regret <= regret_bound(c1, loss, M, **ends).value + 1e-9
    both = Bound(c2, "C2", "", "", "sharper")
    assert regret <= regret_bound(both, loss, M, **ends).value + 1e-9


@pytest.mark.parametrize("name", PROPER)
@settings(max_examples=40)
@given(run=runs(), comparator=st.floats(0.01, 0.99))
def test_no_run_gains_from_swaps_more_than_its_calibration_allows(name, run, comparator):
    _, N, _, announced, outcomes = run
    loss, grid = get_loss(name), (np.arange(N) + 0.5) / N
    one = np.zeros(len(outcomes))
    c1, c2 = measured_calibration(one, grid, announced, outcomes)
    swapped = np.where(announced == announced[0], comparator, grid[announced])
    gain = loss(outcomes, grid[announced]).mean() - loss(outcomes, swapped).mean()
    low, high = min(grid[0], comparator), max(grid[-1], comparator)
    assert gain <= swap_regret_bound(c1, loss, low=low, high=high).value + 1e-9
    both = Bound(c2, "C2", "", "", "sharper")
    assert gain <= swap_regret_bound(both, loss, low=low, high=high).value + 1e-9


def test_the_regret_bound_is_swing_times_c1_and_the_price_of_buckets():
    assert regret_bound(0.03, "squared", 10).value == pytest.approx(2 * 0.03 + 0.047025)
    assert regret_bound(0.03, "misclassification", 10).value == pytest.approx(0.06)
    log = regret_bound(0.03, "log", 10, low=0.05, high=0.95)
    assert log.value == pytest.approx(0.03 * 2 * math.log(19) + math.log(1.1))
    assert regret_bound(0.0, "log", 10).value == math.inf


def test_a_bound_on_c2_is_used_where_it_gives_less():
    calibration = foster_hart(10**6, 11, 0.05, buckets=10)
    found = regret_bound(calibration, "squared", 10)
    assert found.value == pytest.approx(calibration.value + 0.047025)
    assert found.assumption == calibration.assumption
    jump = regret_bound(calibration, "misclassification", 10)
    assert jump.value == pytest.approx(2 * math.sqrt(calibration.value))
    c1 = regret_matching(10**6, 11, 0.05, buckets=10)
    assert regret_bound(c1, "squared", 10).value == pytest.approx(2 * c1.value + 0.047025)


@pytest.mark.parametrize("call", [regret_bound, swap_regret_bound])
def test_no_guarantee_is_given_under_an_improper_loss(call):
    extra = (10,) if call is regret_bound else ()
    with pytest.raises(ImproperLoss, match="on the outcomes 0, 0, 1 repeated"):
        call(0.1, "absolute", *extra)
    with pytest.raises(ImproperLoss, match="loss must be proper, got 'hinge'"):
        best_shape(0.1, "hinge")
    with pytest.raises(ImproperLoss, match="loss must be proper, got 'hinge'"):
        resolution_paper(0.1, "hinge")


def test_accuracy_with_the_papers_comparators():
    assert accuracy_at_the_midpoint(0.02, 1.0, 2.0, 10).value == pytest.approx(0.04 + 0.1)
    assert accuracy_at_the_edge(0.02, 2.0, 10).value == pytest.approx(0.08 + 0.2)
    printed = accuracy_paper(0.02, 30, 0.05, 1.0)
    assert printed.value == pytest.approx(30 * 0.02 + 0.15)
    assert (printed.source, printed.theorem) == ("paper", "Lemma 2, as printed")


def test_the_brier_bound_follows_its_formula():
    cells = 20 * 11
    c2 = 0.0025 + cells * (1 + math.log(10**5 / cells)) / 10**5
    assert brier_bound(10**5, 11, 0.05, 20).value == pytest.approx(c2 + 1 / 20 + 1 / 1600)
    found = brier_bound(10**5, 11, 0.05, 20, mean_error=0.25, prior=1)
    c2 = foster_hart(10**5, 11, 0.05, buckets=20, prior=1).value
    assert found.value == pytest.approx(c2 + 1 / 80 + 1 / 1600)


# Resolution and horizon.


def test_the_papers_resolution_is_three_times_the_bound_over_epsilon():
    assert [resolution_paper(e) for e in (0.2, 0.1, 0.05)] == [15, 30, 60]
    assert resolution_paper(0.1, "spherical") == math.ceil(
        3 * get_loss("spherical").lipschitz() / 0.1
    )
    assert resolution_paper(0.2, "misclassification") == 16
    assert resolution_paper(0.3, "misclassification") == 10


@pytest.mark.parametrize("name", PROPER)
@pytest.mark.parametrize("epsilon", [0.4, 0.1, 0.03])
def test_the_sharp_resolution_is_the_smallest_that_will_do(name, epsilon):
    loss = get_loss(name)

    def limit(N):
        ends = {"low": 1 / (2 * N), "high": 1 - 1 / (2 * N)} if name == "log" else {}
        return regret_bound(1 / (2 * N), loss, N, **ends).value

    stride = 2 if name == "misclassification" else 1
    found = resolution_sharp(epsilon, name)
    assert limit(found) < epsilon
    assert found == stride or limit(found - stride) >= epsilon
    assert found % stride == 0


@pytest.mark.parametrize("name", PROPER)
@pytest.mark.parametrize("kind", GRIDS)
def test_the_sharp_resolution_of_a_grid_is_the_first_that_will_do_on_it(kind, name):
    loss = get_loss(name)

    def limit(N):
        grid = Grid(kind, N)
        ends = {"low": float(grid.values[0]), "high": float(grid.values[-1])}
        return regret_bound(grid.half_cell, loss, N, **ends).value

    if name == "log" and kind == "endpoints":
        assert limit(50) == math.inf
        return
    stride = 2 if name == "misclassification" else 1
    found = resolution_sharp(0.3, name, kind)
    least = 1 if kind == "endpoints" else 2
    fitting = [N for N in range(least, found + 1) if limit(N) < 0.3]
    assert fitting[0] == found
    assert found % stride == 0
    assert regret_limit(name, found, found, kind) == pytest.approx(limit(found))


def late_alarm(outcome, forecast):
    alarm = forecast >= 0.1
    return 0.9 * (not alarm) if outcome else 0.1 * alarm


def test_a_jump_between_powers_of_two_is_found():
    # Buckets cost nothing if a tenth is one of their edges, else a tenth.
    assert resolution_sharp(0.05, late_alarm) == 20
    assert regret_limit(late_alarm, 20, 20) == pytest.approx(1 / 40)
    assert regret_limit(late_alarm, 2048, 2048) > 0.1
    assert first_size(lambda size: 0.2, lambda limit: limit < 0.1) is None
    assert first_size(lambda size: float(size != 255), lambda limit: limit < 0.1) == 255


def test_a_shape_for_a_loss_that_jumps_has_an_edge_there():
    found = best_shape(0.2, late_alarm)
    assert found.buckets == 10 or regret_limit(late_alarm, found.resolution, found.buckets) < 0.2
    assert smallest_shape(0.1, lambda N, M, T: 0.0 if M % 10 == 0 else 1.0).buckets % 10 == 0


@given(epsilon=st.floats(0.01, 2.0), B=st.floats(0.1, 5.0))
def test_the_sharp_resolution_for_any_loss_leaves_room_below_epsilon(epsilon, B):
    found = resolution_sharp(epsilon, B)
    assert 2 * B / epsilon < found <= 2 * B / epsilon + 2


@given(e=st.floats(0.01, 0.5))
def test_a_horizon_is_the_first_round_at_or_below_the_target(e):
    T = horizon(e + 0.05, lambda T: regret_matching(T, 11, 0.05).value)
    assert regret_matching(T, 11, 0.05).value <= e + 0.05
    assert T == 1 or regret_matching(T - 1, 11, 0.05).value > e + 0.05


def test_the_closed_horizon_solves_the_accuracy_bound():
    closed = horizon_regret_matching(0.2, 16, 1 / 30, 15)
    slow = horizon(
        0.2,
        lambda T: accuracy_at_the_edge(regret_matching(T, 16, 1 / 30, buckets=15).value, 1.0, 15),
    )
    assert closed == slow
    cheap = horizon_regret_matching(0.2, 16, 1 / 30, 15, cost=0.0)
    assert cheap == math.ceil((2 * (1 + 1 / 30)) ** 2 * 240 / (0.2 - 1 / 15) ** 2)
    assert horizon_regret_matching(0.2, 16, 1 / 30, 15, bound=0.0) == 1


@pytest.mark.parametrize(
    ("epsilon", "paper", "rounds", "general", "squared"),
    [
        (0.2, 15, 2.3e5, (21, 20, 1.8e5), (3, 13, 2.8e3)),
        (0.1, 30, 3.5e6, (41, 40, 2.7e6), (4, 27, 1.7e4)),
        (0.05, 60, 5.4e7, (81, 80, 4.2e7), (6, 51, 1.0e5)),
    ],
)
def test_the_table_of_horizons_is_reproduced(epsilon, paper, rounds, general, squared):
    assert resolution_paper(epsilon) == paper
    closed = horizon_regret_matching(epsilon, paper + 1, 1 / (2 * paper), paper)
    assert float(f"{closed:.1e}") == rounds
    shape = best_shape(epsilon, 1.0, "regret_matching")
    assert (shape.resolution, shape.buckets, float(f"{shape.rounds:.1e}")) == general
    shape = smallest_shape(epsilon, lambda N, M, T: brier_bound(T, N + 1, 1 / (2 * N), M))
    assert (shape.resolution, shape.buckets, float(f"{shape.rounds:.1e}")) == squared


@pytest.mark.parametrize(
    ("name", "method", "epsilon"),
    [
        ("squared", "foster_hart", 0.2),
        ("squared", "regret_matching", 0.4),
        ("spherical", "polynomial_regret", 0.4),
        ("misclassification", "foster_hart", 0.4),
    ],
)
def test_the_best_shape_is_what_trying_all_shapes_gives(name, method, epsilon):
    loss, stride = get_loss(name), 2 if name == "misclassification" else 1
    tried = {}
    for N in range(1, 25):
        for M in range(stride, 16, stride):

            def regret(T, N=N, M=M):
                calibration = algorithm1(method, T, N + 1, 1 / (2 * N), M)
                return _priced(calibration, loss, M)

            if regret(10**18) <= epsilon:
                tried[N, M] = horizon(epsilon, regret)
    best = min(tried, key=tried.get)
    shape = best_shape(epsilon, name, method)
    assert (shape.resolution, shape.buckets, shape.rounds) == (*best, tried[best])


def test_the_search_for_a_shape_asks_for_those_one_or_two_steps_away():
    asked = set()

    def regret(N, M, T):
        asked.add((N, M))
        return N * M / T

    assert smallest_shape(0.5, regret) == Shape(1, 1, 2)
    assert asked == {(N, M) for N in (1, 2, 3) for M in (1, 2, 3)}


@cache
def _bucket_cost(loss, buckets):
    return loss.bucket_cost(buckets)


def _priced(calibration, loss, buckets):
    price = loss.swing() * calibration.as_c1().value
    if calibration.quantity.endswith("C2"):
        price = min(price, loss.curvature() * calibration.value)
    return price + _bucket_cost(loss, buckets)


def test_sharper_constants_need_fewer_rounds_than_the_papers():
    sharp = best_shape(0.1, "squared", "regret_matching")
    assert sharp.rounds < best_shape(0.1, 1.0, "regret_matching").rounds / 2


@pytest.mark.parametrize("method", ["foster_hart", "blackwell_fixed", "polynomial_regret"])
def test_shapes_for_the_misclassification_loss_have_even_buckets(method):
    assert best_shape(0.4, "misclassification", method).buckets % 2 == 0


def test_a_shape_for_the_log_loss_uses_midpoints():
    shape = best_shape(0.5, "log", "regret_matching")
    N, M = shape.resolution, shape.buckets
    calibration = regret_matching(shape.rounds, N, 1 / (2 * N), buckets=M)
    found = regret_bound(calibration, "log", M, low=1 / (2 * N), high=1 - 1 / (2 * N))
    assert 0.49 < found.value <= 0.5


def test_the_papers_table_holds_orders_without_constants():
    slow, fast = paper_table(0.04, 10**6)
    assert slow.calibration == pytest.approx(1 / (0.04 * math.sqrt(0.04 * 10**6)))
    assert fast.calibration == pytest.approx(1 / (0.04 * 1000))
    assert slow.calibration / fast.calibration == pytest.approx(1 / math.sqrt(0.04))
    assert (slow.time, fast.time) == pytest.approx((25.0, math.log(25)))
    assert slow.space == fast.space == pytest.approx(625.0)
    assert (slow.subroutine, slow.advantage) == ("regret minimisation", "simplicity")
    assert (fast.subroutine, fast.advantage) == ("Blackwell approachability", "efficiency")


def test_a_bound_prints_value_quantity_condition_and_source():
    bound = Bound(0.25, "pseudo C2", "always", "Theorem", "cited")
    assert str(bound) == "pseudo C2 <= 0.25 always (Theorem; cited)"
    assert float(bound) == 0.25
    assert bound.as_c1() == Bound(0.5, "pseudo C1", "always", "Theorem", "cited")
    assert bound.as_c1().as_c1() is not bound
    regret = Bound(0.25, "regret", "always", "Theorem", "cited")
    assert regret.as_c1() is regret
