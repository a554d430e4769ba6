"""Classes, as ``test_kinds`` plays them."""

from __future__ import annotations

from calibrant.classes import ClassCalibrant, OneVsRest, TopLabel

ASKED = {"proba": ("p_a", "p_b", "p_c")}
OUTCOME = "c"
MADE = (ClassCalibrant(3), OneVsRest(3), TopLabel(9))


def row(t: int, p: float) -> dict[str, object]:
    return {"p_a": 0.5, "p_b": 0.25, "p_c": 0.25, "c": t % 3}
