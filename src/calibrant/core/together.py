"""Jobs in a thread each, all of them or none."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

Job = Callable[[], None]


WORTH: Final = 20_000
"""A thread more is worth it for so many rounds or events more."""


def together(jobs: Sequence[Job]) -> None:
    """Run jobs in a thread each, and wait for the last one.

    Whatever interrupts this call, either no job ran or all of them did, when it raises.

    Examples
    --------
    >>> seen = []
    >>> together([lambda: seen.append(1), lambda: seen.append(2)])
    >>> sorted(seen)
    [1, 2]
    """
    run = _Run()
    threads = [threading.Thread(target=run.take, args=[job]) for job in jobs]
    try:
        for thread in threads:
            thread.start()
        run.go.set()
    finally:
        # Interrupted before all threads were there, nobody begins.
        run.off = not run.go.is_set()
        run.go.set()
        _wait_for(threads)
    if run.failed:
        raise run.failed[0]


def slices(size: int, jobs: int) -> list[slice]:
    """Return equal parts of a column, one for each thread that is worth it.

    >>> slices(10, 2)
    [slice(0, 10, None)]
    >>> slices(50_000, 2)
    [slice(0, 25000, None), slice(25000, 50000, None)]
    """
    jobs = min(jobs, 1 + size // WORTH)
    cuts = [size * k // jobs for k in range(jobs + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def in_slices(size: int, jobs: int, work: Callable[[int, slice], None]) -> None:
    """Work on the parts of a column, each in a thread; ``work`` is given their number and place."""
    parts = slices(size, jobs)
    if len(parts) == 1:
        work(0, parts[0])
    else:
        together([partial(work, k, part) for k, part in enumerate(parts)])


def _wait_for(threads: Sequence[threading.Thread]) -> None:
    """Wait until threads are over, and only then raise what came meanwhile."""
    came: list[BaseException] = []
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:
                came.append(error)
    if came:
        raise came[0]


class _Run:
    """A signal to begin, or not to."""

    def __init__(self) -> None:
        self.go, self.off = threading.Event(), False
        self.failed: list[BaseException] = []

    def take(self, job: Job) -> None:
        """Wait for the signal, and do a job."""
        self.go.wait()
        if not self.off:
            try:
                job()
            except BaseException as error:
                self.failed.append(error)
