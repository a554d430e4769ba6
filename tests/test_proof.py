"""The induction steps of the proofs, executed: any history, either outcome, exact fractions.

The mixture comes from the calibrator.  That its cells are the ones the proof speaks of and
that its weights are the proof's, to rounding, is checked; the step itself is then computed
with the proof's weights, so the inequalities are exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import naive_calibrators as naive
import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.calibrators import (
    Anchored,
    Blackwell,
    ExponentialRegret,
    Foster99,
    FosterHart,
    PolynomialRegret,
    RegretMatching,
)
from calibrant.core.grid import GRIDS
from calibrant.kernels import blackwell, gaps
from calibrant.kernels.anchor import PULL, REGRET
from calibrant.kernels.layout import (
    MIXED,
    POSITION,
    SCALE,
    TABLE,
)

pytestmark = pytest.mark.base

CENTRES = st.fractions(0, 1, max_denominator=20)
PRIORS = st.sampled_from([0, 0, 1, 5])
OUTCOMES = (0, 1)


class History:
    """Any counts that a calibrator may have met, and its state after them."""

    def __init__(self, rule, counts, ones, position, prior, centre):
        self.rule, self.values = rule, naive.fractions(rule.lattice)
        self.n = [prior + n for n in counts]
        self.Y = [prior * centre + y for y in ones]
        self.S = [y - n * g for n, y, g in zip(self.n, self.Y, self.values, strict=True)]
        self.h = naive.half_cell(self.values)
        self.state = rule.start(prior=prior, centre=centre).copy()
        at, scale = players.block_of(self.state), int(self.state[SCALE])
        self.state[at + POSITION] = position
        cells = players.cells_of(rule, self.state)
        for k, (n, y) in enumerate(zip(counts, ones, strict=True)):
            cells[k, 0] += int(scale * (y - n * self.values[k]))
            cells[k, 1] += n
        self.mixture = rule.forecast(self.state)

    def __repr__(self):
        return f"{self.rule!r} n={self.n} Y={self.Y} mixture={self.mixture}"

    def weights(self, scores):
        """Check that the mixture is the two-point rule's for these scores; return its weights."""
        first = self.mixture.indices[0]
        if len(self.mixture.indices) == 1:
            last = len(self.values) - 1
            outwards = (first == 0 and scores[0] < 0) or (first == last and scores[last] > 0)
            assert scores[first] == 0 or outwards
            return {first: Fraction(1)}
        low, high = self.mixture.indices
        assert high == low + 1
        assert scores[low] > 0 > scores[high]
        weight = -scores[high] / (scores[low] - scores[high])
        assert self.mixture.weights[0] == pytest.approx(float(weight), rel=1e-13)
        return {low: weight, high: 1 - weight}


@st.composite
def histories(draw, make, most=30, **options):
    grid = draw(st.sampled_from(GRIDS))
    rule = make(resolution=draw(st.integers(2, 7)), grid=grid, **options)
    cells = rule.lattice.cells
    counts = draw(st.lists(st.integers(0, most), min_size=cells, max_size=cells))
    ones = [draw(st.integers(0, n)) for n in counts]
    position = draw(st.integers(0, cells - 1))
    return History(rule, counts, ones, position, draw(PRIORS), draw(CENTRES))


def expected(weights, term):
    return sum(weight * term(k) for k, weight in weights.items())


# foster_hart: Q = sum_i S_i^2 / n_i.


def energy(gap, count):
    return gap * gap / count if count else 0


@given(histories(FosterHart))
def test_a_visit_changes_the_average_gap_energy_by_the_formula(past) -> None:
    for k, g in enumerate(past.values):
        mean = past.Y[k] / past.n[k] if past.n[k] else g
        for y in OUTCOMES:
            grown = energy(past.S[k] + y - g, past.n[k] + 1) - energy(past.S[k], past.n[k])
            assert grown == (y - g) ** 2 - (y - mean) ** 2 + (y - mean) ** 2 / (past.n[k] + 1)


@given(histories(FosterHart))
def test_the_average_gap_energy_drifts_by_at_most_half_a_cell_squared(past) -> None:
    e = [s / n if n else Fraction(0) for s, n in zip(past.S, past.n, strict=True)]
    weights = past.weights(e)
    for y in OUTCOMES:
        drift = expected(weights, lambda k, y=y: 2 * e[k] * (y - past.values[k]) - e[k] ** 2)
        assert drift <= past.h**2

        def growth(k, y=y):
            after = energy(past.S[k] + y - past.values[k], past.n[k] + 1)
            return after - energy(past.S[k], past.n[k])

        tail = expected(weights, lambda k: Fraction(1, past.n[k] + 1))
        assert expected(weights, growth) <= past.h**2 + tail


@given(histories(FosterHart))
def test_a_prior_only_moves_the_energy_by_the_distance_of_means(past) -> None:
    k0, c = 3, Fraction(2, 5)
    for n, y, g in zip(past.n, past.Y, past.values, strict=True):
        if n:
            r, mixed = y / n, (y + k0 * c) / (n + k0)
            left = n * (r - g) ** 2 + k0 * (c - g) ** 2
            assert left == (n + k0) * (mixed - g) ** 2 + Fraction(k0 * n, n + k0) * (r - c) ** 2


# regret_matching: P = sum_i x_i^2 with x_i = max(|S_i| - h n_i, 0), h the half cell on its side.


def slack_of(values, k):
    """Half the way to the neighbours below and above; the whole range beyond the ends."""
    below = (values[k] - values[k - 1]) / 2 if k > 0 else 1
    above = (values[k + 1] - values[k]) / 2 if k + 1 < len(values) else 1
    return below, above


def excess(gap, count, slack):
    """How far a gap is beyond its slack, with its sign."""
    below, above = slack
    return max(gap - above * count, 0) - max(-gap - below * count, 0)


def pushed(k, y, past, score):
    """How far the outcome pushes the excess of a cell further out, its slack taken off."""
    below, above = slack_of(past.values, k)
    v = y - past.values[k]
    return v - above if score > 0 else -v - below


def scores_of(past):
    slacks = [slack_of(past.values, k) for k in range(len(past.values))]
    return slacks, [excess(*cell) for cell in zip(past.S, past.n, slacks, strict=True)]


@given(histories(RegretMatching))
def test_regret_matching_takes_no_first_order_step(past) -> None:
    slacks, x = scores_of(past)
    weights = past.weights(x)
    for y in OUTCOMES:
        first = expected(weights, lambda k, y=y: abs(x[k]) * pushed(k, y, past, x[k]))
        assert first == 0 if len(weights) == 2 else first <= 0

        def growth(k, y=y):
            gap = past.S[k] + y - past.values[k]
            return excess(gap, past.n[k] + 1, slacks[k]) ** 2 - x[k] ** 2

        assert expected(weights, growth) <= (1 + past.h) ** 2


@given(histories(RegretMatching))
def test_a_visit_lets_the_regret_potential_grow_by_no_more_than_the_proof_says(past) -> None:
    slacks, x = scores_of(past)
    for k in range(len(past.values)):
        for y in OUTCOMES:
            after = excess(past.S[k] + y - past.values[k], past.n[k] + 1, slacks[k]) ** 2
            push = pushed(k, y, past, x[k])
            bound = 2 * abs(x[k]) * push + (1 + past.h) ** 2
            assert after - x[k] ** 2 <= bound
            if x[k] != 0:
                assert after <= (abs(x[k]) + push) ** 2


@given(histories(RegretMatching))
def test_what_slack_hides_is_at_most_half_a_cell_a_round(past) -> None:
    _, x = scores_of(past)
    for gap, count, score in zip(past.S, past.n, x, strict=True):
        assert abs(gap) <= past.h * count + abs(score)


@given(histories(RegretMatching))
def test_regret_matching_is_a_stationary_law_of_the_adjacent_swaps(past) -> None:
    g, n, Y = past.values, past.n, past.Y

    def regret(i, j):
        return (g[i] - g[j]) * ((g[i] + g[j]) * n[i] - 2 * Y[i])

    _, x = scores_of(past)
    weights = past.weights(x)
    for k in range(len(g)):
        flow = 0
        for j in (k - 1, k + 1):
            if 0 <= j < len(g):
                flow += weights.get(j, 0) * max(regret(j, k), 0)
                flow -= weights.get(k, 0) * max(regret(k, j), 0)
        assert flow == 0
        if 0 < k < len(g) - 1:
            assert regret(k, k - 1) <= 0 or regret(k, k + 1) <= 0


# anchored: Q + p(R), with R the regret of the mean forecasts to their anchors.


@st.composite
def anchored_rounds(draw):
    """Any counts, an anchor, a regret; and the mixture that is announced then."""
    rule = Anchored(
        resolution=draw(st.integers(2, 7)),
        grid=draw(st.sampled_from(GRIDS)),
        strength=draw(st.sampled_from([0.0, 0.5, 4.0, 50.0])),
        patience=draw(st.sampled_from([2.85, 3.0, 20.0])),
    )
    cells, state = rule.lattice.cells, rule.start().copy()
    counts = np.array(draw(st.lists(st.integers(0, 30), min_size=cells, max_size=cells)))
    ones = np.array([draw(st.integers(0, int(n))) for n in counts])
    anchor, regret = draw(st.floats(0, 1)), draw(st.floats(-30, 30))
    at, scale = players.block_of(state), int(state[SCALE])
    table = state[int(state[TABLE]) : int(state[TABLE]) + cells]
    gaps = np.where(counts > 0, ones / np.maximum(counts, 1) - rule.lattice.values, 0.0)
    block = players.cells_of(rule, state)
    block[:, 0], block[:, 1] = scale * ones - counts * table, counts
    block.view(float)[:, 2] = gaps
    pull = rule.strength * math.exp(min(regret / rule.patience, 0.0))
    state.view(float)[[MIXED, at + REGRET, at + PULL]] = anchor, regret, pull
    return rule, gaps, anchor, regret, pull, rule.forecast(state)


@given(anchored_rounds())
def test_an_anchored_pair_points_nowhere_on_average(case) -> None:
    rule, gaps, anchor, _, pull, mixture = case
    scores = gaps + pull * (anchor - rule.lattice.values)
    told = sum(w * scores[k] for k, w in zip(mixture.indices, mixture.weights, strict=True))
    first, last = mixture.indices[0], mixture.indices[-1]
    outwards = (first == 0 and told < 0) or (last == rule.lattice.cells - 1 and told > 0)
    assert abs(told) < 1e-12 * (1 + pull) or (first == last and outwards)


@given(anchored_rounds())
def test_an_anchored_round_raises_the_potential_by_little(case) -> None:
    rule, gaps, anchor, regret, pull, mixture = case
    c, R0 = rule.strength, rule.patience

    def potential(x):
        return c * R0 * math.exp(x / R0) if x < 0 else c * (R0 + x)

    values, end = rule.lattice.values, max(rule.lattice.values[0], 1 - rule.lattice.values[-1])
    floor = max(rule.lattice.half_cell**2, (1 + 2 * c) * end**2)
    mean = mixture.mean
    for y in OUTCOMES:
        drift = sum(
            w * (2 * gaps[k] * (y - values[k]) - gaps[k] ** 2)
            for k, w in zip(mixture.indices, mixture.weights, strict=True)
        )
        lost = (mean - y) ** 2 - (anchor - y) ** 2
        grown = potential(regret + lost) - potential(regret)
        assert grown <= pull * lost + pull * (mean - anchor) ** 2 + 1e-9
        assert drift + grown <= floor + 1e-9


# foster99: Q = sum_i n_i x_i^2 with x_i the average excess.


@given(histories(Foster99))
def test_foster99_grows_by_at_most_one_over_the_visits(past) -> None:
    slacks, total = scores_of(past)
    x = [s / n if n else Fraction(0) for s, n in zip(total, past.n, strict=True)]
    weights = past.weights(x)
    for y in OUTCOMES:
        first = expected(weights, lambda k, y=y: abs(x[k]) * pushed(k, y, past, x[k]))
        assert first == 0 if len(weights) == 2 else first <= 0

        def growth(k, y=y):
            n = past.n[k] + 1
            after = excess(past.S[k] + y - past.values[k], n, slacks[k])
            return after**2 / n - past.n[k] * x[k] ** 2

        def allowed(k, y=y):
            mean = past.Y[k] / past.n[k] if past.n[k] else past.values[k]
            return (y - mean) ** 2 / (past.n[k] + 1)

        assert expected(weights, growth) <= expected(weights, allowed)


# blackwell: the halfspace of the scores cannot be left by more than half a cell.


@st.composite
def scores(draw):
    grid = draw(st.sampled_from(GRIDS))
    rule = Blackwell(resolution=draw(st.integers(2, 9)), grid=grid)
    cells = rule.lattice.cells
    theta = draw(st.lists(st.floats(-1, 1), min_size=cells, max_size=cells))
    if grid == "endpoints":
        theta[0], theta[-1] = abs(theta[0]), -abs(theta[-1])
    state = rule.start().copy()
    players.cells_of(rule, state).view(float)[:, 2] = theta
    state[players.block_of(state) + POSITION] = draw(st.integers(0, cells - 1))
    return rule, theta, rule.forecast(state)


@given(scores())
def test_no_outcome_leaves_the_halfspace_by_more_than_half_a_cell(given_scores) -> None:
    rule, theta, mixture = given_scores
    values, exact = naive.fractions(rule.lattice), [Fraction(t) for t in theta]
    weights = {mixture.indices[0]: Fraction(1)}
    if len(mixture.indices) == 2:
        low, high = mixture.indices
        assert exact[low] > 0 > exact[high]
        weight = -exact[high] / (exact[low] - exact[high])
        assert mixture.weights[0] == pytest.approx(float(weight), rel=1e-13, abs=1e-300)
        weights = {low: weight, high: 1 - weight}
    for y in OUTCOMES:
        left = expected(weights, lambda k, y=y: exact[k] * (y - values[k]))
        assert left <= naive.half_cell(values) + Fraction(1, 2**50)


RULES = st.builds(
    lambda grid, n, options: Blackwell(resolution=n, grid=grid, **options),
    st.sampled_from(GRIDS),
    st.integers(2, 6),
    st.sampled_from(
        [
            {},
            {"updates": "expected"},
            {"step": "sqrt"},
            {"step": "sqrt", "updates": "expected"},
            {"step": "fixed", "eta": 0.7},
            {"step": "fixed", "eta": 3.0, "updates": "expected"},
            {"step": "fixed", "horizon": 50},
        ]
    ),
)
PLAYS = st.lists(st.tuples(st.booleans(), st.integers(0, 1)), max_size=40)


def played(rule, state, plays):
    """Yield the states that a game runs through; each play says which side and which outcome."""
    yield state
    for up, y in plays:
        indices = rule.forecast(state).indices
        state = rule.update(state, indices[-1] if up else indices[0], y)
        yield state


def column(rule, state, word, kind=np.int64):
    return players.cells_of(rule, state)[:, word].copy().view(kind)


@given(RULES, PLAYS, PRIORS, CENTRES)
def test_scores_stay_in_the_cube_and_point_inwards_at_the_ends(rule, plays, prior, centre) -> None:
    for state in played(rule, rule.start(prior=prior, centre=centre), plays):
        theta = column(rule, state, 2, float)
        assert np.abs(theta).max() <= 1.0
        if rule.grid == "endpoints":
            assert theta[0] >= 0.0 >= theta[-1]


@given(st.sampled_from([FosterHart, RegretMatching, Foster99]), PLAYS, PRIORS, CENTRES)
def test_gaps_at_the_ends_of_the_range_point_inwards(make, plays, prior, centre) -> None:
    rule = make(resolution=5)
    for state in played(rule, rule.start(prior=prior, centre=centre), plays):
        gap = column(rule, state, 0)
        assert gap[0] >= 0 >= gap[-1]
        mixture = rule.forecast(state)
        assert sum(mixture.weights) == pytest.approx(1.0, abs=1e-15)
        assert len(mixture.indices) == 1 or mixture.indices[1] == mixture.indices[0] + 1


# The pointer: where the search starts, the scores change sign.

SCORES = {
    FosterHart: gaps.score,
    RegretMatching: gaps.score_with_slack,
    Foster99: gaps.score_with_slack,
    Blackwell: blackwell.score,
}


@given(
    st.sampled_from(list(SCORES)),
    st.sampled_from(GRIDS),
    st.integers(2, 7),
    PLAYS,
    PRIORS,
    CENTRES,
)
def test_left_of_the_position_scores_point_up_and_right_of_it_down(
    make, grid, n, plays, prior, centre
) -> None:
    rule = make(resolution=n, grid=grid)
    for state in played(rule, rule.start(prior=prior, centre=centre), plays):
        at, table = players.block_of(state), int(state[TABLE])
        words, reals = state.tolist(), state.view(float).tolist()
        scores = [SCORES[make](words, reals, at, table, k) for k in range(rule.lattice.cells)]
        position = words[at + POSITION]
        assert all(score >= 0 for score in scores[:position])
        assert all(score <= 0 for score in scores[position + 1 :])


# exponential_regret and polynomial_regret: regrets from two sums, and the stationary law.


@st.composite
def sums(draw, make, heaviest=60.0):
    """A rule, its state with any weights W and outcomes Y, and the regrets from them."""
    rule = make(resolution=draw(st.integers(2, 6)), grid=draw(st.sampled_from(GRIDS)))
    cells = rule.lattice.cells
    weights = st.one_of(st.just(0.0), st.floats(1e-6, heaviest))
    W = draw(st.lists(weights, min_size=cells, max_size=cells))
    Y = [w * draw(st.floats(0, 1)) for w in W]
    state = rule.start().copy()
    inner = players.cells_of(rule, state).view(float)
    inner[:, 2], inner[:, 3] = W, Y
    g = rule.lattice.values
    R = (g[:, None] - g) * ((g[:, None] + g) * np.array(W)[:, None] - 2 * np.array(Y)[:, None])
    return rule, state, R


def law_in(rule, state):
    mixture, law = rule.forecast(state), np.zeros(rule.lattice.cells)
    law[list(mixture.indices)] = mixture.weights
    return law


@given(sums(ExponentialRegret, heaviest=20.0))
def test_the_exponential_law_is_stationary(case) -> None:
    rule, state, R = case
    K = rule.lattice.cells
    eta = math.sqrt(8 * math.log(K * (K - 1)))
    law = law_in(rule, state)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    # Rates below exp(-60) of the largest that leaves their row are raised to that.
    largest = np.where(np.eye(K, dtype=bool), -np.inf, R).max(1)
    rates = np.exp(np.maximum(eta * (R - largest[:, None]), -60.0))
    units = np.exp(eta * (largest - largest.max()))
    assert naive.net_flow(law, rates * units[:, None]).max() < 1e-9


@given(sums(PolynomialRegret))
def test_the_polynomial_law_is_stationary(case) -> None:
    rule, state, R = case
    law, rates = law_in(rule, state), np.maximum(R, 0.0)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    flow = law @ rates - law * rates.sum(1)
    assert np.abs(flow).max() <= 1e-9 * max(rates.max(), 1e-300)


@pytest.mark.parametrize(
    ("updates", "walk"),
    [("realised", [4, 3, 2, 1, 0, 5, 6, 7, 8]), ("expected", [4, 3, 5, 2, 6, 1, 7, 0, 8])],
)
def test_of_cells_without_regret_the_nearest_is_played(updates, walk) -> None:
    # Nearest to the last draw, or, where draws do not count, to where the bucket began.
    rule = PolynomialRegret(resolution=8, updates=updates)
    state = rule.start(prior=0, centre=0.5)
    for place in walk:
        assert rule.forecast(state).indices == (place,)
        state = rule.update(state, place, 1)


@given(sums(PolynomialRegret))
def test_blackwells_condition_holds_with_equality_for_either_outcome(case) -> None:
    rule, state, R = case
    law, rates, g = law_in(rule, state), np.maximum(R, 0.0), rule.lattice.values
    for y in OUTCOMES:
        saved = (y - g[:, None]) ** 2 - (y - g) ** 2
        drift = (rates * law[:, None] * saved).sum()
        assert abs(drift) <= 1e-9 * max(rates.max(), 1e-300)


@given(sums(ExponentialRegret, heaviest=20.0))
def test_the_weighted_regret_of_a_round_vanishes_for_either_outcome(case) -> None:
    rule, state, R = case
    K, g = rule.lattice.cells, rule.lattice.values
    eta = math.sqrt(8 * math.log(K * (K - 1)))
    potential = np.exp(eta * (R - R.max()))
    np.fill_diagonal(potential, 0.0)
    law = law_in(rule, state)
    for y in OUTCOMES:
        saved = law[:, None] * ((y - g[:, None]) ** 2 - (y - g) ** 2)
        assert abs((potential * saved).sum()) <= 1e-9 * potential.sum()


@pytest.mark.parametrize("updates", ["expected", "realised"])
@pytest.mark.parametrize("make", [ExponentialRegret, PolynomialRegret])
@given(plays=PLAYS, grid=st.sampled_from(GRIDS), prior=PRIORS, centre=CENTRES)
@settings(max_examples=25)
def test_two_sums_a_cell_remember_every_regret(make, updates, plays, grid, prior, centre) -> None:
    rule = make(resolution=4, grid=grid, updates=updates)
    obvious = naive.AllPairs(naive.fractions(rule.lattice), prior, centre)
    state = rule.start(prior=prior, centre=centre)
    for up, y in plays:
        law = law_in(rule, state)
        indices = np.flatnonzero(law)
        drawn = indices[-1] if up else indices[0]
        state = rule.update(state, int(drawn), y)
        obvious.update(law if updates == "expected" else np.eye(len(law))[drawn], y)
    W, Y, g = column(rule, state, 2, float), column(rule, state, 3, float), rule.lattice.values
    R = (g[:, None] - g) * ((g[:, None] + g) * W[:, None] - 2 * Y[:, None])
    assert pytest.approx(obvious.regrets, abs=1e-10) == R
    up, down = np.diag(R, 1), np.diag(R, -1)
    width = np.diff(g)
    inner = up[1:] / width[1:] + down[:-1] / width[:-1]
    assert inner == pytest.approx(-(width[1:] + width[:-1]) * W[1:-1], abs=1e-10)
