"""A class more on the way: everything learned goes on, and tickets wait on."""

from __future__ import annotations

import numpy as np
import pytest
from test_classes import stream

from calibrant.classes import ClassCalibrant
from calibrant.classes.calibrant import EACH
from calibrant.errors import ForeignTicket, InvalidInput, RepeatedTicket
from calibrant.kernels import scaling

CHEAP = {"engine": "recalibrator", "method": "foster_hart", "resolution": 5, "buckets": 5}


def spared(raw):
    """Return raw forecasts with a spare class after the others."""
    return np.column_stack([raw, np.zeros(len(raw))])


def learned(classes=3, rounds=400, **options):
    """Return a recalibrator with a spare class, taught that classes are taken for one another."""
    raw, outcomes = stream(rounds, classes, 3, sharpness=1.0)
    rec = ClassCalibrant(classes + 1, seed=7, **options)
    rec.replay(spared(raw), (outcomes + 1) % classes)
    return rec, raw


def test_every_class_keeps_its_record_and_the_new_one_has_that_of_the_last() -> None:
    rec, _ = learned()
    more = rec.grown()
    before, after = rec.certificate().parts, more.certificate().parts
    assert (more.classes, more.rounds, more.issued) == (5, rec.rounds, rec.issued)
    for k in range(4):
        assert after[k].c2 == before[k].c2
    assert after[4].c2 == before[3].c2
    tops = [number for number in before if number > 4]
    assert [number for number in after if number > 4] == [number + 1 for number in tops]
    for number in tops:
        assert after[number + 1].rounds == before[number].rounds
        assert after[number + 1].c2 == before[number].c2


def test_what_was_learned_goes_on() -> None:
    rec, _ = learned()
    raw, outcomes = stream(300, 3, 4, sharpness=1.0)
    told, rows = (outcomes + 1) % 3, spared(spared(raw))
    known = rec.grown().replay(rows, told).mean
    fresh = ClassCalibrant(5, seed=7).replay(rows, told).mean
    same = rec.replay(spared(raw), told).mean

    def loss(means):
        return -np.log(means[np.arange(len(told)), told]).mean()

    assert loss(known) < loss(fresh) - 0.02
    assert loss(known) < loss(same) + 0.005


def test_the_new_class_is_told_as_the_last_one_until_one_of_them_comes() -> None:
    more = learned()[0].grown()
    mean = more.predict_mean_one([0.5, 0.3, 0.2, 0.0, 0.0])
    assert mean[3] == pytest.approx(mean[4], abs=1e-12)
    assert mean[:3].min() > mean[3]
    for _ in range(40):
        more.learn_one([0.5, 0.3, 0.2, 0.0, 0.0], 3)
    mean = more.predict_mean_one([0.5, 0.3, 0.2, 0.0, 0.0])
    assert mean[3] > 0.5 > mean[4]


def test_tickets_wait_on_and_are_observed_by_id() -> None:
    rec, raw = learned(rounds=60)
    tickets = [rec.forecast(row) for row in spared(raw[:5])]
    named = rec.forecast([0.25, 0.25, 0.25, 0.25], id="named")
    more = rec.grown()
    assert more.open == 6
    found = more.observe("named", 4)
    assert (found.raw.tolist(), found.top) == ([0.25, 0.25, 0.25, 0.25, 0.0], named.top)
    assert found.mean.tolist() == [*named.mean.tolist(), 0.0]
    assert found.classwise.tolist() == [*named.classwise.tolist(), named.classwise[3]]
    for ticket in tickets:
        more.observe(ticket.id, 3)
    assert (more.open, more.rounds) == (0, 66)
    with pytest.raises(RepeatedTicket):
        more.observe(tickets[0].id, 3)
    with pytest.raises(ForeignTicket):
        more.observe(tickets[0], 3)


def test_the_one_it_came_from_stays_as_it_is() -> None:
    rec, raw = learned(rounds=60)
    before = rec.to_bytes()
    rec.grown().learn_one([*raw[0], 0.0, 0.0], 3)
    assert rec.to_bytes() == before


def test_what_has_grown_is_stored_and_copied_as_any_other() -> None:
    more = learned(rounds=60)[0].grown()
    ticket = more.forecast([0.2, 0.2, 0.2, 0.2, 0.2])
    again = ClassCalibrant.from_bytes(more.to_bytes())
    assert again == more
    assert again.observe(ticket.id, 4).outcome == 4
    assert again.certificate().seeded


def test_no_coin_comes_again() -> None:
    rec, _ = learned(rounds=0)
    more = rec.grown()
    raw = [0.3, 0.3, 0.2, 0.2]
    assert not set(rec.coin_of(rec.forecast(raw)).tolist()) & set(
        more.coin_of(more.forecast([*raw, 0.0])).tolist()
    )


def test_a_secret_that_was_given_does_not_tell_the_coins_after() -> None:
    rec = ClassCalibrant(3, secret=b"sixteen bytes or more")
    assert rec.secret_is_given
    more = rec.grown()
    assert not more.secret_is_given
    assert more.certificate().seeded is False
    with pytest.raises(InvalidInput, match="secret must have been given"):
        more.to_bytes(secret=False)


def test_above_so_many_classes_there_are_no_matrices_any_more() -> None:
    rec = ClassCalibrant(scaling.MOST_CLASSES, seed=1, **CHEAP)
    raw = np.full(scaling.MOST_CLASSES, 1.0 / scaling.MOST_CLASSES)
    for _ in range(30):
        rec.learn_one(raw, 0)
    more = rec.grown()
    mean = more.predict_mean_one([*raw, 0.0])
    assert mean.sum() == pytest.approx(1.0)
    assert mean.argmax() == 0
    again = more.grown()
    weights = [each._mixture.words().view(float)[1 : 1 + scaling.MANY] for each in (more, again)]
    assert weights[0][: scaling.FEW].sum() == pytest.approx(1.0)
    assert weights[0][scaling.FEW :].tolist() == [0.0] * 4
    assert weights[1].tolist() == weights[0].tolist()


def test_above_so_many_classes_none_has_a_recalibrator_of_its_own() -> None:
    rec = ClassCalibrant(EACH, seed=1, **CHEAP)
    raw = np.full(EACH, 1.0 / EACH)
    ticket = rec.forecast(raw)
    more = rec.grown()
    assert len(more.observe(ticket.id, 5).parts) == 2
    ticket = more.forecast([*raw, 0.0])
    again = more.grown()
    assert len(again.observe(ticket.id, 5).parts) == 2
    assert (again.classes, again.rounds) == (EACH + 2, 2)
