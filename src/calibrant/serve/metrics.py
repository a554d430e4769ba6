"""Numbers for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from calibrant.journal.events import Told
from calibrant.journal.writer import Watched, Writer


class Metrics:
    """What a service counts: requests, events, commits, and what its streams wait for."""

    def __init__(self) -> None:
        book = self.registry = CollectorRegistry()
        self.requests = Counter(
            "calibrant_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=book,
        )
        self.events = Counter(
            "calibrant_events", "Events by what became of them.", ["status"], registry=book
        )
        self.commits = Histogram("calibrant_commit_seconds", "Time of a commit.", registry=book)
        self.batch = Histogram(
            "calibrant_commit_events",
            "Events of a commit.",
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 10000),
            registry=book,
        )
        self.ready = Gauge("calibrant_ready", "Whether the service is ready.", registry=book)
        self.open = Gauge("calibrant_open", "Outcomes that are missing.", ["stream"], registry=book)
        self.learned = Gauge(
            "calibrant_learned", "Outcomes that were learned.", ["stream"], registry=book
        )
        self.sequence = Gauge("calibrant_sequence", "Place of the last event.", registry=book)

    def committed(self, told: Watched) -> None:
        """Note a commit."""
        self.commits.observe(told.seconds)
        self.batch.observe(told.events)

    def answered(self, told: Sequence[Told]) -> None:
        """Note what became of events."""
        if len(told) == 1:
            self.events.labels(told[0].status).inc()
            return
        for status, count in Tally(one.status for one in told).items():
            self.events.labels(status).inc(count)

    def page(self, writer: Writer) -> bytes:
        """Return all metrics as text."""
        self.ready.set(writer.ready)
        self.sequence.set(writer.ledger.seq)
        for line in list(writer.ledger.lines.values()):
            fold = writer.ledger.folds.get(line.number)
            if line.gone is None and fold is not None:
                self.open.labels(line.name).set(fold.open)
                self.learned.labels(line.name).set(fold.learned)
        return generate_latest(self.registry)
