"""Ten million rows from a Polars frame, beside the same rows as arrays."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bars import Row, at_least
from benchmarks.measure import Run, interleave
from calibrant import Calibrant, Recalibrator
from calibrant.frames import replay
from calibrant.kernels.compile import available

__all__ = ["run"]

BAR = 0.5
METHODS = ("foster_hart", "calibrant")


def run(*, rows: int = 10_000_000, repeats: int = 3) -> list[Row]:
    """Return for each method how fast a frame is beside arrays; ratio 1 is as fast."""
    rng = np.random.default_rng(1)
    raw = rng.random(rows)
    outcomes = (rng.random(rows) < raw).astype(np.int64)
    return [row(method, raw, outcomes, repeats) for method in METHODS]


def row(method: str, raw: np.ndarray, outcomes: np.ndarray, repeats: int) -> Row:
    """Return the comparison of one method."""
    jobs = {
        "frame": partial(from_frame, method, raw, outcomes),
        "arrays": partial(from_arrays, method, raw, outcomes),
    }
    times = interleave(jobs, rounds=len(raw), repeats=repeats)
    costs = times.nanoseconds("frame"), times.nanoseconds("arrays")
    install = "fast" if available() else "base"
    told = f"{install}: {method}, {len(raw):,} rows from Polars, to arrays"
    return at_least(told, *costs, times.ratio("arrays", "frame"), BAR)


def from_frame(method: str, raw: np.ndarray, outcomes: np.ndarray) -> Run:
    """Measure a frame in and a frame out."""
    import polars

    frame = polars.DataFrame({"raw": raw, "outcome": outcomes})
    return lambda: replay(frame, raw="raw", outcome="outcome", method=method, seed=1)


def from_arrays(method: str, raw: np.ndarray, outcomes: np.ndarray) -> Run:
    """Measure arrays in and arrays out."""
    rec = Calibrant(seed=1) if method == "calibrant" else Recalibrator(method, seed=1)
    return lambda: rec.replay(raw, outcomes)
