"""The proofs, executed: each induction step for both outcomes, and small games solved exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_bounds import (
    average_gap,
    c1,
    c2,
    empty,
    endpoints,
    game_value,
    gaps,
    half,
    late_game_value,
    midpoints,
    play,
    played,
    shrunk,
    slack_average,
    slack_gap,
    two_point,
    with_prior,
)

from calibrant.bounds import (
    blackwell_adaptive,
    blackwell_fixed,
    blackwell_measured,
    blackwell_sqrt,
    exponential_regret,
    foster99,
    foster_hart,
    foster_hart_measured,
    half_cell,
    internal_regret,
    polynomial_regret,
    regret_matching,
)

HALF = Fraction(1, 2)


@st.composite
def grids(draw):
    kind = draw(st.sampled_from(["endpoints", "midpoints", "any"]))
    if kind == "endpoints":
        return endpoints(draw(st.integers(1, 6)))
    if kind == "midpoints":
        return midpoints(draw(st.integers(1, 6)))
    points = draw(st.sets(st.integers(0, 40), min_size=1, max_size=6))
    return tuple(Fraction(point, 40) for point in sorted(points))


@st.composite
def states(draw, grid):
    counts = [draw(st.integers(0, 12)) for _ in grid]
    return tuple((n, draw(st.integers(0, n))) for n in counts)


priors = st.fixed_dictionaries(
    {"k0": st.integers(0, 4), "c": st.fractions(0, 1, max_denominator=20)}
)


def mean(mixture, value):
    return sum(w * value(k) for k, w in mixture.items())


def quadratic(grid, state, prior):
    return sum(S * S / n for n, S in with_prior(grid, state, **prior) if n)


def excess(grid, state, prior):
    h = half(grid)
    return sum(shrunk(S, h * n) ** 2 for n, S in with_prior(grid, state, **prior))


def averaged_excess(grid, state, prior):
    h = half(grid)
    return sum(shrunk(S, h * n) ** 2 / n for n, S in with_prior(grid, state, **prior) if n)


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors)
def test_the_average_gap_potential_grows_by_half_a_cell_squared_and_one_over_n(data, grid, prior):
    state = data.draw(states(grid))
    mixture = two_point(average_gap(grid, state, **prior))
    before, h = quadratic(grid, state, prior), half(grid)
    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: quadratic(grid, played(state, k, y), prior))
        share = mean(mixture, lambda k: Fraction(1, state[k][0] + prior["k0"] + 1))
        assert after - before <= h * h + share


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors)
def test_the_adjacent_regret_potential_grows_by_one_step_squared(data, grid, prior):
    state = data.draw(states(grid))
    mixture = two_point(slack_gap(grid, state, **prior))
    before, h = excess(grid, state, prior), half(grid)
    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: excess(grid, played(state, k, y), prior))
        assert after - before <= (1 + h) ** 2


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors, scale=st.floats(0.01, 2.0))
def test_the_hyperbolic_cosine_of_the_potential_grows_by_its_factor(data, grid, prior, scale):
    state = data.draw(states(grid))
    mixture = two_point(slack_gap(grid, state, **prior))

    def potential(where):
        return math.cosh(scale * math.sqrt(excess(grid, where, prior)))

    factor = math.exp((scale * (1 + half(grid))) ** 2 / 2)
    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: potential(played(state, k, y)))
        assert after <= potential(state) * factor * (1 + 1e-9)


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors)
def test_fosters_potential_grows_by_one_over_n(data, grid, prior):
    state = data.draw(states(grid))
    mixture = two_point(slack_average(grid, state, **prior))
    before = averaged_excess(grid, state, prior)
    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: averaged_excess(grid, played(state, k, y), prior))
        assert after - before <= mean(mixture, lambda k: Fraction(1, state[k][0] + prior["k0"] + 1))


@st.composite
def late_states(draw, grid):
    """What the rule knows, what is true, and how many outcomes are on their way."""
    known = draw(states(grid))
    pending = draw(
        st.lists(st.tuples(st.integers(0, len(grid) - 1), st.integers(0, 1)), max_size=5)
    )
    true = known
    for k, y in pending:
        true = played(true, k, y)
    return known, true, len(pending)


@settings(max_examples=100)
@given(data=st.data(), grid=grids(), prior=priors)
def test_late_outcomes_add_twice_their_share_to_the_average_gap_potential(data, grid, prior):
    known, true, D = data.draw(late_states(grid))
    mixture = two_point(average_gap(grid, known, **prior))
    before, h = quadratic(grid, true, prior), half(grid)

    def share(k):
        n = true[k][0] + prior["k0"]
        return Fraction(1, n + 1) + (Fraction(2 * min(D, true[k][0]), n) if n else 0)

    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: quadratic(grid, played(true, k, y), prior))
        assert after - before <= h * h + mean(mixture, share)


@settings(max_examples=100)
@given(data=st.data(), grid=grids(), prior=priors)
def test_late_outcomes_add_two_squared_steps_each_to_the_regret_potential(data, grid, prior):
    known, true, D = data.draw(late_states(grid))
    mixture = two_point(slack_gap(grid, known, **prior))
    before, h = excess(grid, true, prior), half(grid)
    for y in (0, 1):
        after = mean(mixture, lambda k, y=y: excess(grid, played(true, k, y), prior))
        assert after - before <= (1 + 2 * D) * (1 + h) ** 2


@settings(max_examples=60)
@given(data=st.data(), grid=grids())
def test_a_two_point_mixture_drifts_by_at_most_half_a_cell_in_the_cube(data, grid):
    theta = [data.draw(st.fractions(-1, 1, max_denominator=50)) for _ in grid]
    mixture = two_point(theta)
    for y in (0, 1):
        assert mean(mixture, lambda k, y=y: theta[k] * (y - grid[k])) <= half(grid)


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors)
def test_what_a_prior_costs_is_the_distance_of_the_means(data, grid, prior):
    """The identity behind the bias term: pooled sums of squares lose exactly that much."""
    state = data.draw(states(grid))
    k0, c = prior["k0"], prior["c"]
    start = quadratic(grid, empty(grid), prior)
    bias = sum(Fraction(k0 * n, n + k0) * (Fraction(Y, n) - c) ** 2 for n, Y in state if n)
    exact = sum(S * S / n for S, (n, _) in zip(gaps(grid, state), state, strict=True) if n)
    assert exact == quadratic(grid, state, prior) - start + bias


@settings(max_examples=60)
@given(data=st.data(), grid=grids(), prior=priors)
def test_the_regret_potential_bounds_c1_on_every_path(data, grid, prior):
    state = data.draw(states(grid))
    T, k0, c, h = sum(n for n, _ in state), prior["k0"], prior["c"], half(grid)
    assume(T > 0)
    k = sum(n > 0 for n, _ in state)
    shift = sum(abs(k0 * (c - g)) for g in grid)
    root = math.sqrt(k * excess(grid, state, prior))
    assert T * c1(grid, state) <= h * (T + k0 * k) + root + shift + 1e-9


def measured(grid, state, prior, **options):
    counts = [n for n, _ in state]
    means = [Y / n if n else 0.0 for n, Y in state]
    return foster_hart_measured(
        counts,
        half_cell([float(g) for g in grid]),
        prior=prior["k0"],
        means=means,
        centre=float(prior["c"]),
        **options,
    ).value


@pytest.mark.parametrize("grid", [endpoints(2), endpoints(3), midpoints(2), midpoints(3)])
@pytest.mark.parametrize(
    "prior",
    [
        {"k0": 0, "c": HALF},
        {"k0": 1, "c": HALF},
        {"k0": 2, "c": Fraction(1, 5)},
        {"k0": 5, "c": Fraction(9, 10)},
    ],
)
def test_the_best_adversary_cannot_push_c2_above_the_measured_bound(grid, prior):
    """Solved exactly: the expected C2 minus the bound from the counts at hand."""
    value = game_value(
        grid,
        lambda grid, state: average_gap(grid, state, **prior),
        lambda state: float(c2(grid, state)) - measured(grid, state, prior),
        rounds=7,
    )
    assert -0.5 < value <= 1e-12


def test_against_a_strong_prior_half_way_between_two_cells_the_measured_bound_is_nearly_met():
    grid, prior = endpoints(2), {"k0": 200, "c": Fraction(1, 4)}
    value = game_value(
        grid,
        lambda grid, state: average_gap(grid, state, **prior),
        lambda state: float(c2(grid, state)) - measured(grid, state, prior),
        rounds=7,
    )
    assert -0.01 < value <= 0.0


@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("prior", [{"k0": 0, "c": HALF}, {"k0": 2, "c": Fraction(1, 4)}])
def test_late_outcomes_cannot_push_c2_above_the_bound_for_their_delay(delay, prior):
    grid = endpoints(2)
    value = late_game_value(
        grid,
        lambda grid, state: average_gap(grid, state, **prior),
        lambda state: float(c2(grid, state)) - measured(grid, state, prior, delay=delay),
        rounds=6,
        delay=delay,
    )
    assert value <= 1e-12


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
@pytest.mark.parametrize("grid", [endpoints(2), midpoints(2)])
def test_late_outcomes_cannot_push_the_regret_potential_above_its_growth(delay, grid):
    rounds, h, none = 6, half(grid), {"k0": 0, "c": HALF}
    value = late_game_value(
        grid, slack_gap, lambda state: excess(grid, state, none), rounds=rounds, delay=delay
    )
    assert value <= (1 + 2 * delay) * rounds * (1 + h) ** 2


RULES = {
    "foster_hart": (average_gap, lambda *sizes: foster_hart(*sizes).as_c1()),
    "regret_matching": (slack_gap, regret_matching),
    "foster99": (slack_average, foster99),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("grid", [endpoints(2), midpoints(2), midpoints(3)])
def test_the_best_adversary_cannot_push_c1_above_the_bound(name, grid):
    score, bound = RULES[name]
    value = game_value(grid, score, lambda state: c1(grid, state), rounds=7)
    assert value <= bound(7, len(grid), float(half(grid))).value


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("grid", [endpoints(6), midpoints(8)])
def test_the_greedy_adversary_stays_below_the_bound(name, grid):
    score, bound = RULES[name]
    errors = [float(c1(grid, play(grid, score, 600, seed))) for seed in range(3)]
    limit = bound(600, len(grid), float(half(grid))).value
    assert limit < 0.5
    assert np.mean(errors) <= limit


@pytest.mark.parametrize("prior", [{"k0": 1, "c": 0.5}, {"k0": 10, "c": 0.95}])
@pytest.mark.parametrize("name", ["regret_matching", "foster99"])
def test_with_a_prior_the_greedy_adversary_stays_below_the_bound(name, prior):
    grid = endpoints(6)
    score, bound = RULES[name]
    state = play(grid, lambda *where: score(*where, **prior), 600, seed=5)
    starts = [prior["k0"] * (prior["c"] - float(g)) for g in grid]
    limit = bound(600, 7, 1 / 12, prior=prior["k0"], prior_scores=starts).value
    assert c1(grid, state) <= limit
    assert limit <= bound(600, 7, 1 / 12, prior=prior["k0"]).value


@st.composite
def walks(draw):
    grid = [float(g) for g in draw(grids())]
    plays = draw(st.lists(st.tuples(st.integers(0, len(grid) - 1), st.integers(0, 1)), min_size=1))
    start = [draw(st.floats(-1, 1)) for _ in grid]
    return grid, plays, start


def descend(grid, plays, start, step_of):
    """Gradient ascent in the cube: what it collected, and the gaps it saw."""
    theta, collected, S = list(start), 0.0, [0.0] * len(grid)
    V = [0.0] * len(grid)
    for t, (k, y) in enumerate(plays, start=1):
        z = y - grid[k]
        collected += theta[k] * z
        S[k] += z
        V[k] += z * z
        if z:
            theta[k] = min(max(theta[k] + step_of(t, V[k]) * z, -1.0), 1.0)
    return collected, sum(abs(s) for s in S), V


@settings(max_examples=60)
@given(walk=walks(), step=st.floats(0.01, 2.0))
def test_gradient_steps_of_one_size_collect_all_gaps_but_the_bound(walk, step):
    grid, plays, start = walk
    collected, total, _ = descend(grid, plays, start, lambda t, V: step)
    T = len(plays)
    bound = blackwell_fixed(T, len(grid), 0.0, step=step, start=start)
    assert total - collected <= T * bound.value + 1e-9


@settings(max_examples=60)
@given(walk=walks())
def test_gradient_steps_that_shrink_collect_all_gaps_but_the_bound(walk):
    grid, plays, start = walk
    T, K = len(plays), len(grid)
    collected, total, _ = descend(grid, plays, start, lambda t, V: math.sqrt(2 * K / t))
    assert total - collected <= T * blackwell_sqrt(T, K, 0.0).value + 1e-9


@settings(max_examples=60)
@given(walk=walks())
def test_gradient_steps_of_each_cells_own_collect_all_gaps_but_the_bound(walk):
    grid, plays, start = walk
    T = len(plays)
    collected, total, V = descend(grid, plays, start, lambda t, V: math.sqrt(2 / V))
    bound = blackwell_measured(V, T, 0.0).value
    assert total - collected <= T * bound + 1e-9
    assert bound <= blackwell_adaptive(T, len(grid), 0.0).value + 1e-12


def stationary(flows):
    """The law under which each action is left as often as it is entered."""
    K = len(flows)
    balance = np.vstack([flows.T - np.diag(flows.sum(axis=1)), np.ones(K)])
    law = np.linalg.lstsq(balance, np.append(np.zeros(K), 1.0), rcond=None)[0]
    return np.clip(law, 0.0, None) / np.clip(law, 0.0, None).sum()


def exponential_flows(R, eta):
    flows = np.exp(eta * (R - R.max()))
    np.fill_diagonal(flows, 0.0)
    return flows


def polynomial_flows(R, eta):
    return np.clip(R, 0.0, None)


def swaps(flows_of, losses, eta_of, start=None):
    """Regrets of expected updates on a table of losses, one row per round."""
    K = losses.shape[1]
    R0 = np.zeros((K, K)) if start is None else start
    R = R0.copy()
    for t, loss in enumerate(losses, start=1):
        w = stationary(flows_of(R, eta_of(t)))
        R += w[:, np.newaxis] * (loss[:, np.newaxis] - loss[np.newaxis, :])
    return R - R0


tables = st.integers(2, 5).flatmap(
    lambda K: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=K, max_size=K),
        min_size=1,
        max_size=30,
    ).map(np.array)
)


@settings(max_examples=40)
@given(losses=tables, eta=st.floats(0.05, 3.0))
def test_internal_regret_stays_below_its_bound_on_every_path(losses, eta):
    T, K = losses.shape
    log = math.log(K * (K - 1))
    R = swaps(exponential_flows, losses, lambda t: eta)
    assert R.max() <= T * internal_regret(T, K, step=eta).value + 1e-9
    R = swaps(exponential_flows, losses, lambda t: math.sqrt(8 * log / T))
    assert R.max() <= T * internal_regret(T, K).value + 1e-9
    for behind in (0, 1):
        R = swaps(exponential_flows, losses, lambda t, b=behind: math.sqrt(8 * log / max(t - b, 1)))
        assert R.max() <= T * internal_regret(T, K, step="any-time").value + 1e-9


@settings(max_examples=40)
@given(losses=tables)
def test_squared_regrets_of_all_swaps_grow_by_one_action_less_a_round(losses):
    T, K = losses.shape
    R = swaps(polynomial_flows, losses, lambda t: 1.0)
    assert (np.clip(R, 0.0, None) ** 2).sum() <= T * (K - 1) + 1e-6


@settings(max_examples=60)
@given(losses=st.lists(st.floats(0, 1), min_size=2, max_size=6), data=st.data())
def test_the_regrets_of_one_round_span_an_interval_of_length_one(losses, data):
    """For a mixture and, which saves the realised update its factor, for a draw."""
    loss = np.array(losses)
    raw = np.array([data.draw(st.floats(0.01, 1)) for _ in losses])
    drawn = np.eye(len(losses))[data.draw(st.integers(0, len(losses) - 1))]
    for w in (raw / raw.sum(), drawn):
        r = w[:, np.newaxis] * (loss[:, np.newaxis] - loss[np.newaxis, :])
        assert np.ptp(r) <= 1 + 1e-12


def squared_losses(grid, outcomes):
    return (np.asarray(outcomes, dtype=float)[:, np.newaxis] - np.asarray(grid)) ** 2


def pseudo_c2(grid, outcomes, flows_of, eta_of, k0, c):
    """C2 of the mixtures, from a run of expected updates that starts with a prior."""
    grid = np.asarray(grid, dtype=float)
    start = k0 * ((c - grid[:, np.newaxis]) ** 2 - (c - grid) ** 2)
    W, Y, R = np.zeros(len(grid)), np.zeros(len(grid)), start.copy()
    for t, (y, loss) in enumerate(zip(outcomes, squared_losses(grid, outcomes), strict=True), 1):
        w = stationary(flows_of(R, eta_of(t)))
        R += w[:, np.newaxis] * (loss[:, np.newaxis] - loss[np.newaxis, :])
        W, Y = W + w, Y + w * y
    used = W > 0
    return float(((Y - grid * W)[used] ** 2 / W[used]).sum() / len(outcomes))


@settings(max_examples=40)
@given(
    grid=grids(),
    outcomes=st.lists(st.integers(0, 1), min_size=1, max_size=40),
    k0=st.sampled_from([0, 1, 5]),
    c=st.floats(0, 1),
)
def test_swap_rules_stay_below_their_bounds_on_every_path(grid, outcomes, k0, c):
    T, K, h = len(outcomes), len(grid), float(half(grid))
    log = math.log(max(K * (K - 1), 2))
    found = pseudo_c2(grid, outcomes, polynomial_flows, lambda t: 1.0, k0, c)
    assert found <= polynomial_regret(T, K, h, prior=k0, centre=c).value + 1e-6
    found = pseudo_c2(grid, outcomes, exponential_flows, lambda t: math.sqrt(8 * log / t), k0, c)
    limit = exponential_regret(T, K, h, prior=k0, centre=c, step="any-time")
    assert found <= limit.value + 1e-6


@pytest.mark.parametrize(
    ("flows_of", "bound"),
    [(exponential_flows, exponential_regret), (polynomial_flows, polynomial_regret)],
)
def test_realised_swap_rules_stay_below_their_bounds_on_average(flows_of, bound):
    grid, T, coin = np.linspace(0, 1, 5), 1500, np.random.default_rng(3)
    eta = math.sqrt(8 * math.log(20) / T)
    n, Y = np.zeros(5), np.zeros(5)
    R = np.zeros((5, 5))
    for _ in range(T):
        w = stationary(flows_of(R, eta)) if R.any() else np.full(5, 0.2)
        y = int(w @ grid <= 0.5)
        k = coin.choice(5, p=w)
        loss = (y - grid) ** 2
        R[k] += loss[k] - loss
        n[k], Y[k] = n[k] + 1, Y[k] + y
    used = n > 0
    error = ((Y - grid * n)[used] ** 2 / n[used]).sum() / T
    limit = bound(T, 5, 1 / 8, realised=True)
    assert limit.quantity == "C2"
    assert error <= limit.value < 0.5
