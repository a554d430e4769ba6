from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.metrics.tally import CHUNK, SCALE, fixed, fixed_sum, fixed_sums_by_key, real

unit = st.floats(0, 1)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite)
def test_fixed_is_the_nearest_unit(value: float) -> None:
    assert fixed(value) == round(Fraction(value) * SCALE)


@given(st.one_of(st.just(0.0), st.floats(2.0**-8, 1)))
def test_numbers_above_a_256th_are_kept_exactly(value: float) -> None:
    assert Fraction(fixed(value), SCALE) == Fraction(value)
    assert real(fixed(value)) == value


@given(st.lists(finite, max_size=20))
def test_sums_of_arrays_are_sums_of_numbers(values: list[float]) -> None:
    assert fixed_sum(np.array(values, dtype=np.float64)) == sum(map(fixed, values))


@given(st.lists(st.tuples(st.integers(0, 4), unit), max_size=30))
def test_sums_by_key_are_sums_of_numbers(rows: list[tuple[int, float]]) -> None:
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    values = np.array([value for _, value in rows], dtype=np.float64)
    expected = [sum(fixed(v) for k, v in rows if k == key) for key in range(5)]
    assert fixed_sums_by_key(keys, values, 5) == expected


@pytest.mark.parametrize("length", [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_long_arrays_lose_nothing_between_pieces(length: int) -> None:
    values = np.random.default_rng(length).random(length)
    keys = np.arange(length) % 3
    by_key = [sum(map(fixed, values[key::3].tolist())) for key in range(3)]
    assert fixed_sums_by_key(keys, values, 3) == by_key
    assert fixed_sum(values) == sum(by_key)


def test_the_largest_words_still_add_up() -> None:
    values = np.full(CHUNK, np.nextafter(1.0, 0.0))
    expected = CHUNK * fixed(float(values[0]))
    assert fixed_sums_by_key(np.zeros(CHUNK, dtype=np.int64), values, 1) == [expected]
    assert fixed_sum(-values) == -expected
    assert fixed_sum(values + 2.0**37) == sum(map(fixed, (values + 2.0**37).tolist()))
