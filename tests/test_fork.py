"""A forked process throws coins of its own, and knows the tickets from before."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from everyone import EVERYONE

from calibrant import Recalibrator, load
from calibrant.outcomes import ObservedOnly
from calibrant.recalibrate import fork
from calibrant.recalibrate.table import Table

NAMES = sorted(set(EVERYONE) - {"interval"})
DRAWN = 60
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
# A pool of threads, of whichever library, may be there at the fork; the child runs none of it.
quiet = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def in_child(job: Callable[[], Any]) -> Any:
    """Return what a job gives in a forked process."""
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(outside, json.dumps(job()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(outside)
    with os.fdopen(inside) as told:
        text = told.read()
    assert os.waitpid(child, 0)[1] == 0
    return json.loads(text)


def coins(model: Any, raw: Any) -> list[Any]:
    """Return the coins of many forecasts, as audits tell them."""
    tickets = [model.forecast(raw) for _ in range(DRAWN)]
    own = {"level": 0} if getattr(model, "method", None) in ("mixed", "pit") else {}
    found = [model.coin_of(ticket, **own) for ticket in tickets]
    return [coin.tolist() if hasattr(coin, "tolist") else coin for coin in found]


@forks
@quiet
@pytest.mark.parametrize("name", NAMES)
def test_parent_and_children_throw_other_coins(name: str) -> None:
    one = EVERYONE[name]
    model = one.make(seed=None)
    first, second, own = (
        in_child(lambda: coins(model, one.raw)),
        in_child(lambda: coins(model, one.raw)),
        coins(model, one.raw),
    )
    for k in range(DRAWN):
        assert first[k] != own[k] != second[k] != first[k]


@forks
@quiet
@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_coins_everywhere(name: str) -> None:
    one = EVERYONE[name]
    model = one.make(seed=4)
    assert in_child(lambda: coins(model, one.raw)) == coins(model, one.raw)


@forks
@quiet
def test_a_loaded_stream_throws_other_coins_too() -> None:
    model, seeded = load(Recalibrator().to_bytes()), load(Recalibrator(seed=4).to_bytes())
    assert in_child(lambda: coins(model, 0.4)) != coins(model, 0.4)
    assert in_child(lambda: coins(seeded, 0.4)) == coins(seeded, 0.4)


@pytest.mark.parametrize("name", NAMES)
def test_tickets_from_before_are_known_and_so_are_their_coins(name: str) -> None:
    one = EVERYONE[name]
    model, (zero, other) = one.make(seed=None), one.outcomes
    closed = model.observe(model.forecast(one.raw), zero)
    early, by_name = model.forecast(one.raw), model.forecast(one.raw, id="order")
    before = [str(model.coin_of(ticket)) for ticket in (closed, early, by_name)]
    for _ in range(2):
        fork.renew_all()
        assert [str(model.coin_of(t)) for t in (closed, early, "order")] == before
    late = model.forecast(one.raw)
    model.observe(early, zero)
    model.observe("order", zero)
    model.observe(late, zero)
    model.correct(closed, other)
    again = type(model).from_bytes(model.to_bytes())
    again.correct(type(late).from_bytes(late.to_bytes()), other)
    assert again.rounds == 4


@pytest.mark.parametrize("name", sorted(EVERYONE))
def test_a_renewed_stream_is_one_that_was_stored_and_loaded(name: str) -> None:
    one = EVERYONE[name]
    model = one.make(seed=None)
    for outcome in one.outcomes:
        model.observe(model.forecast(one.raw), outcome)
    fork.renew_all()
    again = type(model).from_bytes(model.to_bytes())
    for outcome in one.outcomes * 20:
        mine, its = model.forecast(one.raw), again.forecast(one.raw)
        assert str(mine.value) == str(its.value)
        model.observe(mine, outcome)
        again.observe(its, outcome)
    assert model == again


@pytest.mark.base
def test_a_prediction_from_before_is_drawn_anew() -> None:
    model = Recalibrator()
    model.sample_one(0.4)
    model.sample_one(0.9)
    fork.renew_all()
    model.learn_one(0.4, 1)
    assert model.rounds == 1


@pytest.mark.base
def test_a_stream_that_somebody_works_on_stays_as_it_is() -> None:
    model = Recalibrator()
    secret = model._secret
    with model._gate:
        fork.renew_all()
    assert model._secret == secret


@pytest.mark.base
def test_tables_throw_other_coins_and_know_their_tickets() -> None:
    stored = Table(Recalibrator()).to_bytes()
    for table in (Table(Recalibrator()), Table.from_bytes(stored)):
        ticket = table.forecast("north", 0.4)
        secret = table._secret(0)
        fork.renew_all()
        assert table._secret(0) != secret
        assert table.observe(ticket, 1).outcome == 1
        late = table.forecast("north", 0.4)
        assert late.whose != ticket.whose
        with table._gate:
            fork.renew_all()
        assert table.observe(late, 1).outcome == 1
    for seeded in (Table(Recalibrator(), seed=1), Table(Recalibrator(), seed=1).copy()):
        seeded.forecast("north", 0.4)
        secret = seeded._secret(0)
        fork.renew_all()
        assert seeded._secret(0) == secret


@pytest.mark.base
def test_thinning_throws_other_coins() -> None:
    seeded, free = (ObservedOnly(Recalibrator(seed=1), 0.1, seed=seed) for seed in (2, None))
    again = ObservedOnly.from_bytes(seeded.to_bytes(), Recalibrator(seed=1))
    keys = [each._coins.at(5) for each in (seeded, free, again)]
    fork.renew_all()
    renewed = [each._coins.at(5) for each in (seeded, free, again)]
    assert [one == other for one, other in zip(keys, renewed, strict=True)] == [True, False, False]


@pytest.mark.base
def test_nothing_is_kept_of_a_stream_that_is_gone() -> None:
    gc.collect()
    before = len(fork._live)
    model = Recalibrator()
    assert len(fork._live) == before + 1
    del model
    gc.collect()
    assert len(fork._live) == before
