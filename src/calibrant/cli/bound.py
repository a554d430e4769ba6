"""``calibrant bound``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from calibrant import bounds
from calibrant.bounds.horizon import natural_grid
from calibrant.calibrators import Calibrator
from calibrant.cli import screen
from calibrant.cli.chain import chained, draw_to_front
from calibrant.cli.options import spread
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, require_proper
from calibrant.recalibrate import Calibrant
from calibrant.registry import calibrators
from calibrant.report.tables import printed
from calibrant.stream.options import DEFAULT, LOSSES, Options

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
    """Tell what the theorems promise: resolution, buckets, bounds, and how long they take.

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
    told = {
        "epsilon": epsilon,
        "loss": found.name,
        "rounds": T,
        "resolution": N,
        "buckets": M,
        "resolution_paper": _paper(epsilon, found),
        "methods": rows,
    }
    if asked.as_json:
        screen.tell_json(told)
    else:
        _print(told)


def _paper(epsilon: float | None, loss: Loss) -> int | None:
    try:
        return None if epsilon is None else bounds.resolution_paper(epsilon, loss)
    except InvalidInput:
        return None


def _default_row(
    loss: Loss, rounds: int, resolution: int | None, buckets: int | None, epsilon: float | None
) -> dict[str, Any]:
    """Return the row of the default, whose bounds are those of a chain."""
    if loss.name not in LOSSES:
        known = " and ".join(LOSSES)
        return {"method": DEFAULT, **NOTHING, "assumption": f"for the losses {known} only"}
    made = Options(resolution=resolution, buckets=buckets, loss=loss.name).recalibrator(0)
    assert isinstance(made, Calibrant)
    chain = chained(made, rounds)
    c2 = made.calibrator.bound(rounds, buckets=made.buckets)
    return {
        "method": DEFAULT,
        "c1": None if c2 is None else c2.as_c1().value,
        "c2": None if c2 is None else c2.value,
        "regret": chain["to_raw"],
        "horizon": _reached(epsilon, lambda after: chained(made, after)["to_raw"]),
        "theorem": None if c2 is None else c2.theorem,
        "assumption": None if c2 is None else c2.assumption,
        "chain": chain,
    }


def _of_calibrator(
    name: str, resolution: int, grid: str, *told: *tuple[Loss, int, int, float | None]
) -> dict[str, Any]:
    """Return the row of a calibrator; one that has no such grid promises nothing on it."""
    try:
        rule = calibrators.get(name)(resolution=resolution, grid=grid)
    except InvalidInput as error:
        return {"method": name, **NOTHING, "assumption": str(error)}
    return _row(rule, *told)


def _row(
    rule: Calibrator, loss: Loss, rounds: int, buckets: int, epsilon: float | None
) -> dict[str, Any]:
    promised = rule.bound(rounds, buckets=buckets)
    if promised is None:
        return {"method": rule.name, **NOTHING, "assumption": rule.assumption}
    return {
        "method": rule.name,
        "c1": promised.as_c1().value,
        "c2": promised.value if promised.quantity.endswith("C2") else None,
        "regret": draw_to_front(rule, loss, rounds, buckets),
        "horizon": _reached(epsilon, lambda after: draw_to_front(rule, loss, after, buckets)),
        "theorem": promised.theorem,
        "assumption": promised.assumption,
    }


def _reached(epsilon: float | None, bound_after: Callable[[int], float]) -> int | None:
    """Return after how many rounds a bound is at most epsilon; None if never, or nobody asks."""
    try:
        return None if epsilon is None else bounds.horizon(epsilon, bound_after)
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
        cells = [row["method"], *(printed(row[key]) for key in ("c1", "c2", "regret"))]
        horizon = "-" if row["horizon"] is None else f"{row['horizon']:,}"
        rows.append([*cells, horizon] if target else cells)
    columns = {**headings, target: "right"} if target else headings
    console = Console(width=100)
    console.print(screen.table(title, columns, rows))
    console.print(f"bounds after {told['rounds']:,} rounds", highlight=False)
    if (chain := told["methods"][0].get("chain")) is not None:
        parts = [f"{printed(chain[key])} {words}" for key, words in LINKS.items()]
        told_so = f"extra loss of {DEFAULT}: {' + '.join(parts)}"
        console.print(told_so, highlight=False, soft_wrap=True)
