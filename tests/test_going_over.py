"""Plain streams go over to machine code that is there already, without being asked."""

from __future__ import annotations

import players
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.errors import StaleForecast
from calibrant.kernels import bodies, rounds
from calibrant.kernels.compile import available
from calibrant.recalibrate.binary import OFTEN
from calibrant.recalibrate.spec import Spec


@pytest.fixture(autouse=True)
def nothing_is_loaded():
    """Let no other test of this process have loaded machine code: new streams would use it."""
    players.begin_plain(Calibrant(seed=1))


@pytest.fixture
def asked(monkeypatch):
    """Return which streams went over after how many rounds, where machine code is made."""
    found: list[int] = []
    monkeypatch.setattr(Spec, "is_made", lambda spec: True)
    monkeypatch.setattr(Calibrant, "_compile", lambda rec: found.append(rec.rounds))
    return found


def nearly(rec, rounds=OFTEN - 1):
    """Bring a stream to where it looks whether there is machine code two rounds later."""
    rec.replay([0.3, 0.6] * (rounds // 2), [0, 1] * (rounds // 2))
    return rec


def test_a_stream_of_tickets_goes_over(asked) -> None:
    rec = nearly(Calibrant(seed=1))
    for _ in range(3):
        rec.observe(rec.forecast(0.3), 1)
    assert (asked, rec.rounds) == ([OFTEN + 1], OFTEN + 2)


def test_a_stream_of_predictions_goes_over(asked) -> None:
    rec, other = nearly(Calibrant(seed=1)), nearly(Calibrant(seed=1))
    for _ in range(3):
        rec.predict_one(0.3)
        rec.learn_one(0.3, 1)
        other.observe(other.forecast(0.3), 1)
    assert asked == [OFTEN + 1, OFTEN + 1]
    assert rec == other


def test_a_refused_round_does_not_look(asked) -> None:
    rec = Calibrant(seed=1)
    rec.predict_one(0.3)
    rec.observe(rec.forecast(0.3), 1)
    with pytest.raises(StaleForecast):
        rec.learn_one(0.3, 1)
    assert asked == []


def test_a_rule_alone_stays_as_it_is(monkeypatch) -> None:
    monkeypatch.setattr(Spec, "is_made", lambda spec: 1 / 0)
    rec = nearly(Recalibrator("foster_hart", seed=1))
    for _ in range(3):
        rec.predict_one(0.3)
        rec.learn_one(0.3, 1)
        rec.observe(rec.forecast(0.3), 1)


def test_a_stream_stays_plain_where_machine_code_would_have_to_be_made(monkeypatch) -> None:
    monkeypatch.setattr(Spec, "is_made", lambda spec: False)
    monkeypatch.setattr(Calibrant, "_compile", lambda rec: 1 / 0)
    rec = nearly(Calibrant(seed=1))
    for _ in range(3):
        rec.observe(rec.forecast(0.3), 1)


@pytest.mark.plain
@pytest.mark.parametrize("made", [False, True])
def test_states_that_are_read_again_and_again_go_over(monkeypatch, made: bool) -> None:
    found: list[Spec] = []
    monkeypatch.setattr(Spec, "is_made", lambda spec: made)
    monkeypatch.setattr(Spec, "compile", lambda spec: found.append(spec))
    for rec in (Calibrant(seed=1, buckets=8), Recalibrator("foster_hart", seed=1, buckets=8)):
        stored = rec.to_bytes()
        rec.spec.body.read = OFTEN - 2
        for _ in range(3):
            assert type(rec).from_bytes(stored) == rec
        # Of a rule alone the plain steps are as good.
        assert found == [Calibrant(seed=1, buckets=8).spec] * made


@pytest.mark.plain
def test_both_steps_and_what_stores_rows_must_be_made(monkeypatch) -> None:
    spec = Calibrant(seed=1, buckets=7).spec
    monkeypatch.setattr(rounds, "available", lambda: True)
    for module in (rounds, bodies):
        monkeypatch.setattr(module, "compiled", lambda step, name: step)
    for steps, stored in ((True, True), (True, False), (False, True)):
        monkeypatch.setattr(rounds, "are_made", lambda *made, told=steps: told)
        monkeypatch.setattr(bodies, "are_made", lambda *made, told=stored: told)
        assert spec.is_made() is (steps and stored)


@pytest.mark.plain
def test_without_a_compiler_nothing_is_made(monkeypatch) -> None:
    monkeypatch.setattr(rounds, "available", lambda: False)
    assert not Calibrant(seed=1, buckets=9).spec.is_made()


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler")
def test_machine_code_goes_on_to_the_bit() -> None:
    tickets, predictions, plain = (nearly(Calibrant(seed=1)) for _ in range(3))
    assert tickets._rows.steps is predictions._rows.steps is None
    Calibrant(seed=1).compile()
    for k in range(40):
        raw, outcome = (k % 7) / 7, k % 2
        tickets.observe(tickets.forecast(raw), outcome)
        predictions.predict_one(raw)
        predictions.learn_one(raw, outcome)
    plain.replay([(k % 7) / 7 for k in range(40)], [k % 2 for k in range(40)])
    assert tickets._rows.steps is not None
    assert predictions._rows.steps is not None
    assert tickets == predictions == plain


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="there is no compiler")
def test_a_new_stream_goes_on_with_machine_code_that_another_one_has_loaded() -> None:
    plain = Calibrant(seed=1)
    Calibrant(seed=2).compile()
    rec = Calibrant(seed=1)
    assert rec._rows.steps is not None
    assert plain._rows.steps is None
    for k in range(40):
        told = (k % 7) / 7, k % 2
        assert (
            rec.observe(rec.forecast(told[0]), told[1]).value
            == plain.observe(plain.forecast(told[0]), told[1]).value
        )
    assert rec == plain
    # Of a rule alone the plain steps are as good for a few rounds.
    Recalibrator("foster_hart", seed=1).compile()
    assert Recalibrator("foster_hart", seed=1)._rows.steps is None


@pytest.mark.plain
@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupt_waits_for_what_was_begun(monkeypatch, begun: bool) -> None:
    rec, calls = Calibrant(seed=1), []
    rec.observe(rec.forecast(0.5), 1)

    def interrupted(self) -> None:
        calls.append(self)
        if begun:
            self._arena.flat()
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Calibrant, "_compile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rec.compile()
    assert len(calls) == 1 + begun
