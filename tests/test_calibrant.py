"""Experts first, calibrate last: one object with the face of a recalibrator."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant, Recalibrator
from calibrant.bounds import mixture
from calibrant.calibrators import Refining
from calibrant.core.ticket import Ticket
from calibrant.errors import (
    CorruptState,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
)
from calibrant.kernels import rounds
from calibrant.kernels.layout import CAPACITY, MIXED_INFINITE, MIXED_ROW
from calibrant.registry import transforms
from calibrant.transforms import (
    BucketMeans,
    ExpertMixture,
    HatMeans,
    Identity,
    OnlinePlatt,
    WindowedIsotonic,
    WindowedPlatt,
)

FEW = (Identity(), BucketMeans(buckets=3, memory=20.0), OnlinePlatt())


def make(**options: object) -> Calibrant:
    return Calibrant(FEW, **({"resolution": 6, "buckets": 4, "seed": 2} | options))


def overconfident(rounds: int, seed: int) -> tuple[list[float], list[int]]:
    rng = np.random.default_rng(seed)
    raw = rng.random(rounds)
    truth = 0.5 + 0.5 * (raw - 0.5)
    return raw.tolist(), (rng.random(rounds) < truth).astype(int).tolist()


# One by one, in batches, plain and compiled.


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_tickets_and_single_rounds_and_batches_agree_to_the_bit(loss: str) -> None:
    raw, outcomes = overconfident(300, 1)
    grid = {"grid": "midpoints"} if loss == "log" else {}
    one, other = make(loss=loss, **grid), make(loss=loss, **grid)
    values, means = players.by_tickets(one, raw, outcomes)
    assert players.one_by_one(other, raw, outcomes) == values
    assert one.to_bytes() == other.to_bytes()
    for way in players.WAYS:
        batch = make(loss=loss, **grid)
        with players.batches(batch, way):
            run = batch.replay(raw, outcomes)
        assert (run.forecast.tolist(), run.mean.tolist()) == (values, means)
        assert batch.to_bytes() == one.to_bytes()


def test_compiled_steps_agree_with_plain_ones() -> None:
    raw, outcomes = overconfident(200, 2)
    plain, quick = make(), make()
    order = random.Random(3)
    with players.machine(quick.spec.program):
        quick.compile()
    for p, y in zip(raw, outcomes, strict=True):
        if order.random() < 0.5:
            mine, its = plain.forecast(p), quick.forecast(p)
            assert (mine.value, mine.mean, mine.mixed) == (its.value, its.mean, its.mixed)
            plain.observe(mine, y)
            quick.observe(its, y)
        else:
            assert plain.predict_one(p) == quick.predict_one(p)
            plain.learn_one(p, y)
            quick.learn_one(p, y)
    assert plain.to_bytes() == quick.to_bytes()


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 1), st.integers(0, 9)), min_size=1, max_size=60
    ),
    st.sampled_from(players.WAYS),
)
def test_late_outcomes_in_a_batch_are_those_of_late_tickets(rows, way) -> None:
    raw = [row[0] for row in rows]
    outcomes = [row[1] for row in rows]
    known = [k + float(row[2]) for k, row in enumerate(rows)]
    one, batch = make(), make()
    values, _ = players.by_late_tickets(one, raw, outcomes, known)
    with players.batches(batch, way):
        run = batch.replay(raw, outcomes, available=known)
    assert run.forecast.tolist() == values
    assert batch.to_bytes() == one.to_bytes()


def test_outcomes_that_wait_are_carried_from_batch_to_batch() -> None:
    raw, outcomes = overconfident(120, 4)
    known = np.arange(120) + 15.0
    whole, halves = make(), make()
    run = whole.replay(raw, outcomes, available=known)
    first = halves.replay(raw[:50], outcomes[:50], available=known[:50])
    times = np.arange(50, 120)
    second = halves.replay(
        raw[50:], outcomes[50:], available=known[50:], time=times, carry=first.pending
    )
    both = np.concatenate([first.forecast, second.forecast])
    assert both.tolist() == run.forecast.tolist()
    assert halves.certificate().c2 == whole.certificate().c2


def test_the_bucket_of_a_row_is_that_of_what_the_experts_say() -> None:
    raw, outcomes = overconfident(100, 5)
    one, other = make(), make()
    run = one.replay(raw, outcomes)
    found = []
    for p, y in zip(raw, outcomes, strict=True):
        ticket = other.forecast(p)
        found.append(ticket.bucket)
        assert ticket.bucket == min(int(ticket.mixed * 4), 3)
        other.observe(ticket, y)
    assert run.bucket.tolist() == found


# States.


@pytest.mark.parametrize("way", ["bytes", "json", "pickle", "copy"])
def test_a_state_resumes_exactly_in_the_middle_with_tickets_open(way: str) -> None:
    raw, outcomes = overconfident(400, 6)
    model = make()
    model.replay(raw[:200], outcomes[:200])
    waiting = [model.forecast(p) for p in raw[200:300]]
    again = {
        "bytes": lambda: Calibrant.from_bytes(model.to_bytes()),
        "json": lambda: Calibrant.from_dict(json.loads(json.dumps(model.to_dict()))),
        "pickle": lambda: pickle.loads(pickle.dumps(model)),
        "copy": lambda: model.copy(),
    }[way]()
    assert again == model
    assert again.open == 100
    for ticket, y in zip(waiting, outcomes[200:300], strict=True):
        assert again.observe(ticket.id, y).mixed == ticket.mixed
        model.observe(ticket, y)
    assert again.replay(raw[300:], outcomes[300:]).mean.tolist() == (
        model.replay(raw[300:], outcomes[300:]).mean.tolist()
    )
    assert again == model


def test_looking_changes_nothing() -> None:
    raw, outcomes = overconfident(50, 7)
    model = make()
    model.replay(raw, outcomes)
    before = model.to_bytes()
    for p in raw:
        model.predict_one(p)
    assert model.to_bytes() == before


def test_states_of_other_kinds_are_refused() -> None:
    with pytest.raises(CorruptState, match="calibrant"):
        Recalibrator.from_bytes(make().to_bytes())
    with pytest.raises(CorruptState, match="recalibrator"):
        Calibrant.from_bytes(Recalibrator(seed=1).to_bytes())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.arrays.pop("body"),
        lambda data: data.arrays.update(body=np.append(data.arrays["body"], 0)),
        lambda data: data.arrays.update(body=data.arrays["body"][:-1]),
        lambda data: data.settings.update(transform={"name": "nobody", "parameters": {}}),
        lambda data: data.settings.update(transform=None),
        lambda data: data.settings.update(raw_safe=0.5),
        lambda data: data.settings.update(raw_safe="much"),
        lambda data: data.settings.update(raw_safe=(0.5).hex()),
    ],
)
def test_an_altered_state_is_refused(damage) -> None:
    model = make()
    model.learn_one(0.3, 1)
    document = model._document()
    damage(document)
    for load, data in (
        (Calibrant.from_bytes, document.to_bytes()),
        (Calibrant.from_dict, document.to_dict()),
    ):
        with pytest.raises(CorruptState, match=r"^state must be of a calibrant, got "):
            load(data)


def with_word(model: Calibrant, place: int, value: int) -> bytes:
    """Return a state in which one word of the row is another, with a good checksum."""
    document, row = model._document(), model._arena.row()
    row[place] = value
    document.arrays["body"] = model.spec.body.packed(row)
    return document.to_bytes()


def test_words_that_cannot_be_are_refused() -> None:
    model = Calibrant((Identity(), WindowedPlatt(), WindowedIsotonic()), seed=2)
    model.learn_one(0.3, 1)
    layout, transform = model.spec.layout, model.transform
    limits = {layout.transform + place: found for place, found in transform.limits().items()}
    assert len(limits) > 1
    for place, found in (limits | {MIXED_INFINITE: (0, (1 << 62) - 1)}).items():
        for word in players.beyond(found, layout.real[place]):
            with pytest.raises(CorruptState, match=f"got word {place} must be from "):
                Calibrant.from_bytes(with_word(model, place, word))


def test_notes_and_constants_of_the_transform_are_not_stored() -> None:
    model = make()
    model.replay(*overconfident(30, 8))
    model.predict_one(0.4)
    layout, transform = model.spec.layout, model.transform
    for place in [*transform.note_positions(), *transform.constants()]:
        assert not layout.stored[layout.transform + place]
        assert with_word(model, layout.transform + place, 77) == model.to_bytes()
    assert layout.section is MIXED_ROW


def test_the_default_state_is_small() -> None:
    model = Calibrant(seed=1)
    model.replay(*overconfident(5_000, 8))
    assert len(model.to_bytes()) < 8 * 1024


# Tickets.


def test_tickets_carry_what_the_experts_said() -> None:
    model = make()
    model.replay(*overconfident(100, 9))
    ticket = model.forecast(0.7, id="order", time=3.0)
    assert 0.0 <= ticket.mixed <= 1.0
    again = Ticket.from_dict(json.loads(json.dumps(ticket.to_dict())))
    assert again.mixed == ticket.mixed
    with pytest.raises(RepeatedTicket):
        model.forecast(0.1, id="order")
    with pytest.raises(InvalidInput, match="time must not be before"):
        model.observe(again, 1, time=2.0)
    model.observe(again, 1, time=4.0)
    with pytest.raises(RepeatedTicket):
        model.observe(ticket, 1)


@pytest.mark.parametrize("name", ["mixed", "middle"])
def test_a_ticket_with_another_mixed_forecast_is_foreign(name: str) -> None:
    model = make()
    data = model.forecast(0.7).to_dict()
    mixed = data.pop("mixed")
    altered = Ticket.from_dict(data | {name: 0.1})
    with pytest.raises(ForeignTicket, match="altered"):
        model.observe(altered, 1)
    assert model.observe(Ticket.from_dict(data | {name: mixed}), 1).mixed == mixed


def test_old_tickets_keep_a_word_for_each_field_and_their_mixed_forecast() -> None:
    model = make()
    tickets = [model.forecast(p) for p in overconfident(2_000, 10)[0]]
    words = 2 + len(model.spec.fields)
    assert words == 8 + model.spec.kept
    assert len(model._document().arrays["tickets"]) == words * 2_000
    found = model.observe(5, 1)
    assert (found.mixed, found.mean) == (tickets[5].mixed, tickets[5].mean)


def test_a_correction_amends_the_last_stage_and_the_losses() -> None:
    one, other = make(), make()
    for model, outcome in ((one, 1), (other, 0)):
        ticket = model.observe(model.forecast(0.7), outcome)
        if outcome:
            model.correct(ticket, 0)
    mine, its = one.certificate(), other.certificate()
    assert (mine.c2, mine.loss, mine.raw_loss) == (its.c2, its.loss, its.raw_loss)
    assert mine.mixed_loss == pytest.approx(its.mixed_loss, abs=1e-15)


def test_predictions_may_wait_for_one_another() -> None:
    model = make()
    raw = [0.05, 0.3, 0.55, 0.8]
    drawn = [model.predict_one(p) for p in raw]
    other = model.copy()
    for p in raw:
        model.learn_one(p, 1)
    assert drawn[0] == other.predict_one(raw[0])
    assert model.rounds == 4


def test_a_forecast_between_prediction_and_outcome_is_refused() -> None:
    model = make()
    model.predict_one(0.3)
    model.forecast(0.3)
    before = model.to_bytes()
    with pytest.raises(StaleForecast):
        model.learn_one(0.3, 1)
    assert model.to_bytes() == before


def test_predictions_without_outcome_are_forgotten_in_the_end() -> None:
    model = make()
    for k in range(1_000):
        model.predict_one(k / 1_000)
    assert len(model._notes) <= 256
    # The last ones are remembered: a round in between makes them stale.
    model.learn_one(0.999, 1)
    for k in (998, 998, 990):
        with pytest.raises(StaleForecast):
            model.learn_one(k / 1_000, 1)
    model.learn_one(0.001, 1)
    assert model.rounds == 2


# The chain.


@pytest.mark.slow
def test_the_certificate_shows_every_link() -> None:
    model = Calibrant(seed=3)
    model.replay(*overconfident(20_000, 11))
    certificate = model.certificate()
    assert certificate.holds
    names = [link.expert for link in certificate.links]
    assert "identity" in names
    assert len(names) == len(model.transform.experts)
    assert sum(link.weight for link in certificate.links) == pytest.approx(1.0)
    share, eta, first = model.transform.share, model.transform.eta, model.transform.start
    wanted = [mixture(20_000, len(names), share, eta, start=w).value for w in first]
    assert [link.bound for link in certificate.links] == wanted
    raw = certificate.links[names.index("identity")]
    assert raw.loss == pytest.approx(certificate.raw_loss, rel=1e-12)
    assert certificate.loss < certificate.raw_loss
    least = min(float(bound) for bound in certificate.bounds if bound.quantity == "regret")
    assert certificate.raw_bound == least + wanted[0]
    assert "identity: weight" in certificate.details()
    json.dumps(certificate.to_dict(), allow_nan=False)


def test_measured_losses_are_those_of_the_announced_forecasts() -> None:
    raw, outcomes = overconfident(200, 12)
    model, middles = make(), []
    for p, y in zip(raw, outcomes, strict=True):
        ticket = model.forecast(p)
        middles.append((ticket.mixed - y) ** 2)
        model.observe(ticket, y)
    certificate = model.certificate()
    assert certificate.mixed_loss == pytest.approx(np.mean(middles), rel=1e-12)
    assert certificate.mixed_regret == pytest.approx(certificate.loss - np.mean(middles))


def test_without_rounds_nothing_is_claimed() -> None:
    certificate = make().certificate()
    assert (certificate.links, certificate.raw_bound, certificate.holds) == ((), None, None)


def test_one_transform_may_stand_alone() -> None:
    model = Calibrant(HatMeans(cells=5), seed=1)
    model.replay(*overconfident(300, 13))
    certificate = model.certificate()
    assert certificate.links == ()
    assert certificate.raw_bound is None
    assert certificate.holds
    assert "HatMeans" in repr(model)


def test_late_outcomes_withdraw_the_promise_about_the_raw_forecast() -> None:
    raw, outcomes = overconfident(200, 14)
    model = make()
    model.replay(raw, outcomes, available=np.arange(200) + 5.0)
    certificate = model.certificate()
    assert certificate.delay == 4
    assert certificate.raw_bound is None


@pytest.mark.parametrize("seen", ["mean", "mixed"])
def test_no_adversary_breaks_the_chain(seen: str) -> None:
    rng = random.Random(5)
    model = make(resolution=10, buckets=5)
    for _ in range(2_000):
        ticket = model.forecast(rng.choice([0.2, 0.5, 0.9]))
        model.observe(ticket, int(getattr(ticket, seen) <= 0.5))
    certificate = model.certificate()
    assert certificate.holds
    assert certificate.c2 < 0.01


def test_only_an_expert_of_that_name_is_the_raw_forecast() -> None:
    model = Calibrant((HatMeans(cells=3), OnlinePlatt()), seed=1)
    model.replay(*overconfident(100, 16))
    certificate = model.certificate()
    assert certificate.raw_bound is None
    assert certificate.promised("regret") is None
    assert certificate.links[0].expert == "hat_means(cells=3)"


def test_a_prediction_that_was_overtaken_is_refused_and_one_asked_anew_is_not() -> None:
    model = Calibrant(seed=1)
    shared = model.predict_one(0.3), model.predict_one(0.7)
    model.learn_one(0.7, 1)
    assert min(shared) >= 0.0
    before = model.to_bytes()
    with pytest.raises(StaleForecast):
        model.learn_one(0.3, 1)
    assert model.to_bytes() == before
    model.predict_one(0.4)
    model.learn_one(0.4, 0)
    # Others were asked for and learned; what was seen for 0.3 is still not the next round's.
    for _ in range(2):
        before = model.to_bytes()
        with pytest.raises(StaleForecast):
            model.learn_one(0.3, 1)
        assert model.to_bytes() == before
    model.predict_one(0.3)
    model.learn_one(0.3, 1)
    model.learn_one(0.3, 1)
    assert model.rounds == 4


def test_notebooks_show_a_page() -> None:
    assert "<svg" in Calibrant(seed=1)._repr_html_()


def test_links_of_late_outcomes_have_no_bounds_and_the_last_stage_has() -> None:
    raw, outcomes = np.random.default_rng(0).random((2, 60))
    late = Calibrant(seed=1)
    available = np.arange(60.0) + 3.0
    late.replay(raw, outcomes < 0.5, available=available, time=np.arange(60.0))
    found = late.certificate()
    assert found.delay > 0
    assert {(link.bound, link.holds) for link in found.links} == {(None, None)}
    assert found.raw_bound is None
    assert found.bound("C2") is not None
    # After 57 rounds it says nothing yet.
    assert found.holds is found.promised("C2") is None
    assert found.early > 1_000
    assert "<=" not in str(found.links[0])
    late = Calibrant(seed=1)
    late.replay(raw, outcomes < 0.5)
    assert str(late.certificate().links[0]).startswith("identity: weight ")
    assert late.certificate().links[0].holds is True


def test_a_program_has_a_machine_only_where_there_is_a_compiler(monkeypatch) -> None:
    monkeypatch.setattr(rounds, "compiled", lambda function, name, nogil=False: (function, name))
    monkeypatch.setattr(rounds, "available", lambda: False)
    program = make().spec.program
    assert dataclasses.replace(program).machine is None
    monkeypatch.setattr(rounds, "available", lambda: True)
    program = dataclasses.replace(program)
    assert program.machine.replay == (program.replay, program.name)
    assert program.name.startswith("refining_behind_")


def test_compiled_steps_refuse_an_overtaken_prediction() -> None:
    model = make()
    with players.machine(model.spec.program):
        model.compile()
    model.predict_one(0.3)
    model.forecast(0.3)
    with pytest.raises(StaleForecast):
        model.learn_one(0.3, 1)


def test_tickets_that_expired_are_swept_while_rounds_need_none() -> None:
    model = make(max_open=5)
    model.forecast(0.5)
    for _ in range(8):
        model.learn_one(0.5, 1)
    assert model.open == 0


def test_a_rule_may_be_given_as_itself() -> None:
    assert Calibrant(method=Refining(resolution=6), seed=1) == Calibrant(resolution=6, seed=1)


def test_draws_that_are_not_pulled_have_no_bound_on_what_they_lose_to_their_anchors() -> None:
    found = {}
    for strength in (0.0, 4.0):
        model = Calibrant(strength=strength, seed=1)
        model.replay(*overconfident(60, 20))
        found[strength] = model.calibrator.regret(model._account())
    assert found[0.0] is None
    assert found[4.0] is not None


def test_old_names_of_a_chain_give_the_same_and_say_the_new_ones() -> None:
    model = make(raw_safe=0.001)
    model.replay(*overconfident(60, 21))
    ticket, made = model.forecast(0.3), model.certificate()
    assert made.budget.fallbacks > 0
    for owner, old, new, told in [
        (model, "front", "transform", "Calibrant.front is now called transform"),
        (ticket, "middle", "mixed", "Ticket.middle is now called Ticket.mixed"),
        (ticket, "aside", "fallback", "Ticket.aside is now called Ticket.fallback"),
        (made, "middle_loss", "mixed_loss", "Chain.middle_loss is now called mixed_loss"),
        (made, "middle_regret", "mixed_regret", "Chain.middle_regret is now called mixed_regret"),
        (made.budget, "aside", "fallbacks", "Budget.aside is now called fallbacks"),
    ]:
        with pytest.warns(DeprecationWarning, match=f"^{told}$"):
            found = getattr(owner, old)
        assert found == getattr(owner, new)


def test_the_verbs_that_all_streams_share_are_those_of_a_chain() -> None:
    one, other = make(), make()
    for k, raw in enumerate(overconfident(40, 22)[0]):
        mine, its = one._forecast(raw, f"n{k}", float(k)), other.forecast(raw, id=f"n{k}", time=k)
        assert mine.to_dict() == its.to_dict()
        one._observe(mine, k % 2, None)
        other.observe(its, k % 2)
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("raw_safe", [None, 0.0])
def test_the_mean_of_the_next_round_is_seen_before_and_changes_nothing(raw_safe) -> None:
    model = make(raw_safe=raw_safe)
    fallbacks = set()
    for raw, outcome in zip(*overconfident(60, 23), strict=True):
        before = model.to_bytes()
        mean = model.predict_mean_one(raw)
        assert model.to_bytes() == before
        ticket = model.observe(model.forecast(raw), outcome)
        assert mean == ticket.mean
        fallbacks.add(ticket.fallback)
    assert (True in fallbacks) == (raw_safe is not None)


# Bad input.


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"experts": ()}, InvalidInput, "experts must be at least one"),
        ({"experts": "identity"}, InvalidType, "experts must be a tuple"),
        ({"share": 2.0}, InvalidInput, "share must be"),
        ({"loss": "spherical"}, InvalidInput, "loss must be"),
        ({"method": "exponential_regret"}, InvalidInput, "learns from its draws alone"),
        ({"method": "blackwell", "updates": "expected"}, InvalidInput, "draws alone"),
        ({"buckets": 0}, InvalidInput, "buckets must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, error, told) -> None:
    with pytest.raises(error, match=told):
        Calibrant(**options)


@pytest.mark.parametrize("raw", [float("nan"), -0.1, 1.0000001, "0.5", None])
def test_bad_forecasts_change_nothing(raw: object) -> None:
    model = make()
    model.learn_one(0.4, 1)
    before = model.to_bytes()
    for call in (model.forecast, model.predict_one, lambda p: model.learn_one(p, 1)):
        with pytest.raises((InvalidInput, InvalidType)):
            call(raw)
    with pytest.raises((InvalidInput, InvalidType)):
        model.learn_one(0.4, 2)
    ticket = model.forecast(0.5)
    with pytest.raises(InvalidInput):
        model.observe(ticket, 2)
    model.observe(ticket, np.int64(1))
    assert model.copy().rounds == 2
    assert before != model.to_bytes()


def test_an_interrupt_leaves_the_coins_in_step() -> None:
    players.begin_plain(make())
    model, other = make(), make()
    model.forecast(0.5)
    whole = model._rows.plain_issue

    def interrupt(*where: object) -> None:
        raise KeyboardInterrupt

    model._rows.plain_issue = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.forecast(0.5)
    model._rows.plain_issue = whole
    drawn = [model.forecast(0.5).index for _ in range(100)]
    assert drawn == [other.forecast(0.5).index for _ in range(101)][1:]


def test_the_transform_may_be_a_mixture_of_your_own() -> None:
    own = ExpertMixture((Identity(), HatMeans(cells=4, memory=50.0)), share=0.0)
    model = Calibrant(own, seed=1)
    assert model.transform is own
    assert Calibrant.from_bytes(model.to_bytes()).transform == own


def test_compiled_steps_refuse_rounds_beyond_what_fits() -> None:
    model = make()
    with players.machine(model.spec.program):
        model.compile()
    model._rows.capacity = model._rows.state()[0][CAPACITY] = 0
    for call in (lambda: model.forecast(0.5), lambda: model.learn_one(0.5, 1)):
        with pytest.raises(InvalidInput, match="rounds must be at most 0"):
            call()


def test_batches_behind_the_face_of_compiled_ones_agree() -> None:
    raw, outcomes = overconfident(150, 15)
    plain, quick = make(), make()
    runs = []
    ways = players.batches(plain, "plain"), players.machine(quick.spec.program)
    for model, way in zip((plain, quick), ways, strict=True):
        with way:
            model.compile() if model is quick else None
            first = model.replay(raw[:70], outcomes[:70])
            known = np.arange(80) + 6.0
            second = model.replay(raw[70:], outcomes[70:], available=known)
        runs.append((first.mean.tolist(), second.mean.tolist(), second.bucket.tolist()))
    assert runs[0] == runs[1]
    assert plain.to_bytes() == quick.to_bytes()


def test_an_infinite_loss_is_counted_and_can_be_taken_back() -> None:
    model = Calibrant(Identity(), loss="log", grid="midpoints", seed=1)
    ticket = model.observe(model.forecast(0.0), 1)
    assert model.certificate().mixed_loss == float("inf")
    model.correct(ticket, 0)
    assert model.certificate().mixed_loss == 0.0


def test_a_late_outcome_is_learned_for_what_the_experts_said_then() -> None:
    raw, outcomes = overconfident(120, 17)
    model = make()
    model.replay(raw[:60], outcomes[:60])
    late, prompt = model.copy(), model.copy()
    ticket, other = late.forecast(0.9), prompt.forecast(0.9)
    # What is learned in between moves the experts, not what they said.
    for p, y in zip(raw[60:], outcomes[60:], strict=True):
        late.learn_one(p, y)
    prompt.observe(prompt.forecast(0.9), 0)
    moves = []
    for model, held in ((late, ticket), (prompt, other)):
        before = model.certificate().links
        model.observe(held, 0)
        after = model.certificate().links
        moves.append([a.weight / b.weight for a, b in zip(after, before, strict=True)])
    ratios = [move / moves[0][0] for move in moves[0]], [move / moves[1][0] for move in moves[1]]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.01)
    assert max(ratios[0]) / min(ratios[0]) > 1.05


def test_what_the_experts_said_survives_storage() -> None:
    model = make()
    model.replay(*overconfident(100, 18))
    ticket = model.forecast(0.9)
    for p in overconfident(400, 19)[0]:
        model.forecast(p)
    again = Calibrant.from_bytes(model.to_bytes())
    assert again.observe(ticket.id, 1)._kept == ticket._kept != ()
    model.observe(Ticket.from_dict(json.loads(json.dumps(ticket.to_dict()))), 1)
    assert again == model
    other = ticket.to_dict() | {"kept": [1] * len(ticket._kept)}
    with pytest.raises(RepeatedTicket):
        model.observe(Ticket.from_dict(other), 1)


def test_a_grid_that_cannot_be_refined_has_the_anchored_rule_behind_it() -> None:
    rules = [Calibrant(grid=grid, seed=1).calibrator for grid in ("endpoints", "logit")]
    assert [(rule.name, rule.grid) for rule in rules] == [
        ("refining", "endpoints"),
        ("anchored", "logit"),
    ]


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("form", ["substitution", "mean"])
def test_a_state_is_read_again_where_rounding_takes_a_weight_above_one(
    form: str, loss: str
) -> None:
    told = {"loss": loss} if loss == "log" else {"form": form}
    model = Calibrant(ExpertMixture((Identity(),), share=0.0003, **told), seed=1, loss=loss)
    raw, outcomes = overconfident(200, 1)
    for p, y in zip(raw, outcomes, strict=True):
        model.observe(model.forecast(p), y)
        assert Calibrant.from_bytes(model.to_bytes()) == model


def test_a_mixture_that_watches_for_swaps_can_be_one_of_several_experts() -> None:
    inner = ExpertMixture((Identity(), OnlinePlatt()), alike=True, swaps=True)
    model = Calibrant((Identity(), inner), seed=1)
    model.replay(*overconfident(50, 1))
    names = [link.expert for link in model.certificate().links]
    assert names[0] == "identity"
    assert "alike=True, swaps=True" in names[1]


@pytest.mark.parametrize("waiting", [1, 4])
@pytest.mark.parametrize("experts", [(Identity(),), (Identity(), Identity())])
def test_a_state_is_read_again_where_all_experts_were_almost_surely_wrong(experts, waiting) -> None:
    for raw, outcome in ((5e-324, 1), (1e-310, 1), (0.0, 1), (1.0, 0)):
        model = Calibrant(experts, loss="log", seed=1)
        for ticket in [model.forecast(raw) for _ in range(waiting)]:
            model.observe(ticket, outcome)
            assert Calibrant.from_bytes(model.to_bytes()) == model
        assert 0.0 <= model.forecast(0.5).mean <= 1.0


@pytest.mark.parametrize("other", transforms.names())
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_state_is_read_again_whatever_stands_behind_means_between_knots(other, loss) -> None:
    experts = (HatMeans(cells=5), transforms.get(other)(), HatMeans(cells=3))
    model = Calibrant(experts, loss=loss, seed=1)
    for raw, outcome in zip(*overconfident(60, 1), strict=True):
        model.observe(model.forecast(raw), outcome)
        again = Calibrant.from_bytes(model.to_bytes())
        assert again == model
    assert again.forecast(0.3).value == model.forecast(0.3).value
