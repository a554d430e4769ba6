"""A budget on losses beyond the raw forecast's: kept at every moment, in every order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import players
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Calibrant
from calibrant.core.codec import Document
from calibrant.core.desk import Desk
from calibrant.core.ticket import Ticket
from calibrant.errors import CalibrantError, StaleForecast
from calibrant.kernels import safe
from calibrant.kernels.layout import ASIDE, EXCESS
from calibrant.transforms import BucketMeans, ExpertMixture, Identity

EXPERTS = ExpertMixture((Identity(), BucketMeans(5, 20.0)), share=1e-3)


def made(epsilon: float | None, **options: object) -> Calibrant:
    options = {"resolution": 10, "seed": 5} | options
    return Calibrant(EXPERTS, raw_safe=epsilon, **options)  # type: ignore[arg-type]


def lost(value: float, raw: float, outcome: int, loss: str) -> float:
    """The excess, obviously."""
    if loss == "squared":
        return (value - outcome) ** 2 - (raw - outcome) ** 2
    own, other = (raw, value) if outcome else (1.0 - raw, 1.0 - value)
    if own == other:
        return 0.0
    return math.inf if other == 0.0 else -math.inf if own == 0.0 else math.log(own / other)


def spiteful(value: float, raw: float, loss: str = "squared") -> int:
    """The outcome that costs the announced forecast most; it sees the draw."""
    return int(lost(value, raw, 1, loss) > lost(value, raw, 0, loss))


def stream(rounds: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    raw = random.random(rounds)
    return raw, (random.random(rounds) < raw**2).astype(np.uint8)


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("epsilon", [0.0, 0.003, 0.03, 0.3])
def test_an_adversary_that_sees_the_draw_never_gets_more_than_the_budget(epsilon, loss) -> None:
    model, excess = made(epsilon, loss=loss, grid="midpoints"), 0.0
    raw, _ = stream(400)
    for t, p in enumerate(raw.tolist(), 1):
        ticket = model.forecast(p)
        outcome = spiteful(ticket.value, p, loss)
        model.observe(ticket, outcome)
        excess += lost(ticket.value, p, outcome, loss)
        assert excess <= epsilon * t + 1e-9
    assert excess >= 0.5 * epsilon * 400 or epsilon == 0.3


@settings(max_examples=60)
@given(st.data(), st.sampled_from([0.0, 0.01, 0.1]), st.integers(0, 99))
def test_no_order_of_late_outcomes_breaks_the_budget(data, epsilon, seed) -> None:
    model, waiting, excess, learned = made(epsilon, seed=seed), [], 0.0, 0
    for _ in range(data.draw(st.integers(1, 60))):
        if waiting and data.draw(st.booleans()):
            ticket = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            outcome = spiteful(ticket.value, ticket.raw)
            model.observe(ticket, outcome)
            excess += lost(ticket.value, ticket.raw, outcome, "squared")
            learned += 1
            assert excess <= epsilon * learned + 1e-9
        else:
            waiting.append(model.forecast(data.draw(st.floats(0.0, 1.0))))
    for ticket in waiting:
        model.observe(ticket, spiteful(ticket.value, ticket.raw))
    found = model.certificate().budget
    assert found.holds
    assert found.excess <= epsilon * found.rounds + 1e-9


def test_what_cannot_be_afforded_is_the_raw_forecast_itself() -> None:
    model = made(0.0)
    ticket = model.forecast(0.123)
    assert (ticket.value, ticket.mean, ticket.fallback) == (0.123, 0.123, True)
    assert model.predict_one(0.321) == 0.321
    run = made(0.0).replay([0.123, 0.7], [1, 0])
    assert run.forecast.tolist() == run.mean.tolist() == [0.123, 0.7]


def test_without_a_budget_nothing_stands_aside() -> None:
    raw, outcomes = stream(300)
    free, rich = made(None), made(1.0)
    for model in (free, rich):
        model.replay(raw[:1], outcomes[:1])
    mine, its = (model.replay(raw[1:], outcomes[1:]) for model in (free, rich))
    assert free.raw_safe is None
    assert free.certificate().budget is None
    # Only the very first round had no budget yet.
    assert rich.certificate().budget.fallbacks == 1
    assert np.mean(mine.forecast == its.forecast) > 0.5


def by_ticket(model: Calibrant, raw: np.ndarray, outcomes: np.ndarray) -> None:
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        model.observe(model.forecast(p), y)


def by_prediction(model: Calibrant, raw: np.ndarray, outcomes: np.ndarray) -> None:
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        model.predict_one(p)
        model.learn_one(p, y)


def in_batches(model: Calibrant, raw: np.ndarray, outcomes: np.ndarray) -> None:
    model.replay(raw[:70], outcomes[:70])
    model.replay(raw[70:], outcomes[70:], time=np.arange(len(raw) - 70.0))


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("method", ["anchored", "foster_hart"])
def test_every_way_to_play_spends_the_same(method, compiled) -> None:
    if compiled:
        pytest.importorskip("numba")
    raw, outcomes = stream(200)
    options = {"method": method, "buckets": 1 if method == "anchored" else 4}
    wanted = made(0.02, **options)
    by_ticket(wanted, raw, outcomes)
    assert 0 < wanted.certificate().budget.fallbacks < 200
    for play in (by_ticket, by_prediction, in_batches):
        model = made(0.02, **options)
        play(model.compile() if compiled else model, raw, outcomes)
        assert model.to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_late_batches_spend_what_late_tickets_do(compiled) -> None:
    if compiled:
        pytest.importorskip("numba")
    raw, outcomes = stream(200, seed=3)
    wait = np.random.default_rng(1).integers(0, 30, 200)
    wanted, tickets = made(0.05), []
    due: dict[int, list[int]] = {}
    for t, p in enumerate(raw.tolist()):
        for row in due.pop(t, []):
            wanted.observe(tickets[row], int(outcomes[row]))
        tickets.append(wanted.forecast(p))
        due.setdefault(t + 1 + int(wait[t]), []).append(t)
    for moment in sorted(due):
        for row in due[moment]:
            wanted.observe(tickets[row], int(outcomes[row]))
    model = made(0.05).compile() if compiled else made(0.05)
    available, time = np.arange(200.0) + wait + 1.0, np.arange(200.0)
    run = model.replay(raw, outcomes, available=available, time=time)
    assert run.forecast.tolist() == [ticket.value for ticket in tickets]
    for number in sorted(run.pending.number.tolist(), key=lambda k: (available[k], k)):
        model.observe(number, int(outcomes[number]))
    assert model.to_bytes() == wanted.to_bytes()


def test_a_budget_survives_a_restart_with_tickets_open() -> None:
    raw, outcomes = stream(120, seed=4)
    model = made(0.02)
    by_ticket(model, raw[:60], outcomes[:60])
    held = [model.forecast(p) for p in raw[60:80].tolist()]
    again = Calibrant.from_bytes(model.to_bytes())
    assert again.raw_safe == 0.02
    assert again == model
    for ticket in held:
        stored = Ticket.from_dict(ticket.to_dict())
        assert (stored.value, stored.fallback) == (ticket.value, ticket.fallback)
        again.observe(stored, 1)
        model.observe(ticket, 1)
    assert again == model
    assert any(ticket.fallback for ticket in held)
    by_ticket(again, raw[80:], outcomes[80:])
    by_ticket(model, raw[80:], outcomes[80:])
    assert again == model


def test_a_stored_ticket_must_say_plainly_whether_it_stood_aside() -> None:
    stored = made(0.0).forecast(0.3).to_dict()
    with pytest.raises(CalibrantError, match="fallback must be true or false, got 1"):
        Ticket.from_dict(stored | {"fallback": 1})
    del stored["fallback"]
    with pytest.raises(CalibrantError, match="fallback must be true or false, got 1"):
        Ticket.from_dict(stored | {"aside": 1})


def test_the_certificate_withdraws_the_promise_and_says_so() -> None:
    raw, outcomes = stream(500)
    model = made(0.02)
    run = model.replay(raw, outcomes)
    told = model.certificate()
    gap = (run.forecast - outcomes) ** 2 - (raw - outcomes) ** 2
    assert told.budget.fallbacks > 0
    assert told.rounds == 500
    assert told.bounds == ()
    assert told.regret == pytest.approx(gap.mean(), abs=1e-12)
    assert told.loss == pytest.approx(((run.forecast - outcomes) ** 2).mean(), abs=1e-12)
    assert told.raw_bound == 0.02
    assert told.holds is True
    text = str(told)
    assert f"announced in {told.budget.fallbacks} of 500 rounds" in text
    assert "the promise of calibration is withdrawn" in text
    assert f"C2 of the other {500 - told.budget.fallbacks}: <= " in text
    assert told.to_dict()["budget"]["fallbacks"] == told.budget.fallbacks


def test_a_budget_that_was_never_spent_withdraws_nothing() -> None:
    model = made(0.5)
    told = model.certificate()
    assert str(told.budget).endswith("<= 0.5 surely")
    assert told.budget.c2_bound is None
    model = Calibrant(Identity(), raw_safe=0.5, resolution=10, seed=1)
    model.replay(np.full(50, 0.5), np.arange(50) % 2)
    assert model.certificate().budget.fallbacks == 0
    assert model.certificate().bound("C2") is not None


def test_corrected_outcomes_are_entered_anew() -> None:
    raw, outcomes = stream(200, seed=6)
    model = made(0.05)
    tickets = []
    for p, y in zip(raw.tolist(), outcomes.tolist(), strict=True):
        tickets.append(model.observe(model.forecast(p), y))
    truth = outcomes.tolist()
    seen = set()
    for row in (3, 50, 120, 121, 199):
        truth[row] = 1 - truth[row]
        model.correct(tickets[row], truth[row])
        seen.add(tickets[row].fallback)
    assert seen == {True, False}
    gap = [lost(k.value, k.raw, y, "squared") for k, y in zip(tickets, truth, strict=True)]
    told = model.certificate()
    assert told.budget.excess == pytest.approx(sum(gap), abs=1e-9)
    assert told.raw_loss == pytest.approx(np.mean((raw - np.array(truth)) ** 2), abs=1e-12)


def test_two_predictions_are_not_both_afforded_by_one_budget() -> None:
    model, refused = made(0.01, method="foster_hart", buckets=10), 0
    for _ in range(300):
        told = model.predict_one(0.23), model.predict_one(0.87)
        if told[0] != 0.23 and told[1] != 0.87:
            model.learn_one(0.23, spiteful(told[0], 0.23))
            try:
                model.learn_one(0.87, spiteful(told[1], 0.87))
            except StaleForecast:
                refused += 1
        ticket = model.forecast(0.55)
        model.observe(ticket, 1 - spiteful(ticket.value, 0.55))
        assert model.certificate().budget.holds
    assert refused > 0


@pytest.mark.parametrize("compiles", [False, True])
def test_a_prediction_that_cannot_be_afforded_any_more_is_no_round(compiles: bool) -> None:
    model = made(0.01, method="foster_hart", buckets=10)
    if compiles:
        with players.machine(model.spec.program):
            model.compile()
    while (note := model._rows.peek(model._row, 0.23))[0] & ASIDE:
        model.observe(model.forecast(0.55), 0)
    assert model._rows.committable(model._row, note, 0.23)
    assert model.copy()._rows.commit(model._row, note, 0.23, 1) == model.issued
    model._rows.state()[1][model._row + EXCESS] += 1.0
    before = model.to_bytes()
    assert model._rows.commit(model._row, note, 0.23, 1) == -1
    assert not model._rows.committable(model._row, note, 0.23)
    assert model.to_bytes() == before


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "much"])
def test_a_budget_must_be_a_number_of_at_least_zero(bad) -> None:
    with pytest.raises(CalibrantError, match="raw_safe"):
        Calibrant(raw_safe=bad)


@given(st.floats(0.0, 4.0))
def test_reserves_are_whole_units_and_never_too_small(found) -> None:
    units = safe.units(found)
    assert units == int(units)
    assert 0.0 <= units / safe.UNITS - found <= 1.0 / safe.UNITS


def test_an_endless_loss_is_never_announced() -> None:
    model = made(100.0, loss="log")
    for p in stream(200)[0].tolist():
        ticket = model.forecast(p)
        assert 0.0 < ticket.value < 1.0
        model.observe(ticket, spiteful(ticket.value, p, "log"))
    assert model.certificate().budget.holds


class Looks:
    """Counts how many open tickets a desk looks at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("get", "words", "_numbers"):
            monkeypatch.setattr(Desk, name, self._counting(name, getattr(Desk, name)))

    def _counting(self, name: str, method: Any) -> Any:
        def counted(desk: Desk, *given: Any) -> Any:
            self.count += 1 if name == "get" else len(desk)
            return method(desk, *given)

        return counted


def _late(model: Calibrant, raws: list[float]) -> None:
    model.replay(raws, [1] * len(raws), available=[9.0 + k for k in range(len(raws))])


def _log(model: Calibrant, raws: list[float]) -> None:
    names = [f"n{k}" for k in range(len(raws))]
    model.play(["forecast"] * len(raws), names, raws)
    model.play(["outcome"] * len(raws), names, [1] * len(raws))


@pytest.mark.parametrize("way", [_late, _log])
def test_a_batch_looks_at_no_more_tickets_where_many_are_open(
    way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raws, counts = [0.1 * k for k in range(10)], []
    for waiting in (20, 2_000):
        model = Calibrant(raw_safe=0.1, seed=1, max_open=waiting)
        # So many wait, and each forecast from here on makes one of them too old.
        model.forecast_many([0.3] * (waiting + 5))
        looks = Looks(monkeypatch)
        way(model, raws)
        counts.append(looks.count)
        monkeypatch.undo()
        assert model.open <= waiting
    assert counts[1] <= counts[0] + 2


def test_a_raw_forecast_that_was_surely_wrong_leaves_a_state_that_can_be_read() -> None:
    model, tickets = made(0.1, loss="log", grid="midpoints"), []
    for k in range(40):
        tickets.append(model.observe(model.forecast(float(k & 1)), int(k % 3 == 0)))
        assert Calibrant.from_bytes(model.to_bytes()) == model
    saved = [t for t in tickets if lost(t.value, t.raw, t.outcome, "log") == -math.inf]
    assert saved
    for ticket in tickets:
        model.correct(ticket, 1 - ticket.outcome)
        assert Calibrant.from_bytes(model.to_bytes()) == model
    spent = [max(lost(t.value, t.raw, t.outcome, "log"), -safe.MOST) for t in tickets]
    assert model._arena.row().view(float)[EXCESS] == pytest.approx(sum(spent), abs=1e-6)


def test_a_state_from_before_such_savings_were_finite_can_be_read() -> None:
    model = made(0.1, loss="log", grid="midpoints")
    model.observe(model.forecast(0.3), 1)
    row, stored = model._arena.row(), Document.read(model.to_bytes())
    row.view(float)[EXCESS] = -math.inf
    stored.arrays["body"] = model.spec.body.packed(row)
    data = stored.to_bytes()
    one, other = (Calibrant.from_bytes(data) for _ in range(2))
    assert one.forecast(0.5).value == other.forecast(0.5).value
    assert one == other
