"""``calibrant methods``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from calibrant.calibrators import Calibrator
from calibrant.cli import screen
from calibrant.cli.options import spread
from calibrant.recalibrate import Calibrant
from calibrant.registry import calibrators
from calibrant.stream.options import DEFAULT
from calibrant.transforms import Transform

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
    """List the methods: what each promises, what it costs, where it comes from.

    The first is the default, whose guarantees form a chain; the others are the calibrators of
    Algorithm 1.

    \b
    Example:
      calibrant methods --json
    """
    rows = [_default(), *(_row(name) for name in calibrators.names())]
    if told.as_json:
        screen.tell_json(rows)
        return
    headings = {"method": "left", "bound": "left", "cost": "left", "reference": "left"}
    cells = [line for row in rows for line in _lines(row)]
    Console(width=WIDTH).print(screen.table(None, headings, cells))


def _row(name: str) -> dict[str, Any]:
    rule: type[Calibrator] = calibrators.get(name)
    return {"name": name, **_told(rule), "summary": _first_line(rule)}


def _default() -> dict[str, Any]:
    """Return the row of the default, with the links of its chain."""
    made = Calibrant()
    rule, front = made.calibrator, made.transform
    last = {"link": "calibration", **_told(rule)}
    between = {**last, "link": "draws to mixture", "bound": ACCURACY}
    return {
        "name": DEFAULT,
        **_told(rule),
        "summary": _first_line(Calibrant),
        "chain": [last, between, {"link": "mixture to experts", **_told(front)}],
    }


def _told(part: Calibrator | type[Calibrator] | Transform) -> dict[str, str]:
    return {
        "bound": part.guarantee,
        "assumption": part.assumption,
        "cost": part.cost,
        "reference": part.reference,
    }


def _lines(row: dict[str, Any]) -> list[list[str]]:
    """Return the lines of a method in the table, and one for each link of a chain."""
    if "chain" not in row:
        return [[row["name"], *(row[key] for key in COLUMNS)]]
    links = [[f"  {each['link']}", *(each[key] for key in COLUMNS)] for each in row["chain"]]
    return [[row["name"], "experts first, calibrate last: a chain", "", ""], *links]


def _first_line(made: type) -> str:
    return (made.__doc__ or "").partition("\n")[0]
