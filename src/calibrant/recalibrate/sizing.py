"""How fine a recalibrator must be for a target accuracy."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.bounds.horizon import first_size, natural_grid, stride_for, target
from calibrant.calibrators import Account, Anchored, Calibrator
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, LossLike, get_loss, loss_names, registered_name, require_proper
from calibrant.registry import calibrators
from calibrant.transforms import ExpertMixture, Identity, Transform

FOREVER: Final = 10**30
"""Rounds after which what falls with them has fallen."""
MOST: Final = 4_096
LONG: Final = 10**15
"""Visits of a cell after which what falls with them has fallen."""
SLACK: Final = 1.0 + 1e-9
SIZES: Final = ("resolution", "buckets")


def sized(
    epsilon: float, loss: LossLike, method: str, options: dict[str, Any], *, swaps: bool = False
) -> dict[str, Any]:
    """Return the options of a recalibrator whose regret tends to at most ``epsilon``.

    What the options say is kept.  If neither resolution nor buckets are among them, both
    are :func:`calibrant.bounds.resolution_sharp` on the grid at hand; what is left open
    is that, or larger if it must make up for the other or for a rule that needs more.  If that
    cannot be, or the method has no bound, the wish is refused.  With ``swaps`` a transform in front
    may ask for the first grid after a swap of models.

    Examples
    --------
    >>> sized(0.1, "squared", "foster_hart", {})
    {'resolution': 15, 'buckets': 15, 'grid': 'endpoints', 'loss': 'squared'}
    >>> sized(0.1, "squared", "regret_matching", {"resolution": 10})
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: epsilon must be at least 0.132222, the limit of the regret
    with resolution 10 and buckets 15 on the grid 'endpoints', got 0.1
    """
    found, e = _carried(loss), target(epsilon)
    grid = options.get("grid") or natural_grid(found)
    size = bounds.resolution_sharp(epsilon, found, grid)
    chosen = dict.fromkeys(SIZES, size) | {"grid": grid, "loss": found.name} | options
    told = found, method, swaps
    if _limit(chosen, *told) > e * SLACK:
        chosen |= _grown(chosen, *told, e, [name for name in SIZES if name not in options])
    limit = _limit(chosen, *told)
    if limit > e * SLACK:
        sizes = " and ".join(f"{name} {chosen[name]}" for name in SIZES)
        least = f"{limit:.6g}, the limit of the regret with {sizes} on the grid {grid!r}"
        raise InvalidInput(f"epsilon must be at least {least}, got {epsilon!r}")
    return chosen


def sized_chain(
    epsilon: float, loss: str, method: str, transform: Transform, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a chain whose regret to the raw forecast tends to at most ``epsilon``.

    What the mixture may lose to the raw forecast for ever, by sharing weights, is taken off first;
    the last stage gets the rest.
    """
    if not (isinstance(transform, ExpertMixture) and Identity() in transform.experts):
        raise InvalidInput(f"experts must hold Identity() to promise an epsilon, got {transform!r}")
    left = target(epsilon) + math.log1p(-transform.share) / (transform.eta or 1.0)
    if left <= 0.0:
        spent = target(epsilon) - left
        raise InvalidInput(
            f"epsilon must be above {spent:.6g}, what sharing costs, got {epsilon!r}"
        )
    if not issubclass(calibrators.get(method), Anchored) or loss != "squared":
        return sized(left, loss, method, options, swaps=transform.swaps)
    least = options.get("resolution", 1)
    most = options.get("resolution", MOST)
    size = first_size(
        lambda n: _anchored_limit(method, options | {"resolution": n}, transform.swaps),
        lambda limit: limit <= left * SLACK,
        least=least,
        most=most,
    )
    if size is None:
        raise InvalidInput(
            f"epsilon must be one that resolution {most} can promise, got {epsilon!r}"
        )
    return {"loss": loss} | options | {"resolution": size}


def _anchored_limit(method: str, options: dict[str, Any], swaps: bool) -> float:
    """Return what the draws of an anchored rule may lose to their anchors for ever."""
    rule = rule_with(method, options)
    counts = np.full((1, rule.lattice.cells), LONG)
    blocks = rule.worst_blocks(counts, swaps=swaps)
    account = Account(counts, counts // 2, 0, np.array([0.5]), blocks)
    bound = rule.regret(account)
    return math.inf if bound is None else float(bound)


def _carried(loss: LossLike) -> Loss:
    found = require_proper(loss)
    if registered_name(found) is None:
        known = ", ".join(repr(name) for name in loss_names() if get_loss(name).proper)
        raise InvalidInput(
            f"loss must be one of {known}, which a recalibrator can add up, got {found.name!r}; "
            "calibrant.bounds.resolution_sharp gives the size for any proper loss"
        )
    return found


def _grown(
    chosen: dict[str, Any], loss: Loss, method: str, swaps: bool, epsilon: float, open: list[str]
) -> dict[str, int]:
    """Return larger sizes that do, for those that are left open."""
    stride = stride_for(loss) if "buckets" in open else 1
    size = first_size(
        lambda k: _limit(chosen | dict.fromkeys(open, k * stride), loss, method, swaps),
        lambda limit: limit <= epsilon,
        least=2,
        most=MOST if open else 2,
    )
    return {} if size is None else dict.fromkeys(open, size * stride)


def _limit(chosen: dict[str, Any], loss: Loss, method: str, swaps: bool) -> float:
    rule, buckets = rule_with(method, chosen), chosen["buckets"]
    bound = rule.bound(FOREVER, buckets=buckets, swaps=swaps)
    if bound is None:
        raise InvalidInput(f"method must have a bound to promise an epsilon, got {method!r}")
    low, high = (float(rule.lattice.values[k]) for k in (0, -1))
    return bounds.regret_bound(bound, loss, buckets, low=low, high=high).value


def rule_with(method: str, options: dict[str, Any]) -> Calibrator:
    """Return a rule with those options that are its own."""
    made = calibrators.get(method)
    names = {field.name for field in dataclasses.fields(made)}
    rule: Calibrator = made(**{name: options[name] for name in names & options.keys()})
    return rule
