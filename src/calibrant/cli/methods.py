"""``calibrant methods``."""

from __future__ import annotations

from rich.console import Console

from calibrant.calibrators import Calibrator
from calibrant.cli import screen
from calibrant.cli.options import Json
from calibrant.registry import calibrators

__all__ = ["methods"]


def methods(as_json: Json = False) -> None:
    """List the calibrators: what each promises, what it costs, where it comes from.

    \b
    Example:
      calibrant methods --json
    """
    rows = [_row(name) for name in calibrators.names()]
    if as_json:
        screen.tell_json(rows)
        return
    headings = {"method": "left", "bound": "left", "cost": "left", "reference": "left"}
    cells = [[row[key] for key in ("name", "bound", "cost", "reference")] for row in rows]
    Console(width=180).print(screen.table(None, headings, cells))


def _row(name: str) -> dict[str, str]:
    rule: type[Calibrator] = calibrators.get(name)
    return {
        "name": name,
        "bound": rule.guarantee,
        "assumption": rule.assumption,
        "cost": rule.cost,
        "reference": rule.reference,
        "summary": (rule.__doc__ or "").partition("\n")[0],
    }
