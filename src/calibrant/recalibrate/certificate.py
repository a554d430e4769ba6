"""What was promised and what was measured, side by side."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant import bounds
from calibrant.calibrators import Account, Calibrator
from calibrant.core.arrays import Reals, Words
from calibrant.core.seeded import Seeded
from calibrant.losses import Loss


@dataclass(frozen=True)
class Certificate(Seeded):
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
        What the theorems say about these numbers: in the worst case, and tightened by
        the counts of this very run.  Where the theorem is about mixtures (``pseudo``), also
        what follows for the draws.  Empty for a calibrator without a guarantee.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known.
    """

    method: str
    rounds: int
    open: int
    expired: int
    delay: int
    c1: float
    c2: float
    c1_buckets: float
    c2_buckets: float
    loss_name: str
    loss: float
    raw_loss: float
    regret: float
    bounds: tuple[bounds.Bound, ...]

    def bound(self, quantity: str) -> float | None:
        """Return the smallest bound on ``"C1"``, ``"C2"``, ``"regret"``..., if there is one."""
        found = [float(b) for b in self.bounds if b.quantity == quantity]
        return min(found) if found else None

    @property
    def holds(self) -> bool | None:
        """Whether every measured number is below its bounds; None without a bound.

        Bounds hold in expectation over the draws, so a single run may exceed a tight
        one; the worst-case ones leave ample room.
        """
        checks = self.compared({"C1": self.c1, "C2": self.c2, "regret": self.regret})
        return all(checks) if checks else None

    def compared(self, measured: dict[str, float]) -> list[bool]:
        """Return whether each bound holds whose quantity was measured and is a number."""
        told = {name: value for name, value in measured.items() if not math.isnan(value)}
        return [told[b.quantity] <= b.value for b in self.bounds if b.quantity in told]

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data; what is not finite is None there."""
        data: dict[str, Any] = _finite(asdict(self))
        return data | {"holds": self.holds}

    def __str__(self) -> str:
        lines = [
            f"{self.method}: {self.rounds} rounds, {self.open} open, {self.expired} expired",
            f"  C1 {self.c1:.5f}   C2 {self.c2:.6f}",
            f"  {self.loss_name} loss {self.loss:.5f}, raw {self.raw_loss:.5f}, "
            f"regret {self.regret:+.5f}",
        ]
        told = [f"  {bound}" for bound in self.bounds] + self.foreseen
        return "\n".join(lines + (told if self.bounds else [f"  {self._nothing()}"]))

    def _nothing(self) -> str:
        if self.rounds == 0:
            return "no rounds yet"
        late = f" with {self.delay} outcomes outstanding" if self.delay else ""
        return f"no guarantee{late}"


def certify(
    rule: Calibrator, account: Account, loss: Loss, charged: float, open: int, expired: int
) -> Certificate:
    """Measure an account and put the theorems beside it."""
    rounds, grid = account.rounds, rule.lattice.values
    gaps = account.ones - account.counts * grid
    own = loss(np.ones(len(grid)), grid), loss(np.zeros(len(grid)), grid)
    counts, ones = account.counts.sum(0), account.ones.sum(0)
    total = float(_paid(ones, own[0]) + _paid(counts - ones, own[1]))
    mean, raw = _over(total, rounds), _over(charged, rounds)
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
    )


def _theorems(rule: Calibrator, account: Account, loss: Loss) -> tuple[bounds.Bound, ...]:
    if account.rounds == 0:
        return ()
    worst = rule.bound(
        account.rounds, buckets=account.buckets, prior=account.prior, delay=account.delay
    )
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
