"""``calibrant methods`` and ``calibrant bound``: what methods are, and what they promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.bounds.horizon import natural_grid
from calibrant.calibrators import Account, Calibrator
from calibrant.cli import screen
from calibrant.cli.options import spread
from calibrant.core import check
from calibrant.core.arrays import Words
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, get_loss, require_proper
from calibrant.recalibrate import Calibrant
from calibrant.registry import calibrators
from calibrant.report.tables import printed
from calibrant.stream.session import DEFAULT, LOSSES, Options
from calibrant.transforms import ExpertMixture, Identity, Transform

COLUMNS: Final = ("bound", "cost", "reference")
WIDTH: Final = 250
ACCURACY: Final = "E loss <= mixture's + h^2 + (h^2 + K(1 + ln(T/K))/T)/c"
"""Of the draws over what comes in, under the squared loss: calibrant.bounds.anchored_regret."""


@dataclass(frozen=True)
class Told:
    """How to tell it."""

    as_json: bool = False


@spread
def methods(told: Told) -> None:
    """List the methods: what each promises and what it costs.

    The first is the default, whose guarantees form a chain; the others are the calibrators of
    Algorithm 1.

    \b
    Example:
      calibrant methods --json
    """
    rows = [_default()]
    for name in calibrators.names():
        rule = calibrators.get(name)
        rows.append({"name": name, **_told(rule), "summary": _first_line(rule)})
    if told.as_json:
        screen.tell_json(rows)
        return
    cells = [line for row in rows for line in _lines(row)]
    screen.show(dict.fromkeys(("method", *COLUMNS), "left"), cells, width=WIDTH)


def _default() -> dict[str, Any]:
    """Return the row of the default, with the links of its chain."""
    made = Calibrant()
    rule, front = made.calibrator, made.transform
    last = {"link": "calibration", **_told(rule)}
    between = {**last, "link": "draws to mixture", "bound": ACCURACY}
    chain = [last, between, {"link": "mixture to experts", **_told(front)}]
    return {"name": DEFAULT, **_told(rule), "summary": _first_line(Calibrant), "chain": chain}


def _told(part: Calibrator | type[Calibrator] | Transform) -> dict[str, str]:
    names = ("assumption", "cost", "reference")
    return {"bound": part.guarantee, **{name: getattr(part, name) for name in names}}


def _lines(row: dict[str, Any]) -> list[list[str]]:
    """Return the lines of a method in the table, and one for each link of a chain."""
    if "chain" not in row:
        return [[row["name"], *(row[key] for key in COLUMNS)]]
    links = [[f"  {each['link']}", *(each[key] for key in COLUMNS)] for each in row["chain"]]
    return [[row["name"], "experts first, calibrate last: a chain", "", ""], *links]


def _first_line(made: type) -> str:
    return (made.__doc__ or "").partition("\n")[0]


NOTHING: Final = dict.fromkeys(("c1", "c2", "regret", "horizon", "theorem"))
"""Of a method that promises nothing."""
LINKS: Final = {
    "to_mixture": "of the draws over the mixture",
    "mixture_to_raw": "of the mixture over the raw forecast",
}


@dataclass(frozen=True)
class Asked:
    """What to promise, under which loss, and after how long.

    rounds T
        After how many rounds.
    """

    epsilon: float | None = None
    loss: str | None = None
    rounds: int = 100_000
    resolution: int | None = None
    buckets: int | None = None
    as_json: bool = False


@spread
def bound(asked: Asked) -> None:
    """Show what the theorems guarantee, and after how many rounds.

    With --epsilon, resolution and buckets are chosen so that the extra loss over the raw
    forecast tends to less than epsilon, and the table says after how many rounds it is there.
    The bounds of calibrant are those of its chain, at its own sizes unless told otherwise.

    \b
    Example:
      calibrant bound --epsilon 0.1 --loss squared --rounds 100000
    """
    epsilon, found = asked.epsilon, require_proper(asked.loss or "squared")
    size = 20 if epsilon is None else bounds.resolution_sharp(epsilon, found)
    N, M = asked.resolution or size, asked.buckets or size
    T, grid = check.whole(asked.rounds, "rounds", low=1), natural_grid(found)
    rows = [_default_row(found, T, asked.resolution, asked.buckets, epsilon)]
    rows += [_of_calibrator(name, N, grid, found, T, M, epsilon) for name in calibrators.names()]
    paper = _found(epsilon, lambda to: bounds.resolution_paper(to, found))
    sizes = {"rounds": T, "resolution": N, "buckets": M, "resolution_paper": paper}
    told = {"epsilon": epsilon, "loss": found.name, **sizes, "methods": rows}
    if asked.as_json:
        screen.tell_json(told)
    else:
        _print(told)


def _default_row(
    loss: Loss, rounds: int, resolution: int | None, buckets: int | None, epsilon: float | None
) -> dict[str, Any]:
    """Return the row of the default, whose bounds are those of a chain."""
    if loss.name not in LOSSES:
        known = " and ".join(LOSSES)
        return {"method": DEFAULT, **NOTHING, "assumption": f"for the losses {known} only"}
    made: Any = Options(resolution=resolution, buckets=buckets, loss=loss.name).recalibrator(0)
    promised = made.calibrator.bound(rounds, buckets=made.buckets, swaps=made.spec.swaps)
    row = _row(promised, rounds, epsilon, lambda after: chained(made, after)["to_raw"])
    return {"method": DEFAULT, **row, "chain": chained(made, rounds)}


def _of_calibrator(
    name: str, resolution: int, grid: str, loss: Loss, rounds: int, buckets: int, to: float | None
) -> dict[str, Any]:
    """Return the row of a calibrator; one that has no such grid promises nothing on it."""
    try:
        rule = calibrators.get(name)(resolution=resolution, grid=grid)
    except InvalidInput as error:
        return {"method": name, **NOTHING, "assumption": str(error)}
    promised = rule.bound(rounds, buckets=buckets)
    if promised is None:
        return {"method": name, **NOTHING, "assumption": rule.assumption}
    row = _row(promised, rounds, to, lambda after: draw_to_front(rule, loss, after, buckets))
    return {"method": name, **row}


def _row(
    promised: Any, rounds: int, epsilon: float | None, regret: Callable[[int], float]
) -> dict[str, Any]:
    squared = promised is not None and promised.quantity.endswith("C2")
    return {
        "c1": None if promised is None else promised.as_c1().value,
        "c2": promised.value if squared else None,
        "regret": regret(rounds),
        "horizon": _found(epsilon, lambda to: bounds.horizon(to, regret)),
        "theorem": getattr(promised, "theorem", None),
        "assumption": getattr(promised, "assumption", None),
    }


def _found(epsilon: float | None, find: Callable[[float], int]) -> int | None:
    """Return what is found for an epsilon; None if there is no such thing, or nobody asks."""
    try:
        return None if epsilon is None else find(epsilon)
    except InvalidInput:
        return None


def _print(told: dict[str, Any]) -> None:
    title = f"{told['loss']} loss, resolution {told['resolution']}, {told['buckets']} buckets"
    if told["resolution_paper"]:
        title += f" (the paper's choice is {told['resolution_paper']} of both)"
    target = "" if told["epsilon"] is None else f"rounds until {told['epsilon']:g}"
    columns = dict.fromkeys(filter(None, ("C1", "C2", "regret", target)), "right")
    rows = []
    for row in told["methods"]:
        cells = [row["method"], *(printed(row[key]) for key in ("c1", "c2", "regret"))]
        horizon = "-" if row["horizon"] is None else f"{row['horizon']:,}"
        rows.append([*cells, horizon] if target else cells)
    screen.show({"method": "left", **columns}, rows, title, width=100)
    print(f"bounds after {told['rounds']:,} rounds")
    if (chain := told["methods"][0].get("chain")) is not None:
        parts = [f"{printed(chain[key])} {words}" for key, words in LINKS.items()]
        print(f"extra loss of {DEFAULT}: {' + '.join(parts)}")


def chained(made: Calibrant, rounds: int) -> dict[str, float]:
    """Return the bound of each link on the extra loss, and of all of them to the raw forecast.

    Parameters
    ----------
    made
        A default whose experts are the usual ones.
    rounds
        How many.

    Examples
    --------
    >>> found = chained(Calibrant(), 100_000)
    >>> {name: round(bound, 4) for name, bound in found.items()}
    {'to_mixture': 0.0021, 'mixture_to_raw': 0.0004, 'mixture_to_expert': 0.0004, 'to_raw': 0.0025}
    """
    mixture = made.transform
    assert isinstance(mixture, ExpertMixture)
    first, names = mixture.start or (), [isinstance(each, Identity) for each in mixture.experts]
    own = [
        bounds.mixture(rounds, len(first), mixture.share, mixture.eta or 1.0, start=weight).value
        for weight in first
    ]
    told = get_loss(mixture.loss), rounds, made.buckets
    last = draw_to_front(made.calibrator, *told, swaps=mixture.swaps)
    raw = min(bound for bound, is_raw in zip(own, names, strict=True) if is_raw)
    found = {"to_mixture": last, "mixture_to_raw": raw, "mixture_to_expert": max(own)}
    return {**found, "to_raw": last + raw}


def draw_to_front(
    rule: Calibrator, loss: Loss, rounds: int, buckets: int, *, swaps: bool = False
) -> float:
    """Return the smallest bound on how much more than what comes in the draws lose."""
    low, high = (float(rule.lattice.values[k]) for k in (0, -1))
    account = _evenly(rule, rounds, buckets, swaps)
    promised = rule.worst(account, rounds)
    found = bounds.regret_bound(promised or 1.0, loss, buckets, low=low, high=high)
    own = rule.regret(account) if loss.name == "squared" else None
    return min(bound.value for bound in (found, own) if bound is not None)


def _evenly(rule: Calibrator, rounds: int, buckets: int, swaps: bool) -> Account:
    """Return an account whose rounds are spread over all cells: the worst case, by concavity."""
    cells = buckets * rule.lattice.cells
    counts: Words = np.full(cells, rounds // cells)
    counts[: rounds % cells] += 1
    table = counts.reshape(buckets, -1)
    blocks = rule.worst_blocks(table, swaps=swaps)
    return Account(table, np.zeros_like(table), 0, np.zeros(buckets), blocks, swaps=swaps)
