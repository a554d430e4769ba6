"""States that somebody made up, digest and all."""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

from benchmarks.attack.registry import ROOT, attack
from calibrant import Calibrant, load
from calibrant.errors import CalibrantError


def _fuzzer() -> Any:
    """Return the module that crafts states of every kind, which the tests use too."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import crafted

    return crafted


def _crafted(tries: int, rng: random.Random, way: str) -> int:
    fuzzer = _fuzzer()
    files, damage = fuzzer.files(), 0
    for _ in range(tries):
        stored, file = fuzzer.opened(rng.choice(files))
        data = fuzzer.WAYS[way](rng, stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                fuzzer.play(file, data)
            except Exception:
                damage += 1
    return damage


FAILS = "loading or playing raises an error that the package does not define"


@attack("crafted words", FAILS, tries=3_000, quick=60)
def words(tries: int, rng: random.Random) -> int:
    """Alter words of stored states."""
    return _crafted(tries, rng, "words")


@attack("crafted settings", FAILS, tries=3_000, quick=40)
def settings(tries: int, rng: random.Random) -> int:
    """Alter settings of stored states: types, sizes, extremes."""
    return _crafted(tries, rng, "settings")


@attack("crafted inner states", FAILS, tries=1_000, quick=20)
def nested(tries: int, rng: random.Random) -> int:
    """Alter states within states."""
    return _crafted(tries, rng, "nested")


@attack("forged seals", "a sealed state that was altered is read", tries=20_000, quick=200)
def seals(tries: int, rng: random.Random) -> int:
    """Alter bytes of a sealed state, and try other keys."""
    key, damage = rng.randbytes(32), 0
    sealed = Calibrant(seed=1).to_bytes(authenticate=key)
    for number in range(tries):
        torn, other = bytearray(sealed), key
        if number % 3:
            torn[rng.randrange(len(torn))] ^= 1 << rng.randrange(8)
        else:
            other = rng.randbytes(rng.randrange(16, 80))
        try:
            load(bytes(torn), authenticate=other)
        except CalibrantError:
            continue
        damage += 1
    return damage
