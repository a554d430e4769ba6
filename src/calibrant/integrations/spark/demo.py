"""The demo of Spark: a fleet of models is streamed, killed in mid-batch, and resumed.

Run ``./script/demo spark``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from calibrant.errors import CalibrantError
from calibrant.integrations.spark.fleet import agrees, events, played, write
from calibrant.integrations.spark.sink import committed_files, read_committed

PATIENCE: Final = 600.0
"""Seconds to wait for anything."""
TICK: Final = 0.05
PROGRAM: Final = (
    "import sys; from calibrant.integrations.spark.fleet import main; main(sys.argv[1:])"
)


class Died(CalibrantError, RuntimeError):
    """A query ended before its time."""


def driver(
    folder: Path, master: str = "local[2]", model: str = "foster_hart"
) -> subprocess.Popen[bytes]:
    """Start a query in a process of its own, with Spark in its group; it writes to a log."""
    with (folder / "driver.log").open("ab") as log:
        command = [sys.executable, "-c", PROGRAM, str(folder), master, model]
        # Each start would compile, or wait for who compiles, longer than it plays.
        plain = os.environ | {"CALIBRANT_COMPILE": "off"}
        return subprocess.Popen(command, stdout=log, stderr=log, env=plain, start_new_session=True)


def followed(process: subprocess.Popen[bytes], told: Callable[[], bool]) -> int | None:
    """Return None once something is so, or the exit status of a process that ended before."""
    for _ in range(int(PATIENCE / TICK)):
        if told():
            return None
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=TICK)
    raise Died(f"query must come so far within {PATIENCE} seconds, got none of it")


def wait_for(process: subprocess.Popen[bytes], told: Callable[[], bool]) -> None:
    """Wait until something is so, while a process runs."""
    status = followed(process, told)
    if status is not None:
        raise Died(f"query must run on, got exit status {status}")


def batches(folder: Path, kind: str) -> int:
    """Return how many batches a query has begun (``offsets``) or committed (``commits``)."""
    place = folder / "checkpoint" / kind
    return len(list(place.glob("[0-9]*"))) if place.is_dir() else 0


def uncommitted(folder: Path) -> list[Path]:
    """Return files of a query's output that belong to no batch which was committed."""
    out = folder / "out"
    if not (out / "_spark_metadata").is_dir():
        return []
    return sorted(set(out.glob("*.parquet")) - set(committed_files(out)))


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a query and its Spark at once, as a power cut would."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Watch:
    """Tells of each batch that a query commits.

    Parameters
    ----------
    folder
        Where the query has its files.
    files
        How many batches there will be.
    say
        Takes a line.
    """

    def __init__(self, folder: Path, files: int, say: Callable[[str], None]) -> None:
        self.folder, self.files, self.say, self.done = folder, files, say, 0

    def look(self) -> bool:
        """Tell what is new; say that the demo is not over."""
        before, self.done = self.done, batches(self.folder, "commits")
        for batch in range(before, self.done):
            self.say(f"  batch {batch + 1} of {self.files} is committed")
        return False

    def midst(self, least: int, dead: int) -> bool:
        """Say whether that many batches were committed and another is being written.

        ``dead`` files belong to batches that died before.  The last batches are as good before
        they write: there may be none after.
        """
        self.look()
        begun = batches(self.folder, "offsets") > self.done >= least
        return begun and (self.done >= self.files - 2 or len(uncommitted(self.folder)) > dead)


def play(
    folder: Path, kills: int, files: int, say: Callable[[str], None], model: str = "foster_hart"
) -> None:
    """Play a fleet; kill the query that many times in the middle of a batch, and resume it."""
    watch = Watch(folder, files, say)
    for k in range(kills):
        least, dead = files * (k + 1) // (kills + 1), len(uncommitted(folder))
        with running(folder, model) as process:
            wait_for(process, lambda n=least, m=dead: watch.midst(n, m))  # type: ignore[misc]
        say(f"kill -9 in the middle of batch {watch.done + 1}; it starts again from its checkpoint")
    with running(folder, model) as process:
        status = followed(process, watch.look)
    if status:
        raise Died(f"query must end well, got exit status {status}")
    watch.look()


@contextmanager
def running(folder: Path, model: str = "foster_hart") -> Iterator[subprocess.Popen[bytes]]:
    """Run a query, and kill it at the end if it still runs."""
    process = driver(folder, model=model)
    try:
        yield process
    finally:
        kill(process)


def main(
    arguments: list[str] | None = None,
    *,
    rounds: int = 30_000,
    models: int = 1_000,
    files: int = 6,
    kills: int = 1,
) -> None:
    """Stream a made-up fleet, kill it, resume it, and compare every row with a table."""
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0]) if given else Path(tempfile.mkdtemp(prefix="calibrant-fleet-"))
    log = events(rounds, models, rounds / 50)
    print(f"{log.num_rows:,} events of {models:,} models, outcomes late, in {folder}", flush=True)
    print("Spark starts; each batch is on disk before the next begins", flush=True)
    write(log, folder / "in", files)
    play(folder, kills, files, lambda line: print(line, flush=True))
    out, made = read_committed(folder / "out"), played(log)
    print(f"{len(uncommitted(folder))} files of the batch that died lie beside the committed ones")
    same = agrees(out.drop_columns(["time", "body"]), log, made)
    if not same:
        raise Died("rows must be those of a table that was never killed, got others")
    print(f"{out.num_rows:,} rows: nothing lost, nothing doubled,", end=" ")
    print("every bit as calibrant.Table plays it")
