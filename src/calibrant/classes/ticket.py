"""The receipt of a forecast over several classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassTicket", "OneVsRestTicket", "SimplexTicket", "TopTicket"]

Reals = NDArray[np.float64]


class ClassTicket:
    """A forecast over several classes that waits for its outcome.

    Attributes
    ----------
    id, number
        By which the outcome is reported; how many forecasts were made before this one.
    raw, time
        What came in.
    value
        The drawn forecast, a number for each class.
    mean
        The expected forecast: sharper, and without the guarantee.
    outcome
        The class that was reported, or None as long as the ticket is open.
    issuer
        The fingerprint of the recalibrator.
    """

    __slots__ = ("id", "issuer", "mean", "number", "outcome", "raw", "time", "value")

    def __init__(
        self,
        issuer: str,
        id: int | str,
        number: int,
        time: float | None,
        raw: Reals,
        value: Reals,
        mean: Reals,
    ) -> None:
        self.issuer, self.id, self.number, self.time = issuer, id, number, time
        self.raw, self.value, self.mean = raw, value, mean
        self.outcome: int | None = None

    def __repr__(self) -> str:
        told = ", ".join(f"{p:.3g}" for p in self.value[:4].tolist())
        more = ", ..." if len(self.value) > 4 else ""
        state = "open" if self.outcome is None else f"outcome={self.outcome}"
        return f"{type(self).__name__}(id={self.id!r}, value=[{told}{more}], {state})"


class OneVsRestTicket(ClassTicket):
    """A forecast whose numbers were calibrated class by class.

    Attributes
    ----------
    classwise, classwise_mean
        The numbers as they were drawn, and as they were expected, before anything made them
        sum to 1.  ``classwise`` is what carries the guarantee.
    """

    __slots__ = ("classwise", "classwise_mean")

    classwise: Reals
    classwise_mean: Reals


class TopTicket(ClassTicket):
    """A forecast whose largest class was calibrated.

    Attributes
    ----------
    top
        The class that the raw forecast puts first; it stays what it is.
    confidence, confidence_mean
        Its probability, as drawn and as expected.  ``confidence`` carries the guarantee.
    leads
        Whether no other class has more in ``value``.  At a confidence below 1/K, K the number
        of classes, that cannot be.
    """

    __slots__ = ("confidence", "confidence_mean", "leads", "top")

    top: int
    confidence: float
    confidence_mean: float
    leads: bool


class SimplexTicket(ClassTicket):
    """A forecast drawn from a grid over the simplex.

    Attributes
    ----------
    points, weights
        The grid points that could have been drawn, a row each, and their probabilities.
    """

    __slots__ = ("points", "weights")

    points: Reals
    weights: Reals
