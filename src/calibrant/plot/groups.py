"""Small multiples: a reliability diagram for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.groups.certificate import GroupRow, group_errors, rows_of
from calibrant.groups.names import Name, names_of
from calibrant.metrics import CalibrationCurve, calibration_curve
from calibrant.plot.canvas import probability_axis
from calibrant.plot.drawing import Drawing
from calibrant.plot.palette import LIGHT, looks
from calibrant.plot.reliability import exact_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL: Final = 1.9
"""Inches for one group."""
LARGEST: Final = 60.0
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
    """

    curves: Mapping[str, CalibrationCurve]
    rows: tuple[GroupRow, ...]
    columns: int

    @property
    def lines(self) -> int:
        """How many diagrams stand below each other."""
        return -(-len(self.curves) // self.columns)

    def draw(self, ax: Axes | None = None, *, size: tuple[float, float] | None = None) -> Self:
        """Return the same numbers, drawn; see :meth:`calibrant.plot.Drawing.draw`."""
        room = PANEL * self.columns, (PANEL + 0.3) * max(self.lines, 1)
        return super().draw(ax, size=size or room)

    def _ink(self, ax: Axes) -> list[Any]:
        ax.set_axis_off()
        width, height = 1.0 / self.columns, 1.0 / max(self.lines, 1)
        for k, row in enumerate(self.rows):
            down, across = divmod(k, self.columns)
            place = (across * width, 1.0 - (down + 0.86) * height, 0.84 * width, 0.66 * height)
            _ink_panel(ax.inset_axes(place), row, self.curves[row.group])
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
        Only so many groups, those with the most rounds.
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
    made = prepare_groups(
        forecasts, outcomes, groups, declared=declared, buckets=buckets, most=most, columns=columns
    )
    return made.draw(ax)


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


def _curve(forecasts: ArrayLike, outcomes: ArrayLike, buckets: int | None) -> CalibrationCurve:
    if buckets is None:
        return exact_curve(forecasts, outcomes)
    return calibration_curve(forecasts, outcomes, buckets=buckets)


def _ink_panel(ax: Axes, row: GroupRow, curve: CalibrationCurve) -> None:
    look = looks(["forecast"])["forecast"]
    ax.plot([0, 1], [0, 1], color=LIGHT["soft"], linewidth=1.0, dashes=(1.0, 2.0), zorder=1)
    used = curve.count > 0
    x, y = curve.mean_forecast[used], curve.mean_outcome[used]
    low, high = curve.band_low[used], curve.band_high[used]
    ax.vlines(x, low, high, look.colour, "-", linewidth=1.0, alpha=0.5, zorder=2.0)
    areas = np.maximum(curve.count[used] * (LARGEST / curve.count.max()), 2.0)
    ax.scatter(x, y, areas, facecolors=look.face, edgecolors=look.colour, zorder=3.0)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    probability_axis(ax.xaxis)
    probability_axis(ax.yaxis)
    told = f"{row.group}\n{row.rounds:,} rounds, C2 {row.c2:.4f}"
    ax.text(0.0, 1.05, told, transform=ax.transAxes, verticalalignment="bottom")
