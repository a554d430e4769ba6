"""Outcomes that wait on disk until the service has them."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, TypeAlias

from calibrant.client.asking import BATCH, ServiceError, plain_outcome
from calibrant.client.clients import Client
from calibrant.core.files import put
from calibrant.errors import NotStored
from calibrant.journal.lock import Lock

Row: TypeAlias = tuple[str, int | str]


class Spool:
    """Takes outcomes at once, and sends them in order when the service is there.

    Each outcome is on disk before :meth:`outcome` returns, and leaves the file only after the
    service has acknowledged it; what is sent twice does no harm, for the service knows ids.
    Problems that the service names are kept in ``problems`` and not sent again.

    Parameters
    ----------
    client, stream
        Who sends, and to which stream.
    path
        The file; what an earlier process left there is sent too.  One spool at a time may have it.
    size, seconds
        Outcomes are sent together once that many wait, or the first has waited that long; None
        for however long that takes.
    most
        How many may wait; then :meth:`outcome` sends them first, and raises
        :class:`calibrant.errors.NotStored` if that fails: the caller has to keep the outcome.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        path: str | os.PathLike[str],
        *,
        size: int = 100,
        seconds: float | None = None,
        most: int = 1_000_000,
    ) -> None:
        self._client, self._stream, self._path = client, stream, Path(os.fspath(path))
        self._size, self._most, self._turn = size, most, threading.Lock()
        self.problems: list[dict[str, Any]] = []
        self._lock = Lock(self._path.with_name(self._path.name + ".lock"), alone=True)
        try:
            self._waiting = self._read()
            self._file = self._path.open("ab")
        except BaseException:
            self._lock.close()
            raise
        self._some, self._seconds, self._ends = threading.Event(), seconds, threading.Event()
        self._sender: threading.Thread | None = None
        if seconds is not None:
            self._sender = threading.Thread(target=self._send_in_time, daemon=True)
            self._sender.start()
        if self._waiting:
            self._some.set()

    def _read(self) -> list[Row]:
        """Return what waits in the file; a last line that was not finished was not taken."""
        if not self._path.exists():
            return []
        whole, _, _ = self._path.read_bytes().rpartition(b"\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        rest = [(str(id), plain_outcome(outcome)) for id, outcome in lines]
        put(self._path, _text(rest), private=True)
        return rest

    def __len__(self) -> int:
        return len(self._waiting)

    def outcome(self, id: str, outcome: int | str) -> None:
        """Take an outcome; it is sent with others once there are enough."""
        with self._turn:
            if len(self._waiting) >= self._most:
                self._send()
            if len(self._waiting) >= self._most:
                raise NotStored(f"outcomes that wait must be at most {self._most}, got one more")
            row = id, plain_outcome(outcome)
            self._file.write(_text([row]))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting.append(row)
            self._some.set()
            if len(self._waiting) >= self._size and len(self._waiting) % self._size == 0:
                self._send()

    def _send_in_time(self) -> None:
        """Send what has waited long enough, until the spool is closed."""
        while True:
            self._some.wait()
            if self._ends.wait(self._seconds):
                return
            self._some.clear()
            try:
                if self.flush():
                    self._some.set()
            except ServiceError as error:
                # Refused for good: who closes the spool, or flushes it, is told.
                self.problems.append({"type": error.type, "detail": str(error)})

    def flush(self) -> int:
        """Send what waits, as far as the service takes it; return how many still wait."""
        with self._turn:
            self._send()
            return len(self._waiting)

    def _send(self) -> None:
        sent = 0
        try:
            while sent < len(self._waiting):
                part = self._part(sent)
                told = self._client.outcomes(self._stream, dict(part))
                self.problems += [one for one in told if "type" in one]
                sent += len(part)
        except ServiceError as error:
            if error.status not in (0, 408, 429, 500, 502, 503, 504):
                raise
        finally:
            self._forget(sent)

    def _part(self, start: int) -> list[Row]:
        """Return the next outcomes to send: an id at most once."""
        part = dict[str, int | str]()
        for id, outcome in self._waiting[start : start + BATCH]:
            if id in part:
                break
            part[id] = outcome
        return list(part.items())

    def _forget(self, sent: int) -> None:
        """Let go of outcomes that the service has."""
        if sent:
            self._waiting = self._waiting[sent:]
            self._file.close()
            put(self._path, _text(self._waiting), private=True)
            self._file = self._path.open("ab")

    def close(self) -> None:
        """Send what can be sent, and leave the rest in the file."""
        self._ends.set()
        self._some.set()
        if self._sender is not None:
            self._sender.join()
        try:
            self.flush()
        finally:
            self._file.close()
            self._lock.close()


def _text(rows: list[Row]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
