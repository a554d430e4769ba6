"""Many streams by key, every call, in any order: each is what it would be alone."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from machine_journals import Alone, Journals
from machine_keyed import PATTERNS, Keyed
from machine_tables import Tables

MACHINES: dict[str, type[Keyed]] = {
    "table": Tables,
    "journal": Journals,
    "journal without keys": Alone,
}
COMPILED = ("foster_hart", "raw_safe")
"""Patterns that are played compiled: a rule alone, and one with all that there is around it."""


def play(kind: str, pattern: str, compiling: bool, examples: int, steps: int) -> None:
    """Play one kind of many streams for so many examples of so many steps."""
    tried = settings(
        max_examples=examples, stateful_step_count=steps, suppress_health_check=list(HealthCheck)
    )
    made = MACHINES[kind]
    run_state_machine_as_test(lambda: made(PATTERNS[pattern], compiling), settings=tried)


each = pytest.mark.parametrize("kind", MACHINES)
every = pytest.mark.parametrize("pattern", PATTERNS)


@pytest.mark.once
@each
@every
def test_each_stream_is_what_it_would_be_alone(kind: str, pattern: str) -> None:
    play(kind, pattern, compiling=False, examples=24, steps=20)


@pytest.mark.slow
@each
@every
def test_each_stream_is_what_it_would_be_alone_after_many_more_calls(
    kind: str, pattern: str
) -> None:
    play(kind, pattern, compiling=False, examples=16, steps=30)


@pytest.mark.slow
@each
@pytest.mark.parametrize("pattern", COMPILED)
def test_each_stream_is_what_it_would_be_alone_when_compiled(kind: str, pattern: str) -> None:
    play(kind, pattern, compiling=True, examples=12, steps=20)
