"""A stream that is followed, played again as columns: the same to the last bit as one by one."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from calibrant import Calibrant, Recalibrator, Table
from calibrant.errors import InvalidInput
from calibrant.journal import again
from calibrant.journal.events import CORRECTION, EXPIRY, FORECAST, OUTCOME, Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.settings import Settings
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.store import Line
from calibrant.monitor import LateWatch, Monitor, Watch
from calibrant.serve.chronicle import Chronicle, chronicle_in, chronicle_of
from calibrant.summary import Follower

MODELS = {
    "lone": lambda: Recalibrator(resolution=10, buckets=5, seed=7),
    "budget": lambda: Calibrant(raw_safe=0.05, seed=7),
    "table": lambda: Table(Recalibrator(resolution=10, buckets=5), seed=7),
}


def some_log(rounds: int, keyed: bool) -> list[Asked]:
    """Return forecasts and outcomes: late, missing, early, with times and without, corrected."""
    dice, waiting, log = random.Random(4), list[int](), list[Asked]()
    for k in range(rounds):
        time = float(k) if k % 3 else None
        key = f"key {k % 4}" if keyed else None
        log.append(Asked(1, FORECAST, f"n {k}", key, dice.random(), time))
        if k % 400 != 2:
            waiting.append(k)
        while len(waiting) > 40 or (waiting and dice.random() < 0.5):
            n = waiting.pop(dice.randrange(len(waiting)))
            known = None if n % 5 == 0 else k + dice.random()
            if n % 331 == 5:
                log.append(Asked(1, EXPIRY, f"n {n}", None, 0.0))
            elif n % 29:
                log.append(Asked(1, OUTCOME, f"n {n}", None, float(dice.random() < 0.3), known))
                if n % 397 == 7:
                    log.append(Asked(1, CORRECTION, f"n {n}", None, 1.0 - log[-1].x))
        if k % 400 == 399:
            log.append(Asked(1, OUTCOME, f"n {k + 3}", None, 1.0))
    return log


def made(store: SqliteStore) -> Chronicle:
    """Return who follows a stream that is made again from its log."""
    ledger = Ledger(store, partial(chronicle_of, fast=False))
    return chronicle_in(ledger.folds[1])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("patience", [20, 1000])
def test_runs_are_followed_to_the_same_bits_as_single_events(
    name: str, patience: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, keyed = MODELS[name](), name == "table"
    store = SqliteStore(tmp_path / "streams.db", alone=True)
    told = Settings(keyed=keyed, unknown="keep", made={"patience": patience}).to_json()
    with store.writing():
        store.put_stream(Line(1, "s", told, model.to_bytes()))
    ledger = Ledger(store, partial(chronicle_of, fast=False))
    log = some_log(1500, keyed)
    for start in range(0, len(log), 500):
        answers, rows = ledger.enter(log[start : start + 500])
        assert not [one.error for one in answers if one.error is not None]
        ledger.write(rows)
    live = chronicle_in(ledger.folds[1]).to_bytes()
    runs = list[int]()
    plain = Chronicle.played
    monkeypatch.setattr(
        Chronicle, "played", lambda self, run: (runs.append(len(run.id)), plain(self, run))
    )
    assert made(store).to_bytes() == live
    assert sum(runs) > 0.9 * len(log)
    monkeypatch.setattr(again, "FEW", 1 << 40)
    assert made(store).to_bytes() == live
    assert made(store).glance() != Chronicle(model, 0.05).glance()
    store.close()


@pytest.mark.parametrize("watch", [Watch, Monitor])
def test_a_late_watch_plays_many_events_as_one_by_one(watch: type) -> None:
    one, many = (LateWatch(watch(), horizon=7) for _ in range(2))
    dice, wide, open = random.Random(2), len(one.names), list[int]()
    values, told, of = list[tuple[float, ...]](), list[float | None](), list[int]()
    for k in range(800):
        announced = tuple(dice.random() for _ in range(wide))
        time = float(k) if k % 2 else None
        open.append(one.forecast(*announced, time=time))
        values.append(announced), told.append(time), of.append(-1)
        while open and dice.random() < 0.6:
            number, outcome = open.pop(dice.randrange(len(open))), dice.randrange(2)
            one.observe(number, outcome)
            values.append(()), told.append(outcome), of.append(number)
    for start in range(0, len(of), 300):
        rows = slice(start, start + 300)
        many.play(values[rows], told[rows], of[rows])
    assert many.to_bytes() == one.to_bytes()
    before = many.to_bytes()
    with pytest.raises(InvalidInput, match=r"values\[0\] must be in \[0, 1\], got 1.5"):
        many.play([(1.5,) * wide], [None], [-1])
    many.play([], [], [])
    assert many.to_bytes() == before


def test_a_follower_takes_many_rounds_as_one_by_one() -> None:
    dice = random.Random(3)
    one, many = (Follower([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(2))
    rows = [
        (dice.random(), dice.randrange(5) / 4, dice.random(), dice.randrange(2), 9 * dice.random())
        for _ in range(3000)
    ]
    for row in rows:
        one.take(*row)
    start = 0
    for size in (1, 624, 3, 1300, 0, 2000):
        columns = [list(column) for column in zip(*rows[start : start + size], strict=True)]
        assert many.take_many(*(columns or [[]] * 5)) == min(start + size, 3000)
        start += size
    assert many.to_bytes() == one.to_bytes()
    with pytest.raises(InvalidInput, match=r"forecast must be a value of the grid, got 0.3"):
        many.take_many([0.5, 0.5], [0.5, 0.3], [0.5, 0.5], [1, 1], [0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"waited must be 0 or more, got -1.0"):
        many.take_many([0.5], [0.5], [0.5], [1], [-1.0])
    assert many.to_bytes() == one.to_bytes()
