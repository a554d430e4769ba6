"""A stream of forecasts over several classes: the rules of its rows, and its session."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.classes import recalibrator
from calibrant.classes.vectors import TOLERANCE
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.kinds.binary.session import Probabilities
from calibrant.kinds.classes import CURVES
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.pieces import Piece
from calibrant.stream.rows import Rounds, VectorRules
from calibrant.stream.values import Numbers, listed, numbers, rounded
from calibrant.summary import Breakdown, Collector, collector_for

FEWEST: Final = 2
FIRST_WORD: Final = re.compile(r"^[^\W_]+[\W_]+")
NAMED: Final = 10
"""Classes that a message lists."""
ADDED: Final = ("top", "confidence", "mean", "ticket")


def class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classes that columns are of: their names without the first word, if all share it.

    >>> class_names(("p_cat", "p_cow")), class_names(("cat", "car")), class_names(("p",))
    (('cat', 'cow'), ('cat', 'car'), ())
    """
    if len(columns) < FEWEST:
        return ()
    short = tuple(FIRST_WORD.sub("", name) for name in columns)
    shared = len({name.removesuffix(rest) for name, rest in zip(columns, short, strict=True)}) == 1
    return short if shared and all(short) else columns


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
        cut = rounded(raw.values)
        raw.values[cut] /= raw.values[cut].sum(axis=1, keepdims=True)
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
        size = f"{count} numbers in [0, 1] that sum to 1"
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


class ClassAnswers(NamedTuple):
    """What was made of each row.

    Attributes
    ----------
    top
        The class that comes first, by name or number.
    confidence, mean
        Its probability, as drawn and on average.
    ticket
        The number of the forecast.
    forecast
        The whole vector.
    classwise
        The number of each class before anything made them sum to 1; not written.
    first
        The number of the class that comes first; not written.
    several
        Whether the vector is written as a column for each class, or as one of lists.
    """

    top: NDArray[Any]
    confidence: Reals
    mean: Reals
    ticket: Words
    forecast: Reals
    classwise: Reals
    first: Words
    several: bool

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return [*self[:4], *(self.forecast.T if self.several else [self.forecast])]


@dataclass
class ClassSession(Probabilities):
    """A session of a recalibrator over classes, which is made when their number is known.

    Attributes
    ----------
    options
        What the recalibrator is made with.
    secret
        What its draws depend on, if that was given.
    breakdown
        What was seen of each class.
    """

    outcome_type: ClassVar[type[np.generic]] = np.int64

    options: dict[str, Any] = field(default_factory=dict)
    breakdown: Breakdown = field(default_factory=lambda: Breakdown("class"))

    secret: bytes | None = field(default=None, repr=False)

    @classmethod
    def start(
        cls, columns: tuple[str, ...], options: dict[str, Any], drawn: dict[str, Any]
    ) -> ClassSession:
        """Return a session before its first row."""
        unborn = SimpleNamespace(issued=0, rounds=0, classes=None)
        told = {"columns": columns, "options": options, "secret": drawn["secret"]}
        return cls(unborn, Collector([0.0]), Scale(), drawn["seed"], **told)

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        return {"proba": self.columns}

    @property
    def several(self) -> bool:
        """Whether each class has a column."""
        return len(self.columns) > 1

    def rules(self, columns: Columns) -> ClassRules:
        return ClassRules(columns, self.recalibrator.classes, self.last)

    def added(self, columns: Columns) -> Sequence[str]:
        vector = [f"forecast_{name}" for name in class_names(self.columns)] or ["forecast"]
        return [*ADDED, *vector]

    def none(self) -> ClassAnswers:
        reals, wholes = np.empty(0), np.empty(0, np.int64)
        top = np.empty(0, "U1") if self.several else wholes
        table = np.empty((0, max(len(self.columns), 1)))
        return ClassAnswers(top, reals, reals, wholes, table, table, wholes, self.several)

    def play(self, rounds: Rounds) -> Any:
        if self.recalibrator.classes is None:
            classes = rounds.raw.shape[1]
            told = {"seed": self.seed, "secret": self.secret} | self.options
            self.recalibrator = recalibrator(classes, **told)
            self.collector = collector_for(self.recalibrator)
        return super().play(rounds)

    def _play_prompt(self, rounds: Rounds) -> ClassAnswers:
        run = self.recalibrator.replay(rounds.raw, rounds.outcomes)
        return self._answers(rounds.raw, run, run.forecast, run.first)

    def _ask(self, rounds: Rounds, time: float, number: int) -> Any:
        ticket = self.recalibrator.forecast(rounds.raw[0], time=time)
        return self._answers(rounds.raw, ticket, ticket.value[None], number)

    def _answers(self, raw: Reals, made: Any, forecast: Reals, first: int) -> ClassAnswers:
        """Return the answers of a run or of a ticket."""
        rows, top = np.arange(len(raw)), np.atleast_1d(getattr(made, "top", raw.argmax(axis=1)))
        classwise = np.atleast_2d(getattr(made, "classwise", forecast))
        if hasattr(made, "confidence"):
            drawn, mean = made.confidence, made.confidence_mean
        else:
            drawn = classwise[rows, top]
            mean = np.atleast_2d(made.classwise_mean)[rows, top]
        names = np.array(class_names(self.columns)) if self.several else np.arange(raw.shape[1])
        sure = np.minimum(np.atleast_1d(mean), 1.0)
        told = names[top], np.atleast_1d(drawn), sure, first + rows
        return ClassAnswers(*told, forecast, classwise, top, self.several)

    def _joined(self, parts: list[Any]) -> ClassAnswers:
        *columns, _ = zip(*parts, strict=True)
        joined: Any = [np.concatenate(column) for column in columns]
        return ClassAnswers._make([*joined, self.several])

    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Follow how sure the first class was and whether it came; and each class, if few."""
        known = rounds.known
        raw, outcomes = rounds.raw[known], rounds.outcomes[known]
        top = answers.first[known]
        sure = raw[np.arange(len(raw)), top]
        right = (outcomes == top).astype(np.uint8)
        drawn, mean = answers.confidence[known], answers.mean[known]
        self.collector.update(sure, drawn, mean, right, compile=self.long, checked=True)
        named = list(class_names(self.columns)) or [str(k) for k in range(raw.shape[1])]
        if raw.shape[1] > CURVES:
            places = self.breakdown.places([named[k] for k in top.tolist()])
            self.breakdown.add(places, sure, drawn, right)
            return
        for k, place in enumerate(self.breakdown.places(named).tolist()):
            said = np.clip(answers.classwise[known, k], 0.0, 1.0)
            self.breakdown.add(np.full(len(raw), place), raw[:, k], said, outcomes == k)
