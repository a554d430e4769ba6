from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_losses import FORMULAS, violation

from calibrant.bounds import resolution_sharp
from calibrant.errors import ImproperLoss, InvalidInput, InvalidType
from calibrant.losses import (
    CounterExample,
    CustomLoss,
    Squared,
    check_proper,
    counter_example,
    get_loss,
    loss_names,
    require_proper,
)


def printed_log(y, p):
    """The log loss with the sign of the paper's text."""
    return (math.log(p) if p else -math.inf) if y else (math.log(1 - p) if p < 1 else -math.inf)


def printed_misclassification(y, p):
    """The misclassification loss with the indicators of the paper's text."""
    return (1 - y) * (p < 0.5) + y * (p >= 0.5)


@pytest.mark.parametrize("name", loss_names())
def test_the_search_agrees_with_what_each_loss_says_of_itself(name):
    assert check_proper(name).proper == get_loss(name).proper
    assert check_proper(FORMULAS[name]).proper == get_loss(name).proper


@pytest.mark.parametrize("name", loss_names())
def test_the_search_finds_what_trying_all_pairs_finds(name):
    slow = violation(FORMULAS[name], [k / 40 for k in range(41)])
    assert check_proper(name, resolution=40).violation == pytest.approx(slow, abs=1e-3)


def test_the_worst_belief_for_the_absolute_loss_is_one_quarter():
    found = check_proper("absolute")
    assert (found.violation, found.belief, found.better) == (0.125, 0.25, 0.0)


def test_the_worst_belief_is_refined_between_grid_points():
    # p^3 and (1-p)^3: honesty costs most away from any small fraction.
    coarse = check_proper(lambda y, p: abs(y - p) ** 3, resolution=10)
    fine = check_proper(lambda y, p: abs(y - p) ** 3, resolution=2000)
    assert coarse.violation == pytest.approx(fine.violation, rel=1e-6)
    assert not coarse.proper


def test_the_papers_printed_losses_are_improper():
    assert check_proper(printed_misclassification).violation == 1.0
    assert check_proper(printed_log).violation == math.inf


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("closed", [True, False])
def test_a_jump_at_either_side_of_a_threshold_is_no_violation(threshold, closed):
    def decision(y, p):
        act = p >= threshold if closed else p > threshold
        return (1 - threshold) * (not act) if y else threshold * act

    assert check_proper(decision).proper


def test_one_bad_point_at_the_jump_is_a_violation():
    def decision(y, p):
        return 1.0 if p == 0.5 else float((p > 0.5) != y)

    found = check_proper(decision)
    assert (found.proper, found.violation, found.belief) == (False, 0.5, 0.5)


def test_a_constant_loss_is_proper():
    assert check_proper(lambda y, p: 7.0).proper


def test_a_loss_that_is_infinite_everywhere_is_not_refuted():
    assert check_proper(lambda y, p: math.inf).proper


def test_a_small_violation_counts_in_proportion_to_the_loss():
    def decision(scale):
        return lambda y, p: scale * float((p >= 0.5) != y) + 1e-5 * (p == 0.5)

    assert not check_proper(decision(1.0)).proper
    assert check_proper(decision(1e6)).proper


@settings(max_examples=25)
@given(weights=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6), tilt=st.floats(-1.0, 1.0))
def test_every_mixture_of_weighted_decisions_is_proper(weights, tilt):
    cuts = np.linspace(0.0, 1.0, len(weights) + 2)[1:-1]

    def mixture(y, p):
        acts = p >= cuts
        costs = (1 - cuts) * ~acts if y else cuts * acts
        return float(costs @ weights) + tilt * y

    assert check_proper(mixture, resolution=60).proper


def test_a_loss_that_is_no_number_is_refused():
    with pytest.raises(InvalidInput, match=r"^loss must be a number at every forecast, got nan at"):
        check_proper(lambda y, p: math.nan if p == 0.5 else 0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda y, p: -math.log(p) if y else -math.log(1 - p),
        lambda y, p: -np.log(p if y else 1 - p),
        lambda y, p: math.log(1 / p) if y else math.log(1 / (1 - p)),
    ],
)
def test_a_loss_without_a_value_at_the_ends_is_infinite_there(function):
    loss = get_loss(function)
    assert (loss(1, 0.0), loss(0, 1.0), loss(0, 0.0)) == (math.inf, math.inf, 0.0)
    assert loss.proper
    assert resolution_sharp(0.5, function) == resolution_sharp(0.5, "log")


def test_a_loss_that_overflows_is_infinite_there():
    assert get_loss(lambda y, p: math.exp(1e4 * p))(0, 0.5) == math.inf


def complains(outcome, forecast):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda y, p: None, InvalidType, "got None for outcome 0 and forecast 0.0"),
        (lambda y, p: "0.5", InvalidType, "got '0.5' for outcome 0 and forecast 0.0"),
        (lambda y, p: [p], InvalidType, "got [0.0] for outcome 0 and forecast 0.0"),
        (lambda y, p: {}[p], InvalidInput, "got KeyError(0.0) for outcome 0 and forecast 0.0"),
        (
            complains,
            InvalidInput,
            "got ValueError('no') for outcome 0 and forecast 0.0011904761904761906",
        ),
        (
            CustomLoss(lambda y, p: p + {}["x"], vectorised=True),
            InvalidInput,
            "got KeyError('x') for an array of forecasts",
        ),
    ],
)
def test_what_is_no_loss_is_told_as_one_of_our_errors(function, error, text):
    with pytest.raises(error) as caught:
        check_proper(function)
    assert str(caught.value) == f"loss must be a number at every forecast, {text}"


def test_arrays_of_another_shape_are_no_losses():
    bad = CustomLoss(lambda y, p: np.zeros(3), "bad", vectorised=True)
    with pytest.raises(InvalidInput, match=r"^loss must be a number at every forecast, got Value"):
        check_proper(bad)


def test_zero_dimensional_arrays_and_truth_values_are_numbers():
    assert get_loss(lambda y, p: np.array((y - p) ** 2)).proper
    assert get_loss(lambda y, p: np.bool_((p >= 0.5) != y)).proper


@pytest.mark.parametrize("power", [1.999, 2.001, 2.01])
def test_a_best_forecast_next_to_the_honest_one_is_found(power):
    def loss(y, p):
        return abs(y - p) ** power

    found = check_proper(loss)
    # The best q has q/(1 - q) = (p/(1 - p))^(1/(power - 1)), and all else is worse by squares.
    odds = (found.belief / (1 - found.belief)) ** (1 / (power - 1))
    assert not found.proper
    assert found.better == pytest.approx(odds / (1 + odds), abs=2e-5)
    shift = found.better - found.belief
    assert found.violation == pytest.approx(shift**2, rel=0.1)
    example = counter_example(loss)
    assert example.better_loss < example.honest_loss
    assert example.honest == sum(example.period) / len(example.period)
    told = re.search(r"loss (\S+) and the constant (\S+) has (\S+)$", str(example))
    honest, _, better = map(float, told.groups())
    assert honest > better


def test_a_resolution_below_two_is_refused():
    with pytest.raises(InvalidInput, match=r"^resolution must be a whole number of at least 2"):
        check_proper("squared", resolution=1)


def test_the_counter_example_for_the_absolute_loss_is_the_papers():
    """Fact 1: on 001001..., 1/3 loses 4/9 and 0 loses 1/3; squared, 2/9 against 1/3."""
    example = counter_example("absolute")
    assert example.period == (0, 0, 1)
    assert example.honest == pytest.approx(1 / 3)
    assert example.better == 0.0
    assert example.honest_loss == pytest.approx(float(Fraction(4, 9)))
    assert example.better_loss == pytest.approx(1 / 3)
    outcomes = example.outcomes(9)
    assert outcomes.tolist() == [0, 0, 1] * 3
    assert Squared()(outcomes, 1 / 3).mean() == pytest.approx(2 / 9)
    assert Squared()(outcomes, 0.0).mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "loss",
    [
        "absolute",
        "hinge",
        printed_misclassification,
        lambda y, p: abs(y - p) ** 3,
        lambda y, p: (y - p) ** 2 + 0.01 * p,
        lambda y, p: (3 if y else 1) * (y - p) ** 2,
    ],
)
def test_over_one_period_the_better_constant_wins(loss):
    example = counter_example(loss)
    found, outcomes = get_loss(loss), example.outcomes(len(example.period))
    honest, better = np.full(len(outcomes), example.honest), np.full(len(outcomes), example.better)
    assert outcomes.mean() == pytest.approx(example.honest)
    assert found(outcomes, honest).mean() == pytest.approx(example.honest_loss)
    assert found(outcomes, better).mean() == pytest.approx(example.better_loss)
    assert example.honest_loss - example.better_loss >= check_proper(loss).violation / 2.01


def test_a_violation_that_only_a_long_period_shows_still_has_an_example():
    def spiked(y, p):
        return (y - p) ** 2 + (abs(p - 101 / 840) < 1e-9)

    example = counter_example(spiked)
    assert len(example.period) == 840
    assert sum(example.period) == 101
    assert example.honest_loss > example.better_loss


def test_a_proper_loss_has_no_counter_example():
    with pytest.raises(InvalidInput) as caught:
        counter_example("squared")
    assert str(caught.value) == "loss must be improper to have a counter-example, got 'squared'"


def test_a_sequence_may_be_empty_or_end_within_a_period():
    example = CounterExample("absolute", (0, 0, 1), 1 / 3, 0.0, 4 / 9, 1 / 3)
    assert example.outcomes(0).tolist() == []
    assert example.outcomes(4).tolist() == [0, 0, 1, 0]


def test_a_proper_loss_is_let_through():
    assert require_proper("squared") == Squared()


def test_a_guarantee_under_an_improper_loss_is_refused_with_its_own_counter_example():
    with pytest.raises(ImproperLoss) as caught:
        require_proper("absolute")
    assert str(caught.value) == (
        "loss must be proper, got 'absolute': on the outcomes 0, 0, 1 repeated, the calibrated "
        "forecast 0.3333 has average absolute loss 0.4444 and the constant 0 has 0.3333, so no "
        "algorithm can be calibrated and as accurate as every forecaster (Theorem 2 of Kuleshov "
        "and Ermon, 2017). Proper losses: squared, log, misclassification, spherical"
    )


def test_the_refusal_of_a_function_shows_that_functions_example():
    with pytest.raises(ImproperLoss, match=r"got 'printed_misclassification': on the outcomes 0 "):
        require_proper(printed_misclassification)
