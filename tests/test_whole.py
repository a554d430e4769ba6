"""What is put back, withdrawn or finished after an interrupt, one piece after the other.

:mod:`test_interrupts_inside` interrupts whole calls wherever that can happen.
"""

import weakref
from array import array
from collections.abc import Callable

import players
import pytest

from calibrant import Calibrant, Recalibrator
from calibrant.kernels import alone
from calibrant.kernels.layout import HEADER
from calibrant.kernels.whole import began, copied, whole, whole_block, whole_round
from calibrant.recalibrate import fork

STOP = KeyboardInterrupt


def failing(words, reals, at, *told) -> None:
    words[at], words[at + 1] = 7, 8
    raise STOP


def of_a_round(step: Callable, size: int) -> Callable:
    """Return what puts back a row that is one block, whose place is told."""
    guarded = whole_round(step, alone.Sizes((0.0,), (0,), 2, 0, size, size), 0)
    return lambda words, reals, row: guarded(words, reals, row, 0)


@pytest.mark.parametrize("guard", [whole, whole_block, of_a_round])
@pytest.mark.parametrize("form", [list, lambda words: memoryview(array("q", words))])
def test_words_of_an_interrupted_step_are_put_back(guard: Callable, form: Callable) -> None:
    row = len(HEADER)
    words = form([0] * row + [1, 2, 3, 4])
    with pytest.raises(STOP):
        guard(failing, 2)(words, words, row + 1)
    assert list(words[row:]) == [1, 2, 3, 4]
    guard(lambda words, *_: words.__setitem__(row, 9), 2)(words, words, row)
    assert list(words[row:]) == [9, 2, 3, 4]
    kept = copied(words, row, row + 2)
    words[row] = 5
    assert list(kept) == [9, 2]


def test_the_array_behind_a_list_is_put_back_after_an_interrupt() -> None:
    row = len(HEADER)

    def changing(words, reals, at, *told) -> None:
        words[at], words[-1][1] = 7, 0.75
        raise STOP

    words = [*[0] * row, 1, 2, array("d", [0.25, 0.5])]
    with pytest.raises(STOP):
        whole(changing, 5)(words, words, row)
    assert words[row:] == [1, 2, array("d", [0.25, 0.5])]


@pytest.mark.parametrize("bucket", [0, 1])
@pytest.mark.parametrize("behind", [0, 2])
def test_words_of_a_round_are_head_block_and_what_is_behind_the_blocks(
    bucket: int, behind: int
) -> None:
    row, blocks = len(HEADER), (2, 5)
    size = 8 + behind

    def changing(words, reals, at, number, place) -> None:
        block = at + blocks[place >> 16]
        for k in (*range(at, at + 2), *range(block, block + 3), *range(at + 8, at + size)):
            words[k] += 100
        if number:
            raise STOP

    before = [*[0] * row, *range(size), 7]
    guarded = whole_round(changing, alone.Sizes((0.0, 0.5), blocks, 2, 0, 3, size), 1)
    words = before.copy()
    with pytest.raises(STOP):
        guarded(words, words, row, 1, bucket << 16)
    assert words[row:] == before[row:]
    guarded(words, words, row, 0, bucket << 16)
    assert sum(words[row:]) == sum(before) + 100 * (5 + behind)


def test_an_interrupt_inside_a_function_is_told_from_one_after_it() -> None:
    def function() -> None:
        raise STOP

    for call, inside in ((function, True), (lambda: function(), False)):
        with pytest.raises(STOP) as caught:
            call()
        error = caught.value
        # The frame of this test comes first.
        assert began(error, function) == inside
    assert not began(STOP(), function)


def stopping(times: int) -> tuple[Callable, list[int]]:
    """Return an update that is interrupted so often, and how often it was called."""
    calls: list[int] = []

    def update(words, reals, at, *told) -> None:
        calls.append(at)
        words[at] = 99
        if len(calls) <= times:
            raise STOP

    return update, calls


@pytest.mark.parametrize("step", ["learn", "commit"])
@pytest.mark.parametrize("inside", [True, False])
def test_an_update_that_did_not_begin_is_made_up_for(
    step: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Recalibrator(resolution=4, buckets=1, seed=1).spec
    words = spec.arena(bytes(16)).words()
    update, calls = stopping(1)
    sizes = alone.Sizes((0.0,), (spec.layout.blocks,), 5, 0, spec.layout.stride, 1)
    steps = alone.make_steps(spec.rule.kernels.draw, update, sizes)
    if not inside:
        monkeypatch.setattr(alone, "began", lambda error, function: False)
    row = spec.layout.row
    told = (0, 0, 1.0, 0.5, 0.5, 0.0, 1) if step == "learn" else (0, 1.0, 0.5, 0, 0, 0.5, 1)
    with pytest.raises(STOP):
        steps[step](words, words, row, *told)
    assert len(calls) == (2 if inside else 1)
    assert words[row + 3] == 1


MODELS = {
    "alone": lambda: Recalibrator(resolution=4, seed=1),
    "full support": lambda: Recalibrator("exponential_regret", resolution=3, buckets=2, seed=1),
    "safe": lambda: Calibrant(raw_safe=0.05, resolution=4, seed=1),
    "default": lambda: Calibrant(resolution=4, seed=1),
}


@pytest.fixture(autouse=True)
def streams_are_plain():
    """Let no other test of this process have loaded machine code: new streams would use it."""
    players.begin_plain(*(make() for make in MODELS.values()))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_a_forecast_without_a_ticket_is_withdrawn(kind: str, waiting: int) -> None:
    model = MODELS[kind]()
    model.replay([0.2, 0.6, 0.7], [0, 1, 1])
    opened = [model.forecast(0.4) for _ in range(waiting)]
    before, rows = model.to_bytes(), model._rows
    step = rows.plain_issue

    def stopped(*told: object) -> None:
        step(*told)
        raise STOP

    rows.plain_issue = stopped
    with pytest.raises(STOP):
        model.forecast(0.3)
    rows.plain_issue = step
    assert model.to_bytes() == before
    for ticket in opened:
        model.observe(ticket, 1)


def test_a_forecast_whose_ticket_was_handed_out_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Recalibrator(resolution=4, seed=1, max_open=1)
    model.forecast(0.4)
    monkeypatch.setattr(
        Recalibrator, "_expire_old", lambda self, issued: (_ for _ in ()).throw(STOP)
    )
    with pytest.raises(STOP):
        model.forecast(0.3)
    assert model.issued == 2
    assert model._counter.latest.number == 1


@pytest.mark.parametrize("kind", MODELS)
def test_a_ticket_whose_outcome_was_learned_is_closed(kind: str) -> None:
    model, other = MODELS[kind](), MODELS[kind]()
    ticket, rows = model.forecast(0.4), model._rows
    step = rows.plain_learn

    def stopped(*told: object) -> None:
        step(*told)
        raise STOP

    rows.plain_learn = stopped
    with pytest.raises(STOP):
        model.observe(ticket, 1)
    other.observe(other.forecast(0.4), 1)
    assert model.to_bytes() == other.to_bytes()
    assert ticket.outcome == 1
    assert model.open == 0


def test_a_ticket_that_was_closed_already_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Recalibrator(resolution=4, seed=1)
    ticket, close = model.forecast(0.4, id="a"), type(model._counter).close

    def stopped(self: object, *told: object) -> None:
        close(self, *told)
        raise STOP

    monkeypatch.setattr(type(model._counter), "close", stopped)
    with pytest.raises(STOP):
        model.observe(ticket, 1)
    assert (model.open, model.rounds) == (0, 1)


@pytest.mark.parametrize("corrected", [False, True])
def test_a_correction_that_is_interrupted_is_none(
    corrected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Recalibrator(resolution=4, seed=1)
    ticket = model.observe(model.forecast(0.4), 0)
    if corrected:
        model.correct(ticket, 1)
    before, known = model.to_bytes(), ticket.outcome
    note = type(model._counter.corrections).note

    def stopped(self: object, *told: object) -> None:
        note(self, *told)
        raise STOP

    with monkeypatch.context() as patched:
        patched.setattr(type(model._counter.corrections), "note", stopped)
        with pytest.raises(STOP):
            model.correct(ticket, 1 - known)
    assert model.to_bytes() == before
    assert ticket.outcome == known
    assert model.correct(ticket, 1 - known).outcome == 1 - known


@pytest.mark.parametrize("closed", [False, True])
def test_an_expiry_that_is_interrupted_is_whole_or_none(
    closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Calibrant(raw_safe=0.05, resolution=4, seed=1)
    ticket, before, close = model.forecast(0.4), model.to_bytes(), type(model._counter).close

    def stopped(self: object, *told: object) -> None:
        if closed:
            close(self, *told)
        raise STOP

    with monkeypatch.context() as patched:
        patched.setattr(type(model._counter), "close", stopped)
        with pytest.raises(STOP):
            model.expire(ticket)
    assert model.open == 1 - closed
    assert (model.to_bytes() == before) == (not closed)


def test_what_is_gone_is_not_renewed() -> None:
    class Thrower:
        def _renew(self) -> None:
            raise AssertionError

    thrower = Thrower()
    fork._live[-1] = weakref.ref(thrower)
    del thrower
    fork.renew_all()
    del fork._live[-1]
