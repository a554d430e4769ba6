from __future__ import annotations

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core.place import bucket, buckets_of


def edges_and_neighbours(buckets: int) -> tuple[np.ndarray, np.ndarray]:
    j = np.arange(1, buckets)
    edges = j / buckets
    values = np.concatenate((edges, np.nextafter(edges, 2.0), np.nextafter(edges, -1.0)))
    return values, np.concatenate((j, j, j - 1))


@pytest.mark.parametrize("start", range(1, 400, 57))
def test_every_edge_and_its_neighbours_fall_where_they_belong(start: int) -> None:
    for buckets in range(start, min(start + 57, 400)):
        values, expected = edges_and_neighbours(buckets)
        assert (buckets_of(values, buckets) == expected).all()
        assert [bucket(v, buckets) for v in values.tolist()] == expected.tolist()


@pytest.mark.parametrize("buckets", [1, 2, 3, 10, 399, 1 << 20, (1 << 50) - 1])
def test_the_ends_belong_to_the_first_and_the_last_bucket(buckets: int) -> None:
    ends = [0.0, -0.0, 5e-324, 1.0, float(np.nextafter(1.0, 0.0))]
    expected = [0, 0, 0, buckets - 1, buckets - 1]
    assert [bucket(value, buckets) for value in ends] == expected
    assert buckets_of(np.array(ends), buckets).tolist() == expected


def test_the_guess_alone_would_be_wrong_on_both_sides() -> None:
    assert int(0.29 * 100) == 28
    assert bucket(0.29, 100) == 29
    below = float(np.nextafter(5 / 6, 0.0))
    assert int(below * 6) == 5
    assert bucket(below, 6) == 4


@given(st.floats(0, 1), st.integers(1, 300))
def test_the_bucket_is_the_last_whose_edge_is_not_above(value: float, buckets: int) -> None:
    assert bucket(value, buckets) == naive.bucket(value, buckets)


@given(st.lists(st.floats(0, 1), max_size=30), st.integers(1, 1 << 50))
def test_arrays_and_numbers_agree(values: list[float], buckets: int) -> None:
    expected = [bucket(value, buckets) for value in values]
    assert buckets_of(np.array(values, dtype=np.float64), buckets).tolist() == expected


def test_long_arrays_are_placed_piece_by_piece() -> None:
    values = np.random.default_rng(5).random(40_000)
    assert (buckets_of(values, 7) == np.floor(values * 7)).all()
