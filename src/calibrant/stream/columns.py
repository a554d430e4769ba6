"""Which column means what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calibrant.stream.failure import Unreadable

__all__ = ["OUTCOME_NAMES", "RAW_NAMES", "Columns", "choose"]

RAW_NAMES: Final = (
    "raw", "raw_forecast", "p", "prob", "probability", "p_hat", "phat", "proba", "y_prob",
    "y_proba", "y_score", "confidence", "score", "prediction", "pred", "predicted",
    "predicted_probability", "forecast", "logit", "percent",
)  # fmt: skip
"""Names of raw forecasts, the surest first; case does not matter."""

OUTCOME_NAMES: Final = (
    "outcome", "y", "y_true", "label", "target", "correct", "event", "result", "actual",
    "observed", "obs", "truth", "class", "won", "clicked", "resolved",
)  # fmt: skip
"""Names of outcomes, the surest first; case does not matter."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read.

    Attributes
    ----------
    raw
        Raw forecasts; empty where other columns have them.
    outcome, time, available
        Outcomes, when forecasts were made, and when outcomes became known.
    group
        Columns whose values are groups.
    proba
        Columns of the probabilities of several classes, or one column of lists of them.
    quantiles, normal
        Columns of quantiles of a number, or of its mean and standard deviation.
    """

    raw: str
    outcome: str
    time: str | None = None
    available: str | None = None
    group: tuple[str, ...] = ()
    proba: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()

    @property
    def vector(self) -> tuple[str, ...]:
        """Raw forecasts that take several columns."""
        return self.proba or self.quantiles or self.normal

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        found = (self.raw, *self.vector, self.outcome, self.time, self.available, *self.group)
        return list(dict.fromkeys(name for name in found if name))

    @property
    def options(self) -> dict[str, str]:
        """The words that name them on the command line."""
        told = vars(self).items()
        return {name: v if isinstance(v, str) else ",".join(v) for name, v in told if v}


def choose(
    source: str,
    names: Sequence[str],
    *,
    raw: str | None = None,
    outcome: str | None = None,
    time: str | None = None,
    available: str | None = None,
    group: tuple[str, ...] = (),
    proba: tuple[str, ...] = (),
    quantiles: tuple[str, ...] = (),
    normal: tuple[str, ...] = (),
) -> Columns:
    """Return the columns of a file, guessing raw forecast and outcome where not told.

    Examples
    --------
    >>> choose("games.csv", ["date", "Prob", "y"]).options
    {'raw': 'Prob', 'outcome': 'y'}
    >>> choose("games.csv", ["date", "y"])
    Traceback (most recent call last):
    calibrant.stream.failure.Unreadable: games.csv: no column looks like raw forecasts; name it
    with --raw, one of: date, y
    """
    vector = proba or quantiles or normal
    for asked in (raw, outcome, time, available, *group, *vector):
        if asked is not None and asked not in names:
            raise Unreadable(f"{source}: no column {asked!r}; there are: {_listed(names)}")
    others = [name for name in names if name not in (raw, outcome, *vector)]
    known = "" if vector else raw or _guess(source, others, RAW_NAMES, "raw forecasts", "--raw")
    found = Columns(
        known,
        outcome or _guess(source, others, OUTCOME_NAMES, "outcomes", "--outcome"),
        time,
        available,
        group,
        proba,
        quantiles,
        normal,
    )
    if found.outcome in (found.raw, *vector):
        told = f"raw forecasts and outcomes must be two columns, got {found.outcome!r} for both"
        raise Unreadable(f"{source}: {told}")
    for name in found.names:
        if list(names).count(name) > 1:
            raise Unreadable(f"{source}: column {name!r} must be there once, got it twice")
    return found


def _guess(source: str, names: Sequence[str], known: Sequence[str], what: str, option: str) -> str:
    for name in known:
        for column in names:
            if column.strip().lower() == name:
                return column
    told = f"no column looks like {what}; name it with {option}, one of: {_listed(names)}"
    raise Unreadable(f"{source}: {told}")


def _listed(names: Sequence[str]) -> str:
    shown = [name or "''" for name in names[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")
