"""What a row reads in its turn is asked for before, and nothing beside it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.calibrators.arena import Arena
from calibrant.kernels import fetch, tables
from calibrant.kernels.layout import BLOCKS, STRIDE

pytestmark = pytest.mark.base

KINDS = {
    "default": Calibrant,
    "foster_hart": lambda: Recalibrator("foster_hart", resolution=10, buckets=10),
    "anchored": lambda: Recalibrator("anchored", resolution=4, buckets=3),
    "raw_safe": lambda: Calibrant(raw_safe=0.1),
}


class Watched(list[Any]):
    """Words that remember which of them were read or written."""

    def __init__(self, words: list[Any]) -> None:
        super().__init__(words)
        self.seen: set[int] = set()

    def __getitem__(self, at: Any) -> Any:
        self.seen.update(range(*at.indices(len(self))) if isinstance(at, slice) else [at])
        return super().__getitem__(at)

    def __setitem__(self, at: Any, value: Any) -> None:
        self.seen.update(range(*at.indices(len(self))) if isinstance(at, slice) else [at])
        super().__setitem__(at, value)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(fetch, "fetch", lambda words, at: found.append(at))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_reads_what_was_asked_for(kind: str, asked: list[int]) -> None:
    spec = KINDS[kind]().spec
    words, row = Watched(Arena(spec.layout).words()), spec.layout.row
    rng = np.random.default_rng(1)
    for raw in [0.0, 1.0, *rng.random(60).tolist()]:
        asked.clear()
        fetch.fetch_row(words, words, row, [raw])
        words.seen.clear()
        columns = [0.0], [0.0], [0.0]
        spec.program.replay(words, words, row, [raw], [int(rng.random() < raw)], *columns)
        near = {
            at
            for first, last in pairwise(sorted(asked))
            if last - first <= fetch.LINE
            for at in range(first, last + 1)
        }
        assert {at for at in words.seen if at >= row} <= near
        assert row <= min(asked)
        assert max(asked) < row + len(spec.layout.fresh)


def test_blocks_of_the_first_rounds_are_asked_for_and_no_others(asked: list[int]) -> None:
    spec = KINDS["foster_hart"]().spec
    words, row = spec.layout.alone.tolist(), spec.layout.row
    start, stride = row + words[BLOCKS], words[STRIDE]
    reals = Arena(spec.layout).words()
    fetch.fetch_row(words, reals, row, [0.05, 0.55, 0.56, 0.99, 0.35])
    assert {(at - start) // stride for at in asked if at >= start} == {0, 5, 9}


def test_of_a_large_part_only_the_first_words_are_asked_for(asked: list[int]) -> None:
    fetch.fetch_words([], 100, 100 + 5 * fetch.MOST)
    assert min(asked) == 100
    assert max(asked) == 99 + fetch.MOST
    asked.clear()
    fetch.fetch_words([], 7, 7)
    assert asked == []
    fetch.fetch_words([], 7, 17)
    assert asked == [7, 15, 16]


@pytest.mark.parametrize("size", [100, 5, 1])
def test_rows_are_asked_for_before_their_turn(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    told: list[tuple[str, int, list[float]]] = []
    monkeypatch.setattr(
        tables, "fetch_row", lambda words, reals, row, raw: told.append(("ask", row, raw.tolist()))
    )

    def replay(words: Any, reals: Any, row: int, raw: Any, *columns: Any) -> None:
        told.append(("play", row, raw.tolist()))

    counts = [1, 3, 1, 2, 4, 1, 1]
    bounds, places = np.cumsum([0, *counts]), np.arange(7) * 100
    raw = np.arange(13) / 13
    made = *(np.empty(13) for _ in range(3)), np.empty(13, np.int64)
    held = tuple(np.empty(size) for _ in range(5))
    loop = tables.make_replay_rows(replay)
    order, issued = np.arange(13), np.zeros(7, np.int64)
    loop([], [], places, bounds, order, issued, (raw, np.zeros(13)), made, held)
    parts = {100 * k: raw[a:b].tolist() for k, (a, b) in enumerate(pairwise(bounds))}
    turn = {row: told.index(("play", row, part[:size])) for row, part in parts.items() if size > 9}
    for at, (what, row, soon) in enumerate(told):
        if what == "ask":
            assert soon
            assert soon == parts[row][: len(soon)]
            assert told[at + 1][:2] == ("play", row - 100 * fetch.AHEAD)
            assert at < turn.get(row, len(told))
    asked = {row for what, row, _ in told if what == "ask"}
    # What stands in other columns than those at hand is not asked for.
    assert asked == ({100 * k for k in range(fetch.AHEAD, 7)} if size == 100 else asked)
    assert (len(asked) > 0) == (size > 1)
