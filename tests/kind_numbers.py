"""Numbers, as ``test_kinds`` plays them."""

from __future__ import annotations

from calibrant.regression import QuantileRecalibrator

ASKED = {"quantiles": ("q10", "q50", "q90")}
OUTCOME = "z"
MADE = (QuantileRecalibrator(),)


def row(t: int, p: float) -> dict[str, object]:
    return {"q10": f"{p - 1:.3f}", "q50": f"{p:.3f}", "q90": f"{p + 1:.3f}", "z": f"{p:.2f}"}
