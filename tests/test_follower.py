"""The follower of a live stream: late outcomes, corrections, merging, the same numbers again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.kernels import portable, tallies
from calibrant.loading import load
from calibrant.metrics import binomial_band
from calibrant.summary import Collector, Follower, glance, summarise_collected
from calibrant.summary.glance import score_band
from calibrant.summary.together import log

pytestmark = [pytest.mark.base, pytest.mark.once]

GRID = np.arange(21) / 20
FINE = np.unique(np.concatenate([GRID, np.arange(1001) / 1000]))
Row = tuple[float, float, float, int]
PRODUCTS = [at + word for at in (tallies.RAW, tallies.MEAN) for word in range(2)]
"""Where a collector holds products, which depend on the order, and a follower nothing."""
HISTORY = ("regret_brier", "window", "windows")
"""What a summary takes from trace and windows."""
IN_WINDOWS = ("last_window_l2", "worst_window_l2")


def rows_of(rounds: int, seed: int = 0, grid: Any = GRID) -> list[Row]:
    generator = np.random.default_rng(seed)
    raw, mean = generator.random(rounds), generator.random(rounds)
    drawn = grid[generator.integers(0, len(grid), rounds)]
    outcomes = generator.random(rounds) < raw**2
    return list(zip(raw.tolist(), drawn.tolist(), mean.tolist(), map(int, outcomes), strict=True))


def followed(rows: list[Row], grid: Any = GRID) -> Follower:
    made = Follower(grid)
    for row in rows:
        made.take(*row)
    return made


def words_of(made: Any) -> Any:
    words = made.document().arrays["words"].copy()
    words[PRODUCTS] = 0
    return words


def told(made: Follower) -> dict[str, Any]:
    """Return the summary without what comes from trace and windows."""
    seen = summarise_collected(made.collector(), Recalibrator(seed=1)).to_dict()
    for name in HISTORY:
        del seen[name]
    for name in ("raw", "forecast", "mean"):
        for each in IN_WINDOWS:
            del seen[name][each]
    for name in ("trace", "windows"):
        del seen["detail"][name]
    return seen


def wrong(row: Row) -> Row:
    return (*row[:3], 1 - row[3])


# ----------------------------------------------------------------------------- the order


@pytest.mark.parametrize(
    ("rounds", "grid"),
    [(1, GRID), (255, GRID), (700, GRID), (5625, GRID), (1300, FINE), (900, np.array([0.5]))],
    ids=str,
)
def test_a_follower_holds_the_words_of_a_collector_in_the_order_of_learning(
    rounds: int, grid: Any
) -> None:
    rows = rows_of(rounds, grid=grid)
    collector = Collector(grid)
    collector.update(*map(np.array, zip(*rows, strict=True)), compile=False)
    seen = followed(rows, grid).collector()
    np.testing.assert_array_equal(words_of(seen), words_of(collector))
    for name in ("raw", "forecast", "mean"):
        one, other = seen.log_loss(name), collector.log_loss(name)
        assert one.clipped == other.clipped
        assert one.value == pytest.approx(other.value, rel=1e-11)


edges = st.sampled_from([0.0, 1.0, 0.05, 0.29, 1e-300, 0.999, 1 - 2**-53])
numbers = st.one_of(st.floats(0.0, 1.0), edges)
some = st.lists(st.tuples(numbers, st.sampled_from(GRID.tolist()), numbers, st.integers(0, 1)))


@settings(max_examples=60)
@given(some, st.data())
def test_asking_and_storing_in_between_changes_nothing(rows: list[Row], data: Any) -> None:
    made, whole = Follower(GRID), followed(rows)
    for row in rows:
        made.take(*row)
        if data.draw(st.booleans()):
            made = Follower.from_bytes(made.to_bytes())
    assert made == whole
    assert made.rounds == len(rows)
    collector = Collector(GRID)
    if rows:
        collector.update(*map(np.array, zip(*rows, strict=True)), compile=False)
    np.testing.assert_array_equal(words_of(made.collector()), words_of(collector))


def live(rec: Any, made: Follower) -> list[tuple[Any, int]]:
    """Play a stream whose outcomes come late and out of order; return the log of learning."""
    generator, waiting, log_ = np.random.default_rng(5), [], []
    for raw in generator.random(800).tolist():
        waiting.append((rec.forecast(raw), int(generator.random() < raw**2)))
        while waiting and generator.random() < 0.5:
            ticket, outcome = waiting.pop(int(generator.integers(len(waiting))))
            made.settle(rec.observe(ticket, outcome), rec.issued - ticket.number - 1)
            log_.append((ticket, rec.issued))
    return log_


def test_a_replay_of_the_log_gives_the_numbers_of_the_live_stream() -> None:
    rec = Recalibrator(seed=3)
    made = Follower(rec)
    log_ = live(rec, made)
    again = Follower(rec)
    for ticket, issued in log_:
        again.settle(ticket, issued - ticket.number - 1)
    assert again == made
    assert again.rounds == len(log_) > 300
    one, other = (summarise_collected(each.collector(), rec).to_dict() for each in (made, again))
    assert one == other


def test_the_log_of_a_budget_is_followed_to_three_digits() -> None:
    rec = Calibrant(seed=3, raw_safe=0.05)
    made = Follower(rec)
    number = made.take(0.12345, 0.12345, 0.12345, 1)
    assert number == 1
    counts = made.collector().counts("forecast")
    assert np.flatnonzero(counts).tolist() == [123]


def test_vectors_of_logarithms_are_those_of_single_numbers_to_the_bit() -> None:
    values = np.concatenate([np.random.default_rng(1).random(5000), [1e-15, 1.0, 0.5, 1e-300]])
    assert log(values).tolist() == [portable.log(value) for value in values.tolist()]


# --------------------------------------------------------------------------- corrections


@pytest.mark.parametrize("number", [1, 600, 626, 1900, 2000])
def test_a_corrected_outcome_leaves_no_trace_in_any_sum(number: int) -> None:
    rows = rows_of(2000)
    mistaken = rows.copy()
    mistaken[number - 1] = wrong(rows[number - 1])
    made, right = followed(mistaken), followed(rows)
    assert told(made) != told(right)
    made.correct(number, *rows[number - 1])
    assert told(made) == told(right)


@pytest.mark.parametrize("number", [100, 625, 626, 1000])
def test_windows_and_points_that_come_after_a_correction_are_right(number: int) -> None:
    rows = rows_of(6000)
    mistaken = rows.copy()
    mistaken[number - 1] = wrong(rows[number - 1])
    made, right = followed(mistaken[:1000]), followed(rows)
    made.correct(number, *rows[number - 1])
    for row in rows[1000:]:
        made.take(*row)
    one, other = made.collector(), right.collector()
    for level in range(tallies.LEVELS):
        after = 1000 // (tallies.WINDOW << level)
        shown = one.windows(level)[1][after:]
        np.testing.assert_array_equal(shown, other.windows(level)[1][after:])
        assert len(shown) > 0
    later = one.trace()[0] >= 1000
    np.testing.assert_array_equal(one.trace()[1][later], other.trace()[1][later])


def test_a_correction_before_the_next_stop_leaves_no_trace_at_all() -> None:
    rows = rows_of(3001)
    made = followed([*rows[:-1], wrong(rows[-1])])
    made.correct(3001, *rows[-1])
    assert made == followed(rows)


def test_a_sure_mistake_that_was_none_is_not_counted_any_more() -> None:
    rows = [(0.0, 0.5, 1.0, 1), (1.0, 0.5, 0.5, 0), (0.5, 0.5, 0.0, 1)]
    made = followed(rows)
    made.correct(1, *wrong(rows[0]))
    seen, right = made.collector(), followed([wrong(rows[0]), *rows[1:]]).collector()
    for name, clipped in (("raw", 1), ("mean", 2)):
        assert seen.log_loss(name) == right.log_loss(name)
        assert seen.log_loss(name).clipped == clipped


@pytest.mark.parametrize("number", [0, 3, -1])
def test_only_a_round_that_was_taken_is_corrected(number: int) -> None:
    made = followed([(0.3, 0.5, 0.4, 0), (0.7, 0.5, 0.4, 1)])
    before = made.to_bytes()
    with pytest.raises(InvalidInput):
        made.correct(number, 0.3, 0.5, 0.4, 1)
    with pytest.raises(InvalidInput) as refused:
        made.correct(1, 0.9, 0.5, 0.4, 1)
    expected = "round must be one that was taken before, with the other outcome, got number 1, "
    assert str(refused.value) == expected + "raw forecast 0.9"
    assert made.to_bytes() == before


# ------------------------------------------------------------------------------- merging


def test_merging_in_any_order_gives_the_sums_of_all_rounds() -> None:
    rows = rows_of(3000)
    parts = [followed(rows[k::3]) for k in range(3)]
    parts[1].take(*rows[0], 100.0)
    rows.append(rows[0])
    one, other = parts[0].copy(), parts[2].copy()
    one.merge(parts[1])
    one.merge(parts[2])
    other.merge(parts[1])
    other.merge(parts[0])
    assert one == other
    assert one.merged
    assert not parts[0].merged
    assert told(one) == told(followed(rows))
    assert glance(one).waits[:8].tolist() == [3000, 0, 0, 0, 0, 0, 0, 1]


def test_a_merged_follower_has_no_trace_and_no_windows_and_goes_on() -> None:
    rows = rows_of(4000)
    made = followed(rows[:2000])
    made.merge(followed(rows[2000:3000]))
    assert made.take(*rows[3000]) == 3001
    for row in rows[3001:]:
        made.take(*row)
    made.correct(7, *wrong(rows[6]))
    made.correct(7, *rows[6])
    assert told(made) == told(followed(rows))
    seen = summarise_collected(made.collector(), Recalibrator(seed=1))
    assert seen["window"] == 0
    assert seen["raw"]["worst_window_l2"] is None
    assert seen.trace.rounds.tolist() == [4000]
    assert seen["regret_brier"]["low"] is None
    assert repr(made) == "Follower(values=21, rounds=4000, merged)"
    assert load(made.to_bytes()) == made


def test_only_followers_of_the_same_values_are_merged() -> None:
    with pytest.raises(InvalidType, match="other must be a Follower, got 3"):
        Follower(GRID).merge(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refused:
        Follower(GRID).merge(Follower([0.0, 1.0]))
    assert str(refused.value) == "values must be the same to merge, got 2 others than these 21"


# ------------------------------------------------------------------------------ a glance


def test_a_glance_says_what_a_summary_says() -> None:
    made = followed(rows_of(2500))
    seen = glance(made, open=3, expired=2)
    full = summarise_collected(made.collector(), Recalibrator(seed=1))
    for name in ("raw", "forecast", "mean"):
        scores, curve, other = full[name], seen.curves[name], full.curves[name]
        assert seen.brier[name] == pytest.approx(scores["brier"], rel=1e-12)
        assert seen.c1[name] == pytest.approx(scores["calibration_l1"], rel=1e-9)
        assert seen.c2[name] == pytest.approx(scores["calibration_l2"], rel=1e-9)
        assert curve.count.tolist() == other.count.tolist()
        np.testing.assert_allclose(curve.mean_forecast, other.mean_forecast, rtol=1e-12)
        np.testing.assert_allclose(curve.mean_outcome, other.mean_outcome, rtol=1e-12)
    assert (seen.rounds, seen.base_rate) == (full["n_rounds"], full["base_rate"])
    drawn = [row.mean_forecast for row in full.buckets]
    np.testing.assert_allclose(seen.drawn, drawn, rtol=1e-12)
    assert (seen.open, seen.expired) == (3, 2)


def test_a_glance_at_nothing_is_nothing() -> None:
    seen = glance(Follower(GRID))
    assert seen.rounds == 0
    assert math.isnan(seen.base_rate)
    assert math.isnan(seen.brier["forecast"])
    assert math.isnan(seen.waited(0.5))
    assert seen.curves["raw"].band_high.tolist() == [1.0] * 20


def test_score_bands_hold_the_frequency_and_are_near_the_exact_ones() -> None:
    ones, counts = np.array([0, 3, 40, 500, 990]), np.array([30, 30, 100, 1000, 1000])
    (low, high), exact = score_band(ones, counts), binomial_band(ones, counts)
    assert (low <= ones / counts).all()
    assert (high >= ones / counts).all()
    np.testing.assert_allclose([low, high], exact, atol=0.02)


def test_how_late_outcomes_were_is_told_to_a_factor_of_two() -> None:
    made = Follower(GRID)
    for waited in (0.0, 0.5, 1.0, 3.0, 100.0, 1e9):
        made.take(0.3, 0.5, 0.4, 0, waited)
    assert glance(made).waits[:8].tolist() == [2, 1, 1, 0, 0, 0, 0, 1]
    assert glance(made).waited(1.0) == 2.0**30
    with pytest.raises(InvalidInput, match="waited must be 0 or more, got -1"):
        made.take(0.3, 0.5, 0.4, 0, -1.0)


# ----------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((2.0, 0.5, 0.5, 0), "raw forecast must be a number in [0, 1], got 2.0"),
        ((0.5, 0.51, 0.5, 0), "forecast must be a value of the grid, got 0.51"),
        ((0.5, 0.5, math.nan, 0), "mean must be a number in [0, 1], got nan"),
        ((0.5, 0.5, 0.5, 2), "outcome must be 0 or 1, got 2"),
    ],
)
def test_a_bad_round_is_refused_and_changes_nothing(row: Any, message: str) -> None:
    made = followed(rows_of(3))
    with pytest.raises(InvalidInput) as refused:
        made.take(*row)
    assert str(refused.value) == message
    assert made == followed(rows_of(3))


def test_numbers_of_other_types_are_taken_as_they_are() -> None:
    made = Follower(GRID)
    made.take(1, np.float64(0.5), np.float32(0.25), True)
    assert made == followed([(1.0, 0.5, 0.25, 1)])


def test_only_closed_tickets_are_settled() -> None:
    rec = Recalibrator(seed=1)
    made = Follower(rec)
    with pytest.raises(InvalidType, match="ticket must be a Ticket, got 3"):
        made.settle(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="ticket must be closed, got Ticket"):
        made.settle(rec.forecast(0.3))


def test_the_collector_of_a_follower_takes_no_rounds() -> None:
    with pytest.raises(InvalidInput, match="rounds must be told to the follower"):
        Follower(GRID).collector().update([0.1], [0.5], [0.1], [1])


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("words", tallies.CELLS, 0),
        ("words", tallies.CELLS, 22),
        ("words", tallies.ROUNDS, 7),
        ("words", tallies.FILLED, 300),
        ("words", tallies.STRIDE, 0),
        ("words", tallies.VALUES, int(np.float64(0.5).view(np.int64))),
        ("words", tallies.level_at(21, 2), 0),
    ],
)
def test_a_state_that_no_rounds_leave_is_refused(name: str, place: int, value: int) -> None:
    stored = followed(rows_of(9))._document()
    stored.arrays[name][place] = value
    with pytest.raises(CorruptState):
        Follower.from_bytes(stored.to_bytes())


def test_a_state_with_sums_of_other_sizes_is_refused() -> None:
    stored = followed(rows_of(9))._document()
    arrays = stored.arrays | {"waits": np.zeros(3, np.int64)}
    with pytest.raises(CorruptState, match="sums of other sizes"):
        Follower.from_bytes(Document("follower", stored.settings, arrays).to_bytes())


BAD: list[tuple[Any, ...]] = [
    (0.3, 0.5, 0.4, 0, "x"),
    (0.3, 0.5, 0.4, 0, None),
    ("a", 0.5, 0.4, 0, 0.0),
    (0.3, [], 0.4, 0, 0.0),
    (0.3, 0.5, "a", 0, 0.0),
    (0.3, 0.5, 0.4, [], 0.0),
]


@pytest.mark.parametrize("told", BAD)
def test_one_round_and_many_refuse_the_same_values(told: tuple[Any, ...]) -> None:
    follower = Follower([0.0, 0.5, 1.0])
    before = follower.to_bytes()
    with pytest.raises(InvalidType) as one:
        follower.take(*told)
    with pytest.raises(InvalidType) as many:
        follower.take_many(*([value] for value in told))
    assert str(one.value) == str(many.value)
    with pytest.raises(InvalidInput, match="arrays must be of one length, got: raw has 1, forec"):
        follower.take_many([0.3], [0.5, 0.5], [0.4], [1], [0.0])
    assert follower.to_bytes() == before
