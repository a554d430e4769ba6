"""Crafted states: stored words altered, the digest made right again, and whatever loads played.

As a program, with a number of attempts and names of golden files, everything is played compiled,
in a process of its own.  With ``NUMBA_BOUNDSCHECK=1`` reading out of bounds is told as an error.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from golden.state_steps import STATES, Playing, from_bytes, unpacked

from calibrant.core.codec import Document
from calibrant.errors import CalibrantError

REALS = (np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 5e-324, 1e300, -1e300, 1e15)
WHOLES = (-1, 0, 1, 2, 3, 7, 63, 64, 1 << 16, 1 << 31, 1 << 40, 1 << 62, -(1 << 62), -(1 << 63))
EDGES = [*WHOLES, *(struct.unpack("=q", struct.pack("=d", real))[0] for real in REALS)]
"""Words at which something begins or ends, as a whole number or as a real."""


def altered(rng: random.Random, word: int) -> int:
    """Return another word: a random one, one with a bit turned, a neighbour, or an edge."""
    way = rng.randrange(4)
    if way == 0:
        return rng.getrandbits(64) - (1 << 63)
    if way == 1:
        return struct.unpack("=q", struct.pack("=Q", word % (1 << 64) ^ 1 << rng.randrange(64)))[0]
    if way == 2:
        return max(min(word + rng.choice((-1, 1, 1000)), (1 << 63) - 1), -(1 << 63))
    return rng.choice(EDGES)


def crafted(rng: random.Random, stored: Document) -> bytes:
    """Return the bytes of a document with a few words altered, signed as if they were right."""
    arrays = {name: words.copy() for name, words in stored.arrays.items()}
    places = [(name, k) for name, words in arrays.items() for k in range(len(words))]
    for name, k in rng.sample(places, min(rng.choice((1, 1, 1, 2, 5)), len(places))):
        arrays[name][k] = altered(rng, int(arrays[name][k]))
    return Document(stored.kind, stored.settings, arrays, stored.version).to_bytes()


def play(file: dict[str, Any], data: bytes, compiled: bool = False) -> bool:
    """Load a crafted state and play it to its end; say whether it was loaded."""
    try:
        made = from_bytes(file, data)
    except CalibrantError:
        return False
    if compiled and hasattr(made, "compile"):
        made.compile()
    playing = Playing(made, file["tickets"])
    for step in file["steps"]:
        try:
            [_] = playing.play([step])
        except CalibrantError:
            playing.answers.append(None)
    if hasattr(made, "to_bytes"):
        made.to_bytes()
    return True


def attempts(path: Path, count: int, compiled: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield, for each crafted state of a golden file, whether it was loaded and what went wrong."""
    file = json.loads(path.read_text())
    stored = Document.read(unpacked(file["bytes"]))
    for number in range(count):
        data = crafted(random.Random(f"{path.parent.name} {path.stem} {number}"), stored)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                yield play(file, data, compiled), ""
            except Exception:
                yield True, f"attempt {number}: {traceback.format_exc()}"


def files() -> list[Path]:
    """Return the golden files that hold bytes."""
    return [path for path in sorted(STATES.glob("*/*.json")) if '"bytes":' in path.read_text()]


def main(count: str, *names: str) -> None:
    """Play crafted states of these files compiled, and fail with what went wrong."""
    for name in names:
        path = STATES / f"{name}.json"
        wrong = [told for _, told in attempts(path, int(count), compiled=True) if told]
        if wrong:
            raise SystemExit(f"{name}: {wrong[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
