"""The tables of a report: numbers as they are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from calibrant.report.judge import number
from calibrant.summary import NAMES, Story

__all__ = ["Table", "buckets", "parts", "promises", "scores", "settings"]

NOTHING: Final = "n/a"
"""What stands where a number is not defined."""

COLUMNS: Final = ("raw", "recalibrated, drawn", "recalibrated, mean")


@dataclass(frozen=True)
class Table:
    """A table whose first column names its rows.

    Attributes
    ----------
    caption
        What it shows.
    header
        Names of the columns.
    rows
        Cells as text.
    words
        Which columns hold words; the others are numbers.
    notes
        Sentences below it.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()


SCORES: Final = (
    ("Brier score", "brier", "mean squared error; lower is better"),
    ("Log loss", "log_loss", "lower is better"),
    ("Calibration error C1", "calibration_l1", "average distance of forecast and frequency"),
    ("Calibration error C2", "calibration_l2", "the same squared"),
    ("ECE", "ece", "average distance in 10 equal buckets"),
    ("Smooth calibration error", "smooth", "does not depend on buckets"),
    ("Worst window", "worst_window_l2", "largest C2 of any stretch of rounds"),
    ("Sharpness", "sharpness", "variance of the forecasts; higher is bolder"),
)


def shown(value: Any, digits: int = 4) -> str:
    """Return a number as text, with more digits where it is small.

    Examples
    --------
    >>> shown(0.25), shown(0.00012345), shown(None), shown(0)
    ('0.2500', '0.00012', 'n/a', '0.0000')
    """
    x = number(value)
    if not math.isfinite(x):
        return NOTHING if math.isnan(x) else ("∞" if x > 0 else "-∞")
    small = 0.0 < abs(x) < 10.0 ** (2 - digits)
    places = 1 - math.floor(math.log10(abs(x))) if small else digits
    return f"{x:.{min(places, 8)}f}"


def scores(story: Story) -> Table:
    """Return what forecasts were worth before and after."""
    told = story.summary
    rows = [(label, *(shown(told[n][key]) for n in NAMES), why) for label, key, why in SCORES]
    rows.append(("AUC", *(shown(told["auc"][name]) for name in NAMES), "ranking; higher is better"))
    header = ("", *COLUMNS, "what it says")
    return Table("Before and after", header, tuple(rows), (0, 4), _score_notes(story))


def _score_notes(story: Story) -> tuple[str, ...]:
    told = story.summary
    clipped = {name: int(told[name]["log_loss_clipped"]) for name in NAMES}
    notes = [
        "C1 and C2 of the drawn forecasts compare each announced value with how often it "
        "happened; of raw and mean forecasts, whose values hardly repeat, they compare averages "
        "in 20 equal buckets.",
        _change(told["regret_brier"]),
    ]
    if any(clipped.values()):
        many = ", ".join(f"{count:,} {name}" for name, count in clipped.items() if count)
        told_so = "In the log loss an outcome that was called impossible counts as 1e-15"
        notes.append(f"{told_so}; rounds where it happened: {many}.")
    return tuple(notes)


def _change(regret: dict[str, Any]) -> str:
    value, low, high = (signed(regret[key]) for key in ("value", "low", "high"))
    if NOTHING in (value, low, high):
        return f"Drawn minus raw Brier score: {value}; too few rounds for an interval."
    return f"Drawn minus raw Brier score: {value}, interval {low} to {high} ({regret['method']})."


def signed(value: Any) -> str:
    """Return a number with its sign.

    >>> signed(0.01), signed(-0.01), signed(None)
    ('+0.0100', '-0.0100', 'n/a')
    """
    text = shown(value)
    return text if text[0] in "-n" else f"+{text}"


def buckets(story: Story) -> Table:
    """Return what became of raw forecasts, bucket by bucket; empty buckets are left out."""
    rows = tuple(
        (
            f"{row.low:.2f} to {row.high:.2f}",
            f"{row.count:,}",
            f"{row.mean_raw:.3f}",
            f"{row.rate:.3f}",
            f"{row.mean_forecast:.3f}",
            f"{row.rate - row.mean_raw:+z.3f}",
            f"{row.rate - row.mean_forecast:+z.3f}",
        )
        for row in story.buckets
        if row.count
    )
    header = ("raw forecasts", "rounds", "you said", "it happened", "now said")
    return Table("Bucket by bucket", (*header, "gap before", "gap now"), rows)


PARTS: Final = (
    ("Brier score", "brier", "= miscalibration - resolution + uncertainty + within buckets"),
    ("Miscalibration", "reliability", "what calibration alone could save"),
    ("Resolution", "resolution", "how much frequencies differ between forecasts; higher is better"),
    ("Uncertainty", "uncertainty", "of the outcomes: the score of always saying the base rate"),
)


def parts(story: Story) -> Table:
    """Return what the Brier scores are made of."""
    found = [story.decompositions[name] for name in NAMES]
    rows = [(label, *(shown(getattr(f, key)) for f in found), why) for label, key, why in PARTS]
    within = [shown(f.within_variance - f.within_covariance) for f in found]
    rows.append(("Within buckets", *within, "what bucket averages leave out; 0 for exact values"))
    return Table(
        "What the Brier score is made of", ("", *COLUMNS, "what it says"), tuple(rows), (0, 4)
    )


def promises(story: Story) -> Table:
    """Return what was promised next to what was measured."""
    told, found = story.summary["bound"], story.summary["certificate"]
    names = (("C1", "c1"), ("C2", "c2"), (f"Regret, {found['loss']} loss", "regret"))
    rows = tuple(
        (label, shown(found[key]), shown(told[key]), _kept(found[key], told[key]))
        for label, key in names
    )
    assumed = told["assumption"]
    notes = (f"Bounds hold {assumed}.",) if assumed else ()
    header = ("", "measured", "bound", "promise")
    return Table("Promised and measured", header, rows, (0, 3), notes)


def _kept(measured: Any, bound: Any) -> str:
    if math.isnan(number(bound)) or math.isnan(number(measured)):
        return "no promise"
    return "kept" if number(measured) <= number(bound) else "exceeded in this run"


def settings(story: Story) -> Table:
    """Return what it takes to repeat the run."""
    rows = [(name, plainly(value)) for name, value in story.settings.items() if name != "command"]
    rows.append(("calibrant", str(story.summary["calibrant"])))
    rows += [(f"timing: {name}", plainly(value)) for name, value in _timing(story).items()]
    return Table("Settings", ("setting", "value"), tuple(rows), (0, 1))


def _timing(story: Story) -> dict[str, Any]:
    return dict(story.summary.get("timing") or {})


def plainly(value: Any) -> str:
    """Return a setting as text.

    >>> plainly(None), plainly(["a", "b"]), plainly({"raw": "p"}), plainly(0.12345), plainly(1e6)
    ('none', 'a, b', 'raw = p', '0.1235', '1,000,000')
    """
    if isinstance(value, dict):
        return ", ".join(f"{key} = {plainly(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(plainly(item) for item in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
    return "none" if value is None else str(value)
