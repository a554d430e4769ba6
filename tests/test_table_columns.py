"""Columns of pandas and Arrow as keys of a table."""

from __future__ import annotations

import pytest

from calibrant import Keys
from calibrant.errors import InvalidInput


def test_categories_are_keys() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["b", "a", "b"], dtype="category")
    assert Keys.of(series).names == ["b", "a"]
    assert Keys.of(series.array).codes.tolist() == [0, 1, 0]
    arrow = pytest.importorskip("pyarrow")
    assert Keys.of(arrow.array(["b", "a"]).dictionary_encode()).names == ["b", "a"]
    with pytest.raises(InvalidInput, match="codes"):
        Keys.of(arrow.array(["b", None]).dictionary_encode())
