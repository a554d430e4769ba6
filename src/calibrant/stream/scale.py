"""From what a model puts out to a number in [0, 1]."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals
from calibrant.kernels.compile import available, compiled
from calibrant.kernels.odds import sigmoids

RULES: Final = {
    "probability": "a number in [0, 1]",
    "percent": "a number in [0, 100]",
    "logit": "a number (log-odds)",
    "score": "a finite number (a score)",
}
SCALES: Final = tuple(RULES)
SHORT: Final = 20_000


class Scale:
    """Turn the column of raw forecasts into probabilities.

    Parameters
    ----------
    kind
        ``"probability"``, ``"percent"`` (0 to 100), ``"logit"`` (log-odds) or ``"score"``,
        an unbounded margin s that becomes (s + m)/2m with m the largest |s| so far, its
        own included.
    largest
        The m to begin with.

    Notes
    -----
    A score's probability depends on the scores before it, never on later ones; a score
    that is the largest so far becomes 0 or 1.

    References
    ----------
    Kuleshov and Ermon (2017), the genotype experiment.

    Examples
    --------
    >>> Scale("score").apply(np.array([2.0, 1.0, -4.0, 2.0])).tolist()
    [1.0, 0.75, 0.0, 0.75]
    """

    def __init__(self, kind: str = "probability", largest: float = 0.0) -> None:
        self.kind = check.choice(kind, "scale", SCALES)
        self.largest = largest

    @property
    def rule(self) -> str:
        """What a value must be."""
        return RULES[self.kind]

    def allows(self, values: Reals) -> Mask:
        """Say which values obey the rule."""
        if self.kind == "logit":
            return ~np.isnan(values)
        if self.kind == "score":
            return np.isfinite(values)
        high = 1.0 if self.kind == "probability" else 100.0
        return (values >= 0.0) & (values <= high)

    def apply(self, values: Reals) -> Reals:
        """Return the probabilities of values that obey the rule; remember the largest score."""
        if self.kind == "probability":
            return values
        if self.kind == "percent":
            return values / 100.0
        return self._of_scores(values) if self.kind == "score" else _of_log_odds(values)

    def _of_scores(self, values: Reals) -> Reals:
        sizes = np.maximum.accumulate(np.append(self.largest, np.abs(values)))[1:]
        self.largest = float(sizes[-1]) if len(sizes) else self.largest
        with np.errstate(invalid="ignore"):
            shares = np.where(sizes > 0.0, values / sizes, 0.0)
        # (s + m)/2m without its overflow.
        return 0.5 + 0.5 * shares


def _of_log_odds(values: Reals) -> Reals:
    into = np.empty(len(values))
    if len(values) > SHORT and available():
        compiled(sigmoids, "odds")(values, into)
    else:
        sigmoids(values.tolist(), into)
    return into
