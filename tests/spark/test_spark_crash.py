"""Processes that die: the driver by kill -9 in the midst of a batch, an executor of a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleet import agrees, events, played, write

from calibrant.integrations.spark import committed_files, read_committed

HERE = Path(__file__).parent
ROWS = ["seq", "kind", "key", "id", "x", "forecast", "mean", "ticket", "fault"]
PATIENCE = 300


def driver(folder: Path, master: str = "local[2]") -> subprocess.Popen[bytes]:
    """Start a query in a process of its own, with all its children in one group."""
    command = [sys.executable, str(HERE / "fleet.py"), str(folder), master]
    log = (folder / "driver.log").open("ab")
    return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def wait_for(process: subprocess.Popen[bytes], told: Callable[[], bool]) -> None:
    """Wait until something is so while a process runs."""
    for _ in range(PATIENCE * 20):
        if told():
            return
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError("the process ended, or took too long")


def batches(folder: Path, kind: str) -> set[str]:
    place = folder / "checkpoint" / kind
    return {file.name for file in place.glob("[0-9]*")} if place.is_dir() else set()


def in_the_midst(folder: Path, least: int) -> bool:
    """Say whether so many batches were committed, and another has begun."""
    done = batches(folder, "commits")
    return len(done) >= least and len(batches(folder, "offsets")) > len(done)


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_driver_that_is_killed_loses_doubles_and_changes_nothing(java, tmp_path) -> None:
    log = events(1500, 30, 50.0)
    write(log, tmp_path / "in", 5)
    process = driver(tmp_path)
    try:
        wait_for(process, lambda: in_the_midst(tmp_path, 2))
    finally:
        kill(process)
    assert len(batches(tmp_path, "commits")) < 5
    process = driver(tmp_path)
    try:
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        if process.poll() is None:
            kill(process)
    assert len(batches(tmp_path, "commits")) == 5
    assert agrees(read_committed(tmp_path / "out").select(ROWS), log, played(log))
    assert set(committed_files(tmp_path / "out")) <= set((tmp_path / "out").glob("*.parquet"))


@contextmanager
def daemon(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of a cluster, and end it."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_WORKER_DIR": str(log.parent / "work"),
    }
    with log.open("ab") as out:
        made = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command], stdout=out, stderr=out, env=settings
        )
        try:
            yield made
        finally:
            made.kill()
            made.wait()


def test_a_cluster_says_what_a_table_says(java, tmp_path, unused_port) -> None:
    log = events(400, 30, 50.0)
    write(log, tmp_path / "in", 2)
    port, logs = str(unused_port), [tmp_path / name for name in ("master", "first", "second")]
    master = "org.apache.spark.deploy.master.Master"
    worker = "org.apache.spark.deploy.worker.Worker"
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    each = ("--cores", "1", "--memory", "1g", f"spark://127.0.0.1:{port}")
    with (
        daemon(logs[0], master, *where, "--port", port) as head,
        daemon(logs[1], worker, *where, *each) as first,
        daemon(logs[2], worker, *where, *each) as second,
    ):
        for process in (first, second):
            wait_for(process, lambda: logs[0].read_text().count("Registering worker") == 2)
        process = driver(tmp_path, f"spark://127.0.0.1:{port}")
        try:
            assert process.wait(timeout=PATIENCE) == 0
        finally:
            if process.poll() is None:
                kill(process)
        assert head.poll() is None
        assert second.poll() is None
    assert agrees(read_committed(tmp_path / "out").select(ROWS), log, played(log))


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]
