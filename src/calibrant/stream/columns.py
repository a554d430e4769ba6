"""Which column means what, what it holds as numbers, and on which scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.kernels.compile import SHORT, available, compiled
from calibrant.kernels.odds import sigmoids
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
    raw = (
        "" if told.vector else told.raw or _guess(source, rest, RAW_NAMES, "raw forecasts", "--raw")
    )
    outcome = told.outcome or _guess(source, rest, OUTCOME_NAMES, "outcomes", "--outcome")
    found = replace(told, raw=raw, outcome=outcome)
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


WORDS: Final = {"true": 1.0, "false": 0.0}


class Numbers(NamedTuple):
    """A column as doubles: nan where it is not a number, and where there is nothing at all."""

    values: Reals
    missing: Mask


def numbers(column: Any) -> Numbers:
    """Read a column of numbers, of booleans, or of text that holds either.

    Examples
    --------
    >>> numbers(pa.array(["0.5", "", "true", "x"])).values.tolist()
    [0.5, nan, 1.0, nan]
    >>> numbers([1, None, "0.25"]).missing.tolist()
    [False, True, False]
    """
    if isinstance(column, list):
        return _one_by_one(column, _number)
    column = _decoded(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _of_text(column, pa.float64(), _number)
    if _is_numeric(column.type):
        return _of_floats(pc.cast(column, pa.float64(), safe=False))
    return _one_by_one(column.to_pylist(), _number)


def times(column: Any) -> Numbers:
    """Read a column of times: numbers, time stamps, dates, or text that holds any of them.

    A time stamp counts in seconds since 1970; one without a zone is taken to be in UTC.

    Examples
    --------
    >>> times(pa.array(["1970-01-02", "1970-01-02T00:00:01"])).values.tolist()
    [86400.0, 86401.0]
    """
    if isinstance(column, list):
        return _one_by_one(column, _moment)
    column = _decoded(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _of_stamps(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _of_times_in_text(column)
    return numbers(column)


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_numeric(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def _of_floats(column: Any) -> Numbers:
    values = column.to_numpy(zero_copy_only=False)
    if column.null_count == 0:
        return Numbers(values, np.zeros(len(values), np.bool_))
    return Numbers(values, column.is_null().to_numpy(zero_copy_only=False))


def _of_text(column: Any, kind: Any, read: Callable[[Any], float]) -> Numbers:
    """Try the fast ways first; whatever is odd about a column is told value by value."""
    for prepare in (None, _without_gaps):
        try:
            cast = pc.cast(prepare(column) if prepare else column, kind)
        except pa.ArrowInvalid:
            continue
        return _of_floats(cast) if kind == pa.float64() else _of_stamps(cast)
    return _one_by_one(column.to_pylist(), read)


def _without_gaps(column: Any) -> Any:
    return pc.if_else(pc.equal(column, ""), None, column)


def _of_times_in_text(column: Any) -> Numbers:
    try:
        return _of_floats(pc.cast(_without_gaps(column), pa.float64()))
    except pa.ArrowInvalid:
        return _of_text(column, pa.timestamp("us"), _moment)


TICKS: Final = {"s": 1.0, "ms": 1e3, "us": 1e6}
"""Counts of a time stamp in a second."""


def _of_stamps(column: Any) -> Numbers:
    """Return seconds, however far away: no count is cast to one that may be too small for it."""
    kind = column.type
    if pa.types.is_date32(kind):
        found = _of_floats(pc.cast(pc.cast(column, pa.int32()), pa.float64()))
        return Numbers(found.values * 86_400.0, found.missing)
    if getattr(kind, "unit", "") == "ns":
        column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
    unit = "ms" if pa.types.is_date64(kind) else column.type.unit
    found = _of_floats(pc.cast(pc.cast(column, pa.int64()), pa.float64(), safe=False))
    return Numbers(found.values / TICKS[unit], found.missing)


def _one_by_one(values: list[Any], read: Callable[[Any], float]) -> Numbers:
    missing = [value is None or value == "" for value in values]
    found = [np.nan if gap else read(value) for value, gap in zip(values, missing, strict=True)]
    return Numbers(np.array(found, np.float64), np.array(missing, np.bool_))


def _number(value: Any) -> float:
    if isinstance(value, str):
        text = value.strip().lower()
        value = WORDS.get(text, text if "_" not in text else "nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _moment(value: Any) -> float:
    if isinstance(value, str):
        found = _number(value)
        return _stamp(value.strip()) if np.isnan(found) else found
    return _number(value)


def _stamp(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


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
        an unbounded margin s that becomes (s + m)/2m with m the largest |s| so far, its
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
