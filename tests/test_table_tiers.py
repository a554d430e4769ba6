"""Tables: hot and cold rows, of which nobody can tell by the results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from calibrant import Recalibrator, Table
from calibrant.errors import InvalidInput
from calibrant.kernels import tables
from calibrant.recalibrate import heap as heap_module
from calibrant.recalibrate import keyed_rows, secret
from calibrant.recalibrate import spec as spec_module
from calibrant.recalibrate.heap import Heap
from calibrant.recalibrate.secret import secret_of, secrets_of
from tests.test_table import patterns

pytestmark = pytest.mark.base

ROWS = 40
KEYS = ["north", "south", 7, "a longer name", "west", 12]


def batch(seed: int) -> tuple[list[Any], Any, Any, Any]:
    rng = np.random.default_rng(seed)
    raw = rng.random(ROWS)
    keys = [KEYS[k] for k in rng.integers(0, len(KEYS), ROWS)]
    return keys, raw, (rng.random(ROWS) < raw).astype(int), rng.integers(0, 30, ROWS)


def play_all(table: Table) -> list[Any]:
    """Play batches and single rounds of every kind; return what was forecast."""
    keys, raw, outcomes, lag = batch(1)
    when = np.arange(ROWS, dtype=float)
    told = [table.replay(keys, raw, outcomes, time=when)]
    late = table.replay(keys, raw, outcomes, time=when + 100, available=when + 100 + lag)
    told += [
        late,
        table.replay(keys[:9], raw[:9], outcomes[:9], time=when[:9] + 300, carry=late.pending),
    ]
    names = [f"n{t}" if t % 2 else None for t in range(ROWS)]
    told.append(table.play(keys, [0] * ROWS, names, raw, when + 400))
    found = [
        each.forecast.tolist() if hasattr(each, "forecast") else each.value.tolist()
        for each in told
    ]
    for t in range(ROWS):
        ticket = table.forecast(keys[t], raw[t], time=500.0 + t)
        found.append([ticket.value, ticket.mean])
        if t % 3 == 0:
            table.observe(ticket, int(outcomes[t]))
        if t % 9 == 0:
            table.correct(ticket, 1 - int(outcomes[t]))
        if t % 3 == 1:
            found.append([table.coin_of(ticket)])
            table.expire(ticket)
    table.observe(f"n{ROWS - 1}", 1)
    return found


@pytest.mark.parametrize("made", patterns())
def test_results_are_the_same_whatever_is_hot(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_module, "LEAST", 8)
    monkeypatch.setattr("calibrant.recalibrate.tiers.LEAST", 8)
    all_hot = Table(made(), seed=5)
    expected = play_all(all_hot)
    for hot in (1, 4):
        table = Table(made(), seed=5, hot=hot)
        assert play_all(table) == expected
        assert np.count_nonzero(table._tiers.slots >= 0) <= hot
        assert table.to_bytes() == all_hot.to_bytes()
        assert table.bodies() == all_hot.bodies()
        assert [table.row(key) for key in KEYS] == [all_hot.row(key) for key in KEYS]
        one, other = table.certificates(), all_hot.certificates()
        assert one.c2.tolist() == other.c2.tolist()
        assert one.expired.tolist() == other.expired.tolist()
        assert table.copy() == all_hot


def test_lone_streams_agree_with_cold_rows() -> None:
    made = lambda **told: Recalibrator("growing", resolution=6, buckets=2, **told)  # noqa: E731
    table = Table(made(), seed=5, hot=2)
    keys, raw, outcomes, _ = batch(2)
    table.replay(keys, raw, outcomes)
    for key in KEYS:
        lone, mine = made(seed=5, key=key), [k == key for k in keys]
        lone.replay(raw[mine], outcomes[mine])
        assert table.row(key) == lone.to_bytes()


def test_what_is_garbage_is_swept() -> None:
    table = Table(Recalibrator(resolution=4, buckets=3), seed=5, hot=1)
    for t in range(3_000):
        table.observe(table.forecast(t % 5, 0.5), t % 2)
    heap = table._tiers.heap
    live = heap.records[table._tiers.slots < 0, Heap.SIZE].sum()
    assert heap.used <= max(heap_module.LEAST, 2 * live) + 200
    assert table._tiers.nbytes < 1_000_000
    kept = table.to_bytes()
    for key in list(table):
        del table[key]
    assert len(table) == 0
    table.replay([0], [0.5], [1])
    assert Table.from_bytes(kept)[0].rounds == 600


def test_large_heaps_stay_where_they_are_and_count_what_they_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = list(range(9)) * 40, np.linspace(0, 1, 360), np.arange(360) % 2
    small = Table(Recalibrator(resolution=4, buckets=3), seed=5, hot=2)
    small.replay(*told)
    monkeypatch.setattr(heap_module, "LARGE", 64)
    monkeypatch.setattr(heap_module, "LEAST", 64)
    large = Table(Recalibrator(resolution=4, buckets=3), seed=5, hot=2)
    large.replay(*told)
    words = large._tiers.heap._words
    assert len(words) > 1_000 * large._tiers.heap.used
    assert large._tiers.nbytes < 100_000
    large._tiers.heap.add(np.arange(1_000))
    assert large._tiers.heap._words is words
    large._tiers.heap.limit = 0
    large._tiers.tidy()
    assert large == small


def test_a_heap_that_holds_little_garbage_is_left_alone() -> None:
    table = Table(Recalibrator(resolution=4, buckets=3), seed=5, hot=1)
    table.replay(["a", "b", "c"], [0.2, 0.5, 0.7], [1, 0, 1])
    heap = table._tiers.heap
    heap.limit = 0
    table._tiers.tidy()
    assert table._tiers.heap is heap
    assert heap.limit > 0


def test_fresh_rows_have_their_bodies_before_they_are_hot() -> None:
    table, other = (Table(Recalibrator(), seed=5, hot=hot) for hot in (1, 9))
    for each in (table, other):
        each._make(["a", "b", "c"])
        each.forecast("b", 0.5)
    assert table.bodies() == other.bodies()
    assert table["c"] == Recalibrator(seed=5, key="c")


def test_hot_is_at_least_one_and_keys_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="hot must be"):
        Table(Recalibrator(), seed=1, hot=0)
    monkeypatch.setattr(keyed_rows, "MOST", 2)
    table = Table(Recalibrator(), seed=1)
    table.replay(["a", "b"], [0.5, 0.5], [0, 1])
    before = table.to_bytes()
    with pytest.raises(InvalidInput, match="keys must be at most 2 in a table, got 3"):
        table.forecast("c", 0.5)
    assert table.to_bytes() == before


def test_secrets_of_the_kernel_are_those_of_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[Any] = [
        "",
        "a",
        -3,
        10**40,
        "é",
        *("x" * size for size in (125, 126, 127, 128, 300)),
    ]
    expected = b"".join(secret_of(-7, key) for key in keys)
    assert secrets_of(-7, keys).tobytes() == expected

    def plain(*told: Any) -> None:
        made = [0] * len(told[-1])
        secret.blake.digest(*(each.tolist() for each in told[:-1]), made)
        told[-1][:] = made

    monkeypatch.setattr(secret, "MANY", 0)
    monkeypatch.setattr(secret.blake, "machine", lambda: plain)
    assert secrets_of(-7, keys).tobytes() == expected
    assert len(secrets_of(10**200, keys[:1])) == 1


def test_keys_of_blocks_by_the_kernel_are_those_of_each_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, secrets = Recalibrator(buckets=3).spec, secrets_of(5, [*range(9)])
    places = np.arange(9)[::-1] * len(spec.layout.fresh)
    expected = np.tile(spec.layout.fresh, 9)
    for place, told in zip(places, secrets, strict=True):
        spec.seat(expected[place : place + len(spec.layout.fresh)], told.tobytes())

    def plain(words: Any, *told: Any) -> None:
        made = words.tolist()
        rows = [each.tolist() if isinstance(each, np.ndarray) else each for each in told]
        rows[1] = {(k, n): word for k, pair in enumerate(rows[1]) for n, word in enumerate(pair)}
        tables.seat_rows(made, *rows)
        words[:] = made

    monkeypatch.setattr(spec_module, "MANY", 0)
    monkeypatch.setattr(spec_module, "available", lambda: True)
    monkeypatch.setattr(spec_module, "compiled", lambda function, name, nogil: plain)
    seated = np.tile(spec.layout.fresh, 9)
    spec.seat_at(seated, places, secrets)
    assert seated.tolist() == expected.tolist()


def test_parts_are_copied_by_machine_code_where_there_is_a_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, starts, sizes = np.arange(50), np.array([40, 3, 20]), np.array([5, 0, 7])
    places = np.cumsum(sizes) - sizes
    found = list[Any]()
    monkeypatch.setattr(heap_module, "compiled", lambda function, name, nogil: function)
    for many, there in itertools.product((0, 256), (True, False)):
        monkeypatch.setattr(heap_module, "MANY", many)
        monkeypatch.setattr(heap_module, "available", lambda there=there: there)
        target = np.zeros(12, np.int64)
        heap_module.copied_parts(source, starts, sizes, target, places)
        found.append(target.tolist())
    assert found == [[*range(40, 45), *range(20, 27)]] * 4
    assert heap_module.copy_parts is tables.copy_parts


def test_an_interrupted_growth_of_the_arena_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(Recalibrator(), seed=1)
    table.forecast("a", 0.5)
    add = type(table._tiers.rows.arena).add
    monkeypatch.setattr(type(table._tiers.rows.arena), "add", interrupted_after(add))
    before = table.to_bytes()
    with pytest.raises(Boom):
        table.replay([f"k{k}" for k in range(20)], [0.5] * 20, [1] * 20)
    assert table.to_bytes() == before
    table.replay([f"k{k}" for k in range(20)], [0.5] * 20, [1] * 20)
    assert table["k3"].rounds == 1


class Boom(BaseException):
    pass


def interrupted_after(function: Any) -> Any:
    """Return a function that does its work, and goes wrong the first time."""
    done = list[bool]()

    def called(*told: Any, **more: Any) -> Any:
        found = function(*told, **more)
        if not done:
            done.append(True)
            raise Boom
        return found

    return called


def test_a_batch_in_groups_that_goes_wrong_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table, keys = Table(Recalibrator(), seed=1, hot=2), ["a", "b", "c", "d", "a"]
    table.replay(keys, [0.5] * 5, [1] * 5)
    table.forecast("e", 0.5, id="open")
    before = table.to_bytes()
    for owner, name in ((type(table), "_play_at_once"), (type(table._tiers), "cool")):
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, interrupted_after(function))
        with pytest.raises(Boom):
            table.replay([*keys, "e", "new"], [0.5] * 7, [1] * 7)
        monkeypatch.setattr(owner, name, function)
        assert table.to_bytes() == before
        assert table._tiers.hot == 2
