"""Timing on a machine that others use too: interleaved, in CPU time, compared as ratios.

One repeat runs every job once, so whatever slows the machine for a second slows all of
them; the next repeat starts with another job.  A ratio is taken within each repeat, and
the median of the repeats is reported.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Job", "Times", "interleave"]

Run = Callable[[], object]


class Job(Protocol):
    """Prepares one repeat, outside the measured time, and returns what is measured."""

    def __call__(self) -> Run: ...


@dataclass(frozen=True)
class Times:
    """CPU seconds of each job in each repeat, and over how many rounds they spread."""

    seconds: Mapping[str, list[float]]
    rounds: int

    def nanoseconds(self, job: str) -> float:
        """Cost of a round: the least of all repeats."""
        return min(self.seconds[job]) / self.rounds * 1e9

    def ratio(self, job: str, other: str) -> float:
        """How many times what ``other`` costs is what ``job`` costs."""
        pairs = zip(self.seconds[job], self.seconds[other], strict=True)
        return statistics.median(mine / its for mine, its in pairs)


def interleave(jobs: Mapping[str, Job], *, rounds: int, repeats: int) -> Times:
    """Run all jobs ``repeats`` times in turns; the first turn, a rehearsal, does not count."""
    names = list(jobs)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repeats + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            took = cpu_seconds(jobs[name]())
            if turn > 0:
                seconds[name].append(took)
    return Times(seconds, rounds)


def cpu_seconds(run: Callable[[], Any]) -> float:
    """Return the CPU time of this thread in ``run()``, without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        run()
        return time.thread_time() - start
    finally:
        gc.enable()
