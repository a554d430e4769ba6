"""The rules that every row must obey, and what is left of rows that do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.pieces import Piece
from calibrant.stream.values import Numbers, listed

LONGEST_SHOWN: Final = 60
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Rounds:
    """Rows that obey the rules, as arrays of one length.

    ``known`` says which rows have an outcome; ``time``, ``available`` and ``groups``, a tuple of
    names for each row, are None where the input has no such column.  ``context`` has a column for
    each feature.  Raw forecasts over classes are a table, and outcomes then numbers of classes.
    """

    raw: Reals
    outcomes: Bits | Words
    known: Mask
    time: Reals | None
    available: Reals | None
    groups: NDArray[np.object_] | None = None
    context: NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.raw)

    def delivery(self, first: int = 0) -> dict[str, Reals]:
        """Return when forecasts are made and outcomes become known, as ``replay`` is told.

        Without times, forecasts are made at their numbers, from ``first`` on.
        """
        numbers = np.arange(first, first + len(self), dtype=np.float64)
        time = numbers if self.time is None else self.time
        told = time if self.available is None else self.available
        return {"time": time, "available": np.where(self.known, told, np.inf)}

    def cut(self, part: slice) -> Rounds:
        """Return some of the rounds."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        kept: Any = {name: None if c is None else c[part] for name, c in columns.items()}
        return Rounds(**kept)


class Problem(NamedTuple):
    """A rule that a row breaks: the row's place in its piece, and what is wrong there."""

    row: int
    column: str
    value: Any
    rule: str

    def __str__(self) -> str:
        told = "nothing" if self.value is None or self.value == "" else brief(self.value)
        return f"{self.column} must be {self.rule}, got {told}"


class Rules:
    """Check rows and read their numbers.

    Parameters
    ----------
    columns
        Which column means what.
    scale
        What raw forecasts are given as.
    last
        The time of the row before the first one.
    """

    def __init__(self, columns: Columns, scale: Scale, last: float = -np.inf) -> None:
        self.columns, self.scale, self.last = columns, scale, last

    def read(self, piece: Piece) -> tuple[Rounds, Mask, list[Problem]]:
        """Return the rounds of a piece, which of its rows they are, and what is wrong with others.

        Time and the largest score go on from the rows that obey; others leave no trace.
        """
        raw, outcome = self._numbers(piece)
        wrong = self._wrong(raw, outcome)
        good = ~(wrong["raw"] | wrong["outcome"])
        time, available = self._times(piece, good, wrong)
        problems = [] if good.all() else self._problems(piece, wrong)
        # A slice of everything is a view, where a mask of everything would be a slow copy.
        kept: Any = good if problems else slice(None)
        rounds = Rounds(
            self._forecasts(np.array(raw.values[kept])),
            self._outcomes(outcome.values[kept]),
            ~outcome.missing[kept],
            None if time is None else time[kept],
            None if available is None else available[kept],
            groups_of(piece, self.columns.group)[kept] if self.columns.group else None,
            context_of(piece, self.columns)[kept] if self.columns.context else None,
        )
        if time is not None and good.any():
            self.last = float(time[good][-1])
        return rounds, good, problems

    def _numbers(self, piece: Piece) -> tuple[Numbers, Numbers]:
        """Return raw forecasts and outcomes as they were given."""
        words, columns = self.columns.wording, self.columns
        raw = words.numbers(piece.column(columns.raw))
        return raw, outcomes_of(piece, columns)

    def _wrong(self, raw: Numbers, outcome: Numbers) -> dict[str, Mask]:
        """Return which rows break the rule of the raw forecast, and that of the outcome."""
        known = (outcome.values == 0.0) | (outcome.values == 1.0)
        return {"raw": ~self.scale.allows(raw.values), "outcome": ~(outcome.missing | known)}

    def _forecasts(self, values: Reals) -> Reals:
        return self.scale.apply(values)

    def _outcomes(self, values: Reals) -> Bits | Words:
        return np.asarray(values == 1.0, np.uint8)

    def _times(
        self, piece: Piece, good: Mask, wrong: dict[str, Mask]
    ) -> tuple[Reals | None, Reals | None]:
        """Read both times; take rows that break their rules out of ``good``."""
        if self.columns.time is None:
            return None, None
        time = self.columns.wording.times(piece.column(self.columns.time)).values
        unread, early, available = self._available(piece, time)
        wrong["time unread"], wrong["available unread"] = ~np.isfinite(time), unread
        wrong["time"] = ~self._in_order(time, good & ~early)
        wrong["available"] = early
        good &= ~(wrong["time"] | early)
        return time, available

    def _available(self, piece: Piece, time: Reals) -> tuple[Mask, Mask, Reals | None]:
        """Return which times of outcomes cannot be read, which are too early, and all of them."""
        none = np.zeros(len(time), np.bool_)
        if self.columns.available is None:
            return none, none, None
        found = self.columns.wording.times(piece.column(self.columns.available))
        with np.errstate(invalid="ignore"):
            early = ~(found.missing | (found.values >= time))
        unread = np.isnan(found.values) & ~found.missing
        return unread, early, np.where(found.missing, np.inf, found.values)

    def _in_order(self, time: Reals, good: Mask) -> Mask:
        finite = np.isfinite(time)
        seen = np.where(good & finite, time, -np.inf)
        before = np.maximum.accumulate(np.append(self.last, seen))[:-1]
        return finite & (time >= before)

    def _rules(self) -> dict[str, tuple[str | None, str]]:
        """Return column and rule of the raw forecast and of the outcome."""
        outcome = (self.columns.outcome, self.columns.wording.outcome_rule)
        return {"raw": (self.columns.raw, self.scale.rule), "outcome": outcome}

    def _shown(self, piece: Piece, name: str | None, row: int) -> Any:
        return value_at(piece, str(name), row)

    def _problems(self, piece: Piece, wrong: dict[str, Mask]) -> list[Problem]:
        late = "a time that is not before the row"
        columns, rule = self.columns, self.columns.wording.time_rule
        names = {**self._rules(), "time unread": (columns.time, rule)}
        names |= {"available unread": (columns.available, rule)}
        names |= {"time": (columns.time, f"{late} above")}
        names |= {"available": (columns.available, f"{late}'s own")}
        found: dict[int, Problem] = {}
        for part, mask in wrong.items():
            name, rule = names[part]
            for row in np.flatnonzero(mask).tolist():
                found.setdefault(row, Problem(row, str(name), self._shown(piece, name, row), rule))
        return [found[row] for row in sorted(found)]


class VectorRules(Rules):
    """Check rows whose raw forecasts take several columns, or lists, as they are.

    Parameters
    ----------
    columns
        Which column means what.
    last
        The time of the row before the first one.
    """

    def __init__(self, columns: Columns, last: float = -np.inf) -> None:
        super().__init__(columns, Scale(), last)
        self.name = ",".join(columns.vector)

    def _table(self, piece: Piece) -> Numbers:
        """Return the columns side by side."""
        read = self.columns.wording.numbers
        told = [read(piece.column(name)).values for name in self.columns.vector]
        return Numbers(np.column_stack(told), np.zeros(len(piece), np.bool_))

    def _forecasts(self, values: Reals) -> Reals:
        return values

    def _shown(self, piece: Piece, name: str | None, row: int) -> Any:
        vector, shown = self.columns.vector, super()._shown
        if name != self.name or len(vector) == 1:
            return shown(piece, name, row)
        return [shown(piece, each, row) for each in vector]


def outcomes_of(piece: Piece, columns: Columns) -> Numbers:
    """Return the outcomes of each row; all are yet to come where there is no such column."""
    if columns.outcome:
        return columns.wording.outcomes(piece.column(columns.outcome))
    return Numbers(np.full(len(piece), np.nan), np.ones(len(piece), np.bool_))


def groups_of(piece: Piece, columns: tuple[str, ...]) -> NDArray[np.object_]:
    """Return the groups of each row: the value of each column, if it has one there.

    Rows that share a value of any column share a group, so that groups of several columns
    overlap.
    """
    values = (listed(piece.column(name)) for name in columns)
    # Assigned as a whole, tuples of one length would become a table.
    found = np.empty(len(piece), object)
    for t, row in enumerate(zip(*values, strict=True)):
        pairs = zip(columns, row, strict=True)
        found[t] = tuple(f"{name}={value}" for name, value in pairs if value not in (None, ""))
    return found


def context_of(piece: Piece, columns: Columns) -> NDArray[np.object_]:
    """Return what is known of each row besides: numbers where they can be read as such, or text.

    None is nothing.
    """
    found = np.empty((len(piece), len(columns.context)), object)
    for k, name in enumerate(columns.context):
        column = piece.column(name)
        read, texts = columns.wording.numbers(column), listed(column)
        for t, (value, text) in enumerate(zip(read.values.tolist(), texts, strict=True)):
            # A gap in a column of numbers may be one that is not equal to itself.
            gap = read.missing[t] or text != text
            found[t, k] = value if np.isfinite(value) else None if gap else str(text)
    return found


def brief(value: Any) -> str:
    """Return a value as code, cut if it is long.

    >>> brief("7"), brief([0.25] * 99)
    ("'7'", '[0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25 ...')
    """
    told = repr(value)
    return told if len(told) <= LONGEST_SHOWN else f"{told[:LONGEST_SHOWN].rstrip(', ')} ..."


def value_at(piece: Piece, name: str, row: int) -> Any:
    """Return one value of a piece."""
    value = piece.column(name)[row]
    if not hasattr(value, "as_py"):
        return value
    try:
        return value.as_py()
    except (ValueError, OverflowError):
        # Python has no date after the year 9999.
        return value.cast("string").as_py()
