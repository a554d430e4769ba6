"""Every calibrator against its ten-line version, and the kernel functions one by one."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import math
import pathlib
import random
import sys
from bisect import bisect_right
from fractions import Fraction

import naive_calibrators as naive
import numpy as np
import players
import pytest
import registered
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.calibrators import (
    Anchored,
    Blackwell,
    ExponentialRegret,
    FosterHart,
    PolynomialRegret,
)
from calibrant.core.grid import GRIDS
from calibrant.core.mixture import Mixture
from calibrant.core.place import bucket
from calibrant.kernels import ahead, gaps, pairs, portable, rounds, running_mean, scores, two_point
from calibrant.kernels import compile as compile_module
from calibrant.kernels.coin import coin, secret_coin, secret_word, toss
from calibrant.kernels.layout import (
    BLOCKS,
    CLOCK,
    COINS,
    EDGES,
    HEAD,
    KEY,
    POSITION,
    SECRET,
    STRIDE,
    pack,
    unpack,
)
from calibrant.kernels.place import bucket_of
from calibrant.losses import get_loss
from calibrant.recalibrate.secret import OLD, SAFE, secret_of
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

CENTRES = (Fraction(19, 20), Fraction(7, 40))

AS_THEY_COME = {
    name: (calibrators.get(name)(resolution=6), registered.obvious_calibrator(name), {})
    for name in calibrators.names()
    if registered.obvious_calibrator(name)
}
PAIRS = [name for name in AS_THEY_COME if not registered.on_all_cells(name)]
TWO_POINT = {name: AS_THEY_COME[name] for name in PAIRS} | {
    "anchored, loosely": (
        Anchored(resolution=6, strength=0.5, patience=5.0),
        naive.Anchored,
        {"strength": 0.5, "patience": 5.0},
    ),
    "blackwell, sqrt": (Blackwell(resolution=6, step="sqrt"), naive.Blackwell, {"step": "sqrt"}),
    "blackwell, fixed": (
        Blackwell(resolution=6, step="fixed", eta=0.3),
        naive.Blackwell,
        {"step": "fixed", "eta": 0.3},
    ),
}
ALL_PAIRS = {name: AS_THEY_COME[name] for name in AS_THEY_COME if name not in PAIRS} | {
    "exponential_regret, fixed": (
        ExponentialRegret(resolution=6, eta=0.4, updates="realised"),
        naive.ExponentialRegret,
        {"eta": 0.4},
    ),
    "polynomial_regret, expected": (
        PolynomialRegret(resolution=6, updates="expected"),
        naive.PolynomialRegret,
        {},
    ),
}


def on(rule, grid):
    return dataclasses.replace(rule, grid=grid)


def law_of(mixture, cells):
    """The weight of every cell, of a mixture of ours or of the obvious version's."""
    law = np.zeros(cells)
    if isinstance(mixture, dict):
        law[list(mixture)] = [float(weight) for weight in mixture.values()]
    else:
        law[list(mixture.indices)] = mixture.weights
    return law


def outcome_of(law, values, played: int, rng: random.Random) -> int:
    """Mostly what the mean did not expect, now and then anything, for a while always one."""
    if 25 <= played < 40:
        return 1
    if rng.random() < 0.3:
        return rng.randrange(2)
    return int(law @ values < 0.5)


@pytest.mark.parametrize(
    ("nearest", "asked"),
    [
        (False, [10, 11, 13, 17, 25, 41, 33, 37, 35, 36]),
        (True, list(range(10, 37))),
    ],
)
def test_the_search_for_a_pair_doubles_its_steps_and_then_halves_them(nearest, asked) -> None:
    looked = []

    def score(words, reals, at, table, k):
        looked.append(k)
        return 1 if k < 36 else -3

    def weigh(words, reals, at, table, low):
        return 1.0, 3.0

    settle = two_point.make_settle(score, weigh, lambda words, reals, at: 10, nearest)
    assert settle([], [], 0, 100, 0) == (35, 0.75)
    assert looked == asked


@pytest.mark.parametrize("prior", [0, 2])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("variant", TWO_POINT)
def test_a_two_point_rule_plays_as_its_obvious_version_does(variant, grid, prior) -> None:
    rule, slow, options = TWO_POINT[variant]
    rule = on(rule, grid)
    cells, rng = rule.lattice.cells, random.Random(f"{variant} {grid} {prior}")
    for centre in CENTRES:
        state = rule.start(prior=prior, centre=centre)
        obvious = slow(naive.fractions(rule.lattice), prior, centre, **options)
        for played in range(60):
            law = law_of(rule.forecast(state), cells)
            assert law == pytest.approx(law_of(obvious.mixture(), cells), abs=1e-12)
            drawn = rng.choices(range(cells), law)[0]
            y = outcome_of(law, rule.lattice.values, played, rng)
            state = rule.update(state, drawn, y)
            obvious.update(drawn, y)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_anchored_learns_late_outcomes_as_its_obvious_version_does(grid, compiled) -> None:
    rec = Recalibrator("anchored", resolution=6, grid=grid, buckets=1, seed=3)
    rec = rec.compile() if compiled else rec
    obvious = naive.Anchored(naive.fractions(Anchored(resolution=6, grid=grid).lattice))
    rng, waiting, crowd = random.Random(grid), [], naive.Crowd()
    for number in range(80):
        crowd.forecast(len(waiting))
        obvious.anchor = rng.random()
        ticket, wanted = rec.forecast(obvious.anchor), obvious.mixture()
        cells = len(obvious.values)
        assert law_of(ticket.mixture, cells) == pytest.approx(law_of(wanted, cells), abs=1e-12)
        waiting.append((number, ticket, wanted))
        for _ in range(rng.choice([0, 0, 1, 3])):
            if waiting:
                made, found, mixture = waiting.pop(rng.randrange(len(waiting)))
                outcome = int(rng.random() < 0.8 * found.raw)
                rec.observe(found, outcome)
                among = crowd.outcome(number - made)
                obvious.update(found.index, outcome, found.raw, mixture, among)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("step", ["adaptive", "sqrt"])
def test_expected_updates_move_both_cells_by_their_weights(step, grid) -> None:
    rule = Blackwell(resolution=6, grid=grid, step=step, updates="expected")
    rng = random.Random(f"{step} {grid}")
    for prior in (0, 2):
        state = rule.start(prior=prior, centre=CENTRES[1])
        obvious = naive.Blackwell(naive.fractions(rule.lattice), prior, CENTRES[1], step=step)
        for played in range(60):
            mixture = rule.forecast(state)
            law = law_of(mixture, rule.lattice.cells)
            drawn = rng.choice(mixture.indices)
            y = outcome_of(law, rule.lattice.values, played, rng)
            state = rule.update(state, drawn, y)
            obvious.update(drawn, y, dict(zip(mixture.indices, mixture.weights, strict=True)))
            assert cells_of(rule, state)[:, 2].view(float) == pytest.approx(obvious.theta)
            assert cells_of(rule, state)[:, 3].view(float) == pytest.approx(obvious.squares)


def cells_of(rule, state):
    """The words of each cell, one row for each."""
    return players.cells_of(rule, state).copy("F")


@pytest.mark.parametrize("prior", [0, 2])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("variant", ALL_PAIRS)
def test_a_rule_over_all_cells_plays_as_its_obvious_version_does(variant, grid, prior) -> None:
    rule, slow, options = ALL_PAIRS[variant]
    rule = on(rule, grid)
    cells, rng = rule.lattice.cells, random.Random(f"{variant} {grid}")
    state = rule.start(prior=prior, centre=CENTRES[1])
    obvious = slow(naive.fractions(rule.lattice), prior, CENTRES[1], **options)
    for played in range(60):
        law = law_of(rule.forecast(state), cells)
        assert law.sum() == pytest.approx(1.0, abs=1e-14)
        # An obvious version has the law, or rates of flow that the law leaves alone.
        if not hasattr(obvious, "law") or hasattr(obvious, "rates"):
            rates = obvious.rates()
            assert np.abs(law @ rates - law * rates.sum(1)).max() < 1e-12 * max(rates.max(), 1.0)
        if hasattr(obvious, "law"):
            assert law == pytest.approx(obvious.law(), rel=1e-9)
        drawn = rng.choices(range(cells), law)[0]
        y = outcome_of(law, rule.lattice.values, played, rng)
        state = rule.update(state, drawn, y)
        obvious.update(
            law if rule.parameters.get("updates") == "expected" else np.eye(cells)[drawn], y
        )


# The search.


PAIR = (0, 1), (1, -1)


def search(scores: list[int], position: int, coin: float = 0.0):
    """Return the cell that the search draws, its weight, and which cells it looked at."""
    looked = []

    def score(words, reals, at, table, k):
        looked.append(k)
        return scores[k] if 0 <= k < len(scores) else 0

    def weigh(words, reals, at, table, k):
        looked.append(k if k == words[POSITION] - 1 else k + 1)
        return tuple(sign * scores[k + i] if 0 <= k + i < len(scores) else 0 for i, sign in PAIR)

    draw = two_point.make_draw(score, weigh)
    words = [0] * 20
    words[POSITION] = position
    cell, side, weight = draw(words, words, 0, len(scores), 0, coin)
    assert side == (coin >= weight)
    return cell, weight, looked


def admissible(scores: list[int], low: int, weight: float) -> bool:
    if weight < 1.0:
        return scores[low] > 0 > scores[low + 1]
    outwards = (low == 0 and scores[0] < 0) or (low == len(scores) - 1 and scores[-1] > 0)
    return scores[low] == 0 or outwards


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=40), st.data())
def test_whatever_the_scores_the_search_finds_an_admissible_pair(scores, data) -> None:
    position = data.draw(st.integers(0, len(scores) - 1))
    low, weight, _ = search(scores, position)
    assert admissible(scores, low, weight)


@given(st.integers(0, 14), st.integers(0, 2**32), st.sampled_from([0.0, 0.001, 0.5]), st.data())
def test_the_search_looks_at_a_logarithm_of_the_cells(power, seed, zeros, data) -> None:
    cells = 2**power + 1
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(cells) < 0.5, -1, 1) * (rng.random(cells) >= zeros)
    position = data.draw(st.integers(0, cells - 1))
    low, weight, looked = search(scores.tolist(), position)
    assert admissible(scores.tolist(), low, weight)
    assert len(looked) <= 2 * math.ceil(math.log2(cells)) + 6


@given(st.integers(1, 14), st.data())
def test_far_from_the_only_change_of_sign_it_takes_no_more(power, data) -> None:
    cells = 2**power + 1
    change = data.draw(st.integers(1, cells - 1))
    scores = [1] * change + [-1] * (cells - change)
    position = data.draw(st.sampled_from([0, cells - 1, cells // 2]))
    low, weight, looked = search(scores, position)
    assert (low, weight) == (change - 1, 0.5)
    assert len(looked) <= 2 * math.ceil(math.log2(cells)) + 6


@given(st.integers(2, 40), st.data())
def test_next_to_the_change_of_sign_it_looks_at_two_cells(cells, data) -> None:
    change = data.draw(st.integers(1, cells - 1))
    scores = [1] * change + [-1] * (cells - change)
    for position in (change - 1, change):
        assert search(scores, position)[2] in ([change - 1, change], [change, change - 1])


@pytest.mark.parametrize("position", range(4))
def test_a_coin_below_the_weight_falls_on_the_lower_cell_and_at_it_on_the_upper(position) -> None:
    scores, below = [1, 1, -1, -1], math.nextafter(0.5, 0.0)
    assert [search(scores, position, u)[0] for u in (0.0, below, 0.5, 1.0 - 2**-53)] == [1, 1, 2, 2]
    mixture = Mixture((1, 2), (0.5, 0.5), (0.25, 0.5))
    assert [mixture.draw(u) for u in (0.0, below, 0.5, 1.0 - 2**-53)] == [1, 1, 2, 2]


# Weights of numbers that do not fit into the 53 bits of a double.

BIG = st.integers(2**54, 2**58)
COUNT = st.integers(1, 2**20)


@given(BIG, BIG, COUNT, COUNT, st.integers(1, 2**36))
def test_weights_are_quotients_of_doubles_as_compiled_code_has_them(up, down, n, m, width) -> None:
    # Cell 0 points up by `up` and cell 1 down by `down`; their values are `width` apart.
    words = [0] * len(HEAD) + [up, n, -down, m] + [0, width]
    table = len(HEAD) + 4
    both = float(up) * float(m), float(down) * float(n)
    assert exactly(gaps.weigh(words, words, 0, table, 0), both)
    here, above = 2 * up - width * n, 2 * down - width * m
    both = float(here), float(above)
    assert exactly(gaps.weigh_cumulative(words, words, 0, table, 0), both)
    both = float(here) * float(m), float(above) * float(n)
    assert exactly(gaps.weigh_average(words, words, 0, table, 0), both)


def exactly(found: tuple[float, float], wanted: tuple[float, float]) -> bool:
    return all(type(x) is float for x in found) and found == wanted


# Stationary laws.


def law_from(rates: np.ndarray, pressures: np.ndarray) -> np.ndarray:
    cells = len(rates)
    words = [0] * (32 + 2 * cells + cells * cells)
    words[pairs.SCRATCH] = 32
    words[32 + cells : 32 + 2 * cells] = pressures.tolist()
    words[32 + 2 * cells :] = rates.reshape(-1).tolist()
    pairs.spread(words, words, cells, pairs.eliminate(words, words, cells))
    return np.array(words[32 : 32 + cells])


RATES = st.lists(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=5, max_size=5),
    min_size=5,
    max_size=5,
)


@given(RATES, st.integers(2, 5))
def test_elimination_finds_a_law_that_the_flow_leaves_alone(rows, cells) -> None:
    rates = np.array(rows)[:cells, :cells]
    law = law_from(rates, np.zeros(cells))
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert naive.net_flow(law, rates).max() < 1e-9


@given(RATES, st.lists(st.floats(-30, 30), min_size=5, max_size=5))
def test_rows_may_be_written_each_in_its_own_unit(rows, pressures) -> None:
    rates, pressures = np.array(rows) + 1e-6, np.array(pressures)
    law = law_from(rates, pressures)
    assert naive.net_flow(law, rates * np.exp(pressures)[:, None]).max() < 1e-9


def test_a_long_chain_does_not_leave_the_range_of_doubles() -> None:
    cells = 60
    rates = np.zeros((cells, cells))
    for k in range(cells - 1):
        rates[k, k + 1], rates[k + 1, k] = 1.0, 1e-9
    law = law_from(rates, np.zeros(cells))
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert law[-1] == pytest.approx(1.0, abs=1e-8)
    assert law[-2] == pytest.approx(1e-9, rel=1e-6)


def test_regrets_of_any_size_give_a_law() -> None:
    rule = ExponentialRegret(resolution=8, eta=1.0, updates="realised")
    state = rule.start(prior=1 << 20, centre=Fraction(9, 10))
    for k in range(20):
        mixture = rule.forecast(state)
        assert sum(mixture.weights) == pytest.approx(1.0, abs=1e-12)
        assert all(0.0 < w <= 1.0 for w in mixture.weights)
        state = rule.update(state, mixture.indices[k % len(mixture.indices)], k % 2)


def test_the_nearest_cell_never_shares_and_a_pair_is_never_recalled() -> None:
    words = [0] * 20
    assert running_mean.weigh(words, words, 0, 0, 3) == (0.0, 0.0)
    assert two_point.recall(words, words, 0, 0, 0, 7) is True


# Places, buckets and losses.


@given(st.integers(0, 2**20 - 1), st.integers(0, 2**15 - 1), st.integers(0, 1))
def test_a_place_is_one_word_and_comes_apart_again(j, cell, side) -> None:
    assert unpack(pack(j, cell, side)) == (j, cell, side)
    assert pack(j, cell, side) < 2**40


def table_of(buckets: int) -> list[float]:
    return [j / buckets for j in range(buckets)] + [2.0]


@pytest.mark.parametrize("start", range(1, 400, 57))
def test_every_edge_is_in_its_own_bucket_whatever_the_number(start) -> None:
    for buckets in range(start, min(start + 57, 400)):
        edges = table_of(buckets)
        found = [bucket_of(edges, 0, buckets, j / buckets) for j in range(buckets)]
        assert found == list(range(buckets))
        assert bucket_of(edges, 0, buckets, 1.0) == buckets - 1
        assert bucket_of(edges, 0, buckets, -0.0) == 0


@given(st.floats(0, 1), st.integers(1, 500))
def test_the_table_of_edges_and_the_formula_agree(raw, buckets) -> None:
    for value in (raw, math.nextafter(raw, 2.0), math.nextafter(raw, -1.0)):
        if 0.0 <= value <= 1.0:
            assert bucket_of(table_of(buckets), 0, buckets, value) == bucket(value, buckets)


@pytest.mark.parametrize("name", ["squared", "log", "misclassification", "spherical"])
@given(raw=st.floats(0, 1), outcome=st.integers(0, 1))
def test_a_charge_is_the_loss(name, raw, outcome) -> None:
    code = getattr(scores, name.upper())
    assert scores.charge(code, raw, outcome) == pytest.approx(
        get_loss(name)(outcome, raw), rel=1e-12, abs=1e-15
    )


# What is handed to the compiler.


class Compiler:
    """Stands in for Numba and notes what it is given."""

    def __init__(self) -> None:
        self.programs, self.known, self.forced = {}, {}, set()

    def program(self, function, nogil):
        self.programs[function.__name__] = nogil
        return function

    def inner(self, function, force):
        assert force
        return function

    def make_known(self, function, instead, force):
        assert function not in self.known
        self.known[function] = instead
        if force:
            self.forced.add(function)


class FunctionCache:
    """Stands for Numba's; ``broken`` names what fails."""

    broken: str | None = None

    def __init__(self, function) -> None:
        self.fail("init")
        self.flushed = 0

    def fail(self, name: str) -> None:
        if self.broken == name:
            raise OSError(28, "No space left on device")

    def flush(self) -> None:
        self.flushed += 1

    _guard_against_spurious_io_errors = contextlib.nullcontext

    def _load_overload(self, sig, target_context):
        self.fail("load")
        return None if self.broken == "empty" else "code"

    def save_overload(self, sig, data) -> None:
        self.fail("save")


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    made.FunctionCache = FunctionCache
    for name in ("numba", "numba.core", "numba.core.caching", "calibrant.kernels.inner"):
        monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.mark.parametrize("broken", [None, "init", "load", "save"])
def test_a_cache_that_fails_costs_one_warning(numba, compiler, monkeypatch, broken) -> None:
    monkeypatch.setattr(FunctionCache, "broken", broken)

    def kernel() -> None:
        pass

    def work() -> None:
        made = compiler.compiled(kernel, "it")
        if broken != "init":
            found = "code" if broken != "load" else None
            for times in (1, 2):
                assert made._cache.load_overload((), None) == found
                made._cache.save_overload((), None)
                assert made._cache.flushed == (times if broken == "load" else 0)

    if broken is None:
        work()
        return
    with pytest.warns(RuntimeWarning, match="its cache cannot be used") as told:
        work()
    assert len(told) == 1


@pytest.mark.parametrize(("broken", "told"), [(None, 0), ("empty", 1), ("load", 1)])
@pytest.mark.filterwarnings("ignore:machine code is compiled anew")
def test_who_wants_to_hear_is_told_once_that_the_compiler_begins(
    numba, compiler, monkeypatch, broken, told
) -> None:
    monkeypatch.setattr(FunctionCache, "broken", broken)
    heard: list[bool] = []
    compiler.tellers.append(lambda: heard.append(True))
    made = compiler.compiled(lambda: None, "it")
    for _ in range(2):
        made._cache.load_overload((), None)
    assert len(heard) == told


class Made:
    """Stands for a compiled function with machine code in the process or on disk."""

    def __init__(self, here=(), disk=(), broken=False) -> None:
        self.overloads, self.disk, self.broken = here, disk, broken
        self.targetctx = self._cache = self._cache_file = self

    def codegen(self):
        return self

    def magic_tuple(self):
        return "this machine"

    def _load_index(self):
        if self.broken:
            raise OSError(13, "Permission denied")
        return dict.fromkeys(self.disk)


def test_machine_code_is_made_if_it_is_in_the_process_or_on_disk_for_this_machine() -> None:
    key = ("types", "this machine", "code")
    here, disk = Made(here=("code",)), Made(disk=(key,))
    assert compile_module.are_made(here, disk)
    for other in (Made(), Made(disk=(("types", "another machine", "code"),)), Made(broken=True)):
        assert not compile_module.are_made(here, other)


@pytest.fixture
def compiler():
    """A copy of the module that has not seen any function yet."""
    spec = importlib.util.spec_from_file_location("fresh_compile", compile_module.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_compiler_is_given_the_very_functions_that_run_without_it(numba, compiler) -> None:
    replay = rounds.assemble(FosterHart.kernels).replay
    name = replay.__qualname__
    try:
        made = compiler.compiled(replay, "foster_hart", nogil=True)
        assert replay.__qualname__ == f"replay_foster_hart_{compiler.digest()}"
    finally:
        replay.__qualname__ = name
    assert made is replay
    assert numba.programs == {"replay": True}
    for function in (gaps.score, gaps.weigh, gaps.update, two_point.mean, scores.charge):
        assert numba.known[function] is function
    assert {gaps.update, bucket_of} <= numba.forced
    assert scores.charge_other not in numba.forced


def test_compiled_steps_compute_the_bucket_that_plain_ones_search_for(numba, compiler) -> None:
    assert compiler.register(bisect_right) is bisect_right
    implementation = numba.known[bisect_right]
    edges = [0.0, 0.25, 0.5, 0.75, 2.0]
    for raw in (0.0, 0.2, 0.25, 0.6, 1.0):
        assert implementation(edges, raw, 0, 4) == bisect_right(edges, raw, 0, 4)


shifting = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 shifts no unsigned word by a plain number; compiled code does",
)


@shifting
def test_compiled_coins_are_thrown_with_unsigned_words(numba, compiler) -> None:
    assert compiler.register(coin) is coin
    implementation = numba.known[coin]
    words = np.array([3, 5])
    with np.errstate(over="ignore"):
        assert implementation(words[0], words[1]) == coin(3, 5)
    assert compiler.register(coin) is coin


@shifting
def test_compiled_secrets_are_unsigned_words_too(numba, compiler) -> None:
    assert compiler.register(secret_word) is secret_word
    assert compiler.register(toss) is toss
    by_secret, by_row = numba.known[secret_word], numba.known[toss]
    words = np.array([-3, 5, 7, 2**40])
    with np.errstate(over="ignore"):
        assert by_secret(*words) == secret_word(*words.tolist())
        for coins in (0, 1):
            rec = Recalibrator(seed=1, buckets=3)
            flat, row = rec._rows.arena.flat().copy(), rec._row
            flat[COINS] = coins
            at = row + int(flat[BLOCKS]) + 2 * int(flat[STRIDE])
            told = flat.tolist()
            expected = (
                secret_coin(told[row + SECRET], told[row + SECRET + 1], 2, 9)
                if coins
                else coin(told[at + KEY], 9)
            )
            assert by_row(flat, row, at, 2, 9) == expected


@pytest.mark.parametrize("rounds", [1, 255, 256, 700])
@pytest.mark.parametrize("how", [0, 1])
@pytest.mark.parametrize("buckets", [1, 7])
def test_coins_made_ahead_for_a_batch_are_those_thrown_in_turn(
    rounds: int, how: int, buckets: int
) -> None:
    spec = dataclasses.replace(Recalibrator(buckets=buckets).spec, coins=SAFE if how else OLD)
    raw = np.random.default_rng(1).random(rounds)
    first = spec.arena(secret_of(4, None)).flat()
    assert first[COINS] == how
    words, reals, row = first.tolist(), first.view(np.float64).tolist(), spec.layout.row
    second = words.copy()
    alone = np.empty(rounds)
    coins, blocks = ahead.columns_ahead(np.empty(rounds), np.empty(rounds))
    assert ahead.columns(1, 2) == (1, 2)
    at = row + second[BLOCKS]
    where = at, second[STRIDE], second[EDGES], buckets
    ahead.begin(words, reals, where, raw, coins, blocks)
    ahead.begin_ahead(second, reals, where, raw, coins, blocks)
    for t in range(rounds):
        if t % ahead.STRETCH == 0:
            ahead.prepare(words, row, where, t, coins, blocks)
            ahead.prepare_ahead(second, row, where, t, coins, blocks)
        made = ahead.turn_ahead(second, reals, row, where, raw, t, coins, blocks)
        assert made == ahead.turn(words, reals, row, where, raw, t, coins, blocks)
    assert words == second
    for t in range(rounds if buckets == 1 else 0):
        if t % ahead.STRETCH == 0:
            ahead.prepare_alone(words, row, at, t, alone)
            ahead.prepare_alone_ahead(second, row, at, t, alone)
        turned = ahead.turn_alone_ahead(second, row, at, t, alone)
        assert turned == ahead.turn_alone(words, row, at, t, alone)
        second[at + CLOCK] += 1
        words[at + CLOCK] += 1


@pytest.mark.parametrize(("name", "given"), [("split", (3.0,)), ("scaled", (0.75, 2))])
def test_compiled_code_takes_doubles_apart_by_their_bits(name, given, numba, compiler) -> None:
    function = getattr(portable, name)
    assert compiler.register(function) is function
    implementation = numba.known[function]
    assert implementation(*given) == function(*given)


def test_compiled_loops_are_made_of_whole_lanes(numba, compiler) -> None:
    assert compiler.register(portable.lanes) is portable.lanes
    implementation = numba.known[portable.lanes]
    assert [implementation(count) for count in (1, 4, 5)] == [4, 4, 8]
    assert [portable.lanes(count) for count in (1, 4, 5)] == [1, 4, 5]


def test_the_cache_is_keyed_by_the_sources_of_all_kernels(compiler, monkeypatch, tmp_path) -> None:
    before = compiler.digest()
    here = pathlib.Path(compiler.__file__).parent
    for source in here.rglob("*.py"):
        (tmp_path / source.relative_to(here)).parent.mkdir(exist_ok=True)
        (tmp_path / source.relative_to(here)).write_bytes(source.read_bytes())
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "compile.py"))
    compiler.digest.cache_clear()
    assert compiler.digest() == before
    with open(tmp_path / "gaps.py", "a") as changed:
        changed.write("# changed\n")
    compiler.digest.cache_clear()
    assert compiler.digest() != before


@pytest.mark.parametrize(
    ("asked", "found", "expected"),
    [("auto", True, True), ("auto", False, False), ("off", True, False), (None, True, True)],
)
def test_the_compiler_can_be_absent_or_switched_off(
    compiler, monkeypatch, asked, found, expected
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if found else None)
    if asked is None:
        monkeypatch.delenv("CALIBRANT_COMPILE", raising=False)
    else:
        monkeypatch.setenv("CALIBRANT_COMPILE", asked)
    assert compiler.available() is expected


def test_a_program_has_a_machine_only_where_there_is_a_compiler(monkeypatch) -> None:
    monkeypatch.setattr(rounds, "compiled", lambda function, name, nogil=False: (function, name))
    monkeypatch.setattr(rounds, "available", lambda: False)
    assert dataclasses.replace(rounds.assemble(FosterHart.kernels)).machine is None
    monkeypatch.setattr(rounds, "available", lambda: True)
    program = dataclasses.replace(rounds.assemble(FosterHart.kernels))
    for name in players.COMPILED:
        assert getattr(program.machine, name) == (getattr(program, name), "foster_hart")
    assert program.machine.rule is program.rule
    assert program.machine.learn is program.learn


def test_a_program_is_assembled_once_however_it_is_asked_for() -> None:
    asked = [
        rounds.assemble(FosterHart.kernels),
        rounds.assemble(FosterHart.kernels, None, False),
        rounds.assemble(FosterHart.kernels, safe=False),
        FosterHart(resolution=3).program,
        Recalibrator(seed=1).spec.program,
    ]
    assert all(program is asked[0] for program in asked)
