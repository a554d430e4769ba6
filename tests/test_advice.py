"""Experts: the bounds on every path, the steps of their proofs, and the stationary law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import naive_advice as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibrant.advice import (
    ExponentialWeights,
    InternalRegret,
    OnlineExperts,
    RegretMatching,
    Rule,
    State,
    SwapRegret,
    external_regret,
    internal_regret,
    mix,
    pair_regrets,
    stationary_law,
    stationary_law_of_logs,
    substitute,
    swap_regret,
)
from calibrant.advice.rule import Schedule
from calibrant.errors import InvalidInput, InvalidType

Array = Any
Adversary = Callable[[np.random.Generator, int, State], Array]

REGRETS = {"external": external_regret, "internal": internal_regret, "swap": swap_regret}
ROUNDS = 200


def uniform(random: np.random.Generator, rounds: int, state: State) -> Array:
    return random.random(len(state.weights))


def binary(random: np.random.Generator, rounds: int, state: State) -> Array:
    return random.integers(0, 2, len(state.weights)).astype(float)


def periodic(random: np.random.Generator, rounds: int, state: State) -> Array:
    experts = len(state.weights)
    return np.roll(np.linspace(0.0, 1.0, experts), state.rounds // 3 % experts)


def switching(random: np.random.Generator, rounds: int, state: State) -> Array:
    experts = len(state.weights)
    good = state.rounds * experts // rounds
    return np.where(np.arange(experts) == good % experts, 0.0, 1.0)


def heaviest(random: np.random.Generator, rounds: int, state: State) -> Array:
    losses = np.zeros(len(state.weights))
    losses[np.argmax(state.weights)] = 1.0
    return losses


def lightest(random: np.random.Generator, rounds: int, state: State) -> Array:
    losses = np.ones(len(state.weights))
    losses[np.argmin(state.weights)] = 0.0
    return losses


ADVERSARIES = (uniform, binary, periodic, switching, heaviest, lightest)


def rules(experts: int, loss_bound: float = 1.0) -> list[Rule]:
    scheduled = (ExponentialWeights, InternalRegret, SwapRegret)
    choices: tuple[dict[str, Any], ...] = ({}, {"horizon": ROUNDS}, {"eta": 0.3 / loss_bound})
    made: list[Rule] = [
        kind(experts, loss_bound=loss_bound, **choice) for kind in scheduled for choice in choices
    ]
    powers = (2.0, 3.0, max(2.0, 2.0 * math.log(experts)))
    return made + [RegretMatching(experts, power, loss_bound) for power in powers]


def play(rule: Rule, adversary: Adversary, rounds: int, seed: int = 0) -> tuple[Array, Array]:
    """Return the weights and the losses of a run."""
    random = np.random.default_rng(seed)
    state, weights, losses = rule.start(), [], []
    for _ in range(rounds):
        weights.append(rule.weights(state))
        losses.append(rule.loss_bound * adversary(random, rounds, state))
        state = rule.update(state, losses[-1])
    return np.array(weights), np.array(losses)


unit = st.floats(0.0, 1.0)


@st.composite
def runs(draw: Any, experts: tuple[int, int] = (2, 4)) -> tuple[Array, Array]:
    shape = (draw(st.integers(1, 6)), draw(st.integers(*experts)))
    weights = draw(arrays(float, shape, elements=st.floats(1e-3, 1.0)))
    return weights / weights.sum(axis=1, keepdims=True), draw(arrays(float, shape, elements=unit))


@st.composite
def histories(draw: Any) -> Array:
    shape = (draw(st.integers(1, 8)), draw(st.integers(2, 5)))
    return draw(arrays(float, shape, elements=st.one_of(st.sampled_from([0.0, 1.0]), unit)))


@given(runs())
def test_the_regrets_are_those_of_the_definitions(run: tuple[Array, Array]) -> None:
    weights, losses = run
    plain = weights.tolist(), losses.tolist()
    assert external_regret(*run) == pytest.approx(naive.external_regret(*plain), abs=1e-12)
    assert internal_regret(*run) == pytest.approx(naive.internal_regret(*plain), abs=1e-12)
    assert swap_regret(*run) == pytest.approx(naive.swap_regret(*plain), abs=1e-12)


@given(runs())
def test_the_table_of_pairs_is_the_triple_loop(run: tuple[Array, Array]) -> None:
    table = pair_regrets(*run)
    for (i, j), found in np.ndenumerate(table):
        assert found == pytest.approx(naive.pair_regret(*run, i, j), abs=1e-12)
    assert not table.diagonal().any()


@given(runs((2, 6)))
def test_internal_and_external_regret_are_at_most_swap_regret(run: tuple[Array, Array]) -> None:
    experts = run[0].shape[1]
    assert internal_regret(*run) <= swap_regret(*run) + 1e-12
    assert external_regret(*run) <= swap_regret(*run) + 1e-12
    assert swap_regret(*run) <= experts * internal_regret(*run) + 1e-12


def test_an_empty_run_has_no_regret() -> None:
    nothing = np.empty((0, 3))
    assert [regret(nothing, nothing) for regret in REGRETS.values()] == [0.0, 0.0, 0.0]


def test_external_regret_is_negative_when_switching_paid_off() -> None:
    assert external_regret([[1, 0], [0, 1]], [[0, 1], [1, 0]]) == -1.0
    assert internal_regret([[1, 0], [0, 1]], [[0, 1], [1, 0]]) == 0.0


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary.__name__)
@pytest.mark.parametrize(("experts", "loss_bound"), [(2, 1.0), (4, 2.5)])
def test_no_adversary_gets_past_the_bound_at_any_time(
    adversary: Adversary, experts: int, loss_bound: float
) -> None:
    for rule in rules(experts, loss_bound):
        weights, losses = play(rule, adversary, ROUNDS)
        for rounds in range(1, ROUNDS + 1, 7):
            regret = REGRETS[rule.regret](weights[:rounds], losses[:rounds])
            assert regret <= rule.bound(rounds) * (1.0 + 1e-12), (rule, rounds)


@given(histories())
def test_no_history_gets_past_the_bound(losses: Array) -> None:
    for rule in rules(losses.shape[1]):
        state, weights = rule.start(), []
        for row in losses:
            weights.append(state.weights)
            state = rule.update(state, row)
        regret = REGRETS[rule.regret](np.array(weights), losses)
        assert regret <= rule.bound(len(losses)) + 1e-12


def test_the_adversaries_bite() -> None:
    # Following the leader, the limit of a large learning rate, loses 1/2 and then 1 where
    # either expert loses 1 in two rounds, without end ...
    weights, losses = play(ExponentialWeights(2, eta=1e6), heaviest, ROUNDS)
    assert external_regret(weights, losses) == pytest.approx(ROUNDS / 4)
    # ... while the tuned rule is pushed to a good part of its bound, and not beyond.
    rule = ExponentialWeights(2, horizon=ROUNDS)
    weights, losses = play(rule, heaviest, ROUNDS)
    assert 0.2 * rule.bound(ROUNDS) < external_regret(weights, losses) < rule.bound(ROUNDS)


def three_phases(rounds: int) -> Array:
    """Losses on which external regret stays small and internal regret does not.

    After an example of Stoltz and Lugosi (2005): in the last third the third expert is
    better than the second, which is played then, but it has lost too much to be noticed.
    """
    third = rounds // 3
    phases = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0], [2.0, 1.0, 0.0]])
    return np.repeat(phases, third, axis=0) / 5.0


def test_small_external_regret_does_not_make_internal_regret_small() -> None:
    losses = three_phases(3_000)
    found = {}
    for rule in (ExponentialWeights(3), InternalRegret(3), RegretMatching(3), SwapRegret(3)):
        online = OnlineExperts(rule)
        for row in losses:
            online.update(row)
        found[type(rule).__name__] = online.internal_regret
        assert online.external_regret <= ExponentialWeights(3).bound(3_000)
    assert found.pop("ExponentialWeights") > 10.0 * max(found.values())


@pytest.mark.parametrize("rule", [ExponentialWeights(5), InternalRegret(5), RegretMatching(5)])
def test_draws_stay_close_to_the_bound(rule: Rule) -> None:
    # Azuma: a table entry of the draws exceeds its mean by sqrt(2 T ln(25 / 1e-9)) with
    # probability below 1e-9, and the external regret by less.
    weights, losses = play(rule, heaviest, 400, seed=1)
    random = np.random.default_rng(2)
    drawn = np.array([random.multinomial(1, law) for law in weights], dtype=float)
    slack = math.sqrt(2.0 * len(losses) * math.log(25.0 / 1e-9))
    assert REGRETS[rule.regret](drawn, losses) <= rule.bound(len(losses)) + slack


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ExponentialWeights(4, horizon=100), math.sqrt(50 * math.log(4))),
        (ExponentialWeights(4), 1.5 * math.sqrt(50 * math.log(4))),
        (ExponentialWeights(4, eta=0.1, loss_bound=2.0), math.log(4) / 0.1 + 0.1 * 100 * 4 / 8),
        (InternalRegret(4, horizon=100, loss_bound=3.0), 3.0 * math.sqrt(50 * math.log(12))),
        (InternalRegret(4), 1.5 * math.sqrt(50 * math.log(12))),
        (SwapRegret(4, horizon=100), math.sqrt(50 * 4 * math.log(4))),
        (RegretMatching(4), math.sqrt(3 * 100)),
        (RegretMatching(4, power=3, loss_bound=2.0), 2.0 * 3 ** (1 / 3) * math.sqrt(2 * 100)),
    ],
)
def test_the_bounds_are_those_of_the_theorems(rule: Rule, expected: float) -> None:
    assert rule.bound(100) == pytest.approx(expected, rel=1e-14)


@given(st.integers(1, 5_000), st.floats(0.1, 20.0))
def test_the_any_time_bound_is_the_closed_form_of_its_sum(rounds: int, size: float) -> None:
    schedule = Schedule(size)
    rates = [schedule.rate(t) for t in range(1, rounds + 1)]
    exact = size / rates[-1] + sum(rates) / 8.0
    textbook = 2.0 * math.sqrt(rounds * size / 2.0) + math.sqrt(size / 8.0)
    assert exact <= schedule.bound(rounds) * (1.0 + 1e-12)
    assert schedule.bound(rounds) <= textbook


def log_mean_exp(values: Array, axis: int | None = None) -> Array:
    top = values.max()
    return top + np.log(np.mean(np.exp(values - top), axis=axis))


rates = st.floats(0.05, 3.0)


@given(histories(), rates)
def test_a_round_of_exponential_weights_costs_no_more_than_hoeffding_allows(
    losses: Array, eta: float
) -> None:
    rule = ExponentialWeights(losses.shape[1], eta=eta)
    state = rule.start()
    for row in losses:
        later = rule.update(state, row)
        fall = (log_mean_exp(-eta * state.scores) - log_mean_exp(-eta * later.scores)) / eta
        assert state.weights @ row <= fall + eta / 8.0 + 1e-12
        state = later


@given(histories(), rates)
def test_the_law_played_is_the_mixture_of_its_swaps(losses: Array, eta: float) -> None:
    rule = InternalRegret(losses.shape[1], eta=eta)
    state = rule.start()
    for row in losses:
        state = rule.update(state, row)
        pairs = np.exp(eta * state.scores)
        np.fill_diagonal(pairs, 0.0)
        mixed = naive.mixture_of_swaps(state.weights.tolist(), (pairs / pairs.sum()).tolist())
        assert mixed == pytest.approx(state.weights.tolist(), abs=1e-13)


@given(histories(), rates)
def test_a_round_raises_the_potential_of_all_swaps_by_no_more_than_hoeffding_allows(
    losses: Array, eta: float
) -> None:
    rule = InternalRegret(losses.shape[1], eta=eta)
    swaps = ~np.eye(losses.shape[1], dtype=bool)
    state = rule.start()
    for row in losses:
        later = rule.update(state, row)
        rise = log_mean_exp(eta * later.scores[swaps]) - log_mean_exp(eta * state.scores[swaps])
        assert rise <= eta**2 / 8.0 + 1e-12
        state = later


@given(histories(), st.floats(2.0, 8.0))
def test_the_step_of_regret_matching_is_orthogonal_to_the_gradient(
    losses: Array, power: float
) -> None:
    rule = RegretMatching(losses.shape[1], power)
    state = rule.start()
    for row in losses:
        later = rule.update(state, row)
        before, after = np.maximum(state.scores, 0.0), np.maximum(later.scores, 0.0)
        scale = before.max() or 1.0
        step = later.scores - state.scores
        assert np.sum((before / scale) ** (power - 1.0) * step) == pytest.approx(0.0, abs=1e-13)
        growth = (power - 1.0) * norm(np.abs(step), power) ** 2
        assert norm(after, power) ** 2 <= norm(before, power) ** 2 + growth + 1e-12
        assert growth <= rule.bound(1) ** 2 + 1e-12
        state = later


def norm(values: Array, power: float) -> float:
    return float(np.sum(values**power) ** (1.0 / power))


@given(histories(), rates)
def test_the_copies_advise_to_stay_where_we_are(losses: Array, eta: float) -> None:
    rule = SwapRegret(losses.shape[1], eta=eta)
    state = rule.start()
    for row in losses:
        state = rule.update(state, row)
        advice = np.exp(-eta * state.scores)
        advice /= advice.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(state.weights @ advice, state.weights, rtol=1e-12)


@given(histories(), rates)
def test_the_copies_together_pay_no_more_than_hoeffding_allows(losses: Array, eta: float) -> None:
    rule = SwapRegret(losses.shape[1], eta=eta)
    state = rule.start()
    for row in losses:
        later = rule.update(state, row)
        before = sum(log_mean_exp(-eta * copy) for copy in state.scores)
        after = sum(log_mean_exp(-eta * copy) for copy in later.scores)
        assert state.weights @ row <= (before - after) / eta + eta / 8.0 + 1e-12
        state = later


def every_rule() -> list[Any]:
    return [pytest.param(rule, id=repr(rule)) for experts in (2, 3, 7) for rule in rules(experts)]


@pytest.mark.parametrize("rule", every_rule())
def test_a_rule_plays_laws_and_leaves_old_states_alone(rule: Rule) -> None:
    random = np.random.default_rng(3)
    state = rule.start()
    assert rule.weights(state).tolist() == [1.0 / rule.experts] * rule.experts
    for _ in range(20):
        kept = state.rounds, state.scores.copy(), state.weights.copy()
        later = rule.update(state, random.random(rule.experts))
        assert state.rounds == kept[0] == later.rounds - 1
        assert np.array_equal(state.scores, kept[1])
        assert np.array_equal(state.weights, kept[2])
        assert later.weights.min() >= 0.0
        assert later.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert later.scores.nbytes == state.scores.nbytes
        state = later


@pytest.mark.parametrize("rule", every_rule())
def test_a_state_cannot_be_written_to(rule: Rule) -> None:
    for state in (rule.start(), rule.update(rule.start(), [0.5] * rule.experts)):
        for array in (state.scores, state.weights):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0


@pytest.mark.parametrize("rule", every_rule())
def test_renaming_the_experts_renames_the_weights(rule: Rule) -> None:
    random = np.random.default_rng(4)
    order = random.permutation(rule.experts)
    one, other = rule.start(), rule.start()
    for losses in random.random((15, rule.experts)):
        one, other = rule.update(one, losses), rule.update(other, losses[order])
        if not isinstance(rule, RegretMatching):  # its chain may keep several laws
            np.testing.assert_allclose(other.weights, one.weights[order], rtol=1e-9)
    assert one.rounds == other.rounds == 15


@pytest.mark.parametrize("kind", [ExponentialWeights, InternalRegret, SwapRegret])
def test_only_the_size_of_losses_relative_to_their_bound_matters(kind: Any) -> None:
    random = np.random.default_rng(5)
    small, large = kind(3), kind(3, loss_bound=1000.0)
    one, other = small.start(), large.start()
    for losses in random.random((30, 3)):
        one, other = small.update(one, losses), large.update(other, 1000.0 * losses)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)
    assert large.bound(30) == pytest.approx(1000.0 * small.bound(30))


def test_the_weights_are_the_exponentials_of_the_losses() -> None:
    rule = ExponentialWeights(3)
    state = rule.update(rule.update(rule.start(), [0.1, 0.2, 0.9]), [0.7, 0.2, 0.0])
    eta = math.sqrt(8.0 * math.log(3.0) / 3.0)
    raised = [math.exp(-eta * total) for total in (0.8, 0.4, 0.9)]
    assert state.weights == pytest.approx([value / sum(raised) for value in raised])


def test_regret_matching_keeps_its_weights_while_no_regret_is_positive() -> None:
    rule = RegretMatching(3)
    state = rule.update(rule.start(), [0.0, 1.0, 1.0])
    later = rule.update(state, [0.0, 1.0, 0.0])
    assert state.weights.tolist() == [1.0, 0.0, 0.0]
    assert rule.update(rule.start(), [0.5] * 3).weights.tolist() == [1.0 / 3.0] * 3
    assert later.weights.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", [ExponentialWeights, InternalRegret, SwapRegret])
def test_a_huge_learning_rate_and_a_long_run_stay_finite(kind: Any) -> None:
    rule = kind(4, eta=1e6)
    for adversary in (heaviest, switching):
        weights, losses = play(rule, adversary, 100)
        assert np.isfinite(weights).all()
        assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-12
        assert losses.shape == (100, 4)


def test_a_rule_is_a_frozen_value() -> None:
    three: Any = np.int64(3)
    assert ExponentialWeights(three, horizon=10) == ExponentialWeights(3, None, 10)
    assert hash(RegretMatching(three)) == hash(RegretMatching(3, 2))
    rule: Any = InternalRegret(3)
    with pytest.raises(FrozenInstanceError):
        rule.eta = 1.0


def imbalance(rates: Array, law: Array) -> float:
    """Return the largest difference between flow in and flow out, relative to the flow."""
    rates = np.array(rates, dtype=float)
    np.fill_diagonal(rates, 0.0)
    into, out = law @ rates, law * rates.sum(axis=1)
    flowing = np.maximum(into, out)
    return float(np.max(np.abs(into - out)[flowing > 0] / flowing[flowing > 0], initial=0.0))


sizes = st.integers(2, 5)


@given(sizes.flatmap(lambda n: arrays(float, (n, n), elements=st.floats(1e-3, 1.0))))
def test_the_stationary_law_is_the_tree_theorem(rates: Array) -> None:
    np.testing.assert_allclose(
        stationary_law(rates), naive.stationary_law(rates.tolist()), rtol=1e-13
    )


@given(st.integers(2, 4).flatmap(lambda n: arrays(float, (n, n), elements=st.floats(-250.0, 0.0))))
def test_the_stationary_law_of_an_almost_reducible_chain_is_right_in_every_entry(
    logs: Array,
) -> None:
    rates = 10.0**logs
    law = stationary_law(rates)
    exact = np.array(naive.stationary_law(rates.tolist()))
    kept = exact > 1e-300
    np.testing.assert_allclose(law[kept], exact[kept], rtol=1e-12)
    assert (law[~kept] <= 1e-299).all()


@pytest.mark.parametrize("experts", [2, 5, 20])
@pytest.mark.parametrize("decades", [0.0, 3.0, 30.0, 140.0])
def test_flow_is_balanced_to_the_last_digits(experts: int, decades: float) -> None:
    random = np.random.default_rng(6)
    for _ in range(20):
        rates = 10.0 ** random.uniform(-decades, 0.0, (experts, experts))
        assert imbalance(rates, stationary_law(rates)) < 1e-12


@pytest.mark.parametrize("experts", [2, 5, 20])
def test_the_stationary_law_is_the_eigenvector(experts: int) -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        chain = random.dirichlet(np.ones(experts), experts)
        values, vectors = np.linalg.eig(chain.T)
        vector = np.real(vectors[:, np.argmax(np.real(values))])
        np.testing.assert_allclose(stationary_law(chain), vector / vector.sum(), rtol=1e-9)


def test_two_clusters_that_hardly_meet_are_weighed_by_their_links() -> None:
    rates = np.zeros((4, 4))
    rates[0, 1] = rates[1, 0] = rates[2, 3] = rates[3, 2] = 1.0
    rates[0, 2], rates[2, 0] = 1e-200, 3e-200
    np.testing.assert_allclose(stationary_law(rates), [0.375, 0.375, 0.125, 0.125], rtol=1e-14)


def test_a_ladder_far_steeper_than_doubles_can_tell_is_climbed() -> None:
    rates = np.zeros((6, 6))
    for i in range(5):
        rates[i, i + 1], rates[i + 1, i] = 1e100, 1e-100
    for law in (stationary_law(rates), stationary_law(rates[::-1, ::-1])[::-1]):
        assert law.tolist() == [0.0, 0.0, 0.0, 0.0, pytest.approx(1e-200), 1.0]


@given(sizes.flatmap(lambda n: arrays(int, (n, n), elements=st.sampled_from([0, 0, 0, 1, 2, 7]))))
def test_a_chain_in_pieces_still_gets_a_law_that_it_keeps(rates: Array) -> None:
    law = stationary_law(rates)
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0)
    assert imbalance(rates, law) < 1e-13


def test_what_is_not_visited_may_be_of_any_size() -> None:
    tiny, huge = 1e-300, 1e300
    pair_and_entrance = [[0, tiny, 0], [0, 0, huge], [0, huge, 0]]
    assert stationary_law(pair_and_entrance).tolist() == [0.0, 0.5, 0.5]
    assert stationary_law([[huge, tiny], [3 * tiny, huge]]) == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("function", [stationary_law, stationary_law_of_logs])
def test_the_rates_given_are_not_overwritten(function: Any) -> None:
    rates = np.random.default_rng(10).random((4, 4))
    kept = rates.copy()
    function(rates)
    assert np.array_equal(rates, kept)


def test_a_chain_that_never_moves_and_one_of_a_single_state_have_laws() -> None:
    assert stationary_law(np.zeros((3, 3))).tolist() == [0.0, 0.0, 1.0]
    assert stationary_law([[5.0]]).tolist() == [1.0]


@given(
    arrays(float, (4, 4), elements=st.floats(0.1, 1.0)),
    arrays(int, 4, elements=st.integers(-300, 300)),
)
def test_slowing_a_state_down_raises_its_share_in_proportion(rates: Array, powers: Array) -> None:
    slowed = stationary_law(np.ldexp(rates, -powers[:, None]))
    scaled = np.ldexp(stationary_law(rates), powers - powers.max())
    np.testing.assert_allclose(slowed, scaled / scaled.sum(), rtol=1e-12)


@given(arrays(float, (4, 4), elements=st.floats(-20.0, 20.0)), st.floats(-1e5, 1e5))
def test_the_law_of_logs_is_that_of_the_rates_wherever_they_lie(logs: Array, shift: float) -> None:
    law = stationary_law(np.exp(logs))
    np.testing.assert_allclose(stationary_law_of_logs(logs), law, rtol=1e-11)
    np.testing.assert_allclose(stationary_law_of_logs(logs + shift), law, rtol=1e-8)


@given(arrays(float, (3, 3), elements=st.floats(-1e6, 1e6)))
def test_the_law_of_any_logs_is_a_law(logs: Array) -> None:
    law = stationary_law_of_logs(logs)
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("rule", rules(4))
def test_the_running_regrets_are_those_of_the_whole_run(rule: Rule) -> None:
    online = OnlineExperts(rule)
    weights, losses = play(rule, binary, 40, seed=8)
    for played, row in zip(weights, losses, strict=True):
        assert online.weights.tolist() == played.tolist()
        online.update(row)
    assert online.rounds == online.state.rounds == 40
    assert online.external_regret == pytest.approx(external_regret(weights, losses), abs=1e-12)
    assert online.internal_regret == pytest.approx(internal_regret(weights, losses), abs=1e-12)
    assert online.swap_regret == pytest.approx(swap_regret(weights, losses), abs=1e-12)
    assert online.bound == rule.bound(40)


def test_losses_that_are_refused_change_nothing() -> None:
    online = OnlineExperts(InternalRegret(3))
    online.update([0.0, 0.5, 1.0])
    before = online.state, online.swap_regret
    for bad in ([0.0, 0.5], [0.0, 0.5, 1.5], [0.0, 0.5, math.nan], "abc", [0.1, -0.1, 0.0]):
        with pytest.raises((InvalidInput, InvalidType)):
            online.update(bad)
        assert (online.state, online.swap_regret) == before


@st.composite
def advised(draw: Any) -> tuple[Array, Array]:
    advice = draw(arrays(float, draw(st.integers(1, 5)), elements=unit))
    weights = draw(arrays(float, len(advice), elements=st.floats(1e-3, 1.0)))
    return advice, weights / weights.sum()


@given(advised())
def test_the_substitute_is_as_good_as_the_mixture_for_either_outcome(
    given: tuple[Array, Array],
) -> None:
    advice, weights = given
    p = substitute(advice, weights)
    assert -1e-15 <= p <= 1.0 + 1e-15
    for y in (0.0, 1.0):
        mixture = -math.log(weights @ np.exp(-2.0 * (advice - y) ** 2)) / 2.0
        assert (p - y) ** 2 <= mixture + 1e-12


@given(advised(), unit)
def test_the_mean_is_as_good_as_the_mixture_at_rate_one_half(
    given: tuple[Array, Array], y: float
) -> None:
    advice, weights = given
    mixture = -2.0 * math.log(weights @ np.exp(-0.5 * (advice - y) ** 2))
    assert (mix(advice, weights) - y) ** 2 <= mixture + 1e-12


@pytest.mark.parametrize(("merge", "eta"), [(mix, 0.5), (substitute, 2.0)])
@pytest.mark.parametrize("hostile", [False, True])
def test_merged_advice_has_constant_regret(merge: Any, eta: float, hostile: bool) -> None:
    random = np.random.default_rng(9)
    rule = ExponentialWeights(3, eta=eta)
    state, paid = rule.start(), 0.0
    for advice in np.column_stack([np.zeros(2_000), np.ones(2_000), random.random(2_000)]):
        p = merge(advice, state.weights)
        y = float(p < 0.5) if hostile else float(random.random() < 0.8)
        paid += (p - y) ** 2
        state = rule.update(state, (advice - y) ** 2)
    assert paid <= state.scores.min() + math.log(3) / eta + 1e-9


def test_the_mean_at_rate_two_has_no_such_bound() -> None:
    rule = ExponentialWeights(2, eta=2.0)
    state, paid = rule.start(), 0.0
    for _ in range(2_000):
        p = mix([0.0, 1.0], state.weights)
        y = float(p < 0.5)
        paid += (p - y) ** 2
        state = rule.update(state, [y, 1.0 - y])
    assert paid > state.scores.min() + 20.0


BAD_RULES = [
    (lambda: ExponentialWeights(1), "experts must be a whole number of at least 2, got 1"),
    (lambda: InternalRegret(2.5), "experts must be a whole number of at least 2, got 2.5"),
    (lambda: SwapRegret("3"), "experts must be a whole number of at least 2, got '3'"),
    (lambda: ExponentialWeights(3, eta=0.0), "eta must be a number from 1e-100 to 1e100, got 0.0"),
    (
        lambda: InternalRegret(3, eta=math.inf),
        "eta must be a number from 1e-100 to 1e100, got inf",
    ),
    (lambda: SwapRegret(3, horizon=0), "horizon must be a whole number of at least 1, got 0"),
    (
        lambda: ExponentialWeights(3, eta=0.5, horizon=9),
        "eta must be None when a horizon is given, got 0.5",
    ),
    (
        lambda: RegretMatching(3, loss_bound=-1.0),
        "loss_bound must be a number from 1e-100 to 1e100, got -1.0",
    ),
    (lambda: RegretMatching(3, power=1.5), "power must be a finite number of at least 2, got 1.5"),
    (lambda: RegretMatching(3).bound(-1), "rounds must be a whole number of at least 0, got -1"),
    (lambda: InternalRegret(3).bound(0.5), "rounds must be a whole number of at least 0, got 0.5"),
]

BAD_ARRAYS = [
    (lambda u: u([0.0, 1.0]), "losses must be of length 3, got length 2"),
    (lambda u: u([0.0, 1.0, 1.5]), "losses[2] must be a number in [0, 1.0], got 1.5"),
    (lambda u: u([0.0, -0.5, 1.0]), "losses[1] must be a number in [0, 1.0], got -0.5"),
    (lambda u: u([0.0, math.nan, 1.0]), "losses[1] must be a finite number, got nan"),
    (
        lambda u: u(["a", "b", "c"]),
        "losses must be an array of finite numbers with 1 dimension(s), got dtype <U1",
    ),
    (
        lambda u: u([[0.0], [0.0, 1.0]]),
        "losses must be an array of finite numbers with 1 dimension(s), got ragged rows",
    ),
    (
        lambda u: u([[0.0, 1.0, 1.0]]),
        "losses must be an array of finite numbers with 1 dimension(s), got shape (1, 3)",
    ),
    (
        lambda u: external_regret([[0.5, 0.4]], [[0.0, 1.0]]),
        "weights must be rows that sum to 1, got a sum of 0.9",
    ),
    (
        lambda u: swap_regret([[1.5, -0.5]], [[0.0, 1.0]]),
        "weights[0, 1] must be a number of at least 0, got -0.5",
    ),
    (
        lambda u: internal_regret([[0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]),
        "losses must be of shape (1, 2), got shape (2, 2)",
    ),
    (lambda u: mix([0.5], [0.5, 0.5]), "advice must be of length 2, got length 1"),
    (lambda u: mix([0.5, 0.1], [0.5, 0.4]), "weights must be rows that sum to 1, got a sum of 0.9"),
    (lambda u: substitute([1.5], [1.0]), "advice[0] must be a number in [0, 1], got 1.5"),
    (
        lambda u: stationary_law([[0.0, 1.0]]),
        "rates must be a square array of at least 1 row(s), got shape (1, 2)",
    ),
    (
        lambda u: stationary_law([[0.0, -1.0], [1.0, 0.0]]),
        "rates[0, 1] must be a number of at least 0, got -1.0",
    ),
    (
        lambda u: stationary_law_of_logs([[0.0]]),
        "log_rates must be a square array of at least 2 row(s), got shape (1, 1)",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), BAD_RULES)
def test_a_bad_parameter_is_refused_in_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        make()
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("call", "sentence"), BAD_ARRAYS)
def test_a_bad_array_is_refused_in_one_sentence(call: Any, sentence: str) -> None:
    rule = ExponentialWeights(3)
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        call(lambda losses: rule.update(rule.start(), losses))
    assert str(caught.value) == sentence
