"""How a recalibrator looks in a notebook: its record, and a reliability curve beside it."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np

from calibrant.core.arrays import Reals
from calibrant.metrics import binomial_band
from calibrant.recalibrate.recalibrator import Recalibrator

SIDE: Final = 180.0
"""Width and height of the curve's square, in points."""
EDGE: Final = 26.0
LARGEST: Final = 6.0
SMALLEST: Final = 1.5
"""Radii of the circle with the most rounds, and of one with hardly any."""
STYLE: Final = "color:currentColor;font-size:90%;border-collapse:collapse"
INK: Final = "#3f7fbf"
"""Readable on white and on black: notebooks have either."""


def page(recalibrator: Recalibrator) -> str:
    """Return a small HTML page: what was learned, and how often it happened against what was said.

    The curve is that of the drawn forecasts over their exact values; circles have areas
    proportional to rounds, bars are exact binomial 95 % limits.  It needs no script, no style
    sheet and no other library, and reading it changes nothing.

    >>> rec = Recalibrator(seed=7)
    >>> _ = rec.observe(rec.forecast(0.83), 1)
    >>> text = page(rec)
    >>> text.count("<circle"), "foster_hart" in text
    (1, True)
    """
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td>'
        f'<td style="text-align:right">{escape(value)}</td></tr>'
        for name, value in _facts(recalibrator)
    )
    title = f"<strong>{escape(type(recalibrator).__name__)}</strong>"
    table = f'<div>{title}<table style="{STYLE}">{rows}</table></div>'
    return f'<div style="display:flex;gap:1.5em">{table}{_picture(*_curve(recalibrator))}</div>'


def _facts(recalibrator: Recalibrator) -> list[tuple[str, str]]:
    made = recalibrator.certificate()
    facts = [
        ("method", recalibrator.calibrator.name),
        ("buckets", f"{recalibrator.buckets:,}"),
        ("rounds", f"{recalibrator.rounds:,}"),
        ("open", f"{recalibrator.open:,}"),
    ]
    if not recalibrator.rounds:
        return facts
    return [
        *facts,
        ("C1 of the draws", f"{made.c1:.4f}"),
        ("C2 of the draws", f"{made.c2:.5f}"),
        (f"{made.loss_name} loss", f"{made.loss:.4f}"),
        ("the raw forecast's", f"{made.raw_loss:.4f}"),
    ]


def _curve(recalibrator: Recalibrator) -> tuple[Reals, Reals, Reals, Reals, Reals]:
    """Return values that were drawn, rounds, frequencies of 1 and their limits."""
    with recalibrator._gate:
        account = recalibrator._account()
    counts, ones = account.counts.sum(axis=0), account.ones.sum(axis=0)
    used = counts > 0
    values = np.asarray(recalibrator.calibrator.lattice.values)[used]
    drawn, happened = counts[used].astype(np.float64), ones[used].astype(np.float64)
    low, high = binomial_band(happened, drawn)
    return values, drawn, happened / drawn, low, high


def _picture(values: Reals, counts: Reals, rates: Reals, low: Reals, high: Reals) -> str:
    most = counts.max(initial=1.0)
    radii = np.maximum(LARGEST * np.sqrt(counts / most), SMALLEST)
    spots = zip(values, rates, low, high, radii, counts, strict=True)
    whole = EDGE + SIDE + LARGEST
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:g}" height="{whole:g}" '
        f'viewBox="0 0 {whole:g} {whole:g}" role="img" font-size="9" fill="currentColor">'
        "<title>how often it happened against what was announced</title>"
        f"{_frame()}{''.join(_spot(*spot) for spot in spots)}</svg>"
    )


def _frame() -> str:
    left, right = _across(0.0), _across(1.0)
    bottom, top = _up(0.0), _up(1.0)
    soft = 'stroke="currentColor" stroke-opacity="0.4"'
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{SIDE:g}" height="{SIDE:g}" fill="none" {soft}/>'
        f'<line x1="{left:g}" y1="{bottom:g}" x2="{right:g}" y2="{top:g}" {soft} '
        'stroke-dasharray="2 3"/>'
        f'<text x="{left:g}" y="{bottom + 11:g}" text-anchor="middle">0</text>'
        f'<text x="{right:g}" y="{bottom + 11:g}" text-anchor="end">1</text>'
        f'<text x="{(left + right) / 2:g}" y="{bottom + 11:g}" text-anchor="middle">forecast</text>'
        f'<text x="{left - 4:g}" y="{top + 8:g}" text-anchor="end">1</text>'
        f'<text transform="translate({left - 8:g} {(top + bottom) / 2:g}) rotate(-90)" '
        'text-anchor="middle">how often</text>'
    )


def _spot(value: float, rate: float, low: float, high: float, radius: float, count: float) -> str:
    x, y = _across(value), _up(rate)
    told = f"{value:.3g}: happened {rate:.1%} of {count:,.0f} times"
    return (
        f'<line x1="{x:.1f}" y1="{_up(low):.1f}" x2="{x:.1f}" y2="{_up(high):.1f}" '
        f'stroke="{INK}" stroke-opacity="0.6"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{INK}">'
        f"<title>{escape(told)}</title></circle>"
    )


def _across(value: float) -> float:
    return EDGE - LARGEST + SIDE * value


def _up(rate: float) -> float:
    return LARGEST + SIDE * (1.0 - rate)
