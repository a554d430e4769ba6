"""Internal regret by exponential weights: never wish to have played j whenever you played i."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.advice.rule import State
from calibrant.advice.schedule import ScheduledRule
from calibrant.advice.stationary import stationary_law_of_logs
from calibrant.core.arrays import Reals


@dataclass(frozen=True)
class InternalRegret(ScheduledRule):
    """Reduce internal to external regret: exponential weights over all swaps i -> j.

    Each ordered pair (i, j) stands for a fictitious expert who plays as we do, but puts
    our weight for i on j.  Exponential weights over these N(N - 1) experts mix them, and
    we play the one law that equals its own mixture: the stationary law of the chain that
    goes from i to j at the weight of (i, j).

    Parameters
    ----------
    experts, eta, loss_bound
        As in :class:`~calibrant.advice.ExponentialWeights`.
    horizon
        The number of rounds to choose a constant learning rate for.  With neither, the
        rate of round t is sqrt(8 ln(N(N - 1)) / t) / loss_bound.

    Notes
    -----
    As our law p is the mixture of the fictitious laws, our expected loss is the mixture's,
    and our external regret to the fictitious expert (i, j) is the sum of
    p_i (loss_i - loss_j), the regret for not having swapped i for j.  So the bound of
    :class:`~calibrant.advice.ExponentialWeights` holds with N(N - 1) in place of N, for
    every sequence of losses; with a horizon T it is B sqrt(T ln(N(N - 1)) / 2).
    ``scores[i, j]`` of the state is that regret.  Swap weights below exp(-600) of the
    largest in their row are raised to it, which changes the bound by less than rounding
    does.  A round takes O(N^3) time.

    References
    ----------
    Cesa-Bianchi and Lugosi, Prediction, Learning, and Games (2006), section 4.4.
    Stoltz and Lugosi, Internal regret in on-line portfolio selection, Machine
    Learning 59 (2005).

    Examples
    --------
    >>> rule = InternalRegret(experts=2, eta=1.0)
    >>> state = rule.update(rule.start(), losses=[0.0, 1.0])
    >>> state.scores
    array([[ 0. , -0.5],
           [ 0.5,  0. ]])
    >>> rule.weights(state).round(3)
    array([0.731, 0.269])
    """

    regret: ClassVar[str] = "internal"

    def _log_comparators(self) -> float:
        return math.log(self.experts * (self.experts - 1))

    def _added(self, weights: Reals, losses: Reals) -> Reals:
        return weights[:, None] * np.subtract.outer(losses, losses)

    def _law(self, state: State) -> Reals:
        eta = self.schedule.rate(state.rounds + 1)
        return stationary_law_of_logs(eta * state.scores)
