from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.core import check
from calibrant.errors import CalibrantError, InvalidInput, InvalidType

pytestmark = pytest.mark.base

HUGE = 10**400
UNITLESS = np.int64(3).view("m8")
"""A difference of no unit; NumPy warns of whoever writes one as such."""

NOT_NUMBERS = [
    "1",
    None,
    [],
    {},
    1j,
    b"1",
    Decimal("0.5"),
    object,
    np.array([0.5]),
    np.str_("1"),
    UNITLESS,
    np.timedelta64(1, "D"),
    np.timedelta64("NaT", "s"),
]


def refusal(error: type[Exception], call: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(error) as refused:
        call(*args, **kwargs)
    assert type(refused.value) is error
    assert isinstance(refused.value, CalibrantError)
    return str(refused.value)


# Probabilities.


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (1, 1.0),
        (True, 1.0),
        (False, 0.0),
        (0.25, 0.25),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.float16(0.5), 0.5),
        (np.int8(1), 1.0),
        (np.uint64(1), 1.0),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
        (5e-324, 5e-324),
        (float(np.nextafter(1.0, 0.0)), float(np.nextafter(1.0, 0.0))),
    ],
)
def test_whatever_means_a_number_in_range_is_a_probability(value: object, number: float) -> None:
    found = check.probability(value)
    assert found == number
    assert type(found) is float


@given(st.floats(0, 1))
def test_every_float_in_range_comes_back_as_it_is(value: float) -> None:
    assert check.probability(value) == value


@given(st.floats().filter(lambda x: not 0 <= x <= 1))
def test_every_other_float_is_refused(value: float) -> None:
    text = refusal(InvalidInput, check.probability, value)
    assert text == f"raw forecast must be a number in [0, 1], got {value!r}"


@pytest.mark.parametrize(
    "value", [1.0000001, -1e-300, 2, -1, HUGE, np.float64(1.5), Fraction(3, 2)]
)
def test_numbers_out_of_range_are_no_probabilities(value: object) -> None:
    text = refusal(InvalidInput, check.probability, value, "p")
    assert text == f"p must be a number in [0, 1], got {value!r}"


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_no_probability(value: object) -> None:
    text = refusal(InvalidType, check.probability, value)
    assert text == f"raw forecast must be a number in [0, 1], got {value!r}"


# Outcomes.


@pytest.mark.parametrize("value", [0, False, 0.0, -0.0, np.int32(0), np.bool_(False), np.array(0)])
def test_zero_in_any_dress_is_the_outcome_zero(value: object) -> None:
    assert check.outcome(value) == 0
    assert type(check.outcome(value)) is int


@pytest.mark.parametrize("value", [1, True, 1.0, np.uint8(1), np.bool_(True), np.float32(1), 10**0])
def test_one_in_any_dress_is_the_outcome_one(value: object) -> None:
    assert check.outcome(value) == 1
    assert type(check.outcome(value)) is int


@pytest.mark.parametrize("value", [2, -1, 0.5, float("nan"), float("inf"), HUGE, np.int64(2)])
def test_no_other_number_is_an_outcome(value: object) -> None:
    assert refusal(InvalidInput, check.outcome, value) == f"outcome must be 0 or 1, got {value!r}"


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_no_outcome(value: object) -> None:
    assert refusal(InvalidType, check.outcome, value, "y") == f"y must be 0 or 1, got {value!r}"


# Real and whole numbers, and choices.


def test_a_real_number_lies_in_its_range() -> None:
    assert check.real(3, "eta") == 3.0
    assert check.real(0.5, "eta", low=0.5, high=0.5) == 0.5
    for value in (0.4, 0.6, float("nan")):
        text = refusal(InvalidInput, check.real, value, "eta", low=0.5, high=0.5, rule="one half")
        assert text == f"eta must be one half, got {value!r}"


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), HUGE])
def test_a_real_number_is_finite(value: object) -> None:
    text = refusal(InvalidInput, check.real, value, "eta")
    assert text == f"eta must be a finite number, got {value!r}"


def test_a_string_is_no_real_number() -> None:
    text = refusal(InvalidType, check.real, "3", "eta")
    assert text == "eta must be a finite number, got '3'"


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), 3.0, np.float32(3), Fraction(3)])
def test_a_whole_number_may_come_as_any_number(value: object) -> None:
    assert check.whole(value, "size", low=3, high=3) == 3
    assert type(check.whole(value, "size")) is int


@pytest.mark.parametrize("value", [2.5, float("nan"), float("inf"), -1, -(10**30)])
def test_other_numbers_are_not_whole(value: object) -> None:
    text = refusal(InvalidInput, check.whole, value, "size")
    assert text == f"size must be a whole number of at least 0, got {value!r}"


@pytest.mark.parametrize("value", [4, 10**30, HUGE, 1e300])
def test_a_whole_number_has_a_highest_value(value: object) -> None:
    text = refusal(InvalidInput, check.whole, value, "size", low=1, high=3)
    assert text == f"size must be a whole number from 1 to 3, got {value!r}"


@pytest.mark.parametrize(
    "value", [True, np.bool_(False), "3", None, UNITLESS, np.timedelta64(3, "D")], ids=repr
)
def test_truth_values_and_strings_are_no_whole_numbers(value: object) -> None:
    text = refusal(InvalidType, check.whole, value, "size", low=1)
    assert text == f"size must be a whole number of at least 1, got {value!r}"


def test_a_choice_is_one_of_the_options() -> None:
    assert check.choice("a", "letter", ("a", "b")) == "a"
    for value in ("c", None, 1, ["a"]):
        text = refusal(InvalidInput, check.choice, value, "letter", ("a", "b"))
        assert text == f"letter must be one of 'a', 'b', got {value!r}"


# Arrays.


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 0.5],
        (0, 1, 0.5),
        np.array([0.0, 1.0, 0.5], np.float32),
        np.array([[0.0, 9.0], [1.0, 9.0], [0.5, 9.0]])[:, 0],
        np.array([0.5, 1.0, 0.0])[::-1],
    ],
)
def test_probabilities_come_back_contiguous_and_double(values: object) -> None:
    found = check.probabilities(values)
    assert found.tolist() == [0.0, 1.0, 0.5]
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 1],
        [False, True, True],
        [0.0, 1.0, 1.0],
        [-0.0, 1.0, 1.0],
        np.array([0, 1, 1], np.int8),
        np.array([0, 5, 1, 5, 1])[::2],
        np.array([False, True, True]),
    ],
)
def test_outcomes_come_back_contiguous_and_small(values: object) -> None:
    found = check.outcomes(values)
    assert found.tolist() == [0, 1, 1]
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous


@pytest.mark.parametrize("check_array", [check.probabilities, check.outcomes])
@pytest.mark.parametrize("values", [[], (), np.empty(0), np.empty(0, object), np.empty(0, "U1")])
def test_nothing_at_all_is_an_array_too(check_array: object, values: object) -> None:
    assert check_array(values).shape == (0,)


@pytest.mark.parametrize("bad", [1.0000001, -0.1, float("nan"), float("inf")])
def test_the_first_bad_probability_is_named_with_its_place(bad: float) -> None:
    text = refusal(InvalidInput, check.probabilities, [0.5, bad, 7.0])
    assert text == f"raw forecasts[1] must be a number in [0, 1], got {bad!r}"


@pytest.mark.parametrize("bad", [2, -1, 0.5, float("nan")])
def test_the_first_bad_outcome_is_named_with_its_place(bad: float) -> None:
    values = np.array([0, 1, bad, 9])
    text = refusal(InvalidInput, check.outcomes, values, "y")
    assert text == f"y[2] must be 0 or 1, got {values[2].item()!r}"


@pytest.mark.parametrize(
    ("values", "error", "told"),
    [
        (0.5, InvalidType, "0.5"),
        ("0.5", InvalidType, "'0.5'"),
        (np.array(0.5), InvalidType, "array(0.5)"),
        ([[0.5]], InvalidInput, "shape (1, 1)"),
        (np.zeros((2, 0)), InvalidInput, "shape (2, 0)"),
        ([[0.5], [0.5, 0.5]], InvalidType, "ragged rows"),
        (["0.5"], InvalidType, "dtype <U3"),
        ([None], InvalidType, "dtype object"),
        ([0.5, None], InvalidType, "dtype object"),
        (np.array([0.5], object), InvalidType, "dtype object"),
        ([0.5 + 0j], InvalidType, "dtype complex128"),
        (np.array(["2020-01-01"], "M8[D]"), InvalidType, "dtype datetime64[D]"),
    ],
    ids=str,
)
def test_other_shapes_and_kinds_are_refused(values: object, error: type, told: str) -> None:
    text = refusal(error, check.probabilities, values)
    assert text == f"raw forecasts must be a flat array of numbers in [0, 1], got {told}"
    text = refusal(error, check.outcomes, values)
    assert text == f"outcomes must be a flat array of outcomes, each 0 or 1, got {told}"


@pytest.mark.parametrize("check_array", [check.probabilities, check.outcomes])
def test_what_is_masked_is_not_uncovered(check_array: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_array(np.ma.masked_array([1, 0, 1], [False, False, True]), "values")
    assert str(refused.value) == "values[2] must be known, got a masked value"
    whole = np.ma.masked_array([1, 0, 1], [False] * 3)
    assert check_array(whole).tolist() == [1, 0, 1]
    assert check_array(np.ma.masked_array([1.0, 0.0])).tolist() == [1, 0]


@pytest.mark.parametrize("check_one", [check.probability, check.outcome])
def test_a_masked_number_is_no_number(check_one: Any) -> None:
    with pytest.raises(InvalidType, match=r"must be .*, got masked$"):
        check_one(np.ma.masked)


def test_dates_count_in_seconds_alike_alone_and_in_arrays() -> None:
    days = np.array(["1969-12-31", "2024-02-29", "3000-01-01", "1500-01-01"], "M8[D]")
    units = [days.astype(f"M8[{unit}]") for unit in ("D", "h", "s", "ms", "us")]
    seconds = (days.astype(int) * 86_400.0).tolist()
    for dates in [*units, days[:2].astype("M8[ns]")]:
        assert check.seconds(dates).tolist() == seconds[: len(dates)]
        assert [check.moment(date) for date in dates] == seconds[: len(dates)]
    fine = np.array([1_709_164_800_123_456_789, -1], "M8[ns]")
    assert [check.moment(date) for date in fine] == check.seconds(fine).tolist()
    assert np.isnan(check.seconds(np.array(["NaT"], "M8[s]"))).all()


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (np.datetime64("NaT", "s"), InvalidInput),
        (np.timedelta64(1, "s"), InvalidType),
        ("2024-02-29", InvalidType),
    ],
)
def test_what_is_no_time_is_refused(bad: object, error: type) -> None:
    text = refusal(error, check.moment, bad)
    assert text == f"time must be a finite number or an np.datetime64, got {bad!r}"


def test_arrays_of_one_length_have_that_length() -> None:
    assert check.same_length(a=[1, 2], b=(3, 4)) == 2
    assert check.same_length() == 0
    text = refusal(InvalidInput, check.same_length, raw=[1, 2], outcomes=[1])
    assert text == "arrays must be of one length, got: raw has 2, outcomes has 1"
