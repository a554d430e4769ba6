"""The portable exp and log: the last bit, the edges, and the compiler's opinion."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.kernels import bits as by_bits
from calibrant.kernels import portable
from calibrant.kernels.compile import numba, register
from calibrant.kernels.portable import (
    exp,
    exp_plain,
    exp_short,
    log,
    log_ratio,
    logit,
    sigmoid,
    sigmoid_short,
    turn,
)

Function = Callable[[float], float]

NAMES = ("exp", "log", "logit", "sigmoid")
EDGES = (0.0, -0.0, 0.5, 1.0, 2.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, 1e-310, 1e308)
INNER = np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0)


def arguments(name: str, count: int, seed: int = 0) -> list[float]:
    """Return ``count`` arguments for the function ``name``, of every useful size."""
    random = np.random.default_rng(seed)
    some = count // 2
    rest = count - some
    made = {
        "exp": (random.uniform(-708.0, 709.0, some), random.normal(0.0, 3.0, rest)),
        "log": (10.0 ** random.uniform(-320.0, 308.0, some), random.uniform(0.5, 2.0, rest)),
        "logit": (10.0 ** random.uniform(-300.0, -0.01, some), random.random(rest)),
        "sigmoid": (random.uniform(-700.0, 40.0, some), random.normal(0.0, 3.0, rest)),
    }[name]
    return [float(x) for x in np.concatenate(made)]


def truth(name: str, x: float) -> Decimal:
    """Return the function's value to 40 digits; call it in a 60-digit context."""
    exact = Decimal(x)
    return {
        "exp": lambda: exact.exp(),
        "log": lambda: exact.ln(),
        "logit": lambda: (exact / (1 - exact)).ln(),
        "sigmoid": lambda: 1 / (1 + (-exact).exp()),
    }[name]()


def ulps(function: Function, name: str, x: float) -> float:
    """Return the distance of ``function(x)`` from the truth in units of its last place."""
    with localcontext(Context(prec=60)):
        exact = truth(name, x)
        return float(abs(Decimal(function(x)) - exact) / Decimal(math.ulp(float(exact))))


def bits(values: Any) -> list[int]:
    words: list[int] = np.asarray(values, dtype=np.float64).view(np.int64).tolist()
    return words


@pytest.mark.parametrize(
    ("name", "limit"), [("exp", 0.92), ("log", 0.9), ("logit", 1.6), ("sigmoid", 2.0)]
)
def test_the_error_stays_below_the_documented_number_of_units(name: str, limit: float) -> None:
    function = getattr(portable, name)
    assert max(ulps(function, name, x) for x in arguments(name, 5_000)) <= limit


@pytest.mark.parametrize(
    ("name", "x", "limit"),
    [
        ("exp", 391.98550349545917, 0.92),
        ("log", 0.7059748421083375, 0.9),
        ("logit", 0.40234496420835003, 1.6),
        ("logit", 0.4134995538538612, 1.6),
        ("sigmoid", -4.847817749120468, 2.0),
        ("sigmoid", -3.443554596385878, 2.0),
    ],
)
def test_the_hardest_arguments_found_stay_below_it_too(name: str, x: float, limit: float) -> None:
    assert ulps(getattr(portable, name), name, x) <= limit


@pytest.mark.parametrize("k", [-1000, -62, -1, 0, 1, 5, 63, 1000])
def test_exp_is_accurate_where_its_reduction_switches(k: int) -> None:
    middle = (k + 0.5) * math.log(2.0)
    around = [middle + step * math.ulp(middle) for step in range(-40, 41)]
    assert max(ulps(exp, "exp", x) for x in around) <= 0.92
    assert around == sorted(around)
    assert [exp(x) for x in around] == sorted(exp(x) for x in around)


@pytest.mark.parametrize("k", [-1022, -64, -1, 0, 1, 63, 64, 1022])
@pytest.mark.parametrize("where", [1.0, portable.SQRT2])
def test_log_is_accurate_where_its_reduction_switches(k: int, where: float) -> None:
    middle = math.ldexp(where, k)
    around = [middle + step * math.ulp(middle) for step in range(-40, 41) if step]
    assert max(ulps(log, "log", x) for x in around) <= 0.9
    assert [log(x) for x in around] == sorted(log(x) for x in around)


@pytest.mark.parametrize("name", NAMES)
def test_larger_arguments_give_larger_results(name: str) -> None:
    function = getattr(portable, name)
    found = [function(x) for x in sorted(arguments(name, 20_000, seed=1))]
    assert found == sorted(found)
    assert len(set(found)) > 10_000


def test_the_edges_of_exp() -> None:
    assert exp(0.0) == exp(-0.0) == 1.0
    assert exp(math.inf) == math.inf
    assert exp(-math.inf) == 0.0
    assert math.isnan(exp(math.nan))
    assert exp(5e-324) == exp(-5e-324) == 1.0


def test_exp_fills_the_normal_range_and_nothing_else() -> None:
    highest, lowest = portable.HIGHEST, portable.LOWEST
    assert exp(highest) < math.inf == exp(math.nextafter(highest, math.inf))
    assert exp(lowest) >= sys.float_info.min
    assert exp(math.nextafter(lowest, -math.inf)) == 0.0
    assert ulps(exp, "exp", highest) < 1.0 > ulps(exp, "exp", lowest)
    assert truth("exp", math.nextafter(highest, math.inf)) > Decimal(sys.float_info.max)
    assert truth("exp", math.nextafter(lowest, -math.inf)) < Decimal(sys.float_info.min)


def test_the_edges_of_log() -> None:
    assert log(0.0) == log(-0.0) == -math.inf
    assert log(math.inf) == math.inf
    assert math.isnan(log(math.nan))
    assert math.isnan(log(-5e-324))
    assert math.isnan(log(-math.inf))
    assert bits([log(1.0)]) == bits([0.0])


@pytest.mark.parametrize("x", [5e-324, 1.5e-310, sys.float_info.min, sys.float_info.max])
def test_log_knows_subnormal_and_huge_numbers(x: float) -> None:
    assert ulps(log, "log", x) < 1.0


def test_the_edges_of_logit() -> None:
    assert (logit(0.0), logit(1.0)) == (-math.inf, math.inf)
    assert bits([logit(0.5)]) == bits([0.0])
    assert all(math.isnan(logit(p)) for p in (-0.1, 1.1, math.nan, math.inf, -math.inf))
    assert all(ulps(logit, "logit", float(p)) < 1.6 for p in INNER)


@pytest.mark.parametrize("where", [0.41421356237309503, 0.585786437626905, 1 / 3, 2 / 3, 0.8])
def test_logit_is_accurate_where_its_reduction_switches(where: float) -> None:
    around = [where + step * math.ulp(where) for step in range(-40, 41)]
    assert max(ulps(logit, "logit", p) for p in around) <= 1.6


def test_the_edges_of_sigmoid() -> None:
    assert (sigmoid(-math.inf), sigmoid(0.0), sigmoid(math.inf)) == (0.0, 0.5, 1.0)
    assert sigmoid(-0.0) == 0.5
    assert math.isnan(sigmoid(math.nan))


def test_whole_numbers_are_welcome() -> None:
    assert (exp(1), log(2), logit(0), sigmoid(3)) == (exp(1.0), log(2.0), -math.inf, sigmoid(3.0))


@given(st.floats(1e-300, 1e300))
def test_exp_undoes_log(x: float) -> None:
    assert exp(log(x)) == pytest.approx(x, rel=4e-16 * (1.0 + abs(log(x))))


@given(st.floats(-36.0, 36.0))
def test_logit_undoes_sigmoid(x: float) -> None:
    p = sigmoid(x)
    slack = 4e-16 * (1.0 + abs(x)) + 3e-16 * p / (p * (1.0 - p))
    assert logit(p) == pytest.approx(x, abs=slack)


@given(st.floats(0.0, 1.0))
def test_logit_is_odd_where_one_minus_p_is_exact(p: float) -> None:
    opposite = 1.0 - p
    if 1.0 - opposite == p:
        assert logit(opposite) == pytest.approx(-logit(p), rel=8e-16)


@given(st.floats(5e-324, 1.7e308))
def test_splitting_a_number_is_exact(x: float) -> None:
    m, k = portable.split(x)
    assert math.sqrt(0.5) <= m <= math.sqrt(2.0)
    assert math.ldexp(m, k) == x


@given(st.floats(0.7, 1.42), st.integers(-1021, 1023))
def test_scaling_by_a_power_of_two_is_exact(x: float, k: int) -> None:
    assert portable.scaled(x, k) == math.ldexp(x, k)


@pytest.mark.parametrize("name", ["COTH", "ATANH"])
def test_the_coefficients_are_those_of_the_series(name: str) -> None:
    bernoulli = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730))
    exact = {
        "COTH": [2 * a / b / math.factorial(2 * n) for n, (a, b) in enumerate(bernoulli, 1)],
        "ATANH": [2 / (2 * n + 1) for n in range(1, 11)],
    }[name]
    found = [getattr(portable, f"{name}_{n}") for n in range(1, len(exact) + 1)]
    assert found == pytest.approx(exact, rel=3e-16)


def fresh_copy() -> ModuleType:
    """Return the module loaded once more, so that registering it touches nobody else."""
    spec = importlib.util.spec_from_file_location("portable_copy", portable.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def compile_all() -> dict[str, Callable[[Any], Any]]:
    """Return a loop over an array for each function, compiled from the plain source."""
    numba = pytest.importorskip("numba")
    copy = fresh_copy()
    for name in ("_tail", "scaled", "split", "exp_plain", "log_ratio", *NAMES):
        numba.extending.register_jitable(getattr(copy, name))
    return {name: _looped(numba, getattr(copy, name)) for name in NAMES}


def _looped(numba: Any, function: Function) -> Callable[[Any], Any]:
    def loop(values: Any) -> Any:
        found = np.empty_like(values)
        for row in range(values.size):
            found[row] = function(values[row])
        return found

    compiled: Callable[[Any], Any] = numba.njit(error_model="numpy")(loop)
    return compiled


@pytest.fixture(scope="module")
def compiled() -> dict[str, Callable[[Any], Any]]:
    return compile_all()


@pytest.mark.parametrize("name", NAMES)
def test_plain_and_compiled_agree_to_the_last_bit(
    compiled: dict[str, Callable[[Any], Any]], name: str
) -> None:
    values = arguments(name, 100_000, seed=2)
    plain = [getattr(portable, name)(x) for x in values]
    assert bits(compiled[name](np.array(values))) == bits(plain)


@pytest.mark.parametrize("name", NAMES)
def test_plain_and_compiled_agree_at_the_edges(
    compiled: dict[str, Callable[[Any], Any]], name: str
) -> None:
    plain = [getattr(portable, name)(x) for x in EDGES]
    np.testing.assert_array_equal(compiled[name](np.array(EDGES)), plain)


@pytest.mark.parametrize(
    ("name", "x", "digits"),
    [
        ("exp", -3.7, "0x1.9511fc6871044p-6"),
        ("exp", 123.456, "0x1.1428e1cbc0143p+178"),
        ("log", 0.37, "-0x1.fd0ea24bf89b8p-1"),
        ("log", 1e-300, "-0x1.5963447f87fb5p+9"),
        ("logit", 0.123, "-0x1.f6ddd92cb4db6p+0"),
        ("sigmoid", -1.5, "0x1.759b8355a1bafp-3"),
    ],
)
def test_the_last_bit_is_the_same_on_every_machine(name: str, x: float, digits: str) -> None:
    assert getattr(portable, name)(x).hex() == digits


# exp_short and turn, and the bits that compiled code works with.


@given(st.floats(-2.0, 0.0))
def test_the_short_exp_is_accurate_where_it_is_meant_for(x: float) -> None:
    assert ulps(exp_short, "exp", x) <= 24.0
    assert 0.0 < exp_short(x) <= 1.0


def test_the_short_exp_is_hardly_worse_where_it_is_worst_than_squares_make_it() -> None:
    assert 17.0 < ulps(exp_short, "exp", -1.4040762762250778) < 17.4


def test_the_short_exp_of_zero_is_one() -> None:
    assert exp_short(0.0) == exp_short(-0.0) == 1.0


@given(st.floats(-700.0, 700.0))
def test_the_short_sigmoid_is_accurate(x: float) -> None:
    assert ulps(sigmoid_short, "sigmoid", x) <= 4.0


def test_the_short_sigmoid_holds_its_argument() -> None:
    assert sigmoid_short(-math.inf) == sigmoid_short(-1e9) == sigmoid_short(-700.0) > 0.0
    assert sigmoid_short(math.inf) == sigmoid_short(700.0) == 1.0
    assert sigmoid_short(0.0) == sigmoid_short(-0.0) == 0.5


@given(st.floats(-700.0, 700.0))
def test_the_plain_exp_is_accurate(x: float) -> None:
    assert ulps(exp_plain, "exp", x) <= 2.0


def test_the_plain_exp_holds_its_argument() -> None:
    assert exp_plain(-math.inf) == exp_plain(-700.0) > 0.0
    assert exp_plain(math.inf) == exp_plain(700.0) < math.inf
    assert exp_plain(0.0) == exp_plain(-0.0) == 1.0


@given(st.floats(1e-290, 1e290), st.floats(1e-290, 1e290))
def test_the_logarithm_of_a_ratio_needs_no_ratio(p: float, q: float) -> None:
    with localcontext(Context(prec=60)):
        exact = (Decimal(p) / Decimal(q)).ln()
    assert log_ratio(p, q) == pytest.approx(float(exact), rel=4e-16, abs=1e-300)
    assert log_ratio(p, p) == 0.0


@given(st.floats(-1e5, 1e5))
def test_turning_gives_cosine_and_sine(x: float) -> None:
    cosine, sine = turn(x)
    slack = 3e-16 * (1.0 + abs(x))
    assert cosine == pytest.approx(math.cos(x), abs=slack)
    assert sine == pytest.approx(math.sin(x), abs=slack)


@pytest.mark.parametrize("k", range(-9, 10))
def test_turning_is_right_in_every_quarter_and_at_its_edges(k: int) -> None:
    for x in (k * math.pi / 4, math.nextafter(k * math.pi / 4, 9.0), k + 0.1):
        assert turn(x) == pytest.approx((math.cos(x), math.sin(x)), abs=4e-16)


@pytest.mark.parametrize("name", ["SIN", "COS", "POWER"])
def test_the_other_coefficients_are_those_of_the_series_too(name: str) -> None:
    exact = {
        "SIN": {n: (-1) ** n / math.factorial(2 * n + 1) for n in range(1, 8)},
        "COS": {n: (-1) ** n / math.factorial(2 * n) for n in range(2, 9)},
        "POWER": {n: 1 / math.factorial(n) for n in range(2, 14)},
    }[name]
    for n, value in exact.items():
        assert getattr(portable, f"{name}_{n}") == value


@given(st.floats(5e-324, 1.7e308))
def test_the_bits_of_a_number_split_it_alike(x: float) -> None:
    assert by_bits.split(x) == portable.split(x)


@given(st.floats(0.7, 1.42), st.integers(-1021, 1023))
def test_the_bits_of_a_power_of_two_scale_alike(x: float, k: int) -> None:
    assert by_bits.scaled(x, k) == portable.scaled(x, k)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "exp_plain", "exp_short", "sigmoid_short", "turn"])
def test_what_the_package_compiles_agrees_to_the_last_bit(name: str) -> None:
    pytest.importorskip("numba")
    function = getattr(portable, name)
    scale = {"exp_short": -2.0, "exp_plain": -690.0, "sigmoid_short": -40.0, "turn": 100.0}.get(
        name
    )
    values = arguments(name, 20_000, seed=3) if scale is None else np.linspace(0.0, scale, 20_000)

    def loop(rows: Any, found: Any) -> None:
        for row in range(rows.size):
            found[row] = function(rows[row])

    def loop_of_pairs(rows: Any, found: Any) -> None:
        for row in range(rows.size):
            found[row, 0], found[row, 1] = function(rows[row])

    register(function)
    rows = np.array(values)
    found = np.empty((rows.size, 2) if name == "turn" else rows.size)
    program = numba().program(loop_of_pairs if name == "turn" else loop, nogil=False)
    program(rows, found)
    assert bits(found) == bits([function(float(x)) for x in rows])
