"""All pictures of a summary, as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from calibrant.plot.buckets import prepare_buckets
from calibrant.plot.canvas import png, svg
from calibrant.plot.decomposition import prepare_decomposition
from calibrant.plot.drawing import Drawing
from calibrant.plot.files import put
from calibrant.plot.histogram import prepare_histogram
from calibrant.plot.over_time import prepare_over_time
from calibrant.plot.reliability import prepare_reliability
from calibrant.plot.vector import settled
from calibrant.plot.windows import prepare_windows
from calibrant.summary import Summary

PICTURES: Final = (
    "reliability",
    "reliability_mean",
    "calibration_over_time",
    "calibration_l1_over_time",
    "brier_over_time",
    "windows",
    "histogram",
    "buckets",
    "decomposition",
)
"""The names of the files, in the order of a report."""


def prepare_all(summary: Summary) -> dict[str, Drawing]:
    """Return the numbers of every picture of a summary by name; needs no matplotlib."""
    means = {name: summary.curves[name] for name in ("raw", "mean")}
    drawings = (
        prepare_reliability(summary),
        prepare_reliability(means),
        prepare_over_time(summary, quantity="c2"),
        prepare_over_time(summary, quantity="c1"),
        prepare_over_time(summary, quantity="brier"),
        prepare_windows(summary),
        prepare_histogram(summary),
        prepare_buckets(summary),
        prepare_decomposition(summary),
    )
    return dict(zip(PICTURES, drawings, strict=True))


def save_all(
    summary: Summary, directory: str | os.PathLike[str], *, dpi: float = 200.0
) -> list[Path]:
    """Write every picture of a summary as PNG and SVG; return the paths.

    Parameters
    ----------
    summary : Summary
        What to draw.
    directory : path
        Where to; made if it is not there.  Files of the same names are replaced, each in
        one step.
    dpi : float
        Pixels per inch of the PNG files.

    Notes
    -----
    The files depend on the summary and on the version of matplotlib, on nothing else: not
    on the time, and not on the caller's matplotlib settings.
    """
    return save_drawings(prepare_all(summary), directory, dpi=dpi)


def save_drawings(
    drawings: Mapping[str, Drawing], directory: str | os.PathLike[str], *, dpi: float = 200.0
) -> list[Path]:
    """Write drawings by name, as :func:`save_all` does; return the paths."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawing in drawings.items():
        figure = drawing.draw().figure
        written.append(put(place / f"{name}.png", png(figure, dpi)))
        written.append(put(place / f"{name}.svg", settled(svg(figure)).encode()))
    return written
