"""What was promised and what was measured, side by side."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.bounds import Bound
from calibrant.bounds.game import share
from calibrant.calibrators import Account, Calibrator
from calibrant.core.arrays import Reals, Words
from calibrant.losses import Loss
from calibrant.recalibrate.promise import (
    FAILURE,
    Counted,
    first_round,
    promised,
    told_apart,
    too_early,
)

ENDS: Final = np.array([0.0, 1.0])
"""Outcomes, and the forecasts of them that lose least."""


@dataclass(frozen=True)
class Certificate(Counted):
    """A recalibrator's record so far.

    Attributes
    ----------
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most;
        bounds get weaker with it, and most theorems say nothing about late outcomes.
    c1, c2
        Calibration errors of the drawn forecasts over their exact values.
    c1_buckets, c2_buckets
        The same measured in each bucket and averaged by rounds; never smaller.
    loss, raw_loss, regret
        Mean loss of the drawn and of the raw forecasts, and the difference; not a number if
        both are infinite.
    loss_name
        Under which loss.
    bounds
        What the theorems say in the worst case: bounds on the expectation of these numbers over
        the draws.  Then the same with the counts of this very run put in, which estimate such
        bounds.  Where the theorem is about mixtures (``pseudo``), also what follows for the
        draws.  Empty for a calibrator without a guarantee.  Each says in ``assumption`` what it is.
    failure, sure
        Bounds on what was measured in this very run, all of them at once except with this
        probability, at a time that was fixed beforehand: ``holds`` is about these.
    most_regret
        What regret cannot exceed anyway, as 1 is what C1 and C2 cannot.
    early
        From about which round on something is promised, if there are too few yet; None otherwise.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known.
    """

    c1: float
    c2: float
    c1_buckets: float
    c2_buckets: float
    loss_name: str
    loss: float
    raw_loss: float
    regret: float
    bounds: tuple[bounds.Bound, ...]
    failure: float
    sure: tuple[Bound, ...]
    most_regret: float
    early: int | None

    def bound(self, quantity: str) -> float | None:
        """Return the smallest of ``bounds`` on ``"C1"``, ``"C2"``..., if there is one.

        That may be an estimate; ``promised`` is a bound on this run.
        """
        found = [float(b) for b in self.bounds if b.quantity == quantity]
        return min(found) if found else None

    def promised(self, quantity: str) -> float | None:
        """Return the bound on what was measured in this run; None where it would say nothing."""
        found = [b.value for b in self.sure if b.quantity == quantity and self._says(b)]
        return min(found) if found else None

    @property
    def holds(self) -> bool | None:
        """Whether every measured number is below what ``sure`` says; None if that is nothing."""
        checks = self.compared({"C1": self.c1, "C2": self.c2, "regret": self.regret})
        return all(checks) if checks else None

    def compared(self, measured: dict[str, float]) -> list[bool]:
        """Return whether each sure bound holds that says more than what is always true.

        Its quantity must have been measured, and be a number.
        """
        told = {name: value for name, value in measured.items() if not math.isnan(value)}
        sure = [b for b in self.sure if b.quantity in told and self._says(b)]
        return [told[b.quantity] <= b.value for b in sure]

    def _says(self, bound: Bound) -> bool:
        """Say whether a bound is below what its quantity cannot exceed anyway."""
        return bound.value < (self.most_regret if bound.quantity.endswith("regret") else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data; what is not finite is None there."""
        data: dict[str, Any] = _finite(asdict(self))
        return data | {"holds": self.holds}

    def __str__(self) -> str:
        lines = self._head(), f"  {self._measured()}", f"  {self._promise()}"
        return "\n".join([*lines, *self.foreseen(self.holds)])

    def details(self) -> str:
        """Return all that is known, and of every number what it is: more than ``str`` tells."""
        buckets = f"  in each bucket, averaged: C1 {self.c1_buckets:.5f}, C2 {self.c2_buckets:.6f}"
        told = [*told_apart(self.sure, self._says), *told_apart(self.bounds, self._says)]
        return "\n".join([str(self), buckets, *told])

    def _measured(self) -> str:
        losses = f"{self.loss_name} loss {self.loss:.5f}, raw {self.raw_loss:.5f}"
        return f"measured: C1 {self.c1:.5f}, C2 {self.c2:.6f}, {losses}"

    def _promise(self) -> str:
        if self.rounds == 0:
            return "no rounds yet"
        if not self.sure:
            late = f" with {self.delay} outcomes outstanding" if self.delay else ""
            mean = "; bounds on expectations in details()" if self.bounds else ""
            return f"no guarantee{late}{mean}"
        limits = {name: self.promised(name) for name in ("C1", "C2", "regret")}
        told = {name: value for name, value in limits.items() if value is not None}
        return promised(told, self.failure, self.holds) if told else too_early(self.early)


def certify(
    rule: Calibrator,
    account: Account,
    loss: Loss,
    charged: float,
    open: int,
    expired: int,
    failure: float = FAILURE,
) -> Certificate:
    """Measure an account and put the theorems beside it."""
    rounds, grid = account.rounds, rule.lattice.values
    gaps = account.ones - account.counts * grid
    own = loss.given_one(grid), loss.given_zero(grid)
    counts, ones = account.counts.sum(0), account.ones.sum(0)
    total = float(_paid(ones, own[0]) + _paid(counts - ones, own[1]))
    mean, raw = _over(total, rounds), _over(charged, rounds)
    sure = _probable(rule, account, loss, failure) if rounds else ()
    early = bool(sure) and all(b.value >= 1.0 for b in sure if b.quantity != "regret")
    return Certificate(
        method=rule.name,
        rounds=rounds,
        open=open,
        expired=expired,
        delay=account.delay,
        c1=_over(float(np.abs(gaps.sum(0)).sum()), rounds),
        c2=_over(_squares(gaps.sum(0), counts), rounds),
        c1_buckets=_over(float(np.abs(gaps).sum()), rounds),
        c2_buckets=_over(_squares(gaps, account.counts), rounds),
        loss_name=loss.name,
        loss=mean,
        raw_loss=raw,
        regret=mean - raw,
        bounds=_theorems(rule, account, loss),
        failure=bounds.probable(failure),
        sure=sure,
        most_regret=float(np.max(own)) - float(np.min(loss(ENDS, ENDS))),
        early=_first(rule, account, failure) if early else None,
    )


def _first(rule: Calibrator, account: Account, failure: float) -> int | None:
    """Return from about which round on the theorem says more than what is always true."""

    def says(rounds: int) -> bool:
        found = rule.worst(account, rounds, share(failure, 2))
        if found is not None and found.quantity.startswith("pseudo"):
            cells, buckets = len(rule.lattice.values), account.buckets
            found = bounds.drawn(found, rounds, cells, buckets=buckets, failure=failure)
        return found is not None and found.value < 1.0

    return first_round(says, account.rounds)


def _probable(
    rule: Calibrator, account: Account, loss: Loss, failure: float
) -> tuple[bounds.Bound, ...]:
    """Return what holds for this run, each part of a chance that adds up to ``failure``."""
    own = rule.probable_regret(account, share(failure, 2)) if loss.name == "squared" else None
    found = rule.probable(account, failure if own is None else share(failure, 2))
    if found is None:
        return ()
    if found.quantity.startswith("pseudo"):
        sizes = {"rounds": account.rounds, "cells": len(rule.lattice.values)}
        found = bounds.drawn(found, **sizes, buckets=account.buckets, failure=failure)
    parts = _parts(found, rule, account, loss)
    return tuple(parts if own is None else [*parts, own])


def _theorems(rule: Calibrator, account: Account, loss: Loss) -> tuple[bounds.Bound, ...]:
    if account.rounds == 0:
        return ()
    worst = rule.worst(account, account.rounds)
    found = [bound for bound in (worst, rule.measured(account)) if bound is not None]
    parts = [part for bound in found for part in _parts(bound, rule, account, loss)]
    own = rule.regret(account) if loss.name == "squared" else None
    return tuple(parts if own is None else [*parts, own])


def _parts(
    bound: bounds.Bound, rule: Calibrator, account: Account, loss: Loss
) -> list[bounds.Bound]:
    """Return a theorem's bound and what follows from it; what is not measured goes last."""
    values, regret = rule.lattice.values, []
    if loss.proper:
        low, high = float(values[0]), float(values[-1])
        regret = [bounds.regret_bound(bound, loss, account.buckets, low=low, high=high)]
    if bound.quantity.startswith("pseudo"):
        parts = [bound, *regret]
        sizes = {"rounds": account.rounds, "cells": len(values), "buckets": account.buckets}
        return [bounds.drawn(part, **sizes) for part in parts] + [bound]
    return [bound, *([bound.as_c1()] if bound.quantity == "C2" else []), *regret]


def _paid(times: Words, price: Reals) -> float:
    return float((times[times > 0] * price[times > 0]).sum())


def _squares(gaps: Reals, counts: Words) -> float:
    seen = counts > 0
    return float((gaps[seen] ** 2 / counts[seen]).sum())


def _over(total: float, rounds: int) -> float:
    return total / rounds if rounds else 0.0


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
