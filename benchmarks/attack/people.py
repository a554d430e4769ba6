"""Callers who report what they like, twice, or not at all."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.attack.registry import attack
from calibrant import Calibrant, Recalibrator, Ticket
from calibrant.errors import CalibrantError


@attack("repeated corrections", "a correction is taken twice", tries=5_000, quick=50)
def corrections(tries: int, rng: random.Random) -> int:
    """Correct an outcome again, by copies of its ticket and after a restart."""
    model: Any = rng.choice((Recalibrator, Calibrant))(seed=1)
    damage = 0
    for _ in range(tries):
        outcome = rng.randrange(2)
        ticket = model.observe(model.forecast(rng.random()), outcome)
        stored = ticket.to_bytes()
        model.correct(ticket, 1 - outcome, was=outcome)
        again = type(model).from_bytes(model.to_bytes()) if rng.random() < 0.1 else model
        stale = ticket if rng.random() < 0.3 else Ticket.from_bytes(stored)
        try:
            again.correct(stale, 1 - outcome)
        except CalibrantError:
            continue
        damage += 1
    return damage


@attack("altered tickets", "an attribute of a live ticket is set", tries=2_000, quick=50)
def tickets(tries: int, rng: random.Random) -> int:
    """Set attributes of a ticket that waits."""
    model, damage = Calibrant(seed=1), 0
    names = [name for name in dir(Ticket) if not name.startswith("_")]
    for _ in range(tries):
        ticket = model.forecast(rng.random())
        try:
            setattr(ticket, rng.choice(names), 0.5)
        except AttributeError:
            model.observe(ticket, rng.randrange(2))
            continue
        damage += 1
    return damage


@attack(
    "selective reporting",
    "outcomes that were never reported are not counted in the certificate",
    tries=200,
    quick=5,
)
def selective(tries: int, rng: random.Random) -> int:
    """Report an outcome only where it lies on the far side of the draw."""
    damage = 0
    for _ in range(tries):
        cap = rng.randrange(1, 20)
        model = Recalibrator(seed=rng.randrange(99), max_open=cap)
        hidden = 0
        for _ in range(300):
            ticket, outcome = model.forecast(0.5), rng.randrange(2)
            if (outcome == 1) == (ticket.value < 0.5):
                model.observe(ticket, outcome)
            else:
                hidden += 1
        told = model.certificate()
        damage += told.expired + told.open != hidden
    return damage
