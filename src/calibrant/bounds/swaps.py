"""How bounds that come from the regrets of swaps are labelled."""

from __future__ import annotations

from calibrant.bounds.bound import Bound
from calibrant.bounds.game import EXPECTED, PATHWISE, probably
from calibrant.errors import InvalidInput


def of_swaps(value: float, theorem: str, realised: bool, failure: float | None) -> Bound:
    """Return a bound on C2 of the draws if updates are realised, else on that of the mixtures."""
    if failure is not None and not realised:
        raise InvalidInput(f"failure must be None unless realised is true, got {failure!r}")
    if failure is not None:
        return Bound(value, "C2", probably(failure), theorem, "sharper")
    if realised:
        return Bound(value, "C2", EXPECTED, theorem, "sharper")
    return Bound(value, "pseudo C2", PATHWISE, theorem, "sharper")
