"""Pictures as SVG, drawn without a library: what :mod:`calibrant.plot` prepares, as text.

Colours and dashes are classes of the style sheet, so that a strict policy for content holds and
dark pages are dark.  Every picture has a title and a description for those who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals
from calibrant.plot import BucketMap, Drawing, OverTime, Reliability, Spread, WindowErrors, looks
from calibrant.plot.canvas import plain, short
from calibrant.plot.over_time import BOUND, EMPTY, TITLES, limits_of
from calibrant.plot.reliability import UNSURE

WIDTH: Final = 420.0
LEFT, RIGHT, TOP, BELOW = 56.0, 12.0, 40.0, 42.0
STRIP: Final = 64.0
"""Height of the counts below a reliability diagram."""
RARE: Final = 0.3
"""Where all is below, a picture shows no more than it must."""
OFTEN: Final = 0.01
"""Share of the rounds below which a bucket's frequency may lie outside the picture."""
LETTER: Final = 6.0
"""Width of a letter, about."""


@dataclass(frozen=True)
class Axis:
    """A line of numbers on the picture: from ``low`` at ``start`` to ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: Any) -> Any:
        """Return where numbers lie, at the ends at most."""
        given = np.clip(np.asarray(value, np.float64), self.low, self.high)
        low, high = self.low, self.high
        if self.log:
            given, low, high = np.log10(given), math.log10(low), math.log10(high)
        return self.start + (given - low) / (high - low) * (self.end - self.start)


def num(value: float) -> str:
    """Return a place in the picture, to a tenth.

    >>> num(12.0), num(3.14159)
    ('12', '3.1')
    """
    return f"{value:.1f}".rstrip("0").rstrip(".")


def steps(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers from ``low`` to ``high``, at most that many.

    >>> steps(0.0, 1.0), steps(0.11, 0.23, 3), steps(0, 7_300_000)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.15, 0.2], [0.0, 2000000.0, 4000000.0, 6000000.0])
    """
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1.0, 2.0, 5.0, 10.0) if size * k >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def small(value: float) -> str:
    """Return a number of an axis in few letters.

    >>> small(0.25), small(0.0), small(0.0005), small(0.00012)
    ('0.25', '0', '5e-4', '1.2e-4')
    """
    if value == 0.0 or abs(value) >= 0.001:
        return plain(value)
    digits, power = f"{value:e}".split("e")
    return f"{plain(float(digits))}e{int(power)}"


def powers(low: float, high: float) -> list[float]:
    """Return the labels of a logarithmic axis.

    >>> powers(0.002, 0.5), powers(0.02, 0.5)
    ([0.01, 0.1], [0.02, 0.05, 0.1, 0.2, 0.5])
    """
    few = (1.0,) if math.log10(high / low) > 2.0 else (1.0, 2.0, 5.0)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    labels = [float(f"{k}e{e}") for e in range(first, last + 1) for k in few]
    return [label for label in labels if low * 0.999 <= label <= high * 1.001]


# ------------------------------------------------------------------------ elements


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    ends = f'x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}"'
    return f'<line class="{kind}" {ends}/>'


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "tick") -> str:
    """Return words at a place."""
    place = f'class="{kind}" x="{num(x)}" y="{num(y)}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"


def path(x: Reals, y: Reals, kind: str) -> str:
    """Return a line through points; it is broken where a number is missing."""
    said, pen = [], "M"
    for across, up in zip(np.asarray(x).tolist(), np.asarray(y).tolist(), strict=True):
        if math.isnan(up):
            pen = "M"
            continue
        said.append(f"{pen}{num(across)} {num(up)}")
        pen = "L"
    return f'<path class="line {kind}" d="{"".join(said)}"/>' if said else ""


def mark(x: float, y: float, radius: float, kind: str) -> str:
    """Return the mark of a series: a disc, or a square for means."""
    if kind == "mean":
        place = f'x="{num(x - radius)}" y="{num(y - radius)}"'
        size = f'width="{num(2 * radius)}" height="{num(2 * radius)}"'
        return f'<rect class="mark mean" {place} {size}/>'
    return f'<circle class="mark {kind}" cx="{num(x)}" cy="{num(y)}" r="{num(radius)}"/>'


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a bar."""
    size = f'width="{num(width)}" height="{num(height)}"'
    return f'<rect class="bar {kind}" x="{num(x)}" y="{num(y)}" {size}/>'


def legend(entries: Iterable[tuple[str, str]]) -> list[str]:
    """Return what each series is called, above the picture, in lines as they fit."""
    drawn, x, y = [], LEFT, 12.0
    for kind, label in entries:
        wide = 30.0 + LETTER * len(label) + 12.0
        if x > LEFT and x + wide > WIDTH:
            x, y = LEFT, y + 16.0
        drawn.append(line(x, y - 4.0, x + 24.0, y - 4.0, f"line {kind}"))
        drawn.append(text(x + 30.0, y, label, "start", "legend"))
        x += wide
    return drawn


def across(
    axis: Axis, labels: Sequence[float], names: Sequence[str], y: float, title: str
) -> list[str]:
    """Return the lower axis with its labels and its title."""
    drawn = [line(axis.start, y, axis.end, y, "frame")]
    for label, name in zip(labels, names, strict=True):
        drawn.append(text(float(axis(label)), y + 14.0, name))
    return [*drawn, text((axis.start + axis.end) / 2.0, y + 31.0, title, kind="label")]


def upright(
    axis: Axis, labels: Sequence[float], names: Sequence[str], end: float, title: str
) -> list[str]:
    """Return the upright axis with its labels, its grid and its title."""
    drawn = []
    for label, name in zip(labels, names, strict=True):
        y = float(axis(label))
        drawn += [line(LEFT, y, end, y, "grid"), text(LEFT - 6.0, y + 4.0, name, "end")]
    middle = (axis.start + axis.end) / 2.0
    turned = (
        f'class="label" transform="translate(11 {num(middle)}) rotate(-90)" text-anchor="middle"'
    )
    return [*drawn, f"<text {turned}>{escape(title)}</text>"]


# ------------------------------------------------------------------------ pictures


def picture(drawing: Drawing, ids: str, title: str, told: str) -> str:
    """Return a drawing as an SVG element.

    Parameters
    ----------
    drawing
        What to draw; the kinds that :func:`inked` knows.
    ids
        What its ids begin with; must differ between pictures of a page.
    title, told
        What the picture is called, and what it shows, for those who cannot see it.
    """
    height, parts = inked(drawing)
    names = f'aria-labelledby="{ids}-t {ids}-d"'
    head = f'<svg viewBox="0 0 {num(WIDTH)} {num(height)}" role="img" {names}>'
    words = f'<title id="{ids}-t">{escape(title)}</title><desc id="{ids}-d">{escape(told)}</desc>'
    return f"{head}{words}{''.join(parts)}</svg>"


@singledispatch
def inked(drawing: Drawing) -> tuple[float, list[str]]:
    """Return the height of a drawing and its elements."""
    raise TypeError(f"drawing must be of a kind that can be drawn here, got {drawing!r}")


def _unit(height: float, *shown: Reals) -> tuple[Axis, Axis, list[float], list[str]]:
    """Return both axes of probabilities up to what is shown, their labels, and these as text."""
    top = max([0.0, *(float(np.nanmax(part, initial=0.0)) for part in shown)])
    high = 1.0
    if 0.0 < top < RARE:
        step = steps(0.0, 1.3 * top)
        high = step[-1] + step[1]
    labels = steps(0.0, high)
    names = [f"{label:.1f}" if high == 1.0 else small(label) for label in labels]
    x, y = Axis(0.0, high, LEFT + 6.0, WIDTH - RIGHT - 6.0), Axis(0.0, high, TOP + height, TOP)
    return x, y, labels, names


def _series(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return class and label of each series."""
    known = ("raw", "forecast", "mean")
    given = looks(names)
    return [(name if name in known else "forecast", look.label) for name, look in given.items()]


@inked.register
def _reliability(drawing: Reliability) -> tuple[float, list[str]]:
    height = WIDTH - LEFT - RIGHT - 80.0
    means = [_often(c.count, *pair) for c in drawing.curves.values()
             for pair in ((c.mean_forecast, 0.0), (c.mean_outcome, OFTEN))]  # fmt: skip
    x, y, labels, names = _unit(height, *means)
    parts = legend(_series(drawing.curves))
    parts += upright(y, labels, names, x.end, "how often it happened")
    parts.append(line(float(x(0)), float(y(0)), float(x(1)), float(y(1)), "diagonal"))
    most = max([1, *(int(c.count.max(initial=0)) for c in drawing.curves.values())])
    for name, curve in drawing.curves.items():
        parts += _curve(curve, name, x, y, most)
    base = TOP + height + 14.0 + STRIP
    counts = Axis(0.0, 1.05 * most, base, base - STRIP)
    parts += upright(counts, [0, most], ["0", short(most)], x.end, "rounds")
    for place, (name, curve) in enumerate(drawing.curves.items()):
        parts += _strip(curve, name, x, counts, place, len(drawing.curves))
    return base + BELOW, [*parts, *across(x, labels, names, base, "forecast")]


def _often(count: Any, values: Reals, share: float) -> Reals:
    """Return the values of buckets with at least this share of all rounds."""
    return np.asarray(values[(count > 0) & (count >= share * count.sum())])


def _curve(curve: Any, kind: str, x: Axis, y: Axis, most: int) -> list[str]:
    used = np.flatnonzero(curve.count > 0)
    rates = curve.mean_outcome[used]
    places, means = x(curve.mean_forecast[used]), np.where(rates <= y.high, y(rates), np.nan)
    low, high = curve.band_low[used], curve.band_high[used]
    parts = [
        line(at, float(y(one)), at, float(y(other)), f"band {kind}")
        for at, one, other in zip(places.tolist(), low.tolist(), high.tolist(), strict=True)
    ]
    parts.append(path(places, np.where(high - low < UNSURE, means, np.nan), kind))
    sizes = np.maximum(6.5 * np.sqrt(curve.count[used] / most), 1.8).tolist()
    dots = zip(places.tolist(), means.tolist(), sizes, strict=True)
    return [*parts, *(mark(across, up, size, kind) for across, up, size in dots if up == up)]


def _strip(curve: Any, kind: str, x: Axis, y: Axis, place: int, many: int) -> list[str]:
    base, wide = float(y(0)), float(x(curve.upper[0]) - x(curve.lower[0]))
    parts = []
    for j in np.flatnonzero(curve.count > 0).tolist():
        start = float(x(curve.lower[j])) + wide * (0.1 + 0.8 * place / many)
        top = min(float(y(int(curve.count[j]))), base - 0.7)
        parts.append(bar(start, top, 0.8 * wide / many, base - top, kind))
    return parts


def _rounds_axis(last: float) -> tuple[Axis, list[float], list[str]]:
    axis = Axis(0.0, max(last, 1.0), LEFT, WIDTH - RIGHT - 8.0)
    labels = [label for label in steps(0.0, axis.high) if label == int(label)]
    return axis, labels, [short(label) for label in labels]


@inked.register
def _over_time(drawing: OverTime) -> tuple[float, list[str]]:
    base = TOP + 190.0
    x, labels, names = _rounds_axis(float(drawing.rounds.max(initial=1)))
    y, ticks = _scale(drawing, base)
    bounded = bool((drawing.bound <= y.high).any())
    told = _series(drawing.series)
    if np.isfinite(drawing.bound).any():
        told.append(("bound", BOUND if bounded else f"{BOUND} (still above)"))
    parts = legend(told)
    parts += upright(y, ticks, [small(tick) for tick in ticks], x.end, TITLES[drawing.quantity])
    if bounded:
        inside = np.where(drawing.bound <= y.high, y(drawing.bound), np.nan)
        parts.append(path(x(drawing.rounds), inside, "bound"))
    for name, values in drawing.series.items():
        safe = np.where((values > 0.0 if y.log else True) & (values <= y.high), values, np.nan)
        parts.append(path(x(drawing.rounds), y(safe), name))
        if len(values) and math.isfinite(safe[-1]):
            parts.append(mark(float(x(drawing.rounds[-1])), float(y(safe[-1])), 3.0, name))
    return base + BELOW, [*parts, *across(x, labels, names, base, "rounds")]


def _scale(drawing: OverTime, base: float) -> tuple[Axis, list[float]]:
    """Return the upright axis and its labels: logarithmic for errors."""
    settled, later = drawing.settled, drawing.bound[len(drawing.bound) // 2 :]
    if drawing.logarithmic:
        values = np.append(settled[settled > 0.0], later[later < 1.0])
        low, high = float(values.min()) / 1.3, float(values.max()) * 1.3
        return Axis(low, high, base, TOP, log=True), powers(low, high)
    low, high = limits_of(settled)
    return Axis(low, high, base, TOP), steps(low, high)


@inked.register
def _windows(drawing: WindowErrors) -> tuple[float, list[str]]:
    base = TOP + 150.0
    x, labels, names = _rounds_axis(float(drawing.last.max(initial=1)))
    tops = [float(np.nanmax(errors, initial=0.0)) for errors in drawing.series.values()]
    y = Axis(0.0, 1.2 * max([0.0, *tops]) or 1.0, base, TOP)
    ticks = steps(0.0, y.high, 4)
    parts = legend(_series(drawing.series))
    parts += upright(y, ticks, [small(tick) for tick in ticks], x.end, "C2 in each window")
    ends = np.column_stack([drawing.first - 1, drawing.last]).ravel()
    for name, errors in drawing.series.items():
        parts.append(path(x(ends), y(np.repeat(errors, 2)), name))
    for name, (first, last, error) in drawing.worst.items():
        parts.append(mark(float(x((first - 1 + last) / 2.0)), float(y(error)), 3.5, name))
    if not len(drawing.first):
        parts.append(text((x.start + x.end) / 2.0, (TOP + base) / 2.0, EMPTY, kind="label"))
    return base + BELOW, [*parts, *across(x, labels, names, base, "rounds")]


@inked.register
def _buckets(drawing: BucketMap) -> tuple[float, list[str]]:
    height = 230.0
    rates = _often(drawing.count, drawing.rate, OFTEN)
    x, y, labels, names = _unit(height, drawing.mean_raw, drawing.mean_forecast, rates)
    parts = legend([*_series(["raw", "forecast"]), ("truth", "what happened")])
    parts += upright(y, labels, names, x.end, "probability")
    for j in np.flatnonzero(drawing.count > 0).tolist():
        at, rate = float(x(drawing.mean_raw[j])), float(y(drawing.rate[j]))
        said, now = float(y(drawing.mean_raw[j])), float(y(drawing.mean_forecast[j]))
        low, high = float(y(drawing.band_low[j])), float(y(drawing.band_high[j]))
        parts.append(line(at, low, at, high, "wide"))
        if drawing.rate[j] <= y.high:
            parts.append(line(at - 6, rate, at + 6, rate, "line truth"))
        parts += [line(at, said, at, now, "moved"), mark(at, said, 3.5, "raw")]
        parts.append(mark(at, now, 3.5, "forecast"))
    below = across(x, labels, names, TOP + height, "raw forecast, bucket by bucket")
    return TOP + height + BELOW, [*parts, *below]


@inked.register
def _spread(drawing: Spread) -> tuple[float, list[str]]:
    base, height = TOP + 170.0, 170.0
    x, _, labels, names = _unit(height)
    shares = {name: drawing.share(name) for name in drawing.counts}
    top = max([0.0, *(float(share.max(initial=0.0)) for share in shares.values())]) or 1.0
    y = Axis(-1.08 * top, 1.08 * top, base, TOP)
    ticks = [tick for tick in steps(-top, top, 4) if abs(tick) <= top]
    parts = legend(_series(drawing.counts))
    percents = [f"{plain(100.0 * abs(tick))} %" for tick in ticks]
    parts += upright(y, ticks, percents, x.end, "share of rounds")
    middle = float(y(0.0))
    for place, (name, share) in enumerate(shares.items()):
        for j in np.flatnonzero(share > 0.0).tolist():
            start, end = x(drawing.edges[j : j + 2]).tolist()
            reach = max(abs(float(y(share[j])) - middle), 0.7)
            parts.append(bar(start, middle if place else middle - reach, end - start, reach, name))
    parts.append(line(x.start, middle, x.end, middle, "frame"))
    return base + BELOW, [*parts, *across(x, labels, names, base, "forecast")]
