"""Reads change nothing: of tables, journals, watches, learners and what stands around a stream.

What is a read is found by looking at the class: every public member that is not named as a write.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import Calibrant, Journal, Recalibrator, Table
from calibrant.core.desk import NUMBER, SHIFT
from calibrant.kernels.compile import available
from calibrant.learners import OnlineL1SVM
from calibrant.monitor import LateWatch, Monitor
from calibrant.outcomes import ObservedOnly, PendingUnknown, WaitForHorizon
from calibrant.summary import Follower

pytestmark = pytest.mark.once

STEPS = 6
RAWS = [0.1, 0.8, 0.35, 0.5, 0.9, 0.2]
Read = Callable[[Any], Any]


@dataclass
class Subject:
    """How an object is made and lives on, which members write, and what reads are given."""

    make: Callable[[Path], Any]
    step: Callable[[Any, int], Any]
    writes: str
    given: dict[str, Read] = field(default_factory=dict)
    stored: Callable[[Any], Any] = lambda made: made.to_bytes()
    always: tuple[str, ...] = ("repr", "==", "copy.copy", "copy.deepcopy", "pickle")

    def reads(self, made: Any) -> dict[str, Read]:
        """Return every read of an object, by name."""
        names = [name for name in dir(made) if name[0] != "_" and name not in self.writes.split()]
        found = {name: self.given.get(name) or _plainly(type(made), name) for name in names}
        told = {name: ask for name, ask in found.items() if ask is not None}
        told |= {name: ask for name, ask in self.given.items() if name.startswith("__")}
        return told | {name: ALWAYS[name] for name in self.always}


ALWAYS: dict[str, Read] = {
    "repr": repr,
    "==": lambda made: made == made.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda made: pickle.loads(pickle.dumps(made)),
}


def _plainly(made: type, name: str) -> Read | None:
    """Return what reads a property, or calls a method without arguments."""
    entry = inspect.getattr_static(made, name, None)
    if isinstance(entry, (classmethod, staticmethod)):
        return None
    if inspect.isfunction(entry):
        return lambda subject: getattr(subject, name)()
    return lambda subject: getattr(subject, name)


def table_step(table: Table, t: int) -> list[Any]:
    key = "ab"[t % 2]
    ticket = table.forecast(key, RAWS[t], id=f"n{t}")
    if t % 3:
        table.observe(ticket, t % 2)
    run = table.replay([key, "c"], [0.3, 0.6], [1, 0])
    return [ticket.value, ticket.mean, *run.forecast.tolist(), *run.mean.tolist()]


def coins_of(table: Table) -> list[float]:
    """Ask for the coin of each ticket that is open, by its key and number."""
    pairs = ((word >> SHIFT, word & NUMBER) for word in table._desk.words()[:, 1].tolist())
    return [table.coin_of((table._keys[row], number)) for row, number in pairs]


TABLE: dict[str, Read] = {
    "row": lambda table: table.row("a"),
    "body": lambda table: table.body("a"),
    "bodies": lambda table: (table.bodies(), table.bodies(["a"])),
    "changes": lambda table: (table.changes(0), table.changes(table.mark())),
    "certificates": lambda table: (table.certificates(), table.certificates(together=True)),
    "coin_of": lambda table: coins_of(table),
    "is_like": lambda table: (table.is_like(Recalibrator()), table.is_like(3)),
    "__iter__": lambda table: (list(table), len(table), "a" in table, "z" in table),
    "__getitem__": lambda table: table["a"].forecast(0.3),
}


def table(pattern: Callable[[], Recalibrator], **more: Any) -> Subject:
    writes = "forecast observe correct expire replay play forecast_many observe_many evict put take"
    # Where a file goes is not asked here, and a copy has neither a store nor threads.
    writes += " save __delitem__ __setitem__"
    return Subject(lambda folder: Table(pattern(), seed=1, **more), table_step, writes, TABLE)


def timed_step(made: Any, t: int) -> list[float]:
    ticket = made.forecast(RAWS[t], time=float(t), id=f"n{t}")
    made.observe(ticket, t % 2, time=float(t))
    return [ticket.value, ticket.mean]


def seen_step(made: ObservedOnly, t: int) -> list[Any]:
    ticket = made.forecast(RAWS[t])
    return [ticket.value, made.observe(ticket, t % 2, probability=0.5) is None]


def watch_step(late: LateWatch, t: int) -> list[Any]:
    number = late.forecast(RAWS[t])
    return [number, late.observe(number - t % 2, t % 2) if number else None]


def svm_step(svm: OnlineL1SVM, t: int) -> float:
    row = [t % 3, (t + 1) % 3, 2]
    forecast = svm.predict_one(row)
    svm.learn_one(row, t % 2)
    return forecast


def journal_step(journal: Journal, t: int) -> list[float]:
    keyed = isinstance(journal.state(), Table)
    ticket = journal.forecast("ab"[t % 2] if keyed else None, RAWS[t], id=f"n{t}")
    if t % 2:
        journal.observe(f"n{t}", t % 2)
    return [ticket.value, ticket.mean]


def journal(keyed: bool) -> Subject:
    """Return a journal: what a stream without keys answers, one with keys refuses."""
    pattern = lambda: Recalibrator(resolution=4, buckets=3, seed=1)  # noqa: E731
    refused = "certificate preview" if keyed else "certificates"
    return Subject(
        lambda folder: Journal(folder / "log.db", pattern(), seed=1, keyed=keyed),
        journal_step,
        f"forecast observe correct expire play close {refused}",
        {
            "preview": lambda made: made.preview([0.2, 0.7]),
            "coin_of": lambda made: (made.coin_of("n0"), made.coin_of("n1")),
        },
        stored=lambda made: (made.state().to_bytes(), len(made.events())),
        always=("repr",),
    )


def around(make: Callable[[Recalibrator], Any]) -> Callable[[Path], Any]:
    return lambda folder: make(Recalibrator(resolution=4, buckets=3, seed=1))


SUBJECTS = {
    "table": table(lambda: Recalibrator(resolution=4, buckets=3)),
    "table of defaults": table(Calibrant),
    "table, one key hot": table(lambda: Calibrant(raw_safe=0.1), hot=1),
    "table, few open": table(Recalibrator, most_open=2, when_full="expire"),
    "wait for horizon": Subject(
        around(lambda rec: WaitForHorizon(rec, 2.0)),
        timed_step,
        "forecast observe advance save",
        {
            "due": lambda made: made.due(99.0),
            "find": lambda made: made.find(made.due(99.0)[-1]),
        },
    ),
    "pending unknown": Subject(
        around(lambda rec: PendingUnknown(rec, 2.0, buckets=2)),
        timed_step,
        "forecast observe advance save",
        {"bounds": lambda made: (made.bounds(), made.bounds(0.3))},
    ),
    "observed only": Subject(
        around(lambda rec: ObservedOnly(rec, 0.4, seed=3)), seen_step, "forecast observe save"
    ),
    "late watch": Subject(
        lambda folder: LateWatch(Monitor(buckets=2), horizon=2),
        watch_step,
        "forecast observe forget restart compile save play",
    ),
    "learner": Subject(
        lambda folder: OnlineL1SVM(3, penalty=0.1),
        svm_step,
        "learn_one replay save",
        {
            "predict_one": lambda svm: svm.predict_one([0, 1, 2]),
            "score_one": lambda svm: svm.score_one([0, 1, -1]),
        },
    ),
    "follower": Subject(
        lambda folder: Follower([0.0, 0.5, 1.0]),
        lambda made, t: made.take(RAWS[t], 0.5, 0.4, t % 2),
        "take take_many settle correct merge stamp save",
    ),
    "journal": journal(keyed=True),
    "journal without keys": journal(keyed=False),
}


def check_reads(subject: Subject, folder: Path, prepare: Read = lambda made: None) -> None:
    """Let two objects live alike, of which one is asked everything after each step."""
    for name in ("quiet", "loud"):
        (folder / name).mkdir()
    quiet, loud = (subject.make(folder / name) for name in ("quiet", "loud"))
    for made in (quiet, loud):
        prepare(made)
    for t in range(STEPS):
        answers = [subject.step(made, t) for made in (quiet, loud)]
        assert answers[0] == answers[1]
        if t:
            for name, ask in subject.reads(loud).items():
                before = subject.stored(loud)
                ask(loud)
                assert subject.stored(loud) == before, f"{name} must change nothing"
    assert subject.stored(loud) == subject.stored(quiet)
    for made in (quiet, loud):
        getattr(made, "close", lambda: None)()


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_read_leaves_the_state_as_it_was(name: str, tmp_path: Path) -> None:
    check_reads(SUBJECTS[name], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs the compiler")
@pytest.mark.parametrize("name", ["table", "table of defaults"])
def test_each_read_leaves_a_compiled_table_as_it_was(name: str, tmp_path: Path) -> None:
    raw = np.random.default_rng(1).random(5_000)

    def compile(made: Table) -> None:
        made.replay(np.arange(5_000) % 3, raw, (raw < 0.4).astype(int))

    check_reads(SUBJECTS[name], tmp_path, compile)
