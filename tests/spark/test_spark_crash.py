"""A driver that dies by kill -9 in the midst of a batch; and a cluster, in which nobody dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from calibrant.integrations.spark import demo, read_committed
from calibrant.integrations.spark.demo import PATIENCE, Died, driver, kill, wait_for
from calibrant.integrations.spark.fleet import agrees, events, played, write

ROWS = ["seq", "kind", "key", "id", "x", "forecast", "mean", "ticket", "fault"]


def test_a_query_that_is_killed_loses_doubles_and_changes_nothing(java, tmp_path, capsys) -> None:
    demo.main([str(tmp_path)], rounds=1500, models=30, files=4)
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("3,000 events of 30 models")
    committed = [f"  batch {k} of 4 is committed" for k in range(1, 5)]
    assert [line for line in told if line.startswith("  batch")] == committed
    killed = [line for line in told if line.startswith("kill -9")]
    assert [line.partition(";")[0][-7:-1] for line in killed] == ["batch "]
    assert told.index("  batch 2 of 4 is committed") < told.index(killed[0])
    assert told.index(killed[0]) < told.index("  batch 4 of 4 is committed")
    assert told[-1].startswith("3,000 rows: nothing lost, nothing doubled, every bit as")


def test_rows_that_differ_are_found(tmp_path, monkeypatch, capsys) -> None:
    log = events(150, 2, 3.0)
    rows = log.append_column("time", pa.nulls(300)).append_column("body", pa.nulls(300))
    made = played(log)
    for name, column in (("forecast", made.value), ("mean", made.mean), ("ticket", made.number)):
        rows = rows.append_column(name, pa.array(column))
    rows = rows.append_column("fault", pa.nulls(300, pa.string()))
    monkeypatch.setattr(demo, "play", lambda *given: None)
    monkeypatch.setattr(demo, "committed_files", lambda path: [])
    monkeypatch.setattr(demo, "read_committed", lambda path: rows)
    monkeypatch.setattr(demo.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    demo.main([], rounds=150, models=2, files=1)
    with pytest.raises(Died, match="got others"):
        demo.main([str(tmp_path / "other")], rounds=151, models=2, files=1)


def test_a_query_that_ends_badly_is_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(demo, "PROGRAM", "raise SystemExit(3)")
    with pytest.raises(Died, match="query must run on, got exit status 3"):
        demo.play(tmp_path, 1, 2, print)
    with pytest.raises(Died, match="query must end well, got exit status 3"):
        demo.play(tmp_path, 0, 2, print)


def test_a_query_that_takes_too_long_is_told(monkeypatch) -> None:
    monkeypatch.setattr(demo, "PATIENCE", 0.2)
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        with pytest.raises(Died, match=r"query must come so far within 0\.2 seconds"):
            wait_for(process, bool)
        process.kill()


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
