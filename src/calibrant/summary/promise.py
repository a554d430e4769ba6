"""Who made the forecasts, and what was promised about them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from calibrant._version import __version__
from calibrant.classes import ClassCertificate, OneVsRest, TopLabel
from calibrant.groups import GroupCertificate, GroupRecalibrator
from calibrant.recalibrate import Calibrant, Certificate, Chain, Link, Recalibrator
from calibrant.recalibrate.chain import Budget
from calibrant.summary.collector import Collector
from calibrant.summary.story import VERSION

__all__ = [
    "Engine",
    "collector_for",
    "identity",
    "inner",
    "method_of",
    "parameters",
    "promised",
]

Engine: TypeAlias = Recalibrator | GroupRecalibrator | OneVsRest | TopLabel
"""Whoever makes forecasts."""
DIGITS: Final = 1000
GROUPED: Final = "in expectation over the draws, in each group at once"


def method_of(engine: Engine) -> str:
    """Return the name by which forecasts were asked for.

    Examples
    --------
    >>> method_of(Calibrant()), method_of(Recalibrator("blackwell")), method_of(TopLabel(9))
    ('calibrant', 'blackwell', 'top-label')
    """
    if isinstance(engine, (Calibrant, OneVsRest, TopLabel)):
        return engine.kind
    return engine.calibrator.name


def inner(engine: Engine) -> Recalibrator | GroupRecalibrator:
    """Return who draws: the engine itself, or those of its classes as they begin."""
    return engine.template if isinstance(engine, (OneVsRest, TopLabel)) else engine


def collector_for(engine: Engine) -> Collector:
    """Return who can follow the forecasts of an engine.

    With a budget for losses beyond the raw forecast, raw forecasts may be announced as well,
    which are any numbers: they are followed to three digits (see :meth:`Collector.nearest`).

    Examples
    --------
    >>> len(collector_for(Calibrant()).values), len(collector_for(Calibrant(raw_safe=0.1)).values)
    (21, 1001)
    """
    drawing = inner(engine)
    values = drawing.calibrator.lattice.values
    if getattr(drawing, "raw_safe", None) is not None:
        values = np.unique(np.concatenate([values, np.arange(DIGITS + 1) / DIGITS]))
    return Collector(values)


def identity(engine: Engine, seed: int | None) -> dict[str, Any]:
    """Return what a summary begins with."""
    drawing = inner(engine)
    return {
        "version": VERSION,
        "calibrant": __version__,
        "method": method_of(engine),
        "calibrator": drawing.calibrator.name,
        "resolution": drawing.calibrator.resolution,
        "buckets": drawing.buckets,
        "seed": seed,
    }


def parameters(engine: Engine, seed: int | None) -> dict[str, Any]:
    """Return what it takes to make the engine again."""
    drawing = inner(engine)
    rule, own = drawing.calibrator, dict[str, Any](method=method_of(engine))
    if isinstance(engine, (OneVsRest, TopLabel)):
        own |= {"classes": engine.classes, "engine": engine.engine}
    prior = {"prior": drawing.prior} if rule.prior_in_cells else {}
    told = {**rule.parameters, "buckets": drawing.buckets, **prior}
    if isinstance(drawing, Recalibrator):
        loss = drawing.certificate().loss_name
        own, told = own | _front(drawing, loss), told | {"loss": loss}
    return {**own, **told, "seed": seed}


def _front(recalibrator: Recalibrator, loss: str) -> dict[str, Any]:
    """Return the stages of a chain; the experts only if they are not the usual ones."""
    if not isinstance(recalibrator, Calibrant):
        return {}
    usual = recalibrator.front == Calibrant(loss=loss).front
    experts = {} if usual else {"experts": repr(recalibrator.front)}
    safe = {} if recalibrator.raw_safe is None else {"raw_safe": recalibrator.raw_safe}
    return {"calibrator": recalibrator.calibrator.name, **experts, **safe}


def promised(certificate: Certificate | GroupCertificate | ClassCertificate) -> dict[str, Any]:
    """Return the bounds, the engine's own account, and the chain if there is one."""
    if isinstance(certificate, Certificate):
        return _of_one(certificate)
    return _of_many(certificate)


def _of_many(certificate: GroupCertificate | ClassCertificate) -> dict[str, Any]:
    """Return what is known of all groups or classes together; the rest is told part by part."""
    bounds: dict[str, Any] = {"c1": None, "c2": None, "regret": None, "assumption": GROUPED}
    if isinstance(certificate, GroupCertificate):
        delay, loss = certificate.delay, "squared"
        regret = certificate.loss - certificate.raw_loss
    else:
        parts = list(certificate.parts.values())
        bounds |= {"c1": certificate.bound("C1"), "c2": certificate.bound("C2")}
        bounds["assumption"] = next((b.assumption for p in parts for b in p.bounds), None)
        delay, loss = max((part.delay for part in parts), default=0), "squared"
        rounds = sum(part.rounds for part in parts)
        regret = sum(part.regret * part.rounds for part in parts) / max(rounds, 1)
    account = {name: getattr(certificate, name) for name in ("rounds", "open", "expired")}
    errors = {"c1": certificate.c1, "c2": certificate.c2, "loss": loss, "regret": regret}
    return {
        "bound": bounds,
        "certificate": {**account, "delay": delay, **errors},
        "chain": None,
        "certificate_holds": certificate.holds,
    }


def _of_one(certificate: Certificate) -> dict[str, Any]:
    chain = certificate if isinstance(certificate, Chain) else None
    stated = [bound.assumption for bound in certificate.bounds]
    return {
        "bound": {
            "c1": certificate.bound("C1"),
            "c2": certificate.bound("C2"),
            "regret": certificate.bound("regret") if chain is None else chain.raw_bound,
            "assumption": stated[0] if stated else None,
        },
        "certificate": {
            "rounds": certificate.rounds,
            "open": certificate.open,
            "expired": certificate.expired,
            "delay": certificate.delay,
            "c1": certificate.c1,
            "c2": certificate.c2,
            "loss": certificate.loss_name,
            "regret": certificate.regret,
        },
        "chain": None if chain is None else _chain(chain),
        "certificate_holds": _holds(certificate),
    }


def _holds(certificate: Certificate) -> bool | None:
    """Return whether the bounds that apply hold; of late outcomes the chain says nothing."""
    if isinstance(certificate, Chain) and certificate.delay > 0 and not certificate.bounds:
        return None if certificate.budget is None else certificate.budget.holds
    return certificate.holds


def _chain(chain: Chain) -> dict[str, Any]:
    """Return the links from the draw back to the raw forecast, measured beside bound."""
    return {
        "middle_loss": chain.middle_loss,
        "middle_regret": chain.middle_regret,
        "middle_bound": chain.bound("regret"),
        "raw_bound": chain.raw_bound,
        "links": [_link(each, late=chain.delay > 0) for each in chain.links],
        "budget": None if chain.budget is None else _budget(chain.budget),
    }


def _budget(budget: Budget) -> dict[str, Any]:
    mean = budget.excess / max(budget.rounds, 1)
    return {
        "epsilon": budget.epsilon,
        "excess": mean,
        "rounds": budget.rounds,
        "aside": budget.aside,
        "c2_bound": budget.c2_bound,
        "holds": budget.holds,
    }


def _link(link: Link, *, late: bool) -> dict[str, Any]:
    """Return a link; under late outcomes the theorem about it says nothing."""
    applies = {"bound": None, "holds": None} if late else {"holds": link.holds}
    return {**vars(link), **applies}
