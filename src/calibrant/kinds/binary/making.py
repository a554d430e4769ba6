"""Making a recalibrator of probabilities as options ask for it."""

from __future__ import annotations

from typing import Any, Final

from calibrant.bounds.horizon import natural_grid
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import require_proper
from calibrant.recalibrate import Calibrant, Recalibrator
from calibrant.stream.options import DEFAULT, LOSSES, METHODS, Options

SIZES: Final = ("resolution", "buckets", "grid", "loss", "prior")
ELSE: Final = "for Algorithm 1 alone choose a method such as foster_hart"
EPSILON: Final = f"calibrant keeps its grid, and its certificate says what it costs; {ELSE}"
PRIOR: Final = f"calibrant learns how far to trust the raw forecast; {ELSE}"
LOSS: Final = f"under these calibrant compares its experts; {ELSE}"
SAFE: Final = "only the method calibrant keeps a budget"


def make(options: Options, seed: int) -> Recalibrator:
    """Return the default, or Algorithm 1 with the calibrator asked for."""
    method = method_asked(options)
    if method == DEFAULT:
        return Calibrant(seed=seed, raw_safe=options.raw_safe, **of_default(options))
    options.refuse({"raw_safe": SAFE})
    sizes = options.given(SIZES)
    if options.epsilon is None:
        return Recalibrator(method, seed=seed, **sizes)
    return Recalibrator.from_epsilon(options.epsilon, method=method, seed=seed, **sizes)


def method_asked(options: Options) -> str:
    """Return the method that options name, or the default."""
    return check.choice(options.method or DEFAULT, "method", METHODS)


def of_default(options: Options) -> dict[str, Any]:
    """Return the default's options; refuse what only other methods know."""
    options.refuse({"epsilon": EPSILON, "prior": PRIOR})
    given = options.given(SIZES)
    loss = require_proper(given.get("loss", "squared"))
    if loss.name not in LOSSES:
        known = " or ".join(map(repr, LOSSES))
        raise InvalidInput(f"loss must be {known}: {LOSS}, got {loss.name!r}")
    return {"grid": natural_grid(loss)} | given
