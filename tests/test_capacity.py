"""Capacity: figures that were measured, what follows from them, and a simulation."""

from __future__ import annotations

import json
import math
import shlex

import numpy as np
import pytest

from benchmarks import capacity as bench_capacity
from calibrant import Calibrant, Recalibrator, capacity
from calibrant.capacity import figures as stored_figures
from calibrant.capacity import simulation
from calibrant.errors import InvalidInput
from calibrant.registry import calibrators

pytestmark = [pytest.mark.once]

METHODS = ("default", "foster_hart")


@pytest.mark.parametrize("method", METHODS)
def test_stored_figures_are_positive_and_say_where_they_come_from(method: str) -> None:
    found = capacity.measured(method)
    for name, value in vars(found).items():
        if name != "method":
            assert np.all(np.array(value) > 0), name
    assert found.row_bytes > found.body(10)
    assert "benchmarks.capacity" in stored_figures.stored()["command"]


@pytest.mark.parametrize("method", METHODS)
def test_sizes_between_those_measured_grow_with_rounds(method: str) -> None:
    found = capacity.measured(method)
    sizes = [found.body(rounds) for rounds in (0, 1, 2, 10, 50, 3_000, 10**9)]
    assert sizes == sorted(sizes)
    assert sizes[1] == found.body_bytes[0]
    assert sizes[-1] == found.body_bytes[-1]


def test_a_plan_is_its_figures_times_what_is_asked() -> None:
    made = capacity.plan(200.0, 50, delay=30.0, rounds_per_key=10, hot=1.0)
    told = made.figures
    assert made.open_tickets == 6_000.0
    assert made.most_open == 6_000.0 + 4.0 * math.sqrt(6_000.0)
    rows = 50 * (told.row_bytes + told.key_bytes)
    assert made.memory == pytest.approx(rows + made.most_open * told.ticket_bytes)
    assert made.snapshot == 50 * told.body(10) + 6_000.0 * told.stored_ticket_bytes
    assert made.hot_key == 1e9 / told.alone_ns


def test_twice_the_rate_keeps_twice_the_cores_busy() -> None:
    one, two = (capacity.plan(rate * 1e6, 10**6) for rate in (4, 8))
    assert one.cores > 1
    assert abs(two.cores - 2 * one.cores) <= 1
    assert capacity.plan(1.0, 1).cores == 1


def test_no_more_keys_change_than_there_are() -> None:
    few, many = capacity.plan(10.0, 100, every=1.0), capacity.plan(10.0, 100, every=1e6)
    assert few.touched < 10.0
    assert many.touched == pytest.approx(100.0)


def test_only_buckets_can_be_split() -> None:
    default, buckets = (capacity.plan(1.0, 1, method=name) for name in METHODS)
    assert default.split_hot_key == default.hot_key
    assert buckets.split_hot_key == 10 * buckets.hot_key


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"events_per_second": 0.0}, "events_per_second must be a number above 0, got 0.0"),
        ({"events_per_second": math.nan}, "events_per_second must be a number above 0"),
        ({"keys": 0}, "keys must be a whole number of at least 1, got 0"),
        ({"delay": -1.0}, "delay must be a number of at least 0, got -1.0"),
        ({"hot": 1.5}, r"hot must be a number in \[0, 1\], got 1.5"),
        ({"every": 0.0}, "every must be a number above 0, got 0.0"),
        ({"method": "nothing"}, "method must be"),
    ],
)
def test_what_makes_no_sense_is_refused(told: dict, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        capacity.plan(**{"events_per_second": 1.0, "keys": 1, **told})


def test_a_simulation_refuses_bursts_below_the_usual_rate() -> None:
    with pytest.raises(InvalidInput, match=r"burst must be a number of at least 1, got 0\.5"):
        capacity.rush(capacity.plan(1.0, 1), burst=0.5)


def test_open_tickets_are_rate_times_delay_whatever_the_tail() -> None:
    made = capacity.plan(100.0, 10, delay=50.0)
    even, rushed = (capacity.rush(made, burst=b, forecasts=50_000) for b in (1.0, 20.0))
    assert even.mean_open == pytest.approx(made.open_tickets, rel=0.1)
    assert even.most_open < 1.2 * even.mean_open
    assert rushed.most_open > 1.2 * rushed.mean_open


def test_without_delay_nothing_stays_open() -> None:
    seen = capacity.rush(capacity.plan(100.0, 10), forecasts=1_000)
    assert seen.mean_open == seen.most_open == 0.0


def test_waiting_at_an_even_rate_is_that_of_a_queue_with_constant_service() -> None:
    # Half of the events are outcomes, whose times are as random: a queue M/D/1.
    rng, load = np.random.default_rng(5), 0.6
    times = simulation.arrivals(rng, 150_000, 1.0, 1.0)
    waits, busy = simulation._waits(rng, times, 1e4, 1, load / 2.0)
    settled = waits[(times > 6e4) & (times < 1.4e5)]
    assert busy == pytest.approx(load, rel=0.02)
    expected = load * (load / 2.0) / (2.0 * (1.0 - load))
    assert settled.mean() == pytest.approx(expected, rel=0.1)


def test_bursts_make_forecasts_wait_longer() -> None:
    rate = 0.45e9 / capacity.measured().table_ns
    made = capacity.plan(rate, 1_000)
    even, rushed = (capacity.rush(made, burst=burst, seed=2) for burst in (1.0, 20.0))
    assert even.busy == pytest.approx(0.45, rel=0.05)
    assert rushed.wait_99 > 10.0 * even.wait_99


def test_arrivals_in_bursts_keep_their_mean_rate() -> None:
    times = simulation.arrivals(np.random.default_rng(1), 400_000, 50.0, 8.0)
    assert len(times) == 400_000
    assert len(times) / times[-1] == pytest.approx(50.0, rel=0.1)
    counts = np.bincount(times.astype(np.int64))
    assert counts.var() > 3.0 * counts.mean()


@pytest.mark.parametrize("rate", [1e-9, 1e-4, 1e15])
def test_rates_of_any_size_are_played_in_little_room(rate: float) -> None:
    seen = capacity.rush(capacity.plan(rate, 1_000, delay=60.0), forecasts=200)
    assert 0.0 <= seen.wait <= seen.wait_99 <= seen.longest
    assert seen.mean_open <= seen.most_open
    low = min(rate, 1e-4)
    met = simulation.arrivals(np.random.default_rng(1), 2_000, low, 20.0)
    assert len(met) / met[-1] == pytest.approx(low, rel=0.1)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    from calibrant.cli.app import run

    assert run(["capacity", "--keys", "5000", "--delay", "60", "--events-per-second", "20"]) == 0
    told = capsys.readouterr()
    assert "5,000 keys, 20 forecasts a second, default" in told.out
    assert "1,200" in told.out
    assert "cannot be split" in told.out
    assert f"constants by {stored_figures.stored()['command']}, " in told.err


def test_the_command_tells_json(capsys: pytest.CaptureFixture[str]) -> None:
    from calibrant.cli.app import run

    assert run(["capacity", "--method", "foster_hart", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["plan"]["split_hot_key"] == 10 * told["plan"]["hot_key"]
    assert told["simulation"]["forecasts"] == 100_000
    assert told["source"]["machine"]["cores"]


def test_the_command_refuses_a_rate_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    from calibrant.cli.app import run

    assert run(["capacity", "--events-per-second", "-3"]) == 2
    assert "events_per_second must be a number above 0, got -3.0" in capsys.readouterr().err


@pytest.mark.parametrize("method", METHODS)
def test_a_hot_key_takes_what_its_row_has_today(method: str) -> None:
    """If this fails the row has changed: run python -m benchmarks.capacity --store anew."""
    made = Calibrant() if method == "default" else Recalibrator(resolution=10, buckets=10)
    found = capacity.measured(method)
    assert found.row_bytes == made.spec.layout.fresh.nbytes
    assert found.buckets == made.buckets


def test_the_command_that_is_stored_is_the_one_that_measured() -> None:
    told = stored_figures.stored()
    words = shlex.split(told["command"])
    assert words[:3] == ["python", "-m", "benchmarks.capacity"]
    asked = bench_capacity.options(words[3:])
    assert asked.store
    assert (asked.events, asked.keys) == (told["events"], told["keys"])


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", calibrators.names())
def test_a_hot_key_can_be_split_by_bucket_with_the_same_results(name: str, late: bool) -> None:
    rng, made = np.random.default_rng(1), {"resolution": 8, "buckets": 5, "seed": 3, "key": "hot"}
    raw, when = rng.random(400), np.arange(400)
    told = rng.random(400) < raw**2
    known = when + (rng.integers(0, 30, 400) if late else 0)
    whole = Recalibrator(name, **made)
    run, same = whole.replay(raw, told, time=when, available=known), []
    layout = whole.spec.layout
    for bucket in range(5):
        part, mine = Recalibrator(name, **made), run.bucket == bucket
        own = part.replay(raw[mine], told[mine], time=when[mine], available=known[mine])
        same.append(own.forecast.tolist() == run.forecast[mine].tolist())
        same.append(own.mean.tolist() == run.mean[mine].tolist())
        first = layout.blocks + bucket * layout.stride
        block = slice(first, first + layout.stride)
        if not late:
            same.append(bool((part._arena.row()[block] == whole._arena.row()[block]).all()))
    # An anchored rule learns late outcomes as some of all that the stream waits for.
    assert all(same) == (not late or not whole.spec.program.rule.anchored)
