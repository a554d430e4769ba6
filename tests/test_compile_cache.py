"""Machine code from the cache on disk, compiled by several processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from calibrant.kernels.compile import available

SCRIPT = """
import sys
import numpy as np
from calibrant import Recalibrator
import calibrant.recalibrate.recalibrator as module

rng = np.random.default_rng(3)
raw = rng.random(300)
outcomes = (rng.random(300) < raw).astype(int)
for name in sys.argv[1:]:
    one, other, batch = (Recalibrator(name, resolution=6, buckets=3, seed=5) for _ in range(3))
    other.compile()
    for p, y in zip(raw.tolist(), outcomes.tolist()):
        mine, theirs = one.forecast(p), other.forecast(p)
        assert (mine.value, mine.mean) == (theirs.value, theirs.mean), name
        one.observe(mine, y)
        other.observe(theirs, y)
    batch.replay(raw, outcomes)
    assert one == other == batch, name
"""


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler, hence no cache")
def test_programs_compiled_by_different_processes_do_not_get_mixed_up(tmp_path) -> None:
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for names in (["blackwell"], ["foster_hart"], ["blackwell", "foster_hart"]):
        command = [sys.executable, "-c", SCRIPT, *names]
        told = subprocess.run(command, env=settings, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
    assert list(tmp_path.rglob("*.nbi"))
