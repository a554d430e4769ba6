"""Regret after the fact and as losses come, and advice merged into one forecast.

All three follow from one table: ``R[i, j]`` is the sum over rounds of
weights_i (loss_i - loss_j), the gain from having played j whenever i was played.  The
best single expert gains the largest column sum (external regret), the best single swap
the largest entry (internal), and the best map of experts to experts the sum of the row
maxima (swap).  Hence internal <= swap <= N internal and external <= swap.

For a run of draws pass weights that are 1 at the expert drawn and 0 elsewhere.

With the squared loss there is no need to draw an expert: their probabilities can be
merged, and the regret to the best of them then stays *constant*, not of order sqrt(T).
Both ways below need :class:`~calibrant.advice.ExponentialWeights` with the learning
rate that goes with them; a weighted mean with eta = 2 has no such bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.advice.rule import Rule, State, laws, numbers, row
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput


def external_regret(weights: Any, losses: Any) -> float:
    """Return the total expected loss less that of the best expert; it may be negative.

    Parameters
    ----------
    weights
        One row per round, one column per expert; rows sum to one.
    losses
        Losses in the same shape; any finite numbers.

    Examples
    --------
    >>> external_regret([[0.5, 0.5], [0.5, 0.5]], [[1, 0], [1, 0]])
    1.0
    """
    return external_of(pair_regrets(weights, losses))


def internal_regret(weights: Any, losses: Any) -> float:
    """Return the most that one swap of an expert for another would have saved.

    Parameters are those of :func:`external_regret`.

    Examples
    --------
    >>> internal_regret([[1, 0, 0], [0, 1, 0]], [[1, 0, 1], [1, 1, 0]])
    1.0
    """
    return internal_of(pair_regrets(weights, losses))


def swap_regret(weights: Any, losses: Any) -> float:
    """Return the most that a map of experts to experts would have saved.

    Parameters are those of :func:`external_regret`.

    Examples
    --------
    >>> swap_regret([[1, 0, 0], [0, 1, 0]], [[1, 0, 1], [1, 1, 0]])
    2.0
    """
    return swap_of(pair_regrets(weights, losses))


def pair_regrets(weights: Any, losses: Any) -> Reals:
    """Return the table of all swaps: entry (i, j) is the gain from playing j for i.

    Examples
    --------
    >>> pair_regrets([[0.5, 0.5]], [[1.0, 0.0]])
    array([[ 0. ,  0.5],
           [-0.5,  0. ]])
    """
    played, seen = laws(weights, 2), numbers(losses, "losses", 2)
    if played.shape != seen.shape:
        raise InvalidInput(f"losses must be of shape {played.shape}, got shape {seen.shape}")
    paid = (played * seen).sum(axis=0)
    table: Reals = paid[:, None] - played.T @ seen
    np.fill_diagonal(table, 0.0)
    return table


def external_of(pairs: Reals) -> float:
    """Return the external regret, given the table of :func:`pair_regrets`."""
    return float(pairs.sum(axis=0).max())


def internal_of(pairs: Reals) -> float:
    """Return the internal regret, given the table of :func:`pair_regrets`."""
    return float(pairs.max())


def swap_of(pairs: Reals) -> float:
    """Return the swap regret, given the table of :func:`pair_regrets`."""
    return float(pairs.max(axis=1).sum())


class OnlineExperts:
    """Play a rule round by round; memory is O(N^2), however many rounds there are.

    Parameters
    ----------
    rule
        Any rule of :mod:`calibrant.advice`.

    Examples
    --------
    >>> from calibrant.advice import ExponentialWeights
    >>> online = OnlineExperts(ExponentialWeights(experts=2))
    >>> for losses in ([0, 1], [0, 1], [1, 0]):
    ...     online.update(losses)
    >>> online.weights.round(2)
    array([0.76, 0.24])
    >>> round(online.external_regret, 3), round(online.bound, 3)
    (0.597, 1.53)
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._state = rule.start()
        self._pairs = np.zeros((rule.experts, rule.experts))

    @property
    def state(self) -> State:
        """The rule's state."""
        return self._state

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return self._state.rounds

    @property
    def weights(self) -> Reals:
        """The weights of the next round."""
        return self.rule.weights(self._state)

    def update(self, losses: Any) -> None:
        """Take in the losses of the round that was played with ``weights``."""
        state = self.rule.update(self._state, losses)
        self._pairs += pair_regrets(self.weights[None], np.asarray(losses)[None])
        self._state = state

    @property
    def external_regret(self) -> float:
        """The external regret so far."""
        return external_of(self._pairs)

    @property
    def internal_regret(self) -> float:
        """The internal regret so far."""
        return internal_of(self._pairs)

    @property
    def swap_regret(self) -> float:
        """The swap regret so far."""
        return swap_of(self._pairs)

    @property
    def bound(self) -> float:
        """What the regret named by ``rule.regret`` cannot exceed after that many rounds."""
        return self.rule.bound(self.rounds)


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
