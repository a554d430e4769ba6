"""The demo of Spark: a fleet of models is streamed, killed in mid-batch, and resumed.

Run ``./script/demo spark``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
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


def driver(folder: Path, master: str = "local[2]") -> subprocess.Popen[bytes]:
    """Start a query in a process of its own, with Spark in its group; it writes to a log."""
    with (folder / "driver.log").open("ab") as log:
        command = [sys.executable, "-c", PROGRAM, str(folder), master]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def wait_for(process: subprocess.Popen[bytes], told: Callable[[], bool]) -> None:
    """Wait until something is so, while a process runs."""
    for _ in range(int(PATIENCE / TICK)):
        if told():
            return
        try:
            process.wait(timeout=TICK)
        except subprocess.TimeoutExpired:
            continue
        raise Died(f"query must run on, got exit status {process.returncode}")
    raise Died(f"query must come so far within {PATIENCE} seconds, got none of it")


def batches(folder: Path, kind: str) -> int:
    """Return how many batches a query has begun (``offsets``) or committed (``commits``)."""
    place = folder / "checkpoint" / kind
    return len(list(place.glob("[0-9]*"))) if place.is_dir() else 0


def in_the_midst(folder: Path, least: int) -> bool:
    """Say whether so many batches were committed, and another has begun."""
    done = batches(folder, "commits")
    return done >= least and batches(folder, "offsets") > done


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a query and its Spark at once, as a power cut would."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def play(folder: Path, kills: int, files: int, say: Callable[[str], None]) -> None:
    """Play a fleet; kill the query so many times in the midst of a batch, and resume it."""
    for k in range(kills + 1):
        process = driver(folder)
        try:
            if k < kills:
                least = files * (k + 1) // (kills + 1)
                wait_for(process, lambda least=least: in_the_midst(folder, least))  # type: ignore[misc]
            elif process.wait(timeout=PATIENCE):
                raise Died(f"query must end well, got exit status {process.returncode}")
        finally:
            kill(process)
        done = batches(folder, "commits")
        say(f"{done} of {files} batches are committed" + (": kill -9 in the next" * (k < kills)))


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
    write(log, folder / "in", files)
    play(folder, kills, files, lambda line: print(line, flush=True))
    out, made = read_committed(folder / "out"), played(log)
    left = len(set((folder / "out").glob("*.parquet")) - set(committed_files(folder / "out")))
    print(f"{left} files of batches that died lie beside those that were committed")
    same = agrees(out.drop_columns(["time", "body"]), log, made)
    if not same:
        raise Died("rows must be those of a table that was never killed, got others")
    print("nothing lost, nothing doubled, every bit as calibrant.Table plays it")
