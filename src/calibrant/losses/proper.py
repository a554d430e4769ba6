"""Which losses admit recalibration, and what goes wrong under the others (Theorem 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits
from calibrant.errors import ImproperLoss, InvalidInput
from calibrant.losses.base import Loss
from calibrant.losses.custom import RESOLUTION, ProperCheck, find_violation, gaps
from calibrant.losses.named import LossLike, get_loss, loss_names

_LONGEST_PERIOD = 12


@dataclass(frozen=True)
class CounterExample:
    """A repeating sequence on which calibration costs accuracy.

    Attributes
    ----------
    loss
        Name of the loss.
    period
        The outcomes that repeat.
    honest, honest_loss
        The frequency of ones, which a calibrated forecaster comes to announce, and its
        average loss over one period.
    better, better_loss
        A constant with a smaller average loss, and that loss.
    """

    loss: str
    period: tuple[int, ...]
    honest: float
    better: float
    honest_loss: float
    better_loss: float

    def outcomes(self, rounds: int) -> Bits:
        """Return the first ``rounds`` outcomes of the sequence.

        Examples
        --------
        >>> counter_example("absolute").outcomes(8).tolist()
        [0, 0, 1, 0, 0, 1, 0, 0]
        """
        length = check.whole(rounds, "rounds")
        return np.resize(np.array(self.period, dtype=np.uint8), length)

    def __str__(self) -> str:
        """Tell the example in one sentence."""
        told = ", ".join(str(outcome) for outcome in self.period)
        honest, better = _apart(self.honest, self.better)
        honest_loss, better_loss = _apart(self.honest_loss, self.better_loss)
        return (
            f"on the outcomes {told} repeated, the calibrated forecast {honest} has average "
            f"{self.loss} loss {honest_loss} and the constant {better} has {better_loss}"
        )


def check_proper(loss: LossLike, *, resolution: int = RESOLUTION) -> ProperCheck:
    """Decide by search whether a loss is proper, and return the worst violation seen.

    Parameters
    ----------
    loss
        A name, a loss, or any function of outcome and forecast.
    resolution
        How many steps the grid of beliefs and forecasts has.

    Returns
    -------
    ProperCheck
        Verdict, size of the violation, the belief and the better forecast.

    Notes
    -----
    A violation is reported if it exceeds 1e-9 times the largest finite loss (at least
    1e-9).  At each belief of the grid all forecasts of the grid are tried, and others at
    distances down to 2^-17.  A loss that is improper only at beliefs between the points of
    the grid passes: raise ``resolution``, or make it a multiple of the denominators that
    matter.

    Examples
    --------
    >>> check_proper("absolute")
    ProperCheck(proper=False, violation=0.125, belief=0.25, better=0.0)
    >>> check_proper("misclassification").proper
    True
    >>> printed = lambda y, p: (1 - y) * (p < 0.5) + y * (p >= 0.5)
    >>> check_proper(printed).violation
    1.0
    """
    return find_violation(get_loss(loss), resolution)


def counter_example(loss: LossLike) -> CounterExample:
    """Build the sequence of Theorem 2 for an improper loss.

    The period is the shortest, up to 12 outcomes, on which honesty costs at least half of
    what it can cost; failing that, one with the worst frequency of the search grid.

    Notes
    -----
    A frequency of ones that is repeated exactly can be read as a belief p.  If some q has
    ``E_p l(y, q) < E_p l(y, p)``, whoever announces what a calibrated forecaster must come
    to announce loses the difference to the constant q in every period.

    References
    ----------
    Kuleshov and Ermon (2017), Estimating uncertainty online against an adversary,
    section "Recalibration with proper losses" and Theorem 2.

    Examples
    --------
    >>> example = counter_example("absolute")
    >>> example.period, example.better
    ((0, 0, 1), 0.0)
    >>> round(example.honest_loss, 4), round(example.better_loss, 4)
    (0.4444, 0.3333)
    """
    found = get_loss(loss)
    verdict = find_violation(found)
    if verdict.proper:
        raise InvalidInput(f"loss must be improper to have a counter-example, got {found.name!r}")
    ones, length = _frequency(found, verdict.violation)
    return _example(found, ones, length)


def require_proper(loss: LossLike) -> Loss:
    """Return the loss if it is proper, else refuse and show why no guarantee can exist.

    Examples
    --------
    >>> require_proper("log")
    Log()
    >>> require_proper("hinge")
    Traceback (most recent call last):
    calibrant.errors.ImproperLoss: loss must be proper, got 'hinge': on the outcomes 0, 0, 1
    repeated, the calibrated forecast 0.3333 has average hinge loss 0.8889 and the constant 0
    has 0.6667, so no algorithm can be calibrated and as accurate as every forecaster (Theorem
    2 of Kuleshov and Ermon, 2017). Proper losses: squared, log, misclassification, spherical
    """
    found = get_loss(loss)
    if found.proper:
        return found
    proper = ", ".join(name for name in loss_names() if get_loss(name).proper)
    raise ImproperLoss(
        f"loss must be proper, got {found.name!r}: {counter_example(found)}, so no algorithm "
        "can be calibrated and as accurate as every forecaster (Theorem 2 of Kuleshov and "
        f"Ermon, 2017). Proper losses: {proper}"
    )


def _apart(first: float, second: float) -> tuple[str, str]:
    """Write two numbers with four digits, or as many as it takes to tell them apart."""
    digits = 4
    while digits < 17 and f"{first:.{digits}g}" == f"{second:.{digits}g}":
        digits += 1
    return f"{first:.{digits}g}", f"{second:.{digits}g}"


def _frequency(loss: Loss, violation: float) -> tuple[int, int]:
    grid = np.arange(RESOLUTION + 1) / RESOLUTION
    for length in range(1, _LONGEST_PERIOD + 1):
        gap, _ = gaps(loss, np.arange(length + 1) / length, grid)
        if gap.max() >= violation / 2.0:
            return int(np.argmax(gap)), length
    return int(np.argmax(gaps(loss, grid, grid)[0])), RESOLUTION


def _example(loss: Loss, ones: int, length: int) -> CounterExample:
    honest = ones / length
    _, better = gaps(loss, np.array([honest]), np.arange(RESOLUTION + 1) / RESOLUTION)
    return CounterExample(
        loss=loss.name,
        period=(0,) * (length - ones) + (1,) * ones,
        honest=honest,
        better=float(better[0]),
        honest_loss=float(loss.expected(honest, honest)),
        better_loss=float(loss.expected(honest, better[0])),
    )
