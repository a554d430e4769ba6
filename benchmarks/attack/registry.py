"""Attacks by name: each tries something many times and counts how often it succeeded."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parent.parent.parent
Attack: TypeAlias = Callable[[int, random.Random], int]
"""Given a number of tries and what to choose by, returns how many of them did damage."""


class Entry(NamedTuple):
    """An attack, what it would show if it succeeded, and how often it is tried."""

    name: str
    damage: str
    tries: int
    quick: int
    run: Attack


ATTACKS: list[Entry] = []


def attack(name: str, damage: str, *, tries: int, quick: int) -> Callable[[Attack], Attack]:
    """Register an attack: ``damage`` says what counts as success, ``quick`` how often in CI.

    A new file of attacks is imported in ``benchmarks/attack/__main__.py``.
    """

    def register(run: Attack) -> Attack:
        ATTACKS.append(Entry(name, damage, tries, quick, run))
        return run

    return register
