"""How a recalibrator of numbers is asked for."""

from __future__ import annotations

from typing import Any, Final

from calibrant.core import check
from calibrant.regression import QuantileRecalibrator, quantile_methods
from calibrant.stream.number_rows import columns_of
from calibrant.stream.number_session import NumberSession
from calibrant.summary import options_of

__all__ = ["number_session", "refused_of_numbers", "stored_numbers"]

DEFAULT: Final = "pit"
OTHERS: Final = "it is for probabilities, and these are numbers"
OTHER_OPTIONS: Final = (
    "buckets", "grid", "epsilon", "loss", "scale", "group", "proba", "raw_safe",
)  # fmt: skip
SIZES: Final = ("resolution", "prior")
GRIDLESS: Final = "the tracker has no grid"


def refused_of_numbers(method: str | None) -> dict[str, str]:
    """Return the options that make no sense for numbers, and why."""
    refused = dict.fromkeys(OTHER_OPTIONS, OTHERS)
    return refused | (dict.fromkeys(SIZES, GRIDLESS) if method == "tracker" else {})


def number_session(
    quantiles: tuple[str, ...],
    normal: tuple[str, ...],
    levels: tuple[float, ...],
    method: str | None,
    seed: int,
    options: dict[str, Any],
) -> NumberSession:
    """Return a new session of numbers."""
    chosen = check.choice(method or DEFAULT, "method", quantile_methods.names())
    columns, given, followed = columns_of(quantiles, normal, levels)
    wanted: dict[str, Any] = {"levels": followed} if followed else {}
    made = QuantileRecalibrator(chosen, seed=seed, **wanted, **options)
    return NumberSession.start(made, seed, columns, given)


def stored_numbers(stored: NumberSession) -> dict[str, Any]:
    """Return what a stored session was asked for."""
    made = stored.recalibrator
    followed, own = tuple(made.levels.tolist()), options_of(made)
    return {
        "method": made.method,
        **{name: own[name] for name in SIZES if name in own},
        "seed": stored.seed,
        "quantiles": stored.columns if stored.given else (),
        "normal": () if stored.given else stored.columns,
        "levels": stored.given or followed,
    }
