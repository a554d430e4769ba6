"""How a recalibrator is asked for, and whether a stored one is what was asked for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

from calibrant.recalibrate import Recalibrator
from calibrant.stream.failure import StateMismatch
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import Collector

__all__ = ["Options", "open_session"]

SEED_BITS = 53
"""Bits of a seed that is chosen here: as many as every reader of JSON keeps."""


@dataclass(frozen=True)
class Options:
    """A recalibrator's parameters, None where the user did not say.

    ``epsilon`` chooses resolution and buckets so that the regret under ``loss`` tends to at
    most that.
    """

    method: str | None = None
    resolution: int | None = None
    buckets: int | None = None
    grid: str | None = None
    epsilon: float | None = None
    loss: str | None = None
    prior: int | None = None
    seed: int | None = None
    scale: str | None = None

    def recalibrator(self, seed: int) -> Recalibrator:
        """Return a new recalibrator.

        >>> Options(epsilon=0.1).recalibrator(1).buckets
        15
        """
        names = ("resolution", "buckets", "grid", "loss", "prior")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        method = self.method or "foster_hart"
        if self.epsilon is None:
            return Recalibrator(method, seed=seed, **given)
        return Recalibrator.from_epsilon(self.epsilon, method=method, seed=seed, **given)

    def session(self) -> Session:
        """Return a new session; without a seed one is chosen."""
        seed = secrets.randbits(SEED_BITS) if self.seed is None else self.seed
        recalibrator = self.recalibrator(seed)
        collector = Collector(recalibrator.calibrator.lattice.values)
        return Session(recalibrator, collector, Scale(self.scale or "probability"), seed)


def open_session(options: Options, stored: Session | None) -> Session:
    """Return the stored session if there is one and it is what the options ask for."""
    if stored is None:
        return options.session()
    for name, found in _parameters(stored, options).items():
        asked = getattr(options, name)
        if asked is not None and asked != found:
            raise StateMismatch(f"{name} must be as in the state, {found!r}, got {asked!r}")
    return stored


def _parameters(stored: Session, options: Options) -> dict[str, Any]:
    recalibrator = stored.recalibrator
    found: dict[str, Any] = {
        "method": recalibrator.calibrator.name,
        "resolution": recalibrator.calibrator.resolution,
        "buckets": recalibrator.buckets,
        "grid": recalibrator.calibrator.grid,
        "loss": recalibrator.certificate().loss_name,
        "prior": recalibrator.prior,
        "seed": stored.seed,
        "scale": stored.scale.kind,
    }
    if options.epsilon is not None:
        # Another epsilon that asks for the same sizes is as good.
        named = {name: found[name] for name in ("method", "grid", "loss")}
        made = replace(options, **named).recalibrator(0)
        same = (made.calibrator.resolution, made.buckets) == (found["resolution"], found["buckets"])
        found["epsilon"] = options.epsilon if same else None
    return found
