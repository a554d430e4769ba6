"""Previews: what the next round would announce, seen without a trace."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import Asked

from calibrant import Calibrant, Recalibrator, Ticket
from calibrant.errors import InvalidInput, StaleForecast
from calibrant.kernels import coin
from calibrant.recalibrate.preview import Preview
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

KINDS = {
    name: partial(Recalibrator, name, resolution=5, buckets=3, seed=3)
    for name in calibrators.names()
}
KINDS["calibrant"] = partial(Calibrant, seed=3)
KINDS["calibrant with a budget"] = partial(Calibrant, raw_safe=0.01, seed=3)
KINDS["calibrant in buckets"] = partial(Calibrant, method="foster_hart", buckets=4, seed=3)
RAW = st.one_of(st.sampled_from([0.0, 1.0, 1 / 3, 0.5]), st.floats(0.0, 1.0))
ROUNDS = st.lists(st.tuples(RAW, st.integers(0, 1)), max_size=25)


def clipped(mean: float) -> float:
    return min(max(mean, 0.0), 1.0)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(rounds=ROUNDS, raw=RAW)
def test_a_preview_shows_what_the_next_round_announces(kind, rounds, raw) -> None:
    rec = KINDS[kind]()
    for each, outcome in rounds:
        rec.learn_one(each, outcome)
    seen, whole = Preview(rec).one(raw), Preview(rec).whole(raw)
    ticket = rec.forecast(raw)
    assert seen == (ticket.value, clipped(ticket.mean))
    assert whole == (*seen, ticket.mixture, ticket.fallback)


@pytest.mark.parametrize("kind", KINDS)
def test_previews_leave_no_trace(kind) -> None:
    rec, other = KINDS[kind](), KINDS[kind]()
    look = Preview(rec)
    for raw, outcome in zip(*players.stream(40, 5, edges=3), strict=True):
        before = rec.to_bytes()
        assert look.one(raw) == look.one(raw)
        look.one(1.0 - raw)
        look.whole(raw)
        look.many([raw, 0.2, 0.9])
        assert rec.to_bytes() == before
        rec.learn_one(raw, outcome)
        other.learn_one(raw, outcome)
    assert rec == other


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_each_the_next_round_with_a_coin_of_its_own(kind) -> None:
    rec = KINDS[kind]()
    rec.replay(*players.stream(60, 6))
    look = Preview(rec)
    raws = [0.4, 0.4, 0.4, 0.9]
    draws, means = look.many(raws)
    assert (draws[0], means[0]) == look.one(0.4)
    assert means.tolist() == [look.one(raw)[1] for raw in raws]


def test_a_preview_shows_the_raw_forecast_where_the_budget_does_not_suffice() -> None:
    rec = Calibrant(raw_safe=0.0, seed=1)
    assert Preview(rec).one(0.123) == (0.123, 0.123)
    assert rec.forecast(0.123).fallback


def test_the_coins_of_many_rows_follow_the_mixture() -> None:
    rec = Recalibrator(resolution=4, buckets=1, seed=1)
    rec.replay([0.5] * 10, [1, 0] * 5)
    rec.replay([0.5], [1])
    draws, means = Preview(rec).many([0.5] * 4000)
    assert abs(draws.mean() - means[0]) < 4 * 0.125 / np.sqrt(4000) + 1e-12
    assert len(set(draws.tolist())) <= 2


def test_previews_take_no_rows_and_read_only_ones() -> None:
    look = Preview(Recalibrator(seed=1))
    assert [made.tolist() for made in look.many([])] == [[], []]
    fixed = np.array([0.3, 0.7])
    fixed.flags.writeable = False
    assert look.many(fixed)[1].tolist() == [look.one(0.3)[1], look.one(0.7)[1]]


@pytest.mark.parametrize("raw", [-0.1, 1.1, float("nan")])
def test_previews_refuse_what_is_no_probability(raw) -> None:
    rec = Recalibrator(seed=1)
    with pytest.raises(InvalidInput, match=r"raw forecast must be a number in \[0, 1\]"):
        Preview(rec).one(raw)
    with pytest.raises(InvalidInput, match=r"raw forecasts\[0\] must be a number in \[0, 1\]"):
        Preview(rec).many([raw])
    assert Preview(rec).one(True)[0] == Preview(rec).one(1.0)[0]


def test_a_preview_waits_for_its_turn() -> None:
    rec = Recalibrator(seed=1)
    rec._gate = gate = Asked()
    assert Preview(rec).one(0.83) == Preview(Recalibrator(seed=1)).one(0.83)
    assert (gate.asked, gate.is_free) == (2, True)


@pytest.mark.parametrize("kind", ["foster_hart", "calibrant", "calibrant with a budget"])
def test_compiled_previews_equal_plain_ones(kind) -> None:
    plain, fast = KINDS[kind](), KINDS[kind]()
    with players.machine(fast.spec.program):
        fast.compile()
        slow, quick = Preview(plain), Preview(fast)
        for raw, outcome in zip(*players.stream(30, 8, edges=3), strict=True):
            assert slow.one(raw) == quick.one(raw)
            assert slow.whole(raw) == quick.whole(raw)
            for one, other in zip(slow.many([raw, 0.25]), quick.many([raw, 0.25]), strict=True):
                assert one.tolist() == other.tolist()
            plain.learn_one(raw, outcome)
            fast.learn_one(raw, outcome)
    assert plain == fast


# A mean that is looked at, and the round that follows.


def between(rec: Recalibrator, call: str, open_ticket: Ticket, known: Ticket) -> None:
    """Do something between a look and the round that follows."""
    calls = {
        "nothing": lambda: None,
        "forecast": lambda: rec.forecast(0.4),
        "forecast elsewhere": lambda: rec.forecast(0.9),
        "round": lambda: rec.observe(rec.forecast(0.4), 1),
        "round elsewhere": lambda: rec.learn_one(0.9, 0),
        "late outcome": lambda: rec.observe(open_ticket, 1),
        "correction": lambda: rec.correct(known, 0),
        "expiry": lambda: rec.expire(open_ticket),
        "batch": lambda: rec.replay([0.4, 0.9], [1, 0]),
        "log": lambda: rec.play([0, 1], ["a", "a"], [0.4, 1.0]),
        "draw": lambda: rec.sample_one(0.9),
        "same draw": lambda: rec.sample_one(0.4),
        "other mean": lambda: rec.predict_mean_one(0.9),
        "preview": lambda: Preview(rec).many([0.4, 0.9]),
        "machine code": rec.compile,
        "bytes": rec.to_bytes,
    }
    if call == "refused round":
        rec.sample_one(0.9)
        rec.forecast(0.9)
        with pytest.raises(StaleForecast):
            rec.learn_one(0.9, 1)
    else:
        calls[call]()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        *("nothing", "forecast", "forecast elsewhere", "round", "round elsewhere", "late outcome"),
        *("correction", "expiry", "batch", "log", "draw", "same draw", "other mean", "preview"),
        *("machine code", "bytes", "refused round"),
    ],
)
@pytest.mark.parametrize("kind", ["foster_hart", *list(KINDS)[-3:], "exponential_regret"])
def test_a_mean_that_was_looked_at_makes_no_difference_to_the_round(kind, call, compiled) -> None:
    looked, other = KINDS[kind](), KINDS[kind]()
    with players.machine(looked.spec.program):
        for rec in (looked, other):
            if compiled:
                rec.compile()
            for raw, outcome in zip(*players.stream(30, 5, edges=3), strict=True):
                rec.learn_one(raw, outcome)
            open_ticket, known = rec.forecast(0.4), rec.observe(rec.forecast(0.4), 1)
            if rec is looked:
                rec.predict_mean_one(0.4)
            between(rec, call, open_ticket, known)
            for _ in range(2):
                rec.learn_one(0.4, 1)
        assert looked.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["foster_hart", "calibrant"])
def test_a_round_after_its_mean_looks_for_nothing_again(kind, compiled) -> None:
    rec = KINDS[kind]()
    with players.machine(rec.spec.program):
        if compiled:
            rec.compile()
    rows, asked = rec._rows, []

    def counted(step):
        return lambda *told: asked.append(told[-1]) or step(*told)

    if rows.steps is None:
        rows.plain_peek = counted(rows.plain_peek)
    else:
        rows.steps = replace(rows.steps, peek_flat=counted(rows.steps.peek_flat))
    for raw, outcome in zip(*players.stream(20, 5, edges=3), strict=True):
        rec.predict_mean_one(raw)
        rec.learn_one(raw, outcome)
    assert len(asked) == rec.rounds == 20


def test_a_draw_from_before_machine_code_took_over_is_not_taken_for_the_last_one() -> None:
    rec, other = Recalibrator(seed=1), Recalibrator(seed=1)
    with players.machine(rec.spec.program):
        for raw in (0.3, 0.3):
            assert rec.sample_one(raw) == other.sample_one(raw)
            rec.learn_one(raw, 1)
            other.learn_one(raw, 1)
            rec.compile()
        assert rec.to_bytes() == other.to_bytes()


def test_a_budget_that_is_given_back_after_a_mean_was_looked_at_counts_in_its_round() -> None:
    looked, other = (Calibrant(raw_safe=0.01, seed=3) for _ in range(2))
    for rec in (looked, other):
        for raw, outcome in zip(*players.stream(18, 5, edges=3), strict=True):
            rec.learn_one(raw, outcome)
        ticket = rec.forecast(0.4)
        fallback = Preview(rec).whole(0.4).fallback
        if rec is looked:
            assert rec.predict_mean_one(0.4) == 0.4
        rec.expire(ticket)
        if rec is other:
            assert (fallback, Preview(rec).whole(0.4).fallback) == (True, False)
        rec.learn_one(0.4, 1)
    assert looked.to_bytes() == other.to_bytes()


@pytest.mark.plain
def test_many_rows_that_are_looked_at_do_not_throw_the_same_coins_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rec, made = Recalibrator(buckets=1, seed=3), []
    rec.replay(*players.stream(1_000, 6))
    coins = coin.coins
    monkeypatch.setattr(coin, "coins", lambda *told: made.append(told) or coins(*told))
    Preview(rec).many(np.full(2 * (coin.CHUNK + 1), 0.4))
    rec.replay(*players.stream(500, 7))
    assert len(made) <= 3
