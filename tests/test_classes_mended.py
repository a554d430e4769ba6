"""Vectors mended online before they are calibrated: the default for several classes."""

from __future__ import annotations

import json

import naive_scaling as naive
import numpy as np
import pytest
from test_classes import stream

from calibrant.classes import (
    ClassCalibrant,
    MendedTicket,
    OneVsRest,
    TopLabel,
    metrics,
    vector_mixture,
)
from calibrant.classes.calibrant import EACH
from calibrant.classes.vector_mixture import VectorMixture
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.kernels import crowd, mended, scaling
from calibrant.kernels.compile import SHORT, available

RAW = [0.5, 0.3, 0.2]


def swapped(rounds, classes, seed=0):
    """A classifier that takes each class for the next, and from halfway on for the one before."""
    raw, _ = stream(rounds, classes, seed, sharpness=1.0)
    chances = np.concatenate(
        [np.roll(raw[: rounds // 2], 1, axis=1), np.roll(raw[rounds // 2 :], -1, axis=1)]
    )
    coins = np.random.default_rng(seed + 1).random((rounds, 1))
    return raw, np.minimum((chances.cumsum(axis=1) < coins).sum(axis=1), classes - 1)


@pytest.mark.parametrize(("classes", "rounds"), [(2, 300), (4, 1300), (33, 40)])
def test_the_front_is_the_obvious_mixture(classes, rounds) -> None:
    raw, outcomes = swapped(rounds, classes, seed=3)
    raw[7] = np.eye(classes)[1]
    mixture, expected = VectorMixture(classes), naive.Mixture(classes)
    for row, y in zip(raw, outcomes.tolist(), strict=True):
        assert mixture.mended(row) == pytest.approx(expected.say(row), abs=1e-7)
        mixture.learn(row, y)
        expected.learn(row, y)


def test_a_batch_of_the_front_is_its_rounds_to_the_bit() -> None:
    raw, outcomes = swapped(60, 5)
    batch, singly = VectorMixture(5), VectorMixture(5)
    made = batch.mend_all(raw, outcomes)
    blends = batch.blend_all(made, raw, outcomes)
    for t, y in enumerate(outcomes.tolist()):
        assert singly.mended(raw[t]).tolist() == made[t].tolist()
        assert singly.blended(made[t], raw[t]).tolist() == blends[t].tolist()
        singly.learn(raw[t], y)
        singly.learn_blend(made[t], raw[t], y)
    assert batch.words().tolist() == singly.words().tolist()


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="needs a compiler")
def test_machine_code_gives_the_same_bits() -> None:
    raw, outcomes = swapped(SHORT + 1, 4)
    plain, compiled = VectorMixture(4), VectorMixture(4)
    few = slice(0, 2000)
    expected = plain.mend_all(raw[few], outcomes[few])
    compiled.compile()
    assert compiled.mend_all(raw[few], outcomes[few]).tolist() == expected.tolist()
    assert compiled.words().tolist() == plain.words().tolist()
    again = VectorMixture(4)
    again.mend_all(raw, outcomes)
    compiled.mend_all(raw[2000:], outcomes[2000:])
    assert again.words().tolist() == compiled.words().tolist()
    compiled.load(plain.words(), 2000)
    assert compiled.mended(raw[0]).tolist() == plain.mended(raw[0]).tolist()


def test_a_long_batch_goes_over_to_arrays_and_gives_the_same_bits(monkeypatch) -> None:
    raw, outcomes = swapped(30, 3)
    raw[3] = np.eye(3)[0]
    plain, arrays = VectorMixture(3), VectorMixture(3)
    expected = plain.mend_all(raw, outcomes)
    nothing = np.zeros_like(raw)
    blends = plain.blend_all(expected, nothing, outcomes)
    monkeypatch.setattr(vector_mixture, "SHORT", 20)
    monkeypatch.setattr(vector_mixture, "available", lambda: True)
    monkeypatch.setattr(vector_mixture, "compiled", lambda function, name, nogil: function)
    assert arrays.mend_all(raw, outcomes).tolist() == expected.tolist()
    assert arrays.blend_all(expected, nothing, outcomes).tolist() == blends.tolist()
    assert isinstance(arrays._state, np.ndarray)
    assert arrays.words().tolist() == plain.words().tolist()
    again = VectorMixture(3)
    again.compile()
    again.load(plain.words(), 30)
    assert again.mended(raw[0]).tolist() == plain.mended(raw[0]).tolist()


def test_mended_vectors_are_distributions_whatever_comes() -> None:
    rng = np.random.default_rng(0)
    mixture, corners = VectorMixture(3), np.eye(3)
    for t in range(1500):
        said = mixture.mended(corners[t % 3])
        assert said.min() >= 0.0
        assert said.sum() == pytest.approx(1.0, abs=1e-9)
        mixture.learn(corners[t % 3], int(rng.integers(0, 3)) if t % 7 else (t + 1) % 3)
    assert np.isfinite(mixture.words().view(np.float64)).all()


def test_a_curvature_that_is_none_begins_anew() -> None:
    mixture, at = VectorMixture(3), scaling.matrices_at(3) + 1 + 3 + 12
    words = mixture.words().view(np.float64).copy()
    words[at] = -1e12
    mixture.load(words.view(np.int64), 0)
    for y in (0, 1, 2):
        mixture.learn(np.array(RAW), y)
    assert np.abs(mixture.words().view(np.float64)[at : at + 16]).max() <= 0.1


@pytest.mark.slow
def test_confusions_are_put_right_and_both_promises_kept() -> None:
    raw, outcomes = swapped(1000, 4, seed=2)
    rec = ClassCalibrant(4, seed=1)
    run = rec.replay(raw, outcomes)
    others = [
        OneVsRest(4, renormalise="project", seed=1).replay(raw, outcomes),
        TopLabel(4, seed=1).replay(raw, outcomes),
    ]
    score = metrics.brier(run.mean, outcomes)
    assert score < 0.97 * min(metrics.brier(other.mean, outcomes) for other in others)
    assert (run.top == outcomes).mean() > (raw.argmax(axis=1) == outcomes).mean() + 0.1
    record = rec.certificate()
    assert record.holds
    assert sorted(record.parts) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert all(record.parts[k].rounds == 1000 for k in range(4))
    assert sum(record.parts[k].rounds for k in range(5, 9)) == 1000
    assert record.c2 < 0.01


def test_value_has_the_confidence_at_the_first_class() -> None:
    raw, outcomes = swapped(200, 5)
    run = ClassCalibrant(5, seed=1).replay(raw, outcomes)
    rounds = np.arange(200)
    assert run.top.tolist() == run.mean.argmax(axis=1).tolist()
    assert run.forecast[rounds, run.top].tolist() == run.confidence.tolist()
    assert run.forecast.sum(axis=1) == pytest.approx(np.ones(200))
    leads = run.confidence >= run.forecast.max(axis=1)
    assert run.leads.tolist() == leads.tolist()


def test_many_classes_have_no_recalibrator_each() -> None:
    rng = np.random.default_rng(1)
    raw = rng.dirichlet(np.full(EACH + 1, 0.1), 12)
    outcomes = raw.argmax(axis=1)
    rec, singly = ClassCalibrant(EACH + 1, seed=1), ClassCalibrant(EACH + 1, seed=1)
    run = rec.replay(raw, outcomes)
    assert run.classwise.shape == (12, 0)
    tickets = [singly.forecast(row) for row in raw[:2]]
    assert len(tickets[0].parts) == 2
    assert tickets[0].classwise.shape == (0,)
    stored = MendedTicket.from_dict(json.loads(json.dumps(tickets[0].to_dict())))
    assert stored.mean.tolist() == tickets[0].mean.tolist()
    again = ClassCalibrant.from_bytes(singly.to_bytes())
    for place in (1, 0):
        again.observe(place, int(outcomes[place]))
        singly.observe(tickets[place], int(outcomes[place]))
    assert again == singly
    assert min(rec.certificate().parts) > EACH + 1


def test_the_certificate_of_too_many_classes_says_what_it_does_not_promise() -> None:
    told = (
        "class by class nothing is promised, for there are more than 128 classes: "
        "only the confidence of first classes is"
    )
    for classes, expected in ((EACH, None), (EACH + 1, told)):
        raw = np.full((3, classes), 1.0 / classes)
        rec = ClassCalibrant(classes, seed=1, engine="recalibrator")
        before = rec.certificate()
        rec.replay(raw, np.zeros(3, np.int64))
        for found in (before, rec.certificate()):
            assert found.unpromised == found.to_dict()["unpromised"] == expected
            assert (f"\n  {told}" in str(found)) == (expected is not None)
            assert (told in found.details()) == (expected is not None)
    assert OneVsRest(EACH + 1, seed=1).certificate().unpromised is None
    assert TopLabel(EACH + 1, seed=1).certificate().unpromised is None


def test_a_preview_shows_the_next_round_and_changes_nothing() -> None:
    raw, outcomes = swapped(40, 3)
    rec = ClassCalibrant(3, seed=1)
    rec.replay(raw, outcomes)
    before = rec.to_bytes()
    drawn, mean = rec.preview(raw[:5])
    assert drawn[0].tolist() == rec.copy().forecast(raw[0]).value.tolist()
    for t in range(5):
        assert mean[t].tolist() == rec.copy().forecast(raw[t]).mean.tolist()
    assert rec.to_bytes() == before


def test_a_stored_ticket_must_be_whole() -> None:
    ticket = ClassCalibrant(3, seed=1).forecast(RAW)
    data = ticket.to_dict()
    assert "top=0, confidence=" in repr(MendedTicket.from_dict(data))
    assert MendedTicket.from_dict(data).leads == ticket.leads
    with pytest.raises(CorruptState, match="parts must be 2 or 5, got 4"):
        MendedTicket.from_dict(data | {"parts": data["parts"][1:]})


def test_the_old_name_of_the_mixed_vector_gives_the_same_and_says_the_new_one() -> None:
    ticket = ClassCalibrant(3, seed=1).forecast(RAW)
    with pytest.warns(DeprecationWarning, match=r"^MendedTicket.front is now called mixed$"):
        found = ticket.front
    assert found.tolist() == ticket.mixed.tolist()


def test_a_mixture_of_vectors_that_cannot_be_is_refused() -> None:
    rec = ClassCalibrant(3, seed=1)
    rec.learn_one(RAW, 0)
    rec.forecast(RAW)
    document = rec._document()
    stored = document.arrays["front"].view(np.float64)
    confusions = scaling.confusions_at(3)
    for place, value in (
        (scaling.ROUNDS, 2.0),
        (scaling.WEIGHTS, 0.9),
        (scaling.BLENDS, -0.5),
        (scaling.TEMPERATURES, np.nan),
        (scaling.VECTORS, 1e16),
        (scaling.matrices_at(3) + 1, -1.0),
        (confusions, -1.0),
        (scaling.state_words(3) + crowd.SQUARES, -1.0),
    ):
        changed = stored.copy()
        changed[place] = value
        arrays = document.arrays | {"front": changed.view(np.int64)}
        made = Document(rec.kind, document.settings, arrays, rec.version)
        with pytest.raises(CorruptState):
            ClassCalibrant.from_bytes(made.to_bytes())


def test_rows_and_tickets_that_cannot_be_are_refused() -> None:
    rec = ClassCalibrant(3, seed=1)
    rec.learn_one(RAW, 0)
    rec.forecast(RAW)
    document = rec._document()
    tickets = document.arrays["tickets"]
    width = 4 + 6 + mended.kept_words(3)

    def refuse(place, value) -> None:
        words = tickets.copy()
        words[place] = value
        arrays = document.arrays | {"tickets": words}
        made = Document(rec.kind, document.settings, arrays, rec.version)
        with pytest.raises(CorruptState):
            ClassCalibrant.from_bytes(made.to_bytes())

    refuse(3, 3)
    refuse(4, int(np.array(0.9).view(np.int64)))
    refuse(width - 1, -1)
    refuse(width, 7)
    # Two forecasts had this first class: their numbers are 0 and 1.
    own = len(tickets) - (len(tickets) - width) // 5
    assert tickets[own] == 1
    refuse(own, 2)
    refuse(own, 5)


@pytest.mark.parametrize("gone", [0, 4])
def test_rows_that_are_missing_are_missed(gone) -> None:
    rec = ClassCalibrant(3, seed=1)
    rec.learn_one(RAW, 0)
    document = rec._document()
    table = document.arrays["numbers"].reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum(table[:, 1])]).tolist()
    [place] = np.flatnonzero(table[:, 0] == gone).tolist()
    words = np.delete(document.arrays["rows"], slice(starts[place], starts[place + 1]))
    arrays = {"numbers": np.delete(table, place, axis=0).reshape(-1), "rows": words}
    made = Document(rec.kind, document.settings, document.arrays | arrays, rec.version)
    with pytest.raises(CorruptState, match="classes"):
        ClassCalibrant.from_bytes(made.to_bytes())
