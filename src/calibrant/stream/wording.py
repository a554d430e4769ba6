"""How a file words its numbers, outcomes and times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from calibrant.stream import values

PAIRS: Final = (
    ("1", "0"), ("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("ja", "nein"),
    ("oui", "non"), ("si", "no"), ("won", "lost"), ("win", "loss"), ("pass", "fail"),
    ("correct", "incorrect"), ("right", "wrong"), ("success", "failure"),
    ("positive", "negative"), ("pos", "neg"), ("good", "bad"), ("on", "off"), ("sí", "no"),
    ("sim", "não"), ("da", "ne"), ("ano", "ne"), ("tak", "nie"), ("да", "нет"), ("是", "否"),
    ("はい", "いいえ"), ("wahr", "falsch"), ("vrai", "faux"), ("✓", "✗"), ("✅", "❌"), ("1", "-1"),
)  # fmt: skip
"""Words for yes and no that go together; which is which is known for the first five only."""
KNOWN: Final = {word: float(k == 0) for pair in PAIRS[:5] for k, word in enumerate(pair)}
"""Outcomes that need no explanation."""
DATES: Final = (
    "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y",
    "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y",
    "%d-%b-%Y", "%d-%b-%y", "%a, %d %b %Y", "%a %b %d %Y", "%Y-%m-%d", "%d. %B %Y", "%Y-%m",
    "%b %Y", "%B %Y", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z", "%m/%d/%Y %I:%M%p",
)  # fmt: skip
CLOCKS: Final = (
    "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S",
    " %H:%M:%S %z", " %H:%M %z", ", %H:%M", ", %H:%M:%S", " %H:%M:%S UTC", " %H:%M:%S GMT",
)  # fmt: skip
"""Forms of times beside ISO 8601 that are tried."""

GROUPED: Final = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
"""Numbers with points between thousands, where commas stand before decimals."""


@dataclass(frozen=True)
class Wording:
    """How text becomes a number, an outcome or a time.

    Attributes
    ----------
    decimal
        What stands before the decimals, a point or a comma; where it is a comma, points may stand
        between thousands, and nowhere else.
    percent
        Whether a number may end in a per cent sign.
    positive
        The outcome that counts as 1; None if outcomes are 0 and 1, or say so themselves.
    time_format
        The form of times, as of :meth:`~datetime.datetime.strptime`; None for ISO 8601 and numbers.
    other
        The outcome that counts as 0 beside ``positive``: that of the first rows if they have
        two, its opposite if that is known, or else the first other one that came.

    Examples
    --------
    >>> Wording(decimal=",", percent=True).numbers(["83,5 %", "7"]).values.tolist()
    [83.5, 7.0]
    >>> Wording(positive="churned").outcomes(["stayed", "churned", "left"]).values.tolist()
    [0.0, 1.0, nan]
    """

    decimal: str = "."
    percent: bool = False
    positive: str | None = None
    time_format: str | None = None
    other: list[str] = field(default_factory=list, compare=False)

    @property
    def options(self) -> dict[str, str]:
        """The words that say this on the command line; the sign of percents needs none."""
        told = {"positive": self.positive, "time-format": self.time_format}
        told["decimal"] = None if self.decimal == "." else self.decimal
        return {name: text for name, text in told.items() if text is not None}

    @property
    def outcome_rule(self) -> str:
        """What an outcome must be."""
        if self.positive is None:
            return "0 or 1"
        return f"{self.positive!r} or {repr(self.other[0]) if self.other else 'one other value'}"

    @property
    def time_rule(self) -> str:
        """What a time must be."""
        if self.time_format is None:
            return "a time (a number, ISO 8601, or as --time-format says)"
        return f"a time in the form {self.time_format!r}"

    def numbers(self, column: Any) -> values.Numbers:
        """Read a column of numbers."""
        return values.numbers(self._plain(column))

    def outcomes(self, column: Any) -> values.Numbers:
        """Read a column of outcomes as 1 and 0, nan for what is neither."""
        if self.positive is not None:
            return values.one_by_one(values.listed(column), self._chosen)
        column = replace(self, percent=False)._plain(column)
        found = values.numbers(column)
        strange = np.isnan(found.values) & ~found.missing
        return values.one_by_one(values.listed(column), _outcome) if strange.any() else found

    def read(self, column: Any, *, outcome: bool) -> values.Numbers:
        """Read a column of either."""
        return self.outcomes(column) if outcome else self.numbers(column)

    def times(self, column: Any) -> values.Numbers:
        """Read a column of times."""
        if self.time_format is None or not (
            isinstance(column, list) or values.is_text(values.decoded(column))
        ):
            return values.times(column)
        return values.one_by_one(values.listed(column), self._moment)

    def _plain(self, column: Any) -> Any:
        """Return numbers as text that anybody reads."""
        if self.decimal == "." and not self.percent:
            return column
        if isinstance(column, list):
            return [self._point(value) if isinstance(value, str) else value for value in column]
        column = values.decoded(column)
        if not values.is_text(column):
            return column
        if self.percent:
            column = pc.replace_substring_regex(column, r"\s*%\s*$", "")
        if self.decimal == ".":
            return column
        if pc.any(pc.match_substring(column, ".")).as_py():
            return self._plain(column.to_pylist())
        return pc.replace_substring(column, ",", ".")

    def _point(self, text: str) -> str:
        plain = text.strip().removesuffix("%").rstrip() if self.percent else text
        if self.decimal == ".":
            return plain
        if "." not in plain:
            return plain.replace(",", ".")
        whole = plain.replace(".", "").replace(",", ".")
        return whole if GROUPED.fullmatch(plain.strip()) else "nan"

    def _chosen(self, value: Any) -> float:
        """Return 1 for the positive outcome, 0 for the other one, nan for a third."""
        text, positive = shown(value), str(self.positive)
        if _same(text, positive):
            return 1.0
        if not self.other:
            self.other.append(opposite(positive) or text)
        return 0.0 if _same(text, self.other[0]) else np.nan

    def _moment(self, value: Any) -> float:
        try:
            return values.seconds(datetime.strptime(str(value).strip(), str(self.time_format)))
        except (ValueError, re.error):
            # The latter says that a code stands in the form twice.
            return np.nan


def _outcome(value: Any) -> float:
    found = KNOWN.get(value.strip().lower()) if isinstance(value, str) else None
    return values.number(value) if found is None else found


def shown(value: Any) -> str:
    """Return a value as a person would write it: a whole number without a point.

    >>> shown(2.0), shown("yes "), shown(True)
    ('2', 'yes', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def _same(text: str, other: str) -> bool:
    """Say whether two values are the same but for case and for how a number is written."""
    return text.casefold() == other.casefold() or values.number(text) == values.number(other)


def opposite(text: str) -> str | None:
    """Return the one word that goes with another one.

    >>> opposite("Yes"), opposite("lost"), opposite("no"), opposite("churned"), opposite("1")
    ('no', 'won', None, None, None)
    """
    plain = text.casefold()
    found = {pair[pair[0] == plain] for pair in PAIRS[1:-1] if plain in pair}
    # No is said in several languages.
    return found.pop() if len(found) == 1 else None


def forms(texts: Sequence[str]) -> list[str]:
    """Return the forms that fit all texts; of two that tell the same times the first.

    Examples
    --------
    >>> forms(["31.12.2024 9:30", "1.1.2025 10:00"])
    ['%d.%m.%Y %H:%M']
    >>> forms(["03/04/2024", "05/06/2024"]), forms(["03/04/2024", "05/26/2024"])
    (['%d/%m/%Y', '%m/%d/%Y'], ['%m/%d/%Y'])
    """
    found: dict[tuple[float, ...], str] = {}
    for form in _candidates(texts[0]) if texts else ():
        told = Wording(time_format=form).times(list(texts)).values
        if np.isfinite(told).all():
            found.setdefault(tuple(told.tolist()), form)
    return list(found.values())


def _candidates(text: str) -> Iterator[str]:
    for date, clock in product(DATES, CLOCKS):
        if np.isfinite(Wording(time_format=date + clock).times([text]).values[0]):
            yield date + clock
