"""Accuracy against calibration: which methods no other one beats in both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.plot import canvas
from calibrant.plot.canvas import LIGHT, Drawing, Look, Style, entry, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]

FAR: Final = 3.0
"""How many times the median's distance from the best a point may be and still have its place."""
TINY: Final = 1e-7
"""The least error on a logarithmic axis; a smaller one is drawn here."""
WIDE: Final = 1.3
"""Decades on a logarithmic axis from which powers of ten alone are labels enough."""
LETTER: Final = 0.62
"""Width of a letter, in heights."""
MARK: Final = 6.0
FADED: Final = {"alpha": 0.45}


@dataclass(frozen=True, eq=False)
class Pareto(Drawing):
    """Two figures of each method, both better if smaller.

    Attributes
    ----------
    points
        Accuracy and calibration by name; nan where there is none.
    kinds
        What each method belongs to: methods of one kind look alike.
    titles
        What the two figures are called.
    front
        The methods that no other one beats in both, the best calibrated first.
    """

    size: ClassVar[tuple[float, float]] = (5.6, 4.2)
    entry_width: ClassVar[float] = 1.35

    points: Mapping[str, Point]
    kinds: Mapping[str, str]
    titles: tuple[str, str]
    front: Sequence[str]

    @property
    def shown(self) -> dict[str, Point]:
        """The methods that have both figures."""
        return {name: point for name, point in self.points.items() if _is_whole(point)}

    @property
    def limit(self) -> float:
        """The accuracy above which methods are drawn at the edge."""
        values = np.array([accuracy for accuracy, _ in self.shown.values()])
        best, middle = float(values.min()), float(np.median(values))
        far = best + FAR * (middle - best)
        return far if far > best else float(values.max())

    @property
    def beyond(self) -> list[str]:
        """The methods that are drawn at the edge."""
        return [name for name, (accuracy, _) in self.shown.items() if accuracy > self.limit]

    def _ink(self, ax: Axes) -> list[Any]:
        accuracy, calibration = self.titles
        ax.set(xlabel=f"{calibration} (left is better)", ylabel=f"{accuracy} (down is better)")
        if not self.shown:
            words: Style = {"ha": "center", "va": "center", "color": LIGHT["soft"]}
            ax.text(0.5, 0.5, "no method has both figures", transform=ax.transAxes, **words)
            return []
        places = {name: self._place(point) for name, point in self.shown.items()}
        self._scale(ax, np.array(list(places.values())))
        given = looks(dict.fromkeys(self.kinds[name] for name in self.shown))
        border = _ink_front(ax, [places[name] for name in self.front])
        named = self._named()
        for name in sorted(places, key=lambda each: each in named):  # named ones hide others
            style = given[self.kinds[name]].mark(MARK) | (FADED if name in self.beyond else {})
            ax.plot(*places[name], linestyle="", zorder=3.0, clip_on=False, **style)
        _ink_names(ax, places, named, border)
        return self._entries(given)

    def _place(self, point: Point) -> Point:
        """Return where a point is drawn: calibration to the right, accuracy upwards."""
        accuracy, calibration = point
        return max(calibration, TINY), min(accuracy, self.limit)

    def _scale(self, ax: Axes, places: Reals) -> None:
        low, high = float(places[:, 1].min()), float(places[:, 1].max())
        room = max(0.08 * (high - low), 1e-4)
        ax.set_ylim(low - room, high + room)
        canvas.plain_axis(ax.yaxis)
        left, right = (math.log10(end) for end in (places[:, 0].min(), places[:, 0].max()))
        room = 0.06 * max(right - left, 0.5)
        ax.set_xscale("log")
        ax.set_xlim(10.0 ** (left - room), 10.0 ** (right + room))
        canvas.log_axis(ax.xaxis, right - left, WIDE)

    def _named(self) -> list[str]:
        """Return the methods whose names are written: the front, and those alone in their kind."""
        kinds = [self.kinds[name] for name in self.shown]
        alone = [name for name in self.shown if kinds.count(self.kinds[name]) == 1]
        return list(dict.fromkeys([*self.front, *alone]))

    def _entries(self, given: Mapping[str, Look]) -> list[Any]:
        entries = [entry(name, linestyle="", **look.mark(MARK)) for name, look in given.items()]
        entries.append(entry("not beaten in both", color=LIGHT["soft"], linewidth=1.0))
        if self.beyond:
            faded: Style = {"linestyle": "", "marker": "o", "markersize": MARK, **FADED}
            entries.append(entry("faded: further up", color=LIGHT["soft"], **faded))
        return entries


def pareto(
    points: Mapping[str, Point],
    *,
    kinds: Mapping[str, str] | None = None,
    accuracy: str = "Brier score",
    calibration: str = "calibration error C2",
    ax: Axes | None = None,
) -> Pareto:
    """Draw two figures of several methods, and the methods that no other one beats in both.

    Parameters
    ----------
    points : mapping
        Accuracy and calibration of each method, both better if smaller;
        ``Comparison.points()`` returns such.
    kinds : mapping, optional
        What each method belongs to; methods of one kind look alike.
    accuracy, calibration : str
        What the figures are called.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure of its own.

    Notes
    -----
    Calibration is on a logarithmic axis.  A method whose accuracy is more than three times as
    far from the best as the median is drawn at the edge, and faded: it would leave no room
    for the others.  Names are written where there is a choice to make, and for methods
    that are alone in their kind; all numbers are in ``.points``.

    Examples
    --------
    >>> drawn = pareto({"raw": (0.25, 0.04), "a": (0.22, 0.01), "b": (0.20, 0.02)})
    >>> drawn.front
    ['a', 'b']
    """
    prepared = prepare_pareto(points, kinds=kinds, accuracy=accuracy, calibration=calibration)
    return prepared.draw(ax)


def prepare_pareto(
    points: Mapping[str, Point],
    *,
    kinds: Mapping[str, str] | None = None,
    accuracy: str = "Brier score",
    calibration: str = "calibration error C2",
) -> Pareto:
    """Return the numbers that :func:`pareto` draws; needs no matplotlib."""
    told = {name: (float(a), float(c)) for name, (a, c) in points.items()}
    given = dict.fromkeys(told, "method") if kinds is None else dict(kinds)
    if missing := [name for name in told if name not in given]:
        raise InvalidInput(f"kinds must name every method, got none for {missing[0]!r}")
    return Pareto(told, given, (accuracy, calibration), front_of(told))


def front_of(points: Mapping[str, Point]) -> list[str]:
    """Return the names whose points no other one beats in both figures, by calibration.

    Two equal points do not beat each other; a point without both figures is never there.

    >>> front_of({"a": (0.2, 0.3), "b": (0.3, 0.2), "c": (0.3, 0.3), "d": (0.1, math.nan)})
    ['b', 'a']
    """
    whole = {name: point for name, point in points.items() if _is_whole(point)}
    left = [
        name
        for name, (a, c) in whole.items()
        if not any(x <= a and y <= c and (x, y) != (a, c) for x, y in whole.values())
    ]
    return sorted(left, key=lambda name: whole[name][::-1])


def _is_whole(point: Point) -> bool:
    return all(math.isfinite(value) for value in point)


def _ink_front(ax: Axes, places: Sequence[Point]) -> list[Point]:
    """Draw the border: whatever lies right of it and above is beaten; return its corners."""
    steps = [corner for a, b in itertools.pairwise(places) for corner in (a, (b[0], a[1]))]
    corners = [*steps, places[-1]]
    x, y = zip(*corners, strict=True)
    ax.plot(x, y, color=LIGHT["soft"], linewidth=1.0, marker="", zorder=2.0)
    return corners


def _ink_names(
    ax: Axes, places: Mapping[str, Point], named: Sequence[str], border: Sequence[Point]
) -> None:
    """Write names beside their points, where they cover neither points, border nor one another."""
    unit = ax.figure.dpi / 72.0
    marks = [tuple(place) for place in ax.transData.transform(list(places.values())) / unit]
    frame = tuple(np.ravel(ax.bbox.get_points()) / unit)
    taken: list[Box] = [(x - 4.0, y - 4.0, x + 4.0, y + 4.0) for x, y in marks]
    for (left, high), (right, low) in itertools.pairwise(ax.transData.transform(border) / unit):
        taken.append((left - 1.0, low - 1.0, right + 1.0, high + 1.0))
    spots = dict(zip(places, marks, strict=True))
    thread: Style = {"arrowstyle": "-", "color": LIGHT["soft"], "linewidth": 0.5}
    thread |= {"shrinkA": 0.0, "shrinkB": MARK / 2.0, "relpos": (0.5, 0.5)}
    words: Style = {"textcoords": "offset points", "color": LIGHT["ink"], "zorder": 4.0}
    for name in named:
        x, y = spots[name]
        moves = list(_moves(name))
        dx, dy = min(moves, key=lambda move: _cover(_box(name, x, y, move), taken, frame))
        taken.append(_box(name, x, y, (dx, dy)))
        style = words | ({"arrowprops": thread} if (dx, dy) not in moves[:2] else {})
        ax.annotate(name, places[name], (dx, dy), ha="left", va="baseline", **style)


def _moves(name: str) -> Iterator[Point]:
    """Yield where a name may begin, in points from its mark; the best places first."""
    width = LETTER * canvas.SMALL * len(name)
    for away in (6.0, 12.0, 20.0):
        yield from ((away, -3.0), (-away - width, -3.0), (-width / 2.0, away))
        down = -away - canvas.SMALL
        yield from ((-width / 2.0, down), (away, away), (away, down))
        yield from ((-away - width, away), (-away - width, down))


def _box(name: str, x: float, y: float, move: Point) -> Box:
    left, low = x + move[0], y + move[1]
    return left, low - 2.0, left + LETTER * canvas.SMALL * len(name), low + canvas.SMALL


def _cover(box: Box, taken: Sequence[Box], frame: tuple[float, ...]) -> float:
    """Return how much of a box is covered already or out of the frame."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    inside = (frame[0], frame[1], frame[2], frame[3])
    return area - _overlap(box, inside) + sum(_overlap(box, other) for other in taken)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)
