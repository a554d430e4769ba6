"""Reliability diagrams, of all rounds and group by group, and the parts of the Brier score."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant import metrics
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.groups.certificate import GroupRow, group_errors, rows_of
from calibrant.groups.names import Name, names_of
from calibrant.metrics import CalibrationCurve, Decomposition
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, Drawing, Look, Style, entry, looks
from calibrant.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST: Final = 150.0
"""Area in square points of the circle of the bucket with the most rounds."""
SMALLEST: Final = 4.0
"""Area of a circle that would otherwise be too small to see."""
UNSURE: Final = 0.5
"""Width of a band from which on a circle is not joined to its neighbours: a line through
almost arbitrary places would only show noise."""


@dataclass(frozen=True, eq=False)
class Reliability(Drawing):
    """The numbers of a reliability diagram.

    Attributes
    ----------
    curves
        A :class:`~calibrant.metrics.CalibrationCurve` for each series: mean forecast,
        mean outcome, count and exact binomial band of each bucket.
    """

    size: ClassVar[tuple[float, float]] = (4.4, 5.1)

    curves: Mapping[str, CalibrationCurve]

    def areas(self, name: str) -> Reals:
        """Return the circles' areas: proportional to counts, but never invisible."""
        most = max([1, *(int(c.count.max(initial=0)) for c in self.curves.values())])
        areas = self.curves[name].count * (LARGEST / most)
        return np.asarray(np.maximum(areas, SMALLEST))

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.curves)
        canvas.unit_square(ax, ylabel="how often it happened")
        for name, curve in self.curves.items():
            _ink_curve(ax, curve, given[name], self.areas(name))
        self._ink_strip(ax, given)
        return [entry(look.label, **look.line(), **look.mark()) for look in given.values()]

    def _ink_strip(self, ax: Axes, given: Mapping[str, Look]) -> None:
        """Draw the counts below the diagram."""
        ax.tick_params(axis="x", labelbottom=False)
        strip = ax.inset_axes((0.0, -0.27, 1.0, 0.22))
        for place, (name, curve) in enumerate(self.curves.items()):
            _ink_counts(strip, curve, given[name], place, len(self.curves))
        most = max([1.0, *(float(c.count.max(initial=0)) for c in self.curves.values())])
        strip.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.08 * most))
        strip.set(xlabel="forecast", ylabel="rounds")
        canvas.probability_axis(strip.xaxis)
        canvas.count_axis(strip.yaxis, 2)


def reliability(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = 20,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Reliability:
    """Draw how often it happened against how likely it was said to be.

    Circles have areas proportional to the number of rounds behind them, bars are exact
    binomial confidence limits, the dotted diagonal is perfect calibration, and the
    strip below counts rounds.

    Parameters
    ----------
    source : Summary, CalibrationCurve, array_like, or mapping
        What to draw.  A mapping of names to curves or arrays is drawn as an overlay,
        say ``{"raw": before, "forecast": after}``; a summary gives raw and drawn forecasts.
    outcomes : array_like, optional
        0 or 1 for each forecast, if there are arrays.
    buckets : int or None
        Buckets of equal width for arrays; None keeps every distinct forecast apart,
        which suits forecasts from a grid.
    confidence : float
        Level of each bar by itself.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Notes
    -----
    A bar covers a bucket's probability if its outcomes are independent with equal
    probabilities; under drift or against an adversary it is only a yardstick for noise.

    Examples
    --------
    >>> drawn = reliability([0.1, 0.2, 0.8, 1.0], [0, 1, 1, 1], buckets=2)
    >>> drawn.curves["forecast"].mean_outcome.tolist()
    [0.5, 1.0]
    >>> drawn.figure.axes[0] is drawn.ax
    True
    """
    options: Style = {"buckets": buckets, "confidence": confidence}
    return prepare_reliability(source, outcomes, **options).draw(ax)


def prepare_reliability(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = 20,
    confidence: float = 0.95,
) -> Reliability:
    """Return the numbers that :func:`reliability` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = {name: source.curves[name] for name in ("raw", "forecast")}
    make = functools.partial(_curve, outcomes=outcomes, buckets=buckets, confidence=confidence)
    return Reliability(canvas.of_kind(source, CalibrationCurve, make))


def exact_curve(
    forecasts: ArrayLike, outcomes: ArrayLike, *, confidence: float = 0.95
) -> CalibrationCurve:
    """Return the calibration curve with one bucket for each distinct forecast.

    Examples
    --------
    >>> curve = exact_curve([0.25, 0.75, 0.75, 0.75], [0, 1, 1, 0])
    >>> curve.mean_forecast.tolist(), curve.count.tolist()
    ([0.25, 0.75], [1, 3])
    """
    cells = metrics.as_cells(forecasts, outcomes)
    low, high = metrics.binomial_band(cells.ones, cells.counts, confidence=confidence)
    counts = cells.counts.astype(np.int64)
    places = (cells.values, cells.values, counts, cells.values)
    return CalibrationCurve(*places, cells.rho, low, high, float(confidence))


def _curve(
    forecasts: ArrayLike, outcomes: Any, buckets: int | None, confidence: float = 0.95
) -> CalibrationCurve:
    if buckets is None:
        return exact_curve(forecasts, outcomes, confidence=confidence)
    return metrics.calibration_curve(forecasts, outcomes, buckets=buckets, confidence=confidence)


def _ink_curve(ax: Axes, curve: CalibrationCurve, look: Look, areas: Reals) -> None:
    used = curve.count > 0
    x, y = curve.mean_forecast[used], curve.mean_outcome[used]
    low, high = curve.band_low[used], curve.band_high[used]
    ax.vlines(x, low, high, look.colour, "-", linewidth=1.3, alpha=0.5, zorder=2.0)
    joined = np.where(high - low < UNSURE, y, np.nan)
    ax.plot(x, joined, marker="", zorder=2.5, **look.line(1.2))
    rim: Style = {"edgecolors": look.colour, "linewidths": 1.2, "facecolors": look.face}
    ax.scatter(x, y, areas[used], marker=look.marker, zorder=3.0, clip_on=False, **rim)


def _ink_counts(ax: Axes, curve: CalibrationCurve, look: Look, place: int, many: int) -> None:
    """Draw one series' counts as bars, side by side with the others' in each bucket."""
    full = curve.count > 0
    start, room = _room(curve)
    left = start + room * (0.1 + 0.8 * place / many)
    width = 0.8 * room / many
    ax.bar(left[full], curve.count[full], width[full], align="edge", **look.bar())


def _room(curve: CalibrationCurve) -> tuple[Reals, Reals]:
    """Return start and width of each bucket; of an exact value, a place around it."""
    width = curve.upper - curve.lower
    used = np.unique(curve.mean_forecast[curve.count > 0])
    gap = float(np.diff(used).min(initial=0.05))
    exact = ~(width > 0.0)
    start = np.where(exact, curve.lower - gap / 2.0, curve.lower)
    return start, np.where(exact, gap, width)


PANEL: Final = 1.9
"""Inches for one group."""
FULL_ROW: Final = 4
"""Panels side by side that have this size; fewer are larger, so that letters stay the same."""
LARGEST_PART: Final = 2.0
"""How many times larger panels may be."""
PANEL_NAME: Final = 22
"""Characters of a name that fit above a panel."""
PANEL_LARGEST: Final = 60.0
"""Area in square points of the circle with the most rounds of a group."""


@dataclass(frozen=True, eq=False)
class GroupPanels(Drawing):
    """The numbers of one reliability diagram a group.

    Attributes
    ----------
    curves
        The calibration curve of each group.
    rows
        Rounds, means and calibration errors of each group, in the same order.
    columns
        How many diagrams stand side by side.
    kind
        Whose forecasts they are, ``"raw"`` or ``"forecast"``: it decides the colour.
    """

    curves: Mapping[str, CalibrationCurve]
    rows: tuple[GroupRow, ...]
    columns: int
    kind: str = "forecast"

    @property
    def lines(self) -> int:
        """How many diagrams stand below each other."""
        return -(-len(self.curves) // self.columns)

    def draw(self, ax: Axes | None = None, *, size: tuple[float, float] | None = None) -> Self:
        """Return the same numbers, drawn; see :meth:`calibrant.plot.Drawing.draw`."""
        side = PANEL * min(LARGEST_PART, FULL_ROW / self.columns)
        room = side * self.columns, (side + 0.3) * max(self.lines, 1)
        return super().draw(ax, size=size or room)

    def _ink(self, ax: Axes) -> list[Any]:
        ax.set_axis_off()
        width, height = 1.0 / self.columns, 1.0 / max(self.lines, 1)
        for k, row in enumerate(self.rows):
            down, across = divmod(k, self.columns)
            place = (across * width, 1.0 - (down + 0.86) * height, 0.84 * width, 0.66 * height)
            _ink_panel(ax.inset_axes(place), row, self.curves[row.group], self.kind)
        return []


def groups(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    groups: Any,
    *,
    declared: Sequence[Name] = (),
    buckets: int | None = None,
    most: int = 12,
    columns: int = 4,
    ax: Axes | None = None,
) -> GroupPanels:
    """Draw how often it happened against how likely it was said to be, group by group.

    Parameters
    ----------
    forecasts, outcomes : array_like
        One for each round.
    groups
        The groups of each round, as :meth:`calibrant.groups.GroupRecalibrator.replay` takes them.
    declared : sequence, optional
        Names that masks refer to.
    buckets : int or None
        Buckets of equal width; None keeps every distinct forecast apart, which suits
        forecasts from a grid.
    most : int
        Only that many groups, those with the most rounds.
    columns : int
        Diagrams side by side.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> drawn = groups([0.5] * 4, [1, 1, 0, 0], ["north", "north", "south", "south"])
    >>> [(row.group, row.frequency) for row in drawn.rows]
    [('north', 1.0), ('south', 0.0)]
    """
    options: Style = {"declared": declared, "buckets": buckets, "most": most, "columns": columns}
    return prepare_groups(forecasts, outcomes, groups, **options).draw(ax)


def prepare_groups(
    forecasts: ArrayLike,
    outcomes: ArrayLike,
    groups: Any,
    *,
    declared: Sequence[Name] = (),
    buckets: int | None = None,
    most: int = 12,
    columns: int = 4,
) -> GroupPanels:
    """Return the numbers that :func:`groups` draws; needs no matplotlib."""
    limit, wide = check.whole(most, "most", low=1), check.whole(columns, "columns", low=1)
    values, told = check.probabilities(forecasts, "forecasts"), check.outcomes(outcomes)
    rows = group_errors(values, told, groups, declared=declared)
    largest = sorted(range(len(rows)), key=lambda k: -rows[k].rounds)[:limit]
    kept = [rows[k] for k in sorted(largest)]
    names = rows_of(groups, len(values), names_of(list(declared)))
    curves = {}
    for row in kept:
        inside = np.array([row.group in map(str, named) for named in names])
        curves[row.group] = _curve(values[inside], told[inside], buckets)
    return GroupPanels(curves, tuple(kept), min(wide, max(len(kept), 1)))


def _ink_panel(ax: Axes, row: GroupRow, curve: CalibrationCurve, kind: str) -> None:
    look = looks([kind])[kind]
    canvas.unit_square(ax)
    # The last number of a panel must not run into the first of the next.
    canvas.probability_axis(ax.xaxis, 2)
    used = curve.count > 0
    x, y = curve.mean_forecast[used], curve.mean_outcome[used]
    low, high = curve.band_low[used], curve.band_high[used]
    ax.vlines(x, low, high, look.colour, "-", linewidth=1.0, alpha=0.5, zorder=2.0)
    areas = np.maximum(curve.count[used] * (PANEL_LARGEST / curve.count.max()), 2.0)
    ax.scatter(x, y, areas, facecolors=look.face, edgecolors=look.colour, zorder=3.0)
    whole = " ".join(row.group.split())
    name = whole if len(whole) <= PANEL_NAME else f"{whole[: PANEL_NAME - 1]}…"
    told = f"{name}\n{row.rounds:,} rounds, C2 {row.c2:.4f}"
    style: Style = {"verticalalignment": "bottom", "color": LIGHT["ink"]}
    ax.text(0.0, 1.05, told, transform=ax.transAxes, **style)


SMALL: Final = 0.001
"""Parts below which four digits after the point show little."""


@dataclass(frozen=True, eq=False)
class BrierParts(Drawing):
    """Brier scores, split.

    Attributes
    ----------
    parts
        A :class:`~calibrant.metrics.Decomposition` for each kind of forecast.
    """

    size: ClassVar[tuple[float, float]] = (4.6, 2.5)

    parts: Mapping[str, Decomposition]

    def rest(self, name: str) -> float:
        """Return what would be left of the Brier score without miscalibration; at least 0."""
        # The difference of two sums may round to just below.
        return max(self.parts[name].brier - self.parts[name].reliability, 0.0)

    def _ink(self, ax: Axes) -> list[Any]:
        given = looks(self.parts)
        for place, (name, look) in enumerate(given.items()):
            _ink_bar(ax, -place, self.rest(name), self.parts[name], look)
        uncertainty = max((part.uncertainty for part in self.parts.values()), default=np.nan)
        top = max([uncertainty, *(part.brier for part in self.parts.values())])
        ax.set(xlim=(0.0, 1.08 * top if top > 0.0 else 1.0), ylim=(0.55 - len(given), 0.75))
        ax.set(xlabel="Brier score (solid: miscalibration)", yticks=[])
        canvas.plain_axis(ax.xaxis)
        _ink_base_rate(ax, uncertainty)
        return []


def decomposition(
    source: Any,
    outcomes: ArrayLike | None = None,
    *,
    buckets: int | None = 20,
    ax: Axes | None = None,
) -> BrierParts:
    """Draw how much of the Brier score is miscalibration.

    The full bar is the Brier score; its solid end is what miscalibration adds.  The
    dashed line is the score of always saying the base rate.

    Parameters
    ----------
    source : Summary, Decomposition, array_like, or mapping
        What to draw; a mapping of names to any of these is drawn as one bar each.
    outcomes : array_like, optional
        0 or 1 for each forecast, if there are arrays.
    buckets : int or None
        Buckets of equal width for arrays; None keeps every distinct forecast apart.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> drawn = decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 1])
    >>> drawn.parts["forecast"].reliability, drawn.rest("forecast")
    (0.0625, 0.0)
    """
    return prepare_decomposition(source, outcomes, buckets=buckets).draw(ax)


def prepare_decomposition(
    source: Any, outcomes: ArrayLike | None = None, *, buckets: int | None = 20
) -> BrierParts:
    """Return the numbers that :func:`decomposition` draws; needs no matplotlib."""
    if isinstance(source, Summary):
        source = source.decompositions
    make = functools.partial(metrics.decomposition, outcomes=outcomes, buckets=buckets)
    return BrierParts(canvas.of_kind(source, Decomposition, make))


def _ink_bar(ax: Axes, place: int, rest: float, part: Decomposition, look: Look) -> None:
    frame: Style = {"height": 0.42, "edgecolor": look.colour, "linewidth": 0.9}
    ax.barh(place, rest, facecolor=LIGHT["paper"], zorder=2.0, **frame)
    ax.barh(place, part.reliability, left=rest, facecolor=look.colour, zorder=2.0, **frame)
    told = f"{look.label}: no rounds"
    if not math.isnan(part.brier):
        value = part.reliability
        # The digits of the whole, or two of its own if the part is very small.
        much = f"{value:.4f}" if value >= SMALL else canvas.plain(float(f"{value:.2g}"))
        told = f"{look.label}: {part.brier:.4f}, solid {much}"
    words: Style = {"ha": "left", "va": "bottom", "color": LIGHT["ink"], "zorder": 3.0}
    ax.annotate(told, (0.0, place + 0.24), (3.0, 1.0), textcoords="offset points", **words)


def _ink_base_rate(ax: Axes, uncertainty: float) -> None:
    if not uncertainty > 0.0:
        return
    ax.axvline(uncertainty, color=LIGHT["soft"], linewidth=1.1, linestyle=(0.0, (4.0, 2.0)))
    words: Style = {"ha": "right", "va": "bottom", "color": LIGHT["soft"]}
    ax.annotate(
        "always saying the base rate", (uncertainty, 1.0), (0.0, 3.0),
        xycoords=("data", "axes fraction"), textcoords="offset points", **words,
    )  # fmt: skip
