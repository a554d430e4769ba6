"""Streams with groups, with classes and with hidden draws, on both stores and in the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.make_journals import LABELS, fill, requests
from storing import Opened, cluster, opened, waited

from calibrant import Journal, Recalibrator, Table
from calibrant.classes import ClassCalibrant, OneVsRest
from calibrant.errors import (
    Contradiction,
    DamagedLog,
    InvalidInput,
    InvalidType,
    UnknownTicket,
)
from calibrant.groups import GroupRecalibrator, Period
from calibrant.journal.events import FORECAST, OUTCOME, Asked, Event
from calibrant.journal.fold import salt_in
from calibrant.journal.forms import FORMS, Filed, form_of
from calibrant.journal.ledger import Ledger
from calibrant.journal.purge import purge
from calibrant.journal.recover import fresh_snapshots, verified
from calibrant.journal.settings import Settings
from calibrant.journal.store import Line, Moment
from calibrant.journal.writer import Writer

pytestmark = pytest.mark.once

__all__ = ["cluster", "opened"]

OTHERS = (4, 5, 6)
"""Streams with groups, with classes, with hidden draws."""
VECTOR = [0.5, 0.25, 0.25]


def test_streams_of_every_kind_are_made_again_from_their_log(opened: Opened) -> None:
    store = opened()
    fill(store)
    ledger, again = Ledger(store), Ledger(store)
    with store.writing():
        for number in ledger.folds:
            store.drop_snapshots(number)
    played = Ledger(store)
    assert {type(fold.form) for fold in played.folds.values()} == set(FORMS)
    for number, fold in ledger.folds.items():
        assert fold.body() == again.folds[number].body() == played.folds[number].body()
    assert verified(store) == ledger.seq
    made = {one.stream: one.body for one in fresh_snapshots(store, ledger.seq)}
    assert made == {number: fold.body() for number, fold in ledger.folds.items()}


def test_the_log_is_what_the_library_says(opened: Opened) -> None:
    store = opened()
    fill(store)
    lone: Any = {
        4: GroupRecalibrator(["a"], resolution=10, seed=4),
        5: ClassCalibrant(3, seed=6),
        6: Recalibrator(resolution=10, seed=8),
    }
    for number, model in lone.items():
        tickets = {}
        for one in requests(number):
            told = LABELS.index(one.x) if one.x in LABELS else one.x
            if one.kind == FORECAST:
                groups = {"groups": one.groups} if number == 4 else {}
                model.forecast(one.x, id=one.id, time=one.time, **groups)
            elif one.kind == OUTCOME:
                tickets[one.id] = model.observe(one.id, int(told))
            elif one.id in tickets:
                model.correct(tickets[one.id], int(told))
            else:
                model.expire(one.id)
        assert Ledger(store).folds[number].model == model


def altered(store: Any, one: Event, other: Event) -> None:
    """Put another event into the place of one, and let the stream be played from its log."""
    with store.writing():
        store.drop_events([one.seq])
        store.add_events([other])
        store.drop_snapshots(one.stream)


def test_what_was_altered_in_the_log_is_named(opened: Opened) -> None:
    store = opened()
    fill(store)
    for number in OTHERS:
        one = next(e for e in store.events(number, 0, 50) if e.kind == FORECAST and e.more)
        altered(store, one, one._replace(more=f"{one.more} "))
        with pytest.raises(DamagedLog, match=f"event {one.seq} must be as it was written"):
            Ledger(store)
        altered(store, one, one)


def test_an_answer_that_was_forged_is_named(opened: Opened) -> None:
    store = opened()
    fill(store)
    for number in OTHERS:
        one = [e for e in store.events(number, 0, 90) if e.kind == FORECAST][20]
        told = one.told[:-1] + bytes([one.told[-1] ^ 1])
        altered(store, one, one._replace(answer=told).sealed())
        with pytest.raises(DamagedLog, match=rf"event {one.seq} \(forecast"):
            Ledger(store)
        altered(store, one, one)


def test_a_writer_answers_and_repeats_the_same_bytes(opened: Opened) -> None:
    store = opened()
    fill(store)
    writer = Writer(store)
    wanted = [
        Asked(4, FORECAST, "new", None, 0.3, groups=("b",)),
        Asked(5, FORECAST, "new", None, VECTOR),
        Asked(6, FORECAST, "new", None, 0.3),
    ]
    first = [told.result() for told in waited(writer, wanted)]
    again = [told.result() for told in waited(writer, wanted)]
    assert first == again
    assert [bool(salt_in(event)) for event in first] == [False, False, True]
    (refused,) = waited(writer, [wanted[0]._replace(groups=("c",))])
    assert isinstance(refused.error, Contradiction)
    assert refused.error.stored == {"x": 0.3, "groups": ("b",)}
    writer.close()


def test_old_ids_go_and_open_forecasts_stay(opened: Opened) -> None:
    store = opened()
    models: tuple[Any, ...] = (
        GroupRecalibrator(seed=1),
        ClassCalibrant(3, seed=1),
        Recalibrator(seed=1),
    )
    with store.writing():
        for number, model in enumerate(models, 1):
            told = Settings(keep=10.0, reveal="outcome").to_json()
            store.put_stream(Line(number, str(number), told, model.to_bytes()))
    ledger = Ledger(store)
    raws = [0.3, VECTOR, 0.3]
    for number, raw in enumerate(raws, 1):
        names = ("a",) if number == 1 else ()
        asked = [Asked(number, FORECAST, id, None, raw, groups=names) for id in "xyz"]
        ledger.write(ledger.enter([*asked, Asked(number, OUTCOME, "y", None, 1)])[1])
    with store.writing():
        store.put_moment(Moment(ledger.seq, 5.0))
    assert purge(store, 100.0).events == 6
    after = Ledger(store)
    for number in (1, 2, 3):
        assert after.folds[number].model == ledger.folds[number].model
        event = after.find(number, FORECAST, "x")
        assert event is not None
        before = ledger.folds[number].ticket(event)
        assert repr(after.folds[number].ticket(event)) == repr(before)
        assert [told.status for told in after.enter([Asked(number, OUTCOME, "x", None, 1)])[0]] == [
            "learned"
        ]


# --------------------------------------------------------------------------- journals


def test_a_journal_with_groups_is_the_library_s(tmp_path: Path) -> None:
    file, lone = tmp_path / "g.db", GroupRecalibrator(["a"], seed=3)
    with Journal(file, GroupRecalibrator(["a"], seed=3), keyed=False) as journal:
        for k in range(20):
            names = [("a",), ("b", 7), None][k % 3]
            made = journal.forecast(None, k / 20, id=str(k), groups=names)
            ticket = lone.forecast(k / 20, id=str(k), groups=names)
            assert (made.value, made.groups) == (ticket.value, ticket.groups)
            journal.observe(made, k % 2)
            lone.observe(ticket, k % 2)
        journal.correct("3", 0)
        assert journal.certificate().rounds == 20
    with Journal(file, GroupRecalibrator(["a"], seed=9), keyed=False) as journal:
        again = journal.forecast(None, 0.05, id="1", groups=["b", 7])
        assert again.groups == ("b", 7)
        with pytest.raises(Contradiction, match="groups"):
            journal.forecast(None, 0.05, id="1", groups=["b", "7"])
        with pytest.raises(InvalidType, match="group must be a string or a whole number"):
            journal.forecast(None, 0.5, groups=Period("month", 3))
        corrected = lone_ticket(journal, "3")
        assert corrected.outcome == 0
        assert journal.coin_of("3") == lone.coin_of(corrected)
        before = corrected.to_dict() | {"outcome": 1}
        lone.correct(type(corrected).from_dict(before), 0, was=1)
        assert journal.state() == lone
        events = [(0, "x", 0.5, ["a"]), (1, "x", 1, None), (0, "y", 0.25, None)]
        kind, id, x, groups = (list(column) for column in zip(*events, strict=True))
        played = journal.play(None, kind, id, x, groups=groups)
        assert [ticket.groups for ticket in played] == [("a",), ("a",), ()]
        assert journal.verify() == 44
    with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
        Journal(file, GroupRecalibrator(["b"]), keyed=False)
    with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
        Journal(file, Recalibrator(), keyed=False)


def lone_ticket(journal: Journal, id: str) -> Any:
    """Return the ticket of a forecast in a journal."""
    number = int(id)
    return journal.forecast(None, number / 20, id=id, groups=[("a",), ("b", 7), None][number % 3])


def test_a_journal_over_classes_is_the_library_s(tmp_path: Path) -> None:
    file, lone = tmp_path / "c.db", ClassCalibrant(3, seed=3)
    with Journal(file, ClassCalibrant(3, seed=3), keyed=False) as journal:
        for k in range(12):
            raw = np.roll(VECTOR, k)
            made, ticket = journal.forecast(None, raw, id=str(k)), lone.forecast(raw, id=str(k))
            assert made.value.tolist() == ticket.value.tolist()
            assert made.raw.tolist() == raw.tolist()
            assert journal.observe(made, k % 3).outcome == k % 3
            closed = lone.observe(ticket, k % 3)
        assert journal.correct("11", 0).outcome == 0
        lone.correct(closed, 0)
        assert np.array_equal(journal.coin_of("11"), lone.coin_of(closed))
        assert np.array_equal(journal.coin_of(made), lone.coin_of(closed))
        with pytest.raises(InvalidInput, match="outcome must be a whole number from 0 to 2"):
            journal.observe("0", 3)
        with pytest.raises(InvalidInput, match="outcome must be a whole number from 0 to 2"):
            journal.correct("0", 1, was=3)
        with pytest.raises(UnknownTicket):
            journal.observe("nobody", 1)
        assert journal.state() == lone
    with Journal(file) as journal:
        assert journal.forecast(None, tuple(VECTOR), id="0").outcome == 0
        assert journal.state() == lone
    with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
        Journal(file, ClassCalibrant(4), keyed=False)


def test_a_stream_that_says_so_is_kept_without_a_form_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OneVsRest, "filed", True)
    file, lone = tmp_path / "o.db", OneVsRest(3, seed=3)
    assert type(form_of(lone)) is Filed
    with Journal(file, OneVsRest(3, seed=3), keyed=False) as journal:
        for k in range(6):
            made = journal.forecast(None, VECTOR, id=str(k))
            assert made.to_dict() == lone.forecast(VECTOR, id=str(k)).to_dict()
            journal.observe(made, k % 3)
            lone.observe(str(k), k % 3)
        with pytest.raises(InvalidInput, match="outcome must be a whole number from 0 to 2"):
            journal.observe(journal.forecast(None, VECTOR, id="6"), 3)
        lone.forecast(VECTOR, id="6")
    with Journal(file, OneVsRest(3, seed=3), keyed=False) as journal:
        assert journal.state() == lone
        assert journal.forecast(None, VECTOR, id="0").outcome == 0
        assert journal.verify() == 13
    with pytest.raises(InvalidInput, match="pattern must be that of the stream"):
        Journal(file, OneVsRest(3, resolution=7), keyed=False)


@pytest.mark.parametrize(
    ("pattern", "keyed", "rule"),
    [
        (GroupRecalibrator(), True, "keyed must be False"),
        (ClassCalibrant(3), True, "keyed must be False"),
        (OneVsRest(3), False, "pattern must be a recalibrator"),
        (Table(Recalibrator()), False, "pattern must be a recalibrator"),
        (GroupRecalibrator(lambda context, history: []), False, "must be names, got rules"),
    ],
)
def test_what_cannot_be_kept_on_disk_is_refused(
    pattern: Any, keyed: bool, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=rule):
        Journal(tmp_path / "s.db", pattern, keyed=keyed)
    with Journal(tmp_path / "s.db", Recalibrator()) as journal:
        assert journal.events() == []


def test_a_class_beyond_the_first_256_is_corrected(tmp_path: Path) -> None:
    with Journal(tmp_path / "s.db", ClassCalibrant(300, seed=1), keyed=False) as journal:
        journal.forecast(None, [1 / 300] * 300, id="x")
        journal.observe("x", 299)
        assert journal.correct("x", 280).outcome == 280
        assert journal.verify() == 3
    assert form_of(ClassCalibrant(300)).outcome(299) == 299
