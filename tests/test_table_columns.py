"""Columns of pandas and Arrow as keys of a table."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import Calibrant, Keys, Recalibrator, Table
from calibrant.errors import InvalidInput, InvalidType


def test_categories_are_keys() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["b", "a", "b"], dtype="category")
    assert Keys.of(series).names == ["b", "a"]
    assert Keys.of(series.array).codes.tolist() == [0, 1, 0]
    arrow = pytest.importorskip("pyarrow")
    assert Keys.of(arrow.array(["b", "a"]).dictionary_encode()).names == ["b", "a"]
    with pytest.raises(InvalidInput, match="codes"):
        Keys.of(arrow.array(["b", None]).dictionary_encode())


def test_columns_of_arrow_in_chunks_are_keys() -> None:
    arrow = pytest.importorskip("pyarrow")
    chunks = arrow.chunked_array([["b", "a"], [], ["b"]])
    for column in (chunks, chunks.dictionary_encode()):
        keys = Keys.of(column)
        assert (keys.names, keys.codes.tolist()) == (["b", "a"], [0, 1, 0])
    assert Keys.of(arrow.chunked_array([[3, 5], [3]])).names == [3, 5]
    assert len(Keys.of(arrow.chunked_array([], arrow.string()))) == 0


def test_columns_of_polars_are_keys() -> None:
    polars = pytest.importorskip("polars")
    names = ["b", "a", "b"]
    for column in (polars.Series(names), polars.Series(names, dtype=polars.Categorical)):
        keys = Keys.of(column)
        assert (keys.names, keys.codes.tolist()) == (["b", "a"], [0, 1, 0])
    assert Keys.of(polars.Series([3, 5, 3])).names == [3, 5]
    with pytest.raises(InvalidType, match="row 1: key must be"):
        Keys.of(polars.Series(["a", None]))


def test_keys_that_were_read_are_not_read_again_unless_somebody_wrote_to_them() -> None:
    keys = Keys.of(["b", "a", "b"])
    assert Keys.of(keys) is keys
    with pytest.raises(ValueError, match="read-only"):
        keys.codes[0] = 1
    keys.codes.flags.writeable = True
    keys.codes[0] = 1
    assert Keys.of(keys).names == ["a", "b"]
    own = np.array([1, 0, 1])
    again = Keys.of(Keys(["b", "a", "c"], own))
    assert (again.names, again.codes.tolist()) == (["a", "b"], [0, 1, 0])
    assert own.flags.writeable


def test_a_key_of_numpy_has_the_coins_of_the_plain_one() -> None:
    names, raw = ["a", "b", "a"], [0.2, 0.7, 0.3]
    plain, other = (Table(Recalibrator(resolution=10, buckets=10), seed=7) for _ in range(2))
    plain.replay(names, raw, [0, 1, 0])
    other.replay([np.str_(name) for name in names], raw, [0, 1, 0])
    assert [type(key) for key in other] == [str, str]
    assert other.to_bytes() == plain.to_bytes()
    lone = Recalibrator(resolution=10, buckets=10, seed=7, key=np.str_("a"))
    assert lone == Recalibrator(resolution=10, buckets=10, seed=7, key="a")


def test_a_table_is_like_its_pattern_alone() -> None:
    table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
    assert table.is_like(Recalibrator(resolution=10, buckets=10, seed=3))
    assert not table.is_like(Recalibrator(resolution=11, buckets=10))
    assert not table.is_like(Calibrant())
