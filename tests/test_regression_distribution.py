"""Predictive distributions in four forms: exact CDFs, quantiles, PIT and CRPS."""

from __future__ import annotations

import math
from statistics import NormalDist

import naive_regression as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels.quantiles import locate, normal_quantile
from calibrant.regression import Distribution, Distributions
from calibrant.regression import curves as tables
from calibrant.regression.curves import normal_quantiles

pytestmark = pytest.mark.base

numbers = st.integers(-20, 20).map(lambda k: k / 4)
members = st.lists(numbers, min_size=1, max_size=8)
chances = st.floats(0.0, 1.0)


@st.composite
def curves(draw):
    """Quantiles with ties in value, as levels and values."""
    size = draw(st.integers(2, 6))
    levels = sorted(draw(st.sets(st.integers(0, 20), min_size=size, max_size=size)))
    values = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    return [k / 20 for k in levels], values


def knots_of(made):
    table = np.broadcast_to(made.rows.levels, made.rows.values.shape)
    return list(zip(made.rows.values[0].tolist(), table[0].tolist(), strict=True))


@given(members, numbers)
def test_samples_are_their_empirical_distribution(sample, x) -> None:
    made = Distribution.from_samples(sample)
    assert made.cdf(x) == pytest.approx(naive.sample_cdf(sample, x), abs=1e-12)
    assert made.below(x) == pytest.approx(naive.sample_below(sample, x), abs=1e-12)
    assert made.crps(x) == pytest.approx(naive.sample_crps(sample, x), abs=1e-12)


@given(curves(), numbers)
def test_curves_go_straight_between_their_knots(curve, x) -> None:
    made = Distribution.from_quantiles(*curve)
    knots = knots_of(made)
    assert knots[0][1] == 0.0
    assert knots[-1][1] == 1.0
    assert made.cdf(x) == pytest.approx(naive.curve_cdf(knots, x), abs=1e-12)
    assert made.below(x) == pytest.approx(naive.curve_below(knots, x), abs=1e-12)


@given(curves(), chances)
def test_a_quantile_is_the_first_value_that_reaches_its_level(curve, p) -> None:
    made = Distribution.from_quantiles(*curve)
    x = made.quantile(p)
    assert made.cdf(x) >= p - 1e-9
    assert made.below(x) <= p + 1e-9


@given(curves())
def test_what_was_given_comes_back(curve) -> None:
    levels, values = curve
    made = Distribution.from_quantiles(levels, values)
    for level, value in zip(levels, values, strict=True):
        assert made.below(value) <= level + 1e-12
        assert made.cdf(value) >= level - 1e-12


@given(curves(), numbers)
def test_the_crps_of_a_curve_is_its_integral(curve, y) -> None:
    made = Distribution.from_quantiles(*curve)
    knots = knots_of(made)
    breaks = [value for value, _ in knots]
    exact = naive.crps_by_pieces(lambda x: naive.curve_cdf(knots, x), breaks, y)
    assert made.crps(y) == pytest.approx(exact, abs=1e-9)


@given(curves(), chances, st.floats(0.0, 1.0, exclude_max=True))
def test_the_share_of_an_atom_is_what_the_randomised_pit_needs(curve, q, u) -> None:
    made = Distribution.from_quantiles(*curve)
    table = np.broadcast_to(made.rows.levels, made.rows.values.shape)
    x, share = locate(made.rows.values[0].tolist(), table[0].tolist(), 0, 0, table.shape[1], q)
    mass = made.cdf(x) - made.below(x)
    if mass > 1e-9:
        below = made.pit(x, u) <= q
        # A coin within rounding of the share may fall either way.
        assert below == (u < share) or abs(u - share) < 1e-6
    else:
        assert share in (0.0, 1.0)


def test_rain_has_an_atom_at_zero() -> None:
    rain = Distribution.from_samples([0.0, 0.0, 0.0, 2.0])
    assert (rain.cdf(0.0), rain.below(0.0), rain.cdf(-0.1)) == (0.75, 0.0, 0.0)
    assert [rain.pit(0.0, coin) for coin in (0.0, 0.5, 1.0)] == [0.0, 0.375, 0.75]
    assert (rain.pit(0.0), *rain.rows.pit([0.0])) == (0.375, 0.375)
    assert (rain.quantile(0.75), rain.quantile(0.76)) == (0.0, 2.0)
    assert locate([0.0, 0.0, 2.0, 2.0], [0.0, 0.75, 0.75, 1.0], 0, 0, 4, 0.375) == (0.0, 0.5)


def test_cdf_values_take_an_atom_as_a_point_given_twice() -> None:
    rain = Distribution.from_cdf([0.0, 0.0, 1.0, 5.0], [0.0, 0.6, 0.8, 1.0])
    assert (rain.cdf(0.0), rain.below(0.0)) == (0.6, 0.0)
    assert rain.cdf(3.0) == pytest.approx(0.9)
    assert rain.quantile(0.7) == pytest.approx(0.5)


def test_ends_go_on_straight_where_they_rise_and_stop_where_they_do_not() -> None:
    made = Distribution.from_quantiles([0.25, 0.5, 0.75], [1.0, 2.0, 4.0])
    assert made.quantile([0.0, 1.0]).tolist() == [0.0, 6.0]
    flat = Distribution.from_cdf([0.0, 1.0, 2.0, 3.0], [0.2, 0.2, 0.9, 0.9])
    assert flat.quantile([0.0, 0.1, 0.95, 1.0]).tolist() == [0.0, 0.0, 3.0, 3.0]


@given(st.floats(1e-12, 1 - 1e-12))
def test_the_normal_quantile_is_that_of_the_standard_library(p) -> None:
    exact = NormalDist().inv_cdf(p)
    assert normal_quantile(p) == pytest.approx(exact, rel=4e-15, abs=1e-15)


def test_the_normal_quantile_reaches_into_far_tails() -> None:
    for p in (1e-300, 1e-40, 1e-12):
        assert normal_quantile(p) == pytest.approx(NormalDist().inv_cdf(p), rel=1e-14)
    assert (normal_quantile(0.0), normal_quantile(1.0)) == (-math.inf, math.inf)


def test_normal_distributions_are_those_of_the_standard_library() -> None:
    made = Distribution.normal(3.0, 2.0)
    known = NormalDist(3.0, 2.0)
    for x in (-9.0, 2.0, 3.0, 7.5):
        assert made.cdf(x) == made.below(x) == pytest.approx(known.cdf(x), rel=1e-12)
        assert made.quantile(known.cdf(x)) == pytest.approx(x)
    exact = naive.crps_by_pieces(known.cdf, [-20.0, 26.0], 4.0, parts=300)
    assert made.crps(4.0) == pytest.approx(exact, abs=1e-9)


def maps(size):
    level = st.integers(1, 99).map(lambda k: k / 100)
    inner = st.lists(level, min_size=size, max_size=size).map(sorted)
    outer = st.lists(st.integers(0, 100), min_size=size, max_size=size)
    return st.tuples(inner, outer.map(lambda ks: sorted(k / 100 for k in ks)))


def moved_level(inner, outer, u):
    """The map of levels, at a jump its upper end."""
    best = 0.0
    xs, ys = [0.0, *inner, 1.0], [0.0, *outer, 1.0]
    for (x0, y0), (x1, y1) in zip(
        zip(xs, ys, strict=True), zip(xs[1:], ys[1:], strict=True), strict=False
    ):
        if x1 <= u:
            best = max(best, y1)
        elif x0 <= u:
            best = max(best, y0 + (y1 - y0) * (u - x0) / (x1 - x0))
    return best


@given(maps(3), numbers)
def test_a_moved_normal_is_the_map_of_its_cdf(levels, x) -> None:
    inner, outer = levels
    made = Distributions.normal([1.0], [2.0]).moved(np.array([inner]), np.array([outer]))
    exact = moved_level(inner, outer, NormalDist(1.0, 2.0).cdf(x))
    assert made.cdf([x])[0] == pytest.approx(exact, abs=1e-9)


@given(maps(3), curves(), numbers)
def test_a_moved_curve_is_the_map_of_its_cdf(levels, curve, x) -> None:
    (inner, outer), raw = levels, Distribution.from_quantiles(*curve)
    u = raw.cdf(x)
    if any(abs(u - level) < 1e-9 for level in inner):
        return
    made = raw.rows.moved(np.array([inner]), np.array([outer]))
    assert made.cdf([x])[0] == pytest.approx(moved_level(inner, outer, u), abs=1e-9)


@pytest.mark.parametrize("narrow", [1e-13, 1e-9, 1e-4, 0.02, 0.2])
def test_the_crps_of_a_moved_normal_is_its_integral_however_narrow_its_pieces(narrow) -> None:
    inner = np.array([[0.3, 0.3 + narrow, 0.9999]])
    outer = np.array([[0.1, 0.7, 0.8]])
    made = Distributions.normal([0.0], [1.0]).moved(inner, outer)

    def cdf(x):
        return moved_level(inner[0].tolist(), outer[0].tolist(), NormalDist().cdf(x))

    breaks = [-9.0, 9.0, *(NormalDist().inv_cdf(u) for u in inner[0].tolist())]
    for y in (-1.0, 0.2, 3.0):
        exact = naive.crps_by_pieces(cdf, breaks, y, parts=100)
        assert made.crps([y])[0] == pytest.approx(exact, abs=1e-7)


def test_the_identity_moves_nothing() -> None:
    same = np.array([[0.2, 0.5, 0.9]])
    for raw in (Distributions.normal([1.0], [2.0]), Distributions.from_samples([[1.0, 2.0, 2.0]])):
        made = raw.moved(same, same)
        for y in (0.0, 1.5, 2.0):
            assert made.crps([y])[0] == pytest.approx(raw.crps([y])[0], abs=1e-12)
            assert made.cdf([y])[0] == pytest.approx(raw.cdf([y])[0], abs=1e-12)
        assert made.quantile([0.3, 0.7]) == pytest.approx(raw.quantile([0.3, 0.7]), abs=1e-9)


def test_normals_are_moved_once() -> None:
    level = np.array([[0.5]])
    made = Distributions.normal([0.0], [1.0]).moved(level, level)
    with pytest.raises(InvalidInput, match="distributions must not have been moved before"):
        made.moved(level, level)
    curve = Distributions.from_samples([[1.0, 2.0]]).moved(level, level)
    assert curve.moved(level, np.array([[0.9]])).cdf([1.5])[0] == pytest.approx(0.9)


def test_closed_forms_agree_with_scoringrules() -> None:
    # What crps_normal and crps_ensemble of scoringrules 0.10.0 give for these.
    y = [0.0, -1.5, 2.25, 7.0]
    normal = Distributions.normal([0.0, 1.0, 2.0, -1.0], [1.0, 0.5, 3.0, 0.25])
    told = [0.233694977255, 2.217905261688, 0.709391422833, 7.858952604113]
    assert normal.crps(y) == pytest.approx(told, abs=1e-11)
    ensemble = [[0, 0, 0, 1.5], [0, 0.25, 0.5, 3], [1, 2, 2, 8], [0, 0, 0, 0]]
    found = Distributions.from_samples(ensemble).crps(y)
    assert found == pytest.approx([0.09375, 1.859375, 0.5625, 7.0], abs=1e-12)


def test_rows_of_a_table_are_distributions() -> None:
    table = Distributions.from_cdf([0.0, 1.0], [[0.0, 1.0], [0.5, 1.0], [0.2, 0.3]])
    assert len(table) == 3
    assert len(table[1:]) == 2
    assert table[-1].cdf(1.0) == table[2].cdf(1.0) == 0.3
    assert table[1:][0].cdf(0.0) == 0.5
    shared = Distributions.from_quantiles([0.0, 1.0], [[0.0, 1.0], [5.0, 9.0]])
    assert shared[1].quantile(0.5) == 7.0
    with pytest.raises(IndexError):
        table[3]


def test_long_tables_are_asked_by_compiled_code_to_the_same_bits(monkeypatch) -> None:
    pytest.importorskip("numba", reason='needs the extra "fast"')
    rng = np.random.default_rng(1)
    for table in (
        Distributions.from_samples(np.maximum(rng.normal(size=(300, 5)), 0.0)),
        Distributions.from_cdf([0.0, 1.0, 2.0], np.sort(rng.random((300, 3)), axis=1)),
        Distributions.normal(rng.normal(size=300), rng.random(300) + 0.1),
    ):
        asked = rng.random((300, 7)) * 1.2 - 0.1
        plain = tables.ask(table.values, table.levels, asked)
        monkeypatch.setattr(tables, "SHORT", 10)
        fast = tables.ask(table.values, table.levels, asked)
        monkeypatch.undo()
        assert [part.tolist() for part in plain] == [part.tolist() for part in fast]


def test_distributions_say_what_they_are() -> None:
    assert repr(Distribution.normal(1.0, 2.0)) == "Distribution.normal(1.0, 2.0)"
    told = repr(Distribution.from_quantiles([0.0, 1.0], [0.0, 10.0]))
    assert told == "Distribution(10 % 1, 50 % 5, 90 % 9)"


BAD = {
    "levels that fall": (
        lambda: Distribution.from_quantiles([0.5, 0.5], [1, 2]),
        "levels[1] must be above the one before it, got 0.5",
    ),
    "levels beyond 1": (
        lambda: Distribution.from_quantiles([0.5, 1.5], [1, 2]),
        "levels[1] must be a number in [0, 1], got 1.5",
    ),
    "one level": (
        lambda: Distribution.from_quantiles([0.5], [1]),
        "levels must be at least two, got 1",
    ),
    "quantiles that cross": (
        lambda: Distribution.from_quantiles([0.1, 0.5], [2.0, 1.0]),
        "values[0, 1] must be at least the number before it, got 1.0",
    ),
    "other columns": (
        lambda: Distribution.from_quantiles([0.1, 0.5], [1.0, 2.0, 3.0]),
        "values must have 2 columns, as many as levels, got 3",
    ),
    "no number": (
        lambda: Distribution.from_quantiles([0.1, 0.5], [1.0, math.nan]),
        "values[0, 1] must be a finite number, got nan",
    ),
    "chances that fall": (
        lambda: Distribution.from_cdf([0, 1], [0.5, 0.4]),
        "chances[0, 1] must be at least the number before it, got 0.4",
    ),
    "chances beyond 1": (
        lambda: Distribution.from_cdf([0, 1], [0.5, 1.4]),
        "chances[1] must be a number in [0, 1], got 1.4",
    ),
    "points that fall": (
        lambda: Distribution.from_cdf([1, 0], [0.5, 0.6]),
        "points[0, 1] must be at least the number before it, got 0.0",
    ),
    "one point": (
        lambda: Distribution.from_cdf([1], [0.5]),
        "points must be at least two, got 1",
    ),
    "no members": (
        lambda: Distribution.from_samples([]),
        "samples must be a table, a round a row, got shape (1, 0)",
    ),
    "a flat table": (
        lambda: Distributions.from_samples([1.0, 2.0]),
        "samples must be a table, a round a row, got shape (2,)",
    ),
    "no width": (lambda: Distribution.normal(0, 0), "sd must be above 0, got 0"),
    "no widths": (lambda: Distributions.normal([0], [0]), "sd[0] must be above 0, got 0.0"),
    "infinite mean": (
        lambda: Distribution.normal(math.inf, 1),
        "mean must be a finite number, got inf",
    ),
    "lengths": (
        lambda: Distributions.normal([0], [1, 2]),
        "arrays must be of one length, got: mean has 1, sd has 2",
    ),
    "points for other rows": (
        lambda: Distributions.normal([0], [1]).cdf([1, 2]),
        "arrays must be of one length, got: distributions has 1, points has 2",
    ),
    "outcomes for other rows": (
        lambda: Distributions.normal([0], [1]).crps([1, 2]),
        "arrays must be of one length, got: distributions has 1, outcomes has 2",
    ),
    "a level beyond 1": (
        lambda: Distribution.normal(0, 1).quantile(1.1),
        "levels[0] must be a number in [0, 1], got 1.1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_distribution_is_refused_with_a_reason(case) -> None:
    make, told = BAD[case]
    with pytest.raises(InvalidInput) as caught:
        make()
    assert str(caught.value) == told


def test_words_and_ragged_rows_are_refused() -> None:
    with pytest.raises(InvalidType, match="samples must be a table of numbers, got ragged rows"):
        Distributions.from_samples([[1.0], [1.0, 2.0]])
    with pytest.raises(InvalidType, match="samples must be a table of numbers, got dtype <U1"):
        Distributions.from_samples([["a"]])


def test_many_normal_quantiles_are_those_one_by_one_to_the_bit() -> None:
    levels = np.append(np.random.default_rng(5).random(2_000), [0.0, 0.075, 0.925, 1.0, 1e-12])
    one_by_one = [normal_quantile(level) for level in levels.tolist()]
    assert normal_quantiles(levels).tolist() == one_by_one
