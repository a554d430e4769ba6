"""How fast is ``calibrant replay``, beside a bare copy of the same file?

    python -m benchmarks.replay_cli --rows 1000000 --repeats 3
    python -m benchmarks.replay_cli --rows 100000000 --formats parquet --memory-rows 1000000

The bare copy reads every column with pyarrow and writes them with four more columns of the
same kinds, with the same settings, and does nothing else.  Both run on one core, by turns, in
processes of their own, after a rehearsal on a short file; the fastest of the repeats counts.
Times are those of whole processes, from start to end, with Python's compiled modules at hand
as they are after a first run.  With ``--memory-rows`` the peak memory of a replay of so many
rows is measured beside that of ``--rows``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

BATCH = 1 << 16
CHUNK = 1_000_000
SCHEMA = pa.schema([("p", pa.float64()), ("y", pa.int8())])
ADDED = [("forecast", pa.float64()), ("mean", pa.float64()), ("bucket", pa.int32())]
OUT = pa.schema([*SCHEMA, *(pa.field(*pair) for pair in ADDED), ("ticket", pa.int64())])
WRITING = {"use_dictionary": False, "compression": "snappy"}
GROUP_ROWS = 1 << 19
ENOUGH = 300_000


def make(path: Path, rows: int) -> None:
    """Write over-confident forecasts and their outcomes."""
    generator = np.random.default_rng(2017)
    with writer(path, SCHEMA) as file:
        for start in range(0, rows, CHUNK):
            raw = generator.random(min(CHUNK, rows - start))
            truth = 0.5 + 0.7 * (raw - 0.5)
            outcomes = generator.random(len(raw)) < truth
            file.write(pa.table([raw, outcomes.astype(np.int8)], schema=SCHEMA))


def writer(path: Path, schema: pa.Schema) -> pyarrow.csv.CSVWriter | pq.ParquetWriter:
    if path.suffix == ".csv":
        return pyarrow.csv.CSVWriter(path, schema)
    return pq.ParquetWriter(path, schema, **WRITING)


def batches(path: Path):
    if path.suffix == ".csv":
        options = pyarrow.csv.ReadOptions(use_threads=False, block_size=64 * BATCH)
        return pyarrow.csv.open_csv(path, read_options=options)
    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    return file.iter_batches(BATCH, use_threads=False)


def copy(path: Path, out: Path) -> None:
    """Copy a file with four more columns, whose values cost nothing to make."""
    generator = np.random.default_rng(1)
    forecast, mean = generator.integers(0, 21, 1 << 20) / 20, generator.random(1 << 20)
    bucket, ticket = generator.integers(0, 20, 1 << 20, np.int32), np.arange(1 << 20)
    waiting, rows = [], 0
    file = None
    for batch in batches(path):
        n = len(batch)
        added = [pa.array(column[:n]) for column in (forecast, mean, bucket, ticket)]
        made = pa.record_batch([*batch.columns, *added], names=OUT.names)
        file = file or writer(out, made.schema)
        waiting.append(made)
        rows += n
        if rows >= GROUP_ROWS or path.suffix == ".csv":
            file.write(pa.Table.from_batches(waiting))
            waiting, rows = [], 0
    if waiting:
        file.write(pa.Table.from_batches(waiting))
    file.close()


def run(command: list[str]) -> dict[str, float]:
    """Run a command on one core; return seconds, CPU seconds and peak MiB."""

    def one_core() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    wrapped = [sys.executable, __file__, "--measure", *command]
    told = subprocess.run(
        wrapped, check=True, preexec_fn=one_core, stdout=subprocess.PIPE, env=environment()
    )
    return json.loads(told.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """Return an environment in which Python keeps what it has compiled, in a place of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "calibrant-pycache"))}


def measure(command: list[str]) -> None:
    """Run a command as a child; print what it took."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))


def commands(path: Path, out: Path) -> dict[str, list[str]]:
    python = [sys.executable]
    replay = [*python, "-m", "calibrant.cli", "replay", str(path), "--seed", "1", "--force"]
    replay += ["--method", "foster_hart"]
    return {
        "bare copy": [*python, __file__, "--copy", str(path), str(out)],
        "replay --out": [*replay, "--out", str(out)],
        "replay": replay,
    }


def fastest(times: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(found[key] for found in times) for key in times[0]}


def rehearse(path: Path) -> None:
    """Run everything once on a file that is just long enough to start the compiler."""
    out = path.with_name(f"out{path.suffix}")
    make(path, ENOUGH)
    for command in commands(path, out).values():
        run(command)
    out.unlink(missing_ok=True)
    path.unlink()


def compare(path: Path, rows: int, repeats: int) -> None:
    out = path.with_name(f"out{path.suffix}")
    asked = commands(path, out)
    took: dict[str, list[dict[str, float]]] = {name: [] for name in asked}
    for _ in range(repeats):
        for name, command in asked.items():
            # Otherwise a replay, which replaces its output at the end, would find the disk fuller.
            out.unlink(missing_ok=True)
            took[name].append(run(command))
    best = {name: fastest(times) for name, times in took.items()}
    base = best["bare copy"]
    print(f"| {path.suffix[1:]}, {rows:,} rows, best of {repeats} ", end="")
    print("| rows a second | rows a CPU second | of the bare copy | in CPU | peak MiB |")
    print("|---|---|---|---|---|---|")
    for name, found in best.items():
        rates = rows / found["seconds"], rows / found["cpu"]
        shares = base["seconds"] / found["seconds"], base["cpu"] / found["cpu"]
        told = " | ".join([*(f"{x:,.0f}" for x in rates), *(f"{x:.2f}" for x in shares)])
        print(f"| {name} | {told} | {found['peak']:.0f} |")
    out.unlink(missing_ok=True)


def memory(path: Path, small: Path, rows: int, memory_rows: int) -> None:
    peaks = []
    for file in (small, path):
        out = file.with_name(f"out{file.suffix}")
        peaks.append(run(commands(file, out)["replay --out"])["peak"])
        out.unlink()
    print(f"\n| rows of {path.suffix[1:]} | peak memory of `replay --out` |\n|---|---|")
    for count, peak in zip((memory_rows, rows), peaks, strict=True):
        print(f"| {count:,} | {peak:.0f} MiB |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--formats", default="parquet,csv")
    parser.add_argument("--memory-rows", type=int, default=0)
    parser.add_argument("--measure", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("--copy", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--store", action="store_true", help="keep the tables for the page")
    asked = parser.parse_args()
    if asked.measure:
        return measure(asked.measure)
    if asked.copy:
        return copy(*asked.copy)
    # Not at the top: what is measured runs this file, and should load nothing else.
    from benchmarks.store import storing

    part = asked.formats.replace(",", "_")
    with storing("replay_cli", part=part, wanted=asked.store):
        for suffix in asked.formats.split(","):
            of_format(suffix, asked)


def of_format(suffix: str, asked: argparse.Namespace) -> None:
    """Print the tables of one format."""
    with tempfile.TemporaryDirectory() as place:
        path, small = Path(place, f"data.{suffix}"), Path(place, f"small.{suffix}")
        rehearse(small)
        make(path, asked.rows)
        compare(path, asked.rows, asked.repeats)
        if asked.memory_rows:
            make(small, asked.memory_rows)
            memory(path, small, asked.rows, asked.memory_rows)


if __name__ == "__main__":
    main()
