"""An interrupt inside a call about groups, classes, numbers or tables, or inside a batch.

The call is done wholly or not at all, wherever the interrupt came (:mod:`interrupting`).  A batch
counts as one call.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from interruptible import (
    BATCHED,
    BATCHES,
    CALLS,
    FOLLOWED,
    KEYED,
    KINDS,
    PATTERNS,
    Followed,
    Keyed,
    Model,
)
from interrupting import interrupted

from calibrant.recalibrate import counter

pytestmark = [
    pytest.mark.plain,
    # Where a generator ends, CPython prints an interrupt instead of raising it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TRIES = int(os.environ.get("CALIBRANT_INTERRUPTS", "8"))
"""Places of each call at which an interrupt is tried; set the variable to try more."""


def try_all(make: Callable[[], Any], call: Callable[[Any], Any], tries: int = TRIES) -> None:
    """Interrupt a call at so many of its places, and look at what is left."""
    whole, untouched = make(), make().to_bytes()
    call(whole)
    done, outcomes = whole.to_bytes(), set()
    assert done != untouched
    places = interrupted(partial(call, make()), -1)[1]
    assert places > 5
    chosen = range(1, places + 1) if places <= tries else spread(places, tries)
    for at in chosen:
        model = make()
        if not interrupted(partial(call, model), at)[0]:
            # What was worked out once, for all streams, is not worked out again.
            continue
        found = model.to_bytes()
        assert found in (untouched, done), f"stopped at place {at} of {places}"
        outcomes.add(found == done)
        if found == untouched:
            # The stream is free, and the same call is done now.
            call(model)
            assert model.to_bytes() == done, f"stopped at place {at} of {places}"
    assert False in outcomes


def spread(places: int, tries: int) -> list[int]:
    """Return places all over a call: the first and last ones, and others at random."""
    ends = [*range(1, tries // 4), *range(places - tries // 4, places + 1)]
    return sorted({*ends, *random.Random(places).sample(range(1, places + 1), tries // 2)})


def needs(kind: str) -> None:
    if kind == "simplex":
        pytest.importorskip("scipy")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_call_is_done_wholly_or_not_at_all(kind: str, call: str) -> None:
    needs(kind)
    made = KINDS[kind]
    try_all(partial(Model, made, made.warmed()), CALLS[call])


@pytest.mark.parametrize("kind", ["groups", "context", "one vs rest, safe", "top label", "pit"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_files_tickets_is_done_wholly_or_not_at_all(
    kind: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "NEAREST", 0)
    monkeypatch.setattr(counter, "AT_ONCE", 0)
    made = KINDS[kind]
    try_all(partial(Model, made, made.warmed()), CALLS[call])


@pytest.mark.parametrize("kind", BATCHED)
@pytest.mark.parametrize("call", BATCHES)
def test_an_interrupted_batch_changes_all_or_nothing(kind: str, call: str) -> None:
    needs(kind)
    made = BATCHED[kind]
    try_all(partial(Model, made, made.warmed()), BATCHES[call])


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("call", KEYED)
def test_an_interrupted_call_of_a_table_is_done_wholly_or_not_at_all(
    pattern: str, call: str
) -> None:
    lone = PATTERNS[pattern](seed=9)
    lone.forecast(0.3, id="lone")
    lone.observe(lone.forecast(0.2), 1)
    try_all(partial(Keyed, PATTERNS[pattern], lone.to_bytes()), KEYED[call])


@pytest.mark.parametrize("call", FOLLOWED)
def test_what_follows_forecasts_takes_an_interrupted_call_wholly_or_not_at_all(call: str) -> None:
    make, told = FOLLOWED[call]
    try_all(partial(Followed, make), lambda followed: told(followed.made), tries=40)
