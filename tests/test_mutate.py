"""Tests notice what is broken: mutants are made, named, tried and explained."""

from __future__ import annotations

import ast
import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.mutate import switch
from benchmarks.mutate.__main__ import digest, digest_of, everyone, explanations, summary
from benchmarks.mutate.mutants import SOURCES, Mutant, mutants_of, name_of, sample, sources
from benchmarks.mutate.relevant import UNTOUCHED, relevant_to
from benchmarks.mutate.weave import is_pure, woven

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
IN_CI = 6
"""Mutants that every run of all tests tries."""

EXAMPLE = '''"""What this is."""
from math import sqrt
__all__ = ["f"]

def f(x: int, y: float = 0.5) -> float:
    """Say something."""
    if x < 3 and not y:
        raise ValueError(f"x must be {3 + 1}")
    x += 1
    return -sqrt(x) if True else x - y
'''


@pytest.fixture(scope="module")
def mutants() -> list[Mutant]:
    return everyone()


def shown(text: str) -> list[str]:
    return [f"{mutant.was} -> {mutant.became}" for mutant in mutants_of("f.py", text)]


def test_every_place_that_runs_is_broken_once_and_no_other() -> None:
    assert shown(EXAMPLE) == [
        "0.5 -> 1.0",
        "x < 3 and (not y) -> x < 3 or not y",
        "x < 3 -> x <= 3",
        "3 -> 4",
        "not y -> y",
        "raise ValueError(f'x must be {3 + 1}') -> pass",
        "x += 1 -> pass",
        "1 -> 2",
        "-sqrt(x) if True else x - y -> x - y if True else -sqrt(x)",
        "True -> False",
        "-sqrt(x) -> sqrt(x)",
        "x - y -> x + y",
    ]


def test_a_mutant_differs_from_the_file_in_its_place_alone() -> None:
    for mutant in mutants_of("f.py", EXAMPLE):
        lines = mutant.within(EXAMPLE).splitlines()
        differ = [k for k, pair in enumerate(zip(lines, EXAMPLE.splitlines(), strict=True), 1)]
        changed = [k for k in differ if lines[k - 1] != EXAMPLE.splitlines()[k - 1]]
        assert changed == [mutant.span[0]]


def test_a_name_outlives_changes_elsewhere() -> None:
    longer = EXAMPLE.replace("def f", "SIZE = 7\n\n\ndef f")
    names = {mutant.name for mutant in mutants_of("f.py", EXAMPLE)}
    assert names < {mutant.name for mutant in mutants_of("f.py", longer)}


def test_mutants_have_names_of_their_own_and_can_be_read_by_python(mutants: list[Mutant]) -> None:
    assert len(mutants) > 10_000
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in sample(mutants, 100, seed=2):
        text = (SOURCES / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.within(text))) != ast.dump(ast.parse(text)), mutant.name


def test_a_small_sample_begins_a_large_one() -> None:
    mutants = everyone(("bounds/",))
    assert sample(mutants, 5, seed=1) == sample(mutants, 50, seed=1)[:5]
    assert sample(mutants, 5, seed=1) != sample(mutants, 5, seed=2)


def test_every_file_has_tests_and_every_test_is_there() -> None:
    files = {name_of(path) for path in sources()}
    assert set(UNTOUCHED) < files
    for file in files:
        listed = [name for name, _ in relevant_to(file)]
        assert listed, file
        assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in listed), file


def test_whatever_is_explained_is_still_a_mutant(mutants: list[Mutant]) -> None:
    assert set(explanations()) <= {mutant.name for mutant in mutants}


def fates(mutants: list[Mutant], alive: int = 0) -> dict[str, dict[str, str]]:
    """Fates of today: the first so many are alive."""
    by = "tests/test_bounds.py::test_that_fails"
    told: dict[str, dict[str, str]] = {}
    for k, mutant in enumerate(mutants):
        fate = {"fate": "alive", "by": ""} if k < alive else {"fate": "killed", "by": by}
        told[mutant.name] = fate | {"digest": digest(mutant, fate)}
    return told


def test_a_mutant_that_lives_must_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    mutants = everyone(("bounds/gaps",))[:40]
    assert summary(mutants, fates(mutants)) == 0
    assert summary(mutants, fates(mutants, alive=1)) == 1
    told = capsys.readouterr().out
    assert "40 of 40 mutants tried: 1 alive, 39 killed" in told
    assert "NOT EXPLAINED" in told


def test_at_most_one_in_twenty_may_live_however_few_were_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutants = everyone(("bounds/gaps",))[:20]
    why = {mutant.name: "It does the same." for mutant in mutants}
    monkeypatch.setattr("benchmarks.mutate.__main__.explanations", lambda: why)
    assert summary(mutants, fates(mutants, alive=1)) == 0
    assert summary(mutants, fates(mutants, alive=2)) == 1
    assert summary(mutants[:19], fates(mutants, alive=1)) == 1
    assert summary(mutants[:8], fates(mutants, alive=1)) == 1


def test_a_fate_of_files_or_tests_that_have_changed_does_not_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mutants = everyone(("bounds/gaps",))[:40]
    known = fates(mutants)
    known[mutants[3].name] = {"fate": "alive", "by": "", "digest": "of another time"}
    assert summary(mutants, known) == 0
    assert "39 of 40 mutants tried: 39 killed" in capsys.readouterr().out


def test_a_fate_depends_on_the_tests_that_could_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = everyone(("bounds/gaps",))[0]
    killed = digest(mutant, {"fate": "killed", "by": "tests/test_bounds.py::test_that_fails"})
    assert killed == digest(mutant, {"fate": "out of time", "by": "bounds"})
    assert killed != digest(mutant, {"fate": "killed", "by": "tests/test_promise.py::test_other"})
    alive = digest(mutant, {"fate": "alive", "by": ""})
    assert alive == digest_of(mutant.file, tuple(name for name, _ in relevant_to(mutant.file)))
    why = {mutant.name: "It does the same."}
    monkeypatch.setattr("benchmarks.mutate.__main__.explanations", lambda: why)
    assert digest(mutant, {"fate": "alive", "by": ""}) == digest_of(mutant.file, ())


# --------------------------------------------------------------- many behind switches

WOVEN = '''"""What this is."""
from __future__ import annotations

def f(x, y=0.5):
    """Say something."""
    found = []
    for k in range(x):
        if k == 3 and not y:
            continue
        if k > 7:
            raise ValueError("far")
        found.append(min(k, 2) * -y)
        y += 0.25
    return found if len(found) < 6 else (
        found[1:]
    )
'''
CASES = [(0,), (3,), (6,), (5, 0), (6, -0.75), (7, 0.0), (9,), (4, 1)]


def played(text: str) -> list[str]:
    """What the function of a file returns or raises."""
    space: dict[str, Any] = {}
    exec(compile(text, "played", "exec", dont_inherit=True), space)
    told = []
    for case in CASES:
        try:
            told.append(repr(space["f"](*case)))
        except (ArithmeticError, TypeError, ValueError) as error:
            told.append(repr(error))
    return told


@pytest.fixture
def mutant_switch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The switch under the name that woven files know."""
    monkeypatch.setitem(sys.modules, "mutant_switch", switch)
    monkeypatch.setattr(switch, "reached", set())
    monkeypatch.setattr(switch, "moved", set())
    return switch


def test_a_woven_file_is_the_code_until_a_mutant_is_switched_on(
    mutant_switch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutants = dict(enumerate(mutants_of("f.py", WOVEN)))
    assert len(mutants) == 19
    for number, mutant in mutants.items():
        text, taken = woven(WOVEN, {number: mutant})
        assert taken == [number]
        monkeypatch.setattr(mutant_switch, "active", -1)
        assert played(text) == played(WOVEN), mutant.name
        monkeypatch.setattr(mutant_switch, "active", number)
        assert played(text) == played(mutant.within(WOVEN)), mutant.name


def test_mutants_share_a_file_unless_one_is_inside_another(mutant_switch: Any) -> None:
    mutants = dict(enumerate(mutants_of("f.py", WOVEN)))
    text, taken = woven(WOVEN, mutants)
    spans = sorted(mutants[number].span for number in taken)
    assert all(one[2:] <= other[:2] for one, other in itertools.pairwise(spans))
    assert len(taken) == 11
    assert played(text) == played(WOVEN)
    assert mutant_switch.reached == set(taken)


def test_only_a_value_that_differs_can_be_noticed(mutant_switch: Any) -> None:
    text = WOVEN.replace("k > 7", "k * 2 > 14")
    [(number, _)] = [
        (number, mutant)
        for number, mutant in enumerate(mutants_of("f.py", text))
        if mutant.was == "k * 2 > 14"
    ]
    made, _ = woven(text, {number: list(mutants_of("f.py", text))[number]})
    space: dict[str, Any] = {}
    exec(made, space)
    space["f"](7)
    assert (mutant_switch.reached, mutant_switch.moved) == ({number}, set())
    space["f"](8)
    assert mutant_switch.moved == {number}


def test_values_are_alike_only_if_nothing_tells_them_apart() -> None:
    alike = switch.alike
    one, two = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    assert alike(one, two)
    assert alike(math.nan, float("nan"))
    assert alike((1, "a"), (1, "a"))
    assert alike(None, None)
    assert not alike(one, -one)
    assert not alike(one, one.astype(np.float32))
    assert not alike(one, one[:, None])
    assert not alike(0.0, -0.0)
    assert not alike(1, 1.0)
    assert not alike(1, True)
    assert not alike((1, 2), (1,))
    assert not alike([1], [1]), "one may be changed later, and the other not"
    kept = np.array([object()])
    assert not alike(kept, kept.copy())


def test_a_value_is_asked_for_twice_only_where_that_does_nothing() -> None:
    assert is_pure("math.sqrt(x) + len(y[1:]) * max(a.b, 3)")
    assert not is_pure("random() + 1")
    assert not is_pure("self.next() + 1")
    assert not is_pure("(x := 3) + 1")
    assert not is_pure("sum(k for k in rows)")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.mutate", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=dict(os.environ))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_tests_notice_a_sample_of_mutants(tmp_path: Path) -> None:
    place = tmp_path / "mutants.json"
    words = ("--sample", str(IN_CI), "--skip-explained", "--no-control", "--results", str(place))
    ran = run(*words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(json.loads(place.read_text())) == {
        mutant.name for mutant in sample(everyone(), IN_CI, seed=1)
    } - set(explanations())
    again = run(*words)
    assert again.stdout == ran.stdout
    assert not again.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_is_not_broken_stays_alive() -> None:
    program = """
import tempfile
from pathlib import Path
from benchmarks.mutate.lab import Lab
from benchmarks.mutate.__main__ import everyone
with tempfile.TemporaryDirectory() as place:
    lab = Lab(Path(place))
    print(lab.run("bounds_mixture"))
    file = lab.place / "calibrant" / "bounds" / "mixture.py"
    file.write_text("raise SystemError")
    print(lab.run("bounds_mixture"))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    sound, broken = map(int, ran.stdout.split())
    assert sound == 0
    assert broken


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_mutants_behind_switches_die_as_they_do_one_by_one() -> None:
    program = """
import json, tempfile
from pathlib import Path
from benchmarks.mutate.lab import PROFILES, Lab
from benchmarks.mutate.herd import Herd
from benchmarks.mutate.__main__ import everyone
chosen = [m for m in everyone() if m.file == "bounds/mixture.py"][1:5]
with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    herd, lab = Herd(Path(one), chosen), Lab(Path(other))
    tried = herd.tried("bounds_mixture", "", PROFILES[-1], {*range(4)})
    seen = herd.judged("bounds_mixture", tried)
    alone = {}
    for number, mutant in enumerate(chosen):
        file = lab.place / "calibrant" / mutant.file
        text = file.read_text()
        file.write_text(mutant.within(text))
        alone[number] = bool(lab.run("bounds_mixture"))
        file.write_text(text)
print(json.dumps([sorted(n for n, fate in seen.items()), sorted(n for n in alone if alone[n]),
                  sorted(herd.early), sorted(herd.waiting)]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    together, alone, early, waiting = json.loads(ran.stdout.splitlines()[-1])
    # What runs while the test file is imported, or contains another, is left to trials one by one.
    assert early
    assert together == [number for number in alone if number in {*waiting} - {*early}]
    assert len(together) >= 2
