"""A journal: what was answered is on disk, once, and nothing but the log decides."""

from __future__ import annotations

import contextlib
import copy
import datetime
import gc
import inspect
import math
import multiprocessing
import os
import pickle
import random
import sqlite3
import sys
import threading
from enum import Enum
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import Interrupting, Stop, after_call, by_instruction, start

from calibrant import Calibrant, Journal, Recalibrator, Table, load
from calibrant.classes import ClassCalibrant
from calibrant.errors import (
    Contradiction,
    CorruptState,
    DamagedLog,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    NotStored,
    RepeatedTicket,
    TooManyOpen,
    UnknownName,
    UnknownTicket,
)
from calibrant.journal import journal as home
from calibrant.journal import ledger as ledgers
from calibrant.journal import sqlite
from calibrant.journal.events import Asked
from calibrant.journal.ledger import Ledger
from calibrant.journal.seen import Seen
from calibrant.journal.sqlite import SqliteStore
from calibrant.kernels.compile import available

pytestmark = [pytest.mark.base, pytest.mark.plain]

PATTERN: dict[str, Any] = {"resolution": 10, "buckets": 5}


def pattern(**more: Any) -> Recalibrator:
    return Recalibrator(**(PATTERN | more))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "streams.db"


def some_events(count: int, seed: int = 1) -> list[tuple[str, int, str, float]]:
    """Forecasts of three keys, and outcomes in another order."""
    dice, waiting, made = random.Random(seed), list[str](), list[Any]()
    for k in range(count):
        if waiting and dice.random() < 0.45:
            id = waiting.pop(dice.randrange(len(waiting)))
            made.append((None, 1, id, float(dice.random() < 0.4)))
        else:
            waiting.append(f"id {k}")
            made.append((dice.choice("abc"), 0, waiting[-1], dice.random()))
    return made


def columns(events: list[Any]) -> list[list[Any]]:
    return [list(column) for column in zip(*events, strict=True)]


@pytest.mark.parametrize("method", ["foster_hart", "regret_matching", "calibrant"])
def test_a_journal_answers_as_a_table_and_holds_the_same_bytes(method: str, file: Path) -> None:
    first = Calibrant() if method == "calibrant" else pattern(method=method)
    events = some_events(200)
    table = Table(first, seed=7)
    with Journal(file, first, seed=7) as journal:
        for key, kind, id, x in events:
            if kind == 0:
                mine, theirs = journal.forecast(key, x, id=id), table.forecast(key, x, id=id)
                assert mine.to_dict() == theirs.to_dict()
            else:
                journal.observe(id, int(x))
                table.observe(id, int(x))
        assert list(journal) == list(table)
        assert journal["a"] == table["a"]
        assert journal.state() == table
        for failure, together in ((0.05, False), (0.2, False), (0.2, True)):
            mine, theirs = (
                each.certificates(failure, together=together) for each in (journal, table)
            )
            assert np.array_equal(mine.promised, theirs.promised, equal_nan=True)
        assert journal.verify() == 200
    with Journal(file) as again:
        assert again.state() == table
        assert again.verify() == 200


def test_a_batch_is_the_same_as_its_calls(file: Path, tmp_path: Path) -> None:
    events = some_events(200)
    with Journal(file, pattern(), seed=7) as journal:
        tickets = journal.play(*columns(events))
        played = journal.state()
    with Journal(tmp_path / "other.db", pattern(), seed=7) as other:
        for (key, kind, id, x), ticket in zip(events, tickets, strict=True):
            mine = other.observe(id, int(x)) if kind else other.forecast(key, x, id=id)
            assert mine is not None
            assert mine.to_dict() == ticket.to_dict()
        assert other.state() == played


def play_signed_zeros(journal: Journal) -> None:
    """Make forecasts of minus zero, and at the time minus zero, some of them with an outcome."""
    for name, raw, time in (("x", -0.0, 1.0), ("time", 0.5, -0.0), ("both", -0.0, -0.0)):
        journal.forecast("a", raw, id=name, time=time)
    journal.play(["a", None], [0, 1], ["more", "more"], [-0.0, -0.0], [-0.0, -0.0])
    journal.observe("time", 1, time=-0.0)
    assert journal.forecast("a", -0.0, id="x", time=1.0).raw == 0.0
    assert journal.forecast("a", 0.0, id="x", time=1.0).raw == 0.0


def test_a_zero_with_a_sign_does_not_damage_the_log(file: Path) -> None:
    with Journal(file, pattern(), seed=7) as journal:
        play_signed_zeros(journal)
        assert journal.verify() == 6
        state = journal.state()
    with Journal(file) as again:
        assert again.state() == state
        assert again.verify() == 6
        again.observe("x", 0)


TIMES: list[Any] = [1, 0, True, np.int64(1), np.float64(1.5), np.float32(1.5), Fraction(3, 2)]


def play_numbers_of_other_types(journal: Journal, keys: list[Any], times: list[Any]) -> int:
    """Make forecasts in a log whose numbers have other types, and close them; return how many."""
    for k, (key, when) in enumerate(product(keys, times)):
        journal.play([key, None], [0, 1], [f"{k}", f"{k}"], [0.5, 1], [when, when])
    return 2 * len(keys) * len(times)


def test_numbers_of_other_types_do_not_damage_the_log(file: Path) -> None:
    with Journal(file, pattern(), seed=7) as journal:
        count = play_numbers_of_other_types(journal, [3, np.int64(3), np.str_("a")], TIMES)
        for when, error in (("1", InvalidType), (10**400, InvalidInput)):
            with pytest.raises(error, match=r"^time must be a finite number .*, got "):
                journal.play(["a"], [0], ["new"], [0.5], [when])
        state = journal.state()
    with Journal(file) as again:
        assert again.state() == state
        assert again.verify() == count
        assert list(again) == [3, "a"]


SINGLE = [5, 3.5, "ab", b"ab", np.str_("ab"), np.array(5), object()]


@pytest.mark.parametrize("given", SINGLE, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("column", ["keys", "kind", "id", "x", "time", "groups"])
def test_a_single_value_is_no_column_and_keeps_nothing(column: str, given: Any, file: Path) -> None:
    told = {"keys": ["a", "b"], "kind": [0, 0], "id": ["c", "d"], "x": [0.5, 0.5]}
    with Journal(file, pattern(), seed=7) as journal:
        with pytest.raises(InvalidType, match=f"^{column} must have an entry for each event, got "):
            journal.play(**told | {column: given})
        with pytest.raises(InvalidInput, match=f"of one length, got: .*{column} has 3"):
            journal.play(**told | {column: [0, 0, 0]})
        assert not journal.events()


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_dates_are_times_alike_in_calls_and_batches(unit: str, file: Path, tmp_path: Path) -> None:
    dates = np.array(["2024-02-29", "2024-03-01"], f"M8[{unit}]")
    with Journal(file, pattern(), seed=7) as one, Journal(tmp_path / "b", pattern(), seed=7) as two:
        one.forecast("a", 0.5, id="x", time=dates[0])
        one.observe("x", 1, time=dates[1])
        two.play(["a", None], [0, 1], ["x", "x"], [0.5, 1], dates)
        days = [event.time for event in one.events()]
        assert days == [event.time for event in two.events()] == [1709164800.0, 1709251200.0]
        assert one.state() == two.state()
        with pytest.raises(InvalidType, match=r"or an np\.datetime64, got datetime\.date"):
            two.play(["a"], [0], ["y"], [0.5], [datetime.date(2024, 2, 29)])


def test_raw_forecasts_of_classes_may_be_numbers_of_other_types(file: Path) -> None:
    raw: list[Any] = [np.array([0.5, 0.5, -0.0]), (1, 0, 0), [np.float32(0.5), np.float64(0.5), 0]]
    with Journal(file, ClassCalibrant(3), seed=7, keyed=False) as journal:
        for k, one in enumerate(raw):
            journal.observe(journal.forecast(None, one, id=f"one {k}"), 1)
            journal.play(None, [0, 1], [f"more {k}"] * 2, [one, 1])
        state = journal.state()
    with Journal(file) as again:
        assert again.state() == state
        assert again.verify() == 12


class Name(str, Enum):  # noqa: UP042
    """A string of another type, whose own text is not that of the string."""

    ONE = "one"


def play_names_of_other_types(journal: Journal) -> None:
    """Make forecasts under strings of other types than Python's own, and close some."""
    for name in (np.str_("numpy"), Name.ONE, np.str_("gone")):
        assert journal.forecast("a", 0.25, id=name).id == name
    journal.play(["a", None], [0, 1], np.array(["more", "more"]), [0.5, 1.0])
    journal.play(["a", None], [0, 1], [np.str_("last")] * 2, [0.5, 1.0])
    journal.observe(Name.ONE, 1)
    journal.expire(np.str_("gone"))
    assert journal.forecast("a", 0.25, id="numpy").id == "numpy"


def test_names_of_other_types_do_not_damage_the_log(file: Path) -> None:
    with Journal(file, pattern(), seed=7) as journal:
        play_names_of_other_types(journal)
        assert journal.verify() == 9
        state = journal.state()
    with Journal(file) as again:
        assert again.state() == state
        assert again.verify() == 9
        again.observe("numpy", 0)
        assert again.observe("one", 1).id == "one"


def test_logs_with_such_zeros_and_names_of_earlier_releases_can_be_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "as_kept", lambda one: one)
    monkeypatch.setattr(ledgers, "named", lambda one: one)
    with Journal(file, pattern(), seed=7) as journal:
        play_signed_zeros(journal)
        play_numbers_of_other_types(journal, ["b"], [1, 2, np.float64(2.5), True])
        journal.forecast("a", -0.0, id=np.str_("numpy"), time=1.0)
        journal.observe(np.str_("numpy"), 1, time=2.0)
        state = journal.state()
    monkeypatch.undo()
    with contextlib.closing(sqlite3.connect(file)) as base, base:
        zeros = base.execute("select x, time from event").fetchall()
    assert [math.copysign(1.0, x) for x, _ in zeros] == [1.0] * 16, (
        "SQLite keeps signs of zeros now"
    )
    with Journal(file) as again:
        assert again.state() == state
        assert again.verify() == 16
        again.observe("both", 1)


def test_a_stream_without_keys_is_a_lone_recalibrator(file: Path) -> None:
    lone = pattern(seed=3)
    with Journal(file, pattern(seed=3), keyed=False) as journal:
        for k in range(20):
            mine, theirs = (
                journal.forecast(None, k / 20, id=str(k)),
                lone.forecast(k / 20, id=str(k)),
            )
            assert mine.to_dict() == theirs.to_dict()
            journal.observe(mine, k % 2)
            lone.observe(theirs, k % 2)
        assert journal.state() == lone
        assert journal.certificate() == lone.certificate()
        assert journal.certificate(failure=0.2) == lone.certificate(0.2) != lone.certificate()
        with pytest.raises(InvalidInput, match=r"^failure must be a number in \(0, 1\), got 2"):
            journal.certificate(2)
        with pytest.raises(InvalidInput, match="key must be left out"):
            journal.forecast("a", 0.5)
        with pytest.raises(InvalidType, match="keys must be asked of a keyed stream"):
            len(journal)


def test_the_same_question_gets_the_same_answer_for_ever(file: Path) -> None:
    with Journal(file, pattern()) as journal:
        first = journal.forecast("a", 0.3, id="x")
        for k in range(10):
            journal.observe(journal.forecast("a", 0.3, id=f"x{k}"), 1)
        before = journal.state()
        assert journal.forecast("a", 0.3, id="x").to_dict() == first.to_dict()
        closed = journal.observe("x", 1)
        assert journal.observe("x", 1).to_dict() == closed.to_dict()  # type: ignore[union-attr]
        assert journal.forecast("a", 0.3, id="x").outcome == 1
        assert before != journal.state()
    with Journal(file) as journal:
        assert journal.forecast("a", 0.3, id="x").value == first.value


def test_a_contradiction_and_an_unknown_id_are_different_errors(file: Path) -> None:
    with Journal(file, pattern(max_open=3)) as journal:
        journal.forecast("a", 0.3, id="x")
        with pytest.raises(Contradiction, match=r"id 'x' must be told as before, with x=0.3, key"):
            journal.forecast("a", 0.4, id="x")
        with pytest.raises(Contradiction):
            journal.forecast("b", 0.3, id="x")
        journal.observe("x", 1)
        with pytest.raises(Contradiction, match=r"with x=1.0, got x=0.0"):
            journal.observe("x", 0)
        with pytest.raises(UnknownTicket, match="must be one that was made here, got 'y'"):
            journal.observe("y", 0)
        journal.forecast("a", 0.3, id="old")
        for k in range(5):
            journal.forecast("a", 0.3, id=f"new {k}")
        with pytest.raises(ExpiredTicket):
            journal.observe("old", 1)
        with pytest.raises(UnknownName):
            journal["nobody"]
        assert journal.verify() == 8


def test_an_outcome_that_comes_first_is_kept_if_asked(file: Path) -> None:
    table = Table(pattern(), seed=1)
    with Journal(file, pattern(), seed=1, unknown="keep") as journal:
        assert journal.observe("x", 1) is None
        assert journal.observe("x", 1) is None
        with pytest.raises(Contradiction):
            journal.observe("x", 0)
    with Journal(file) as journal:
        ticket = journal.forecast("a", 0.3, id="x")
        assert ticket.outcome == 1
        table.observe(table.forecast("a", 0.3, id="x"), 1)
        assert journal.state() == table
        assert journal.verify() == 2


def test_outcomes_are_corrected_once_and_forecasts_dropped(file: Path) -> None:
    table = Table(pattern(), seed=1)
    kept = [table.forecast("a", k / 10, id=str(k)) for k in range(8)]
    for ticket in kept[:6]:
        table.observe(ticket, 1)
    table.correct(kept[2], 0)
    table.expire("7")
    with Journal(file, pattern(), seed=1) as journal:
        for k in range(8):
            journal.forecast("a", k / 10, id=str(k))
        for k in range(6):
            journal.observe(str(k), 1)
        assert journal.correct("2", 0).outcome == 0
        assert journal.correct("2", 0).outcome == 0
        assert journal.correct("3", 1).outcome == 1
        with pytest.raises(Contradiction):
            journal.correct("2", 1)
        with pytest.raises(UnknownTicket, match="must have an outcome"):
            journal.correct("6", 1)
        with pytest.raises(UnknownTicket):
            journal.correct("no", 1)
        assert journal.expire("7").id == "7"
        assert journal.expire("7").id == "7"
        with pytest.raises(ExpiredTicket):
            journal.observe("7", 1)
        with pytest.raises(Contradiction):
            journal.expire("2")
        assert journal.state() == table
    with Journal(file) as journal:
        assert journal.state() == table
        assert journal.verify() == 16


@pytest.mark.parametrize("verb", ["observe", "correct", "expire", "coin_of"])
def test_the_verbs_of_tickets_have_the_parameters_of_a_lone_stream(verb: str) -> None:
    found = [inspect.signature(getattr(made, verb)).parameters for made in (Journal, Recalibrator)]
    own, lone = ([(each.name, each.kind, each.default) for each in f.values()] for f in found)
    assert own == lone


def test_a_journal_goes_on_compiled_also_when_its_state_is_made_again(file: Path) -> None:
    with Journal(file, pattern(), seed=7) as journal, Journal(file) as other:
        assert journal.compile() is journal
        journal.forecast("a", 0.25, id="one")
        # The other process's events are played here too.
        other.observe("one", 1)
        compiled = journal.forecast("b", 0.25).to_dict()
        journal._ledger = None
        assert len(journal) == 2
        assert journal._compiled
        table = Table(pattern(), seed=7)
        table.observe(table.forecast("a", 0.25), 1)
        assert compiled == table.forecast("b", 0.25, id=compiled["id"]).to_dict()
        assert journal["b"] == table["b"]
        model = journal._fold(journal._ledger).model
        assert (model._rows.steps is not None) == available()


def test_a_correction_may_say_what_it_replaces(file: Path) -> None:
    table = Table(pattern(), seed=1)
    table.correct(table.observe(table.forecast("a", 0.3, id="x"), 1), 0, was=1)
    with Journal(file, pattern(), seed=1) as journal:
        journal.forecast("a", 0.3, id="x")
        closed = journal.observe("x", 1)
        told = r"^was must be the outcome that stands, 1, got 0$"
        for outcome in (0, 1):
            with pytest.raises(RepeatedTicket, match=told):
                journal.correct("x", outcome, was=0)
        for bad in (2, "no"):
            with pytest.raises((InvalidInput, InvalidType)):
                journal.correct("x", 0, was=bad)
        assert journal.verify() == 2
        assert journal.correct(closed, 0, was=1).outcome == 0
        assert journal.correct(closed, 0, was=1).outcome == 0
        assert journal.correct("x", 0).outcome == 0
        told = r"^id 'x' must be told as before, with was=1, got was=0$"
        with pytest.raises(Contradiction, match=told):
            journal.correct("x", 0, was=0)
        with pytest.raises(Contradiction):
            journal.correct("x", 1, was=0)
        assert journal.state() == table
        assert journal.verify() == 3


def test_an_outcome_is_corrected_however_old_its_forecast_is(file: Path) -> None:
    table = Table(pattern(max_open=2), seed=1)
    closed = table.observe(table.forecast("a", 0.3, id="x"), 1)
    with Journal(file, pattern(max_open=2), seed=1) as journal:
        journal.forecast("a", 0.3, id="x")
        journal.observe("x", 1)
        for k in range(4):
            journal.forecast("a", 0.6, id=f"{k}")
            table.forecast("a", 0.6, id=f"{k}")
        assert journal.correct("x", 0).outcome == 0
        table.correct(closed, 0)
        assert journal.state() == table
    with Journal(file) as journal:
        assert journal.state() == table
        assert journal.verify() == 7


def test_a_forecast_that_is_asked_again_has_the_outcome_that_stands(file: Path) -> None:
    with Journal(file, pattern(), seed=1) as journal:
        journal.forecast("a", 0.3, id="x")
        journal.observe("x", 1)
        journal.correct("x", 0)
        assert journal.forecast("a", 0.3, id="x").outcome == 0


def test_the_coin_of_a_forecast_is_known_for_ever(file: Path) -> None:
    table, coins = Table(pattern(), seed=1), list[float]()
    with (
        Journal(file, pattern(), seed=1) as journal,
        Journal(file, stream="s", pattern=pattern(seed=2), keyed=False) as alone,
    ):
        for k in range(4):
            ticket = journal.forecast("a", 0.3, id=str(k))
            coins.append(table.coin_of(table.forecast("a", 0.3, id=str(k))))
            assert journal.coin_of(ticket) == journal.coin_of(str(k)) == coins[-1]
            assert ticket.mixture.draw(coins[-1]) == ticket.index
        journal.observe("0", 1)
        journal.expire("1")
        assert [journal.coin_of(str(k)) for k in range(4)] == coins
        strange = alone.forecast(None, 0.3, id="0")
        twin = pattern(seed=2)
        assert alone.coin_of("0") == twin.coin_of(twin.forecast(0.3))
        for each in (journal, alone):
            with pytest.raises((ForeignTicket, InvalidType)):
                each.coin_of(strange if each is journal else ticket)
            with pytest.raises(
                UnknownTicket, match=r"^forecast must be one that was made here, got 'no'$"
            ):
                each.coin_of("no")
            with pytest.raises(InvalidType):
                each.coin_of(3)
        count = journal.verify()
    with Journal(file) as journal:
        assert [journal.coin_of(str(k)) for k in range(4)] == coins
        assert journal.verify() == count


def test_only_so_many_forecasts_may_be_open(file: Path) -> None:
    with Journal(file, pattern(), most_open=2) as journal:
        journal.forecast("a", 0.3, id="x")
        journal.forecast("b", 0.3, id="y")
        with pytest.raises(TooManyOpen):
            journal.forecast("a", 0.3, id="z")
        journal.observe("x", 1)
        journal.forecast("a", 0.3, id="z")


@pytest.mark.parametrize("id", ["", "a\nb", "\x00", "x" * 257, "\ud800", 7, "é" * 129])
def test_ids_are_short_text_without_control_characters(file: Path, id: Any) -> None:
    with Journal(file, pattern()) as journal, pytest.raises((InvalidInput, InvalidType)):
        journal.forecast("a", 0.3, id=id)


def test_a_batch_that_cannot_be_played_keeps_what_came_before(file: Path) -> None:
    with Journal(file, pattern(), seed=1) as journal:
        with pytest.raises(UnknownTicket):
            journal.play(["a", None], [0, 1], ["x", "y"], [0.4, 1])
        (again,) = journal.play(["a"], ["forecast"], ["x"], [0.4])
        assert again.id == "x"
        assert journal.verify() == 1
        with pytest.raises(InvalidInput, match="kind must be"):
            journal.play(["a"], [2], ["x"], [0.4])


def test_streams_of_one_file_do_not_know_each_other(file: Path) -> None:
    with Journal(file, pattern(), seed=1) as one, Journal(file, Calibrant(), stream="b") as other:
        one.forecast("a", 0.2, id="x")
        other.forecast("a", 0.9, id="x")
        assert one.observe("x", 1) is not None
        with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
            Journal(file, pattern(buckets=7))
    with pytest.raises(InvalidInput, match="pattern must be given for a new stream"):
        Journal(file, stream="c")
    with pytest.raises(InvalidInput, match="without a forecast"):
        Journal(file, 7, stream="c")  # type: ignore[arg-type]


def test_tables_begin_with_coins_that_nobody_chose(file: Path, tmp_path: Path) -> None:
    with Journal(file, pattern()) as one, Journal(tmp_path / "b.db", pattern()) as other:
        drawn = []
        for journal in (one, other):
            for k in range(40):
                journal.observe(journal.forecast("a", 0.33, id=str(k)), k % 3 == 0)
            drawn.append([event.answer for event in journal.events() if event.kind == 0])
        assert drawn[0] != drawn[1]


# ---------------------------------------------------------------------- several at work


def work(file: str, name: int, rounds: int) -> None:
    with Journal(file, pattern(), seed=7) as journal:
        for k in range(rounds):
            journal.forecast("shared", 0.4, id=f"{name} {k}")
            journal.observe(f"{name} {k}", k % 2)


def test_three_processes_lose_nothing(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(str(file), n, 20)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 3
    with Journal(file) as journal:
        assert journal["shared"].rounds == 60
        assert journal.verify() == 120


def test_threads_share_a_journal(file: Path) -> None:
    with Journal(file, pattern(), seed=7) as journal:

        def run(name: int) -> None:
            for k in range(20):
                journal.observe(journal.forecast("a", 0.4, id=f"{name} {k}"), 1)

        threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journal["a"].rounds == 80
        assert journal.verify() == 160


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_goes_on_with_the_same_stream(file: Path) -> None:
    with Journal(file, pattern()) as journal:
        journal.forecast("a", 0.4, id="x")
        child = os.fork()
        if not child:
            code = 1
            try:
                journal.forecast("a", 0.4, id="y")
                journal.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        journal.forecast("a", 0.4, id="z")
        assert journal["a"].issued == 3
        assert journal.verify() == 3


def test_a_pickle_is_the_same_stream_and_a_copy_the_same_journal(file: Path) -> None:
    with Journal(file, pattern(), stream="other", keyed=False) as journal:
        assert copy.deepcopy(journal) is journal
        journal.forecast(None, 0.4, id="a")
        told = pickle.dumps(journal)
        journal.observe("a", 1)
        with pickle.loads(told) as loaded:
            assert repr(loaded) == repr(journal)
            assert loaded.state() == journal.state()
            loaded.forecast(None, 0.4, id="b")
        assert journal.state().issued == 2


def test_a_preview_is_what_the_next_forecast_announces(file: Path) -> None:
    with Journal(file, pattern(), keyed=False) as journal:
        for k in range(10):
            drawn, mean = journal.preview([k / 10, 0.3])
            assert journal.preview([k / 10])[0].tolist() == drawn[:1].tolist()
            ticket = journal.forecast(None, k / 10, id=f"{k}")
            assert (drawn[0], mean[0]) == (ticket.value, ticket.mean)
            journal.observe(ticket, k % 2)
        assert journal.state().issued == 10
    told = pytest.raises(InvalidType, match="preview must be asked of a binary stream without keys")
    with Journal(file, pattern(), stream="keyed") as journal, told:
        journal.preview([0.3])


def test_tickets_tell_rounds_in_the_order_of_learning_with_what_stands(file: Path) -> None:
    with Journal(file, pattern(), keyed=False, unknown="keep") as journal:
        assert journal.tickets() == ([], [])
        journal.observe("early", 1)
        for id in ("a", "b", "early", "c", "gone"):
            journal.forecast(None, 0.4, id=id)
        for id in ("b", "a"):
            journal.observe(id, 1)
        journal.correct("b", 0)
        journal.expire("gone")
        closed, waiting = journal.tickets()
        assert [(one.id, one.outcome) for one in closed] == [("early", 1), ("b", 0), ("a", 1)]
        assert [(one.id, one.outcome) for one in waiting] == [("c", None)]


def test_two_journals_in_one_process_follow_each_other(file: Path) -> None:
    with Journal(file, pattern(), seed=1) as one, Journal(file) as other:
        one.forecast("a", 0.1, id="x")
        other.observe("x", 1)
        assert one["a"].rounds == 1
        with Journal(file, pattern(), stream="new") as third:
            third.forecast("k", 0.5, id="n")
        one.forecast("a", 0.1, id="y")
        assert one.verify() == 4


def test_an_owner_keeps_others_out(file: Path) -> None:
    with Journal(file, pattern()), pytest.raises(NotStored, match="nobody else must be at work"):
        SqliteStore(file, alone=True)
    store = SqliteStore(file, alone=True)
    with pytest.raises(NotStored, match="no service must be at work"):
        Journal(file)
    store.close()
    Journal(file).close()


def test_a_writer_that_is_overtaken_fails_on_the_sequence(file: Path) -> None:
    Journal(file, pattern()).close()
    one, other = SqliteStore(file), SqliteStore(file)
    mine, theirs = Ledger(one), Ledger(other)
    _, rows = mine.enter([Asked(1, 0, "x", "a", 0.4)])
    mine.write(rows)
    _, late = theirs.enter([Asked(1, 0, "y", "a", 0.4)])
    with pytest.raises(NotStored, match="another process must not write now"):
        theirs.write(late)
    one.close()
    other.close()


# ---------------------------------------------------------------------- snapshots and damage


def test_snapshots_change_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "EVERY", 10)
    events = some_events(95)
    table = Table(pattern(), seed=7)
    with Journal(file, pattern(), seed=7) as journal:
        for key, kind, id, x in events:
            journal.observe(id, int(x)) if kind else journal.forecast(key, x, id=id)
            table.observe(id, int(x)) if kind else table.forecast(key, x, id=id)
        with Journal(file) as other:
            assert other.state() == table
        assert journal.verify() == 95
    with contextlib.closing(sqlite3.connect(file)) as held, held:
        assert held.execute("select count(*) from snapshot where stream = 1").fetchone() == (2,)
    held.close()


def alter(file: Path, statement: str, *values: Any) -> None:
    held = sqlite3.connect(file)
    with held:
        assert held.execute(statement, values).rowcount == 1
    held.close()


def filled(file: Path, count: int = 60) -> Table:
    with Journal(file, pattern(), seed=7) as journal:
        journal.play(*columns(some_events(count)))
        found = journal.state()
    assert isinstance(found, Table)
    return found


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_journal_that_nobody_has_any_more_lets_go_of_its_file(file: Path) -> None:
    with Journal(file, pattern()) as journal:
        copied = pickle.loads(pickle.dumps(journal))
        held, copied = copied._store._write, None
        gc.collect()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            held.execute("select 1")
        assert len(journal) == 0


@pytest.mark.parametrize("at", [0, 7, 40, -20, -1])
def test_a_flipped_byte_in_a_snapshot_is_passed_over(file: Path, at: int) -> None:
    table, held = filled(file), sqlite3.connect(file)
    (body,) = held.execute("select body from snapshot where stream = 1").fetchone()
    held.close()
    alter(file, "update snapshot set body = ? where stream = 1", flipped(body, at % len(body)))
    with Journal(file) as journal:
        assert journal.state() == table
        with pytest.raises(DamagedLog, match="snapshot of stream 1 at event 60 must be as it was"):
            journal.verify()


@pytest.mark.parametrize(
    "change",
    ["x = 0.123", "key = '\"zz\"'", "id = 'other'", "time = 5.0", "answer = x'0011223344556677'"],
)
def test_a_changed_event_is_named_and_refused(file: Path, change: str) -> None:
    filled(file)
    alter(file, f"update event set {change} where seq = 1")
    with Journal(file) as journal, pytest.raises(DamagedLog, match="event 1 must be as it was"):
        journal.verify()
    held = sqlite3.connect(file)
    held.execute("delete from snapshot")
    held.commit()
    held.close()
    with pytest.raises(DamagedLog, match="event 1 must be as it was written"):
        Journal(file)


def test_an_event_that_was_forged_with_its_checksum_is_named(file: Path) -> None:
    filled(file)
    store = SqliteStore(file)
    first = next(store.tail(0))
    forged = first._replace(x=0.777, answer=first.told).sealed()
    store.close()
    alter(file, "update event set x = ?, answer = ? where seq = 1", forged.x, forged.answer)
    with Journal(file) as journal, pytest.raises(DamagedLog, match=r"event 1 \(forecast"):
        journal.verify()


def test_a_lost_event_is_named(file: Path) -> None:
    filled(file)
    alter(file, "delete from event where seq = 1")
    with Journal(file) as journal, pytest.raises(DamagedLog, match=r"event [0-9]+ "):
        journal.verify()


def test_a_truncated_file_is_refused(file: Path) -> None:
    filled(file, 600)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises((CorruptState, NotStored)):
        Journal(file).verify()


def test_another_file_is_refused(file: Path) -> None:
    file.write_bytes(b"something else" * 100)
    with pytest.raises(CorruptState, match="must be a whole journal"):
        Journal(file, pattern())
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as held, held:
        held.execute("create table a (b)")
    held.close()
    with pytest.raises(CorruptState, match="got another database"):
        Journal(file, pattern())


def test_a_later_version_is_refused(file: Path) -> None:
    filled(file)
    alter(file, "update schema set version = 99")
    with pytest.raises(CorruptState, match="later release"):
        Journal(file)


def test_a_backup_is_the_same_journal(file: Path, tmp_path: Path) -> None:
    table = filled(file)
    store = SqliteStore(file)
    store.backup(tmp_path / "copy.db")
    store.close()
    with Journal(tmp_path / "copy.db") as copy:
        assert copy.state() == table
        assert copy.verify() == 60


def test_the_file_is_nobody_elses_to_read(file: Path) -> None:
    filled(file)
    assert file.stat().st_mode & 0o077 == 0


def test_bytes_of_a_key_load_as_a_lone_recalibrator(file: Path) -> None:
    table = filled(file)
    with Journal(file) as journal:
        assert load(journal["a"].to_bytes()) == table["a"]
        assert len(journal.certificates()) == len(journal) == 3
        assert "a" in journal
        assert "q" not in journal
        assert [event.seq for event in journal.events(after=10, limit=3)] == [11, 12, 13]
        for asked in ({"after": 10**30}, {"after": -1}, {"limit": -1}, {"limit": 1 << 63}):
            ((name, value),) = asked.items()
            with pytest.raises(InvalidInput, match=f"{name} must be .*, got {value}"):
                journal.events(**asked)


def test_what_was_added_is_seen_and_little_else() -> None:
    seen = Seen()
    for k in range(50_000):
        seen.add((1, 0, str(k)))
    assert all((1, 0, str(k)) in seen for k in range(50_000))
    assert sum((1, 1, str(k)) in seen for k in range(10_000)) < 400


class Between(Interrupting):
    """A trace that stops the program in the steps of ``with``, or where the database was asked."""

    def __call__(self, frame: Any, event: str, told: object) -> object:
        if frame.f_code.co_filename not in (contextlib.__file__, sqlite.__file__):
            return None
        by_instruction(frame, self)
        if event == "call" or (event == "opcode" and frame.f_lasti in after_call(frame.f_code)):
            self.pass_by()
        return self


def test_an_interrupted_call_lets_go_of_the_log_while_its_error_is_handled(file: Path) -> None:
    stopped, at, kept = True, 0, sys.gettrace()
    with Journal(file, pattern(seed=1)) as journal, Journal(file, pattern(seed=1)) as beside:
        while stopped:
            stopped, at = False, at + 1
            start(Between(at))
            try:
                journal.forecast("a", 0.3, id=f"{at}")
            except Stop:
                sys.settrace(kept)
                stopped = True
                # Whoever handles an error holds the frames that it went through.
                assert not journal._store._write.in_transaction
                assert beside.forecast("a", 0.4, id=f"beside {at}").raw == 0.4
                assert journal.forecast("a", 0.3, id=f"{at}").raw == 0.3
            finally:
                sys.settrace(kept)
        assert at > 3
        assert journal.verify() == 2 * at - 1
