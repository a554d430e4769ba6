"""How a service runs: limits, and who may ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Limits of a service.

    Attributes
    ----------
    largest_body, largest_state
        Bytes of a request, and of a state that is handed over.
    largest_batch
        Forecasts or outcomes in one request.
    body_seconds
        How long half a body may stay half.
    rate
        Requests a second of one token; None for any number.
    open
        Whether anybody may ask, without a token: for services that only this machine reaches.
    every
        After how many events snapshots are written.
    fast
        Whether machine code judges rounds for the alarms: it takes a while to compile.
    apart
        Address of the store, if another process shall make snapshots.
    secret_file
        Holds the key of a store whose secrets are sealed.
    quick, slow
        Seconds between updates of the live page: of counts, and of what takes a summary.
    """

    largest_body: int = 1 << 20
    largest_state: int = 64 << 20
    largest_batch: int = 10_000
    body_seconds: float = 10.0
    rate: float | None = None
    open: bool = False
    every: int = 100_000
    fast: bool = False
    apart: str | None = None
    secret_file: str | None = None
    quick: float = 1.0
    slow: float = 10.0
