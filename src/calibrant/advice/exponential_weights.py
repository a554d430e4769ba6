"""External regret: be almost as good as the best expert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.advice.rule import State
from calibrant.advice.schedule import ScheduledRule
from calibrant.core.arrays import Reals


@dataclass(frozen=True)
class ExponentialWeights(ScheduledRule):
    """Weigh each expert by exp(-eta times its total loss).

    Parameters
    ----------
    experts
        The number N of experts, at least 2.
    eta
        A constant learning rate.
    horizon
        The number of rounds to choose a constant learning rate for.  With neither, the
        rate of round t is sqrt(8 ln(N) / t) / loss_bound, which suits every horizon.
    loss_bound
        Losses lie in [0, loss_bound].

    Notes
    -----
    For *every* sequence of losses the total expected loss exceeds that of the best expert
    by at most ``bound(rounds)``; see :class:`~calibrant.advice.schedule.Schedule` for the
    proof, with K = ln(N).  The losses may depend on the weights, but not on a draw
    from them.

    References
    ----------
    Cesa-Bianchi and Lugosi, Prediction, Learning, and Games (2006), chapter 2.

    Examples
    --------
    >>> rule = ExponentialWeights(experts=2, eta=1.0)
    >>> state = rule.update(rule.start(), losses=[0.0, 1.0])
    >>> rule.weights(state).round(3)
    array([0.731, 0.269])
    >>> ExponentialWeights(experts=8, horizon=1000).bound(1000)
    32.24...
    """

    regret: ClassVar[str] = "external"

    def _log_comparators(self) -> float:
        return math.log(self.experts)

    def _added(self, weights: Reals, losses: Reals) -> Reals:
        return losses

    def _law(self, state: State) -> Reals:
        eta = self.schedule.rate(state.rounds + 1)
        raised = np.exp(-eta * (state.scores - state.scores.min()))
        law: Reals = raised / raised.sum()
        return law
