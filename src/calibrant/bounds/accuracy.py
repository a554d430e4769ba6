"""From calibration to accuracy: what a calibration error costs under a proper loss."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

from calibrant.bounds.game import Bound, Quantity
from calibrant.bounds.gaps import foster_hart
from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.losses import Loss, LossLike, require_proper
from calibrant.losses.named import registered_name


@dataclass(frozen=True)
class Prices:
    """Loss per unit of C1, loss per unit of C2, and loss for having buckets at all."""

    swing: float
    curvature: float
    cost: float = 0.0

    def regret(self, calibration: Bound | float) -> float:
        """Return what calibration errors and buckets cost together.

        A number is read as C1.  A bound on C2 is paid for in whichever way is cheaper.
        """
        if not isinstance(calibration, Bound):
            c1 = check.real(calibration, "calibration", low=0.0, rule="a number of at least 0")
            return _times(self.swing, c1) + self.cost
        if calibration.quantity.endswith("regret"):
            told = repr(calibration.quantity)
            raise InvalidInput(f"calibration must be a bound on C1 or C2, got one on {told}")
        regret = _times(self.swing, calibration.as_c1().value)
        if calibration.quantity.endswith("C2"):
            regret = min(regret, _times(self.curvature, calibration.value))
        return regret + self.cost


def prices(loss: Loss, buckets: int, low: float, high: float) -> Prices:
    """Return the prices of a loss for a grid from ``low`` to ``high`` and so many buckets.

    The swing is taken over the grid's range widened to the constants that stand in for
    raw forecasts, since both are compared with each other.

    Examples
    --------
    >>> from calibrant.losses import get_loss
    >>> prices(get_loss("misclassification"), 10, 0.0, 1.0)
    Prices(swing=2.0, curvature=inf, cost=0.0)
    """
    # A named loss is always the same; of another only its class knows whether it is.
    compared = _compared if registered_name(loss) else _compared.__wrapped__
    first, last, cost = compared(loss, check.whole(buckets, "buckets", low=1))
    swing = loss.swing(min(low, first), max(high, last))
    return Prices(swing, loss.curvature(low, high), cost)


@functools.lru_cache(maxsize=256)
def _compared(loss: Loss, buckets: int) -> tuple[float, float, float]:
    """Return the stand-ins of the first and the last bucket, and the dearest cost of any."""
    stand_ins, costs = loss.comparison(buckets)
    return float(stand_ins[0]), float(stand_ins[-1]), float(costs.max())


def _times(price: float, amount: float) -> float:
    # An infinite price for nothing is still no guarantee.
    return math.inf if math.isinf(price) else price * amount


_GIVEN = "if the calibration error of the buckets, averaged by rounds, is as given"


def swap_regret_bound(
    calibration: Bound | float, loss: LossLike, *, low: float = 0.0, high: float = 1.0
) -> Bound:
    """Bound the swap regret, per round, of calibrated forecasts: Lemma 1 of the paper.

    Parameters
    ----------
    calibration
        A bound on C1, as a number, or on C1 or C2.  From one on pseudo C1 or C2 follows one
        on the pseudo regret, which counts the expected loss of each mixture.
    loss
        A proper loss; others are refused with a counter-example.
    low, high
        A range that holds the announced values and those they are swapped for.

    Notes
    -----
    With ``D(p) = l(1, p) - l(0, p)``, the rounds of cell i lose
    ``sum l(y, g_i) - l(y, q) <= |S_i| |D(g_i) - D(q)|`` to any q: compare both under the
    belief g_i, where properness favours g_i, and correct for the frequency.  So swap regret
    is at most T C1 times the swing of D, which is at most 2B.  The paper prints 2B and
    leaves out a factor 1/T on the left.  A bound on C2 is also multiplied by the curvature
    of the loss, if that gives less.

    Examples
    --------
    >>> swap_regret_bound(0.01, "squared").value
    0.02
    """
    found = require_proper(loss)
    value = Prices(found.swing(low, high), found.curvature(low, high)).regret(calibration)
    return Bound(value, _quantity(calibration), _assumption(calibration), "Lemma 1", "sharper")


def regret_bound(
    calibration: Bound | float, loss: LossLike, buckets: int, *, low: float = 0.0, high: float = 1.0
) -> Bound:
    """Bound what Algorithm 1 loses to the raw forecast per round: Lemma 2, sharpened.

    Parameters
    ----------
    calibration
        A bound on the instances' C1, averaged by their rounds, as a number or as a
        ``Bound`` from this package; a bound on C2 may give less.  C1 of all rounds taken
        together is smaller and will not do.  A bound on the error of the mixtures gives one
        on the pseudo regret: what they lose in expectation, round by round, whatever the
        draws.  ``drawn`` says what follows for the draws.
    loss
        A proper loss; others are refused with a counter-example.
    buckets
        Number of buckets, M.
    low, high
        Least and largest value of the grid.

    Notes
    -----
    ``swing * C1 + bucket_cost``: in bucket j compare with the constant q_j that stands in
    best for every raw forecast there.  Calibration makes us as accurate as q_j up to the
    first term (Lemma 1), and q_j is as accurate as the raw forecast up to the second.  No
    relation between grid and buckets is needed.  For the squared loss the second term is
    below ``1/(2M)``, for the log loss it is ``ln(1 + 1/M)`` whatever the raw forecast, for
    the misclassification loss it is 0 if M is even.

    References
    ----------
    Kuleshov and Ermon (2017), Lemma 2, which has ``N B`` in place of the swing.

    Examples
    --------
    >>> round(regret_bound(0.01, "squared", buckets=20).value, 5)
    0.04431
    >>> from calibrant.bounds import foster_hart
    >>> calibration = foster_hart(100_000, cells=11, half_cell=0.05, buckets=20)
    >>> round(regret_bound(calibration, "squared", buckets=20).value, 5)
    0.04248
    >>> from calibrant.bounds import exponential_regret
    >>> print(regret_bound(exponential_regret(10**6, 11, 0.05), "squared", buckets=10))
    pseudo regret <= 0.06639 for every sequence of outcomes, whatever the adversary sees
    (Lemma 2, sharpened; sharper)
    """
    found = require_proper(loss)
    value = prices(found, buckets, low, high).regret(calibration)
    quantity, assumption = _quantity(calibration), _assumption(calibration)
    return Bound(value, quantity, assumption, "Lemma 2, sharpened", "sharper")


def accuracy_at_the_midpoint(c1: float, bound: float, lipschitz: float, buckets: int) -> Bound:
    """Bound the regret by ``2 B C1 + L/(2M)``: comparison with each bucket's midpoint.

    Parameters
    ----------
    c1
        The instances' C1, averaged by their rounds, or a bound on it.
    bound
        B, with ``|l(1, p) - l(0, p)| <= B``.
    lipschitz
        L, the slope of the loss inside buckets.
    buckets
        Number of buckets, M.

    Examples
    --------
    >>> accuracy_at_the_midpoint(0.01, bound=1.0, lipschitz=2.0, buckets=20).value
    0.07
    """
    C, B, M = _size(c1, "c1"), _size(bound, "bound"), check.whole(buckets, "buckets", low=1)
    value = 2.0 * B * C + _size(lipschitz, "lipschitz") / (2.0 * M)
    return Bound(value, "regret", _GIVEN, "Lemma 2 at midpoints", "sharper")


def accuracy_at_the_edge(c1: float, bound: float, buckets: int) -> Bound:
    """Bound the regret by ``2 B C1 + B/M``: the paper's comparison, corrected.

    B must dominate the loss and its slope: for the squared loss 2, not 1.

    Examples
    --------
    >>> accuracy_at_the_edge(0.01, bound=2.0, buckets=20).value
    0.14
    """
    C, B, M = _size(c1, "c1"), _size(bound, "bound"), check.whole(buckets, "buckets", low=1)
    return Bound(2.0 * B * C + B / M, "regret", _GIVEN, "Lemma 2, corrected", "paper")


def accuracy_paper(rate: float, resolution: int, epsilon: float, bound: float) -> Bound:
    """Return Lemma 2 as printed: ``N B sum_j (T_j/T) R_j + 3 B epsilon``.

    Parameters
    ----------
    rate
        ``sum_j (T_j/T) R_j``, by which C1 exceeds epsilon.
    resolution
        N, more than 1/epsilon.
    epsilon
        The calibration error of the calibrators in the limit.
    bound
        B, for the loss and its slope.

    Notes
    -----
    Printed for the record and for comparison: the factor N is not needed, and the argument
    as sketched gives 4 B epsilon unless N is a multiple of M.

    Examples
    --------
    >>> round(accuracy_paper(0.01, resolution=20, epsilon=0.05, bound=1.0).value, 4)
    0.35
    """
    R, N = _size(rate, "rate"), check.whole(resolution, "resolution", low=1)
    e, B = _size(epsilon, "epsilon"), _size(bound, "bound")
    return Bound(N * B * R + 3.0 * B * e, "regret", _GIVEN, "Lemma 2, as printed", "paper")


def brier_bound(
    rounds: int,
    cells: int,
    half_cell: float,
    buckets: int,
    *,
    mean_error: float = 1.0,
    **options: Any,
) -> Bound:
    """Bound the extra squared loss of Algorithm 1 over ``foster_hart``.

    Parameters
    ----------
    rounds, cells, half_cell, buckets, **options
        As in ``foster_hart``.
    mean_error
        Average ``|y - raw forecast|``, if it is known; at most 1.

    Notes
    -----
    ``C2 + mean_error/M + 1/(4 M^2)``.  With squared loss, rounds at g_i lose at most
    ``S_i^2/n_i`` to any constant, and a bucket's midpoint q has
    ``(y - q)^2 - (y - p)^2 = (p - q)^2 + 2 (p - q)(y - p)`` with ``|p - q| <= 1/(2M)``.
    ``regret_bound`` is better if nothing is known of ``mean_error``.

    Examples
    --------
    >>> round(brier_bound(100_000, cells=11, half_cell=0.05, buckets=20).value, 5)
    0.06879
    >>> round(brier_bound(100_000, 11, 0.05, 20, mean_error=0.2).value, 5)
    0.02879
    """
    error = check.probability(mean_error, "mean_error")
    calibration = foster_hart(rounds, cells, half_cell, buckets=buckets, **options)
    value = calibration.value + error / buckets + 1.0 / (4.0 * buckets**2)
    return Bound(value, "regret", calibration.assumption, "average gap, squared loss", "sharper")


def _quantity(calibration: Bound | float) -> Quantity:
    pseudo = isinstance(calibration, Bound) and calibration.quantity.startswith("pseudo")
    return "pseudo regret" if pseudo else "regret"


def _assumption(calibration: Bound | float) -> str:
    return calibration.assumption if isinstance(calibration, Bound) else _GIVEN


def _size(value: Any, name: str) -> float:
    return check.real(value, name, low=0.0, rule="a number of at least 0")
