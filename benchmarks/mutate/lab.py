"""Where mutants live: a copy of the package in which one file is broken at a time.

Each test file runs in a child of this process, which has imported what all tests need: most of what
a test file costs is importing.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from benchmarks.mutate.mutants import SOURCES, Mutant
from benchmarks.mutate.relevant import relevant_to

__all__ = ["LIMIT", "Lab"]

ROOT = SOURCES.parents[1]
LIMIT = 90
"""Seconds of CPU that the tests of one file may take; a mutant that takes longer goes round."""
PROFILES = ("mutants at first", "mutants")
"""How many examples tests try on a mutant, as ``tests/conftest.py`` says: few, then all."""
MEMORY = 8 << 30
PASSED = (0, int(pytest.ExitCode.NO_TESTS_COLLECTED) << 8)
STOPPED = (signal.SIGXCPU, signal.SIGKILL)


class Lab:
    """A copy of the package, and a way to run tests on it.

    Parameters
    ----------
    place
        An empty directory.
    control
        Whether a test that fails on a mutant is also run on the package as it is, once.
    """

    def __init__(self, place: Path, *, control: bool = True) -> None:
        if "calibrant" in sys.modules:
            raise RuntimeError("calibrant must not be imported before a mutant is, got it imported")
        self.place = place / "src"
        self.control = control
        self.trusted: set[str] = set()
        shutil.copytree(SOURCES.parent, self.place, ignore=shutil.ignore_patterns("__pycache__"))

    def fate(self, mutant: Mutant) -> dict[str, str | float]:
        """Return what became of a mutant: killed, by which test file; out of time; or alive."""
        path = self.place / "calibrant" / mutant.file
        whole = path.read_text()
        start = time.perf_counter()
        path.write_text(mutant.within(whole))
        try:
            end, test, words = self.ended(mutant.file)
        finally:
            path.write_text(whole)
        took = round(time.perf_counter() - start, 1)
        if test and self.control:
            self.trust(test, words)
        return {"fate": end, "by": test, "seconds": took, "line": mutant.span[0]}

    def ended(self, file: str) -> tuple[str, str, str]:
        """Run the tests that matter until one fails; return the fate and the test file.

        Most mutants do not outlive a few examples of each property, and all examples of all
        properties cost ten times as much: these are only tried on those that do.
        """
        for profile in PROFILES:
            for test, words in relevant_to(file):
                status = self.run(test, words, profile)
                if os.WIFSIGNALED(status) and os.WTERMSIG(status) in STOPPED:
                    return "out of time", test, words
                if status not in PASSED:
                    return "killed", test, words
        return "alive", "", ""

    def trust(self, test: str, words: str) -> None:
        """See once that a test which failed on a mutant passes on the package as it is."""
        if test not in self.trusted and self.run(test, words) not in PASSED:
            raise RuntimeError(f"tests/test_{test}.py must pass on the package as it is")
        self.trusted.add(test)

    def run(self, test: str, words: str = "", profile: str = PROFILES[-1]) -> int:
        """Run one test file in a child; return its status."""
        child = os.fork()
        if not child:
            try:
                os._exit(self.child(test, words, profile))
            finally:
                os._exit(pytest.ExitCode.INTERNAL_ERROR)
        return os.waitpid(child, 0)[1]

    def child(self, test: str, words: str, profile: str) -> int:
        """Run pytest on the copy, quietly, within limits; return its exit code."""
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        hush()
        os.chdir(ROOT)
        os.environ |= {"CALIBRANT_COMPILE": "off", "HYPOTHESIS_PROFILE": profile}
        os.environ |= {"PYTHONPATH": str(self.place), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.place))
        options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--assert=plain"]
        chosen = ["-k", words] if words else []
        return int(pytest.main([*options, "-m", "not slow", *chosen, f"tests/test_{test}.py"]))


def hush() -> None:
    """Send what a child prints to nowhere, and let it read nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
