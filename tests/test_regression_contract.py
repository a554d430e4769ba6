"""The laws of the binary core, for every forecaster of numbers."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

from calibrant.core.codec import Document
from calibrant.errors import (
    CorruptState,
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
    UnknownName,
    UnknownTicket,
)
from calibrant.kernels import intervals as kernels
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, ROUNDS
from calibrant.recalibrate.body import packed
from calibrant.regression import (
    ConformalInterval,
    Distribution,
    Distributions,
    NumberTicket,
    QuantileRecalibrator,
    curves,
    interval_method,
    interval_methods,
    quantile_methods,
)

pytestmark = pytest.mark.base


class Case:
    """How one kind is made, and what it is given."""

    def __init__(self, kind, method, raws, **options):
        self.kind, self.method, self.raws, self.options = kind, method, raws, options

    def __call__(self, **more):
        return self.kind(self.method, **({"seed": 1} | self.options | more))

    def raw(self, rows=60, seed=0):
        """A table for replay."""
        return self.raws(np.random.default_rng(seed), rows)

    def singles(self, table):
        return [table[k] for k in range(len(table))]

    def outcomes(self, rows=60, seed=0):
        return np.round(np.random.default_rng([seed, 7]).normal(size=rows), 1)


def normals(rng, size):
    return Distributions.normal(rng.normal(size=size), rng.random(size) + 0.2)


def ensembles(rng, size):
    return Distributions.from_samples(np.maximum(np.round(rng.normal(size=(size, 6)), 1), 0.0))


def quantiles(rng, size):
    values = np.sort(np.round(rng.normal(size=(size, 3)), 1), axis=1)
    return Distributions.from_quantiles([0.1, 0.5, 0.9], values)


def chances(rng, size):
    return Distributions.from_cdf([-1.0, 0.0, 0.0, 1.0], np.sort(rng.random((size, 4)), axis=1))


def points(rng, size):
    return np.round(rng.normal(size=size), 1)


FEW = {"levels": [0.1, 0.5, 0.9]}
FORMS = (normals, ensembles, quantiles, chances)
QUANTILES = {
    f"{method}, {forms.__name__}": Case(QuantileRecalibrator, method, forms, **FEW)
    for method, given in (("pit", (normals, ensembles)), ("tracker", FORMS), ("mixed", FORMS))
    for forms in given
}
QUANTILES["pit, all pairs"] = Case(
    QuantileRecalibrator, "pit", normals, **FEW, calibrator="exponential_regret", resolution=5
)
QUANTILES["pit, anchored"] = Case(
    QuantileRecalibrator, "pit", ensembles, **FEW, calibrator="anchored", ties="below"
)
INTERVALS = {
    method: Case(ConformalInterval, method, points) for method in interval_methods.names()
} | {
    f"{method}, scale told": Case(ConformalInterval, method, points, scale=3.0)
    for method in ("aci", "saocp", "sf_ogd")
}
CASES = QUANTILES | INTERVALS
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def told(ticket):
    """What a ticket announced, to the bit."""
    if hasattr(ticket, "quantiles"):
        return ticket.quantiles.tolist(), ticket.outer.tolist(), ticket.outer_mean.tolist()
    return ticket.low, ticket.high, ticket.radius


def row_of(run, k):
    if hasattr(run, "quantiles"):
        return tuple(part[k].tolist() for part in (run.quantiles, run.outer, run.outer_mean))
    return tuple(float(part[k]) for part in (run.low, run.high, run.radius))


def same(one, other):
    """Equal, infinities included."""
    return repr(one) == repr(other)


def play(rec, case, raw, outcomes):
    tickets = []
    for each, y in zip(case.singles(raw), outcomes.tolist(), strict=True):
        tickets.append(rec.forecast(each))
        rec.observe(tickets[-1], y)
    return tickets


@every
def test_single_rounds_both_ways_and_batches_agree_to_the_bit(case) -> None:
    raw, outcomes = case.raw(), case.outcomes()
    batch, tickets, learned = case(), case(), case()
    run = batch.replay(raw, outcomes)
    made = play(tickets, case, raw, outcomes)
    for each, y in zip(case.singles(raw), outcomes.tolist(), strict=True):
        learned.learn_one(each, y)
    assert all(same(told(ticket), row_of(run, k)) for k, ticket in enumerate(made))
    assert batch == tickets == learned
    assert (len(run), run.first) == (60, 0)


@every
def test_a_batch_may_be_cut_anywhere_and_stored_in_between(case) -> None:
    raw, outcomes = case.raw(seed=2), case.outcomes(seed=2)
    whole, parts = case(), case()
    run = whole.replay(raw, outcomes)
    for start, end in ((0, 0), (0, 21), (21, 22), (22, 60)):
        part = parts.replay(raw[start:end], outcomes[start:end])
        assert part.first == start
        assert all(same(row_of(part, k), row_of(run, start + k)) for k in range(end - start))
        parts = type(parts).from_bytes(parts.to_bytes())
    assert parts == whole


@every
def test_compiled_batches_give_the_same_bits(case, monkeypatch) -> None:
    pytest.importorskip("numba", reason='needs the extra "fast"')
    raw, outcomes = case.raw(), case.outcomes()
    plain, fast = case(), case()
    run = plain.replay(raw, outcomes)
    for module in (curves, interval_method):
        monkeypatch.setattr(module, "SHORT", 1)
    again = fast.replay(raw, outcomes)
    assert all(same(row_of(run, k), row_of(again, k)) for k in range(60))
    assert plain == fast


@every
def test_a_look_ahead_changes_nothing_and_is_what_comes(case) -> None:
    rec, raw = case(), case.singles(case.raw(3))
    rec.learn_one(raw[0], 0.3)
    before = rec.to_bytes()
    seen = rec.predict_one(raw[1])
    assert rec.to_bytes() == before
    assert (rec.issued, rec.open) == (1, 0)
    ticket = rec.forecast(raw[1])
    if isinstance(seen, Distribution):
        assert seen.rows.values.tolist() == ticket.value.rows.values.tolist()
        assert seen.rows.levels.tolist() == ticket.value.rows.levels.tolist()
        assert seen.rows.outer.tolist() == ticket.value.rows.outer.tolist()
    else:
        assert seen == (ticket.low, ticket.high)


@every
def test_a_forecast_without_an_outcome_teaches_nothing(case) -> None:
    rec, raw = case(), case.singles(case.raw(3))
    rec.learn_one(raw[0], 0.3)
    record = rec.certificate()
    waiting = rec.forecast(raw[1])
    assert repr(rec.certificate().to_dict() | {"open": 0}) == repr(record.to_dict())
    assert (waiting.outcome, rec.rounds, rec.open, rec.issued) == (None, 1, 1, 2)


@every
def test_a_round_that_was_overtaken_is_refused(case) -> None:
    rec, raw = case(), case.singles(case.raw(2))
    rec.predict_one(raw[0])
    rec.forecast(raw[1])
    with pytest.raises(StaleForecast, match="another round came between sample_one and learn_one"):
        rec.learn_one(raw[0], 1.0)
    assert rec.rounds == 0
    rec.learn_one(raw[0], 1.0)
    assert rec.rounds == 1


@every
def test_outcomes_come_late_and_in_any_order_by_ticket_or_id(case) -> None:
    raw, outcomes = case.singles(case.raw(40, 3)), case.outcomes(40, 3).tolist()
    rec, other = case(), case()
    first = [rec.forecast(each) for each in raw]
    again = [other.forecast(each, id=f"round {k}") for k, each in enumerate(raw)]
    assert all(same(told(a), told(b)) for a, b in zip(first, again, strict=True))
    order = np.random.default_rng(0).permutation(40).tolist()
    for k in order[:20]:
        rec.observe(first[k], outcomes[k])
        other.observe(f"round {k}", outcomes[k])
    rec = type(rec).from_bytes(rec.to_bytes())
    assert rec.open == other.open == 20
    for k in order[20:]:
        rec.observe(k, outcomes[k])
        other.observe(again[k], outcomes[k])
    assert (rec.rounds, rec.issued, rec.open) == (40, 40, 0)
    assert rec.delay == other.delay > 0
    assert rec == other
    assert again[order[-1]].outcome == outcomes[order[-1]]


@every
def test_tickets_stay_open_while_batches_are_played(case) -> None:
    raw, outcomes = case.raw(30, 5), case.outcomes(30, 5)
    batch, singly = case(), case()
    late = [rec.forecast(case.singles(raw)[0]) for rec in (batch, singly)]
    batch.replay(raw[1:29], outcomes[1:29])
    play(singly, case, raw[1:29], outcomes[1:29])
    for rec, ticket in zip((batch, singly), late, strict=True):
        rec.observe(ticket, 0.5)
    assert (batch.rounds, batch.issued, batch.open) == (29, 29, 0)
    assert batch.delay == singly.delay == 1
    last = [rec.forecast(case.singles(raw)[29]) for rec in (batch, singly)]
    assert same(told(last[0]), told(last[1]))


@every
def test_names_and_times_survive_being_stored(case) -> None:
    rec, raw = case(), case.singles(case.raw(2))
    rec.forecast(raw[0], id="a", time=3.0)
    rec.forecast(raw[1])
    again = type(rec).from_dict(rec.to_dict())
    assert again == rec
    with pytest.raises(RepeatedTicket, match="id must not be that of an open ticket, got 'a'"):
        again.forecast(raw[0], id="a")
    with pytest.raises(InvalidInput, match=r"time must not be before the forecast's 3\.0, got 2"):
        again.observe("a", 0.0, time=2.0)
    again.observe("a", 0.0, time=3.5)
    again.observe(1, 0.0, time=0.0)
    again.forecast(raw[0], id="a")
    assert again.open == 1


@every
def test_a_ticket_that_is_not_open_says_why(case) -> None:
    rec, raw = case(), case.singles(case.raw(2))
    ticket = rec.forecast(raw[0], id="a")
    rec.observe(ticket, 1.0)
    before = rec.to_bytes()
    with pytest.raises(
        RepeatedTicket, match=r"ticket 'a' must be open, got one whose outcome 1\.0"
    ):
        rec.observe(ticket, 1.0)
    with pytest.raises(RepeatedTicket, match="ticket 'a' must be open, got one whose outcome is k"):
        rec.observe("a", 1.0)
    with pytest.raises(RepeatedTicket):
        rec.observe(0, 1.0)
    with pytest.raises(UnknownTicket, match="ticket must be one that is open here, got 'nobody'"):
        rec.observe("nobody", 1.0)
    with pytest.raises(UnknownTicket):
        rec.observe(7, 1.0)
    with pytest.raises(ForeignTicket, match="ticket must be of this recalibrator, got another's"):
        rec.observe(case(seed=2).forecast(raw[1]), 1.0)
    with pytest.raises(InvalidType, match="or its id, got True"):
        rec.observe(True, 1.0)
    assert rec.to_bytes() == before
    assert isinstance(ticket, NumberTicket)
    assert repr(ticket).endswith("outcome=1.0)")
    rec.forecast(raw[1], id="a")
    with pytest.raises(RepeatedTicket):
        rec.observe(ticket, 1.0)
    assert rec.open == 1


@every
def test_tickets_expire_by_count_and_leave_nothing_behind(case) -> None:
    rec, raw = case(max_open=8), case.singles(case.raw(50))
    tickets = [rec.forecast(raw[k], id=f"t{k}") for k in range(11)]
    with pytest.raises(ExpiredTicket, match="must be among the last 8, got one of 11 forecasts ag"):
        rec.observe(tickets[0], 1.0)
    rec.forecast(raw[11], id="t2")
    assert rec.open == 8
    rec.observe(tickets[5], 1.0)
    assert type(rec).from_bytes(rec.to_bytes()) == rec
    record = rec.certificate()
    assert (record.rounds, record.open, record.expired) == (1, 7, 4)
    for k in range(30):
        rec.observe(rec.forecast(raw[12 + k]), k % 3)
    assert rec.open == 0
    assert rec.to_bytes() == type(rec).from_bytes(rec.to_bytes()).to_bytes()


@every
def test_copies_are_equal_and_independent(case) -> None:
    rec, raw = case(), case.singles(case.raw(30, 4))
    play(rec, case, case.raw(30, 4), case.outcomes(30, 4))
    rec.forecast(raw[0])
    for again in (rec.copy(), copy.deepcopy(rec), pickle.loads(pickle.dumps(rec))):
        assert again == rec
        again.learn_one(raw[1], 0.0)
        assert again != rec
    assert rec != "something else"
    with pytest.raises(TypeError, match="unhashable"):
        hash(rec)
    assert repr(rec).startswith(f"{type(rec).__name__}(method={case.method!r}, ")
    assert repr(rec).endswith("rounds=30)")


@every
def test_states_do_not_grow_beyond_one_row(case) -> None:
    raw, outcomes = case.raw(80, 6), case.outcomes(80, 6)
    rec = case()
    empty, words = len(rec.to_bytes()), len(rec._arena.layout.fresh)
    for _ in range(6):
        rec.replay(raw, outcomes)
        assert len(rec.to_bytes()) <= empty + 8 * words


@every
def test_threads_lose_nothing(case) -> None:
    rec, raw = case(), case.singles(case.raw(20))

    def work(k: int) -> None:
        for y in range(10):
            rec.observe(rec.forecast(raw[y]), (k + y) / 3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (rec.rounds, rec.issued, rec.open) == (40, 40, 0)
    assert type(rec).from_bytes(rec.to_bytes()) == rec


@every
@pytest.mark.parametrize("details", [{"id": ""}, {"id": 3}, {"time": "now"}, {"time": np.inf}])
def test_bad_names_and_times_are_refused(case, details) -> None:
    rec = case()
    with pytest.raises((InvalidInput, InvalidType), match=r"id must be|time must be"):
        rec.forecast(case.singles(case.raw(1))[0], **details)
    assert rec.issued == 0


@every
@pytest.mark.parametrize("outcome", [np.nan, np.inf, "1", None, [1.0]])
def test_an_outcome_that_is_no_number_changes_nothing(case, outcome) -> None:
    rec, raw = case(), case.singles(case.raw(1))[0]
    ticket = rec.forecast(raw)
    before = rec.to_bytes()
    with pytest.raises((InvalidInput, InvalidType), match="outcome must be a finite number, got "):
        rec.observe(ticket, outcome)
    with pytest.raises((InvalidInput, InvalidType), match="outcome must be a finite number, got "):
        rec.learn_one(raw, outcome)
    with pytest.raises((InvalidInput, InvalidType), match="outcomes"):
        rec.replay(case.raw(1), [outcome])
    assert rec.to_bytes() == before
    assert ticket.outcome is None


@every
def test_lengths_must_agree(case) -> None:
    rec = case()
    with pytest.raises(InvalidInput, match="arrays must be of one length, got: "):
        rec.replay(case.raw(3), [1.0, 2.0])
    assert rec.issued == 0


def stored(rec, settings=None, **arrays):
    """The bytes of a state, with other settings or arrays; without those that are None."""
    document = rec._document()
    told = document.settings | (settings or {})
    words = {k: v for k, v in (document.arrays | arrays).items() if v is not None}
    return Document(rec.kind, told, words, document.version).to_bytes()


@every
def test_states_that_make_no_sense_are_refused(case) -> None:
    rec, raw = case(), case.singles(case.raw(2))
    rec.learn_one(raw[0], 0.0)
    rec.forecast(raw[1], id="a")
    assert type(rec).from_bytes(stored(rec)) == rec
    for change in ({"max_open": 0}, {"max_open": None}, {"method": "nobody"}, {"options": None}):
        with pytest.raises(CorruptState):
            type(rec).from_bytes(stored(rec, change))
    for name, words in rec._document().arrays.items():
        for bad in (None, np.append(words, [3, 4]), words[:-1]):
            with pytest.raises(CorruptState):
                type(rec).from_bytes(stored(rec, **{name: bad}))
    with pytest.raises(CorruptState):
        type(rec).from_bytes(rec.to_bytes()[:-1])
    with pytest.raises(CorruptState, match="kind"):
        type(rec).from_bytes(Document("other", {}).to_bytes())


@every
def test_rows_that_no_rounds_lead_to_are_refused(case) -> None:
    rec = case()
    rec.learn_one(case.singles(case.raw(1))[0], 0.0)
    layout, nan = rec._arena.layout, np.array([np.nan]).view(np.int64)[0]
    last = int(np.flatnonzero(layout.real & layout.stored)[-1])
    changes = [(ISSUED, 0), (ISSUED, -1), (ROUNDS, 7), (LONGEST_LAG, -1), (last, nan)]
    for place, word in changes:
        row = rec._arena.row()
        row[place] = word
        with pytest.raises(CorruptState):
            type(rec).from_bytes(stored(rec, row=packed(row, layout)))


@every
def test_a_row_and_its_method_count_the_same_rounds(case) -> None:
    rec = case()
    rec.learn_one(case.singles(case.raw(1))[0], 0.0)
    row = rec._arena.row()
    row[[ISSUED, ROUNDS]] = 7
    made = stored(rec, row=packed(row, rec._arena.layout))
    if case.method == "tracker":
        # Positions and coverage do not tell after how many rounds.
        assert type(rec).from_bytes(made).rounds == 7
        return
    with pytest.raises(CorruptState, match=r"a state that is not of|calibrators that are not of"):
        type(rec).from_bytes(made)


@every
def test_tickets_that_were_never_issued_are_refused(case) -> None:
    rec, raw = case(), case.singles(case.raw(2))
    rec.forecast(raw[0])
    rec.forecast(raw[1])
    lines = rec._document().arrays["tickets"].reshape(2, -1)
    nan = np.array([np.nan]).view(np.int64)[0]
    for row, column, word in ((0, 1, 5), (0, 0, 1), (1, 1, -1), (0, 4, nan), (1, -1, nan)):
        changed = lines.copy()
        changed[row, column] = word
        with pytest.raises(CorruptState):
            type(rec).from_bytes(stored(rec, tickets=changed.reshape(-1)))
    with pytest.raises(CorruptState):
        type(rec).from_bytes(stored(rec, tickets=lines[::-1].reshape(-1)))


def stand_in(function, name, nogil):
    """A compiler that runs the function as it stands; words must be no narrower than Python's."""

    def run(*arrays):
        whole = [getattr(a, "dtype", None) == np.int64 for a in arrays]
        function(*(a.tolist() if w else a for w, a in zip(whole, arrays, strict=True)))

    return run


@every
def test_batches_hand_over_to_a_compiler_where_there_is_one(case, monkeypatch) -> None:
    raw, outcomes = case.raw(), case.outcomes()
    plain, other = case(), case()
    run = plain.replay(raw, outcomes)
    for module in (curves, kernels):
        monkeypatch.setattr(module, "available", lambda: True)
        monkeypatch.setattr(module, "compiled", stand_in)
    for module in (curves, interval_method):
        monkeypatch.setattr(module, "SHORT", 1)
    if case.kind is ConformalInterval:
        made = interval_methods.get(case.method)
        monkeypatch.setattr(made, "program", dataclasses.replace(made.program))
    again = other.replay(raw, outcomes)
    assert all(same(row_of(run, k), row_of(again, k)) for k in range(60))
    assert plain == other


def test_without_a_compiler_batches_are_plain(monkeypatch) -> None:
    monkeypatch.setattr(kernels, "available", lambda: False)
    assert dataclasses.replace(kernels.ACI).machine is None


@every
def test_unknown_options_and_methods_are_refused(case) -> None:
    with pytest.raises(InvalidType, match="must be"):
        case(colour="red")
    with pytest.raises(UnknownName, match=r"method must be one of '(aci|mixed)'"):
        case.kind("nobody")
    with pytest.raises(InvalidInput, match="max_open must be a whole number from 1 to"):
        case(max_open=0)


@every
def test_certificates_are_plain_data_and_read_well(case) -> None:
    rec = case()
    empty = rec.certificate()
    assert empty.holds is None
    assert empty.rounds == 0
    assert empty.to_dict()["holds"] is None
    assert "nan" not in str(empty)
    play(rec, case, case.raw(), case.outcomes())
    record = rec.certificate()
    assert record.to_dict()["rounds"] == record.rounds == 60
    assert record.holds in (True, None)
    assert str(record).startswith(f"{case.method}: 60 rounds, 0 open, 0 expired\n")


def test_every_method_is_under_contract() -> None:
    assert {case.method for case in QUANTILES.values()} == set(quantile_methods.names())
    assert {case.method for case in INTERVALS.values()} == set(interval_methods.names())


def test_every_method_and_its_options_are_on_the_page() -> None:
    page = Path(__file__).parent.parent / "docs" / "reference" / "regression.md"
    text = page.read_text()
    for kind, registry in (
        (QuantileRecalibrator, quantile_methods),
        (ConformalInterval, interval_methods),
    ):
        for name in registry.names():
            made = kind(name, seed=1)._method.options()
            written = [
                f'{key}="{v}"' if isinstance(v, str) else f"{key}={v}" for key, v in made.items()
            ]
            row = text.split(f"`{name}`: ")[1].split(";")[0]
            assert all(f"`{option}`" in row for option in written), (name, written)


def test_every_method_says_what_it_promises_and_where_it_comes_from() -> None:
    for registry in (quantile_methods, interval_methods):
        for name in registry.names():
            made = registry.get(name)
            assert made.name == name
            assert all((made.guarantee, made.assumption, made.reference))
