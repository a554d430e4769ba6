"""Snapshots made in a process of their own: who writes shares no interpreter with it.

``python -m calibrant.journal.apart`` reads from its input which store and up to which event, plays
the tail of the log on copies, compares every answer, and writes the snapshots to its output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

from calibrant.errors import CalibrantError, NotStored
from calibrant.journal.opening import open_store
from calibrant.journal.recover import Witnesses, fresh_snapshots
from calibrant.journal.store import Snapshot


def snapshots_apart(
    address: str, module: str, upto: int, *, secret_file: str | None = None
) -> list[Snapshot]:
    """Return a snapshot of each stream that has changed, made by another process.

    The process runs a module that calls :func:`run`, with whoever follows the streams.
    """
    asked = json.dumps([address, upto, secret_file]).encode()
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, input=asked, capture_output=True, check=False)
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        raise NotStored(f"snapshot must be made by a process of its own, got {told}")
    return list(_read(done.stdout))


def _read(told: bytes) -> Iterator[Snapshot]:
    """Yield snapshots: each is a line of JSON, and as many bytes as that says."""
    start = 0
    while start < len(told):
        head = told.index(b"\n", start) + 1
        stream, seq, shape, size = json.loads(told[start:head])
        start = head + size
        yield Snapshot(stream, seq, shape, told[head:start])


def main(asked: IO[bytes], told: IO[bytes], witnesses: Witnesses | None = None) -> None:
    """Make snapshots as they are asked for."""
    address, upto, secret_file = json.load(asked)
    store = open_store(address, alone=None, secret_file=secret_file)
    try:
        for stream, seq, shape, body in fresh_snapshots(store, upto, witnesses):
            told.write(json.dumps([stream, seq, shape, len(body)]).encode() + b"\n" + body)
    finally:
        store.close()


def run(witnesses: Witnesses | None = None) -> None:
    """Answer on the standard streams; end with one line if that cannot be done."""
    try:
        main(sys.stdin.buffer, sys.stdout.buffer, witnesses)
    except CalibrantError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    run()
