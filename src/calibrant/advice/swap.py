"""Swap regret: never wish to have mapped every choice of expert to another one."""

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
class SwapRegret(ScheduledRule):
    """Run one copy of exponential weights per expert and play what their advice keeps.

    Copy i is responsible for the rounds in which expert i is played: it is charged the
    weight p_i times the losses, and answers with a law q_i.  Played is the law p that
    satisfies p = sum_i p_i q_i, so following expert i or copy i's advice is the same.

    Parameters
    ----------
    experts
        The number N of experts, at least 2.
    eta
        A constant learning rate for all copies.
    horizon
        The number of rounds to choose a constant learning rate for.  With neither, the
        rate of round t is sqrt(8 N ln(N) / t) / loss_bound.
    loss_bound
        Losses lie in [0, loss_bound].

    Notes
    -----
    The swap regret is the sum of the copies' external regrets.  In a round at rate eta copy i
    adds at most eta (p_i B)^2 / 8 to its own, and these squares sum to at most eta B^2 / 8;
    so the bound of :class:`~calibrant.advice.schedule.Schedule` holds with K = N ln(N), the
    logarithm of the number of maps; with a horizon T it is B sqrt(T N ln(N) / 2).
    ``scores[i, j]`` of the state is the sum of p_i loss_j.

    References
    ----------
    Blum and Mansour, From external to internal regret, Journal of Machine Learning
    Research 8 (2007).

    Examples
    --------
    >>> rule = SwapRegret(experts=2, eta=1.0)
    >>> state = rule.update(rule.start(), losses=[0.0, 1.0])
    >>> rule.weights(state).round(3)
    array([0.622, 0.378])
    """

    regret: ClassVar[str] = "swap"

    def _log_comparators(self) -> float:
        return self.experts * math.log(self.experts)

    def _added(self, weights: Reals, losses: Reals) -> Reals:
        return np.outer(weights, losses)

    def _law(self, state: State) -> Reals:
        eta = self.schedule.rate(state.rounds + 1)
        logs = -eta * (state.scores - state.scores.min(axis=1, keepdims=True))
        totals = np.exp(logs).sum(axis=1, keepdims=True)
        return stationary_law_of_logs(logs - np.log(totals))
