"""The latest windows of a stream: draws that break are told soon, and no others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.kernels.tallies import WINDOW
from calibrant.summary import Follower, glance
from calibrant.summary.recent import KEPT, LENGTHS, OFF, Recent, likely

pytestmark = [pytest.mark.base, pytest.mark.once]

GRID = np.arange(21) / 20


def played(
    made: Follower, rounds: int, seed: int, *, shift: float = 0.0, scale: float = 1.0
) -> int:
    """Take rounds whose chance is the draw, moved; return after how many draws were told off."""
    rng = np.random.default_rng(seed)
    cells, luck = rng.integers(0, 21, rounds).tolist(), rng.random(rounds).tolist()
    for k, (cell, coin) in enumerate(zip(cells, luck, strict=True)):
        value = float(GRID[cell])
        chance = 0.5 + scale * (value - 0.5) + shift
        if made.take(value, value, value, int(coin < chance)) % WINDOW == 0:
            made.stamp(float(made.rounds))
            if (seen := glance(made).recent) and seen.since:
                return k + 1
    return 0


def test_draws_that_break_after_a_million_good_rounds_are_told_within_a_window() -> None:
    made = Follower(GRID)
    assert played(made, 1_000_000, 1) == 0
    assert played(made, 3 * WINDOW, 2, scale=-1.0) <= WINDOW
    seen = glance(made).recent
    assert seen is not None
    assert (seen.since, seen.well) == (1_000_001, True)
    # The window before ended with the millionth outcome.
    assert seen.since_time == 1_000_000.0


@pytest.mark.parametrize(("shift", "windows"), [(0.2, 2), (0.12, 5), (0.09, 12)])
def test_the_less_draws_are_off_the_more_windows_it_takes(shift: float, windows: int) -> None:
    made = Follower(GRID)
    assert played(made, 20_000, 3) == 0
    found = played(made, 20_000, 4, shift=shift)
    assert 0 < found <= windows * WINDOW
    seen = glance(made).recent
    assert seen is not None
    assert abs(seen.since - 20_001) <= found


def test_draws_within_half_a_step_of_their_grid_are_not_off() -> None:
    made = Follower(GRID)
    assert played(made, 50_000, 5, shift=0.02) == 0
    exact = Follower(GRID, allowed=0.0)
    assert played(exact, 50_000, 5, shift=0.1) > 0


def test_draws_that_recover_are_well_after_a_few_windows_and_stay_so() -> None:
    made, told = Follower(GRID), []
    played(made, 10_000, 6)
    assert played(made, WINDOW, 7, scale=-1.0)
    for seed in range(30):
        played(made, WINDOW, 100 + seed)
        seen = glance(made).recent
        assert seen is not None
        told.append(bool(seen.since))
    well = told.index(False)
    assert 1 <= well <= 2 * LENGTHS[2]
    assert not any(told[well:])


def test_draws_that_stay_off_are_told_all_the_time_with_one_beginning() -> None:
    made, begun = Follower(GRID), set()
    played(made, 10_000, 8)
    played(made, 10 * WINDOW, 9, shift=0.12)
    for seed in range(20):
        played(made, WINDOW, 200 + seed, shift=0.12)
        seen = glance(made).recent
        assert seen is not None
        begun.add(seen.since)
    assert len(begun) == 1
    assert 0 not in begun


def test_frequencies_are_called_unlikely_no_more_often_than_they_are() -> None:
    n, m, p, q = 40, 15, 0.03, 0.6
    ones = np.array([[a, b] for a in range(n + 1) for b in range(m + 1)], np.float64)
    count, total = np.array([n, m], np.float64), np.array([n * p, m * q])
    rows = [np.broadcast_to(part, ones.shape) for part in (count, ones, total)]
    found = likely(np.stack(rows, axis=1))
    chance = np.array([binomial(n, int(a), p) * binomial(m, int(b), q) for a, b in ones])
    for level in (0.5, 0.1, 0.01, 1e-4, OFF):
        assert chance[found <= level].sum() <= level
    assert found.min() < OFF


def binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1.0 - p) ** (n - k)


def test_what_cannot_happen_is_off_and_nothing_at_all_is_not() -> None:
    never = np.array([[[9.0], [1.0], [0.0]], [[0.0], [0.0], [0.0]]])
    impossible, nothing = likely(never).tolist()
    assert impossible < OFF
    assert nothing == 1.0


def test_asking_and_storing_in_between_leaves_the_findings() -> None:
    made, again = Follower(GRID), Follower(GRID)
    for seed, scale in ((1, 1.0), (2, -1.0), (3, 1.0)):
        for rounds in (700, 900, 1500):
            played(made, rounds, seed, scale=scale)
            played(again, rounds, seed, scale=scale)
            again = Follower.from_dict(Follower.from_bytes(again.to_bytes()).to_dict())
            glance(again)
    assert again == made


def test_windows_are_judged_with_outcomes_as_corrected_before_they_end() -> None:
    one, other = Follower(GRID), Follower(GRID)
    one.take(0.5, 0.5, 0.5, 1)
    other.take(0.5, 0.5, 0.5, 0)
    other.correct(1, 0.5, 0.5, 0.5, 1)
    for made in (one, other):
        for _ in range(WINDOW - 1):
            made.take(0.5, 0.5, 0.5, 0)
    first, second = glance(one).recent, glance(other).recent
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.tables, second.tables)
    other.correct(1, 0.5, 0.5, 0.5, 0)
    for _ in range(WINDOW):
        other.take(0.5, 0.5, 0.5, 0)
    latest = glance(other).recent
    assert latest is not None
    assert latest.tables[-1].sum(1).tolist() == [625.0, 0.0, 312.5, 625.0, 0.0, 312.5]


def test_a_merged_stream_has_no_latest_windows() -> None:
    made = Follower(GRID)
    played(made, 2000, 1)
    made.merge(made.copy())
    assert glance(made).recent is None


def test_a_state_of_the_first_version_goes_on_with_windows_of_its_own() -> None:
    made = Follower(GRID)
    played(made, 2000, 1)
    stored = made._document()
    arrays = {name: stored.arrays[name] for name in ("words", "logs", "waits")}
    old = Document("follower", {"ordered": True}, arrays, 1).to_bytes()
    again = Follower.from_bytes(old)
    assert glance(again).recent is None
    assert played(again, 2 * WINDOW, 2, scale=-1.0)
    seen = glance(again).recent
    assert seen is not None
    assert seen.since == 3 * WINDOW + 1


def test_no_more_windows_are_kept_than_are_judged() -> None:
    made = Follower(GRID)
    played(made, 30 * WINDOW, 1)
    seen = glance(made).recent
    assert seen is not None
    assert len(seen.tables) == KEPT + 1
    assert seen.latest()[0] == KEPT * WINDOW


@pytest.mark.parametrize(
    ("name", "value"), [("since", -1), ("length", len(LENGTHS)), ("ended", -2)]
)
def test_findings_that_no_rounds_leave_are_refused(name: str, value: int) -> None:
    made = Recent(0.1)
    with pytest.raises(CorruptState, match="windows that no rounds leave"):
        Recent.of(made.settings() | {name: value}, made.words())


def test_windows_that_no_rounds_leave_are_refused() -> None:
    made = Recent(0.1, np.full((1, 6, 20), -1.0), np.zeros(1))
    with pytest.raises(CorruptState, match="windows that no rounds leave"):
        Recent.of(made.settings(), made.words())
    with pytest.raises(CorruptState, match="windows of other sizes"):
        Recent.of(made.settings(), made.words()[:-1])
    assert Recent.of(replace(made).settings(), Recent(0.1).words()).ended == 0


def test_what_is_allowed_and_when_it_was_must_be_numbers() -> None:
    with pytest.raises(InvalidInput, match=r"allowed must be in \[0, 1\], got 2.0"):
        Follower(GRID, allowed=2.0)
    with pytest.raises(InvalidInput, match=r"time must be a finite number .*, got nan"):
        Follower(GRID).stamp(math.nan)
