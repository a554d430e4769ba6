"""Paper and handwriting: axes of our own, dressed alike, without any global state.

Nothing here touches pyplot or changes ``matplotlib.rcParams``: figures are made
directly and every property that shows is set on its artist.  So drawing needs no
display, threads do not meet, and a caller's style sheet does not reach the figures
that calibrant makes itself; on axes that a caller gives, fonts and frame stay theirs.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from calibrant.errors import InvalidType, MissingExtra
from calibrant.plot.palette import LIGHT, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FONT: Final = "DejaVu Sans"
"""Comes with matplotlib, so text has the same shape on every machine."""

TEXT: Final = 9.0
SMALL: Final = 8.0
GAP: Final = 0.06
"""Inches between what is drawn and the edge of the figure."""


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure of ``size`` inches."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        told = 'plots need matplotlib, which is not installed: pip install "calibrant[plot]"'
        raise MissingExtra(told) from error
    figure = Figure(size, 100.0, facecolor=LIGHT["paper"], edgecolor="none", layout="constrained")
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=GAP, h_pad=GAP, wspace=0.0, hspace=0.0)
    return figure.add_subplot()


def as_axes(ax: Any) -> Axes:
    """Return ``ax`` if one can draw on it."""
    if not hasattr(ax, "inset_axes"):
        raise InvalidType(f"ax must be matplotlib axes, got {ax!r}")
    axes: Axes = ax
    return axes


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
        text.set(fontsize=SMALL, fontfamily=FONT)


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
    ax.legend(handles=list(entries), **place, **spacing, **plain, **tight, **font)


def count_axis(axis: Axis, ticks: int = 5) -> None:
    """Label ``axis`` with few whole numbers, in thousands and millions where they are large."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(ticks, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def plain_axis(axis: Axis) -> None:
    """Label ``axis`` with few decimal numbers, without an exponent of their own."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def probability_axis(axis: Axis) -> None:
    """Label ``axis`` from 0 to 1 in fifths."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axis.set_major_locator(FixedLocator([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}"))


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
    """Return ``figure`` as SVG without a date; ids are settled by :mod:`calibrant.plot.vector`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    held, canvas = io.StringIO(), cast(Any, FigureCanvasSVG(figure))
    canvas.print_svg(held, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return held.getvalue()


def png(figure: Figure, dpi: float = 200.0) -> bytes:
    """Return ``figure`` as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    held, usual = io.BytesIO(), figure.get_dpi()
    figure.set_dpi(dpi)
    canvas = cast(Any, FigureCanvasAgg(figure))
    canvas.print_png(held, metadata={"Software": None})
    figure.set_dpi(usual)
    return held.getvalue()
