"""Alarms over groups and keys: one error rate for all, and silence while a model learns."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Recalibrator, Table, load
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType, UnknownName
from calibrant.groups import GroupRecalibrator, Period
from calibrant.groups.spec import text_words
from calibrant.monitor import Alarm, GroupWatch, Monitor
from calibrant.monitor.group_watch import share

pytestmark = pytest.mark.base

KEYS = ["a", "b", 3, Period("month", 2)]
rows = st.one_of(st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=3))
rounds_of_keys = st.lists(st.tuples(rows, st.floats(0.0, 1.0), st.integers(0, 1)), max_size=40)
wild = st.lists(st.tuples(rows, st.floats(0.01, 0.1), st.integers(0, 1)), max_size=40)
OPTIONS: dict[str, Any] = {"alpha": 0.5, "buckets": 2}


def followed(rounds: Any, **options: Any) -> GroupWatch:
    watch = GroupWatch(**(OPTIONS | options))
    for key, forecast, outcome in rounds:
        watch.update(key, forecast, outcome)
    return watch


def listed(key: Any) -> list[Any]:
    """Return the groups of a round, each once."""
    return list(dict.fromkeys(key)) if isinstance(key, list) else [key]


# The obvious version: a lone monitor for each key, made of the rounds of that key.


def parts_of_alpha(names: list[Any], declared: list[Any]) -> dict[Any, float]:
    """Return the part of each key, in the order in which they appeared."""
    new = [name for name in names if name not in declared]
    blocks = ((k, 2**k) for k in itertools.count())
    shares = itertools.chain.from_iterable(
        [Fraction(1, (k + 1) * (k + 2) * size)] * size for k, size in blocks
    )
    half = Fraction(1, 2) if declared else Fraction(1)
    parts = {name: half * part for name, part in zip(new, shares, strict=False)}
    return parts | {name: half / len(declared) for name in declared}


def alarms_one_by_one(rounds: Any, learning: int, declared: list[Any]) -> list[tuple[Any, ...]]:
    met = [name for key, _, _ in rounds for name in listed(key)]
    names = list(dict.fromkeys([*declared, *met]))
    found = []
    for name, part in parts_of_alpha(names, declared).items():
        own = [(t, p, y) for t, (key, p, y) in enumerate(rounds, 1) if name in listed(key)]
        lone = Monitor(0.5 * float(part), buckets=2)
        for _, forecast, outcome in own[learning:]:
            lone.update(forecast, outcome)
        if lone.alarm_after:
            after = learning + lone.alarm_after
            found.append((own[after - 1][0], name, after, learning + lone.since))
    return found


@given(wild, st.integers(0, 4), st.sampled_from([[], ["b"], ["z", "b", 3]]))
def test_alarms_are_those_of_lone_monitors_with_their_parts_of_alpha(
    rounds: Any, learning: int, declared: list[Any]
) -> None:
    watch = followed(rounds, learning=learning, keys=declared)
    found = [(alarm.round, alarm.key, alarm.after, alarm.since) for alarm in watch.alarms]
    wanted = alarms_one_by_one(rounds, learning, declared)
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert [alarm.round for alarm in watch.alarms] == sorted(place for place, *_ in wanted)
    assert watch.alarm == bool(wanted)


def test_the_parts_of_all_newcomers_add_up_to_one() -> None:
    for k in range(1, 12):
        parts = [Fraction(share(number)).limit_denominator(10**6) for number in range(1, 2**k)]
        assert sum(parts) == 1 - Fraction(1, k + 1)


# The guarantee, executed: every history of a few rounds, with its probability.

KeyOf = Callable[[tuple[int, ...]], Any]


def histories(rounds: int, chance: float) -> Iterator[tuple[tuple[int, ...], float]]:
    for outcomes in itertools.product((0, 1), repeat=rounds):
        ones = sum(outcomes)
        yield outcomes, chance**ones * (1 - chance) ** (rounds - ones)


def alternating(history: tuple[int, ...]) -> Any:
    return "ab"[len(history) % 2]


def by_what_happened(history: tuple[int, ...]) -> Any:
    """Groups that depend on all outcomes before, overlap, and become more."""
    return ["all", f"ones {sum(history)}"]


def chased(history: tuple[int, ...]) -> Any:
    """A new key after every 0, so that whoever loses tries again under another name."""
    return len(history) - sum(history)


KEY_RULES = [alternating, by_what_happened, chased]


@pytest.mark.parametrize(
    ("key_of", "learning"), [*((rule, 0) for rule in KEY_RULES), (alternating, 1)]
)
def test_any_alarm_rings_with_probability_at_most_alpha(key_of: KeyOf, learning: int) -> None:
    rung = 0.0
    for outcomes, weight in histories(7, 0.1):
        rounds = [(key_of(outcomes[:t]), 0.1, y) for t, y in enumerate(outcomes)]
        rung += weight * followed(rounds, learning=learning, buckets=1).alarm
    assert 0.0 < rung <= 0.5


@pytest.mark.parametrize("declared", [(), ("all", "b")])
@pytest.mark.parametrize("key_of", KEY_RULES)
def test_the_mean_wealth_of_all_keys_by_their_parts_is_what_they_began_with(
    key_of: KeyOf, declared: Any
) -> None:
    won = 0.0
    for outcomes, weight in histories(5, 0.3):
        rounds = [(key_of(outcomes[:t]), 0.3, y) for t, y in enumerate(outcomes)]
        watch = followed(rounds, keys=declared)
        monitors = [watch[key] for key in watch.keys]
        assert sum(monitor.alpha for monitor in monitors) <= 0.5
        won += weight * sum(one.alpha / 0.5 * (one.evidence.now - 1.0) for one in monitors)
    assert won == pytest.approx(0.0, abs=1e-12)


def test_a_wrong_group_moves_that_mean() -> None:
    won = 0.0
    for outcomes, weight in histories(5, 0.4):
        watch = followed([("a", 0.3, y) for y in outcomes])
        won += weight * (watch["a"].evidence.now - 1.0)
    assert won > 0.01


@pytest.mark.slow
def test_many_groups_for_long_keep_the_false_alarms_below_alpha() -> None:
    rung = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        forecasts = rng.uniform(0.02, 0.3, 200)
        watch = GroupWatch(0.2, buckets=2)
        watch.update_many(rng.integers(0, 10, 200), forecasts, rng.random(200) < forecasts)
        rung += watch.alarm
    # Binomial(50, 0.2) is above 24 with probability 3e-6.
    assert rung <= 24


# Power.


def test_the_group_that_is_off_is_named_and_no_other() -> None:
    rng = np.random.default_rng(5)
    forecasts, keys = rng.uniform(0.1, 0.9, 3000), rng.integers(0, 5, 3000)
    wrong = (keys == 3) & (np.arange(3000) >= 1500)
    outcomes = rng.random(3000) < np.where(wrong, 1.0 - forecasts, forecasts)
    watch = GroupWatch(0.01)
    watch.update_many(keys, forecasts, outcomes)
    (alarm,) = watch.alarms
    assert alarm.key == 3
    assert 1500 < alarm.round < 2200
    assert np.flatnonzero(keys == 3)[alarm.after - 1] + 1 == alarm.round
    assert alarm.since == pytest.approx((keys[:1500] == 3).sum(), abs=20)
    assert watch[3].alarm_after == alarm.after


def test_names_known_beforehand_ring_sooner_than_late_newcomers() -> None:
    rounds = [(key, 0.8, 0) for _ in range(40) for key in range(30)]
    late, known = followed(rounds, alpha=0.01), followed(rounds, alpha=0.01, keys=range(30))
    assert len(late.alarms) == len(known.alarms) == 30
    assert known.alarms[-1].after < late.alarms[-1].after


def learned(seed: int, rounds: int) -> tuple[Any, Any, Any]:
    """Means of a recalibrator whose raw forecasts are far off, in each group in its own way."""
    rng = np.random.default_rng(seed)
    raw, groups = rng.uniform(0.02, 0.98, rounds), rng.choice(["few", "many"], rounds, p=[0.3, 0.7])
    odds = (raw / (1.0 - raw)) ** 0.4 * np.where(groups == "few", 1.5, 1.0)
    outcomes = rng.random(rounds) < odds / (1.0 + odds)
    return groups, GroupRecalibrator(seed=seed).replay(raw, outcomes, groups=groups).mean, outcomes


def test_a_watch_is_silent_while_a_model_learns_and_not_for_ever() -> None:
    hasty = silent = 0
    for seed in range(4):
        rounds = learned(seed, 1500)
        watch = GroupWatch(0.05)
        watch.update_many(*rounds)
        hasty += watch.alarm
        watch = GroupWatch(0.05, learning=300, tolerance=0.02)
        watch.update_many(*rounds)
        silent += not watch.alarm
        watch.update_many(["few"] * 200, [0.9] * 200, [0, 1] * 100)
        assert [alarm.key for alarm in watch.alarms] == ["few"]
    assert hasty >= 2
    assert silent == 4


# Tickets.


def test_tickets_of_groups_tables_and_lone_streams_are_taken() -> None:
    groups, table, lone = GroupRecalibrator(seed=1), Table(Recalibrator(), seed=1), Recalibrator()
    tickets = [
        groups.observe(groups.forecast(0.7, groups=["x", "y"]), 1),
        table.observe(table.forecast("z", 0.7), 0),
    ]
    watch = GroupWatch()
    for ticket in tickets:
        watch.settle(ticket)
    watch.settle(tickets[0], key="own")
    named = lone.observe(lone.forecast(0.2), 1)
    watch.settle(named, key="x")
    first, second = (ticket.mean for ticket in tickets)
    told = [(["x", "y"], first, 1), ("z", second, 0), ("own", first, 1), ("x", named.mean, 1)]
    assert watch == followed(told, alpha=0.01, buckets=10)
    with pytest.raises(InvalidType, match="key must be given with a ticket that names none, got T"):
        watch.settle(named)
    with pytest.raises(InvalidInput, match="ticket must be closed, got Ticket"):
        watch.settle(lone.forecast(0.3), key="x")
    assert watch.rounds == 4


# Loop and batch, copies and bytes, restarts.


@given(rounds_of_keys, st.integers(0, 40), st.integers(0, 5), st.integers(1, 2))
@settings(max_examples=50)
def test_cut_stored_and_resumed_in_a_batch_it_goes_on_the_same(
    rounds: Any, cut: int, learning: int, lag: int
) -> None:
    options: dict[str, Any] = {"learning": learning, "lag": lag, "keys": ["b", "never"]}
    whole, half = followed(rounds, **options), followed(rounds[:cut], **options)
    left = rounds[cut:]
    for restored in (
        GroupWatch.from_bytes(half.to_bytes()),
        GroupWatch.from_dict(half.to_dict()),
        pickle.loads(pickle.dumps(half)),
        half.copy(),
        load(half.to_bytes()),
    ):
        assert restored == half
        restored.update_many([key for key, _, _ in left], *zip_of(left))
        assert restored == whole
        assert restored.alarms == whole.alarms
        assert repr(restored) == repr(whole)


def zip_of(rounds: Any) -> tuple[list[float], list[int]]:
    return [p for _, p, _ in rounds], [y for _, _, y in rounds]


def test_a_key_that_begins_anew_is_the_next_newcomer() -> None:
    watch = followed([(key, 0.1, 1) for _ in range(30) for key in "ab"], keys=["b"])
    assert {alarm.key for alarm in watch.alarms} == {"a", "b"}
    assert [watch[key].alpha for key in "ba"] == [0.25, 0.125]
    watch.restart("b")
    assert [alarm.key for alarm in watch.alarms] == ["a"]
    assert watch["b"].alpha == pytest.approx(0.25 / 12)
    watch.restart("b")
    watch.update("c", 0.5, 1)
    assert [round(0.25 / watch[key].alpha) for key in "bc"] == [12, 48]
    watch.update_many(["b"] * 30, [0.1] * 30, [1] * 30)
    assert watch.alarms[-1].key == "b"
    assert watch.alarms[-1].round > 61
    assert watch.alarms[-1].after > 30
    assert GroupWatch.from_bytes(watch.to_bytes()) == watch


def test_all_may_begin_anew() -> None:
    watch = followed([("a", 0.1, 1)] * 30 + [("b", 0.5, 1)], learning=3)
    watch.restart("a")
    watch.restart()
    assert (watch.alarms, watch.rounds, watch.keys) == ((), 31, ("a", "b"))
    assert [watch[key].alpha for key in "ab"] == [0.25, pytest.approx(0.5 / 12)]
    # What is learned stays learned: of "a" every round counts, of "b" all but the next two.
    watch.update_many(["a", "b"] * 2, [0.5] * 4, [1] * 4)
    assert [sum(row.rounds for row in watch[key].table()) for key in "ab"] == [2, 0]


def test_keys_can_be_asked_for() -> None:
    watch = followed([("a", 0.5, 1), ([], 0.5, 1), (None, 0.5, 0)], keys=["z"])
    assert (watch.keys, len(watch), watch.rounds) == (("z", "a"), 2, 3)
    assert "a" in watch
    assert "b" not in watch
    assert watch.alpha == 0.5
    watch["a"].update(0.5, 1)
    assert watch["a"].rounds == 1
    assert repr(watch) == "GroupWatch(alpha=0.5, keys=2, rounds=3, no alarm)"
    assert repr(followed([("a", 0.01, 1)] * 9)).endswith("rounds=9, alarms: 'a')")
    assert followed([("a", 0.01, 1)] * 9).alarms == (Alarm("a", 1, 1, 0),)


# Bad input.

BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"alpha": 0.6}, "alpha must be a number from 1e-100 to 0.5, got 0.6"),
    ({"alpha": 1e-70}, "alpha must be a number from 1e-60 to 0.5, got 1e-70"),
    ({"learning": -1}, "learning must be a whole number of at least 0, got -1"),
    ({"max_keys": 0}, "max_keys must be a whole number of at least 1, got 0"),
    ({"buckets": 0}, "buckets must be a whole number from 1 to 1000, got 0"),
    ({"keys": [["a", "b"]]}, "key must be one name, got ['a', 'b']"),
    ({"keys": ["a", "b"], "max_keys": 1}, "keys must be at most 1, got another, 'b'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_SETTINGS)
def test_bad_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        GroupWatch(**options)
    assert str(caught.value) == message


BAD_ROUNDS: list[tuple[Any, Any, Any, type[Exception], str]] = [
    ("a", 1.5, 1, InvalidInput, "forecast must be a number in [0, 1], got 1.5"),
    ("a", math.nan, 1, InvalidInput, "forecast must be a number in [0, 1], got nan"),
    ("a", 0.5, 2, InvalidInput, "outcome must be 0 or 1, got 2"),
    (0.5, 0.5, 1, InvalidType, "groups must be names, a mask or a mapping, got 0.5"),
    ([None], 0.5, 1, InvalidType, "group must be a string, a whole number or a Period, got None"),
    (["a", "c"], 0.5, 1, InvalidInput, "keys must be at most 2, got another, 'c'"),
]


@pytest.mark.parametrize(("key", "forecast", "outcome", "error", "message"), BAD_ROUNDS)
def test_bad_rounds_are_named_and_change_nothing(
    key: Any, forecast: Any, outcome: Any, error: type[Exception], message: str
) -> None:
    watch = followed([("a", 0.4, 1), ("b", 0.4, 1)], max_keys=2)
    before = watch.to_bytes()
    with pytest.raises(error) as caught:
        watch.update(key, forecast, outcome)
    assert str(caught.value) == message
    with pytest.raises(error):
        watch.update_many(["a", key], [0.5, forecast], [1, outcome])
    assert watch.to_bytes() == before


def test_columns_of_different_lengths_and_unknown_keys_are_refused() -> None:
    watch = followed([("a", 0.4, 1)])
    with pytest.raises(InvalidInput, match="forecasts has 2, outcomes has 1"):
        watch.update_many(["a", "a"], [0.5, 0.5], [1])
    with pytest.raises(InvalidInput, match="rounds has 2, groups has 1"):
        watch.update_many(["a"], [0.5, 0.5], [1, 0])
    with pytest.raises(InvalidType, match="groups must have one entry for each round, got 'ab'"):
        watch.update_many("ab", [0.5, 0.5], [1, 0])
    for ask in (lambda: watch["b"], lambda: watch.restart("b")):
        with pytest.raises(UnknownName, match="key must be one of the 1 watched, got 'b'"):
            ask()


Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def counted(at: int, value: int) -> Change:
    """Set a count: rounds, newcomers, and of each key number, rounds, alarm and its monitor's."""

    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["counts"][at] = value

    return change


def named(*names: Any) -> Change:
    return lambda _, arrays: arrays.update(names=text_words(list(names)))


DAMAGE: dict[str, Change] = {
    "no names": lambda settings, arrays: arrays.pop("names"),
    "no alpha": lambda settings, arrays: settings.pop("alpha"),
    "another alpha": lambda settings, arrays: settings.update(alpha=0.3),
    "no stakes": lambda settings, arrays: settings.pop("stakes"),
    "other keys": lambda settings, arrays: settings.update(keys=["x"]),
    "fewer keys at most": lambda settings, arrays: settings.update(max_keys=1),
    "a short chain": lambda settings, arrays: arrays.update(chains=arrays["chains"][:-1]),
    "one name": named("b"),
    "one name twice": named("b", "b"),
    "a name that is none": named("b", 0.5),
    "names that are no list": lambda settings, arrays: arrays.update(names=text_words(3)),
    "fewer rounds than a key has": counted(0, 0),
    "no newcomers": counted(1, 0),
    "a newcomer without a number": counted(7, 0),
    "a key with too large a number": counted(7, 3),
    "a key with more rounds": counted(3, 2),
    "a key that rang": counted(4, 1),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_bytes_that_are_no_watch_of_groups_are_refused(name: str) -> None:
    document = followed([("b", 0.3, 1), ("a", 0.4, 0)], keys=["b"])._document()
    arrays = {name: words.copy() for name, words in document.arrays.items()}
    kept = dict(document.settings)
    DAMAGE[name](kept, arrays)
    with pytest.raises(CorruptState, match="state must be of a "):
        GroupWatch.from_bytes(Document("group_watch", kept, arrays).to_bytes())


def test_a_key_that_was_known_beforehand_is_never_missing() -> None:
    watch = followed([("b", 0.3, 1), ("a", 0.4, 0)], keys=["b"])
    watch.restart("b")
    document = watch._document()
    assert GroupWatch.from_bytes(document.to_bytes()) == watch
    other = document.arrays | {"names": text_words(["c", "a"])}
    with pytest.raises(CorruptState, match="no seat for a key that was known beforehand"):
        GroupWatch.from_bytes(Document("group_watch", document.settings, other).to_bytes())


def test_two_keys_never_share_a_number() -> None:
    document = followed([("b", 0.3, 1), ("a", 0.4, 0)])._document()
    document.arrays["counts"][2] = 2
    with pytest.raises(CorruptState, match="state must be of a "):
        GroupWatch.from_bytes(document.to_bytes())


def test_a_restart_that_is_interrupted_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = followed([("a", 0.2, 1), ("b", 0.3, 0), ("c", 0.4, 1)])
    before, seated = watch.to_bytes(), watch._seated

    def stops(number: int, rounds: int) -> Any:
        if number == 2:
            raise KeyboardInterrupt
        return seated(number, rounds)

    monkeypatch.setattr(GroupWatch, "_seated", lambda self, *told: stops(*told))
    with pytest.raises(KeyboardInterrupt):
        watch.restart()
    monkeypatch.undo()
    assert watch.to_bytes() == before


def test_rounds_that_are_interrupted_leave_no_key_as_if_they_had_been(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = followed([("a", 0.2, 1), ("b", 0.3, 0), ("a", 0.4, 1)], learning=1)
    before, follow = watch.to_bytes(), Monitor._follow

    def stops(monitor: Monitor, *told: Any, **more: Any) -> None:
        follow(monitor, *told, **more)
        if len(told[0]) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Monitor, "_follow", stops)
    with pytest.raises(KeyboardInterrupt):
        watch.update_many(["a", "new", "b", "b"], [0.1, 0.5, 0.7, 0.9], [1, 0, 1, 1])
    monkeypatch.undo()
    assert watch.to_bytes() == before
    assert watch.keys == ("a", "b")
