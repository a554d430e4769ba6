"""One writer: requests are applied in order, written together, and answered once on disk.

In two stages, a thread each: while one batch is being committed, the next is applied.

1. Take what waits, up to a batch.  Look up ids, apply in order.
2. Write the events of the batch in one transaction.  Answer.

A request that fails is answered by itself.  If a *commit* fails, its batch and all that was applied
since fail, the writer is not ready, and all streams are made again from the log.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from calibrant.errors import CalibrantError, DamagedLog, NotStored
from calibrant.journal.events import Asked, Event
from calibrant.journal.ledger import Ledger
from calibrant.journal.parts import Piece, cut
from calibrant.journal.recover import Witnesses, fresh_snapshots, ids_of, take_snapshots
from calibrant.journal.sql import Store
from calibrant.journal.store import Moment, Snapshot

log = logging.getLogger("calibrant")

BATCH: Final = 2_000
"""Events in one transaction, at most, unless one request holds more."""
EVERY: Final = 100_000
"""After this many events snapshots are written."""
TIDY: Final = 2_000
"""After this many events the store is tidied."""
PATIENCE: Final = 1.0
"""Seconds until a store that failed is tried again."""
PROBE: Final = -2
"""Under which number something is written to see whether it can be; no stream has it."""
PROBED: Final = 1 << 16
"""Bytes that are written then: more than the events that come at once take."""

Answer = Callable[[Any, Exception | None], None]
"""Takes what came of a request, or the error of all of it."""


class Job(NamedTuple):
    """What was asked, and who wants to know: events, or work with the ledger."""

    asked: Sequence[Asked]
    work: Callable[[Ledger], Any] | None
    answer: Answer


class Batch(NamedTuple):
    """Answers that wait until events are on disk."""

    rows: list[Event]
    answers: list[tuple[Answer, Any, Exception | None]]


class Watched(NamedTuple):
    """What a writer tells of each commit: how many events, and how long it took."""

    events: int
    seconds: float


class Writer:
    """The only one who writes to a store.

    Parameters
    ----------
    store
        Where the log is; this process must own it.
    watch
        Is told of each commit.
    every
        After how many events snapshots are written.
    witnesses
        Makes who follows a stream; None where nobody does.
    apart
        Makes snapshots up to an event, if another process shall: see ``journal/apart.py``.

    Attributes
    ----------
    ready
        False while streams are made from the log, and from a failed commit until that is done.
    """

    def __init__(
        self,
        store: Store,
        *,
        watch: Callable[[Watched], None] = lambda told: None,
        every: int = EVERY,
        witnesses: Witnesses | None = None,
        apart: Callable[[int], list[Snapshot]] | None = None,
    ) -> None:
        self.store, self.ready, self.trouble = store, False, ""
        self._witnesses, self._apart = witnesses, apart
        self._watch, self._every = watch, every
        self._asked: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._drafts: queue.Queue[Batch | None] = queue.Queue(maxsize=1)
        self._failed, self._stopped = threading.Event(), threading.Event()
        self._door = threading.Lock()
        self._written = 0
        self._helper: threading.Thread | None = None
        self.ledger = Ledger(store, witnesses)
        self._noted = -self._shortened(self.ledger)
        self._threads = [
            threading.Thread(target=self._apply, name="calibrant apply", daemon=True),
            threading.Thread(target=self._commit, name="calibrant commit", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self.ready = True

    def _shortened(self, ledger: Ledger) -> int:
        """Return how many events are behind the snapshots of streams that were just made again.

        If they are many, snapshots are written first: who is killed again and again would play
        more of the log each time.  Nobody waits for that but who waits for the log to be played.
        """
        if ledger.tail >= self._every:
            try:
                with self.store.writing():
                    take_snapshots(self.store, ledger, {})
                ledger.tail = 0
            except CalibrantError as error:
                log.warning("no snapshot: %s", error)
        return ledger.tail

    def submit(self, asked: Sequence[Asked], answer: Answer) -> None:
        """Enter events; ``answer`` gets what was told of each, once they are on disk."""
        self._put(Job(asked, None, answer))

    def run(self, work: Callable[[Ledger], Any], answer: Answer) -> None:
        """Do something with all streams at rest, and nothing that waits to be written."""
        self._put(Job((), work, answer))

    def _put(self, job: Job) -> None:
        with self._door:
            if not self._stopped.is_set():
                self._asked.put(job)
                return
        self._refuse([job])

    def close(self) -> None:
        """Finish what was asked, write snapshots, and let go of the store."""
        with self._door:
            if self._stopped.is_set():
                return
            self.trouble = "a service that was stopped"
            self._stopped.set()
            self._asked.put(None)
        for thread in self._threads:
            thread.join()
        # Looked for only now: who commits may have begun it a moment ago.
        if self._helper is not None:
            self._helper.join()
        if self.ready and self._written:
            with self.store.writing():
                take_snapshots(self.store, self.ledger, {})
        self.store.close()

    # ------------------------------------------------------------------ stage 1

    def _apply(self) -> None:
        last: Job | None = Job((), None, _nobody)
        while last is not None:
            jobs, last = self._taken()
            if self._failed.is_set():
                self._refuse(jobs)
                self._recover()
            else:
                self._apply_all(jobs)
        self._drafts.put(None)

    def _taken(self) -> tuple[list[Job], Job | None]:
        """Return what waits, up to a batch, and the last of it: None at the end of all work."""
        job = self._asked.get()
        jobs, count = list[Job](), 0
        while job is not None:
            jobs.append(job)
            count += len(job.asked)
            if count >= BATCH or job.work is not None:
                break
            try:
                job = self._asked.get_nowait()
            except queue.Empty:
                break
        return jobs, job

    def _apply_all(self, jobs: list[Job]) -> None:
        batch = Batch([], [])
        try:
            for job in jobs:
                if job.work is not None:
                    batch = self._work(job, batch)
                else:
                    told, rows = self.ledger.enter(job.asked)
                    batch.rows.extend(rows)
                    batch.answers.append((job.answer, told, None))
        except Exception as error:
            # What was applied is not known: the log is.
            self._fail(error)
            for answer, _, _ in batch.answers:
                answer(None, NotStored("request must be repeated: it was not written"))
            self._refuse(jobs[len(batch.answers) :])
            self._recover()
            return
        if batch.answers:
            self._drafts.put(batch)

    def _work(self, job: Job, batch: Batch) -> Batch:
        """Let everything be written that was applied, and then do some work."""
        self._drafts.put(batch)
        self._drafts.join()
        if self._failed.is_set() or job.work is None:
            self._refuse([job])
            return Batch([], [])
        try:
            job.answer(job.work(self.ledger), None)
        except CalibrantError as error:
            if isinstance(error, NotStored):
                self._fail(error)
            job.answer(None, error)
            if self._failed.is_set():
                # Nobody is let in who could ask for it later.
                self._recover()
        return Batch([], [])

    def _refuse(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.answer(None, NotStored(f"storage must be ready, got {self.trouble or 'an error'}"))

    # ------------------------------------------------------------------ stage 2

    def _commit(self) -> None:
        while (batch := self._drafts.get()) is not None:
            try:
                self._commit_one(batch)
            finally:
                self._drafts.task_done()

    def _commit_one(self, batch: Batch) -> None:
        error: Exception | None = None
        begun = time.perf_counter()
        try:
            if self._failed.is_set():
                raise NotStored(f"storage must be ready, got {self.trouble}")
            self.ledger.write(batch.rows)
        except Exception as raised:
            error = raised if isinstance(raised, NotStored) else NotStored(f"not written: {raised}")
            self._fail(raised)
            # Who applies need not wait for the next request to make the streams again.
            self._asked.put(Job((), None, _nobody))
        for answer, told, failed in batch.answers:
            answer(None if error else told, error or failed)
        if error is None and batch.rows:
            self._watch(Watched(len(batch.rows), time.perf_counter() - begun))
            self._count(len(batch.rows))

    def _count(self, events: int) -> None:
        before, self._written = self._written, self._written + events
        if self._helper is None or not self._helper.is_alive():
            work: Callable[[], None] | None = None
            if before // TIDY != self._written // TIDY:
                work = self._tidy
            if self._written - self._noted >= self._every:
                work, self._noted = self._take_snapshots, self._written
            if work is not None:
                self._helper = threading.Thread(target=work, name="calibrant tidy", daemon=True)
                self._helper.start()

    def _tidy(self) -> None:
        try:
            self.store.tidy()
        except CalibrantError as error:
            self.trouble = f"not tidied: {error}"
            log.warning("%s", self.trouble)

    def _take_snapshots(self) -> None:
        """Play the tail of the log on copies, and store them: the writer hardly waits."""
        try:
            store, seen, upto = self.store, self.ledger.seen, self.store.last()
            apart = self._apart or partial(fresh_snapshots, store, witnesses=self._witnesses)
            made = apart(upto) + ids_of(seen, upto)
            for pieces in cut(made):
                with store.writing():
                    store.put_pieces(pieces)
            with store.writing():
                store.settle_snapshots({one.stream for one in made}, upto)
                store.put_moment(Moment(upto, time.time()))
            self.store.tidy()
        except CalibrantError as error:
            self.trouble = f"no snapshot: {error}"
            log.warning("%s", self.trouble)

    # ------------------------------------------------------------------ failures

    def _fail(self, error: Exception) -> None:
        self.ready, self.trouble = False, str(error)
        self._failed.set()
        log.error("not ready: %s", error)

    def _recover(self) -> None:
        """Make all streams again from the log, as soon as that can be read and written."""
        self._drafts.join()
        while not self._stopped.is_set():
            try:
                with self.store.writing():
                    ledger = Ledger(self.store, self._witnesses)
                self._probe()
            except CalibrantError as error:
                # Whoever asks is told that, and not of which event of somebody else's.
                self.trouble = "a damaged log" if isinstance(error, DamagedLog) else str(error)
                log.error("not ready: %s", error)
                self._refuse_waiting()
                self._stopped.wait(PATIENCE)
            else:
                self._noted = self._written - self._shortened(ledger)
                self.ledger, self.trouble, self.ready = ledger, "", True
                self._failed.clear()
                log.warning("ready again: all streams were rebuilt from the log")
                return

    def _probe(self) -> None:
        """Write more than an event takes, and remove it: a full disk lets a log be read.

        What is written is the first of two pieces of a snapshot, of which no second one comes.
        """
        with self.store.writing():
            self.store.drop_snapshots(PROBE)
            self.store.put_pieces([Piece(PROBE, 0, 0, 2, "probe", bytes(PROBED))])
        with self.store.writing():
            self.store.drop_snapshots(PROBE)

    def _refuse_waiting(self) -> None:
        """Refuse whatever waits, so that nobody waits for the store."""
        for _ in range(self._asked.qsize()):
            job = self._asked.get()
            if job is None:
                self._asked.put(None)
                return
            self._refuse([job])


def _nobody(told: Any, error: Exception | None) -> None:
    """Take an answer for nobody."""
