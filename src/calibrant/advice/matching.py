"""Internal regret by regret matching: swap at a rate that grows with the regret."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.advice.rule import Rule, State
from calibrant.advice.schedule import checked_experts, checked_loss_bound
from calibrant.advice.stationary import stationary_law
from calibrant.core import check
from calibrant.core.arrays import Reals


@dataclass(frozen=True)
class RegretMatching(Rule):
    """Play the stationary law of a chain whose rates are powers of the positive regrets.

    From i the chain goes to j at the rate max(R_ij, 0)^(power - 1), where R_ij is the
    regret for not having swapped i for j.  There is no learning rate to choose and no
    horizon to know.  While no regret is positive the last weights are kept.

    Parameters
    ----------
    experts
        The number N of experts, at least 2.
    power
        The power p of the potential, at least 2.
    loss_bound
        Losses lie in [0, loss_bound].

    Notes
    -----
    The stationary law makes the step of the regrets orthogonal to the gradient of
    Phi = |max(R, 0)|_p^2 (Blackwell's condition), and the p-norm is smooth enough that
    Phi then grows by at most (p - 1) |step|_p^2 <= (p - 1) B^2 (N - 1)^(2/p) a round.  Hence,
    for every sequence of losses,

        internal regret <= |max(R, 0)|_p <= B (N - 1)^(1/p) sqrt((p - 1) T).

    p = 2 gives B sqrt((N - 1) T); p near 2 ln(N) brings the factor down to sqrt(ln(N)).

    References
    ----------
    Foster and Vohra, Asymptotic calibration, Biometrika 85 (1998).
    Hart and Mas-Colell, A general class of adaptive strategies, Journal of Economic
    Theory 98 (2001).
    Cesa-Bianchi and Lugosi, Prediction, Learning, and Games (2006), sections 2.1 and 4.4.

    Examples
    --------
    >>> rule = RegretMatching(experts=3)
    >>> state = rule.update(rule.start(), losses=[0.0, 1.0, 1.0])
    >>> rule.weights(state)
    array([1., 0., 0.])
    >>> rule.bound(100)
    14.14...
    """

    experts: int
    power: float = 2.0
    loss_bound: float = 1.0

    regret: ClassVar[str] = "internal"

    def __post_init__(self) -> None:
        power = check.real(self.power, "power", low=2.0, rule="a finite number of at least 2")
        object.__setattr__(self, "experts", checked_experts(self.experts))
        object.__setattr__(self, "power", power)
        object.__setattr__(self, "loss_bound", checked_loss_bound(self.loss_bound))

    def bound(self, rounds: int) -> float:
        """Return a number that the internal regret after ``rounds`` never exceeds."""
        growth = math.sqrt((self.power - 1.0) * check.whole(rounds, "rounds"))
        return float(self.loss_bound * (self.experts - 1) ** (1.0 / self.power) * growth)

    def _added(self, weights: Reals, losses: Reals) -> Reals:
        return weights[:, None] * np.subtract.outer(losses, losses)

    def _law(self, state: State) -> Reals:
        regrets = np.maximum(state.scores, 0.0)
        largest = regrets.max()
        if largest == 0.0:
            return state.weights
        return stationary_law((regrets / largest) ** (self.power - 1.0))
