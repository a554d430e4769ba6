"""Bounds for groups: the induction steps, executed; the formulas; games against adversaries."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import naive_groups
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_groups import NaiveGroups

from calibrant import bounds
from calibrant.core.grid import Grid
from calibrant.errors import InvalidInput
from calibrant.groups import GroupRecalibrator, TimeIntervals
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.layout import POSITION, SCALE

pytestmark = pytest.mark.base

OUTCOMES = (0, 1)
NAMES = ("a", "b", "c")


# The induction steps: any history of any groups, either outcome.


@st.composite
def histories(draw: Any) -> tuple[NaiveGroups, list[object], GroupRecalibrator]:
    """Draw counts in overlapping groups, and the recalibrator that has them."""
    grid = draw(st.sampled_from(["endpoints", "midpoints", "arcsine"]))
    form = draw(st.sampled_from(["l2", "exponential"]))
    rec = GroupRecalibrator(
        NAMES, form=form, grid=grid, resolution=draw(st.integers(2, 5)), buckets=1, prior=0,
        horizon=20, seed=draw(st.integers(0, 3)),
    )  # fmt: skip
    lattice = Grid(grid, rec.calibrator.resolution)
    naive = NaiveGroups([Fraction(k, lattice.denominator) for k in lattice.numerators], 1, 0)
    flat = rec._arena.flat()
    counts = rec._blocks(flat)
    scale = int(flat[SCALE])
    for row, name in enumerate((("bucket", 0), *NAMES)):
        for k, g in enumerate(naive.values):
            n = draw(st.integers(0, 12))
            y = draw(st.integers(0, n))
            naive.count[name, k], naive.ones[name, k] = n, y
            counts[row, FIRST + 2 * k] = int(scale * (y - n * g))
            counts[row, FIRST + 2 * k + 1] = n
    counts[0, POSITION] = draw(st.integers(0, len(naive.values) - 1))
    chosen = draw(st.lists(st.sampled_from(NAMES), unique=True))
    return naive, [("bucket", 0), *chosen], rec


def weights_of(rec: GroupRecalibrator, active: list[object], scores: list[Any]) -> dict[int, Any]:
    """Check the announced mixture against exact scores; return the proof's weights."""
    mixture = rec.forecast(0.5, groups=active[1:]).mixture
    naive_groups.check_pair(mixture.indices, mixture.weights, scores)
    if len(mixture.indices) == 1:
        return {mixture.indices[0]: 1}
    low, high = mixture.indices
    if not scores[low] > 0 > scores[high]:
        # A sum that is zero but for rounding: all the weight belongs to it.
        return {low if abs(scores[low]) < 1e-12 else high: 1}
    weight = -scores[high] / (scores[low] - scores[high])
    return {low: weight, high: 1 - weight}


@settings(max_examples=60)
@given(histories().filter(lambda past: past[2].calibrator.form == "l2"))
def test_the_energy_of_all_groups_drifts_by_at_most_their_number_times_half_a_cell_squared(
    past: Any,
) -> None:
    naive, active, rec = past
    scores, d = naive.average(active), len(active)
    weights = weights_of(rec, active, scores)
    h = naive_groups.half_cell(naive.values)
    before = sum(naive.energy(group) for group in active)
    for y in OUTCOMES:
        growth, tail = Fraction(0), Fraction(0)
        for k, weight in weights.items():
            tail += weight * sum(Fraction(1, naive.count[group, k] + 1) for group in active)
            naive.learn(active, k, y)
            growth += weight * (sum(naive.energy(group) for group in active) - before)
            for group in active:
                naive.count[group, k] -= 1
                naive.ones[group, k] -= y
        assert growth <= d * h**2 + tail


@settings(max_examples=60)
@given(histories().filter(lambda past: past[2].calibrator.form == "exponential"))
def test_the_exponential_potential_grows_by_at_most_its_factor(past: Any) -> None:
    naive, active, rec = past
    eta, h = rec.calibrator.rate, float(naive_groups.half_cell(naive.values))
    weights = weights_of(rec, active, naive.exponential(active, eta))

    def potential() -> float:
        groups, cells = (("bucket", 0), *NAMES), range(len(naive.values))
        gaps = [float(naive.gap(group, k)[0]) for group in groups for k in cells]
        return sum(2.0 * math.cosh(eta * gap) for gap in gaps)

    before = potential()
    for y in OUTCOMES:
        after = 0.0
        for k, weight in weights.items():
            naive.learn(active, k, y)
            after += float(weight) * potential()
            for group in active:
                naive.count[group, k] -= 1
                naive.ones[group, k] -= y
        assert after <= before * (1.0 + eta * h + eta**2) * (1.0 + 1e-12)


# The formulas.


def test_the_average_gap_bound_is_the_formula() -> None:
    T, K, h, G, d = 5000, 11, 0.05, 7, 3
    pairs = G * K
    total = d * T * h * h + pairs * (1 + math.log(d * T / pairs))
    bound = bounds.group_average_gap(T, K, h, groups=G, overlap=d)
    assert bound.value == pytest.approx(total / T)
    assert (bound.quantity, bound.source) == ("C2", "sharper")
    few = bounds.group_average_gap(T, K, h, groups=G, overlap=d, group_rounds=50)
    assert few.value == pytest.approx(total / 50)
    late = bounds.group_average_gap(T, K, h, groups=G, overlap=d, delay=4)
    assert late.value == pytest.approx(d * h * h + 9 * (bound.value - d * h * h))


def test_one_group_has_the_bound_of_foster_and_hart() -> None:
    for rounds in (5, 200, 10_000):
        ours = bounds.group_average_gap(rounds, 21, 0.025, prior=2, delay=3, failure=0.01)
        theirs = bounds.foster_hart(rounds, 21, 0.025, prior=2, delay=3, failure=0.01)
        assert ours.value == pytest.approx(theirs.value)
        assert ours.assumption == theirs.assumption


def test_the_measured_bound_is_what_was_counted() -> None:
    told = {"rounds": 100, "group_rounds": 20, "bias": 2.0, "delay": 1}
    bound = bounds.group_average_gap_measured(300, 7.0, 0.1, **told)  # type: ignore[arg-type]
    assert bound.value == pytest.approx((3.0 + 21.0 + 2.0) / 20)
    likely = bounds.group_average_gap_measured(300, 7.0, 0.1, rounds=100, overlap=3, failure=0.1)
    extra = 3 * math.sqrt(2 * 100 * math.log(10))
    assert likely.value == pytest.approx((3.0 + 7.0 + extra) / 100)


def test_the_multivalid_bound_is_the_formula() -> None:
    T, K, h, G = 5000, 11, 0.05, 7
    eta = math.sqrt(math.log(2 * K * G) / T)
    assert bounds.multivalid_rate(T, K, G) == pytest.approx(eta)
    assert bounds.multivalid_rate(1, K, G) == 1.0
    gap = bounds.multivalid_gap(T, K, h, groups=G)
    assert gap == pytest.approx(h + 2 * eta)
    other = bounds.multivalid_gap(T, K, h, groups=G, rate=0.1, prior=3, failure=0.01)
    expected = (math.log(2 * K * G * 100) / 0.1 + 6) / T + h + 0.1
    assert other == pytest.approx(expected)
    bound = bounds.multivalid(T, K, h, groups=G, group_rounds=1000)
    assert bound.value == pytest.approx(gap * K * 5)
    assert bound.quantity == "C1"
    likely = bounds.multivalid(T, K, h, groups=G, failure=0.01)
    assert likely.assumption.startswith("with probability at least 0.99")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: bounds.group_average_gap(10, 3, 0.1, overlap=0), "overlap must be"),
        (lambda: bounds.group_average_gap(10, 3, 0.1, groups=0), "buckets must be"),
        (lambda: bounds.group_average_gap(10, 3, 0.1, group_rounds=11), "group_rounds must be"),
        (lambda: bounds.multivalid_gap(10, 3, 0.1, rate=2.0), "rate must be a number above 0"),
    ],
)
def test_bad_arguments_are_refused(call: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        call()


# Games.  The adversary sees the mixture and every gap, and never the draw.


def greedy(naive: NaiveGroups, active: list[object], mixture: Any) -> int:
    """Return the outcome under which the energy of all groups is expected to grow most."""
    growth = [0.0, 0.0]
    for k, weight in zip(mixture.indices, mixture.weights, strict=True):
        for group in active:
            n, ones = naive.count[group, k], naive.ones[group, k]
            g = float(naive.values[k])
            before = (ones - n * g) ** 2 / n if n else 0.0
            for y in OUTCOMES:
                growth[y] += weight * ((ones + y - (n + 1) * g) ** 2 / (n + 1) - before)
    return int(growth[1] >= growth[0])


def threshold(naive: NaiveGroups, active: list[object], mixture: Any) -> int:
    return int(mixture.mean <= 0.5)


def by_group(naive: NaiveGroups, active: list[object], mixture: Any) -> int:
    """Return 1 in group a unless b is there too: what neither bucket nor b can express."""
    return int("a" in active and "b" not in active)


def game(form: str, adversary: Any, seed: int, rounds: int, rules: Any = None) -> Any:
    rec = GroupRecalibrator(rules, form=form, resolution=8, buckets=2, horizon=rounds, seed=seed)
    rng = np.random.default_rng(seed)
    naive = NaiveGroups([Fraction(k, 8) for k in range(9)], 2, 1)
    for raw, chosen in zip(rng.random(rounds).tolist(), rng.random((rounds, 3)) < 0.5, strict=True):
        names = [name for name, on in zip(NAMES, chosen, strict=True) if on]
        ticket = rec.forecast(raw, groups=names)
        active = [naive.bucket(raw), *names]
        outcome = adversary(naive, active, ticket.mixture)
        rec.observe(ticket, outcome)
        naive.learn(active, ticket.index, outcome)
    return rec


@pytest.mark.parametrize("adversary", [greedy, threshold, by_group])
def test_no_adversary_makes_any_group_exceed_the_average_gap_bound(adversary: Any) -> None:
    rounds, total = 700, []
    for seed in range(3):
        rec = game("l2", adversary, seed, rounds)
        found = rec.certificate()
        assert all(row.c2 <= row.bound for row in found.groups)
        total.append(sum(row.c2 * row.rounds for row in found.groups))
    bound = bounds.group_average_gap(rounds, 9, 1 / 16, groups=5, overlap=4, prior=1)
    assert np.mean(total) <= bound.value * rounds


@pytest.mark.parametrize("adversary", [greedy, threshold, by_group])
def test_no_adversary_makes_any_gap_exceed_the_multivalid_bound(adversary: Any) -> None:
    rounds, gaps = 700, []
    for seed in range(3):
        found = game("exponential", adversary, seed, rounds).certificate()
        assert all(row.c1 <= row.bound for row in found.groups)
        assert found.largest_gap <= found.largest_gap_bound
        gaps.append(found.largest_gap)
    assert np.mean(gaps) <= bounds.multivalid_gap(rounds, 9, 1 / 16, groups=5, prior=1, rate=0.1)


def test_the_adversaries_bite_where_groups_are_ignored() -> None:
    rec = game("l2", by_group, 1, 1200)
    rows = {row.group: row for row in rec.certificate().groups}
    assert rows["a"].c2 < 0.02
    rng = np.random.default_rng(1)
    blind = GroupRecalibrator(resolution=8, buckets=2, seed=1)
    member = rng.random((1200, 2)) < 0.5
    outcomes = member[:, 0] & ~member[:, 1]
    run = blind.replay(rng.random(1200), outcomes)
    gap = (outcomes - run.forecast)[member[:, 1]].mean()
    assert abs(gap) > 0.2


def test_intervals_of_time_make_calibration_adapt() -> None:
    rounds = 4000
    rng = np.random.default_rng(3)
    level = np.where(np.arange(rounds) // 1000 % 2 == 0, 0.2, 0.8)
    outcomes, raw = rng.random(rounds) < level, np.full(rounds, 0.5)
    errors = []
    for rules in (None, TimeIntervals(128)):
        run = GroupRecalibrator(rules, resolution=10, buckets=1, seed=2).replay(raw, outcomes)
        windows = [slice(start, start + 500) for start in range(500, rounds, 500)]
        errors.append(max(abs((run.forecast - outcomes)[part].mean()) for part in windows))
    assert errors[1] < errors[0] / 2
