"""What every test stands on: repeatable examples, data that may be absent, honest skips."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import marked
import pytest
import uncounted
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).resolve().parent.parent

# "ci" tries the same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=2000)
# "mutants" fails as soon as "ci" does, and does not look for the simplest example.
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate), database=None
)
settings.register_profile("mutants at first", settings.get_profile("mutants"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def fetched_dir() -> Path:
    """Files that do not travel: $CALIBRANT_DATA, data beside the repository, or the cache."""
    from calibrant.datasets.shelf import fetched

    beside = ROOT.parent / "shared" / "data"
    for place in (Path(os.environ.get("CALIBRANT_DATA", beside)), fetched()):
        if (place / "free917" / "free917.train.examples.canonicalized.json").is_file():
            return place
    pytest.skip("no fetched files here: python -m calibrant.datasets fetch free917 (and genotypes)")


class NoSkips:
    """With CALIBRANT_REQUIRE=all, tests that were skipped fail the run and are listed."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, but required by CALIBRANT_REQUIRE=all", red=True)
            for line in self.skipped:
                terminalreporter.line(line, red=True)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        self.skipped.append(f"{report.nodeid}: {reason}")


ONCE = re.compile(
    r"test_(advice|bounds|compare|datasets|diabetes|docs|experiments|frames|losses|metrics|newcomers|plot|report|"
    r"river|serve|sklearn|stream_)|test_(breakdown|capacity|cli|cli_(base|compare|context|damage|data|docs|journal|numbers)|client|client_mcp|demo|"
    r"groups_(data|plot)|kinds|known_rows|ordinary_files|package|repository|stores|stores_(again|disks|faults|kinds|sealed|upkeep))$"
)
"""Files whose tests do not depend on the compiler, or hardly, nor cover what must be covered."""

PLAIN = re.compile(
    r"test_(bad_input|bounds_played|certificate|check|classes_(data|grown|metrics|simplex_bound|version1)|"
    r"cli_secret|codec|corrections|facts|files|fork|gate|grid|groups_proof|journal|journal_crash|key_search|late_(corrections|games)|load|"
    r"monitor_table|notebook|online_svm|others_arrays|parts|promise|promise_kinds|proof|regression_(data|metrics|plot|version1)|renamed|"
    r"repeated_corrections|seal|secret|sieve|simulate_paper|siphash|sizing|stream|summary|ticket_read_only|tickets|whole)$"
)
"""Files whose tests do not depend on the compiler either, and cover what must be covered."""


LONG = re.compile(r"test_(bounds_played|machine|machine_keyed|mutate|newcomers|one_log)$")
"""Files whose tests take longest: workers begin with them, so that none comes last."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files none of whose tests has the marks that were asked for."""
    chosen, name = config.option.markexpr, collection_path.stem
    if not chosen or collection_path.suffix != ".py" or not name.startswith("test_"):
        return None
    lists = {"once": ONCE, "plain": PLAIN}
    wholly = [mark for mark, files in lists.items() if files.match(name)]
    return None if marked.may_choose(chosen, collection_path.read_text(), wholly) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs to run once, or uncounted; leave out rules on grids that they refuse."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: LONG.match(item.path.stem) is None)
    counted_elsewhere = uncounted.listed()
    for item in items:
        if item.get_closest_marker("base") and "compiled" not in item.nodeid:
            item.add_marker(pytest.mark.alone)
        if ONCE.match(item.path.stem):
            item.add_marker(pytest.mark.once)
        if PLAIN.match(item.path.stem):
            item.add_marker(pytest.mark.plain)
        if uncounted.name_of(item.nodeid) in counted_elsewhere:
            item.add_marker(pytest.mark.uncounted)
    refused = {item for item in items if _refuses(getattr(item, "callspec", None))}
    if refused:
        config.hook.pytest_deselected(items=list(refused))
        items[:] = [item for item in items if item not in refused]


def pytest_collection_finish() -> None:
    """Spare every collection of garbage the thousands of tests, which stay until the end."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Let nothing count lines while a test runs whose lines others run too.

    pytest-cov's own mark does not: in a worker another collector goes on where one is paused.
    """
    if item.get_closest_marker("uncounted") is None:
        return (yield)
    counting = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(counting)


def _refuses(case: Any) -> bool:
    """Say whether a test plays a calibrator on a grid that it has no use for."""
    # Imported here, when coverage is already being measured.
    import registered

    given = {} if case is None else case.params
    rules = [given.get(key) for key in ("name", "variant", "method")]
    return any(registered.refuses(name, given.get("grid")) for name in rules)


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts a job in the background lets it ignore interrupts, for good.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    worker = hasattr(config, "workerinput")
    if os.environ.get("CALIBRANT_REQUIRE") == "all" and not worker:
        config.pluginmanager.register(NoSkips(), "no skips")
