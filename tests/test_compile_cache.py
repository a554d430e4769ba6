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


SMALL = """
import sys, warnings
import numpy as np
from calibrant.kernels.compile import compiled
from calibrant.kernels.odds import sigmoids

{damage}
into = np.empty(3)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    compiled(sigmoids, "small")(np.zeros(3), into)
assert into.tolist() == [0.5] * 3
told = [str(each.message) for each in found]
assert all("its cache cannot be used" in each for each in told), told
print(len(told))
"""
NO_PLACE = """
from numba.core import caching
def refuse(self):
    raise OSError(30, "Read-only file system")
caching._CacheLocator.ensure_cache_path = refuse
"""
NO_ROOM = """
from numba.core import caching
def full(self, name, data):
    raise OSError(28, "No space left on device")
caching.IndexDataCacheFile._save_data = full
"""


def warned(place, damage: str = "") -> int:
    """Compile a small kernel in a new process; return how many warnings there were."""
    settings = os.environ | {"NUMBA_CACHE_DIR": str(place), "CALIBRANT_COMPILE": "auto"}
    command = [sys.executable, "-c", SMALL.format(damage=damage)]
    told = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return int(told.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler, hence no cache")
def test_a_damaged_cache_costs_one_warning_and_is_made_anew(tmp_path) -> None:
    assert warned(tmp_path) == 0
    for kind in ("*.nbi", "*.nbc"):
        for content in (b"", b"garbage", None):
            (file,) = tmp_path.rglob(kind)
            file.write_bytes(file.read_bytes()[:-9] if content is None else content)
            assert warned(tmp_path) == 1, (kind, content)
            assert warned(tmp_path) == 0, (kind, content)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler, hence no cache")
@pytest.mark.parametrize("damage", [NO_PLACE, NO_ROOM])
def test_without_a_place_or_room_for_the_cache_kernels_are_compiled_all_the_same(
    tmp_path, damage: str
) -> None:
    assert warned(tmp_path / "cache", damage) == 1
    assert not list(tmp_path.rglob("*.nbc"))
