"""Events in groups, as ``test_kinds`` plays them."""

from __future__ import annotations

from calibrant.groups import GroupRecalibrator

ASKED = {"group": ("g",)}
OUTCOME = "y"
MADE = (GroupRecalibrator(),)


def row(t: int, p: float) -> dict[str, object]:
    return {"p": f"{p:.3f}", "y": int(p > 0.4), "g": "uv"[t % 2]}
