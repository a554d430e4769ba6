"""Events, as ``test_kinds`` plays them."""

from __future__ import annotations

from calibrant import Calibrant, Recalibrator

ASKED: dict[str, tuple[str, ...]] = {}
OUTCOME = "y"
MADE = (Recalibrator(), Calibrant())


def row(t: int, p: float) -> dict[str, object]:
    return {"p": f"{p:.3f}", "y": int(p > 0.4)}
