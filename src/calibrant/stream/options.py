"""How a recalibrator is asked for, and whether a stored one is what was asked for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.bounds.resolution import natural_grid
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.groups import GroupRecalibrator
from calibrant.losses import require_proper
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.registry import calibrators
from calibrant.stream.class_session import ClassSession
from calibrant.stream.failure import StateMismatch
from calibrant.stream.group_session import GroupSession
from calibrant.stream.number_options import number_session, refused_of_numbers, stored_numbers
from calibrant.stream.number_session import NumberSession
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import collector_for, inner, method_of

__all__ = ["DEFAULT", "METHODS", "Options", "open_session"]

SEED_BITS: Final = 53
"""Bits of a seed that is chosen here: as many as every reader of JSON keeps."""
DEFAULT: Final = Calibrant.kind
METHODS: Final = (DEFAULT, *calibrators.names())
"""What may be asked for by name, the default first."""
LOSSES: Final = ("squared", "log")
"""Losses under which the default compares its experts."""
SIZES: Final = ("resolution", "buckets", "grid", "loss", "prior")
ELSE: Final = "for Algorithm 1 alone choose a method such as foster_hart"
EPSILON: Final = f"calibrant keeps its grid, and its certificate says what it costs; {ELSE}"
PRIOR: Final = f"calibrant learns how far to trust the raw forecast; {ELSE}"
LOSS: Final = f"under these calibrant compares its experts; {ELSE}"
SAFE: Final = "only the method calibrant keeps a budget"
GROUPED: Final = "groups have a method of their own"
CLASSES: Final = "it is for one stream of probabilities"
VECTORS: Final = "the numbers of several classes must be probabilities"
ONE: Final = "several classes have no groups"
NUMBER_SIZES: Final = ("resolution", "prior")
NUMBERS: Final = "levels are of quantiles or normal distributions"


@dataclass(frozen=True)
class Options:
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
    group: tuple[str, ...] = ()
    proba: tuple[str, ...] = ()
    raw_safe: float | None = None
    quantiles: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()

    def recalibrator(self, seed: int) -> Recalibrator:
        """Return a new recalibrator.

        >>> type(Options().recalibrator(1)).__name__
        'Calibrant'
        >>> Options(method="foster_hart", epsilon=0.1).recalibrator(1).buckets
        15
        """
        method = check.choice(self.method or DEFAULT, "method", METHODS)
        if method == DEFAULT:
            return Calibrant(seed=seed, raw_safe=self.raw_safe, **self._of_default())
        self._refuse({"raw_safe": SAFE})
        if self.epsilon is None:
            return Recalibrator(method, seed=seed, **self._given)
        return Recalibrator.from_epsilon(self.epsilon, method=method, seed=seed, **self._given)

    @property
    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SIZES if getattr(self, name) is not None}

    def _of_default(self) -> dict[str, Any]:
        """Return the default's options; refuse what only other methods know."""
        self._refuse({"epsilon": EPSILON, "prior": PRIOR})
        given = self._given
        loss = require_proper(given.get("loss", "squared"))
        if loss.name not in LOSSES:
            known = " or ".join(map(repr, LOSSES))
            raise InvalidInput(f"loss must be {known}: {LOSS}, got {loss.name!r}")
        return {"grid": natural_grid(loss)} | given

    def _refuse(self, refused: dict[str, str]) -> None:
        for name, told in refused.items():
            if getattr(self, name) not in (None, ()):
                raise InvalidInput(f"{name} must be left out: {told}, got {getattr(self, name)!r}")

    def _group_session(self, seed: int) -> GroupSession:
        self._refuse(dict.fromkeys(("method", "epsilon", "loss", "raw_safe"), GROUPED))
        made = GroupRecalibrator(seed=seed, **self._given)
        scale = Scale(self.scale or "probability")
        return GroupSession(made, collector_for(made), scale, seed, columns=self.group)

    def _class_session(self, seed: int) -> ClassSession:
        self._refuse({"scale": VECTORS, "epsilon": CLASSES, "raw_safe": CLASSES})
        method = check.choice(self.method or DEFAULT, "method", METHODS)
        alone = {"engine": "recalibrator", "method": method}
        options = self._of_default() if method == DEFAULT else alone | self._given
        return ClassSession.start(self.proba, options, seed)

    def _number_session(self, seed: int) -> NumberSession:
        self._refuse(refused_of_numbers(self.method))
        sizes: dict[str, Any] = {n: v for n, v in self._given.items() if n in NUMBER_SIZES}
        columns = self.quantiles, self.normal, self.levels
        return number_session(*columns, self.method, seed, sizes)

    def session(self) -> Session:
        """Return a new session; without a seed one is chosen."""
        seed = secrets.randbits(SEED_BITS) if self.seed is None else self.seed
        if self.quantiles or self.normal:
            return self._number_session(seed)
        self._refuse({"levels": NUMBERS})
        if self.group and self.proba:
            raise InvalidInput(f"group must be left out: {ONE}, got {','.join(self.group)!r}")
        if self.group:
            return self._group_session(seed)
        if self.proba:
            return self._class_session(seed)
        made = self.recalibrator(seed)
        return Session(made, collector_for(made), Scale(self.scale or "probability"), seed)


def open_session(options: Options, stored: Session | None) -> Session:
    """Return the stored session if there is one and it is what the options ask for."""
    if stored is None:
        return options.session()
    if isinstance(stored, NumberSession):
        options._refuse(refused_of_numbers(stored.recalibrator.method))
        stored.name_columns(options.quantiles, options.normal, options.levels)
    for name, found in _parameters(stored, options).items():
        asked = getattr(options, name)
        if asked not in (None, (), found):
            raise StateMismatch(f"{name} must be as in the state, {found!r}, got {asked!r}")
    return stored


def _parameters(stored: Session, options: Options) -> dict[str, Any]:
    if isinstance(stored, NumberSession):
        return stored_numbers(stored)
    recalibrator = inner(stored.recalibrator)
    found: dict[str, Any] = {
        "method": method_of(recalibrator),
        "resolution": recalibrator.calibrator.resolution,
        "buckets": recalibrator.buckets,
        "grid": recalibrator.calibrator.grid,
        "prior": recalibrator.prior,
        "raw_safe": getattr(recalibrator, "raw_safe", None),
        "seed": stored.seed,
        "scale": stored.scale.kind,
        "group": stored.columns if isinstance(stored, GroupSession) else (),
        "proba": stored.columns if isinstance(stored, ClassSession) else (),
        **dict.fromkeys(("quantiles", "normal", "levels"), ()),
    }
    if isinstance(recalibrator, Recalibrator):
        found["loss"] = recalibrator.certificate().loss_name
    if options.epsilon is not None:
        # Another epsilon that asks for the same sizes is as good.
        named = {name: found[name] for name in ("method", "grid", "loss")}
        made = replace(options, **named).recalibrator(0)
        same = (made.calibrator.resolution, made.buckets) == (found["resolution"], found["buckets"])
        found["epsilon"] = options.epsilon if same else None
    return found
