"""Pictures as files: vectors that settle, whole files or none, and all pictures of a summary.

Matplotlib names shapes by random ids unless a global setting is changed; renaming
them in order of appearance makes the file depend on its content only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calibrant.core.files import FilePath, put
from calibrant.plot.buckets import prepare_buckets, prepare_histogram
from calibrant.plot.canvas import LIGHT, Drawing, png, svg
from calibrant.plot.over_time import prepare_over_time, prepare_windows
from calibrant.plot.reliability import prepare_decomposition, prepare_reliability
from calibrant.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME: Final = re.compile(r'(?<=\bid=")[^"]+')
MENTION: Final = re.compile(r'(?<=\bid=")[^"]+|(?<=#)[A-Za-z_][\w.-]*')
USED: Final = re.compile(r'(?:href="|url\()#([^")]+)')
UNUSED: Final = re.compile(r' id="([^"]+)"')
COLOUR: Final = re.compile(r"#[0-9a-f]{6}\b")
OPENING: Final = re.compile(r"<svg\b[^>]*>")
BOX: Final = re.compile(r'viewBox="([^"]+)"')
NOISE: Final = re.compile(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", re.DOTALL)
ROLES: Final = {colour: role for role, colour in LIGHT.items()}


def settled(svg: str, prefix: str = "i") -> str:
    """Return ``svg`` with its ids renamed to ``prefix`` and a number, in order of appearance.

    >>> settled('<g id="m3f1"/><use href="#m3f1"/>')
    '<g id="i0"/><use href="#i0"/>'
    """
    names = dict.fromkeys(NAME.findall(svg))
    fresh = {name: f"{prefix}{place}" for place, name in enumerate(names)}
    return MENTION.sub(lambda found: fresh.get(found[0], found[0]), svg)


def inline(svg: str, name: str, title: str, description: str) -> str:
    """Return ``svg`` as an element for a page, its colours left to the page's variables.

    Parameters
    ----------
    svg
        What matplotlib wrote.
    name
        Prefix of the image's ids; must differ between the images of a page.
    title, description
        What a screen reader says.
    """
    drawn = NOISE.sub("", settled(svg[svg.index("<svg") :], f"{name}-"))
    used = set(USED.findall(drawn))
    drawn = UNUSED.sub(lambda found: found[0] if found[1] in used else "", drawn)
    drawn = COLOUR.sub(_variable, drawn)
    return OPENING.sub(lambda found: _opening(found[0], name, title, description), drawn, count=1)


def _variable(found: re.Match[str]) -> str:
    role = ROLES.get(found[0])
    return found[0] if role is None else f"var(--{role}, {found[0]})"


def _opening(tag: str, name: str, title: str, description: str) -> str:
    box = BOX.search(tag)
    size = box[1] if box else "0 0 100 100"
    names = f"{name}-title {name}-description"
    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{size}" role="img" '
        f'aria-labelledby="{names}">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
    )


_PREPARED: Final[dict[str, Callable[[Summary], Drawing]]] = {
    "reliability": prepare_reliability,
    "reliability_mean": lambda s: prepare_reliability({n: s.curves[n] for n in ("raw", "mean")}),
    "calibration_over_time": prepare_over_time,
    "calibration_l1_over_time": partial(prepare_over_time, quantity="c1"),
    "brier_over_time": partial(prepare_over_time, quantity="brier"),
    "windows": prepare_windows,
    "histogram": prepare_histogram,
    "buckets": prepare_buckets,
    "decomposition": prepare_decomposition,
}
PICTURES: Final = tuple(_PREPARED)
"""The names of the files, in the order of a report."""


def prepare_all(summary: Summary) -> dict[str, Drawing]:
    """Return the numbers of every picture of a summary by name; needs no matplotlib."""
    return {name: prepare(summary) for name, prepare in _PREPARED.items()}


def save_all(summary: Summary, directory: FilePath, *, dpi: float = 200.0) -> list[Path]:
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
    drawings: Mapping[str, Drawing], directory: FilePath, *, dpi: float = 200.0
) -> list[Path]:
    """Write drawings by name, as :func:`save_all` does; return the paths."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    figures = ((name, drawing.draw().figure) for name, drawing in drawings.items())
    return [path for name, figure in figures for path in save_figure(figure, place / name, dpi)]


def save_figure(figure: Figure, path: Path, dpi: float = 200.0) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG; return the paths."""
    pixels, text = png(figure, dpi), settled(svg(figure))
    return put(Path(f"{path}.png"), pixels), put(Path(f"{path}.svg"), text.encode())
