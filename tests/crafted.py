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
from base64 import b64decode, b64encode
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


SETTINGS: tuple[Any, ...] = (
    *(None, True, False, "", "x", "nan", "-0x1p+3", [], {}, [[]], {"name": "x"}),
    *(-1, 0, 1, 2, 7, 1 << 16, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 1 << 63, -(1 << 63), 1 << 70),
    *(-1.0, 0.0, 0.5, 1.0, 5e-324, 1e300, -1e300, 1e15, 1.5),
)
"""What settings may be replaced by: other types, sizes and extremes."""


def places(data: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value of nested data."""
    listed = enumerate(data) if isinstance(data, list) else ()
    for key, value in data.items() if isinstance(data, dict) else listed:
        yield (*where, key)
        yield from places(value, (*where, key))


def resettled(rng: random.Random, stored: Document) -> bytes:
    """Return the bytes of a document with a setting altered, signed as if it were right."""
    settings = json.loads(json.dumps(stored.settings))
    for _ in range(rng.choice((1, 1, 2))):
        if not (found := list(places(settings))):
            break
        *way, last = rng.choice(found)
        inside: Any = settings
        for key in way:
            inside = inside[key]
        if isinstance(inside, list) and rng.randrange(4) == 0:
            inside.extend(inside * rng.choice((1, 3, 30)))
        elif isinstance(inside, dict) and rng.randrange(8) == 0:
            del inside[last]
        else:
            inside[last] = other_setting(rng, inside[last])
    return Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()


def other_setting(rng: random.Random, value: Any) -> Any:
    """Return another setting: one near a number, a longer text, or anything."""
    if type(value) is int and rng.randrange(2):
        return value + rng.choice((-1, 1, 10, 1000, value, 99 * value))
    if isinstance(value, str) and rng.randrange(3) == 0:
        return value * rng.choice((0, 2, 50))
    return rng.choice(SETTINGS)


def renested(rng: random.Random, stored: Document) -> bytes:
    """Return the bytes of a document whose inner documents are altered, all signed.

    A table holds the states of its rows and a session that of its recalibrator; whatever has none
    inside is altered in a word.
    """
    if stored.kind == "session":
        made = Document.read(b64decode(stored.settings["recalibrator"]))
        text = b64encode(rng.choice((crafted, resettled))(rng, made)).decode()
        settings = stored.settings | {"recalibrator": text}
        return Document(stored.kind, settings, stored.arrays, stored.version).to_bytes()
    sizes = stored.arrays.get("sizes")
    if sizes is None or len(sizes) < 2:
        return crafted(rng, stored)
    if "tickets" in stored.arrays:
        # Tables hold bodies by now, and no documents.
        return crafted(rng, stored)
    bodies, ends = stored.arrays["bodies"].astype("<i8").tobytes(), np.cumsum(sizes[1:])
    inner = [bodies[end - size : end] for end, size in zip(ends, sizes[1:], strict=True)]
    k = rng.randrange(len(inner))
    inner[k] = rng.choice((crafted, resettled))(rng, Document.read(inner[k]))
    text = b"".join(inner)
    arrays = stored.arrays | {
        "sizes": np.array([sizes[0], *map(len, inner)], np.int64),
        "bodies": np.frombuffer(text + bytes(-len(text) % 8), "<i8").astype(np.int64),
    }
    return Document(stored.kind, stored.settings, arrays, stored.version).to_bytes()


WAYS = {"words": crafted, "settings": resettled, "nested": renested}


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


def opened(path: Path) -> tuple[Document, dict[str, Any]]:
    """Return the document of a golden file, and all of the file."""
    file = json.loads(path.read_text())
    return Document.read(unpacked(file["bytes"])), file


def attempts(
    path: Path, count: int, compiled: bool = False, way: str = "words"
) -> Iterator[tuple[bool, str]]:
    """Yield, for each crafted state of a golden file, whether it was loaded and what went wrong."""
    (stored, file), told = opened(path), "" if way == "words" else f" {way}"
    for number in range(count):
        rng = random.Random(f"{path.parent.name} {path.stem} {number}{told}")
        data = WAYS[way](rng, stored)
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
