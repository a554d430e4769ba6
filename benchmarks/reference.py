"""What we compare with: the C loops of ``replay.c``, and the game that everybody plays."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.kernels import blackwell, gaps, layout

__all__ = ["FLAGS", "Loop", "c_compiler", "c_loops", "game"]

SOURCE = pathlib.Path(__file__).with_name("replay.c")
FLAGS = ("-O3", "-ffp-contract=off")
"""No fused multiply-add: it would round differently from the same expression in Python."""
NAMES = (
    *("BUCKETS", "CELLS", "SCALE", "EDGES", "TABLE", "ROWS", "BLOCKS", "STRIDE", "VALUES"),
    *("RAW_LOSS", "ISSUED", "ROUNDS", "SECRET", "POSITION", "CLOCK"),
)
"""What the loops need to know of the state's layout."""
HEADS = {
    "GAPS_HEAD": gaps.FIRST,
    "BLACKWELL_HEAD": blackwell.FIRST,
    "BLACKWELL_LEARNED": blackwell.LEARNED,
}
"""And of the rules' own heads."""

Loop = Callable[..., None]


def game(rounds: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return uniform raw forecasts that are too high, and their outcomes."""
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    return raw, (rng.random(rounds) < raw**1.5).astype(np.uint8)


def c_compiler() -> str | None:
    """Return the C compiler's name, from ``CC`` or as installed, or None."""
    return shutil.which(os.environ.get("CC", "cc"))


def c_loops(*rules: str) -> dict[str, Loop]:
    """Compile ``replay.c`` and return its loop for each rule.

    A loop is called as ``loop(state, raw, outcomes, forecast, mean)``: it plays all rounds
    on the flat state and fills the last two arrays.  That of ``<rule>_rows`` is told ``places`` and
    ``bounds`` besides, as :func:`calibrant.kernels.tables.make_replay_rows` says of sorted columns.
    """
    with tempfile.TemporaryDirectory() as directory:
        target = os.path.join(directory, "replay.so")
        known = {name: getattr(layout, name) for name in NAMES} | HEADS
        names = [f"-D{name}={value}" for name, value in known.items()]
        command = [c_compiler() or "cc", *FLAGS, *names, "-shared", "-fPIC", "-o", target]
        subprocess.run([*command, str(SOURCE), "-lm"], check=True)
        library = ctypes.CDLL(target)
    return {rule: _loop(library[rule], 5 + 2 * rule.endswith("_rows")) for rule in rules}


def _loop(function: Any, count: int) -> Loop:
    """Return a loop over rounds, or over rows: these are counted by the sixth array, of places."""
    function.argtypes = [ctypes.c_void_p] * count + [ctypes.c_int64]
    function.restype = None

    def loop(*arrays: NDArray[Any]) -> None:
        function(*(array.ctypes.data for array in arrays), len(arrays[1 if count == 5 else 5]))

    return loop
