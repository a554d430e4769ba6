"""What streams of every kind have in common: what they refuse, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from everyone import EVERYONE

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import InvalidInput, InvalidType
from calibrant.registry import calibrators

pytestmark = pytest.mark.plain

every_kind = pytest.mark.parametrize("name", EVERYONE)
rounds_or_none = pytest.mark.parametrize("rounds", [0, 3])

FAILURES: dict[str, tuple[Any, type[Exception]]] = {
    "none": (None, InvalidType),
    "text": ("0.05", InvalidType),
    "list": ([0.05], InvalidType),
    "complex": (0.05j, InvalidType),
    "two": (2.0, InvalidInput),
    "minus one": (-1, InvalidInput),
    "zero": (0, InvalidInput),
    "one": (1, InvalidInput),
    "no number": (float("nan"), InvalidInput),
    "infinite": (float("inf"), InvalidInput),
    "huge": (10**400, InvalidInput),
}
every_failure = pytest.mark.parametrize("failure", FAILURES)


def played(name: str, rounds: int) -> Any:
    """Return a stream of a kind after so many rounds."""
    one = EVERYONE[name]
    model = one.make(seed=1)
    for k in range(rounds):
        model.observe(model.forecast(one.raw), one.outcomes[k % 2])
    return model


def told_of(failure: str) -> str:
    return f"failure must be a number in (0, 1), got {FAILURES[failure][0]!r}"


@every_failure
@rounds_or_none
@every_kind
def test_a_failure_that_cannot_be_is_named_as_it_was_given(
    name: str, rounds: int, failure: str
) -> None:
    value, error = FAILURES[failure]
    with pytest.raises(error) as caught:
        played(name, rounds).certificate(value)
    assert (type(caught.value), str(caught.value)) == (error, told_of(failure))


@every_failure
@rounds_or_none
@pytest.mark.parametrize("kind", [Recalibrator, Calibrant])
@pytest.mark.parametrize("together", [False, True])
def test_tables_name_such_a_failure_too(
    kind: Any, together: bool, rounds: int, failure: str
) -> None:
    value, error = FAILURES[failure]
    table = Table(kind(seed=1))
    for _ in range(rounds):
        table.observe(table.forecast("a", 0.4), 1)
    with pytest.raises(error) as caught:
        table.certificates(value, together=together)
    assert (type(caught.value), str(caught.value)) == (error, told_of(failure))


@rounds_or_none
@every_kind
def test_a_failure_in_any_dress_is_the_number_it_means(name: str, rounds: int) -> None:
    model = played(name, rounds)
    assert str(model.certificate(np.array(0.25))) == str(model.certificate(0.25))


SMALLEST = 5e-324
"""The least number above 0."""


@pytest.mark.parametrize("failure", [1e-150, 1e-200, 1e-308, SMALLEST])
@rounds_or_none
@every_kind
def test_a_failure_may_be_as_small_as_any_number(name: str, rounds: int, failure: float) -> None:
    certificate = played(name, rounds).certificate(failure)
    assert str(certificate)
    assert certificate.holds is not False


@pytest.mark.parametrize("failure", [1e-200, SMALLEST])
@pytest.mark.parametrize("name", calibrators.names())
def test_certificates_promise_less_the_less_they_may_fail(name: str, failure: float) -> None:
    model, safe = Recalibrator(name, seed=1), Calibrant(raw_safe=0.01, seed=1)
    for k in range(40):
        for stream in (model, safe):
            stream.observe(stream.forecast(0.4), k % 2)
    for stream in (model, safe):
        told = [[b.value for b in stream.certificate(f).sure] for f in (0.05, failure)]
        assert len(told[0]) == len(told[1])
        assert all(usual <= rare for usual, rare in zip(*told, strict=True))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("safe", [None, 0.01])
def test_tables_may_be_asked_for_the_smallest_failure_too(safe: Any, together: bool) -> None:
    table = Table(Calibrant(raw_safe=safe, seed=1))
    for k in range(300):
        table.observe(table.forecast(k % 3, 0.4), k % 2)
    usual, rare = (table.certificates(f, together=together) for f in (0.05, SMALLEST))
    assert (rare.promised >= usual.promised).all()


NO_FORECASTS: dict[str, Any] = {
    "none": None,
    "text": "0.4",
    "bytes": b"0.4",
    "mapping": {},
    "object": object(),
}


@pytest.mark.parametrize("given", NO_FORECASTS.values(), ids=NO_FORECASTS)
@every_kind
def test_what_is_no_forecast_at_all_is_of_the_wrong_type(name: str, given: Any) -> None:
    model = played(name, 1)
    before = model.to_bytes()
    for verb in (model.forecast, model.sample_one):
        with pytest.raises(InvalidType, match="must be"):
            verb(given)
    assert model.to_bytes() == before


@pytest.mark.parametrize("none", [[], (), np.empty(0)], ids=["list", "tuple", "array"])
@pytest.mark.parametrize("name", sorted(set(EVERYONE) - {"quantiles", "pit"}))
def test_a_batch_of_no_rounds_changes_nothing(name: str, none: Any) -> None:
    model = played(name, 1)
    before = model.to_bytes()
    run = model.replay(none, none)
    assert (run.first, len(run.pending)) == (1, 0)
    assert len(model.forecast_many(none).number) == 0
    assert model.to_bytes() == before
