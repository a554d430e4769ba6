"""The experiments' numbers are what they were: whole ones exactly, others to 1e-9."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the extra experiments")
pytest.importorskip("jinja2", reason="needs the extra experiments")
pytest.importorskip("matplotlib", reason="needs the extra experiments")
pytest.importorskip("scipy", reason="needs the extra experiments")

from golden import make

pytestmark = pytest.mark.slow


def compare(found: Any, golden: Any, where: str) -> None:
    """Compare plain data, number by number."""
    if isinstance(golden, dict):
        assert list(found) == list(golden), where
        for key in golden:
            compare(found[key], golden[key], f"{where}.{key}")
    elif isinstance(golden, list):
        assert len(found) == len(golden), where
        for place, (one, other) in enumerate(zip(found, golden, strict=True)):
            compare(one, other, f"{where}[{place}]")
    elif isinstance(golden, float):
        assert found == pytest.approx(golden, abs=1e-9), where
    else:
        assert found == golden, where


def golden_of(name: str) -> Any:
    return json.loads((make.HERE / f"{name}.json").read_text())


@pytest.mark.parametrize("name", make.GOLDEN)
def test_the_numbers_are_the_golden_ones(name: str) -> None:
    compare(make.GOLDEN[name](), golden_of(name), name)


def test_the_shipped_forecasts_are_recalibrated_to_the_golden_numbers() -> None:
    compare(make.of_free917(), golden_of("free917"), "free917")


@pytest.mark.parametrize(
    ("found", "golden"),
    [
        (1, 2),
        (1.0, 1.0 + 1e-8),
        ([1], [1, 1]),
        ({"a": 1}, {"b": 1}),
        ("a", "b"),
        ([{"a": 1}], [{"a": 2}]),
    ],
)
def test_a_number_that_differs_is_noticed(found: Any, golden: Any) -> None:
    with pytest.raises(AssertionError):
        compare(found, golden, "here")
