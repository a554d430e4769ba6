"""Functions that programs call are lowered quickly, to what plain Python and Numba say."""

from __future__ import annotations

import gc
import itertools
import operator
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason='needs the extra "fast"')

import numpy as np
from numba.core import event, types
from numba.core.registry import cpu_target

from calibrant.kernels import inner, lean

THIRD = 3


def words_of(table, flat, small, steps, found):
    """Read and write words of arrays in all ways."""
    reals = flat.view(np.float64)
    for k in range(-2, 2):
        found[k] = flat[k] + table[k, THIRD] - table[1, k]
        table[k, k] = k
    found[4] = small[np.uint64(1)] + small[-1]
    found[5] = reals[0] * 2.0
    found[THIRD] = flat[THIRD] // 2
    reals[-1] = 0.25
    found[6] = len(flat.view(np.uint8))
    found[7] = steps[1] + steps[-1]
    flat[-2] += table[-1][2]
    small[0] = 3.75


def least_and_most(x, y, k, found):
    """Compare numbers of several kinds, and make whole ones of others."""
    found[0], found[1] = min(x, y), max(x, y)
    found[2], found[3] = min(x, k, 2), max(k, y)
    found[4], found[5] = int(x * 10.0), int(k) + int(x < y)
    found[6] = min((k, 7)) + max((k, 7, 2))
    found[7] = k**2 + 2**k + x**-1


def sliced(flat):
    """Sum what is left of an array, with gaps and without."""
    total = 0
    for word in flat[1::2]:
        total += word
    return total + flat[2:][0]


def arrays():
    flat = np.arange(10, dtype=np.int64)
    flat[0] = np.float64(1.5).view(np.int64)
    small = np.array([5, 200, 7], np.uint8)
    return (
        np.arange(12, dtype=np.int64).reshape(3, 4),
        flat,
        small,
        np.arange(9.0)[::3],
        np.zeros(9),
    )


def test_words_of_arrays_are_what_plain_python_finds() -> None:
    plain, compiled = arrays(), arrays()
    words_of(*plain)
    inner.program(words_of, nogil=False)(*compiled)
    for one, other in zip(plain, compiled, strict=True):
        assert one.tobytes() == other.tobytes()


NUMBERS = [0.5, -0.0, 0.0, 2.5, -3.25, float("nan"), float("inf")]


def test_numbers_are_compared_as_plain_python_does() -> None:
    made = inner.program(least_and_most, nogil=False)
    for x, y, k in itertools.product(NUMBERS, NUMBERS, (1, 5)):
        if x != x or x in (0.0, float("inf")):
            continue
        plain, compiled = np.zeros(8), np.zeros(8)
        least_and_most(x, y, k, plain)
        made(x, y, k, compiled)
        assert plain.tobytes() == compiled.tobytes(), (x, y, k)


def test_arrays_with_gaps_are_left_to_numba() -> None:
    flat = np.arange(10)
    assert inner.program(sliced, nogil=False)(flat) == sliced(flat)


def test_whoever_looks_for_the_ends_of_arrays_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.BOUNDSCHECK", 1)

    def beyond(flat, k):
        return flat[k]

    with pytest.raises(IndexError, match="out of bounds"):
        inner.program(beyond, nogil=False)(np.arange(3), 3)


def test_no_function_is_compiled_for_an_instruction() -> None:
    listener = event.RecordingListener()

    def least(x, k):
        return min(x, 2.0) + max(k, 1) + int(x)

    with event.install_listener("numba:compile", listener):
        assert inner.program(least, nogil=False)(3.5, 0) == 6.0
    assert sum(each.is_start for _, each in listener.buffer) == 1


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]
KINDS = [types.int64, types.uint64, types.uint8, types.float64, types.boolean]


@pytest.mark.parametrize("operation", OPERATORS)
def test_operators_have_the_types_that_numba_gives_them(operation) -> None:
    context = cpu_target.typing_context
    context.refresh()
    called = context.resolve_value_type(operation)
    for kinds in itertools.product(KINDS, repeat=2):
        found = lean.typed(context, called, kinds)
        if found is not None:
            assert found == called.get_call_type(context, kinds, {}), kinds
        elif operation not in OPERATORS[6:11]:
            raise AssertionError(kinds)
    assert lean.typed(context, called, (types.int64, types.unicode_type)) is None
    assert lean.typed(context, operation, KINDS[:2]) is None


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_afterwards_if_it_was_before(enabled: bool) -> None:
    def told() -> None:
        raise AssertionError("never called")

    def fails(x):
        return x + told

    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(Exception, match="told"):
            inner.program(fails, nogil=False)(1.0)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize(("there", "spared"), [(True, 1), (False, 0)])
def test_linear_algebra_is_not_loaded_for_kernels(
    monkeypatch: pytest.MonkeyPatch, there: bool, spared: int
) -> None:
    loaded, asked = [], inner.linalg.ensure_blas
    inner.spare_blas()
    monkeypatch.delitem(sys.modules, "numba.np.arraymath", raising=False)
    monkeypatch.setattr(inner, "find_spec", lambda name: name if there else None)
    monkeypatch.setattr(
        inner, "import_module", lambda name: loaded.append((name, inner.linalg.ensure_blas()))
    )
    inner.spare_blas()
    assert loaded == [("numba.np.arraymath", None)] * spared
    assert inner.linalg.ensure_blas is asked


def test_others_multiply_matrices_as_before(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    told = """
import sys
import numba
import numpy as np
from calibrant.kernels.compile import compiled
from calibrant.kernels.odds import sigmoids
compiled(sigmoids, "odds")(np.zeros(3), np.zeros(3))
print("scipy.linalg" in sys.modules)
both = numba.njit(lambda a: (np.dot(a, a)[0, 0], np.convolve(a[0], a[0])[1]))
print(both(np.ones((3, 3))), "scipy.linalg" in sys.modules)
"""
    kept = {"NUMBA_CACHE_DIR": str(tmp_path), "CALIBRANT_COMPILE": "auto"}
    done = subprocess.run(
        [sys.executable, "-c", told], env=os.environ | kept, stdout=-1, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False", "(3.0, 2.0) True"]


def test_machine_code_on_disk_is_loaded_without_what_compiles(tmp_path: Path) -> None:
    told = """
import sys
import numpy as np
from calibrant.kernels.compile import compiled
from calibrant.kernels.odds import sigmoids
found = np.zeros(3)
compiled(sigmoids, "odds")(np.linspace(-1.0, 1.0, 3), found)
print("numba.np.arraymath" in sys.modules, found.tobytes().hex())
"""
    kept = {"NUMBA_CACHE_DIR": str(tmp_path), "CALIBRANT_COMPILE": "auto"}
    command = [sys.executable, "-c", told]
    first, second = (
        subprocess.run(command, env=os.environ | kept, stdout=-1, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.split() == ["True", second.split()[1]]
    assert second.split()[0] == "False"


def test_only_arrays_of_numbers_without_gaps_are_dense() -> None:
    assert lean.is_dense(types.Array(types.int64, 2, "C"))
    assert not lean.is_dense(types.int64)
    assert not lean.is_dense(types.Array(types.boolean, 1, "C"))
    assert not lean.is_dense(types.Array(types.int64, 2, "F"))
    assert not lean.is_dense(types.Array(types.int64, 1, "C", aligned=False))


def test_an_operator_with_a_side_that_numba_knows_is_lowered_as_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = "numba.core.rewrites.static_binop.DetectStaticBinops.rhs_operators"
    monkeypatch.setattr(known, {operator.pow})

    def cubed(x, k):
        return x**3 + k**2

    assert inner.program(cubed, nogil=False)(1.5, 4) == cubed(1.5, 4)
