"""What the first call costs: import, one round, and a first batch with and without a cache.

Every figure is the CPU time of a whole process, interpreter included; the first row is
an interpreter that does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.bars import Row
from calibrant.kernels.compile import available

__all__ = ["run"]

STEP = "from calibrant import Recalibrator; r = Recalibrator(seed=1); r.observe(r.forecast(0.3), 1)"
BATCH = (
    "import numpy; from calibrant import Recalibrator; "
    "Recalibrator(seed=1).replay(numpy.full(50_000, 0.3), numpy.ones(50_000, numpy.uint8))"
)
PROGRAMS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import calibrant": "import calibrant",
    "one round": STEP,
    "50,000 rounds as plain Python": BATCH,
}


def run(*, repeats: int = 5) -> list[Row]:
    """Return the least CPU time of each program over ``repeats`` processes."""
    costs: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(repeats):
        for name, program in PROGRAMS.items():
            costs[name].append(cpu_milliseconds(program, CALIBRANT_COMPILE="off"))
    return [Row(name, min(cost), "ms") for name, cost in costs.items()] + batches(repeats)


def batches(repeats: int) -> list[Row]:
    """Return rows for the first batch where Numba compiles it, and where it did before."""
    if not available():
        return []
    with tempfile.TemporaryDirectory() as directory:
        settings = {"CALIBRANT_COMPILE": "auto", "NUMBA_CACHE_DIR": directory}
        cold = cpu_milliseconds(BATCH, **settings)
        warm = min(cpu_milliseconds(BATCH, **settings) for _ in range(repeats))
    return [
        Row("50,000 rounds, compiled for the first time", cold, "ms"),
        Row("50,000 rounds, compiled code from the cache", warm, "ms"),
    ]


def cpu_milliseconds(program: str, **settings: str) -> float:
    """Return the CPU time of a process that runs ``program``, in milliseconds."""
    command = [sys.executable, "-c", f"{program}\nimport time; print(time.process_time())"]
    told = subprocess.run(
        command, env=os.environ | settings, check=True, capture_output=True, text=True
    )
    return float(told.stdout) * 1e3
