"""Secrets that are kept apart: a state without its secret goes on with it, and only with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator, Table, load
from calibrant.classes import ClassCalibrant, OneVsRest, SimplexRecalibrator, TopLabel
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput, InvalidType
from calibrant.groups import GroupRecalibrator
from calibrant.outcomes import ObservedOnly
from calibrant.recalibrate.secret import Secret, chosen_seed, secret_of
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator

SECRET = b"sixteen bytes, or more than that"
VECTORS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
NORMAL = [Distribution.normal(0.0, 1.0), Distribution.normal(1.0, 2.0)]

MAKERS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "recalibrator": (Recalibrator, [0.3, 0.8]),
    "calibrant": (Calibrant, [0.3, 0.8]),
    "safe": (lambda **told: Calibrant(raw_safe=0.1, **told), [0.3, 0.8]),
    "groups": (GroupRecalibrator, [0.3, 0.8]),
    "class-calibrant": (lambda **told: ClassCalibrant(3, **told), VECTORS),
    "one-vs-rest": (lambda **told: OneVsRest(3, **told), VECTORS),
    "top-label": (lambda **told: TopLabel(3, **told), VECTORS),
    "simplex": (lambda **told: SimplexRecalibrator(3, resolution=4, **told), VECTORS),
    "pit": (QuantileRecalibrator, NORMAL),
    "tracker": (lambda **told: QuantileRecalibrator("tracker", **told), NORMAL),
    "interval": (ConformalInterval, [0.3, 0.8]),
}


def played(model: Any, raws: list[Any], rounds: int = 30) -> list[dict[str, Any]]:
    """Play some rounds and leave one open; return all tickets as data."""
    tickets = [model.forecast(raws[0])]
    for k in range(rounds):
        tickets.append(model.forecast(raws[k % 2]))
        model.observe(tickets[-1], k % 3 % 2)
    return [ticket.to_dict() for ticket in tickets]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("form", ["bytes", "dict"])
def test_a_state_without_its_secret_goes_on_with_it(name: str, form: str) -> None:
    make, raws = MAKERS[name]
    model = make(secret=SECRET, key="a")
    played(model, raws)
    apart = getattr(model, f"to_{form}")(secret=False)
    again = load(apart, secret=SECRET, key="a")
    assert again == model
    assert getattr(again, f"to_{form}")(secret=False) == apart
    assert played(again, raws) == played(model, raws)


def secrets_in(model: Any) -> set[int]:
    """Return the words of the stream's secret and of those that follow from it."""
    flat = model._arena.snapshot()
    own = np.frombuffer(model._secret, "<i8").tolist()
    size, layout = len(model._arena.layout.fresh), model._arena.layout
    starts = [layout.row + k * size for k in range(model._arena.rows)]
    return {*own, *(int(flat[start + 6 + k]) for start in starts for k in (0, 1))} - {0}


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_of_the_secret_is_in_a_state_without_it(name: str) -> None:
    make, raws = MAKERS[name]
    model = make(secret=SECRET)
    played(model, raws)
    whole, apart = (
        {word for array in Document.read(data).arrays.values() for word in array.tolist()}
        for data in (model.to_bytes(), model.to_bytes(secret=False))
    )
    assert secrets_in(model) & whole
    assert not secrets_in(model) & apart
    assert SECRET not in model.to_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_only_the_right_secret_opens_a_state(name: str) -> None:
    make, raws = MAKERS[name]
    model = make(secret=SECRET, key="a")
    played(model, raws)
    apart = model.to_bytes(secret=False)
    missing = "secret must be given, for this state was stored without it, got None"
    with pytest.raises(InvalidInput, match=missing):
        load(apart)
    other = "secret and key must be those that the state was made with, got others"
    for told in ({"secret": SECRET[::-1], "key": "a"}, {"secret": SECRET}):
        with pytest.raises(InvalidInput, match=other):
            load(apart, **told)
    with pytest.raises(
        InvalidInput, match="secret must be left out for a state that holds its own"
    ):
        load(model.to_bytes(), secret=SECRET, key="a")


def test_a_secret_that_nobody_else_has_stays_in_the_state() -> None:
    told = "secret must have been given, as secret=, for a state to be stored without it"
    for model, origin in ((Recalibrator(), "the system"), (Recalibrator(seed=7), "a seed")):
        with pytest.raises(InvalidInput) as refused:
            model.to_bytes(secret=False)
        assert str(refused.value) == f"{told}; this one is from {origin}"


def test_a_secret_is_sixteen_bytes_at_least_and_no_error_shows_it() -> None:
    with pytest.raises(InvalidInput) as refused:
        Recalibrator(secret=b"fifteen letters")
    assert str(refused.value) == "secret must be at least 16 bytes long, got 15"
    with pytest.raises(InvalidType) as wrong:
        Recalibrator(secret="a text is no secret")
    assert str(wrong.value) == "secret must be bytes, got str"
    with pytest.raises(InvalidInput, match="seed must be left out where a secret is given, got 7"):
        Recalibrator(secret=SECRET, seed=7)


def test_secret_seed_and_key_tell_streams_apart() -> None:
    made = [
        secret_of(None, None, SECRET),
        secret_of(None, "a", SECRET),
        secret_of(None, None, SECRET + b"."),
        secret_of(7, None),
        secret_of(None, None),
    ]
    assert len(set(made)) == len(made)
    assert secret_of(None, None, bytearray(SECRET)) == made[0]
    assert [each.origin for each in made] == ["given"] * 3 + ["seed", "system"]
    assert all(len(each) == 16 for each in made)


def test_a_chosen_seed_has_128_bits() -> None:
    seeds = [chosen_seed() for _ in range(200)]
    assert all(-(1 << 127) <= seed < 1 << 127 for seed in seeds)
    # Each of 128 bits is 0 in some seed and 1 in another, but for a chance of 2**-192.
    shifted = [seed + (1 << 127) for seed in seeds]
    assert all({seed >> bit & 1 for seed in shifted} == {0, 1} for bit in range(128))


def test_where_a_secret_comes_from_must_be_known() -> None:
    stored = Document.read(Recalibrator(seed=7).to_bytes())
    settings = stored.settings | {"secret_from": "a friend"}
    altered = Document(stored.kind, settings, stored.arrays, stored.version)
    with pytest.raises(CorruptState, match="a secret from 'a friend'"):
        Recalibrator.from_bytes(altered.to_bytes())


def test_where_the_secrets_of_a_table_come_from_must_be_known() -> None:
    stored = Document.read(Table(Recalibrator()).to_bytes())
    assert stored.settings["secret_from"] == "system"
    settings = stored.settings | {"secret_from": "a friend"}
    altered = Document(stored.kind, settings, stored.arrays, stored.version)
    with pytest.raises(CorruptState, match="a secret from 'a friend'"):
        Table.from_bytes(altered.to_bytes())


def test_a_table_that_takes_over_a_seeded_stream_says_so_of_all() -> None:
    table, lone = Table(Recalibrator()), Recalibrator(seed=7)
    table.forecast("a", 0.5)
    assert table["a"].certificate().seeded is False
    table["b"] = lone
    assert table["a"].certificate().seeded is table["b"].certificate().seeded is True
    assert Table.from_bytes(table.to_bytes())["a"].certificate().seeded is True


def test_dropping_has_a_secret_of_sixteen_bytes() -> None:
    rec = Recalibrator(seed=1)
    stored = Document.read(ObservedOnly(rec, 0.5, seed=2).to_bytes())
    assert len(bytes.fromhex(stored.settings["secret"])) == 16
    again = ObservedOnly.from_bytes(stored.to_bytes(), rec)
    assert again.to_bytes() == stored.to_bytes()
    altered = Document(stored.kind, stored.settings | {"secret": "00"}, {}, stored.version)
    with pytest.raises(CorruptState, match="a secret of 1 bytes"):
        ObservedOnly.from_bytes(altered.to_bytes(), rec)


# What certificates say of it.

LINE = "seeded: anyone who knows the seed can predict the draws; no bound holds against them"
DRAWING = [name for name in MAKERS if name not in ("tracker", "interval")]


@pytest.mark.parametrize("name", DRAWING)
def test_a_certificate_says_in_one_line_that_a_seed_was_given(name: str) -> None:
    make, raws = MAKERS[name]
    model = make(seed=7)
    assert model.certificate().seeded is True
    told = {"groups": "a"} if name == "groups" else {}
    for k in range(600):
        model.learn_one(raws[k % 2], k % 2, **told)
    for each in (model, type(model).from_bytes(model.to_bytes())):
        record = each.certificate()
        assert record.seeded is True
        assert record.holds is not None
        assert str(record).count(LINE) == 1
        assert dataclasses.asdict(record)["seeded"] is True


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("told", [{}, {"secret": SECRET}])
def test_a_certificate_says_nothing_where_the_draws_are_a_secret(
    name: str, told: dict[str, Any]
) -> None:
    model = MAKERS[name][0](**told)
    again = type(model).from_bytes(model.to_bytes())
    for each in (model, again):
        assert each.certificate().seeded is (False if name in DRAWING else None)
        assert LINE not in str(each.certificate())


def test_of_a_state_of_an_earlier_version_nothing_is_said() -> None:
    assert Secret.of(bytes(16), None).seeded is None
    model = Recalibrator(seed=7)
    stored = Document.read(model.to_bytes())
    kept = {
        name: value
        for name, value in stored.settings.items()
        if name not in ("coins", "secret_from")
    }
    old = Recalibrator.from_bytes(Document(stored.kind, kept, stored.arrays, 2).to_bytes())
    assert old.certificate().seeded is None
    assert LINE not in str(old.certificate())
    assert old.spec.coins == "splitmix64"
    with pytest.raises(InvalidInput, match="this one is from an earlier version"):
        old.to_bytes(secret=False)
