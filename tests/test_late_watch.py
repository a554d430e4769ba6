"""Alarms where outcomes come late: judged in the order in which forecasts were made."""

from __future__ import annotations

import itertools
import math
from collections.abc import KeysView
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.loading import load
from calibrant.monitor import LateAlarm, LateWatch, Monitor, Watch
from calibrant.monitor import late as module

pytestmark = [pytest.mark.base, pytest.mark.plain]


def stream(rounds: int, seed: int = 1, chance: float = 0.5) -> list[tuple[float, int]]:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.05, 0.95, rounds).tolist()
    return [(value, int(rng.random() < chance)) for value in values]


def in_order(rounds: Any, **options: Any) -> Monitor:
    monitor = Monitor(**options)
    for value, outcome in rounds:
        monitor.update(value, outcome)
    return monitor


delays = st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 1), st.integers(0, 9)), max_size=40)


@settings(max_examples=60)
@given(delays, st.integers(1, 12), st.sampled_from([1, 3]), st.data())
def test_outcomes_in_any_order_are_judged_as_if_they_had_come_in_order(
    rounds: list[tuple[float, int, int]], horizon: int, lag: int, data: Any
) -> None:
    """An outcome comes after its delay in forecasts; with a delay of the horizon it is missing."""
    made, due = LateWatch(Monitor(lag=lag), horizon=horizon), dict[int, list[int]]()
    for number, (value, _, delay) in enumerate(rounds):
        for place in reversed(due.pop(number, [])):
            assert made.observe(place, rounds[place][1])
        assert made.forecast(value) == number
        if delay < horizon:
            due.setdefault(number + 1 + delay, []).append(number)
        if data.draw(st.booleans()):
            made = LateWatch.from_bytes(made.to_bytes())
    for place in itertools.chain(*due.values()):
        made.observe(place, rounds[place][1])
    known = [(value, outcome) for value, outcome, delay in rounds if delay < horizon]
    if made.waiting == 0:
        assert made.watch == in_order(known, lag=lag)
    assert made.judged + made.missing + made.waiting == made.issued == len(rounds)


def test_an_outcome_counts_until_the_forecast_a_horizon_later() -> None:
    made = LateWatch(Monitor(), horizon=3)
    for value in (0.1, 0.2, 0.3):
        made.forecast(value)
    assert made.observe(1, 1)
    assert (made.judged, made.waiting) == (0, 3)
    made.forecast(0.4)
    assert (made.judged, made.missing, made.waiting) == (1, 1, 2)
    assert not made.observe(0, 1)
    assert made.watch == in_order([(0.2, 1)])


def test_a_forecast_that_is_forgotten_is_missing_at_its_turn() -> None:
    made = LateWatch(Monitor(), horizon=9)
    for value in (0.1, 0.2, 0.3):
        made.forecast(value)
    assert made.forget(1)
    assert made.observe(2, 0)
    assert (made.judged, made.missing) == (0, 0)
    assert made.observe(0, 1)
    assert (made.judged, made.missing, made.waiting) == (2, 1, 0)
    assert not made.forget(0)


def test_an_outcome_that_waits_can_be_replaced() -> None:
    made = LateWatch(Monitor())
    for value in (0.1, 0.2):
        made.forecast(value)
    made.observe(1, 1)
    made.observe(1, 0)
    made.observe(0, 0)
    assert made.watch == in_order([(0.1, 0), (0.2, 0)])


def test_an_alarm_tells_forecasts_and_times() -> None:
    late = LateWatch(Watch(), horizon=50)
    rng, outcomes = np.random.default_rng(4), []
    for k in range(900):
        raw = float(rng.uniform(0.05, 0.95))
        outcomes.append(int(rng.random() < (raw if k < 300 else 1.0 - raw)))
        late.forecast(raw, raw, time=10.0 * k)
        if k >= 20 and k % 5:
            late.observe(k - 20, outcomes[k - 20])
    found = {alarm.name: alarm for alarm in late.alarms}
    assert set(found) == {"raw", "calibrated"}
    alarm = found["raw"]
    assert 300 < alarm.number < 400
    assert alarm.time == 10.0 * alarm.number
    assert alarm.number + 20 <= alarm.issued <= alarm.number + 50
    assert abs(alarm.since - 300) < 25
    assert alarm.since_time == 10.0 * alarm.since
    assert (alarm.number + 20) % 5
    late.restart()
    assert late.alarms == ()
    assert not late.alarm


def test_moments_are_thinned_and_never_after_what_they_stand_for() -> None:
    made = LateWatch(Monitor())
    for k in range(3000):
        made.observe(made.forecast(0.5), k % 2)
    assert len(made._moments) < module.MARKS
    for judged in (0, 1, 700, 2999):
        found = made._moment(judged)
        assert judged - made._stride < found.judged <= judged
        assert found.number == found.judged


# ----------------------------------------------------------------------------- the promise


def mean_evidence(missing: Any, **options: Any) -> float:
    """Return the mean evidence over all outcomes of right forecasts, some of which are missing."""
    forecasts, total = (0.3, 0.6, 0.6, 0.2, 0.7, 0.4), 0.0
    for outcomes in itertools.product((0, 1), repeat=len(forecasts)):
        made = LateWatch(Monitor(**options), horizon=3)
        for number, (value, outcome) in enumerate(zip(forecasts, outcomes, strict=True)):
            made.forecast(value)
            (made.forget(number) if missing(number, outcome) else made.observe(number, outcome))
        weight = math.prod(p if y else 1 - p for p, y in zip(forecasts, outcomes, strict=True))
        total += weight * made.watch.evidence.now
    return total


def test_outcomes_missing_whatever_they_are_leave_the_mean_evidence_at_one() -> None:
    assert mean_evidence(lambda number, outcome: number % 3 == 1) == pytest.approx(1.0, abs=1e-9)


def test_outcomes_missing_because_of_what_they_are_break_the_promise_as_is_told() -> None:
    assert mean_evidence(lambda number, outcome: outcome == 0) > 1.05
    assert LateWatch(horizon=7).assumptions[0] == (
        "whether an outcome is known before the forecast 7 later is made does not depend on the "
        "outcome"
    )


def test_with_a_lag_of_the_horizon_outcomes_may_depend_on_one_another() -> None:
    assert LateWatch(Monitor(lag=7), horizon=7).assumptions == LateWatch(horizon=7).assumptions[:1]
    assert LateWatch(Monitor(lag=6), horizon=7).assumptions[1] == (
        "outcomes that are outstanding together do not depend on one another, given the forecasts"
    )


@pytest.mark.parametrize("lag", [1, 3])
def test_the_alarm_is_noted_in_the_round_in_which_the_monitor_rang(lag: int) -> None:
    late, monitor = LateWatch(Monitor(lag=lag), horizon=3), Monitor(lag=lag)
    for value, outcome in stream(600, chance=0.9):
        late.observe(late.forecast(value), outcome)
        monitor.update(value, outcome)
    assert late.alarms[0].number == (monitor.alarm_after or 0) - 1
    assert late.alarms[0].time is None
    assert late.alarm


@pytest.mark.parametrize("make", [Monitor, pytest.param(Watch, marks=pytest.mark.slow)])
def test_machine_code_judges_alike_where_there_is_a_compiler_and_where_not(make: Any) -> None:
    plain, fast = LateWatch(make()), LateWatch(make()).compile()
    for value, outcome in stream(700, chance=0.7):
        for made in (plain, fast):
            values = (value,) * len(made.names)
            made.observe(made.forecast(*values), outcome)
    assert plain == fast
    assert plain.alarms == fast.alarms != ()


# -------------------------------------------------------------------------- refusals, state


def test_only_new_monitors_and_watches_are_taken() -> None:
    with pytest.raises(InvalidType, match="watch must be a Monitor or a Watch, got 3"):
        LateWatch(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="watch must be new, got one after 1 rounds"):
        LateWatch(in_order([(0.5, 1)]))
    with pytest.raises(InvalidInput, match="horizon must be"):
        LateWatch(horizon=0)


def test_forecasts_and_numbers_are_checked() -> None:
    made = LateWatch(horizon=4)
    with pytest.raises(InvalidInput) as refused:
        made.forecast(0.5)
    assert str(refused.value) == "values must be 2 numbers (raw, calibrated), got 1"
    with pytest.raises(InvalidInput, match="calibrated must be a number in"):
        made.forecast(0.5, 1.5)
    with pytest.raises(InvalidInput, match="number must be of a forecast that was made, got 0"):
        made.observe(0, 1)
    assert made == LateWatch(horizon=4)
    assert repr(made) == "LateWatch(horizon=4, issued=0, waiting=0, missing=0, no alarm)"
    assert made.horizon == 4


def used() -> LateWatch:
    made = LateWatch(Monitor(), horizon=9)
    for value, outcome in stream(40, chance=0.9):
        made.observe(made.forecast(value, time=3.0), outcome)
    for value in (0.1, 0.2, 0.3):
        made.forecast(value)
    made.observe(42, 1)
    made.forget(41)
    return made


def test_a_state_comes_back_whole() -> None:
    made = used()
    assert made.alarm
    for again in (load(made.to_bytes()), LateWatch.from_dict(made.to_dict()), made.copy()):
        assert again == made
        assert again.alarms == made.alarms
        again.observe(40, 0)
        assert (again.missing, again.judged, again.waiting) == (1, 42, 0)
    assert isinstance(made.alarms[0], LateAlarm)
    two = LateWatch(Watch(), horizon=2)
    assert load(two.to_bytes()).names == ("raw", "calibrated")


def altered(place: int, value: float) -> dict[str, Any]:
    words = used()._document().arrays["open"].copy()
    words.view(np.float64)[place] = value
    return {"open": words}


@pytest.mark.parametrize(
    "change",
    [
        altered(0, 41.0),
        altered(0, 39.0),
        altered(8, 55.0),
        altered(1, 1.5),
        altered(3, 2.0),
        {"open": np.zeros(0, np.int64)},
        {"moments": np.zeros(0, np.int64)},
        {"moments": np.zeros(5, np.int64)},
    ],
)
def test_a_state_that_no_stream_leaves_is_refused(change: dict[str, Any]) -> None:
    stored = used()._document()
    crafted = Document(stored.kind, stored.settings, stored.arrays | change)
    with pytest.raises(CorruptState):
        LateWatch.from_bytes(crafted.to_bytes())


@pytest.mark.parametrize("make", [Monitor, Watch])
def test_a_log_is_noted_as_its_events_one_by_one(make: Any) -> None:
    rng = np.random.default_rng(8)
    one, many = LateWatch(make(), horizon=4), LateWatch(make(), horizon=4)
    values, told, of = list[tuple[float, ...]](), list[float | None](), list[int]()
    for _ in range(300):
        if rng.random() < 0.5:
            values.append(tuple(rng.random(len(one.names)).tolist()))
            told.append(None if rng.random() < 0.5 else float(len(told)))
            of.append(-1)
            one.forecast(*values[-1], time=told[-1])
        else:
            number = max(0, one.issued - 1 - int(rng.integers(0, 6)))
            values.append(())
            told.append(int(rng.integers(0, 2)))
            of.append(number)
            one.observe(number, int(told[-1] or 0))
    many.play(values, told, of)
    assert 0 < many.missing < many.issued
    assert many.judged > 50
    assert many.to_bytes() == one.to_bytes()


def test_a_log_with_a_value_that_is_no_chance_is_refused_and_changes_nothing() -> None:
    made = used()
    before = made.to_bytes()
    with pytest.raises(InvalidInput, match=r"^values\[1\] must be in \[0, 1\], got 1\.5"):
        made.play([(0.5,), (1.5,)], [None, None], [-1, -1])
    assert made.to_bytes() == before


class Stop(BaseException):
    """What interrupts."""


def stopping(call: Any, at: int, *, after: bool) -> Any:
    """Return a call that stops the program at its nth turn, before or after it is done."""
    turns = itertools.count(1)

    def stopped(*told: Any, **more: Any) -> Any:
        turn = next(turns)
        if turn == at and not after:
            raise Stop
        done = call(*told, **more)
        if turn == at:
            raise Stop
        return done

    return stopped


def logged(rounds: int = 8) -> tuple[Any, ...]:
    """Return a log in which every outcome comes three forecasts late, of which one never does."""
    values, told, of = list[tuple[float, ...]](), list[float | None](), list[int]()
    for number in range(rounds):
        values.append((0.1 * number,))
        told.append(float(number))
        of.append(-1)
        if number > 2 and number != 5:
            values.append(())
            told.append(number % 2)
            of.append(number - 3)
    return values, told, of


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_log_that_is_interrupted_changes_nothing(
    at: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, whole = (LateWatch(Monitor(buckets=2), horizon=4) for _ in range(2))
    for each in (made, whole):
        each.forecast(0.4, time=-2.0)
        each.forecast(0.5, time=-1.0)
        each.observe(1, 1)
    values, told, of = logged()
    of = [number + 2 if number >= 0 else number for number in of]
    before = made.to_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(module, "TOGETHER", 1)
        patch.setattr(Monitor, "update_many", stopping(Monitor.update_many, at, after=after))
        # Once more, for whoever was interrupted while forecasts were judged tries again.
        with pytest.raises(Stop):
            made.play(values, told, of)
    assert made._undo is None
    assert made.to_bytes() == before
    for each in (made, whole):
        each.play(values, told, of)
    assert made.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_an_outcome_that_is_interrupted_while_it_is_judged_counts_once(
    after: bool, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, whole = (LateWatch(Monitor(buckets=2), horizon=4) for _ in range(2))
    for each in (made, whole):
        for number in range(3):
            each.forecast(0.2 * number)
        if more:
            each.observe(1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(module, "TOGETHER", 1)
        patch.setattr(Monitor, "update_many", stopping(Monitor.update_many, 1, after=after))
        with pytest.raises(Stop):
            made.observe(0, 0)
    whole.observe(0, 0)
    assert (made.judged, made.watch.rounds) == (1 + more, 1 + more)
    assert made.to_bytes() == whole.to_bytes()


def test_what_waits_may_be_much_and_a_log_copies_none_of_it() -> None:
    made = LateWatch(Monitor(buckets=2), horizon=50)
    for number in range(40):
        made.forecast(number / 40)
    seen = list[object]()

    class Waiting(dict[int, Any]):
        """What waits, of which nobody may see all."""

        def __iter__(self) -> Any:
            seen.append(self)
            return super().__iter__()

        def keys(self) -> Any:
            return KeysView(self)

    made._open = Waiting(made._open)
    assert len(dict(made._open)) == 40
    assert seen == [made._open]
    del seen[:]
    made.play([(0.5,), ()], [None, 1], [-1, 3])
    assert (made.issued, seen) == (41, [])


def test_a_date_is_a_time() -> None:
    dated, told = (LateWatch(Monitor()) for _ in range(2))
    dated.forecast(0.4, time=np.datetime64("2024-02-29"))
    told.forecast(0.4, time=1709164800.0)
    assert dated.to_bytes() == told.to_bytes()
