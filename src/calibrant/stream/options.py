"""How a recalibrator is asked for, and whether a stored one is what was asked for."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from calibrant.errors import InvalidInput
from calibrant.recalibrate import Calibrant
from calibrant.registry import calibrators
from calibrant.stream.columns import KindColumns
from calibrant.stream.failure import StateMismatch
from calibrant.stream.session import Session
from calibrant.summary import Engine, kinds

SEED_BITS: Final = 53
"""Bits of a seed that is chosen here: as many as every reader of JSON keeps."""
DEFAULT: Final = Calibrant.kind
METHODS: Final = (DEFAULT, *calibrators.names())
"""What may be asked for by name, the default first."""
LOSSES: Final = ("squared", "log")
"""Losses under which the default compares its experts."""


@dataclass(frozen=True)
class Options(KindColumns):
    """What was asked for, None where the user did not say.

    ``method`` is ``"calibrant"``, the default, or the name of a calibrator for Algorithm 1 on its
    own.  ``epsilon``, for the latter, chooses resolution and buckets so that the regret under
    ``loss`` tends to at most that.  ``group`` names columns of groups, which have a method of
    their own; ``proba`` the columns of several classes, each with a recalibrator as asked for.
    ``quantiles``, or ``normal`` (mean and standard deviation), name the columns of forecasts of
    numbers, and ``levels`` those of the quantiles.
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
    raw_safe: float | None = None
    levels: tuple[float, ...] = ()

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of some options that the user did say."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Refuse options that make no sense; ``refused`` says why."""
        for name, told in refused.items():
            if getattr(self, name) not in (None, ()):
                raise InvalidInput(f"{name} must be left out: {told}, got {getattr(self, name)!r}")

    def recalibrator(self, seed: int) -> Engine:
        """Return a new recalibrator.

        >>> type(Options().recalibrator(1)).__name__
        'Calibrant'
        >>> Options(method="foster_hart", epsilon=0.1).recalibrator(1).buckets
        15
        """
        return kinds.wanted(self).make(self, seed)

    def session(self) -> Any:
        """Return a new session; without a seed one is chosen."""
        seed = secrets.randbits(SEED_BITS) if self.seed is None else self.seed
        return kinds.wanted(self).session(self, seed)


def open_session(options: Options, stored: Session | None) -> Session:
    """Return the stored session if there is one and it is what the options ask for."""
    if stored is None:
        made: Session = options.session()
        return made
    for name, found in stored.asked(options).items():
        asked = getattr(options, name)
        if asked not in (None, (), found):
            raise StateMismatch(f"{name} must be as in the state, {found!r}, got {asked!r}")
    return stored
