"""Events: one probability a row, and outcomes that are 0 or 1.

Who made the forecasts and what was promised about them is told here too, for groups and classes as
well.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from calibrant._version import __version__
from calibrant.bounds.game import probably
from calibrant.core.codec import kind_of
from calibrant.errors import CorruptState
from calibrant.kinds.binary.judgement import verdict
from calibrant.kinds.binary.service import Service
from calibrant.loading import load
from calibrant.recalibrate import Calibrant, Certificate, Chain, Recalibrator
from calibrant.recalibrate.chain import Link
from calibrant.summary import VERSION, Account, Breakdown, Collector, Engine, Parts, Told, measured
from calibrant.summary.kind import kinds
from calibrant.summary.summary import Summary

__all__ = ["Binary", "inner", "method_of", "of_many", "step_of"]

LEVELS: Final = "levels are of quantiles or normal distributions"
SHOWN: Final = 12
"""Groups or classes that are drawn: those with the most rounds."""


DIGITS: Final = 1000
SAME: Final = ("rounds", "open", "expired", "delay", "c1", "c2")
ACCOUNT: Final = {**dict(zip(SAME, SAME, strict=True)), "loss": "loss_name", "regret": "regret"}
"""What is told of a certificate, and what it is called there."""


def inner(engine: Engine) -> Any:
    """Return who draws: the engine itself, or those of its classes as they begin."""
    return getattr(engine, "template", engine)


def step_of(engine: Engine) -> float:
    """Return the distance of neighbours on the grid of draws.

    >>> step_of(Recalibrator(resolution=10))
    0.1
    """
    return 1.0 / float(inner(engine).calibrator.resolution)


def method_of(engine: Engine) -> str:
    """Return the name by which forecasts of one column were asked for.

    Examples
    --------
    >>> method_of(Calibrant()), method_of(Recalibrator("blackwell"))
    ('calibrant', 'blackwell')
    """
    return str(engine.kind if isinstance(engine, Calibrant) else engine.calibrator.name)


def parameters(drawing: Engine, own: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Return what is needed to make an engine again; ``own`` is what its kind adds."""
    rule = drawing.calibrator
    prior = {"prior": drawing.prior} if rule.prior_in_cells else {}
    told = {**rule.parameters, "buckets": drawing.buckets, **prior}
    if isinstance(drawing, Recalibrator):
        loss = drawing.certificate().loss_name
        own, told = own | _stages(drawing, loss), told | {"loss": loss}
    return {**own, **told, "seed": seed}


def _stages(recalibrator: Recalibrator, loss: str) -> dict[str, Any]:
    """Return the stages of a chain; the experts only if they are not the usual ones."""
    if not isinstance(recalibrator, Calibrant):
        return {}
    context = bool(recalibrator.spec.slots)
    same = Calibrant(method=recalibrator.calibrator, loss=loss, context=context)
    usual = recalibrator.transform == same.transform
    reads = {"context": True} if context else {}
    experts = reads if usual else {"experts": repr(recalibrator.transform)}
    safe = {} if recalibrator.raw_safe is None else {"raw_safe": recalibrator.raw_safe}
    return {"calibrator": recalibrator.calibrator.name, **experts, **safe}


def limits(certificate: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return what is promised of this run, how likely that may fail, and from when on it says more.

    ``values`` are the bounds by quantity; None where there is none, or too early for one.
    """
    told = any(value is not None for value in values.values())
    chance = {"failure": certificate.failure, "from_round": certificate.early}
    return {**values, "assumption": probably(certificate.failure) if told else None, **chance}


def of_many(certificate: Any, bounds: dict[str, Any], delay: int, regret: float) -> dict[str, Any]:
    """Return what is known of all groups or classes together; the rest is told part by part."""
    account = {name: getattr(certificate, name) for name in ("rounds", "open", "expired")}
    errors = {"c1": certificate.c1, "c2": certificate.c2, "loss": "squared", "regret": regret}
    found, holds = {**account, "delay": delay, **errors}, certificate.holds
    bounds = limits(certificate, {"c1": None, "c2": None, "regret": None} | bounds)
    return {"bound": bounds, "certificate": found, "chain": None, "certificate_holds": holds}


def _chain(chain: Chain) -> dict[str, Any]:
    """Return the links from the draw back to the raw forecast, measured beside bound."""
    spent = chain.budget
    budget: dict[str, Any] | None = None
    if spent is not None:
        mean = spent.excess / max(spent.rounds, 1)
        budget = {"epsilon": spent.epsilon, "excess": mean, "rounds": spent.rounds}
        budget |= {"fallbacks": spent.fallbacks, "c2_bound": spent.c2_bound, "holds": spent.holds}
    mixed = {"mixed_loss": chain.mixed_loss, "mixed_regret": chain.mixed_regret}
    own = Certificate.promised(chain, "regret")
    bounds = {"mixed_bound": own, "raw_bound": chain.promised("regret")}
    links = [_link(each, chain.most_regret) for each in chain.links]
    return {**mixed, **bounds, "links": links, "budget": budget}


def _link(link: Link, most: float) -> dict[str, Any]:
    """Return the mixture beside an expert; a bound that says nothing is none."""
    silent = link.bound is None or link.bound >= most
    return vars(link) | ({"bound": None, "holds": None} if silent else {"holds": link.holds})


@kinds.add
class Binary:
    """One probability a row, and outcomes that are 0 or 1.

    Groups and classes, which are probabilities too, override what is theirs.

    context COL,COL
        Columns of features, numbers or words, for an expert that reads them. Only with
        calibrant, and with --raw.
    """

    name: ClassVar[str] = "binary"
    precedence: ClassVar[int] = 0
    options: ClassVar[dict[str, str]] = {"context": "columns"}
    words: ClassVar[tuple[str | None, ...]] = (None,)
    summary_type: ClassVar[type[Summary]] = Summary
    service: ClassVar[Service] = Service()
    refused: ClassVar[dict[str, str]] = {"levels": LEVELS}
    """Options that make no sense here, and why."""

    # -------------------------------------------------------------------- streams

    @property
    def session_type(self) -> type[Any]:
        """Return the class of its sessions; needs the extra ``cli``."""
        from calibrant.kinds.binary.session import BinarySession

        return BinarySession

    def wants(self, asked: Any) -> bool:
        """Take whatever no other kind wants."""
        return True

    def types(self, columns: Any) -> dict[str, str]:
        """Return which columns hold numbers."""
        return {columns.raw: "double", columns.outcome: "int8"}

    def make(self, options: Any, seed: int | None) -> Engine:
        """Return a new recalibrator: the default, or Algorithm 1 with the calibrator asked for."""
        from calibrant.kinds.binary.session import make

        options.refuse(self.refused)
        return make(options, seed)

    def session(self, options: Any, seed: int | None) -> Any:
        """Return a new session."""
        return self.session_type.start(self.make(options, seed), options, seed)

    def read(self, data: bytes, secret: bytes | None = None) -> Engine:
        """Return a recalibrator that was stored."""
        if (kind := kind_of(data)) not in (Calibrant.kind, Recalibrator.kind):
            known = f"{Calibrant.kind!r} or {Recalibrator.kind!r}"
            raise CorruptState(f"state must be of kind {known}, got {kind!r}")
        return load(data, secret=secret)

    def around(self, data: bytes, secret: bytes | None = None) -> Any | None:
        """Return a session of a recalibrator that was stored alone."""
        return self.session_type.around(self.read(data, secret))

    # ------------------------------------------------------------------ summaries

    def makes(self, recalibrator: Engine) -> bool:
        """Say whether a recalibrator is of this kind."""
        return isinstance(recalibrator, Recalibrator)

    def method(self, recalibrator: Engine) -> str:
        """Return the name by which forecasts were asked for."""
        return method_of(recalibrator)

    def collector(self, recalibrator: Engine) -> Collector:
        """Return who follows the values that are drawn from.

        Raw forecasts, which a budget may announce as well, are followed to three digits.
        """
        drawing = inner(recalibrator)
        values = drawing.calibrator.lattice.values
        if getattr(drawing, "raw_safe", None) is not None:
            values = np.unique(np.concatenate([values, np.arange(DIGITS + 1) / DIGITS]))
        return Collector(values)

    def summarise(self, collector: Any, recalibrator: Engine, told: Told) -> Summary:
        """Return what was collected as a summary."""
        drawing, seen = inner(recalibrator), told.breakdown
        rule, method = drawing.calibrator, self.method(recalibrator)
        own = {"calibrator": rule.name, "resolution": rule.resolution, "buckets": drawing.buckets}
        made_by = {"version": VERSION, "calibrant": __version__, "method": method}
        account = Account(
            {**made_by, **own, "seed": told.seed},
            self.promised(recalibrator.certificate()),
            parameters(drawing, {"method": method, **self.own(recalibrator)}, told.seed),
            lambda rounds: self.bound(recalibrator, rounds),
            None if seen is None else self.parts(seen, recalibrator),
        )
        return measured(collector, account, told)

    def own(self, recalibrator: Engine) -> dict[str, Any]:
        """Return the settings that only recalibrators of this kind have."""
        return {}

    def promised(self, certificate: Any) -> dict[str, Any]:
        """Return the bounds, the recalibrator's own account, and the chain if there is one."""
        chain = certificate if isinstance(certificate, Chain) else None
        bounds = {name.lower(): certificate.promised(name) for name in ("C1", "C2", "regret")}
        return {
            "bound": limits(certificate, bounds),
            "certificate": {name: getattr(certificate, key) for name, key in ACCOUNT.items()},
            "chain": None if chain is None else _chain(chain),
            "certificate_holds": certificate.holds,
        }

    def bound(self, recalibrator: Engine, rounds: int) -> tuple[float, float]:
        """Return what the theorem promises about C1 and C2 after that many rounds."""
        sizes = {"buckets": recalibrator.buckets, "prior": recalibrator.prior}
        bound = recalibrator.calibrator.bound(rounds, **sizes, swaps=recalibrator.spec.swaps)
        if bound is None or bound.quantity not in ("C1", "C2"):
            return math.nan, math.nan
        return bound.as_c1().value, bound.value if bound.quantity == "C2" else math.nan

    def parts(self, breakdown: Breakdown, recalibrator: Engine) -> Parts:
        """Return what was seen in each part, with curves of the largest."""
        curves: dict[str, Any] = {
            name: (breakdown.curve(name, 0), breakdown.curve(name, 1))
            for name in breakdown.largest(SHOWN)
        }
        rule, rows = inner(recalibrator).calibrator, []
        for row in self.rows(breakdown, recalibrator):
            raw, now = (breakdown.curve(row.name, series, bands=False) for series in (0, 1))
            told = verdict(row, raw, now, rule.name, rule.resolution)
            rows.append(replace(row, verdict=told))
        return Parts(breakdown.kind, rows, curves)

    def rows(self, breakdown: Breakdown, recalibrator: Engine) -> list[Any]:
        """Return what was measured in each part."""
        return breakdown.parts()

    @property
    def view(self) -> Any:
        """Return how summaries are shown."""
        from calibrant.kinds.binary import view

        return view
