"""One contract for every kind with tickets: the same verbs, names, defaults, errors, receipts."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machine_kinds import KINDS
from machine_verbs import Play, altered, told_by

from calibrant import Journal, Recalibrator, Table
from calibrant.classes import SimplexRecalibrator
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
    UnknownTicket,
)
from calibrant.kernels.compile import available
from calibrant.regression import ConformalInterval, QuantileRecalibrator

pytestmark = pytest.mark.once

ALL = [name for name, kind in KINDS.items() if kind.has("forecast")]
LOOKING = [name for name in ALL if KINDS[name].has("learn")]
CLASSES = {type(KINDS[name].make(0, 2)).__name__: name for name in ALL}
"""One kind for each class."""
KEYWORD, EITHER = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
THREADS, EACH = 4, 20
NOON, NAT = datetime(2024, 2, 29, 12), np.datetime64("NaT", "s")

every = pytest.mark.parametrize("name", ALL)
each_class = pytest.mark.parametrize("name", CLASSES.values(), ids=list(CLASSES))


@every
@pytest.mark.filterwarnings("ignore:.*is now called:DeprecationWarning")
def test_a_ticket_that_is_found_by_its_id_answers_or_says_who_knows(name: str) -> None:
    play = Play(name)
    ticket = play.filed()
    found = play.rec.expire(ticket.number)
    stored = type(found).from_dict(json.loads(json.dumps(found.to_dict())))
    said = []
    for part in (part for part in dir(type(found)) if part[0] != "_"):
        for each in (found, stored):
            try:
                getattr(each, part)
            except InvalidInput as error:
                said.append(str(error))
    rule = re.compile(r"[a-z_]+ must be asked of the ticket that forecast\(\) returned")
    assert all(map(rule.fullmatch, said)), said


# Names and defaults.


@every
def test_each_kind_has_a_spec_that_says_what_it_is(name: str) -> None:
    play, other = Play(name), Play(name, max_open=7)
    spec, told = play.rec.spec, {field.name for field in dataclasses.fields(play.rec.spec)}
    assert hash(spec) == hash(other.rec.spec)
    assert spec == other.rec.spec
    assert type(spec).__doc__
    for field in told:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(spec, field, None)
    play.closed()
    play.forecast()
    loaded = (play.rec, play.rec.copy(), type(play.rec).from_bytes(play.rec.to_bytes()))
    assert [each.spec == spec for each in loaded] == [True] * 3


def test_different_settings_make_different_specs() -> None:
    grids = [{"classes": 2}, {"resolution": 4}, {"cells": 2}, {"limit": 99}]
    made: list[Any] = [SimplexRecalibrator(**{"classes": 3} | grid) for grid in grids]
    levels = [{}, {"levels": [0.2]}, {"ties": "below"}, {"method": "pit"}, {"resolution": 10}]
    made += [QuantileRecalibrator(**more) for more in levels]
    ends = [{}, {"coverage": 0.8}, {"score": "given"}, {"method": "aci"}, {"step": 0.5}]
    made += [ConformalInterval(**more) for more in ends]
    specs = {each.spec: each for each in made}
    assert len(specs) == len(made)
    assert SimplexRecalibrator(2).spec.points == 11
    assert SimplexRecalibrator(2).spec.layout is SimplexRecalibrator(2).spec.layout


def parameters(made: Any, verb: str) -> dict[str, tuple[Any, Any]]:
    """Return kind and default of each parameter of a verb."""
    told = inspect.signature(getattr(made, verb)).parameters
    return {name: (each.kind, each.default) for name, each in told.items() if name != "self"}


NONE, NEEDED = None, inspect.Parameter.empty
OPTION = KEYWORD, NONE


@each_class
def test_the_verbs_have_the_same_parameters(name: str) -> None:
    made, (raw, many) = type(KINDS[name].make(0, 2)), KINDS[name].raw_names
    told = parameters(made, "forecast")
    assert next(iter(told)) == raw
    assert told["id"] == told["time"] == OPTION
    assert parameters(made, "observe") == {
        "ticket": (EITHER, NEEDED),
        "outcome": (EITHER, NEEDED),
        "time": (EITHER, NONE),
    }
    needed = dict.fromkeys(["ticket", "outcome"], (EITHER, NEEDED))
    assert parameters(made, "correct") == needed | {"was": OPTION}
    assert parameters(made, "expire") == {"ticket": (EITHER, NEEDED)}
    assert next(iter(parameters(made, "coin_of").items())) == ("ticket", (EITHER, NEEDED))
    told = parameters(made, "replay")
    assert list(told)[:2] == [many, "outcomes"]
    assert told["available"] == told["time"] == told["carry"] == OPTION
    assert parameters(made, "certificate") == {"failure": (EITHER, 0.05)}
    for verb in ("compile", "copy"):
        assert parameters(made, verb) == {}
    for verb in ("to_bytes", "to_dict"):
        assert parameters(made, verb) == {"secret": (KEYWORD, True), "authenticate": OPTION}
    for verb in ("from_bytes", "from_dict"):
        told = parameters(made, verb)
        assert told["secret"] == told["key"] == told["authenticate"] == OPTION


@each_class
def test_to_compile_changes_no_answer(name: str) -> None:
    play, other = Play(name), Play(name)
    assert play.rec.compile() is play.rec
    for each in (play, other):
        each.filed(id="a")
        each.rec.observe("a", each.outcome)
        each.closed()
    assert play.rec == other.rec


def test_tables_and_journals_are_compiled_by_the_same_verb(tmp_path: Path) -> None:
    lone, table = Recalibrator(seed=1, key="a"), Table(Recalibrator(), seed=1)
    with Journal(tmp_path / "log", Recalibrator(), seed=1) as journal:
        for face in (table, journal):
            assert parameters(face, "compile") == {}
            assert face.compile() is face
            tickets = [face.forecast("a", raw, id=f"{raw}") for raw in (0.1, 0.7, 0.72)]
            face.observe("0.7", 1)
            face.observe(tickets[0], 0)
        assert journal.state() == table == table.copy()
        steps = [each._rows.steps for each in (table, table.copy(), journal.state())]
        assert [made is not None for made in steps] == [available()] * 3
    for raw in (0.1, 0.7, 0.72):
        lone.forecast(raw, id=f"{raw}")
    lone.observe("0.7", 1)
    lone.observe("0.1", 0)
    assert table["a"] == lone


@each_class
def test_a_look_takes_what_a_forecast_takes_but_its_facts(name: str) -> None:
    made = type(KINDS[name].make(0, 2))
    facts = {"id", "time"}
    asked = {k: told for k, told in parameters(made, "forecast").items() if k not in facts}
    for verb in ("sample_one", "predict_one", "predict_mean_one"):
        assert parameters(made, verb) == asked
    told = parameters(made, "learn_one")
    assert told.keys() == asked.keys() | {"outcome"}
    assert list(told)[:2] == [next(iter(asked)), "outcome"]


@each_class
def test_a_million_tickets_may_be_open_and_coins_come_from_seed_and_key(name: str) -> None:
    told = parameters(type(KINDS[name].make(0, 2)), "__init__")
    assert told["max_open"] == (KEYWORD, 1_000_000)
    assert told["seed"] == told["key"] == told["secret"] == OPTION


@each_class
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True])
def test_the_cap_on_open_tickets_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises((InvalidInput, InvalidType), match=r"^max_open must be a whole number"):
        KINDS[name].make(0, value)


# Tickets.


@every
def test_a_ticket_tells_what_came_in_and_what_was_announced(name: str) -> None:
    play = Play(name)
    first, second = play.forecast(time=3.0), play.forecast(id="a", time=4)
    assert (first.id, first.number, first.time, first.outcome) == (0, 0, 3.0, None)
    assert (second.id, second.number, second.time, second.outcome) == ("a", 1, 4.0, None)
    assert first.whose == second.whose
    assert first.agrees(first.fields)
    assert all(hasattr(first, told) for told in ("raw", "value", "mean"))
    assert repr(first).startswith(f"{type(first).__name__}(id=0, ")
    assert repr(first).endswith("open)")


@every
def test_a_stored_ticket_is_the_ticket(name: str) -> None:
    play = Play(name)
    for ticket in (play.filed(id="a", time=2.0), play.closed()):
        told = ticket.to_dict()
        for again in (
            type(ticket).from_bytes(ticket.to_bytes()),
            type(ticket).from_dict(json.loads(json.dumps(told))),
        ):
            assert again.to_dict() == told
            assert play.kind.answer(again) == play.kind.answer(ticket)
            assert repr(again) == repr(ticket)


@every
def test_observe_returns_the_ticket_and_marks_the_one_given(name: str) -> None:
    play = Play(name)
    filed, latest = play.forecast(), play.forecast()
    stored = altered(filed)
    assert play.rec.observe(latest, play.outcome) is latest
    assert latest.outcome == play.outcome
    assert repr(latest).endswith(f"outcome={play.outcome!r})")
    assert play.rec.observe(stored, play.outcome) is stored
    assert (stored.outcome, filed.outcome) == (play.outcome, None)
    named = play.filed(id="a")
    found = play.rec.observe("a", play.other)
    assert (found.id, found.number, found.outcome) == ("a", named.number, play.other)
    found = play.rec.observe(np.int64(named.number + 1), play.other)
    assert (found.id, found.number, found.outcome) == (named.number + 1,) * 2 + (play.other,)
    assert (play.rec.rounds, play.rec.issued, play.rec.open) == (4, 4, 0)


@every
def test_expire_returns_the_ticket_and_forgets_it(name: str) -> None:
    play = Play(name)
    ticket = play.forecast()
    assert play.rec.expire(ticket) is ticket
    named = play.filed(id="a")
    assert play.rec.expire("a").number == named.number
    assert ticket.outcome is None
    assert (play.rec.issued, play.rec.rounds, play.rec.open) == (3, 0, 1)
    assert play.rec.certificate().expired == 2


@every
def test_correct_returns_the_ticket_with_the_right_outcome(name: str) -> None:
    play = Play(name)
    ticket = play.closed()
    assert play.rec.correct(ticket, play.other) is ticket
    assert ticket.outcome == play.other
    assert (play.rec.rounds, play.rec.issued, play.rec.open) == (1, 1, 0)
    assert play.rec.certificate().rounds == 1
    text = f"outcome must differ from the known one to correct it, got {play.other} again"
    with play.refused(RepeatedTicket, text):
        play.rec.correct(ticket, play.other)


@every
@pytest.mark.parametrize("rounds", [0, 3])
def test_a_certificate_is_data_for_json(name: str, rounds: int) -> None:
    play = Play(name)
    for _ in range(rounds):
        play.closed()
    found = play.rec.certificate()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["rounds"] == found.rounds == rounds
    assert told["holds"] == found.holds


# Refusals.


@every
@pytest.mark.parametrize("id", [99, -1, "nobody", np.int64(99)])
def test_what_was_never_issued_is_unknown(name: str, id: Any) -> None:
    play = Play(name)
    play.filed()
    told = int(id) if isinstance(id, np.integer) else id
    for verb in told_by(play):
        with play.refused(UnknownTicket, f"ticket must be one that is open here, got {told!r}"):
            verb(id)


@every
def test_what_is_settled_is_not_open(name: str) -> None:
    play = Play(name)
    lost, named = play.forecast(), play.forecast(id="a")
    ticket = play.closed()
    play.rec.observe(lost.id, play.outcome)
    play.rec.observe("a", play.outcome)
    known = "must be open, got one whose outcome is known"
    for verb in told_by(play):
        told = f"ticket {ticket.id} must be open, got one whose outcome {play.outcome} is known"
        with play.refused(RepeatedTicket, f"{told}; use correct() to replace it"):
            verb(ticket)
        for given, id in ((lost, 0), (0, 0), (named, "'a'"), ("a", "'a'"), (1, 1)):
            with play.refused(RepeatedTicket, f"ticket {id} {known}"):
                verb(given)


@every
def test_a_name_is_settled_by_the_number_of_its_ticket_too(name: str) -> None:
    play = Play(name)
    play.filed(id="a")
    play.rec.observe(0, play.outcome)
    text = "ticket 'a' must be open, got one whose outcome is known"
    with play.refused(RepeatedTicket, text):
        play.rec.observe("a", play.outcome)


@every
def test_what_was_expired_is_not_open(name: str) -> None:
    play = Play(name)
    ticket, named = play.forecast(), play.forecast(id="a")
    play.rec.expire(ticket)
    play.rec.expire("a")
    text = "must be open, got one that was expired"
    for given, id in ((ticket, 0), (0, 0), (named, "'a'"), ("a", "'a'"), (1, 1)):
        for verb in told_by(play):
            with play.refused(ExpiredTicket, f"ticket {id} {text}"):
                verb(given)
    with play.refused(ExpiredTicket, f"ticket 0 {text}"):
        play.rec.correct(ticket, play.outcome)


@every
def test_a_name_that_was_given_again_says_nothing_of_its_first_ticket(name: str) -> None:
    play = Play(name)
    ticket = play.forecast(id="a")
    play.rec.expire(ticket)
    play.rec.observe(play.forecast(id="a"), play.outcome)
    with play.refused(ExpiredTicket, "ticket 'a' must be open, got one that was expired"):
        play.rec.observe(ticket, play.outcome)
    with play.refused(RepeatedTicket, "ticket 'a' must be open, got one whose outcome is known"):
        play.rec.observe("a", play.outcome)


@every
def test_what_grew_too_old_is_not_open(name: str) -> None:
    play = Play(name, max_open=2)
    ticket, named = play.forecast(), play.forecast(id="a")
    play.forecast(), play.forecast()
    assert (play.rec.open, play.rec.issued) == (2, 4)
    for given, id, ago in ((ticket, 0, 4), (0, 0, 4), (named, "'a'", 3)):
        text = f"ticket {id} must be among the last 2, got one of {ago} forecasts ago: it expired"
        for verb in told_by(play):
            with play.refused(ExpiredTicket, text):
                verb(given)
    with play.refused(ExpiredTicket, "ticket 'a' must be open, got one that was expired"):
        play.rec.observe("a", play.outcome)


@every
def test_a_ticket_of_another_is_foreign(name: str) -> None:
    play = Play(name)
    stranger = play.kind.make(2, 100)
    ticket = play.forecast(stranger)
    play.closed()
    for verb in told_by(play):
        told = f"ticket must be of this recalibrator, got another's: {ticket!r}"
        with play.refused(ForeignTicket, told):
            verb(ticket)
    stranger.observe(ticket, play.outcome)
    told = f"ticket must be of this recalibrator, got another's: {ticket!r}"
    with play.refused(ForeignTicket, told):
        play.rec.correct(ticket, play.other)
    if play.kind.has("coin"):
        with play.refused(ForeignTicket, told):
            play.rec.coin_of(ticket)


@pytest.mark.parametrize("name", [name for name in ALL if KINDS[name].has("coin")])
def test_coins_of_forecasts_that_were_never_made_stay_hidden(name: str) -> None:
    play = Play(name)
    ticket = play.closed()
    for number in (1, 99, 1 << 80):
        never = altered(ticket, number=number)
        with play.refused(UnknownTicket, f"ticket must be one that was issued here, got {never!r}"):
            play.rec.coin_of(never)
    if "clock" in ticket.to_dict():
        later = altered(ticket, clock=1)
        told = f"ticket must be as it was issued, got an altered one: {later!r}"
        with play.refused(ForeignTicket, told):
            play.rec.coin_of(later)


def test_a_ticket_of_another_table_is_foreign() -> None:
    pattern = Recalibrator(resolution=4, buckets=3)
    table, stranger = Table(pattern, seed=1), Table(pattern, seed=2)
    # The same number, bucket and draw, with another coin: nothing but the issuer differs.
    own, ticket = table.forecast("north", 0.5), stranger.forecast("north", 0.5)
    assert own.fields == ticket.fields
    before = table.to_bytes()
    with pytest.raises(ForeignTicket, match=r"^ticket must be of this table, got another's: "):
        table.observe(ticket, 1)
    assert table.to_bytes() == before
    assert table.observe(own, 1) is own


@every
def test_an_altered_ticket_is_foreign(name: str) -> None:
    play = Play(name)
    ticket = altered(play.filed(), number=1)
    for verb in told_by(play):
        told = f"ticket must be as it was issued, got an altered one: {ticket!r}"
        with play.refused(ForeignTicket, told):
            verb(ticket)


@every
def test_only_a_closed_ticket_of_ours_is_corrected(name: str) -> None:
    play = Play(name)
    ticket = play.closed()
    waiting = play.filed()
    kind = type(ticket).__name__
    for given in (0, "a", None):
        with play.refused(InvalidType, f"ticket must be a {kind}, got {given!r}"):
            play.rec.correct(given, play.other)
    text = "must have an outcome to be corrected, got"
    with play.refused(InvalidInput, f"ticket 1 {text} an open one"):
        play.rec.correct(waiting, play.other)
    unmarked = altered(ticket, outcome=None)
    told = f"ticket 0 {text} one without; pass what observe() returned, or was="
    with play.refused(InvalidInput, told):
        play.rec.correct(unmarked, play.other)
    never = altered(ticket, number=99)
    with play.refused(UnknownTicket, f"ticket must be one that was issued here, got {never!r}"):
        play.rec.correct(never, play.other)


@every
def test_the_name_of_an_open_ticket_is_not_given_again(name: str) -> None:
    play = Play(name)
    ticket = play.forecast(id="a")
    for _ in range(2):
        with play.refused(RepeatedTicket, "id must not be that of an open ticket, got 'a'"):
            play.forecast(id="a")
    play.rec.observe(ticket, play.outcome)
    assert play.forecast(id="a").number == 1


@every
@pytest.mark.parametrize("id", ["", 3, 1.5, b"a"])
def test_a_name_is_a_string(name: str, id: Any) -> None:
    play = Play(name)
    with play.refused(InvalidType, f"id must be a string that is not empty, got {id!r}"):
        play.forecast(id=id)


@every
@pytest.mark.parametrize("given", [None, True, 1.5, b"a", ()])
def test_an_outcome_is_told_by_a_ticket_or_its_id(name: str, given: Any) -> None:
    play = Play(name)
    play.filed()
    for verb in told_by(play):
        with play.refused(InvalidType, f"ticket must be a Ticket or its id, got {given!r}"):
            verb(given)


@every
@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_a_date_is_a_time_one_by_one_as_in_batches(name: str, unit: str) -> None:
    play, other = Play(name), Play(name)
    date = np.datetime64("2024-02-29", unit)
    seconds = date.astype("M8[s]").astype(int).item()
    early = np.datetime64("2024-02-28", unit)
    ticket, same = play.forecast(time=date), other.forecast(time=seconds)
    assert ticket.time == same.time == seconds
    rule = f"time must not be before the forecast's {ticket.time!r}"
    with play.refused(InvalidInput, f"{rule}, got {ticket.time - 86_400.0!r}"):
        play.rec.observe(ticket, play.outcome, time=early)
    play.rec.observe(ticket, play.outcome, time=np.array(date))
    other.rec.observe(same, other.outcome, time=seconds)
    assert play.rec.to_bytes() == other.rec.to_bytes()


@every
@pytest.mark.parametrize(
    ("time", "error"),
    [
        (np.nan, InvalidInput),
        (np.inf, InvalidInput),
        ("noon", InvalidType),
        (NOON, InvalidType),
        (NAT, InvalidInput),
    ],
)
def test_a_time_is_a_finite_number(name: str, time: Any, error: type[Exception]) -> None:
    play = Play(name)
    with play.refused(error, f"time must be a finite number or an np.datetime64, got {time!r}"):
        play.forecast(time=time)
    ticket = play.forecast()
    with play.refused(error, f"time must be a finite number or an np.datetime64, got {time!r}"):
        play.rec.observe(ticket, play.outcome, time=time)


@every
def test_an_outcome_does_not_come_before_its_forecast(name: str) -> None:
    play = Play(name)
    ticket = play.filed(time=5.0)
    for given in (ticket, 0):
        with play.refused(InvalidInput, "time must not be before the forecast's 5.0, got 4.0"):
            play.rec.observe(given, play.outcome, time=4.0)
    assert play.rec.observe(ticket, play.outcome, time=5.0) is ticket


@every
def test_bad_outcomes_are_refused_by_every_verb(name: str) -> None:
    play = Play(name)
    closed, ticket = play.closed(), play.forecast()
    before = play.rec.to_bytes()
    for outcome in play.kind.bad_outcomes:
        for verb, given in ((play.rec.observe, ticket), (play.rec.correct, closed)):
            with pytest.raises((InvalidInput, InvalidType), match=r"^outcome must be "):
                verb(given, outcome)
        if play.kind.has("learn"):
            with pytest.raises((InvalidInput, InvalidType), match=r"^outcome must be "):
                play.kind.learn(play.rec, play.raw, outcome)
    assert play.rec.to_bytes() == before
    assert (ticket.outcome, closed.outcome) == (None, play.outcome)


# Looks.


@pytest.mark.parametrize("name", LOOKING)
def test_a_look_is_the_next_round_and_may_be_overtaken(name: str) -> None:
    play = Play(name)
    mean = play.kind.predict_mean(play.rec, play.raw)
    drawn = play.kind.predict(play.rec, play.raw)
    assert drawn == play.kind.predict(play.rec, play.raw, "predict_one")
    said = play.forecast(play.rec.copy())
    assert (drawn, mean) == (play.kind.drawn(said), play.kind.expected(said))
    play.forecast()
    before = play.rec.to_bytes()
    with pytest.raises(StaleForecast, match="came between sample_one and learn_one; use forecast"):
        play.kind.learn(play.rec, play.raw, play.outcome)
    assert play.rec.to_bytes() == before


@pytest.mark.parametrize("name", LOOKING)
def test_a_mean_that_was_looked_at_holds_nothing_up(name: str) -> None:
    play = Play(name)
    play.kind.predict_mean(play.rec, play.raw)
    play.forecast()
    play.kind.learn(play.rec, play.raw, play.outcome)
    assert (play.rec.issued, play.rec.rounds) == (2, 1)


# Batches and threads.


@every
def test_a_batch_leaves_what_is_pending(name: str) -> None:
    play = Play(name)
    late = {"available": [0.0, np.inf, 9.0], "time": [0.0, 1.0, 2.0]}
    run = play.kind.replay(play.rec, [play.raw] * 3, [play.outcome] * 3, **late)
    assert run.pending.number.tolist() == [1, 2]
    assert run.pending.outcome.tolist() == [play.outcome] * 2
    assert (play.rec.issued, play.rec.rounds, play.rec.open) == (3, 1, 2)
    play.rec.observe(1, play.outcome)
    with play.refused(RepeatedTicket, "ticket 1 must be open, got one whose outcome is known"):
        play.kind.replay(play.rec, [play.raw], [play.outcome], time=[9.0], carry=run.pending)
    carried = run.pending.chosen(run.pending.number == 2)
    more = play.kind.replay(play.rec, [play.raw], [play.outcome], time=[9.0], carry=carried)
    assert len(more.pending) == 0
    assert (play.rec.issued, play.rec.rounds, play.rec.open) == (4, 4, 0)


LOGGED = pytest.mark.parametrize("name", [name for name in ALL if KINDS[name].has("log")])


@LOGGED
def test_a_log_tells_what_was_announced_before_it(name: str) -> None:
    play = Play(name)
    tickets = [play.forecast(), play.forecast(id="a")]
    run = play.rec.observe_many(["a", 0], [play.outcome] * 2)
    assert run.number.tolist() == [1, 0]
    assert len(run) == 2
    for row, ticket in zip(play.kind.logged(run), reversed(tickets), strict=True):
        # The mean of many points is not kept, nor the raw forecast where that is a vector.
        lost = getattr(ticket.issuer, "full_support", False)
        if row is not None:
            said = play.kind.answer(ticket)
            assert (row[0], None if lost else row[1]) == (said[0], None if lost else said[1])


@LOGGED
def test_a_log_may_give_the_name_of_a_ticket_that_expires_on_the_way(name: str) -> None:
    play = Play(name, max_open=2)
    lone = play.rec.copy()
    times = {"time": [1.0] * 4} if play.times else {}
    for rec in (play.rec, lone):
        play.forecast(rec, id="a")
    names = [None, None, "a", None]
    play.kind.play(play.rec, ["forecast"] * 4, names, [play.raw] * 4, **times)
    for id in names:
        play.forecast(lone, id=id)
    assert play.rec == lone
    assert play.rec.observe("a", play.outcome).number == 3


@LOGGED
def test_a_log_of_nothing_is_nothing(name: str) -> None:
    play = Play(name)
    before = play.rec.to_bytes()
    for run in (
        play.rec.play([], [], []),
        play.rec.forecast_many([], id=[]),
        play.rec.observe_many([], []),
    ):
        assert (len(run), len(run.value), len(run.mean), len(run.number)) == (0, 0, 0, 0)
    assert play.rec.to_bytes() == before


@LOGGED
def test_a_log_that_goes_wrong_at_its_end_changes_nothing(name: str) -> None:
    play = Play(name)
    play.forecast(id="waits")
    before = play.rec.to_bytes()
    kind, id = ["forecast", "outcome", "outcome", "outcome"], ["new", "new", "waits", "new"]
    x = [play.raw, *[play.outcome] * 3]
    times = {"time": [1.0] * 4} if play.times else {}
    with pytest.raises(RepeatedTicket, match="event 3: ticket 'new' must be open, got one whose"):
        play.kind.play(play.rec, kind, id, x, **times)
    with pytest.raises((InvalidInput, InvalidType)):
        play.kind.play(play.rec, ["forecast", "outcome"], ["a", "a"], [play.raw, None])
    assert play.rec.to_bytes() == before
    # Nor is anything known of tickets that were never made.
    with pytest.raises(UnknownTicket):
        play.rec.observe("new", play.outcome)
    assert play.rec.observe("waits", play.outcome).number == 0
    play.kind.play(play.rec, kind[:2], id[:2], x[:2], **{k: v[:2] for k, v in times.items()})
    assert (play.rec.issued, play.rec.rounds, play.rec.open) == (2, 2, 0)


SINGLE = [5, 3.5, "ab", b"ab", np.str_("ab"), np.array(5), object()]
"""What is no column."""


@LOGGED
@pytest.mark.parametrize("given", SINGLE, ids=lambda given: type(given).__name__)
def test_a_single_value_is_no_column_and_changes_nothing(name: str, given: Any) -> None:
    play = Play(name)
    play.filed(id="a")
    play.filed(id="b")
    rec, known = play.rec, [play.outcome] * 2
    calls = {
        "id": lambda: rec.observe_many(given, known),
        "kind": lambda: rec.play(given, ["a", "b"], known),
        "x": lambda: rec.play([1, 1], ["a", "b"], given),
        "outcomes": lambda: rec.observe_many(["a", "b"], given),
        "time": lambda: rec.play([1, 1], ["a", "b"], known, given),
        "available": lambda: rec.replay([], [], time=[], available=given),
    }
    before = rec.to_bytes()
    for column, call in calls.items():
        with pytest.raises(InvalidType, match=f"^{column} must ") as found:
            call()
        assert str(found.value).endswith(f", got {given!r}")
    with pytest.raises(InvalidType):
        rec.forecast_many(given)
    assert rec.to_bytes() == before


@LOGGED
@pytest.mark.parametrize("time", [["noon"], [NOON], [np.timedelta64(3, "s")], [None]], ids=str)
def test_what_is_no_time_in_a_call_is_none_in_a_batch(name: str, time: Any) -> None:
    play = Play(name)
    play.filed(id="a")
    before = play.rec.to_bytes()
    for call in (
        lambda: play.rec.play([1], ["a"], [play.outcome], time),
        lambda: play.rec.observe_many(["a"], [play.outcome], time=time),
        lambda: play.kind.play(play.rec, ["forecast"], [None], [play.raw], time=time),
    ):
        with pytest.raises(InvalidType, match=r"^time must be a flat array of 1 times, numbers"):
            call()
    assert play.rec.to_bytes() == before


@pytest.mark.parametrize("given", SINGLE, ids=lambda given: type(given).__name__)
def test_a_table_takes_no_single_value_for_a_column_either(given: Any) -> None:
    table = Table(Recalibrator(), seed=1)
    table.forecast("a", 0.5, id="b")
    before = table.to_bytes()
    calls = {
        "id": (
            lambda: table.observe_many(given, [1, 0]),
            lambda: table.observe_many(given, [1, 0], keys=["a", "b"]),
            lambda: table.forecast_many(["a", "b"], [0.5, 0.5], id=given),
        ),
        "keys": (
            lambda: table.forecast_many(given, [0.5, 0.5]),
            lambda: table.take(given, []),
            lambda: table.bodies(given),
        ),
        "bodies": (lambda: table.take([], given),),
        "kind": (lambda: table.play(None, given, ["b"], [1]),),
        "time": (lambda: table.play(None, [1], ["b"], [1], given),),
    }
    for column, refused in calls.items():
        for call in refused:
            with pytest.raises(InvalidType, match=f"^{column} must ") as found:
                call()
            assert str(found.value).endswith(f", got {given!r}")
    assert table.to_bytes() == before


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Let threads interrupt each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@every
@pytest.mark.usefixtures("frequent_switches")
def test_threads_that_share_a_stream_lose_nothing(name: str) -> None:
    play = Play(name, max_open=1000)
    start, failures = threading.Barrier(THREADS), []

    def work() -> None:
        try:
            start.wait()
            tickets = [play.forecast() for _ in range(EACH)]
            for ticket in reversed(tickets):
                play.rec.observe(ticket, play.outcome)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rec, told = play.rec, play.rec.certificate()
    assert rec.issued == rec.rounds == told.rounds == THREADS * EACH
    assert rec.open == told.open == told.expired == 0
    assert rec.copy() == rec
