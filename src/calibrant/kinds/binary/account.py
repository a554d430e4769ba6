"""Who made the forecasts, and what was promised about them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant._version import __version__
from calibrant.recalibrate import Calibrant, Certificate, Chain, Link, Recalibrator
from calibrant.recalibrate.chain import Budget
from calibrant.summary import VERSION, Collector, Engine

DIGITS: Final = 1000
SAME: Final = ("rounds", "open", "expired", "delay", "c1", "c2")
ACCOUNT: Final = {**dict(zip(SAME, SAME, strict=True)), "loss": "loss_name", "regret": "regret"}
"""What is told of a certificate, and what it is called there."""


def inner(engine: Engine) -> Any:
    """Return who draws: the engine itself, or those of its classes as they begin."""
    return getattr(engine, "template", engine)


def method_of(engine: Engine) -> str:
    """Return the name by which forecasts of one column were asked for.

    Examples
    --------
    >>> method_of(Calibrant()), method_of(Recalibrator("blackwell"))
    ('calibrant', 'blackwell')
    """
    return str(engine.kind if isinstance(engine, Calibrant) else engine.calibrator.name)


def collector_of(engine: Engine) -> Collector:
    """Return who follows the values that an engine draws from.

    Raw forecasts, which a budget may announce as well, are followed to three digits.
    """
    drawing = inner(engine)
    values = drawing.calibrator.lattice.values
    if getattr(drawing, "raw_safe", None) is not None:
        values = np.unique(np.concatenate([values, np.arange(DIGITS + 1) / DIGITS]))
    return Collector(values)


def identity(engine: Engine, method: str, seed: int | None) -> dict[str, Any]:
    """Return what a summary begins with."""
    drawing = inner(engine)
    return {
        "version": VERSION,
        "calibrant": __version__,
        "method": method,
        "calibrator": drawing.calibrator.name,
        "resolution": drawing.calibrator.resolution,
        "buckets": drawing.buckets,
        "seed": seed,
    }


def parameters(engine: Engine, own: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Return what it takes to make an engine again; ``own`` is what its kind adds."""
    drawing = inner(engine)
    rule = drawing.calibrator
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
    usual = recalibrator.transform == Calibrant(loss=loss).transform
    experts = {} if usual else {"experts": repr(recalibrator.transform)}
    safe = {} if recalibrator.raw_safe is None else {"raw_safe": recalibrator.raw_safe}
    return {"calibrator": recalibrator.calibrator.name, **experts, **safe}


def of_many(certificate: Any, bounds: dict[str, Any], delay: int, regret: float) -> dict[str, Any]:
    """Return what is known of all groups or classes together; the rest is told part by part."""
    account = {name: getattr(certificate, name) for name in ("rounds", "open", "expired")}
    errors = {"c1": certificate.c1, "c2": certificate.c2, "loss": "squared", "regret": regret}
    return {
        "bound": {"c1": None, "c2": None, "regret": None} | bounds,
        "certificate": {**account, "delay": delay, **errors},
        "chain": None,
        "certificate_holds": certificate.holds,
    }


def of_one(certificate: Certificate) -> dict[str, Any]:
    """Return the bounds, the engine's own account, and the chain if there is one."""
    chain = certificate if isinstance(certificate, Chain) else None
    stated = [bound.assumption for bound in certificate.bounds]
    return {
        "bound": {
            "c1": certificate.bound("C1"),
            "c2": certificate.bound("C2"),
            "regret": certificate.bound("regret") if chain is None else chain.raw_bound,
            "assumption": stated[0] if stated else None,
        },
        "certificate": {name: getattr(certificate, key) for name, key in ACCOUNT.items()},
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
        "middle_loss": chain.mixed_loss,
        "middle_regret": chain.mixed_regret,
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
        "aside": budget.fallbacks,
        "c2_bound": budget.c2_bound,
        "holds": budget.holds,
    }


def _link(link: Link, *, late: bool) -> dict[str, Any]:
    """Return a link; under late outcomes the theorem about it says nothing."""
    applies = {"bound": None, "holds": None} if late else {"holds": link.holds}
    return {**vars(link), **applies}
