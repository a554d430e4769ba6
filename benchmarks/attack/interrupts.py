"""Interrupts at random instructions, as Ctrl-C and signal handlers make them."""

from __future__ import annotations

import dis
import functools
import random
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from benchmarks.attack.registry import ROOT, attack
from calibrant import Calibrant, Recalibrator, load

READS: tuple[Callable[[Any], Any], ...] = (
    lambda model: model.to_bytes(),
    lambda model: model.certificate(),
    lambda model: model.to_dict(),
    lambda model: model.copy(),
    lambda model: model.open,
    repr,
)


# After these, and nowhere else, CPython looks whether a signal has come.
LOOKED_AFTER = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"}


@functools.cache
def _names(code: CodeType) -> list[str]:
    """Return the instruction at each place of a function."""
    return [dis.opname[number] for number in code.co_code]


@functools.cache
def _ends(code: CodeType) -> frozenset[int]:
    """Return where errors begin to be handled elsewhere: what follows a call is handled before."""
    return frozenset(entry.end for entry in dis.Bytecode(code).exception_entries)


def interrupted(work: Callable[[], Any], after: int) -> int:
    """Do something, interrupted at one of the package's instructions; return how many there were.

    Only instructions count between which a signal may be handled.
    """
    count, last = 0, dict[FrameType, str]()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if "calibrant" not in frame.f_code.co_filename:
            return None
        # Python 3.13 tells of the first frame of a function only if the trace is known by now ...
        frame.f_trace, frame.f_trace_opcodes = trace, True
        if event == "opcode":
            before, last[frame] = last.get(frame), _names(frame.f_code)[frame.f_lasti]
            looked = before in LOOKED_AFTER and frame.f_lasti not in _ends(frame.f_code)
            count += looked
            if count == after and looked:
                raise KeyboardInterrupt
        return trace

    kept = sys.gettrace()
    # ... and 3.12 of none at all until some frame has asked for instructions.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(kept)
    return count


def played(rng: random.Random) -> Any:
    """Return a model after some rounds, with tickets open."""
    model = rng.choice((Recalibrator, Calibrant))(seed=rng.randrange(99))
    for _ in range(rng.randrange(2, 9)):
        ticket = model.forecast(rng.random())
        if rng.random() < 0.7:
            model.observe(ticket, rng.randrange(2))
    return model


@attack(
    "interrupted reads",
    "the state has changed, or its bytes are refused",
    tries=5_000,
    quick=60,
)
def reads(tries: int, rng: random.Random) -> int:
    """Interrupt what only reads."""
    damage = 0
    for _ in range(tries):
        model, read = played(rng), rng.choice(READS)
        before = model.to_bytes()
        length = interrupted(lambda model=model, read=read: read(model), -1)
        interrupted(lambda model=model, read=read: read(model), rng.randrange(1, length + 1))
        damage += not model._gate.is_free or model.to_bytes() != before or load(before) != model
    return damage


@attack(
    "interrupted corrections",
    "bytes that are refused, or a stream that nobody can call any more",
    tries=1_000,
    quick=30,
)
def corrections(tries: int, rng: random.Random) -> int:
    """Interrupt a correction, and an expiry."""
    damage = 0
    for number in range(tries):
        model = played(rng)
        closed = model.observe(model.forecast(0.4), 0)
        waiting = model.forecast(0.6)
        works = (lambda m=model, t=closed: m.correct(t, 1), lambda m=model, t=waiting: m.expire(t))
        interrupted(works[number % 2], rng.randrange(1, 60))
        damage += not model._gate.is_free or not _loads(model)
    return damage


def _loads(model: Any) -> bool:
    try:
        return bool(load(model.to_bytes()) == model)
    except Exception:
        return False


ROUNDS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda model, ticket: model.forecast(0.4),
    lambda model, ticket: model.forecast(0.4, id="a name"),
    lambda model, ticket: model.observe(ticket, 1),
    lambda model, ticket: model.observe(ticket.id, 0),
    lambda model, ticket: model.learn_one(0.3, 1),
)


@attack(
    "interrupted rounds",
    "a forecast or an outcome that is only partly in the state",
    tries=5_000,
    quick=60,
)
def rounds(tries: int, rng: random.Random) -> int:
    """Interrupt forecasts and outcomes."""
    damage = 0
    for _ in range(tries):
        model, call = played(rng), rng.choice(ROUNDS)
        ticket, before = model.forecast(0.7), None
        if rng.random() < 0.5:
            model.forecast(0.2)
        before, whole = model.to_bytes(), model.copy()
        same = ticket if call is not ROUNDS[2] else ticket.id
        length = interrupted(lambda m=whole, c=call, t=same: _called(c, m, t), -1)
        place = rng.randrange(1, length + 1)
        interrupted(lambda m=model, c=call, t=ticket: c(m, t), place)
        damage += not model._gate.is_free or model.to_bytes() not in (before, whole.to_bytes())
    return damage


def _called(call: Callable[[Any, Any], Any], model: Any, ticket: Any) -> Any:
    """Make the same call on a copy, to which tickets come by their ids."""
    return model.observe(ticket, 1) if call is ROUNDS[2] else call(model, ticket)


def _kinds() -> Any:
    """Return the module with streams of every kind and their calls, which the tests use too."""
    folder = str(ROOT / "tests")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import interruptible

    return interruptible


@functools.cache
def _warmed(name: str) -> bytes:
    return bytes(_kinds().BATCHED[name].warmed())


def _damaged(name: str, call: Callable[[Any], Any], rng: random.Random) -> bool:
    """Interrupt a call of a stream of some kind; say whether it was done in part."""
    module, stored = _kinds(), _warmed(name)
    model, whole, before = (module.Model(module.BATCHED[name], stored) for _ in range(3))
    length = interrupted(lambda: call(whole), -1)
    interrupted(lambda: call(model), rng.randrange(1, length + 1))
    allowed = before.to_bytes(), whole.to_bytes()
    return not model.stream._gate.is_free or model.to_bytes() not in allowed


@attack(
    "interrupted rounds of every kind",
    "a call about groups, classes or numbers that is only partly in the state",
    tries=2_000,
    quick=30,
)
def rounds_of_kinds(tries: int, rng: random.Random) -> int:
    """Interrupt calls of streams of other kinds."""
    names, calls = [*_kinds().KINDS], [*_kinds().CALLS.values()]
    return sum(_damaged(rng.choice(names), rng.choice(calls), rng) for _ in range(tries))


@attack(
    "interrupted batches",
    "a batch that is only partly in the state",
    tries=1_000,
    quick=20,
)
def batches(tries: int, rng: random.Random) -> int:
    """Interrupt batches of streams of any kind."""
    names, calls = [*_kinds().BATCHED], [*_kinds().BATCHES.values()]
    return sum(_damaged(rng.choice(names), rng.choice(calls), rng) for _ in range(tries))
