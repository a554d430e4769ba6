"""``calibrant bound``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from calibrant import bounds
from calibrant.calibrators import Calibrator
from calibrant.cli import screen
from calibrant.cli.options import Buckets, Epsilon, Json, LossName, Resolution
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, require_proper
from calibrant.registry import calibrators

__all__ = ["bound"]


def bound(
    epsilon: Epsilon = None,
    loss: LossName = None,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="T", help="After how many rounds.")
    ] = 100_000,
    resolution: Resolution = None,
    buckets: Buckets = None,
    as_json: Json = False,
) -> None:
    """Tell what the theorems promise: resolution, buckets, bounds, and how long they take.

    With --epsilon, resolution and buckets are chosen so that the extra loss over the raw
    forecast tends to less than epsilon, and the table says after how many rounds it is there.

    \b
    Example:
      calibrant bound --epsilon 0.1 --loss squared --rounds 100000
    """
    found = require_proper(loss or "squared")
    size = 20 if epsilon is None else bounds.resolution_sharp(epsilon, found)
    N, M = resolution or size, buckets or size
    rows = [
        _row(calibrators.get(name)(resolution=N, grid=_grid(found)), found, rounds, M, epsilon)
        for name in calibrators.names()
    ]
    told = {
        "epsilon": epsilon,
        "loss": found.name,
        "rounds": check.whole(rounds, "rounds", low=1),
        "resolution": N,
        "buckets": M,
        "resolution_paper": _paper(epsilon, found),
        "methods": rows,
    }
    if as_json:
        screen.tell_json(told)
    else:
        _print(told)


def _grid(loss: Loss) -> str:
    return "midpoints" if loss.name == "log" else "endpoints"


def _paper(epsilon: float | None, loss: Loss) -> int | None:
    try:
        return None if epsilon is None else bounds.resolution_paper(epsilon, loss)
    except InvalidInput:
        return None


def _row(
    rule: Calibrator, loss: Loss, rounds: int, buckets: int, epsilon: float | None
) -> dict[str, Any]:
    promised = rule.bound(rounds, buckets=buckets)
    if promised is None:
        return {"method": rule.name, "c1": None, "c2": None, "regret": None, "horizon": None,
                "theorem": None, "assumption": rule.assumption}  # fmt: skip
    return {
        "method": rule.name,
        "c1": promised.as_c1().value,
        "c2": promised.value if promised.quantity.endswith("C2") else None,
        "regret": _regret(rule, loss, rounds, buckets),
        "horizon": None if epsilon is None else _horizon(rule, loss, buckets, epsilon),
        "theorem": promised.theorem,
        "assumption": promised.assumption,
    }


def _regret(rule: Calibrator, loss: Loss, rounds: int, buckets: int) -> float:
    promised = rule.bound(rounds, buckets=buckets)
    values = rule.lattice.values
    low, high = float(values[0]), float(values[-1])
    return bounds.regret_bound(promised or 1.0, loss, buckets, low=low, high=high).value


def _horizon(rule: Calibrator, loss: Loss, buckets: int, epsilon: float) -> int | None:
    try:
        return bounds.horizon(epsilon, lambda rounds: _regret(rule, loss, rounds, buckets))
    except InvalidInput:
        return None


def _print(told: dict[str, Any]) -> None:
    title = f"{told['loss']} loss, resolution {told['resolution']}, {told['buckets']} buckets"
    if told["resolution_paper"]:
        title += f" (the paper's choice is {told['resolution_paper']} of both)"
    target = "" if told["epsilon"] is None else f"rounds until {told['epsilon']:g}"
    headings = {"method": "left", "C1": "right", "C2": "right", "regret": "right"}
    rows = []
    for row in told["methods"]:
        cells = [row["method"], *(screen.number(row[key]) for key in ("c1", "c2", "regret"))]
        horizon = "-" if row["horizon"] is None else f"{row['horizon']:,}"
        rows.append([*cells, horizon] if target else cells)
    columns = {**headings, target: "right"} if target else headings
    console = Console(width=100)
    console.print(screen.table(title, columns, rows))
    console.print(f"bounds after {told['rounds']:,} rounds", highlight=False)
