"""What a round of the default costs in instructions, and what first use costs.

Instructions are counted by callgrind, on a processor without anything that callgrind does not know:
of two processes that play batches of two lengths, the difference over that of lengths.  They do
not depend on what else the machine does.  First use is the CPU time of a process whose machine
code is not on disk yet, less that of one that only imports Numba.

    python -m benchmarks.cost
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.start_up import cpu_milliseconds

SHORT, LONG = 20_001, 220_001
BAR, FIRST_BAR = 12.0, 5.0
PLAIN = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0"}
GAME = "from benchmarks.reference import c_loops, game; raw, outcomes = game({rounds}); "
BATCH = "{made}.replay(raw, outcomes)"
RULE = "'refining', resolution=15, grid='graded', buckets=1, seed=1"
PROGRAMS = {
    "C, foster_hart, N = M = 20": "from benchmarks.kernels import c_replay; "
    "c_replay('foster_hart', 20, c_loops('foster_hart')['foster_hart'], raw, outcomes)()",
    "foster_hart, N = M = 20": "from benchmarks.kernels import fresh; "
    + BATCH.format(made="fresh('foster_hart', 20)"),
    "the last stage of the default alone": "from calibrant import Recalibrator; "
    + BATCH.format(made=f"Recalibrator({RULE})"),
    "the default": "from calibrant import Calibrant; " + BATCH.format(made="Calibrant(seed=1)"),
}
USES = {
    "a long batch": "import numba; import numpy; from calibrant import Calibrant; "
    "Calibrant(seed=1).replay(numpy.full(50_000, 0.3), numpy.ones(50_000, numpy.uint8))",
    "one by one, by compile()": "import numba; from calibrant import Calibrant; "
    "Calibrant(seed=1).compile()",
}


def main(arguments: list[str] | None = None) -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("--only", choices=("instructions", "first"), help="one of the tables")
    chosen: Any = parser.parse_args(arguments)
    if chosen.only != "first":
        instructions()
    if chosen.only != "instructions":
        first_use()


def instructions() -> None:
    """Print how many instructions a round takes."""
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind must be installed to count instructions")
    print("| batch | instructions a round | to C |\n|---|---|---|", flush=True)
    least = None
    with tempfile.TemporaryDirectory() as directory:
        for name, program in PROGRAMS.items():
            count = a_round(program, directory)
            least = least or count
            print(f"| {name} | {count:,.0f} | {count / least:.1f} |", flush=True)


def a_round(program: str, directory: str) -> float:
    """Return the instructions of a round."""
    settings = os.environ | PLAIN | {"NUMBA_CACHE_DIR": directory}
    counts = []
    for rounds in (SHORT, LONG):
        command = [sys.executable, "-c", GAME.format(rounds=rounds) + program]
        if not counts:
            # What callgrind runs finds its machine code on disk.
            subprocess.run(command, env=settings, check=True)
        counts.append(counted(command, settings))
    return (counts[1] - counts[0]) / (LONG - SHORT)


def counted(command: list[str], settings: dict[str, str]) -> int:
    """Return how many instructions a process takes."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    told = subprocess.run([*tool, *command], env=settings, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", told.stderr)
    if told.returncode or found is None:
        raise SystemExit(f"callgrind must count, got {told.stderr[-2000:]}")
    return int(found[1])


def first_use() -> None:
    """Print what first use costs, and what it costs from the cache on disk."""
    print("\n| first use | compiles, s of CPU | from disk, s of CPU | bar |\n|---|---|---|---|")
    settings = {"CALIBRANT_COMPILE": "auto"}
    nothing = cpu_milliseconds("import numba", **settings)
    for name, program in USES.items():
        with tempfile.TemporaryDirectory() as directory:
            settings["NUMBA_CACHE_DIR"] = directory
            both = [cpu_milliseconds(program, **settings) for _ in range(2)]
        cold, warm = ((each - nothing) / 1e3 for each in both)
        told = "met" if cold <= FIRST_BAR else "missed"
        print(f"| {name} | {cold:.1f} | {warm:.1f} | {FIRST_BAR:g}, {told} |", flush=True)


if __name__ == "__main__":
    main()
