"""Which column means what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from calibrant.stream.failure import Unreadable

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


@dataclass(frozen=True, kw_only=True)
class KindColumns:
    """Columns that only some kinds of outcomes have; the kind is known by them.

    Attributes
    ----------
    group
        Columns whose values are groups.
    proba
        Columns of the probabilities of several classes, or one column of lists of them.
    quantiles, normal
        Columns of quantiles of a number, or of its mean and standard deviation.
    """

    group: tuple[str, ...] = ()
    proba: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()

    @property
    def vector(self) -> tuple[str, ...]:
        """Raw forecasts that take several columns."""
        return self.proba or self.quantiles or self.normal


@dataclass(frozen=True)
class Columns(KindColumns):
    """The names of the columns to read, beside those of :class:`KindColumns`.

    Attributes
    ----------
    raw
        Raw forecasts; empty where other columns have them.
    outcome, time, available
        Outcomes, when forecasts were made, and when outcomes became known.
    """

    raw: str
    outcome: str
    time: str | None = None
    available: str | None = None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        found = (self.raw, *self.vector, self.outcome, self.time, self.available, *self.group)
        return list(dict.fromkeys(name for name in found if name))

    @property
    def options(self) -> dict[str, str]:
        """The words that name them on the command line."""
        shared = ("raw", "outcome", "time", "available")
        told = {name: getattr(self, name) for name in shared} | vars(self)
        return {name: v if isinstance(v, str) else ",".join(v) for name, v in told.items() if v}


def choose(source: str, names: Sequence[str], **asked: Any) -> Columns:
    """Return the columns of a file, guessing raw forecast and outcome where not told.

    Parameters
    ----------
    source, names
        What the file is called, and all its columns.
    **asked
        Fields of :class:`Columns`.

    Examples
    --------
    >>> choose("games.csv", ["date", "Prob", "y"]).options
    {'raw': 'Prob', 'outcome': 'y'}
    >>> choose("games.csv", ["date", "y"])
    Traceback (most recent call last):
    calibrant.stream.failure.Unreadable: games.csv: no column looks like raw forecasts; name it
    with --raw, one of: date, y
    """
    told = Columns(**({"raw": None, "outcome": None} | asked))
    for name in told.names:
        if name not in names:
            raise Unreadable(f"{source}: no column {name!r}; there are: {_listed(names)}")
    rest = [name for name in names if name not in (told.raw, told.outcome, *told.vector)]
    found = replace(
        told,
        raw=""
        if told.vector
        else told.raw or _guess(source, rest, RAW_NAMES, "raw forecasts", "--raw"),
        outcome=told.outcome or _guess(source, rest, OUTCOME_NAMES, "outcomes", "--outcome"),
    )
    if found.outcome in (found.raw, *told.vector):
        wrong = f"raw forecasts and outcomes must be two columns, got {found.outcome!r} for both"
        raise Unreadable(f"{source}: {wrong}")
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
