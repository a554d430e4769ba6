"""From weights over experts to one forecast, where the advice is a probability.

With the squared loss there is no need to draw an expert: their probabilities can be
merged, and the regret to the best of them then stays *constant*, not of order sqrt(T).
Both ways below need :class:`~calibrant.advice.ExponentialWeights` with the learning
rate that goes with them; a weighted mean with eta = 2 has no such bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.advice.tables import laws, row
from calibrant.core import check

MEAN_RATE = 0.5
SUBSTITUTION_RATE = 2.0


def mix(advice: Any, weights: Any) -> float:
    """Return the weighted mean of the experts' advice, any real numbers.

    Notes
    -----
    exp(-(p - y)^2 / 2) is concave in p on [0, 1], so for probabilities and outcomes in
    [0, 1] the squared loss of the mean exceeds that of the best expert by at most
    2 ln(N) in total, if the weights are exponential with eta = 1/2.

    References
    ----------
    Cesa-Bianchi and Lugosi, Prediction, Learning, and Games (2006), section 3.3.

    Examples
    --------
    >>> mix([0.2, 0.6], weights=[0.5, 0.5])
    0.4
    """
    law = laws(weights, 1)
    return float(law @ row(advice, "advice", len(law)))


def substitute(advice: Any, weights: Any) -> float:
    """Return a probability that is as good, for either outcome, as the experts' mixture.

    Notes
    -----
    Let g(y) = -log(sum_k w_k exp(-2 (a_k - y)^2)) / 2.  The squared loss is mixable at the
    rate 2: p = (1 + g(0) - g(1)) / 2 satisfies (p - y)^2 <= g(y) for y = 0 and for y = 1.
    With exponential weights at eta = 2 the g add up to at most the best expert's loss plus
    ln(N) / 2, and so does the squared loss of p.

    References
    ----------
    Vovk, A game of prediction with expert advice, Journal of Computer and System
    Sciences 56 (1998).

    Examples
    --------
    >>> substitute([0.0, 1.0], weights=[0.5, 0.5])
    0.5
    >>> round(substitute([0.2, 0.6], weights=[0.5, 0.5]), 4)
    0.4152
    """
    law = laws(weights, 1)
    given = check.probabilities(row(advice, "advice", len(law)), "advice")
    losses = np.square([given, given - 1.0])
    g0, g1 = -np.log(np.exp(-SUBSTITUTION_RATE * losses) @ law) / SUBSTITUTION_RATE
    return float((1.0 + g0 - g1) / 2.0)
