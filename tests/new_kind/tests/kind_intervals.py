"""Intervals, as ``test_kinds`` plays them."""

from __future__ import annotations

from calibrant.regression import ConformalInterval

ASKED = {"centre": ("m",), "coverage": (0.8,)}
OUTCOME = "z"
MADE = (ConformalInterval(),)


def row(t: int, p: float) -> dict[str, object]:
    return {"m": f"{p:.3f}", "z": f"{p + (t % 5) / 10:.3f}"}
