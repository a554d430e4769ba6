"""Programs are compiled from functions that are lowered once each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason='needs the extra "fast"')

import numba
import numpy as np
from numba.core import event

from calibrant.kernels import compile, inner, usual
from calibrant.kernels.fetch import fetch
from calibrant.kernels.prefetch import fetch_now


def shared(x, k=2):
    return x * k


def doubled(x):
    return shared(x)


def tripled(x):
    return shared(x, 3)


def stands_in(x):
    raise AssertionError("never called")


def halved(x):
    return x / 2


def both(numbers, first):
    for k in range(len(numbers)):
        numbers[k] = doubled(numbers[k]) + tripled(numbers[k]) + shared(numbers[k], first)


def other(numbers):
    numbers[0] = tripled(numbers[0]) + stands_in(numbers[0])


@pytest.fixture(scope="module")
def known() -> None:
    for function in (shared, doubled):
        inner.make_known(function, function, False)
    inner.make_known(tripled, tripled, True)
    inner.make_known(stands_in, halved, True)


@pytest.mark.usefixtures("known")
def test_a_function_is_lowered_once_for_all_programs_and_all_whole_numbers() -> None:
    numbers = np.array([1.0, 0.25])
    listener = event.RecordingListener()
    with event.install_listener("numba:compile", listener):
        inner.program(both, nogil=False)(numbers, 4)
        assert numbers.tolist() == [9.0, 2.25]
        inner.program(other, nogil=True)(numbers)
    assert numbers.tolist() == [31.5, 2.25]
    lowered = [each.data["dispatcher"].py_func for _, each in listener.buffer if each.is_start]
    # The factor left out, which is no number, makes another function.
    assert lowered.count(shared) == 2
    assert [lowered.count(each) for each in (doubled, tripled, halved, both, other)] == [1] * 5


@pytest.mark.usefixtures("known")
def test_only_programs_have_machine_code_and_it_says_what_plain_python_says() -> None:
    made = inner.program(both, nogil=False)
    numbers, plain = np.linspace(0.0, 1.0, 7), np.linspace(0.0, 1.0, 7)
    made(numbers, 5)
    both(plain, 5)
    assert numbers.tolist() == plain.tolist()
    (whole,) = made.overloads.values()
    called = [each for each in whole.library._linking_libraries if isinstance(each, inner.Lowered)]
    assert len(called) == 4
    engine = whole.library._codegen._engine
    names = {each.name for library in called for each in library.get_defined_functions()}
    assert names
    assert not any(map(engine.is_symbol_defined, names))


def plain_shared(x):
    return x * 2


def plain_program(numbers):
    for k in range(len(numbers)):
        numbers[k] = plain_shared(numbers[k]) + plain_stands_in(numbers[k])


def plain_stands_in(x):
    raise AssertionError("never called")


@pytest.mark.parametrize(
    ("version", "name"),
    [("0.60.0", "usual"), ("0.67.9", "usual"), ("0.68.1", "inner"), ("0.69.0rc1", "usual")],
)
def test_versions_that_were_not_tried_compile_as_usual(
    monkeypatch: pytest.MonkeyPatch, version: str, name: str
) -> None:
    monkeypatch.setattr("numba.__version__", version)
    assert compile.numba().__name__ == f"calibrant.kernels.{name}"


def test_the_usual_way_says_what_plain_python_says() -> None:
    usual.make_known(plain_shared, plain_shared, False)
    usual.make_known(plain_stands_in, halved, True)
    numbers = np.array([1.0, 0.25])
    usual.program(plain_program, nogil=True)(numbers)
    assert numbers.tolist() == [2.5, 0.625]


@pytest.mark.slow
def test_a_batch_is_the_same_compiled_as_usual(tmp_path: Path) -> None:
    told = """
import numba, sys
numba.__version__ = sys.argv[1]
import numpy as np
from calibrant import Recalibrator, Table
raw, outcomes = np.linspace(0.0, 1.0, 30_000), np.arange(30_000) % 3 == 0
model = Recalibrator("foster_hart", seed=7)
print(model.replay(raw, outcomes).forecast.tobytes().hex()[-4000:])
print(model.to_bytes().hex())
table = Table(Recalibrator("foster_hart"), seed=7)
print(table.replay(np.arange(30_000) % 7, raw, outcomes).mean.tobytes().hex()[-4000:])
print(table.to_bytes().hex())
"""

    def said(version: str) -> str:
        kept = {"NUMBA_CACHE_DIR": str(tmp_path / version), "CALIBRANT_COMPILE": "auto"}
        command = [sys.executable, "-c", told, version]
        done = subprocess.run(command, env=os.environ | kept, stdout=-1, text=True, check=True)
        return done.stdout

    assert said("1.0.0") == said(numba.__version__)


def doubled_words(words):
    for k in range(len(words)):
        fetch(words, k + 2)
        words[k] *= 2


def usually_fetch(words, at):
    raise AssertionError("never called")


def usually_doubled_words(words):
    for k in range(len(words)):
        usually_fetch(words, k + 2)
        words[k] *= 2


def test_asking_for_a_word_is_an_instruction_that_changes_nothing() -> None:
    compile.register(fetch)
    usual.make_known(usually_fetch, fetch_now, True)
    for how, loop in ((compile.numba(), doubled_words), (usual, usually_doubled_words)):
        words, made = np.arange(6), how.program(loop, nogil=True)
        made(words)
        assert words.tolist() == [0, 2, 4, 6, 8, 10]
        (whole,) = made.overloads.values()
        assert "@llvm.prefetch" in whole.library.get_llvm_str()
    with pytest.raises(NotImplementedError, match="not usable in pure-python"):
        fetch_now(np.arange(6), 2)


def told_twice(x):
    return 2.0 * x


def test_a_function_may_be_made_known_again() -> None:
    for _ in range(2):
        compile._make_known(told_twice, told_twice, False)
    found = np.empty(1)

    def loop(found):
        found[0] = told_twice(1.5)

    compile.numba().program(loop, nogil=False)(found)
    assert found.tolist() == [3.0]
