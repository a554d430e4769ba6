"""Run benchmarks: all of them, or those named on the command line."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

from benchmarks.bars import Row, listed, show
from benchmarks.reference import FLAGS, c_compiler
from benchmarks.store import add_store, put

TITLES = {
    "kernels": "Batch replay: time per round, ratio = ours / reference",
    "one_step": "One round at a time: time per round, ratio = reference / ours",
    "default": "The default: time per round; batches: ours / reference, single: reference / ours",
    "exponential": "exponential_regret: time per round, ratio = reference / ours",
    "floor": "The floor: sizes of rows and objects, many open tickets, and the commit before",
    "coins": "Coins of today, and of earlier versions: time per coin, and per round with them",
    "start_up": "Start-up: CPU time of a whole process",
    "river_overhead": "River: what a wrapper adds to a logistic regression, ratio = added / bare",
    "frames": "Frames: time per row, ratio = arrays / frame",
}
QUICK: dict[str, dict[str, int]] = {
    "kernels": {"rounds": 200_000, "repeats": 5},
    "one_step": {"rounds": 5_000, "repeats": 7},
    "default": {"rounds": 200_000, "repeats": 5},
    "exponential": {"rounds": 500, "repeats": 3},
    "floor": {"repeats": 3},
    "coins": {"rounds": 200_000, "repeats": 5},
    "start_up": {"repeats": 1},
    "river_overhead": {"passes": 2, "repeats": 7},
    "frames": {"rows": 1_000_000, "repeats": 3},
}
PACKAGES = ("numpy", "numba", "river", "scikit-learn", "netcal")
"""What numbers depend on: libraries, and what is compared with them."""
RESULTS = pathlib.Path(__file__).with_name("results")


def main(arguments: list[str] | None = None) -> None:
    """Run, print and save; a bar that is missed is marked and does not stop anything."""
    chosen = parse(arguments)
    for name in chosen.names or TITLES:
        module = importlib.import_module(f"benchmarks.{name}")
        rows = module.run(**(QUICK[name] if chosen.quick else {}))
        show(TITLES[name], rows)
        save(name, rows)
        if chosen.store:
            words = ["benchmarks", *(["--quick"] if chosen.quick else []), name]
            put(name, f"python -m {' '.join(words)}", [listed(rows)])
    print(" · ".join(f"{what}: {told}" for what, told in machine().items()))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TITLES))
    parser.add_argument("--quick", action="store_true", help="fewer rounds and repeats")
    add_store(parser)
    chosen = parser.parse_args(arguments)
    if unknown := sorted(set(chosen.names) - set(TITLES)):
        parser.error(f"NAME must be among {', '.join(TITLES)}, got {', '.join(unknown)}")
    return chosen


def save(name: str, rows: list[Row]) -> None:
    """Write the rows, and where they were measured, to ``results/<name>.json``."""
    RESULTS.mkdir(exist_ok=True)
    data = {"machine": machine(), "rows": [row.to_dict() for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "C": f"{compiler()} {' '.join(FLAGS)}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def processor() -> str:
    """Return the processor's name, as well as the system tells it."""
    listed = pathlib.Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def compiler() -> str:
    """Return the first line with which the C compiler introduces itself."""
    if (found := c_compiler()) is None:
        return "none"
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.partition("\n")[0]


if __name__ == "__main__":
    main(sys.argv[1:])
