"""The result of a comparison: numbers first, ink second."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Final, Self

from calibrant._version import __version__
from calibrant.core import check
from calibrant.errors import CorruptState, UnknownName
from calibrant.plot.pareto import front_of
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
        made: dict[str, Any] = bare({"version": VERSION, "calibrant": __version__, **told})
        return made

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


def _order(row: Row, by: str) -> tuple[bool, float, str]:
    value = getattr(row, by)
    return math.isnan(value), value, row.name
