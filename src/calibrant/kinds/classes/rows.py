"""The rules of rows with a probability for each of several classes."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.classes.vectors import TOLERANCE
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.stream.columns import Columns, Numbers, numbers
from calibrant.stream.readers import Piece
from calibrant.stream.rows import VectorRules, listed

FEWEST: Final = 2
FIRST_WORD: Final = re.compile(r"^[^\W_]+[\W_]+")
NAMED: Final = 10
"""Classes that a message lists."""


def class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classes that columns are of: their names without the first word, if all share it.

    >>> class_names(("p_cat", "p_cow")), class_names(("cat", "car")), class_names(("p",))
    (('cat', 'cow'), ('cat', 'car'), ())
    """
    if len(columns) < FEWEST:
        return ()
    starts = {FIRST_WORD.sub("", name) for name in columns}
    short = tuple(FIRST_WORD.sub("", name) for name in columns)
    shared = len({name.removesuffix(rest) for name, rest in zip(columns, short, strict=True)}) == 1
    return short if shared and all(starts) else columns


class ClassRules(VectorRules):
    """Check rows with several probabilities and read them.

    Parameters
    ----------
    columns
        Which column means what: a column for each class, or one of lists.
    classes
        How many classes there are; None if the first list is to say.
    last
        The time of the row before the first one.
    """

    def __init__(self, columns: Columns, classes: int | None, last: float = -np.inf) -> None:
        super().__init__(columns, last)
        several = len(columns.proba) > 1
        self.classes = len(columns.proba) if several else classes
        named = zip(columns.proba, class_names(columns.proba), strict=False)
        self._numbered: dict[str, int] = {}
        for k, names in enumerate(named):
            self._numbered |= dict.fromkeys(names, k)

    def _numbers(self, piece: Piece) -> tuple[Numbers, Numbers]:
        raw = self._table(piece) if len(self.columns.proba) > 1 else self._lists(piece)
        told = listed(piece.column(self.columns.outcome))
        missing = np.array([value is None or value == "" for value in told], np.bool_)
        found = [np.nan if gap else self._class(v) for v, gap in zip(told, missing, strict=True)]
        return raw, Numbers(np.array(found, np.float64), missing)

    def _lists(self, piece: Piece) -> Numbers:
        """Return a table of the lists; rows that are no such list are not numbers there."""
        table = self._read(piece.column(self.columns.proba[0]))
        return Numbers(table, np.zeros(len(table), np.bool_))

    def _read(self, column: Any) -> Reals:
        if not isinstance(column, list) and _is_list(column.type):
            sizes = pc.unique(pc.list_value_length(column)).to_pylist()
            if len(sizes) == 1 and sizes[0] and self.classes in (None, sizes[0]):
                self.classes = sizes[0]
                return numbers(pc.list_flatten(column)).values.reshape(-1, self.classes)
        rows = [_vector(value) for value in listed(column)]
        self.classes = self.classes or max((len(row) for row in rows), default=0) or None
        table = np.full((len(rows), self.classes or 0), np.nan)
        for t, row in enumerate(rows):
            if len(row) == self.classes:
                table[t] = numbers(row).values
        return table

    def _class(self, value: Any) -> float:
        """Return the number of a class, given by its name or number; nan if it is none."""
        text = value if isinstance(value, str) else str(value)
        if text in self._numbered:
            return float(self._numbered[text])
        number = float(numbers([value]).values[0])
        whole = number >= 0.0 and number == np.floor(number) and not isinstance(value, bool)
        return number if whole and number < (self.classes or 0) else np.nan

    def _wrong(self, raw: Numbers, outcome: Numbers) -> dict[str, Mask]:
        table = raw.values
        with np.errstate(invalid="ignore"):
            inside = ((table >= 0.0) & (table <= 1.0)).all(axis=1)
            whole = np.abs(table.sum(axis=1) - 1.0) <= TOLERANCE
        enough = table.shape[1] >= FEWEST
        return {
            "raw": ~(inside & whole & enough),
            "outcome": ~outcome.missing & np.isnan(outcome.values),
        }

    def _outcomes(self, values: Reals) -> Words:
        return np.nan_to_num(values).astype(np.int64)

    def _rules(self) -> dict[str, tuple[str | None, str]]:
        told = ", ".join(list(self._numbered)[:NAMED]) + (
            "..." if len(self._numbered) > NAMED else ""
        )
        named = f"a class ({told}) or its number" if told else "the number of a class"
        count = max(self.classes or 0, FEWEST)
        last = f"{named} from 0 to {count - 1}"
        size = f"{count} numbers in [0, 1] that sum to 1 within {TOLERANCE:g}"
        return {"raw": (self.name, size), "outcome": (self.columns.outcome, last)}


def _is_list(kind: Any) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def _vector(value: Any) -> list[Any]:
    """Return a list of numbers, also one that is written as JSON; nothing for anything else."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return []
    return list(value) if isinstance(value, (list, tuple)) else []
