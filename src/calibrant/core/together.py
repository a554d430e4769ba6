"""Jobs in a thread each, all of them or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

Job = Callable[[], None]


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
