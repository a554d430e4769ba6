"""What the Brier score is made of: miscalibration, and the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from calibrant import metrics
from calibrant.metrics import Decomposition
from calibrant.plot.canvas import plain, plain_axis
from calibrant.plot.drawing import Drawing, named
from calibrant.plot.palette import LIGHT, Look, Style, looks
from calibrant.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        ax.set(
            xlim=(0.0, 1.08 * top if top > 0.0 else 1.0),
            xlabel="Brier score (solid: miscalibration)",
        )
        ax.set_ylim(0.55 - len(given), 0.75)
        ax.set_yticks([])
        plain_axis(ax.xaxis)
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
    parts = {
        name: given
        if isinstance(given, Decomposition)
        else metrics.decomposition(given, outcomes, buckets=buckets)
        for name, given in named(source).items()
    }
    return BrierParts(parts)


def _ink_bar(ax: Axes, place: int, rest: float, part: Decomposition, look: Look) -> None:
    frame: Style = {"height": 0.42, "edgecolor": look.colour, "linewidth": 0.9}
    ax.barh(place, rest, facecolor=LIGHT["paper"], zorder=2.0, **frame)
    ax.barh(place, part.reliability, left=rest, facecolor=look.colour, zorder=2.0, **frame)
    told = f"{look.label}: no rounds"
    if not math.isnan(part.brier):
        told = f"{look.label}: {part.brier:.4f}, solid {_much(part.reliability)}"
    words: Style = {"ha": "left", "va": "bottom", "color": LIGHT["ink"], "zorder": 3.0}
    ax.annotate(told, (0.0, place + 0.24), (3.0, 1.0), textcoords="offset points", **words)


def _much(value: float) -> str:
    """Return a part with the digits of the whole, or two of its own if it is very small."""
    return f"{value:.4f}" if value >= SMALL else plain(float(f"{value:.2g}"))


def _ink_base_rate(ax: Axes, uncertainty: float) -> None:
    if not uncertainty > 0.0:
        return
    ax.axvline(uncertainty, color=LIGHT["soft"], linewidth=1.1, linestyle=(0.0, (4.0, 2.0)))
    words: Style = {"ha": "right", "va": "bottom", "color": LIGHT["soft"]}
    ax.annotate(
        "always saying the base rate", (uncertainty, 1.0), (0.0, 3.0),
        xycoords=("data", "axes fraction"), textcoords="offset points", **words,
    )  # fmt: skip
