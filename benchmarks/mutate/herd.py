"""Many mutants at once: each test file is imported once, and a test is run for those it reaches.

Each test file has a process of its own, which imports the woven package and collects the tests.
From there, where nothing has been run yet, it forks: first to run every test on the code as it was
written, and to note which mutants each test reaches, and for which of them a value differs; then
once for every mutant, to run the tests that might notice it, the fastest first, until one fails.
A test that fails is then run alone on the code as it was written, where it must pass.

What is run while a test file is imported is the same for all: a mutant there is not tried on that
file, and if no other kills it, it is left to a :class:`~benchmarks.mutate.lab.Lab`.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutate.lab import MEMORY, PROFILES, ROOT, STOPPED
from benchmarks.mutate.mutants import SOURCES, Mutant
from benchmarks.mutate.relevant import relevant_to
from benchmarks.mutate.weave import is_pure, woven

__all__ = ["Herd"]

SURVEY = 900
"""Seconds of CPU that all tests of a file may take on the code as it was written."""


class Herd:
    """A copy of the package in which many mutants wait behind switches.

    Parameters
    ----------
    place
        An empty directory.
    mutants
        What waits there; their numbers are their places in this list.
    before
        Test files that killed some of them when files were others; they are tried first.
    """

    def __init__(
        self, place: Path, mutants: Sequence[Mutant], before: dict[str, str] | None = None
    ) -> None:
        self.place = place / "src"
        self.answers = place / "answers"
        self.answers.mkdir()
        self.mutants = list(mutants)
        self.before = {} if before is None else before
        self.early: set[int] = set()
        self.waiting: set[int] = set()
        self.dead: set[int] = set()
        self.where: dict[int, set[str]] = {}
        self.weave()

    def weave(self) -> None:
        """Copy the package and write the mutants into it."""
        shutil.copytree(SOURCES.parent, self.place, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(Path(__file__).parent / "switch.py", self.place / "mutant_switch.py")
        for file in {mutant.file for mutant in self.mutants}:
            path = self.place / "calibrant" / file
            here = {k: mutant for k, mutant in enumerate(self.mutants) if mutant.file == file}
            text, taken = woven(path.read_text(), here)
            path.write_text(text)
            self.waiting.update(taken)

    def fates(self) -> Iterator[tuple[str, dict[int, dict[str, Any]]]]:
        """Yield, for one test file after another, the fates of those that it kills.

        The next file is the one that is near to most of those that are left.  A few examples of
        each property come first, then all, in files that might notice one of those.
        """
        for profile in PROFILES:
            done: set[str] = set()
            while chosen := self.next_file(done, last=profile == PROFILES[-1]):
                test, words, numbers = chosen
                done.add(test)
                yield test, self.judged(test, self.tried(test, words, profile, numbers))

    def next_file(self, done: set[str], *, last: bool) -> tuple[str, str, set[int]] | None:
        """Return the test file that is near to most mutants that are left, its words, and these."""
        left = self.waiting - self.dead
        matter: dict[str, set[str]] = {}
        count: defaultdict[str, float] = defaultdict(float)
        for number in left:
            for place, (test, words) in enumerate(relevant_to(self.mutants[number].file), 1):
                if test not in done and (not last or test in self.where.get(number, ())):
                    matter.setdefault(test, set()).add(words)
                    once = self.before.get(self.mutants[number].name) == test
                    count[test] += 1.0 if once else 1 / (1 + place)
        if not count:
            return None
        test = max(count, key=lambda name: (count[name], name))
        said = matter[test] - {""}
        return test, " or ".join(f"({words})" for words in sorted(said)), left

    def judged(self, test: str, found: dict[int, Any]) -> dict[int, dict[str, Any]]:
        """Take note of what was seen; return fates."""
        self.early |= {number for number, what in found.items() if what["early"]}
        for number, what in found.items():
            if what["moved"]:
                self.where.setdefault(number, set()).add(test)
        fates = {number: what for number, what in found.items() if "fate" in what}
        self.dead.update(fates)
        kept = ("fate", "by", "seconds")
        return {number: {key: what[key] for key in kept} for number, what in fates.items()}

    def tried(self, test: str, words: str, profile: str, numbers: set[int]) -> dict[int, Any]:
        """Try mutants on one test file; return what is known since: a fate, or what was seen."""
        answer = self.answers / "file.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            finish(lambda: self.child(test, words, profile, numbers & self.waiting))
        status = os.waitpid(child, 0)[1]
        if not answer.exists():
            raise RuntimeError(f"tests/test_{test}.py must be collected, got status {status}")
        return {int(number): found for number, found in json.loads(answer.read_text()).items()}

    def child(self, test: str, words: str, profile: str, numbers: set[int]) -> int:
        """Run pytest with its loop replaced by the trials; return its exit code."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        log = os.open(self.answers / "log.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(ROOT)
        os.environ |= {"CALIBRANT_COMPILE": "off", "HYPOTHESIS_PROFILE": profile}
        os.environ |= {"PYTHONPATH": str(self.place), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.place))
        options = ["-q", "-p", "no:cacheprovider", "--tb=no", "--assert=plain"]
        chosen = ["-k", words] if words else []
        trials = Trials(self, numbers)
        where = ["-m", "not slow", *chosen, f"tests/test_{test}.py"]
        return int(pytest.main([*options, *where], plugins=[trials]))


class Trials:
    """A plugin of pytest that tries mutants where tests would be run."""

    def __init__(self, herd: Herd, numbers: set[int]) -> None:
        self.herd = herd
        self.numbers = numbers
        self.failed = False
        self.alone: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a test fails."""
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every mutant that some test reaches; write down what became of them."""
        import mutant_switch

        early = set(mutant_switch.reached)
        items = {item.nodeid: item for item in session.items}
        status, seen = self.forked(lambda tell: self.survey(session.items, tell), SURVEY)
        if status:
            raise RuntimeError(f"tests must end on the package as it is, got status {status}")
        found: dict[int, Any] = {}
        for number in sorted(self.numbers):
            pure = self.herd.mutants[number].became != "pass"
            pure = pure and is_pure(self.herd.mutants[number].became)
            might = {
                name: told["seconds"]
                for name, told in seen.items()
                if number in told["moved" if pure else "reached"] and not told["failed"]
            }
            reach = sum(number in told["reached"] for told in seen.values())
            found[number] = {"early": number in early, "reached": reach, "moved": len(might)}
            if number not in early and might:
                found[number] |= self.fate(number, items, might)
        (self.herd.answers / "file.json").write_text(json.dumps(found))
        return True

    def survey(self, items: Sequence[pytest.Item], tell: Callable[[Any], None]) -> None:
        """Run all tests on the code as it was written; tell what each reaches."""
        import mutant_switch as switch

        seen = {}
        for item, after in zip(items, [*items[1:], None], strict=True):
            switch.reached.clear()
            switch.moved.clear()
            start = time.process_time()
            failed = self.fails(item, after)
            seen[item.nodeid] = {
                "seconds": time.process_time() - start,
                "failed": failed,
                "reached": sorted(switch.reached),
                "moved": sorted(switch.moved),
            }
        tell(seen)

    def fate(
        self, number: int, items: dict[str, pytest.Item], might: dict[str, float]
    ) -> dict[str, Any]:
        """Return what became of a mutant, if one of the tests that might notice it does."""
        names = sorted(might, key=lambda name: might[name])
        start = time.perf_counter()
        chosen = [items[name] for name in names]
        limits = [int(10 + 10 * might[name]) for name in names]
        status, told = self.forked(lambda tell: self.hunt(number, chosen, limits, tell), limits[0])
        stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) in STOPPED
        if not stopped and not told["failed"]:
            return {}
        by = told["by"]
        if not self.passes_alone(items[by]):
            return {"unsound": by}
        took = round(time.perf_counter() - start, 1)
        return {"fate": "out of time" if stopped else "killed", "by": by, "seconds": took}

    def hunt(
        self,
        number: int,
        items: Sequence[pytest.Item],
        limits: Sequence[int],
        tell: Callable[[Any], None],
    ) -> None:
        """Run tests on a mutant until one fails, each within its seconds of CPU; tell which."""
        import mutant_switch as switch

        switch.active = number
        os.environ["CALIBRANT_MUTANT"] = str(number)
        for item, after, limit in zip(items, [*items[1:], None], limits, strict=True):
            until = int(time.process_time()) + limit
            resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
            tell({"by": item.nodeid, "failed": False})
            if self.fails(item, after):
                tell({"by": item.nodeid, "failed": True})
                return

    def passes_alone(self, item: pytest.Item) -> bool:
        """See once that a test passes alone on the code as it was written."""
        if item.nodeid not in self.alone:
            _, told = self.forked(lambda tell: tell(self.fails(item, None)), SURVEY)
            self.alone[item.nodeid] = told is False
        return self.alone[item.nodeid]

    def fails(self, item: pytest.Item, after: pytest.Item | None) -> bool:
        """Run a test; say whether it fails."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return self.failed

    def forked(self, work: Callable[[Callable[[Any], None]], None], limit: int) -> tuple[int, Any]:
        """Do work in a child within so many seconds of CPU; return its status and what it told."""
        answer = self.herd.answers / "test.json"
        answer.unlink(missing_ok=True)

        def tell(told: Any) -> None:
            # Written in one piece: a child may be stopped at any time.
            (self.herd.answers / "test.new").write_text(json.dumps(told))
            os.replace(self.herd.answers / "test.new", answer)

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            work(tell)
            return 0

        child = os.fork()
        if not child:
            finish(run)
        status = os.waitpid(child, 0)[1]
        return status, json.loads(answer.read_text()) if answer.exists() else None


def finish(work: Callable[[], int]) -> None:
    """Do work and end this process with what it returns, whatever happens."""
    try:
        os._exit(work())
    finally:
        sys.excepthook(*sys.exc_info())
        os._exit(pytest.ExitCode.INTERNAL_ERROR)
