"""Break the code on purpose, one place at a time, and see whether tests notice.

    python -m benchmarks.mutate                      every mutant; goes on where it stopped
    python -m benchmarks.mutate --sample 150         some, chosen by --seed; the same ones each time
    python -m benchmarks.mutate --only bounds/gaps   those of some files
    python -m benchmarks.mutate --together           many at once, with tests that reach them
    python -m benchmarks.mutate --list               those that are alive, with explanations

A mutant is killed if a test fails, or takes longer than any test may.  One that stays alive must be
explained in ``explained.json``: as a rule because it does the same as the code.  The exit status
is 1 if one is not, or if more than 5 % are alive.  Results go to ``results/mutants.json`` beside
this package, under a digest of the file and its tests: where neither has changed, a mutant is not
tried again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.mutate.herd import Herd
from benchmarks.mutate.lab import Lab
from benchmarks.mutate.mutants import SOURCES, Mutant, mutants_of, name_of, sample, sources
from benchmarks.mutate.relevant import UNTOUCHED, relevant_to

__all__ = ["everyone", "explanations", "main", "summary"]

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "mutants.json"
EXPLAINED = HERE / "explained.json"
MOST_ALIVE = 0.05
SEED = 1
NEEDED = ("pytest", "hypothesis", "numpy", "scipy.stats", "_pytest.assertion.rewrite")


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants that are asked for; return 1 if too many are alive, or unexplained."""
    told = parse(arguments)
    chosen = sample(everyone(tuple(told.only)), told.sample, told.seed)
    if told.skip_explained:
        chosen = [mutant for mutant in chosen if mutant.name not in explanations()]
    place = told.results
    known: dict[str, Any] = json.loads(place.read_text()) if place.exists() else {}
    if not told.list:
        waiting = [mutant for mutant in chosen if told.again or not is_known(mutant, known)]
        if told.together and waiting:
            waiting = try_together(waiting, known, place)
        try_all(waiting, known, place, control=not told.no_control)
    return summary(chosen, known)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutate", description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="so many mutants, not all")
    parser.add_argument("--seed", type=int, default=SEED, help="which ones a sample holds")
    parser.add_argument("--only", nargs="+", default=[], metavar="FILE", help="mutants below these")
    parser.add_argument("--again", action="store_true", help="also those that were tried before")
    parser.add_argument("--no-control", action="store_true", help="trust tests that fail")
    parser.add_argument("--skip-explained", action="store_true", help="not those known to live")
    parser.add_argument("--together", action="store_true", help="behind switches, many at once")
    parser.add_argument("--list", action="store_true", help="try none; tell what is known")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where fates are noted")
    return parser.parse_args(arguments)


def everyone(only: tuple[str, ...] = ()) -> list[Mutant]:
    """Return every mutant, or those of some files."""
    paths = [path for path in sources(only) if name_of(path) not in UNTOUCHED]
    return [mutant for path in paths for mutant in mutants_of(name_of(path), path.read_text())]


def is_known(mutant: Mutant, known: dict[str, Any]) -> bool:
    """Say whether a mutant was tried with its file and its tests as they are now."""
    fate = known.get(mutant.name)
    return fate is not None and bool(fate["digest"] == digest(mutant, fate))


def try_all(mutants: list[Mutant], known: dict[str, Any], place: Path, *, control: bool) -> None:
    """Try mutants; note each fate when it is known."""
    place.parent.mkdir(exist_ok=True)
    for name in NEEDED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder), control=control)
        for number, mutant in enumerate(mutants, 1):
            found = lab.fate(mutant)
            note(mutant, found, known, place)
            tell(f"[{number}/{len(mutants)}] {found['fate']}: {mutant.name}")


def try_together(mutants: list[Mutant], known: dict[str, Any], place: Path) -> list[Mutant]:
    """Try mutants many at once; return those that must be tried one by one."""
    place.parent.mkdir(exist_ok=True)
    for name in NEEDED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        herd = Herd(Path(folder), mutants, {name: test_of(known[name]) for name in known})
        for test, found in herd.fates():
            for number, fate in found.items():
                note(mutants[number], fate, known, place)
            left = sum(number not in herd.dead for number in herd.waiting)
            tell(f"tests/test_{test}.py: {len(found)} killed, {left} left")
        alive = herd.waiting - herd.dead - herd.early
        for number in alive:
            note(mutants[number], {"fate": "alive", "by": "", "seconds": 0.0}, known, place)
        return [mutant for k, mutant in enumerate(mutants) if k not in alive | herd.dead]


def note(mutant: Mutant, fate: dict[str, Any], known: dict[str, Any], place: Path) -> None:
    """Write down the fate of a mutant."""
    what = {**fate, "line": mutant.span[0]}
    known[mutant.name] = {**what, "digest": digest(mutant, what)}
    place.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")


def test_of(fate: dict[str, Any]) -> str:
    """Return the test file that killed a mutant, as tables name it."""
    return Path(fate["by"].partition("::")[0]).stem.removeprefix("test_")


def digest(mutant: Mutant, fate: dict[str, Any]) -> str:
    """Return a digest of what a fate depends on.

    A mutant that was killed stays so while its file and the tests that did it are the same; one
    that does the same as the code does so whatever the tests; others may be noticed by new tests.
    """
    if fate["fate"] != "alive":
        names = [test_of(fate)]
    else:
        names = [] if mutant.name in explanations() else [n for n, _ in relevant_to(mutant.file)]
    return digest_of(mutant.file, tuple(names))


@cache
def digest_of(file: str, tests: tuple[str, ...]) -> str:
    """Return a digest of a source file and some test files."""
    paths = [SOURCES.parents[1] / "tests" / f"test_{name}.py" for name in tests]
    texts = [path.read_bytes() for path in [SOURCES / file, *paths]]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def explanations() -> dict[str, str]:
    """Return why mutants that are alive may be."""
    return dict(json.loads(EXPLAINED.read_text()))


def summary(mutants: list[Mutant], known: dict[str, Any]) -> int:
    """Print how many mutants met which fate, and the living ones; return 1 if they may not be.

    The fate of a mutant whose file or tests have changed since is not known any more.
    """
    tried = [mutant for mutant in mutants if is_known(mutant, known)]
    fates = Counter(known[mutant.name]["fate"] for mutant in tried)
    alive = [mutant for mutant in tried if known[mutant.name]["fate"] == "alive"]
    why = explanations()
    for mutant in alive:
        place = f"src/calibrant/{mutant.file}:{mutant.span[0]}"
        print(f"{place}: {mutant.name}\n    {why.get(mutant.name, 'NOT EXPLAINED')}")
    counts = ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))
    print(f"{len(tried)} of {len(mutants)} mutants tried: {counts or 'nothing known'}")
    missing = [mutant for mutant in alive if mutant.name not in why]
    return int(bool(missing) or len(alive) > MOST_ALIVE * len(tried))


def tell(text: str) -> None:
    """Tell progress on the error stream."""
    print(f"calibrant: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
