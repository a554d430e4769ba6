"""An interrupt inside a call: the call is done wholly or not at all, wherever it came.

Each place where CPython can raise what comes from elsewhere (:mod:`interrupting`) is tried, one
after the other.
"""

import dis
import inspect
from functools import partial
from typing import Any

import players
import pytest
from interrupting import interrupted

import calibrant
from calibrant import Calibrant, Recalibrator, load
from calibrant.classes import ClassCalibrant
from calibrant.errors import ExpiredTicket, TicketError
from calibrant.kernels.whole import is_straight
from calibrant.recalibrate import counter
from calibrant.registry import calibrators
from calibrant.regression import ConformalInterval, Distribution, QuantileRecalibrator

MODELS = {
    "foster_hart": partial(Recalibrator, "foster_hart", resolution=4, buckets=3),
    "blackwell": partial(Recalibrator, "blackwell", resolution=4, buckets=2, updates="expected"),
    "regret_matching": partial(Recalibrator, "regret_matching", resolution=4, loss="log"),
    "running_mean": partial(Recalibrator, "running_mean", resolution=4, buckets=2),
    "exponential_regret": partial(Recalibrator, "exponential_regret", resolution=1, buckets=1),
    "growing": partial(Recalibrator, "growing", resolution=4),
    "default": partial(Calibrant, resolution=4),
    "safe": partial(Calibrant, resolution=4, raw_safe=0.05),
}
every_model = pytest.mark.parametrize("kind", MODELS)


def warmed(kind: str) -> Recalibrator:
    model = MODELS[kind](seed=5)
    for p, y in zip(*players.stream(12, 4), strict=True):
        model.observe(model.forecast(p), y)
    return model


CALLS = {
    "forecast": lambda model, ticket: model.forecast(0.4),
    "forecast by name": lambda model, ticket: model.forecast(0.7, id="a"),
    "observe": lambda model, ticket: model.observe(ticket, 1),
    "observe by id": lambda model, ticket: model.observe(ticket.id, 0),
    "learn_one": lambda model, ticket: model.learn_one(0.6, 1),
    "correct": lambda model, ticket: model.correct(model.closed, 1 - model.closed.outcome),
    "expire": lambda model, ticket: model.expire(ticket),
}


class Model:
    """A stream with one open ticket of its own, and one closed one."""

    def __init__(self, stored: bytes, closed: bytes, late: bool) -> None:
        self.stream = load(stored)
        self.closed = calibrant.Ticket.from_bytes(closed)
        self.ticket = self.stream.forecast(0.35)
        if late:
            self.stream.forecast(0.8)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


@pytest.mark.plain
@every_model
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_call_is_done_wholly_or_not_at_all(kind: str, call: str) -> None:
    try_all(warmed(kind), call, late=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["foster_hart", "default"])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_call_is_so_while_other_tickets_wait(kind: str, call: str) -> None:
    try_all(warmed(kind), call, late=True)


@pytest.mark.plain
@pytest.mark.parametrize("kind", ["foster_hart", "default"])
@pytest.mark.parametrize("call", CALLS)
def test_an_interrupted_call_is_so_while_tickets_are_filed(
    kind: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nearest in (0, 1):
        monkeypatch.setattr(counter, "NEAREST", nearest)
        monkeypatch.setattr(counter, "AT_ONCE", nearest)
        try_all(warmed(kind), call, late=True)


@pytest.mark.plain
@pytest.mark.parametrize("nearest", [0, 64])
@pytest.mark.parametrize("newer", [0, 1])
@pytest.mark.parametrize("by_number", [False, True])
@pytest.mark.parametrize("call", ["observe", "expire"])
def test_what_became_of_a_name_is_known_wherever_an_interrupt_came(
    call: str, by_number: bool, newer: int, nearest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "NEAREST", nearest)
    monkeypatch.setattr(counter, "AT_ONCE", nearest // 4)
    said = {"observe": "one whose outcome is known", "expire": "one that was expired"}[call]
    at, stopped = 0, True
    while stopped:
        at += 1
        model = MODELS["foster_hart"](seed=5)
        ticket = model.forecast(0.35, id="a")
        for _ in range(newer):
            model.forecast(0.8, id="b")
        told = (ticket.number if by_number else ticket), *([1] if call == "observe" else [])
        stopped, _ = interrupted(partial(getattr(model, call), *told), at)
        if model.open > newer:
            getattr(model, call)(*told)
        for name in ("a", 0):
            with pytest.raises(TicketError, match=f"^ticket {name!r} must be open, got {said}"):
                model.observe(name, 1)
    assert at > 4


@pytest.mark.plain
def test_a_name_that_grew_too_old_in_an_interrupted_call_is_said_to_have_expired() -> None:
    at, stopped, ends = 0, True, set()
    while stopped:
        at += 1
        model = MODELS["foster_hart"](seed=5, max_open=1)
        model.forecast(0.35, id="a")
        stopped, _ = interrupted(partial(model.forecast, 0.8), at)
        ends.add(model.issued)
        if model.issued == 2:
            with pytest.raises(ExpiredTicket, match=r"^ticket 'a' must be open, got one that was"):
                model.observe("a", 1)
        else:
            assert model.observe("a", 1).number == 0
    assert ends == {1, 2}


def try_all(start: Recalibrator, call: str, late: bool, apart: str = "nothing") -> None:
    closed = start.observe(start.forecast(0.5), 1).to_bytes()
    make = partial(Model, start.to_bytes(), closed, late)
    whole, untouched = make(), make().to_bytes()
    CALLS[call](whole, whole.ticket)
    done, at, outcomes = whole.to_bytes(), 0, set()
    assert done != untouched
    while True:
        at += 1
        model = make()
        stopped, _ = interrupted(partial(CALLS[call], model, model.ticket), at, apart)
        if not stopped:
            break
        found = model.to_bytes()
        assert found in (untouched, done), f"stopped at place {at}"
        outcomes.add(found == done)
        assert load(found).to_bytes() == found
        if found == untouched:
            # The stream is free, and the same call is done now.
            CALLS[call](model, model.ticket)
            assert model.to_bytes() == done
    # A prompt outcome of compiled steps is learned by one call, and its ticket is let go without.
    assert at > 4
    assert False in outcomes


@pytest.mark.parametrize("kind", ["foster_hart", "default", "safe"])
@pytest.mark.parametrize("call", CALLS)
def test_compiled_calls_are_interrupted_before_or_after_a_step(kind: str, call: str) -> None:
    start = warmed(kind)
    with players.machine(start.spec.program):
        start.compile()
        try_all(start, call, late=False, apart="kernels")


@pytest.mark.parametrize("kind", ["foster_hart", "default"])
def test_a_stream_that_was_interrupted_while_it_compiled_goes_on(kind: str) -> None:
    start, at = warmed(kind), 0
    data = start.to_bytes()
    with players.machine(start.spec.program):
        rounds = [(0.2, 1), (0.7, 0), (0.4, 1)]
        whole = [start.observe(start.forecast(raw), y).value for raw, y in rounds]
        stopped = True
        while stopped:
            at += 1
            vars(start.spec.program.machine).pop("ready", None)
            model = load(data)
            stopped, _ = interrupted(model.compile, at, "kernels")
            assert [model.observe(model.forecast(raw), y).value for raw, y in rounds] == whole
            assert model == start, f"stopped at place {at}"
    assert at > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "raw", "outcome"),
    [
        (lambda: QuantileRecalibrator("pit", 3, seed=1), Distribution.normal(0.0, 1.0), 0.3),
        (lambda: QuantileRecalibrator("mixed", 3, seed=1), Distribution.normal(0.0, 1.0), 0.3),
        (lambda: ConformalInterval(seed=1), 0.0, 0.4),
        (lambda: ClassCalibrant(3, seed=1), [0.5, 0.3, 0.2], 1),
    ],
)
def test_so_does_every_kind_of_stream(make: Any, raw: Any, outcome: Any) -> None:
    whole, at, stopped = make().compile(), 0, True
    for _ in range(5):
        whole.observe(whole.forecast(raw), outcome)
    while stopped:
        at += 1
        model = make()
        stopped, _ = interrupted(model.compile, at, "kernels")
        for _ in range(5):
            model.observe(model.forecast(raw), outcome)
        assert model == whole, f"stopped at place {at}"
    assert at > 5


def opcodes(function: Any) -> list[str]:
    return [instruction.opname for instruction in dis.get_instructions(function)]


def calls(names: list[str]) -> bool:
    return any("CALL" in each or "FOR_ITER" in each or "JUMP_BACKWARD" in each for each in names)


@pytest.mark.parametrize("name", calibrators.names())
def test_updates_that_are_straight_call_nothing_once_a_word_is_set(name: str) -> None:
    update = calibrators.get(name).kernels.update
    names, declared = opcodes(update), hasattr(update, "sets_at_its_end")
    assert is_straight(update) == (declared or not calls(names))
    if declared:
        assert not calls(names[names.index("STORE_SUBSCR") :])
        called = [update.__globals__.get(each) for each in update.__code__.co_names]
        ours = [each for each in called if inspect.isfunction(each)]
        assert ours
        assert not any("STORE_SUBSCR" in opcodes(each) for each in ours)


def test_the_fastest_rules_have_straight_updates() -> None:
    for name in ("foster_hart", "foster99", "regret_matching", "running_mean", "blackwell"):
        assert is_straight(calibrators.get(name).kernels.update)
    assert not is_straight(calibrators.get("anchored").kernels.update)
