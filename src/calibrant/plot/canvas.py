"""The look of our pictures, axes to draw on, and what a drawing is: numbers first, ink second.

Orange, dark blue and teal stay apart under the common forms of colour blindness, the
first two also in greyscale; where lightness does not suffice, the dash and the marker
do.  Each role has a second colour for a dark page, and a test measures the contrasts.

Nothing here touches pyplot or changes ``matplotlib.rcParams``: figures are made
directly and every property that shows is set on its artist.  So drawing needs no
display, threads do not meet, and a caller's style sheet does not reach the figures
that calibrant makes itself; on axes that a caller gives, fonts and frame stay theirs.
"""

from __future__ import annotations

import io
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar, cast

from calibrant.core.arrays import Words
from calibrant.errors import InvalidInput, InvalidType, needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Style: TypeAlias = dict[str, Any]
Kind = TypeVar("Kind")
Dash: TypeAlias = str | tuple[float, tuple[float, ...]]

COLOURS: Final = {
    "paper": ("#ffffff", "#15181d"),
    "ink": ("#1b1f24", "#e9ebee"),
    "soft": ("#59616b", "#a9b1bb"),
    "rule": ("#dfe3e8", "#363d46"),
    "raw": ("#d55e00", "#ff9d5c"),
    "forecast": ("#004488", "#6fb0f5"),
    "mean": ("#009988", "#4fd6c4"),
    "fourth": ("#aa3377", "#f08cc8"),
    "fifth": ("#7d7005", "#e0cf5a"),
    "sixth": ("#6b6f76", "#9aa0a8"),
}
"""The colours of each role: on white paper, and on a dark page."""
LIGHT: Final = {role: light for role, (light, _) in COLOURS.items()}
DARK: Final = {role: dark for role, (_, dark) in COLOURS.items()}


@dataclass(frozen=True)
class Look:
    """How one series is drawn.

    Attributes
    ----------
    label
        What the legend says.
    colour
        The colour on white paper.
    dash, marker, filled
        What tells the series from its neighbours without colour.
    """

    label: str
    colour: str
    dash: Dash
    marker: str
    filled: bool

    @property
    def face(self) -> str:
        """What markers and bars are filled with."""
        return self.colour if self.filled else LIGHT["paper"]

    def line(self, width: float = 1.4) -> Style:
        """Return matplotlib's words for the lines of the series."""
        caps = {"solid_capstyle": "butt", "dash_capstyle": "butt"}
        return {"color": self.colour, "linestyle": self.dash, "linewidth": width, **caps}

    def mark(self, size: float = 6.0) -> Style:
        """Return matplotlib's words for the markers of the series on a line."""
        rim = {"markeredgecolor": self.colour, "markeredgewidth": 1.2}
        return {"marker": self.marker, "markersize": size, "markerfacecolor": self.face, **rim}

    def bar(self) -> Style:
        """Return matplotlib's words for the bars of the series."""
        return {"facecolor": self.face, "edgecolor": self.colour, "linewidth": 0.8}


KNOWN: Final = {
    "raw": Look("raw", LIGHT["raw"], (0.0, (4.0, 1.6)), "o", False),
    "forecast": Look("recalibrated, drawn", LIGHT["forecast"], "-", "o", True),
    "mean": Look("recalibrated, mean", LIGHT["mean"], (0.0, (6.0, 1.5, 1.0, 1.5)), "s", True),
}

OTHERS: Final = (
    *(KNOWN["forecast"], KNOWN["raw"], KNOWN["mean"]),
    Look("", LIGHT["fourth"], (0.0, (1.2, 1.2)), "D", False),
    Look("", LIGHT["fifth"], (0.0, (9.0, 2.0)), "^", True),
    Look("", LIGHT["sixth"], (0.0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)), "v", False),
)

PROMISE: Final[Style] = {"color": LIGHT["ink"], "linewidth": 1.2, "linestyle": (0.0, (1.0, 1.5))}
"""The line of what is promised, a bound or a target."""


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Give every series its look: ``raw``, ``forecast`` and ``mean`` always the same one.

    Examples
    --------
    >>> given = looks(["raw", "isotonic"])
    >>> given["raw"].label, given["isotonic"].label, given["isotonic"].marker
    ('raw', 'isotonic', 'o')
    """
    names = list(names)
    taken = {KNOWN[name].colour for name in names if name in KNOWN}
    free = [look for look in OTHERS if look.colour not in taken]
    rest = [name for name in names if name not in KNOWN]
    made = {name: replace(free[k % len(free)], label=name) for k, name in enumerate(rest)}
    return {name: KNOWN[name] if name in KNOWN else made[name] for name in names}


FONT: Final = "DejaVu Sans"
"""Comes with matplotlib, so text has the same shape on every machine."""

TEXT: Final = 9.0
SMALL: Final = 8.0
GAP: Final = 0.06
"""Inches between what is drawn and the edge of the figure."""


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure of ``size`` inches."""
    look: Style = {"facecolor": LIGHT["paper"], "edgecolor": "none", "layout": "constrained"}
    figure = matplotlib("figure").Figure(size, 100.0, **look)
    figure.get_layout_engine().set(w_pad=GAP, h_pad=GAP, wspace=0.0, hspace=0.0)
    return cast("Axes", figure.add_subplot())


def matplotlib(part: str) -> Any:
    """Return a module of matplotlib, or say what is missing."""
    told = "plots need matplotlib, which is not installed"
    return needed(f"matplotlib.{part}", told, "plot")


def as_axes(ax: Any) -> Axes:
    """Return ``ax`` if one can draw on it."""
    if not hasattr(ax, "inset_axes"):
        raise InvalidType(f"ax must be matplotlib axes, got {ax!r}")
    return cast("Axes", ax)


def own_font() -> Style:
    """Return matplotlib's words for the font of a legend of our own."""
    return {"prop": {"family": FONT, "size": SMALL}, "labelcolor": LIGHT["ink"]}


def dress(ax: Axes) -> None:
    """Give ``ax``, and the axes inside it, our fonts, frame and grid."""
    inner: list[Any] = ax.child_axes
    for each in (ax, *inner):
        _dress_frame(each)
        _dress_text(each)


def _dress_frame(ax: Axes) -> None:
    ax.set_facecolor("none")
    ax.set_axisbelow(True)
    ax.grid(False, which="both")
    ax.grid(True, which="major", color=LIGHT["rule"], linewidth=0.7, linestyle="-", alpha=1.0)
    for line in (*ax.get_lines(), *ax.get_xgridlines(), *ax.get_ygridlines()):
        line.set(solid_capstyle="butt", dash_capstyle="butt")
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=LIGHT["soft"], linewidth=0.8)
    ax.tick_params(which="both", direction="out", color=LIGHT["soft"], top=False, right=False)
    ax.tick_params(which="both", labelcolor=LIGHT["ink"], labelsize=SMALL, labelfontfamily=FONT)
    ax.tick_params(which="major", left=True, bottom=True, length=3.0, width=0.8, pad=3.0)
    ax.tick_params(which="minor", length=0.0)


def _dress_text(ax: Axes) -> None:
    for axis in (ax.xaxis, ax.yaxis):
        axis.labelpad = 4.0
        axis.label.set(color=LIGHT["ink"], fontsize=TEXT, fontweight="normal", fontfamily=FONT)
    for text in ax.texts:
        text.set(fontsize=SMALL, fontfamily=FONT, parse_math=False)


def entry(label: str, **style: Any) -> Line2D:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **({"marker": ""} | style))


def legend_above(ax: Axes, entries: Sequence[Any], width: float, **font: Any) -> None:
    """Put a legend without a frame above the axes, where no data can be.

    It has as many columns as fit if an entry is ``width`` inches wide.
    """
    if not entries:
        return
    columns = max(1, int(ax.bbox.width / ax.figure.dpi / width))
    place: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns}
    spacing: Style = {"handlelength": 2.4, "handletextpad": 0.6, "labelspacing": 0.35}
    plain: Style = {"frameon": False, "borderaxespad": 0.5, "borderpad": 0.1}
    tight: Style = {"columnspacing": 1.4, "markerscale": 1.0, "handleheight": 0.7}
    made = ax.legend(handles=list(entries), **place, **spacing, **plain, **tight, **font)
    for text in made.get_texts():
        # A dollar in a name is a dollar, no formula.
        text.set_parse_math(False)


def unit_square(ax: Axes, *, diagonal: bool = True, **labels: str) -> None:
    """Let both axes run from 0 to 1, and dot the line on which they agree."""
    if diagonal:
        ax.plot([0, 1], [0, 1], color=LIGHT["soft"], linewidth=1.0, dashes=(1.0, 2.0), zorder=1)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), **labels)
    probability_axis(ax.xaxis)
    probability_axis(ax.yaxis)


def rounds_axis(ax: Axes, rounds: Words, title: str, room: float = 1.0) -> None:
    """Count rounds on the lower axis, and say what the upright one shows."""
    ax.set(xlabel="rounds", ylabel=title)
    ax.set_xlim(0.0, room * max(1.0, float(rounds.max(initial=1))))
    count_axis(ax.xaxis)


def log_axis(axis: Axis, decades: float, wide: float = 2.0) -> None:
    """Label a logarithmic axis over that many decades; beyond ``wide``, powers of ten alone."""
    from matplotlib.ticker import LogLocator, NullLocator

    steps = (1.0,) if decades > wide else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(10.0, subs=steps, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: plain(value))


def count_axis(axis: Axis, ticks: int = 5) -> None:
    """Label ``axis`` with few whole numbers, in thousands and millions where they are large."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(ticks, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: short(value))


def plain_axis(axis: Axis) -> None:
    """Label ``axis`` with few decimal numbers, without an exponent of their own."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: plain(value))


def probability_axis(axis: Axis, parts: int = 5) -> None:
    """Label ``axis`` from 0 to 1 in fifths; in other parts as briefly as can be."""
    from matplotlib.ticker import FixedLocator

    axis.set_major_locator(FixedLocator([k / parts for k in range(parts + 1)]))
    axis.set_major_formatter(lambda value, _: f"{value:.1f}" if parts == 5 else f"{value:g}")


def plain(value: float) -> str:
    """Return ``value`` with up to six digits after the point and no trailing zeros.

    >>> plain(0.25), plain(0.0), plain(0.00012)
    ('0.25', '0', '0.00012')
    """
    return f"{value + 0.0:.6f}".rstrip("0").rstrip(".")


def short(value: float) -> str:
    """Return a count in at most three digits, in k, M or G where it is large.

    >>> short(950), short(12_000), short(2_500_000), short(0)
    ('950', '12k', '2.5M', '0')
    """
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}" if math.isfinite(value) else ""


def svg(figure: Figure) -> str:
    """Return ``figure`` as SVG without a date; ids are settled by :mod:`calibrant.plot.save`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    held, canvas = io.StringIO(), cast(Any, FigureCanvasSVG(figure))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # Letters that the font lacks are boxes; tables have them.
        canvas.print_svg(held, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return held.getvalue()


def png(figure: Figure, dpi: float = 200.0) -> bytes:
    """Return ``figure`` as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    held, usual = io.BytesIO(), figure.get_dpi()
    figure.set_dpi(dpi)
    canvas = cast(Any, FigureCanvasAgg(figure))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # Letters that the font lacks are boxes; tables have them.
        canvas.print_png(held, metadata={"Software": None})
    figure.set_dpi(usual)
    return held.getvalue()


@dataclass(frozen=True, eq=False)
class Drawing(ABC):
    """The numbers of a plot, and the axes of the picture once there is one.

    Attributes
    ----------
    ax
        The axes; None until :meth:`draw` was called.
    """

    size: ClassVar[tuple[float, float]] = (4.6, 3.1)
    entry_width: ClassVar[float] = 1.6

    ax: Axes | None = field(default=None, kw_only=True, repr=False)

    @property
    def figure(self) -> Figure:
        """The figure that holds the axes."""
        if self.ax is None:
            raise InvalidInput(f"{type(self).__name__} must be drawn first: call draw()")
        return cast("Figure", self.ax.figure)

    def draw(self, ax: Axes | None = None, *, size: tuple[float, float] | None = None) -> Self:
        """Return the same numbers, drawn.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw, in the caller's own fonts and frame; without it on a new
            figure that no pyplot knows of.
        size : tuple of float, optional
            Width and height of the new figure in inches.
        """
        if ax is not None:
            target = as_axes(ax)
            legend_above(target, self._ink(target), self.entry_width)
        else:
            target = new_axes(size or self.size)
            legend_above(target, self._ink(target), self.entry_width, **own_font())
            dress(target)
        return replace(self, ax=target)

    def _repr_svg_(self) -> str | None:
        return None if self.ax is None else svg(self.figure)

    @abstractmethod
    def _ink(self, ax: Axes) -> list[Any]:
        """Draw on ``ax``; return what belongs into the legend."""


def of_kind(source: Any, kind: type[Kind], make: Callable[[Any], Kind]) -> dict[str, Kind]:
    """Return each series as what is drawn, made of what was given where it is something else."""
    given = named(source).items()
    return {name: each if isinstance(each, kind) else make(each) for name, each in given}


def named(source: Any) -> dict[str, Any]:
    """Return ``source`` by name of series: itself if it is a mapping, else as the forecast."""
    if not isinstance(source, Mapping):
        return {"forecast": source}
    if not source:
        raise InvalidInput(f"series must be at least one, got {source!r}")
    return {str(key): value for key, value in source.items()}
