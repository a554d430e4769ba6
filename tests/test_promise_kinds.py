"""What certificates of every kind promise of the run at hand."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from calibrant import bounds
from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.errors import InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator

CURVE = Distribution.normal(0.0, 1.0)


def number(rng: random.Random) -> tuple[Any, float, dict[str, Any]]:
    return CURVE, rng.gauss(0.3, 1.2), {}


def classes(rng: random.Random) -> tuple[Any, int, dict[str, Any]]:
    parts = [rng.random() + 0.01 for _ in range(3)]
    raw = [part / sum(parts) for part in parts]
    return raw, rng.choices(range(3), [part**2 for part in raw])[0], {}


def grouped(rng: random.Random) -> tuple[Any, int, dict[str, Any]]:
    raw = rng.random()
    names = [name for name in ("north", "old") if rng.random() < 0.7]
    return raw, int(rng.random() < raw**2), {"groups": names}


def whole(rng: random.Random) -> tuple[Any, int, dict[str, Any]]:
    raw, outcome, _ = grouped(rng)
    return raw, outcome, {"groups": "all"}


Case = tuple[Callable[[], Any], Callable[[random.Random], Any], int]
"""How a stream is made and fed, and after how many rounds something is promised."""
KINDS: dict[str, Case] = {
    "groups": (lambda: GroupRecalibrator(resolution=4, buckets=1, seed=1), grouped, 1500),
    "exponential groups": (
        lambda: GroupRecalibrator(
            form="exponential", horizon=20_000, resolution=4, buckets=1, seed=1
        ),
        whole,
        12_000,
    ),
    "mended": (
        lambda: ClassCalibrant(3, method="foster_hart", resolution=4, seed=1),
        classes,
        1500,
    ),
    "one vs rest": (
        lambda: OneVsRest(3, method="foster_hart", resolution=4, seed=1),
        classes,
        1500,
    ),
    "top label": (lambda: TopLabel(3, method="foster_hart", resolution=4, seed=1), classes, 3000),
    "one label": (
        lambda: TopLabel(3, method="foster_hart", conditional=False, resolution=4, seed=1),
        classes,
        1500,
    ),
    "simplex": (lambda: SimplexRecalibrator(3, resolution=4, cells=1, seed=1), classes, 1000),
    "mixed": (lambda: QuantileRecalibrator("mixed", 3, resolution=10, seed=1), number, 1000),
    "pit": (lambda: QuantileRecalibrator("pit", 3, resolution=10, seed=1), number, 1000),
    "tracker": (lambda: QuantileRecalibrator("tracker", 3, step=0.1, seed=1), number, 1000),
    "aci": (lambda: ConformalInterval("aci", step=0.1, scale=8.0, seed=1), number, 3000),
}
DRAWN = [name for name in KINDS if name not in ("tracker", "aci")]


@functools.cache
def played(name: str, rounds: int) -> Any:
    """Return a stream after so many rounds, of which tests only ask."""
    return play(name, rounds)


def play(name: str, rounds: int, seed: int = 1) -> Any:
    make, ask, _ = KINDS[name]
    rec, rng = make(), random.Random(seed)
    for _ in range(rounds):
        raw, outcome, more = ask(rng)
        raw = 0.0 if name == "aci" else raw
        rec.observe(rec.forecast(raw, **more), outcome)
    return rec


def limits(made: Any) -> list[float]:
    """Return every bound on this run that is quoted."""
    if hasattr(made, "parts"):
        found = [part.promised(name) for part in made.parts.values() for name in ("C1", "C2")]
    elif hasattr(made, "groups"):
        found = [row.sure for row in made.groups]
    elif hasattr(made, "levels"):
        found = [row.sure and row.sure.value for row in made.levels]
    else:
        found = [made.sure and float(made.sure)]
    return [value for value in found if value is not None]


@pytest.mark.parametrize("name", KINDS)
def test_before_the_first_round_nothing_is_promised(name: str) -> None:
    made = KINDS[name][0]().certificate()
    assert str(made).splitlines()[-1] == "  no rounds yet"
    assert "nan" not in str(made)
    assert (made.holds, limits(made)) == (None, [])


@pytest.mark.parametrize("name", KINDS)
def test_a_few_rounds_are_too_early(name: str) -> None:
    made = play(name, 3).certificate()
    assert made.holds is None
    assert limits(made) == []
    lines = str(made).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("  too early to promise anything; from about round ")
    assert "<=" not in made.details() or "estimate" in made.details()


@pytest.mark.parametrize("name", KINDS)
def test_later_something_is_promised_and_kept(name: str) -> None:
    rounds = KINDS[name][2]
    made = played(name, rounds).certificate()
    assert limits(made)
    assert all(value < 2.0 for value in limits(made))
    assert made.holds is True
    lines = str(made).splitlines()
    # Three lines, and one more where a seed was given.
    assert [line.split()[0] for line in lines[3:]] in ([], ["seeded:"])
    assert lines[2].startswith("  promised ")
    assert lines[2].endswith("; kept")
    assert made.details().startswith(str(made))
    if hasattr(made, "to_dict"):
        assert json.loads(json.dumps(made.to_dict()))["holds"] is True


@pytest.mark.parametrize("name", KINDS)
def test_the_round_that_is_told_is_about_right(name: str) -> None:
    rounds = KINDS[name][2]
    made = play(name, 3).certificate()
    first = int(str(made).rsplit(" ", 2)[1])
    assert 3 < first <= 2 * rounds


@pytest.mark.parametrize("name", DRAWN)
def test_a_smaller_chance_to_fail_costs_more(name: str) -> None:
    rec = played(name, KINDS[name][2])
    often, seldom = (limits(rec.certificate(failure=chance)) for chance in (0.5, 0.05))
    assert len(often) >= len(seldom) > 0
    assert sum(often) / len(often) < sum(seldom) / len(seldom)


@pytest.mark.parametrize("name", KINDS)
def test_a_chance_to_fail_lies_between_0_and_1(name: str) -> None:
    with pytest.raises(InvalidInput, match="failure must be a number in"):
        play(name, 1).certificate(failure=0.0)


@pytest.mark.parametrize("name", ["tracker", "aci"])
def test_what_holds_for_any_outcomes_fails_with_no_probability(name: str) -> None:
    rec = played(name, KINDS[name][2])
    assert limits(rec.certificate(0.5)) == limits(rec.certificate(0.001))
    assert "promised for any outcomes whatsoever: " in str(rec.certificate())


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_sure_is_kept_in_almost_every_run(name: str) -> None:
    rounds = min(KINDS[name][2], 1500) // 3
    made = [play(name, rounds, seed).certificate(failure=0.2) for seed in range(5)]
    assert not any(each.holds is False for each in made)


@pytest.mark.parametrize("name", KINDS)
def test_tickets_without_an_outcome_are_told(name: str) -> None:
    rec = play(name, 5)
    raw, _, more = KINDS[name][1](random.Random(3))
    rec.expire(rec.forecast(0.0 if name == "aci" else raw, **more))
    head = str(rec.certificate()).splitlines()[0]
    assert "1 expired without an outcome; the rest is about rounds with one" in head


# What each is.


def test_groups_pay_for_every_group_of_a_round() -> None:
    rec = played("groups", 1500)
    made = rec.certificate(failure=0.1)
    extra = made.memberships - 1500
    squares = 1500 + extra * (1 + 2 + 1)
    j = math.ceil(math.log2(squares / 1500))
    excess = math.sqrt(2 * 1500 * 2**j * math.log((j + 1) * (j + 2) / 0.1))
    assert bounds.group_excess(1500, made.memberships, 3, 0.1) == pytest.approx(excess)
    for row in made.groups:
        assert row.sure == pytest.approx(row.bound + excess / row.rounds)


def test_late_groups_under_the_exponential_form_are_promised_nothing() -> None:
    rec = GroupRecalibrator(form="exponential", seed=1)
    first, second = rec.forecast(0.5, groups="a"), rec.forecast(0.5, groups="a")
    rec.observe(second, 1)
    rec.observe(first, 1)
    assert str(rec.certificate()).splitlines()[2] == "  no guarantee"


def test_squares_of_overlaps_are_largest_at_the_extremes() -> None:
    rng = random.Random(2)
    for _ in range(200):
        most, rounds = rng.randint(1, 6), rng.randint(1, 30)
        sizes = [rng.randint(1, most) for _ in range(rounds)]
        extra = sum(sizes) - rounds
        assert sum(size**2 for size in sizes) <= rounds + extra * (most + 1)


def test_every_class_has_its_share_of_the_chance_to_fail() -> None:
    rec = play("one vs rest", 600)
    for number, part in rec.certificate(failure=0.3).parts.items():
        assert part.failure == pytest.approx(0.1), number


def test_who_chooses_which_class_comes_first_chooses_the_rounds() -> None:
    rec = played("top label", 600)
    for part in rec.certificate(failure=0.3).parts.values():
        j = math.ceil(math.log2(part.rounds))
        assert part.failure == pytest.approx((0.1 / ((j + 1) * (j + 2))) ** 2 / 2)


def test_a_class_that_nothing_is_promised_of_counts_as_one() -> None:
    rec = played("top label", 600)
    made = rec.certificate()
    found = [part.promised("C2") for part in made.parts.values()]
    weights = [part.rounds for part in made.parts.values()]
    told = [1.0 if value is None else value for value in found]
    average = sum(w * v for w, v in zip(weights, told, strict=True)) / 600
    assert made.promised("C2") == (None if found == [None] * 3 else pytest.approx(average))


def test_classes_without_a_theorem_are_promised_nothing() -> None:
    rec = OneVsRest(3, method="running_mean", seed=1)
    rec.observe(rec.forecast([0.2, 0.3, 0.5]), 1)
    assert str(rec.certificate()).splitlines()[2] == "  no guarantee"
    assert rec.certificate().early is None


def test_vectors_pay_twice_what_numbers_do() -> None:
    made = played("simplex", 1000).certificate(failure=0.1)
    assert made.sure == pytest.approx(made.c2_bound + 2 * bounds.azuma(1000, 0.1))
    assert f"full C2 <= {made.c2_bound:.4g}" in made.details()


def test_late_vectors_are_promised_nothing() -> None:
    rec = SimplexRecalibrator(3, resolution=4, cells=1, seed=1)
    first, second = rec.forecast([0.2, 0.3, 0.5]), rec.forecast([0.2, 0.3, 0.5])
    rec.observe(second, 1)
    rec.observe(first, 1)
    made = rec.certificate()
    assert (made.sure, made.early) == (None, None)
    assert made.details().splitlines()[2:] == ["  no guarantee"]


def test_levels_share_the_chance_to_fail() -> None:
    rec = play("pit", 1000)
    made = rec.certificate(failure=0.3)
    assert made.failure == 0.3
    for row in made.levels:
        assert f"at least {1 - 0.3 / 3:g}" in row.sure.assumption


def test_a_level_cannot_be_missed_by_more_than_its_larger_side() -> None:
    made = play("tracker", 14).certificate()
    for row in made.levels:
        said = row.bound.value < max(row.level, 1 - row.level)
        assert (row.sure is not None) == said == (row.early is None)
