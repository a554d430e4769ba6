from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_losses import FORMULAS, bucket_cost

from calibrant.bounds.accuracy import prices
from calibrant.errors import CalibrantError, InvalidInput, InvalidType, UnknownName
from calibrant.losses import (
    CustomLoss,
    Log,
    Loss,
    Misclassification,
    Spherical,
    Squared,
    get_loss,
    loss_names,
    registered_name,
)

PROPER = ["squared", "log", "misclassification", "spherical"]
ALL = [*PROPER, "absolute", "hinge"]
SMOOTH = ["squared", "log", "spherical", "absolute", "hinge"]

fractions = st.floats(0.0, 1.0)
inner = st.floats(0.01, 0.99)


@st.composite
def ranges(draw, points=inner):
    low, high = sorted([draw(points), draw(points)])
    return low, high


def difference(loss, p):
    return loss(1, p) - loss(0, p)


def test_the_registry_knows_six_losses():
    assert loss_names() == tuple(ALL)
    assert [get_loss(name).name for name in ALL] == ALL
    assert [name for name in ALL if get_loss(name).proper] == PROPER


def test_a_loss_is_returned_as_it_is():
    loss = Squared()
    assert get_loss(loss) is loss


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UnknownName) as caught:
        get_loss("brier")
    assert str(caught.value) == (
        "loss must be one of 'squared', 'log', 'misclassification', 'spherical', 'absolute', "
        "'hinge', got 'brier'"
    )


def test_what_is_no_loss_is_refused():
    with pytest.raises(InvalidType, match=r"^loss must be a name, a loss or a function, got 3$"):
        get_loss(3)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(y=st.integers(0, 1), p=fractions)
def test_a_loss_follows_its_formula(name, y, p):
    assert get_loss(name)(y, p) == pytest.approx(FORMULAS[name](y, p), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ALL)
def test_arrays_give_what_scalars_give(name):
    loss = get_loss(name)
    outcomes, forecasts = np.array([[0], [1]]), np.linspace(0.0, 1.0, 11)
    table = loss(outcomes, forecasts)
    assert table.shape == (2, 11)
    for y in (0, 1):
        assert table[y].tolist() == [loss(y, p) for p in forecasts]


@pytest.mark.parametrize("name", ALL)
def test_scalars_of_numpy_and_bools_are_scalars(name):
    loss = get_loss(name)
    result = loss(np.bool_(True), np.float64(0.25))
    assert type(result) is float
    assert result == loss(1, 0.25)


def test_a_sure_mistake_has_infinite_log_loss_and_a_sure_success_none():
    assert Log()(1, 0.0) == math.inf == Log()(0, 1.0)
    assert math.copysign(1.0, Log()(1, 1.0)) == math.copysign(1.0, Log()(0, -0.0)) == 1.0


@pytest.mark.parametrize(
    ("outcome", "forecast", "message"),
    [
        (2, 0.5, "outcome must be 0 or 1, got 2"),
        (1, 1.0000001, "forecast must be a number in [0, 1], got 1.0000001"),
        (1, math.nan, "forecast must be a number in [0, 1], got nan"),
        (1, "0.5", "forecast must be a number in [0, 1], got '0.5'"),
        ([0, 2], 0.5, "outcomes[1] must be 0 or 1, got 2"),
        (0, [0.5, -0.1], "forecasts[1] must be a number in [0, 1], got -0.1"),
    ],
)
def test_bad_arguments_are_named(outcome, forecast, message):
    with pytest.raises(CalibrantError) as caught:
        Squared()(outcome, forecast)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(edges=ranges(fractions), y=st.integers(0, 1), share=fractions)
def test_no_loss_exceeds_its_bound(name, edges, y, share):
    low, high = edges
    loss = get_loss(name)
    inside = min(max(low + share * (high - low), low), high)
    assert loss(y, inside) <= loss.bound(low, high) * (1 + 1e-12)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(edges=ranges())
def test_the_bound_is_reached(name, edges):
    loss = get_loss(name)
    ends = [loss(y, p) for y in (0, 1) for p in edges]
    assert loss.bound(*edges) == max(ends)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(edges=ranges())
def test_the_swing_is_reached_and_never_exceeds_twice_the_bound(name, edges):
    loss = get_loss(name)
    low, high = edges
    seen = [difference(loss, p) for p in np.linspace(low, high, 33)]
    assert loss.swing(low, high) == pytest.approx(max(seen) - min(seen), rel=1e-12, abs=1e-12)
    assert loss.swing(low, high) <= 2 * loss.bound(low, high)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=40)
@given(edges=ranges())
def test_the_lipschitz_constant_is_the_steepest_chord(name, edges):
    loss = get_loss(name)
    assume(edges[1] - edges[0] > 1e-3)
    points = np.linspace(*edges, 257)
    chords = [np.abs(np.diff(loss(y, points))).max() / (points[1] - points[0]) for y in (0, 1)]
    assert max(chords) <= loss.lipschitz(*edges) * (1 + 1e-9)
    assert max(chords) >= loss.lipschitz(*edges) * 0.7


def test_the_lipschitz_constants_over_everything():
    assert [get_loss(name).lipschitz() for name in ALL if name != "spherical"] == [
        2.0,
        math.inf,
        math.inf,
        1.0,
        2.0,
    ]
    points = np.linspace(0.0, 1.0, 100_001)
    steepest = np.abs(np.diff(Spherical()(1, points))).max() * 100_000
    assert Spherical().lipschitz() == pytest.approx(steepest, rel=1e-8)


def test_the_misclassification_loss_is_flat_on_either_side_of_one_half():
    loss = Misclassification()
    assert loss.lipschitz(0.0, 0.5) == loss.lipschitz(0.5, 1.0) == 0.0
    assert loss.lipschitz(0.4999, 0.5001) == math.inf


@pytest.mark.parametrize("name", ["squared", "log", "spherical"])
@settings(max_examples=40)
@given(p=inner, r=fractions)
def test_the_curvature_bounds_what_a_gap_costs(name, p, r):
    loss = get_loss(name)
    cost = float(loss.expected(r, p) - loss.expected(r, r))
    assert cost <= loss.curvature(p, p) * (r - p) ** 2 + 1e-12


def test_the_curvature_of_a_range_is_that_of_its_worst_end():
    assert Log().curvature(0.1, 0.5) == Log().curvature(0.1, 0.1) == pytest.approx(1 / 0.09)
    assert Log().curvature(0.5, 0.95) == Log().curvature(0.95, 0.95) == pytest.approx(1 / 0.0475)


def test_curvatures_without_a_finite_constant_are_infinite():
    assert [get_loss(name).curvature() for name in ALL if name != "spherical"] == [
        1.0,
        math.inf,
        math.inf,
        math.inf,
        math.inf,
    ]


def test_the_curvature_of_the_squared_loss_is_exact():
    loss = Squared()
    assert loss.expected(0.3, 0.7) - loss.expected(0.3, 0.3) == pytest.approx(0.16)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("method", ["bound", "swing", "lipschitz", "curvature"])
def test_a_range_must_be_ordered_and_inside(name, method):
    with pytest.raises(InvalidInput, match=r"^high must be a number from low to 1, got 0.2$"):
        getattr(get_loss(name), method)(0.3, 0.2)
    with pytest.raises(InvalidInput, match=r"^low must be a number in \[0, 1\], got -1$"):
        getattr(get_loss(name), method)(-1, 0.2)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 10])
def test_the_bucket_cost_is_what_trying_all_constants_gives(name, buckets):
    edges = [j / buckets for j in range(buckets + 1)]
    tops = [math.nextafter(edge, 0.0) for edge in edges[1:-1]] + [1.0]
    slow = max(
        bucket_cost(FORMULAS[name], bottom, top)
        for bottom, top in zip(edges[:-1], tops, strict=True)
    )
    assert get_loss(name).bucket_cost(buckets) == pytest.approx(slow, abs=5e-3)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(buckets=st.integers(1, 40), j=st.integers(0, 39), share=fractions, y=st.integers(0, 1))
def test_a_comparator_stands_in_for_every_forecast_of_its_bucket(name, buckets, j, share, y):
    loss, j = get_loss(name), j % buckets
    top = 1.0 if j == buckets - 1 else math.nextafter((j + 1) / buckets, 0.0)
    raw = min(j / buckets + share * (top - j / buckets), top)
    stand_in = float(loss.comparators(buckets)[j])
    assert j / buckets <= stand_in <= top
    assert loss(y, stand_in) - loss(y, raw) <= loss.bucket_cost(buckets) + 1e-12


@settings(max_examples=30)
@given(buckets=st.integers(1, 200))
def test_buckets_cost_the_log_loss_the_same_everywhere(buckets):
    loss = Log()
    assert loss.bucket_cost(buckets) == pytest.approx(math.log1p(1 / buckets), rel=1e-9)
    places = (np.arange(buckets) + 1) / (buckets + 1)
    assert loss.comparators(buckets) == pytest.approx(places, rel=1e-9)


@settings(max_examples=30)
@given(buckets=st.integers(1, 200))
def test_buckets_cost_the_squared_loss_less_than_half_their_width(buckets):
    width = 1 / buckets
    centres = (np.arange(buckets) + 0.5) * width
    closed = (width * (2 - width) * centres * (1 - centres)).max()
    assert Squared().bucket_cost(buckets) == pytest.approx(closed, rel=1e-9)
    assert closed <= width / 2 - width**2 / 4 + 1e-12


@settings(max_examples=30)
@given(buckets=st.integers(1, 200))
def test_buckets_cost_the_misclassification_loss_nothing_if_even(buckets):
    assert Misclassification().bucket_cost(buckets) == buckets % 2


def test_the_cheaper_side_of_a_jump_inside_a_bucket_stands_in_for_it():
    loss = CustomLoss(lambda y, p: 0.9 * (p < 0.1) if y else 0.1 * (p >= 0.1))
    assert loss.bucket_cost(2) == pytest.approx(0.1)
    assert loss.comparators(2)[0] == pytest.approx(0.1)


def test_buckets_are_counted_from_one():
    with pytest.raises(InvalidInput, match=r"^buckets must be a whole number of at least 1, got 0"):
        Squared().bucket_cost(0)


def test_a_function_of_scalars_becomes_a_loss():
    def asymmetric(outcome, forecast):
        return -math.log(forecast) if outcome else 2 * forecast**2

    loss = get_loss(asymmetric)
    assert isinstance(loss, Loss)
    assert loss.name == "asymmetric"
    assert loss([0, 1], np.array([0.5, 0.25])).tolist() == [0.5, -math.log(0.25)]


def test_a_function_of_arrays_is_called_with_arrays():
    seen = []

    def quadratic(outcome, forecast):
        seen.append(forecast.shape)
        return (outcome - forecast) ** 2

    loss = CustomLoss(quadratic, label="mine", vectorised=True)
    assert loss.name == "mine"
    assert loss(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3])) == pytest.approx([0.01, 0.64, 0.49])
    assert seen == [(3,), (3,)]


@pytest.mark.parametrize("name", ["squared", "absolute", "hinge", "spherical"])
def test_constants_of_a_function_are_found_numerically(name):
    known, found = get_loss(name), CustomLoss(FORMULAS[name])
    for low, high in [(0.0, 1.0), (0.2, 0.7)]:
        assert found.bound(low, high) == pytest.approx(known.bound(low, high))
        assert found.swing(low, high) == pytest.approx(known.swing(low, high))
        assert found.lipschitz(low, high) == pytest.approx(known.lipschitz(low, high), rel=1e-3)
    assert found.bucket_cost(10) == pytest.approx(known.bucket_cost(10))
    assert found.proper == known.proper
    assert found.curvature() == math.inf
    assert found.lipschitz(0.4, 0.4) == 0.0


def test_a_callable_without_a_name_is_named_by_its_text():
    class Thing:
        def __call__(self, outcome, forecast):
            return 0.0

        def __repr__(self):
            return "Thing()"

    assert get_loss(Thing()).name == "Thing()"


def test_a_registered_loss_is_known_by_what_it_is_and_not_by_its_name():
    for name in loss_names():
        assert registered_name(get_loss(name)) == name
    assert registered_name(CustomLoss(lambda y, p: 0.0, "squared")) is None
    assert registered_name(CustomLoss(lambda y, p: 0.0, "mine")) is None


def test_what_cannot_be_called_makes_no_loss():
    with pytest.raises(InvalidType, match=r"^function must be callable, got 0.5$"):
        CustomLoss(0.5)


@pytest.mark.parametrize("name", PROPER)
@settings(max_examples=40)
@given(n=st.integers(1, 50), share=fractions, g=inner, q=inner)
def test_swapping_a_forecast_gains_at_most_its_gap_times_the_swing(name, n, share, g, q):
    """Lemma 1 per cell (fact 10): frequencies, forecast and comparator are arbitrary."""
    loss, ones = get_loss(name), round(share * n)
    gain = ones * (loss(1, g) - loss(1, q)) + (n - ones) * (loss(0, g) - loss(0, q))
    gap = abs(ones - g * n)
    assert gain <= gap * loss.swing(min(g, q), max(g, q)) + 1e-9
    assert gain <= gap * 2 * loss.bound(min(g, q), max(g, q)) + 1e-9


def test_the_lemma_is_tight_for_the_misclassification_loss_and_false_for_the_absolute_one():
    loss = Misclassification()
    # 10 rounds at 0.5 with no ones: a gap of 5, and 10 lost to forecasting 0.
    assert 10 * (loss(0, 0.5) - loss(0, 0.0)) == 5 * loss.swing()
    absolute = get_loss("absolute")
    # 9 rounds at 1/3 with 3 ones: no gap at all, and still 1 lost to forecasting 0.
    gain = 3 * (absolute(1, 1 / 3) - absolute(1, 0.0)) + 6 * (absolute(0, 1 / 3) - absolute(0, 0.0))
    assert gain == pytest.approx(1.0)


def test_a_bound_at_the_announced_values_alone_is_not_enough_for_the_lemma():
    """Cost-weighted decisions at 0.1: announce 0.1 only, and twice its loss is not a bound."""

    def weighted(y, p):
        return 0.9 * (p < 0.1) if y else 0.1 * (p >= 0.1)

    loss = CustomLoss(weighted)
    assert loss.proper
    gain = 10 * (loss(0, 0.1) - loss(0, 0.0))
    assert gain > 2 * loss.bound(0.1, 0.1) * (0.1 * 10)
    assert gain <= loss.swing(0.0, 0.1) * (0.1 * 10) + 1e-12


def test_prices_of_named_losses_are_kept_and_those_of_others_found_anew() -> None:
    asked = []

    class Counting(Squared):
        def comparison(self, buckets: int) -> tuple[np.ndarray, np.ndarray]:
            asked.append(buckets)
            return super().comparison(buckets)

    for low in (0.0, 0.25, 0.0):
        own, named = (prices(loss, 7, low, 1.0) for loss in (Counting(), get_loss("squared")))
        assert own == named
    assert asked == [7, 7, 7]
    assert prices(get_loss("log"), 7, 0.1, 0.9) != prices(get_loss("squared"), 7, 0.1, 0.9)
    prices(get_loss("squared"), 1, 0.0, 1.0)
    with pytest.raises(InvalidType, match="buckets must be a whole number"):
        prices(get_loss("squared"), True, 0.0, 1.0)
