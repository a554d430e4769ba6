from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import naive_calibrators as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.bounds import half_cell
from calibrant.core.grid import GRIDS, MAX_RESOLUTION, Grid
from calibrant.core.mixture import Mixture
from calibrant.errors import InvalidInput, InvalidType

pytestmark = pytest.mark.base

SIZES = st.integers(2, 300)
KINDS = st.sampled_from(GRIDS)
SPACED = ("logit", "arcsine")


def finest(kind: str) -> int:
    """The largest resolution that the kind of grid takes."""
    with pytest.raises(InvalidInput) as refused:
        Grid(kind, 1 << 40)
    return int(re.search(r"to (\d+), got", str(refused.value)).group(1))


@given(SIZES)
def test_the_uniform_grids_are_the_fractions_they_are_named_after(n: int) -> None:
    assert naive.fractions(Grid("endpoints", n)) == [Fraction(i, n) for i in range(n + 1)]
    assert naive.fractions(Grid("midpoints", n)) == [Fraction(2 * i + 1, 2 * n) for i in range(n)]


@given(SIZES)
def test_the_spaced_grids_are_their_formulas_to_24_bits(n: int) -> None:
    odds = [math.log(2 * n - 1) * (2 * i - n + 1) / (n - 1) for i in range(n)]
    logit = [1 / (1 + math.exp(-x)) for x in odds]
    arcsine = [math.sin(math.pi * (2 * i + 1) / (4 * n)) ** 2 for i in range(n)]
    assert Grid("logit", n).values == pytest.approx(logit, abs=2.0**-24)
    assert Grid("arcsine", n).values == pytest.approx(arcsine, abs=2.0**-24)


@given(KINDS, SIZES)
def test_values_are_the_doubles_nearest_to_their_fractions(kind: str, n: int) -> None:
    grid = Grid(kind, n)
    assert grid.values.tolist() == [float(g) for g in naive.fractions(grid)]
    assert grid.cells == len(grid.values) == n + (kind in ("endpoints", "graded"))


@pytest.mark.parametrize("kind", GRIDS)
def test_the_finest_grid_still_has_distinct_values(kind: str) -> None:
    grid = Grid(kind, finest(kind))
    assert all(a < b for a, b in itertools.pairwise(grid.numerators))
    assert (np.diff(grid.values) > 0.0).all()
    inside = grid.numerators[0] > 0 and grid.numerators[-1] < grid.denominator
    assert inside or kind == "endpoints"


@given(KINDS, SIZES)
def test_grids_are_symmetric(kind: str, n: int) -> None:
    grid = Grid(kind, n)
    mirrored = [grid.denominator - k for k in reversed(grid.numerators)]
    slack = 1 if kind in SPACED else 0
    assert all(abs(a - b) <= slack for a, b in zip(grid.numerators, mirrored, strict=True))


@given(KINDS, st.integers(2, 60))
def test_half_a_cell_is_the_largest_distance_to_the_grid(kind: str, n: int) -> None:
    grid = Grid(kind, n)
    assert grid.half_cell == pytest.approx(float(naive.half_cell(naive.fractions(grid))))
    assert grid.half_cell == pytest.approx(half_cell(grid.values))


def test_a_grid_of_one_value_reaches_half_the_way() -> None:
    assert Grid("midpoints", 1).values.tolist() == [0.5]
    assert Grid("midpoints", 1).half_cell == 0.5


@given(KINDS, st.integers(2, 40), st.fractions(0, 1, max_denominator=200))
def test_the_nearest_value_is_found_and_ties_go_up(kind: str, n: int, target: Fraction) -> None:
    grid = Grid(kind, n)
    found = grid.nearest(target.numerator, target.denominator)
    assert found == naive.nearest(naive.fractions(grid), target)


def test_every_value_is_nearest_to_itself_on_a_grid_of_one() -> None:
    assert Grid("midpoints", 1).nearest(0, 1) == Grid("midpoints", 1).nearest(1, 1) == 0


@pytest.mark.parametrize("kind", GRIDS)
def test_values_cannot_be_written(kind: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        Grid(kind, 4).values[0] = 0.5


@pytest.mark.parametrize(
    ("kind", "n", "error", "text"),
    [
        (
            "even",
            4,
            InvalidInput,
            "grid must be one of 'endpoints', 'midpoints', 'logit', 'arcsine', 'graded', "
            "got 'even'",
        ),
        (
            None,
            4,
            InvalidInput,
            "grid must be one of 'endpoints', 'midpoints', 'logit', 'arcsine', 'graded', got None",
        ),
        (
            "endpoints",
            0,
            InvalidInput,
            "resolution must be a whole number from 1 to 16384, got 0",
        ),
        (
            "endpoints",
            MAX_RESOLUTION + 1,
            InvalidInput,
            "resolution must be a whole number from 1 to 16384, got 16385",
        ),
        (
            "midpoints",
            2.5,
            InvalidInput,
            "resolution must be a whole number from 1 to 16384, got 2.5",
        ),
        (
            "midpoints",
            "4",
            InvalidType,
            "resolution must be a whole number from 1 to 16384, got '4'",
        ),
    ],
)
def test_bad_grids_are_refused(kind: str, n: object, error: type, text: str) -> None:
    with pytest.raises(error) as refused:
        Grid(kind, n)
    assert str(refused.value) == text


@pytest.mark.parametrize("kind", SPACED)
def test_a_spaced_grid_needs_two_values(kind: str) -> None:
    with pytest.raises(InvalidInput, match=r"^resolution must be a whole number from 2 to "):
        Grid(kind, 1)


# Mixtures over a grid.


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_a_coin_falls_on_each_point_by_its_weight(parts: list[int], u: float) -> None:
    total = sum(parts)
    mixture = Mixture(
        tuple(range(10, 10 + len(parts))),
        tuple(part / total for part in parts),
        tuple(k / 10 for k in range(len(parts))),
    )
    drawn = mixture.draw(u) - 10
    below = [float(x) for x in itertools.accumulate(mixture.weights, initial=0.0)]
    assert below[drawn] <= u or drawn == 0
    assert u < below[drawn + 1] or drawn == len(parts) - 1


def test_weights_that_miss_one_by_rounding_leave_the_rest_to_the_last_point() -> None:
    mixture = Mixture((3, 4), (0.5, 0.25), (0.3, 0.4))
    assert mixture.draw(0.9) == 4


def test_the_mean_is_the_weighted_value() -> None:
    assert Mixture((0, 2), (0.25, 0.75), (0.0, 0.5)).mean == 0.375
