"""What a round of the default costs in instructions, and what first use costs.

Instructions are counted by callgrind, on a processor without anything that callgrind does not know:
of batches of two lengths, the difference over that of lengths.  They do not depend on what else the
machine does.  First use is the CPU time of a process whose machine
code is not on disk yet, less that of one that only imports Numba.

    python -m benchmarks.cost
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.start_up import cpu_milliseconds
from benchmarks.store import storing

SHORT, LONG = 20_001, 220_001
BAR, FIRST_BAR = 12.0, 5.0
PLAIN = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0"}
SCRIPT = """
import os, subprocess, time
from benchmarks.reference import c_loops, game

def play(raw, outcomes):
    {program}

def control(*words):
    told = subprocess.Popen(["callgrind_control", *words, str(os.getpid())], stdout=-3)
    while told.poll() is None:
        time.sleep(0.001)
    assert told.returncode == 0

games = [game(rounds) for rounds in ({short}, {long})]
play(*games[0])
if {counts}:
    control("-i", "on")
    for each in games:
        play(*each)
        control("-d")
"""
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
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument(
        "--only", choices=("instructions", "first", "passes"), help="one of the tables"
    )
    parser.add_argument("--store", action="store_true", help="keep the tables for the page")
    chosen: Any = parser.parse_args(arguments)
    with storing("cost", wanted=chosen.store):
        for name, table in TABLES.items():
            if chosen.only in (None, name):
                table()


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
    parts = {"program": program, "short": SHORT, "long": LONG}
    # What callgrind runs finds its machine code on disk, and is counted from then on.
    alone = [sys.executable, "-c", SCRIPT.format(**parts, counts=False)]
    subprocess.run(alone, env=settings, check=True)
    counted = [sys.executable, "-c", SCRIPT.format(**parts, counts=True)]
    return (instructions_of(counted, settings, directory)) / (LONG - SHORT)


def instructions_of(command: list[str], settings: dict[str, str], directory: str) -> int:
    """Return how many instructions the second batch of a process takes beyond the first."""
    out = pathlib.Path(directory) / "callgrind"
    tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    told = subprocess.run([*tool, *command], env=settings, capture_output=True, text=True)
    found = [file.read_text() for file in (out.with_suffix(".1"), out.with_suffix(".2"))]
    totals = [re.search(r"^totals: (\d+)", each, re.MULTILINE) for each in found]
    if told.returncode or None in totals:
        raise SystemExit(f"callgrind must count, got {told.stderr[-2000:]}")
    short, long = (int(each[1]) for each in totals if each is not None)
    return long - short


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


def passes() -> None:
    """Print what the compiler does when a long batch is first played."""
    with tempfile.TemporaryDirectory() as directory:
        settings = os.environ | {"CALIBRANT_COMPILE": "auto", "NUMBA_CACHE_DIR": directory}
        command = [sys.executable, "-c", PASSES]
        ran = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    print(ran.stdout, end="", flush=True)


PASSES = """
import re, time
from numba.core import event
from benchmarks.cost import USES

class Passes(event.Listener):
    def __init__(self):
        self.stack, self.spent = [[0.0, 0.0]], {}
    def on_start(self, one):
        self.stack.append([time.thread_time(), 0.0])
    def on_end(self, one):
        (start, within), now = self.stack.pop(), time.thread_time()
        times, before = self.spent.get(name := one.data["name"].split(" [")[0], (0, 0.0))
        self.spent[name] = times + 1, before + now - start - within
        self.stack[-1][1] += now - start

with event.install_listener("numba:run_pass", listener := Passes()):
    begun = time.thread_time()
    exec(USES["a long batch"])
    whole = time.thread_time() - begun
print("\\n| pass | functions | s of CPU |\\n|---|---|---|")
rows = sorted(listener.spent.items(), key=lambda row: -row[1][1])
for name, (times, spent) in rows[:6]:
    print(f"| {name} | {times} | {spent:.2f} |")
print(f"| all other passes | | {sum(spent for _, (_, spent) in rows[6:]):.2f} |")
print(f"| outside of passes | | {whole - sum(spent for _, (_, spent) in rows):.2f} |")
"""
TABLES = {"instructions": instructions, "first": first_use, "passes": passes}


if __name__ == "__main__":
    main()
