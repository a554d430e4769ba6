"""Colours, dashes and markers: one look per series, told apart without colour too.

Orange, dark blue and teal stay apart under the common forms of colour blindness, the
first two also in greyscale; where lightness does not suffice, the dash and the marker
do.  Each role has a second colour for a dark page, and a test measures the contrasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

Style: TypeAlias = dict[str, Any]
Dash: TypeAlias = str | tuple[float, tuple[float, ...]]

LIGHT: Final = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#59616b",
    "rule": "#dfe3e8",
    "raw": "#d55e00",
    "forecast": "#004488",
    "mean": "#009988",
    "fourth": "#aa3377",
    "fifth": "#7d7005",
    "sixth": "#6b6f76",
}
"""The colour of each role on white paper."""

DARK: Final = {
    "paper": "#15181d",
    "ink": "#e9ebee",
    "soft": "#a9b1bb",
    "rule": "#363d46",
    "raw": "#ff9d5c",
    "forecast": "#6fb0f5",
    "mean": "#4fd6c4",
    "fourth": "#f08cc8",
    "fifth": "#e0cf5a",
    "sixth": "#9aa0a8",
}
"""Colours of the same roles on a dark page."""


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
    Look("", LIGHT["forecast"], "-", "o", True),
    Look("", LIGHT["raw"], (0.0, (4.0, 1.6)), "o", False),
    Look("", LIGHT["mean"], (0.0, (6.0, 1.5, 1.0, 1.5)), "s", True),
    Look("", LIGHT["fourth"], (0.0, (1.2, 1.2)), "D", False),
    Look("", LIGHT["fifth"], (0.0, (9.0, 2.0)), "^", True),
    Look("", LIGHT["sixth"], (0.0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)), "v", False),
)


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
