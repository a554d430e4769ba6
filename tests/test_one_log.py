"""One log, several ways: library, command line and service come to the same answers and bodies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line is an extra")
pytest.importorskip("starlette", reason="the service is an extra")

from cluster import BIN, MISSING, Cluster

from benchmarks.one_log.__main__ import Row, for_command
from benchmarks.one_log.command import alone, by_command, by_filter
from benchmarks.one_log.journal import by_journal
from benchmarks.one_log.log import TRAITS, Event, batches, made_log, trait_of
from benchmarks.one_log.service import by_service
from benchmarks.one_log.ways import MODELS, Model, Result, by_table, told_once

pytestmark = pytest.mark.once

EVENTS, KEYS = 2000, 50


@pytest.fixture(scope="module")
def log() -> list[Event]:
    return made_log(EVENTS, KEYS)


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    made: Model = request.param
    return made


@pytest.fixture(scope="module")
def table(log: list[Event], model: Model) -> Result:
    return by_table(log, model)


def test_everything_happens_in_the_log(log: list[Event]) -> None:
    assert EVENTS - 5 < len(log) <= EVENTS
    assert {event.key for event in log} == {f"key {k}" for k in range(KEYS)}
    place = {(event.kind, event.id): k for k, event in reversed(list(enumerate(log)))}
    counts = Counter((event.kind, event.id) for event in log)
    rounds = [event for event in log if event.kind == "forecast"]
    told = [(place["forecast", e.id], place.get(("outcome", e.id))) for e in rounds]
    assert sum(known is None for _, known in told) > 20
    assert sum(known is not None and known < made for made, known in told) > 20
    assert sum(known is not None and known > made + 200 for made, known in told) > 20
    assert sum(counts["outcome", event.id] == 2 for event in rounds) > 20
    assert sum(event.kind == "correction" for event in log) > 20
    assert sum(event.kind == "expiry" for event in log) > 10
    assert {trait_of(event.key) for event in log} == set(TRAITS)


def test_a_caller_of_a_table_tells_each_outcome_once_and_after_its_forecast() -> None:
    raw = Event("forecast", "key 2", "a", 0.5)
    known = Event("outcome", "key 2", "a", 1.0)
    assert told_once([known, known, raw, known]) == [raw, known]
    assert batches([raw, raw, known]) == [[raw, raw], [known]]


def test_answers_that_differ_are_told(
    table: Result, model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Result(table.answers | {"round 0": (0.5, 0.5)}, table.bodies)
    row = Row(model, 2)
    assert row.compared("a way", lambda: other, table) == 1
    assert f"| a way | {model.name} | {len(table.answers)} DIFFER | 50 same | 2 |" in (
        capsys.readouterr().out
    )
    assert row.compared("a way", lambda: table, table) == 0


def test_a_replay_by_key_comes_to_what_a_table_comes_to(
    log: list[Event], model: Model, tmp_path: Path
) -> None:
    assert by_command(log, tmp_path, model, parts=2) == for_command(log, model)


def test_a_filter_that_is_killed_comes_to_what_a_lone_model_comes_to(
    log: list[Event], model: Model, tmp_path: Path
) -> None:
    assert by_filter(log, tmp_path, model, kills=2, first=60) == alone(log, model, first=60)


def test_a_journal_whose_writer_is_killed_comes_to_what_a_table_comes_to(
    log: list[Event], table: Result, model: Model, tmp_path: Path
) -> None:
    size = EVENTS, KEYS
    assert by_journal(log, tmp_path / "log.db", 2, model, size=size) == table


def test_a_service_that_is_killed_comes_to_what_a_table_comes_to(
    log: list[Event], table: Result, model: Model, tmp_path: Path
) -> None:
    assert by_service(log, str(tmp_path / "log.db"), 2, model) == table


def test_so_it_does_on_postgresql(log: list[Event], table: Result, model: Model) -> None:
    if BIN is None:
        pytest.skip(MISSING)
    cluster = Cluster()
    try:
        assert by_service(log, cluster.database("log"), 2, model) == table
    finally:
        cluster.close()
