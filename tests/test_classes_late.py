"""Late outcomes of several classes: what one of many that wait counts, and what crowds cost."""

from __future__ import annotations

import json

import naive_scaling as naive
import numpy as np
import pytest
from golden.state_steps import STATES, from_bytes
from test_classes import stream

from calibrant.classes import ClassCalibrant, MendedTicket, metrics
from calibrant.classes.calibrant import EACH
from calibrant.classes.vector_mixture import VectorMixture
from calibrant.errors import CorruptState, ForeignTicket
from calibrant.kernels import mended, scaling
from calibrant.kernels.compile import available
from calibrant.transforms import Identity, OnlinePlatt

SMALL = {"experts": (Identity(), OnlinePlatt()), "resolution": 3}


def drawn(rng, chances):
    return np.minimum((chances.cumsum(1) < rng.random((len(chances), 1))).sum(1), 2)


def crowds(rounds, size, seed):
    """Raw forecasts that are right, and a shared outcome of each ``size`` in a row."""
    rng, crowd = np.random.default_rng(seed), np.arange(rounds) // size
    raw = rng.dirichlet(np.full(3, 1.5), rounds // size + 1)
    known = (crowd + 1) * size - 0.5
    return raw[crowd], drawn(rng, raw)[crowd], known


def above_raw(raw, outcomes, known, **options):
    """How much the Brier score of the mean is above that of the raw forecast."""
    rec = ClassCalibrant(3, seed=1, **options)
    run = rec.replay(raw, outcomes, time=np.arange(len(raw)) * 1.0, available=known)
    return metrics.brier(run.mean, outcomes) - metrics.brier(raw, outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 100])
def test_crowds_that_wait_for_one_outcome_do_little_harm(size) -> None:
    # Before outcomes of a crowd counted as about one: .03 and .27.
    assert above_raw(*crowds(1_500, size, seed=3)) < 0.004


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 2])
def test_a_class_that_is_always_late_counts_as_any_other(late) -> None:
    rng = np.random.default_rng(4)
    raw = rng.dirichlet(np.full(3, 1.5), 1_500)
    outcomes = drawn(rng, raw)
    known = np.arange(1_500) + np.where(outcomes == late, 200.0, 0.0)
    assert above_raw(raw, outcomes, known) < 0.003


@pytest.mark.parametrize("classes", [2, 5, 33])
def test_what_experts_said_is_kept_to_the_square_root_of_a_few_bits(classes) -> None:
    rng, count = np.random.default_rng(5), scaling.experts(classes)
    mixture, raw = VectorMixture(classes), rng.dirichlet(np.full(classes, 0.3), 40)
    mixture.mend_all(raw, rng.integers(0, classes, 40))
    room = np.zeros(scaling.room_words(classes))
    made, kept = mixture.announced(raw[0])
    scaling.forecast(mixture.words().view(float), room, classes, raw[0], 0)
    assert made.tolist() == room[scaling.mixed_at(classes) :][:classes].tolist()
    for i in range(1, count):
        said = room[scaling.said_at(classes, i) :][:classes]
        found = [mended.recalled(kept, 0, classes, i, k) for k in range(classes)]
        assert np.abs(np.sqrt(found) - np.sqrt(said)).max() <= 0.5 / mended.FINE + 1e-12


@pytest.mark.parametrize(("classes", "rounds"), [(3, 150), (33, 20)])
def test_late_outcomes_are_learned_as_the_obvious_mixture_learns_them(classes, rounds) -> None:
    raw, outcomes = stream(rounds, classes, 6)
    mixture, expected, size = VectorMixture(classes), naive.Mixture(classes), 5
    alike = naive.Alike(size)
    for first in range(0, rounds, size):
        rows = range(first, first + size)
        told = [
            (mixture.announced(raw[t]), expected.say(raw[t]), expected.said(raw[t])) for t in rows
        ]
        for t, (said, ours, experts) in zip(rows, told, strict=True):
            assert said[0] == pytest.approx(ours, abs=1e-4)
            y, part = int(outcomes[first]), alike.part()
            mixture.learn_late(raw[t], said, y, size)
            expected.learn(raw[t], y, experts, part, size)
            alike.errors.append(np.eye(classes)[y] - ours)


def test_a_batch_after_late_outcomes_is_its_rounds_to_the_bit() -> None:
    raw, outcomes = stream(40, 3, 7)
    batch, singly, booked = (ClassCalibrant(3, seed=1, **SMALL) for _ in range(3))
    late = {"time": np.arange(20.0), "available": np.arange(20.0) + outcomes[:20]}
    for rec in (batch, singly, booked):
        rec.replay(raw[:20], outcomes[:20], **late)
    assert batch.delay > 0
    run = batch.replay(raw[20:], outcomes[20:])
    for t in range(20, 40):
        ticket = singly.forecast(raw[t])
        assert ticket.mean.tolist() == run.mean[t - 20].tolist()
        singly.observe(ticket, int(outcomes[t]))
        booked.sample_one(raw[t])
        booked.learn_one(raw[t], int(outcomes[t]))
    assert batch == singly
    assert batch == booked


def test_outcomes_that_are_missing_count_in_a_batch_as_one_by_one() -> None:
    raw, outcomes = stream(30, 3, 8)
    batch, singly = (ClassCalibrant(3, seed=1, max_open=4, **SMALL) for _ in range(2))
    for rec in (batch, singly):
        for row in raw[:3]:
            rec.forecast(row)
    batch.replay(raw[3:], outcomes[3:])
    for row, y in zip(raw[3:], outcomes[3:].tolist(), strict=True):
        singly.observe(singly.forecast(row), y)
    assert batch == singly


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs a compiler")
def test_machine_code_learns_late_outcomes_to_the_bit() -> None:
    raw, outcomes = stream(60, 4, 9)
    plain, compiled = VectorMixture(4), VectorMixture(4)
    compiled.compile()
    for mixture in (plain, compiled):
        said = [mixture.announced(row) for row in raw[:30]]
        for row, told, y in zip(raw, said, outcomes.tolist(), strict=False):
            mixture.learn_late(row, told, y, 30)
            mixture.learn_blend(told[0], row, y, 30)
        mixture.mend_all(raw[30:], outcomes[30:], np.arange(1, 31))
    assert plain.words().tolist() == compiled.words().tolist()


def test_a_ticket_that_was_stored_is_learned_as_the_one_that_was_returned() -> None:
    raw, outcomes = stream(12, 3, 10)
    one, other = (ClassCalibrant(3, seed=1, **SMALL) for _ in range(2))
    tickets = [one.forecast(row) for row in raw]
    stored = [json.dumps(other.forecast(row).to_dict()) for row in raw]
    for ticket, told, y in zip(tickets, stored, outcomes.tolist(), strict=True):
        one.observe(ticket, y)
        other.observe(MendedTicket.from_dict(json.loads(told)), y)
    assert one == other
    changed = one.forecast(raw[0]).to_dict()
    one.forecast(raw[1])
    changed["said"][0] += 1
    with pytest.raises(ForeignTicket, match="an altered one"):
        one.observe(MendedTicket.from_dict(changed), 0)
    with pytest.raises(CorruptState, match="said must be"):
        MendedTicket.from_dict(changed | {"said": [-1]})


def test_tickets_of_many_classes_wait_on_when_a_class_is_added() -> None:
    cheap = {"engine": "recalibrator", "method": "foster_hart", "resolution": 5, "buckets": 5}
    for classes in (3, 4, scaling.MOST_CLASSES, EACH):
        raw, outcomes = stream(6, classes, 11)
        rec = ClassCalibrant(classes, seed=1, **cheap)
        tickets = [rec.forecast(row) for row in raw]
        rec.observe(tickets[0], int(outcomes[0]))
        more = rec.grown()
        for ticket, y in zip(tickets[1:], outcomes[1:].tolist(), strict=True):
            before = [mended.recalled(ticket.said, 0, classes, 1, k) for k in range(classes)]
            said = more.observe(ticket.id, y).said
            found = [mended.recalled(said, 0, classes + 1, 1, k) for k in range(classes + 1)]
            assert found == [*before, 0.0]
        assert ClassCalibrant.from_bytes(more.to_bytes()) == more


def test_a_state_of_the_third_version_learns_late_outcomes_as_it_did() -> None:
    file = json.loads((STATES / "v3" / "class_calibrant.json").read_text())
    rec = from_bytes(file)
    assert not rec._alike
    assert rec.forecast([0.5, 0.3, 0.2]).said == ()
    again = ClassCalibrant.from_bytes(rec.to_bytes())
    assert not again._alike
    assert again == rec
    assert ClassCalibrant(3, seed=1)._alike
