"""Games: the protocol, what an adversary sees, the players, and the record."""

from __future__ import annotations

import dataclasses
import gc
import types
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_simulate as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.core.grid import GRIDS, Grid
from calibrant.core.mixture import Mixture
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import InvalidInput, InvalidType, UnknownName
from calibrant.kernels import games
from calibrant.metrics import calibration_error
from calibrant.registry import calibrators
from calibrant.simulate import (
    Adversary,
    Announcement,
    Bernoulli,
    Coins,
    Constant,
    Drifting,
    Forecaster,
    GreedyAccuracy,
    GreedyCalibration,
    History,
    Informed,
    Linear,
    Logistic,
    Noise,
    Noisy,
    Periodic,
    Record,
    SignPreserving,
    Switching,
    Threshold,
    adversaries,
    forecasters,
    play,
)
from calibrant.simulate.board import Book, key_for, tables

pytestmark = pytest.mark.base

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOBODY = Coins(0, 0)


def recalibrator(method: str = "foster_hart", buckets: int = 3, **options: Any) -> Recalibrator:
    return Recalibrator(method, **{"resolution": 5, "buckets": buckets, "seed": 7} | options)


def announcement(
    mixture: Mixture, counts: Any = None, ones: Any = None, raw: float = 0.5, grid: Any = None
) -> Announcement:
    book = Book(grid or Grid("endpoints", 5), rounds=1)
    if counts is not None:
        tables(book.board, games.COUNT)[:] = counts
        tables(book.board, games.ONES)[:] = ones
    return Announcement((), raw, mixture, History(book))


def alone(index: int, value: float) -> Mixture:
    return Mixture((index,), (1.0,), (value,))


# ---------------------------------------------------------------------------- the protocol


class Witness(Adversary):
    """Notes in which order things happen."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        self.said.append("reveal")
        return (0.25,)

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        self.said.append(f"choose {announcement.round}")
        return 1


class Student(Forecaster):
    def __init__(self, said: list[str]) -> None:
        self.said = said

    def start(self) -> int:
        return 0

    def forecast(self, state: int, features: tuple[float, ...], coins: Coins) -> float:
        self.said.append(f"forecast {state} {features}")
        return features[0]

    def learn(self, state: int, features: tuple[float, ...], outcome: int) -> int:
        self.said.append(f"learn {outcome}")
        return state + 1


def test_the_five_steps_come_in_the_order_of_the_paper() -> None:
    said: list[str] = []
    played = recalibrator()
    play(played, Student(said), Witness(said), 2)
    assert said == [
        "reveal", "forecast 0 (0.25,)", "choose 0", "learn 1",
        "reveal", "forecast 1 (0.25,)", "choose 1", "learn 1",
    ]  # fmt: skip
    assert (played.rounds, played.open) == (2, 0)


@pytest.mark.parametrize("method", calibrators.names())
def test_a_game_is_a_replay_of_what_was_chosen(method: str) -> None:
    record = play(recalibrator(method), "uniform", "greedy_calibration", 120, seed=3)
    run = recalibrator(method).replay(record.raw, record.outcomes)
    assert run.forecast.tolist() == record.forecast.tolist()
    assert run.mean.tolist() == record.mean.tolist()


def test_the_same_seeds_give_the_same_game_and_others_another() -> None:
    first = play(recalibrator(), "uniform", "bernoulli", 50, seed=3)
    again = play(recalibrator(), "uniform", "bernoulli", 50, seed=3)
    other = play(recalibrator(), "uniform", "bernoulli", 50, seed=4)
    assert first.outcomes.tolist() == again.outcomes.tolist()
    assert first.forecast.tolist() == again.forecast.tolist()
    assert first.outcomes.tolist() != other.outcomes.tolist()
    assert first.raw.tolist() != other.raw.tolist()


def test_the_players_coins_are_not_the_same() -> None:
    assert key_for(3, "nature") != key_for(3, "forecaster")
    assert Coins(key_for(3, "nature"), 0)[0] != Coins(key_for(3, "nature"), 1)[0]


def test_a_round_has_64_coins() -> None:
    last, next_round = Coins(5, 0)[63], Coins(5, 1)[0]
    assert last != next_round
    with pytest.raises(InvalidInput, match=r"^index must be a whole number from 0 to 63, got 64$"):
        NOBODY[64]


def test_progress_is_told_a_hundred_times_and_at_the_end() -> None:
    told: list[tuple[int, int]] = []
    play(recalibrator(), "constant", "threshold", 251, progress=lambda *said: told.append(said))
    assert told == [(done, 251) for done in (*range(2, 251, 2), 251)]


def test_a_game_of_one_round_is_a_game() -> None:
    told: list[tuple[int, int]] = []
    record = play(recalibrator(), "constant", "threshold", 1, progress=lambda *s: told.append(s))
    assert (len(record), told) == (1, [(1, 1)])


class Says(Adversary):
    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def choose(self, announcement: Announcement, coins: Coins) -> Any:
        return self.outcome


class Forecasts(Forecaster):
    def forecast(self, state: Any, features: tuple[float, ...], coins: Coins) -> float:
        return 1.5


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("constant", "threshold", 0), InvalidInput,
         "rounds must be a whole number of at least 1, got 0"),
        (("constant", Says(2), 1), InvalidInput, "outcome must be 0 or 1, got 2"),
        (("constant", Says(None), 1), InvalidType, "outcome must be 0 or 1, got None"),
        ((Forecasts(), "threshold", 1), InvalidInput,
         "raw forecast must be a number in [0, 1], got 1.5"),
        (("constant", 3, 1), InvalidType,
         "adversary must be an Adversary or the name of one, got 3"),
        ((3, "threshold", 1), InvalidType,
         "forecaster must be a Forecaster or the name of one, got 3"),
        (("informed", "threshold", 1), InvalidInput,
         "features must hold what the informed forecaster passes on, got (): "
         "this adversary reveals nothing"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        play(recalibrator(), *arguments)
    assert str(caught.value) == text


class Broken(Adversary):
    """Plays by the rules for a while."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def choose(self, announcement: Any, coins: Any) -> Any:
        if announcement.round < 3:
            return 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (2, InvalidInput, "outcome must be 0 or 1, got 2"),
        (None, InvalidType, "outcome must be 0 or 1, got None"),
        (KeyError("lost"), KeyError, "'lost'"),
    ],
)
def test_a_game_that_cannot_go_on_changes_nothing(answer: Any, error: Any, text: str) -> None:
    recalibrator = Recalibrator(resolution=10, buckets=5, seed=1)
    play(recalibrator, "uniform", "bernoulli", 20)
    ticket = recalibrator.forecast(0.4)
    before = recalibrator.to_bytes()
    with pytest.raises(error) as refused:
        play(recalibrator, "uniform", Broken(answer), 10)
    assert str(refused.value) == text
    assert recalibrator.to_bytes() == before
    assert recalibrator.observe(ticket, 1).value == ticket.value


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"^adversary must be one of 'bernoulli', .*got 'devil'$"):
        play(recalibrator(), "constant", "devil", 1)
    with pytest.raises(UnknownName, match=r"^forecaster must be one of 'constant', .*got 'me'$"):
        play(recalibrator(), "me", "threshold", 1)


# ------------------------------------------------------------------ what an adversary sees


def reachable(start: Any) -> Iterator[Any]:
    """Everything that references lead to, code and classes aside."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    seen, waiting = set(), [start]
    while waiting:
        found = waiting.pop()
        if id(found) not in seen and not isinstance(found, code):
            seen.add(id(found))
            yield found
            waiting += gc.get_referents(found)
            if isinstance(found, np.ndarray) and found.base is not None:
                waiting.append(found.base)


class Snoop(Adversary):
    """Looks at everything that can be reached from what it is given."""

    def __init__(self) -> None:
        self.kinds: set[type] = set()
        self.finished: list[tuple[int, int]] = []

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        everything = list(reachable((announcement, coins)))
        self.kinds |= {type(found) for found in everything}
        books = [found for found in everything if isinstance(found, Book)]
        drawn = sum(int(tables(book.board, games.COUNT).sum()) for book in books)
        self.finished.append((announcement.round, drawn))
        return 0


def test_nothing_leads_from_an_announcement_to_the_draw() -> None:
    snoop = Snoop()
    play(recalibrator(), "uniform", snoop, 20)
    assert {Announcement, Mixture, History, Book, Coins, np.ndarray} <= snoop.kinds
    assert not {Ticket, Issuer, Recalibrator, Record} & snoop.kinds
    assert snoop.finished == [(t, t) for t in range(20)]


def test_the_walk_would_find_a_ticket() -> None:
    ticket = recalibrator().forecast(0.3)
    told = announcement(alone(2, 0.4))
    object.__setattr__(told, "features", (ticket,))
    assert any(found is ticket for found in reachable(told))


def test_an_announcement_has_exactly_four_parts_and_cannot_be_changed() -> None:
    told = announcement(alone(2, 0.4))
    assert (told.round, told.mean) == (0, 0.4)
    names = [field.name for field in dataclasses.fields(told)]
    assert names == ["features", "raw", "mixture", "history"]
    assert not hasattr(told, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.raw = 0.1  # type: ignore[misc]


class Reader(Adversary):
    """Keeps copies of what the history says, round by round."""

    def __init__(self) -> None:
        self.read: list[dict[str, Any]] = []

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        past = announcement.history
        names = ("raw", "mean", "forecast", "outcomes", "counts", "ones", "gaps")
        self.read.append({name: np.array(getattr(past, name)) for name in names})
        return announcement.round % 2


def test_the_history_is_the_rounds_before_and_nothing_else() -> None:
    reader = Reader()
    record = play(recalibrator(), "uniform", reader, 12)
    for t, past in enumerate(reader.read):
        assert past["raw"].tolist() == record.raw[:t].tolist()
        assert past["mean"].tolist() == record.mean[:t].tolist()
        assert past["forecast"].tolist() == record.forecast[:t].tolist()
        assert past["outcomes"].tolist() == record.outcomes[:t].tolist()
        values, ones = record.forecast[:t], record.outcomes[:t]
        grid = Grid("endpoints", 5).values
        assert past["counts"].tolist() == [(values == v).sum() for v in grid]
        assert past["ones"].tolist() == [ones[values == v].sum() for v in grid]
        np.testing.assert_allclose(
            past["gaps"], [(ones - v)[values == v].sum() for v in grid], atol=1e-12
        )


def test_weights_of_an_earlier_mixture_do_not_stay_on_the_board() -> None:
    book = Book(Grid("endpoints", 2), rounds=2)
    book.add(0.5, alone(1, 0.5), 1, 1)
    book.add(0.5, Mixture((0, 2), (0.25, 0.75), (0.0, 1.0)), 2, 1)
    sheet = book.board.view(np.float64)
    assert tables(sheet, games.WEIGHT).tolist() == [0.25, 1.0, 0.75]


def test_the_history_is_read_only() -> None:
    book = Book(Grid("endpoints", 5), 3)
    book.add(0.2, alone(1, 0.2), 1, 1)
    history = History(book)
    for array in (history.raw, history.mean, history.outcomes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        history.rounds = 0  # type: ignore[misc]


# ----------------------------------------------------------------------------- adversaries


@st.composite
def boards(draw: st.DrawFn) -> tuple[Grid, list[int], list[int], Mixture]:
    grid = Grid(draw(st.sampled_from(GRIDS)), draw(st.integers(2, 8)))
    counts = [draw(st.integers(0, 6)) for _ in range(grid.cells)]
    ones = [draw(st.integers(0, n)) for n in counts]
    low = draw(st.integers(0, grid.cells - 2))
    weight = draw(st.integers(1, 15)) / 16
    pair = tuple(grid.values[low : low + 2].tolist())
    return grid, counts, ones, Mixture((low, low + 1), (weight, 1.0 - weight), pair)


@given(boards(), st.sampled_from([1, 2]))
def test_the_greedy_one_chooses_the_outcome_with_the_larger_expected_error(
    board: Any, power: int
) -> None:
    grid, counts, ones, mixture = board
    told = announcement(mixture, counts, ones, grid=grid)
    zero, one = (naive.expected_error(counts, ones, grid, mixture, y, power) for y in (0, 1))
    # Weights are multiples of 1/16 and gaps are whole numbers: only quotients are rounded.
    if power == 1 or abs(one - zero) > Fraction(1, 10**9):
        assert GreedyCalibration(power).choose(told, NOBODY) == int(one >= zero)


@given(boards())
def test_the_sign_preserving_one_stays_where_most_gaps_cannot_shrink(board: Any) -> None:
    grid, counts, ones, mixture = board
    told = announcement(mixture, counts, ones, grid=grid)
    gaps = [
        y - n * Fraction(k, grid.denominator)
        for n, y, k in zip(counts, ones, grid.numerators, strict=True)
    ]
    expected = naive.refuge(gaps, grid.values.tolist())
    chosen = [SignPreserving().choose(told, Coins(11, t)) for t in range(50)]
    assert chosen == [int(Coins(11, t)[0] < expected) for t in range(50)]


def test_signs_that_are_sorted_are_all_kept() -> None:
    gaps = [Fraction(2), Fraction(1), Fraction(0), Fraction(-1), Fraction(-3)]
    assert naive.refuge(gaps, [0.0, 0.25, 0.5, 0.75, 1.0]) == 0.5
    assert naive.kept(gaps, 2) == naive.kept(gaps, 3) == 7


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_greedy_against_accuracy_is_the_larger_expected_regret(raw: float, weight: float) -> None:
    mixture = Mixture((2, 3), (weight, 1.0 - weight), (0.4, 0.6))
    told = announcement(mixture, raw=raw)

    def regret(y: int) -> float:
        draw = weight * (y - 0.4) ** 2 + (1.0 - weight) * (y - 0.6) ** 2
        return draw - (y - raw) ** 2

    if abs(regret(1) - regret(0)) > 1e-12:
        assert GreedyAccuracy().choose(told, NOBODY) == int(regret(1) > regret(0))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_greedy_against_the_loss_alone_is_the_paper_s_adversary(raw: float, weight: float) -> None:
    told = announcement(Mixture((2, 3), (weight, 1.0 - weight), (0.4, 0.6)), raw=raw)
    assert GreedyAccuracy("loss").choose(told, NOBODY) == Threshold().choose(told, NOBODY)


def test_the_threshold_is_on_the_mean_and_a_tie_gives_one() -> None:
    assert Threshold(0.4).choose(announcement(alone(2, 0.4)), NOBODY) == 1
    assert Threshold(0.4).choose(announcement(alone(3, 0.6)), NOBODY) == 0
    wide = Mixture((0, 5), (0.75, 0.25), (0.0, 1.0))
    assert Threshold(0.4).choose(announcement(wide), NOBODY) == 1


def outcomes_of(adversary: Adversary, rounds: int, seed: int = 5) -> list[int]:
    return play(recalibrator(), "constant", adversary, rounds, seed=seed).outcomes.tolist()


def test_a_pattern_repeats() -> None:
    assert outcomes_of(Periodic((0, 1, 1)), 8) == [0, 1, 1, 0, 1, 1, 0, 1]
    assert outcomes_of(Periodic((1,) * 61 + (0,)), 63)[60:] == [1, 0, 1]


def test_a_bernoulli_stream_has_its_probability() -> None:
    assert sum(outcomes_of(Bernoulli(0.0), 40)) == 0
    assert sum(outcomes_of(Bernoulli(1.0), 40)) == 40
    assert abs(sum(outcomes_of(Bernoulli(0.3), 2000)) - 600) < 6 * np.sqrt(2000 * 0.21)


def test_a_switching_stream_jumps() -> None:
    assert outcomes_of(Switching(low=0.0, high=1.0, length=3), 8) == [0, 0, 0, 1, 1, 1, 0, 0]


def chances(adversary: Adversary, rounds: list[int]) -> list[float]:
    """The chance of outcome 1 in each round, from many keys."""
    keys = range(0, 4000 << 20, 1 << 20)
    told = announcement(alone(2, 0.4))
    return [float(np.mean([adversary.choose(told, Coins(k, t)) for k in keys])) for t in rounds]


def test_a_drifting_stream_rises_and_falls_again() -> None:
    low, rising, high, falling = chances(Drifting(0.2, 0.8, length=8), [0, 2, 4, 6])
    expected = [0.2, 0.5, 0.8, 0.5]
    np.testing.assert_allclose([low, rising, high, falling], expected, atol=6 * 0.5 / 4000**0.5)


def test_oblivious_streams_reveal_the_outcome_to_come() -> None:
    for adversary in (Bernoulli(0.4), Periodic(), Drifting(length=5), Switching(length=5)):
        record = play(recalibrator(), Informed(0.0, 1.0), adversary, 60)
        assert record.raw.tolist() == record.outcomes.tolist()


def test_the_informed_forecaster_of_the_paper_says_three_or_seven_tenths() -> None:
    record = play(recalibrator(), "informed", "bernoulli", 100)
    assert record.raw.tolist() == [0.7 if y else 0.3 for y in record.outcomes]


def test_noisy_raw_forecasts_are_near_a_probability_that_is_right() -> None:
    hidden = play(recalibrator(), Informed(0.0, 1.0), Noisy(0.0), 2000, seed=2)
    blurred = play(recalibrator(), Informed(0.0, 1.0), Noisy(0.2), 2000, seed=2)
    assert hidden.outcomes.tolist() == blurred.outcomes.tolist()
    assert 0.15 < np.abs(blurred.raw - hidden.raw).max() <= 0.2
    assert (blurred.raw.min(), blurred.raw.max()) == (0.0, 1.0)
    slope = np.polyfit(hidden.raw, hidden.outcomes, 1)
    np.testing.assert_allclose(slope, [1.0, 0.0], atol=0.15)


def test_adaptive_adversaries_reveal_nothing() -> None:
    for adversary in (Threshold(), GreedyAccuracy(), GreedyCalibration(), SignPreserving()):
        assert adversary.reveal(NOBODY) == ()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Bernoulli(1.5), "probability must be a number in [0, 1], got 1.5"),
        (lambda: Threshold(-1), "level must be a number in [0, 1], got -1"),
        (lambda: Periodic(()), "pattern must be from 1 to 62 outcomes, got ()"),
        (lambda: Periodic((0, 2)), "pattern must be 0 or 1, got 2"),
        (lambda: Drifting(low=2), "low must be a number in [0, 1], got 2"),
        (lambda: Switching(length=0),
         f"length must be a whole number from 1 to {1 << 62}, got 0"),
        (lambda: Noisy(3.0), "noise must be a number in [0, 1], got 3.0"),
        (lambda: GreedyAccuracy("fame"),
         "aim must be one of 'regret', 'loss', got 'fame'"),
        (lambda: GreedyCalibration(3), "power must be a whole number from 1 to 2, got 3"),
        (lambda: Linear(weights=(float("nan"),)), "weights must be a finite number, got nan"),
        (lambda: Linear(weights=(1.0,) * 64), "weights must be fewer than 64, got 64"),
        (lambda: Constant(-0.1), "value must be a number in [0, 1], got -0.1"),
        (lambda: Noise(9), "probability must be a number in [0, 1], got 9"),
        (lambda: Informed(high=1.1), "high must be a number in [0, 1], got 1.1"),
        (lambda: Logistic(step=0), "step must be a finite number above 0, got 0"),
    ],
)  # fmt: skip
def test_bad_parameters_raise_one_sentence(make: Any, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize("name", adversaries.names())
def test_every_adversary_is_frozen_named_and_plays(name: str) -> None:
    kind = adversaries.get(name)
    adversary = kind()
    assert (adversary.name, hash(adversary)) == (name, hash(kind()))
    assert adversary == kind()
    record = play(recalibrator(), "uniform", adversary, 30)
    assert set(record.outcomes.tolist()) <= {0, 1}


def first_line(kind: type) -> str:
    return (kind.__doc__ or "").splitlines()[0].replace("``", "`")


def test_the_documentation_lists_every_adversary_and_forecaster() -> None:
    page = (DOCS / "theory" / "adversaries.md").read_text()
    rows = [
        f"| `{name}` | {adversaries.get(name).sees} | {first_line(adversaries.get(name))} |"
        for name in adversaries.names()
    ]
    rows += [f"| `{name}` | {first_line(forecasters.get(name))} |" for name in forecasters.names()]
    assert [row for row in rows if row not in page] == []


# ----------------------------------------------------------------------------- forecasters


def test_constant_uniform_and_noise_say_what_they_are() -> None:
    said = {
        name: play(recalibrator(), name, "threshold", 400).raw
        for name in ("constant", "uniform", "noise")
    }
    assert set(said["constant"]) == {0.5}
    assert set(said["noise"]) == {0.0, 1.0}
    assert abs(said["noise"].mean() - 0.5) < 6 * 0.5 / 20
    assert len(set(said["uniform"])) == 400
    assert abs(said["uniform"].mean() - 0.5) < 6 * 0.289 / 20


def test_the_learner_learns() -> None:
    record = play(recalibrator(), Logistic(0.2), Linear((3.0, -2.0)), 1500)
    losses = record.running_loss("raw")
    late = (1500 * losses[-1] - 500 * losses[499]) / 1000
    assert losses[49] > 0.17
    assert late < 0.15


def test_the_learner_s_state_is_never_changed_in_place() -> None:
    rule = Logistic()
    state = rule.learn(rule.start(), (1.0,), 1)
    kept = state.copy()
    rule.learn(state, (1.0,), 0)
    assert state.tolist() == kept.tolist()


def test_the_learner_needs_features_of_one_length() -> None:
    rule = Logistic()
    state = rule.learn(rule.start(), (1.0,), 1)
    with pytest.raises(InvalidInput, match=r"^features must be 1 numbers, got \(1\.0, 2\.0\)$"):
        rule.forecast(state, (1.0, 2.0), NOBODY)


def test_the_learner_without_features_learns_the_base_rate() -> None:
    record = play(recalibrator(), Logistic(0.05), Says(1), 300)
    assert record.raw[-1] > 0.9


# ---------------------------------------------------------------------------------- record


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=15),
)
def test_running_errors_are_the_errors_of_each_prefix(rounds: list[tuple[int, int]]) -> None:
    forecast = np.array([k / 4 for k, _ in rounds])
    outcomes = np.array([y for _, y in rounds], np.uint8)
    record = Record(forecast, forecast, forecast, outcomes, 0.0, 0.0, None)  # type: ignore[arg-type]
    for t in range(1, len(rounds) + 1):
        prefix = forecast[:t], outcomes[:t]
        for power, running in ((1, record.running_c1), (2, record.running_c2)):
            expected = calibration_error(*prefix, power=power)
            assert running[t - 1] == pytest.approx(expected, abs=1e-12)
        assert record.running_loss()[t - 1] == pytest.approx(
            float(np.mean((prefix[1] - prefix[0]) ** 2)), abs=1e-12
        )


def test_the_record_agrees_with_the_certificate() -> None:
    record = play(recalibrator(), "uniform", "greedy_calibration", 200)
    certificate = record.certificate
    assert record.c1 == pytest.approx(certificate.c1, abs=1e-12)
    assert record.c2 == pytest.approx(certificate.c2, abs=1e-12)
    assert record.loss == pytest.approx(certificate.loss, abs=1e-12)
    assert record.raw_loss == pytest.approx(certificate.raw_loss, abs=1e-12)
    assert certificate.rounds == len(record) == 200


def test_the_errors_of_the_mixtures_are_those_of_the_metrics() -> None:
    from calibrant.metrics import mixture_calibration_error

    told: list[Mixture] = []

    class Keeps(Adversary):
        def choose(self, announcement: Announcement, coins: Coins) -> int:
            told.append(announcement.mixture)
            return GreedyCalibration().choose(announcement, coins)

    record = play(recalibrator("exponential_regret"), "uniform", Keeps(), 80)
    weights = np.zeros((80, 6))
    for row, mixture in zip(weights, told, strict=True):
        row[list(mixture.indices)] = mixture.weights
    grid = Grid("endpoints", 5).values
    for power, measured in ((1, record.pseudo_c1), (2, record.pseudo_c2)):
        expected = mixture_calibration_error(grid, weights, record.outcomes, power=power)
        assert measured == pytest.approx(expected, abs=1e-12)


def test_a_record_has_a_mean_loss_and_says_what_it_is() -> None:
    record = play(recalibrator(), "uniform", "bernoulli", 100)
    assert record.mean_loss == pytest.approx(np.mean((record.outcomes - record.mean) ** 2))
    assert str(record) == (
        f"100 rounds: C1 {record.c1:.5f}, C2 {record.c2:.6f}, squared loss {record.loss:.5f}, "
        f"raw {record.raw_loss:.5f}"
    )
    assert record.running_loss("raw", "log")[-1] > 0.0
    with pytest.raises(InvalidInput, match="series must be one of 'forecast', 'mean', 'raw'"):
        record.running_loss("draw")
