"""Which column means what, and on which scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.kernels.compile import SHORT, available, compiled
from calibrant.kernels.odds import sigmoids
from calibrant.stream.failure import NoColumn, Unreadable
from calibrant.stream.wording import Wording
from calibrant.summary import kinds

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


COLUMNS: Final = [name for name, holds in kinds.options.items() if holds != "numbers"]
"""What columns that only some kinds have are called."""

VECTORS: Final = [name for name in COLUMNS if kinds.options[name] == "raw"]
"""What columns of raw forecasts are called that are given instead of a single one."""

T = TypeVar("T")


def declared(holds: Sequence[str], made: str, default: Any) -> Callable[[type[T]], type[T]]:
    """Give a class a field for each option of a kind that holds something of this.

    All have one type and one default.  Their help is in the docstrings of the kinds.
    """
    told = [name for name, held in kinds.options.items() if held in holds]

    def add(group: type[T]) -> type[T]:
        group.__annotations__ = group.__annotations__ | dict.fromkeys(told, made)
        for name in told:
            setattr(group, name, default)
        return group

    return add


@dataclass(frozen=True, kw_only=True)
@declared(("raw", "columns"), "tuple[str, ...]", ())
class KindColumns:
    """Columns that only some kinds of outcomes have; the kind, which declares them, is known so."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def vector(self) -> tuple[str, ...]:
        """Raw forecasts that take several columns."""
        return next((names for name in VECTORS if (names := getattr(self, name))), ())

    @property
    def more(self) -> list[str]:
        """Columns that hold something else than raw forecasts."""
        others = (getattr(self, each) for each in COLUMNS if each not in VECTORS)
        return [name for names in others for name in names]


@dataclass(frozen=True)
class Columns(KindColumns):
    """The names of the columns to read, beside those of :class:`KindColumns`.

    Attributes
    ----------
    raw
        Raw forecasts; empty where other columns have them.
    outcome, time, available
        Outcomes, when forecasts were made, and when outcomes became known.
    id
        What a forecast is known by when its outcome comes later.
    wording
        How the file words what is in them.
    """

    raw: str
    outcome: str
    time: str | None = None
    available: str | None = None
    id: str | None = None
    wording: Wording = field(default_factory=Wording)

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        known = self.outcome, self.time, self.available, self.id
        found = (self.raw, *self.vector, *known, *self.more)
        return list(dict.fromkeys(name for name in found if name))

    @property
    def options(self) -> dict[str, str]:
        """The words that name them, and say how they are worded, on the command line."""
        shared = ("raw", "outcome", "time", "available", "id")
        told = {name: getattr(self, name) for name in shared} | vars(self)
        del told["wording"]
        named = {name: v if isinstance(v, str) else ",".join(v) for name, v in told.items() if v}
        return named | self.wording.options


def choose(
    source: str,
    names: Sequence[str],
    *,
    late: bool = False,
    early: bool = False,
    text: bool = True,
    **asked: Any,
) -> Columns:
    """Return the columns of a file, guessing raw forecast and outcome where not told.

    Parameters
    ----------
    source, names
        What the file is called, and all its columns.
    late
        Whether the file may hold only outcomes of forecasts that were made before.
    early
        Whether the file may hold only forecasts, whose outcomes come in a later one.
    text
        Whether the file has a separator.
    **asked
        Fields of :class:`Columns`.

    Examples
    --------
    >>> choose("games.csv", ["date", "Prob", "y"]).options
    {'raw': 'Prob', 'outcome': 'y'}
    >>> choose("games.csv", ["date", "y"])
    Traceback (most recent call last):
    calibrant.stream.failure.NoColumn: games.csv: no column looks like raw forecasts; name it
    with --raw, one of: date, y
    >>> choose("monday.csv", ["customer", "prob"], early=True, id="customer").options
    {'raw': 'prob', 'id': 'customer'}
    """
    told = Columns(**({"raw": None, "outcome": None} | asked))
    later = {told.raw} if late else set()
    later |= {told.outcome} if early else set()
    for name in told.names:
        if name not in names and name not in later:
            raise Unreadable(f"{source}: no column {name!r}; there are: {_listed(names)}")
    rest = [name for name in names if name not in (told.raw, told.outcome, *told.vector)]
    if len(names) == 1 and rest and not (late or early):
        alone = f"must have columns of forecasts and of outcomes, got one column, {_named(rest[0])}"
        way = "; is another character between fields? say --sep" if text else ""
        raise NoColumn(f"{source}: {alone}{way}")
    raw = "" if told.vector else told.raw or _guess(source, rest, RAW, late)
    outcome = told.outcome or _guess(source, rest, OUTCOMES, early)
    if raw not in names and outcome not in names and not told.vector:
        raise NoColumn(f"{source}: no column looks like {RAW[1]} or {OUTCOMES[1]}")
    found = replace(told, raw=raw, outcome=outcome)
    if found.outcome in (found.raw, *told.vector):
        wrong = f"raw forecasts and outcomes must be two columns, got {found.outcome!r} for both"
        raise Unreadable(f"{source}: {wrong}")
    for name in found.names:
        if list(names).count(name) > 1:
            raise Unreadable(f"{source}: column {name!r} must be there once, got it twice")
    return found


RAW: Final = (RAW_NAMES, "raw forecasts", "--raw")
OUTCOMES: Final = (OUTCOME_NAMES, "outcomes", "--outcome")


def _guess(
    source: str, names: Sequence[str], wanted: tuple[Sequence[str], str, str], absent: bool
) -> str:
    """Return the column with the surest name, or none where it may be absent."""
    known, what, option = wanted
    for name in known:
        for column in names:
            if column.strip().lower() == name:
                return column
    if absent:
        return ""
    told = f"no column looks like {what}; name it with {option}, one of: {_listed(names)}"
    raise NoColumn(f"{source}: {told}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_named, names[:20])) + (", ..." if len(names) > 20 else "")


def _named(name: str) -> str:
    """Return what of a name can be shown on a line.

    >>> _named("prob"), _named("prob\\x01won"), _named(""), len(_named("x" * 999))
    ('prob', 'prob\\\\x01won', "''", 60)
    """
    return ((name if name.isprintable() else repr(name)[1:-1]) or "''")[:60]


RULES: Final = {
    "probability": "a number in [0, 1]",
    "percent": "a number in [0, 100]",
    "logit": "a number (log-odds)",
    "score": "a finite number (a score)",
}
SCALES: Final = tuple(RULES)


class Scale:
    """Turn the column of raw forecasts into probabilities.

    Parameters
    ----------
    kind
        ``"probability"``, ``"percent"`` (0 to 100), ``"logit"`` (log-odds) or ``"score"``,
        an unbounded margin s that becomes (s + m)/2m with m the largest ``|s|`` so far, its
        own included.
    largest
        The m to begin with.

    Notes
    -----
    A score's probability depends on the scores before it, never on later ones; a score
    that is the largest so far becomes 0 or 1.

    References
    ----------
    Kuleshov and Ermon (2017), the genotype experiment.

    Examples
    --------
    >>> Scale("score").apply(np.array([2.0, 1.0, -4.0, 2.0])).tolist()
    [1.0, 0.75, 0.0, 0.75]
    """

    def __init__(self, kind: str = "probability", largest: float = 0.0) -> None:
        self.kind = check.choice(kind, "scale", SCALES)
        self.largest = largest

    @property
    def rule(self) -> str:
        """What a value must be."""
        return RULES[self.kind]

    def allows(self, values: Reals) -> Mask:
        """Say which values obey the rule."""
        if self.kind in ("logit", "score"):
            return np.isfinite(values) if self.kind == "score" else ~np.isnan(values)
        return (values >= 0.0) & (values <= (1.0 if self.kind == "probability" else 100.0))

    def apply(self, values: Reals) -> Reals:
        """Return the probabilities of values that obey the rule; remember the largest score."""
        if self.kind == "probability":
            return values
        if self.kind == "percent":
            return values / 100.0
        return self._of_scores(values) if self.kind == "score" else _of_log_odds(values)

    def _of_scores(self, values: Reals) -> Reals:
        sizes = np.maximum.accumulate(np.append(self.largest, np.abs(values)))[1:]
        self.largest = float(sizes[-1]) if len(sizes) else self.largest
        with np.errstate(invalid="ignore"):
            shares = np.where(sizes > 0.0, values / sizes, 0.0)
        # (s + m)/2m without its overflow.
        return 0.5 + 0.5 * shares


def _of_log_odds(values: Reals) -> Reals:
    into = np.empty(len(values))
    if len(values) > SHORT and available():
        compiled(sigmoids, "odds")(values, into)
    else:
        sigmoids(values.tolist(), into)
    return into
