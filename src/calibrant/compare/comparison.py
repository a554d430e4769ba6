"""What came of a comparison: rows, words and a page."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from calibrant._version import __version__
from calibrant.core import check
from calibrant.core.files import FilePath, put
from calibrant.errors import CorruptState, UnknownName
from calibrant.plot.pareto import front_of, prepare_pareto
from calibrant.report.page import Figure, figure, filled
from calibrant.report.tables import plainly, rounds_told, shown
from calibrant.summary.summary import bare

VERSION: Final = 1
"""Version of the format of :meth:`Comparison.to_dict`."""

KINDS: Final = {
    "raw": "raw forecasts",
    "default": "Calibrant, the default",
    "calibrator": "Algorithm 1 with a calibrator",
    "transform": "a transform alone",
    "river": "River",
    "scikit-learn": "scikit-learn",
}
"""What methods belong to."""

KEYS: Final = {
    "brier": "Brier",
    "log_loss": "log loss",
    "calibration_l1": "C1",
    "calibration_l2": "C2",
    "smooth": "smooth",
    "worst_window_l2": "worst window",
    "adversarial_l2": "adversarial C2",
}
"""The figures of a row that are better if smaller, and their headings."""


@dataclass(frozen=True)
class Row:
    """One method's figures.

    Attributes
    ----------
    name, kind, about
        Of the method: how it is asked for, what it belongs to, what it is.
    cells
        Over what C1 and C2 are: ``"values"`` if forecasts are values of a grid, which recur,
        ``"buckets"`` if they may be any numbers.
    brier, log_loss
        Accuracy of the mean forecast.
    brier_drawn
        Brier score of the forecast that is announced, coin and all.
    calibration_l1, calibration_l2
        C1 and C2 of the forecast.
    smooth
        Smooth calibration error of the forecast.
    worst_window_l2
        Largest C2 of a window.
    adversarial_l2
        C2 over exact values after the game against the paper's adversary; not on this stream.
    state_bytes
        What must be kept in order to go on after the last round.
    """

    name: str
    kind: str
    about: str
    cells: str
    brier: float
    log_loss: float
    brier_drawn: float
    calibration_l1: float
    calibration_l2: float
    smooth: float
    worst_window_l2: float
    adversarial_l2: float
    state_bytes: int


@dataclass(frozen=True)
class Comparison:
    """All methods on one stream.

    Attributes
    ----------
    title
        What the stream is called.
    rounds, n_unresolved, base_rate
        Rounds with an outcome, which are all that is scored; rounds without; frequency of 1.
    window
        Rounds of a window; 0 if there are too few for one.
    adversarial_rounds
        Rounds of the game against the adversary; 0 if it was not played.
    seed
        What draws and games depend on.
    settings
        More of what it takes to repeat it.
    absent
        Libraries that are not installed here and whose methods are missing therefore.
    rows
        One for each method.
    timing
        What differs from run to run: ``microseconds`` of processor time a round by method, and
        ``compiler``, which says whether there was one.

    Examples
    --------
    >>> from calibrant.compare import compare
    >>> made = compare([0.9, 0.2] * 60, [1, 0, 1, 1] * 30, methods=["running_mean"], seed=1)
    >>> [row.name for row in made.ranked("brier")]
    ['running_mean', 'raw']
    >>> round(made.row("raw").brier, 6), Comparison.from_dict(made.to_dict()) == made
    (0.175, True)
    """

    title: str
    rounds: int
    n_unresolved: int
    base_rate: float
    window: int
    adversarial_rounds: int
    seed: int
    settings: dict[str, Any]
    absent: tuple[str, ...]
    rows: tuple[Row, ...]
    timing: dict[str, Any] = field(default_factory=dict)

    def row(self, name: str) -> Row:
        """Return the row of that method."""
        for row in self.rows:
            if row.name == name:
                return row
        listed = ", ".join(repr(row.name) for row in self.rows)
        raise UnknownName(f"row must be one of {listed}, got {name!r}")

    def ranked(self, by: str = "brier") -> list[Row]:
        """Return all rows, the best first; those without that figure last."""
        check.choice(by, "by", tuple(KEYS))
        return sorted(self.rows, key=lambda row: _order(row, by))

    def points(
        self, accuracy: str = "brier", calibration: str = "calibration_l2"
    ) -> dict[str, tuple[float, float]]:
        """Return two figures of each method, for :func:`calibrant.plot.pareto`."""
        for key in (accuracy, calibration):
            check.choice(key, "figure", tuple(KEYS))
        return {row.name: (getattr(row, accuracy), getattr(row, calibration)) for row in self.rows}

    @property
    def kinds(self) -> dict[str, str]:
        """What each method belongs to."""
        return {row.name: row.kind for row in self.rows}

    def front(self, accuracy: str = "brier", calibration: str = "calibration_l2") -> list[str]:
        """Return the methods that no other one beats in both figures, the best calibrated first."""
        return front_of(self.points(accuracy, calibration))

    def microseconds(self, name: str) -> float:
        """Return the processor time of a round by that method; nan if it was not measured."""
        found = self.timing.get("microseconds", {}).get(name)
        return math.nan if found is None else float(found)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; figures that do not exist are None.

        Two runs of the same rounds with the same seed differ below ``timing`` only.
        """
        told = {name: getattr(self, name) for name in _names(Comparison)}
        told["rows"] = [dataclasses.asdict(row) for row in self.rows]
        return dict(bare({"version": VERSION, "calibrant": __version__, **told}))

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Return the comparison whose :meth:`to_dict` this is."""
        if not isinstance(data, dict) or data.get("version") != VERSION:
            found = data.get("version") if isinstance(data, dict) else data
            raise CorruptState(f"version must be {VERSION} of a comparison, got {found!r}")
        try:
            told = {name: data[name] for name in _names(cls)}
            rows = tuple(Row(**_figures(row)) for row in told.pop("rows"))
            figures = {"absent": tuple(told.pop("absent")), **_figures(told)}
            return cls(rows=rows, **figures)
        except (KeyError, TypeError) as error:
            raise CorruptState(f"comparison must have all its entries, got {error}") from error


FIGURES: Final = (*KEYS, "brier_drawn", "base_rate")


def _figures(data: dict[str, Any]) -> dict[str, Any]:
    """Return ``data`` with figures that do not exist as nan."""
    return {k: math.nan if v is None and k in FIGURES else v for k, v in data.items()}


def _names(made: type) -> list[str]:
    return [entry.name for entry in dataclasses.fields(made)]


def _order(row: Row, by: str) -> tuple[bool, float, bool, str]:
    """Return what ranks a method: of equals the raw forecasts come first, as they cost nothing."""
    value = getattr(row, by)
    return math.isnan(value), value, row.kind != "raw", row.name


NOTHING: Final = "No round has an outcome: there is nothing to compare."
FEW: Final = 100
"""Rounds below which chance decides who is the best."""
BROKEN: Final = 0.1
"""C2 of forecasts that are off by a third on average: they mean nothing any more."""


def headline(comparison: Comparison) -> str:
    """Return who was the most accurate, who the best calibrated, and who withstood.

    Examples
    --------
    >>> from calibrant.compare import compare
    >>> outcomes = [1, 0, 1, 1] * 30
    >>> print(headline(compare([0.9, 0.2] * 60, outcomes, methods=["running_mean"])))
    running_mean is the most accurate, Brier 0.1359 (raw 0.1750), and the best calibrated, C2
    0.0329. Against the adversary, running_mean has the least C2, 0.2759; 2 of 2 methods exceed
    0.1.
    """
    return " ".join(sentences(comparison))


def sentences(comparison: Comparison) -> list[str]:
    """Return what is to be said about the stream and, if there was a game, about the game."""
    if not comparison.rounds:
        return [NOTHING]
    few = f"With {rounds_told(comparison.rounds)}, chance decides which method is the best."
    told = [*([few] if comparison.rounds < FEW else []), _on_the_stream(comparison)]
    return [*told, _against(comparison)] if comparison.adversarial_rounds else told


def _on_the_stream(comparison: Comparison) -> str:
    best, calm = (comparison.ranked(key)[0] for key in ("brier", "calibration_l2"))
    raw = "" if best.kind == "raw" else f" (raw {shown(comparison.row('raw').brier)})"
    told = f"{best.name} is the most accurate, Brier {shown(best.brier)}{raw}"
    if calm is best:
        told += f", and the best calibrated, C2 {shown(best.calibration_l2)}"
    else:
        told += f"; {calm.name} is the best calibrated, C2 {shown(calm.calibration_l2)}"
    ours = [row for row in comparison.rows if row.kind == "default" and row not in (best, calm)]
    return told + "".join(f"; {_pair(row)}" for row in ours) + "."


def _pair(row: Row) -> str:
    return f"{row.name} has Brier {shown(row.brier)} and C2 {shown(row.calibration_l2)}"


def _against(comparison: Comparison) -> str:
    """Return who withstood the adversary."""
    safe = comparison.ranked("adversarial_l2")[0]
    told = f"Against the adversary, {safe.name} has the least C2, {shown(safe.adversarial_l2)}"
    for row in comparison.rows:
        if row.kind == "default" and row is not safe:
            told += f"; {row.name} has {shown(row.adversarial_l2)}"
    broken = sum(row.adversarial_l2 > BROKEN for row in comparison.rows)
    return f"{told}; {broken} of {len(comparison.rows)} methods exceed {BROKEN}."


ON_THE_STREAM: Final = (
    "Accuracy and calibration",
    "Brier score of the mean forecast against C2 of the announced one, on this stream. Nothing "
    "lies left of the line and below it.",
)
AGAINST: Final = (
    "Accuracy and safety",
    "The same Brier score against C2 in another game: raw forecasts by a coin, and an adversary "
    "that sees the mean and does the opposite.",
)


@dataclass(frozen=True)
class Cell:
    """A figure as it is printed, and whether it is the best of its column."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Line:
    """A method's line of the table."""

    row: Row
    front: bool
    cells: tuple[Cell, ...]


def write(comparison: Comparison, path: FilePath, *, command: str | None = None) -> Path:
    """Write the page of a comparison; return the path.

    Parameters
    ----------
    comparison : Comparison
        What to tell.
    path : path
        An HTML file, written beside and then moved there in one step.
    command : str, optional
        What makes the same numbers again.
    """
    return put(path, render(comparison, command=command).encode())


def render(comparison: Comparison, *, command: str | None = None) -> str:
    """Return the page that :func:`write` writes."""
    return filled(
        "the page needs",
        "calibrant.compare",
        "comparison.html",
        title=f"Methods compared on {comparison.title}",
        sentences=sentences(comparison),
        facts=_facts(comparison),
        figures=_pictures(comparison),
        header=[*KEYS.values(), "µs a round", "bytes"],
        lines=_lines(comparison),
        notes=_notes(comparison),
        kinds=KINDS,
        command=command,
        settings=_settings(comparison),
    )


def _facts(comparison: Comparison) -> list[str]:
    facts = [f"{comparison.rounds:,} rounds", f"base rate {shown(comparison.base_rate, 3)}"]
    if comparison.n_unresolved:
        facts.append(f"{comparison.n_unresolved:,} without an outcome")
    return [*facts, f"{len(comparison.rows)} methods", f"seed {comparison.seed}"]


def _pictures(comparison: Comparison) -> list[Figure]:
    made = [_figure(comparison, "calibration_l2", "calibration error C2", ON_THE_STREAM)]
    if comparison.adversarial_rounds:
        made.append(_figure(comparison, "adversarial_l2", "C2 against the adversary", AGAINST))
    return made if comparison.rounds else []


def _figure(comparison: Comparison, key: str, axis: str, words: tuple[str, str]) -> Figure:
    points = comparison.points("brier", key)
    prepared = prepare_pareto(points, kinds=comparison.kinds, calibration=axis)
    told = f"{words[1]} Not beaten in both: {', '.join(prepared.front)}."
    return figure(prepared, key, words, told)


def _lines(comparison: Comparison) -> list[Line]:
    front = comparison.front()
    least = {key: min(_values(comparison, key), default=math.nan) for key in KEYS}
    return [
        Line(row, row.name in front, (*_scores(row, least), *_prices(comparison, row)))
        for row in comparison.ranked()
    ]


def _values(comparison: Comparison, key: str) -> list[float]:
    found = (getattr(row, key) for row in comparison.rows)
    return [value for value in found if not math.isnan(value)]


def _scores(row: Row, least: dict[str, float]) -> list[Cell]:
    return [Cell(shown(getattr(row, key)), getattr(row, key) == least[key]) for key in KEYS]


def _prices(comparison: Comparison, row: Row) -> list[Cell]:
    cost = comparison.microseconds(row.name)
    told = shown(cost, 0) if cost >= 100.0 or math.isnan(cost) else f"{cost:.3g}"
    return [Cell(told), Cell(f"{row.state_bytes:,}")]


def _notes(comparison: Comparison) -> list[str]:
    compiled = "with" if comparison.timing.get("compiler") else "without"
    notes = [
        "Brier score and log loss are those of the mean forecast; all calibration errors are "
        "those of the forecast that is announced, which recalibrators draw from a grid. Their C1 "
        "and C2 are over exact values, those of all others over 20 equal buckets; the smooth "
        "error needs neither.",
        "A dot marks methods that no other one beats in both Brier score and C2; the best figure "
        "of each column is bold. Noise decides between figures that are close.",
        f"Processor time of one round, {compiled} a compiler, measured once: it differs from "
        "machine to machine and from run to run. Bytes are what must be kept to continue.",
    ]
    notes += [f"The worst window is one of {comparison.window:,} rounds."] * bool(comparison.window)
    if comparison.adversarial_rounds:
        notes.append(
            f"Adversarial C2 is not about this stream: {comparison.adversarial_rounds:,} rounds "
            "with raw forecasts of 0 or 1 by a coin, and an outcome that is 1 exactly when the "
            "announced mean is at most one half (Kuleshov and Ermon 2017); over exact values. "
            "Nothing without a coin can be below 0.25."
        )
    if comparison.absent:
        names = " and ".join(KINDS[kind] for kind in comparison.absent)
        notes.append(f"Not installed here, and therefore missing: {names}.")
    return notes


def _settings(comparison: Comparison) -> list[tuple[str, str]]:
    told = {"seed": comparison.seed, "window": comparison.window}
    told |= {"adversarial rounds": comparison.adversarial_rounds, **comparison.settings}
    return [(name, plainly(value)) for name, value in told.items()]
