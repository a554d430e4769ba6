"""The rules, and the stationary laws that two of them play.

Grassmann, Taksar and Heyman (1985) eliminate one state after the other: a chain that is
only watched while outside the last state is a chain again, whose rates are sums and
products of the old ones.  Nothing is subtracted, so nothing cancels, and every entry of
the law, however small, is right to about N^2 units of its last place (O'Cinneide 1993),
also for chains that almost fall apart, where eigenvectors and linear solvers give noise.

References
----------
Grassmann, Taksar and Heyman, Regenerative analysis and steady state distributions for
Markov chains, Operations Research 33 (1985).
O'Cinneide, Entrywise perturbation theory and error analysis for Markov chains,
Numerische Mathematik 65 (1993).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.advice.rule import Rule, ScheduledRule, State, numbers, refuse
from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput

# exp(-600) is 1e-261: far below anything that a sum of doubles would notice, and far
# enough above 1e-308 that what underflows during the elimination is negligible too.
LOWEST_LOG = -600.0


def stationary_law(rates: Any) -> Reals:
    """Return a law that the chain with these rates keeps: as much flows in as out.

    Parameters
    ----------
    rates
        A square array; ``rates[i][j]`` is how fast the chain leaves i for j.  They are
        relative (a transition matrix will do) and the diagonal does not matter.

    Notes
    -----
    ``sum_i law[i] rates[i][j] == law[j] sum_k rates[j][k]`` for every j.  If the chain falls
    apart into several closed classes, it keeps many laws and the one returned lives on one
    of the classes.  Rows are scaled by powers of two, which is exact, and so may differ
    in size without limit; *within* a row rates below 1e-290 of the largest may
    count as none.

    Examples
    --------
    >>> stationary_law([[0, 1], [3, 0]])
    array([0.75, 0.25])
    >>> stationary_law([[0, 1e-200], [3e-200, 0]])
    array([0.75, 0.25])
    >>> stationary_law([[0, 1, 0], [0, 0, 0], [0, 5, 0]])
    array([0., 1., 0.])
    """
    table = _square(rates, "rates", 1)
    refuse(table < 0.0, table, "rates", "a number of at least 0")
    np.fill_diagonal(table, 0.0)
    powers = np.frexp(table.max(axis=1))[1]
    parts, exponents = np.frexp(_eliminated(np.ldexp(table, -powers[:, None])))
    exponents = np.where(parts > 0.0, exponents - powers, np.iinfo(np.int32).min // 2)
    return _normalised(np.ldexp(parts, exponents - exponents.max()))


def stationary_law_of_logs(log_rates: Any) -> Reals:
    """Return the stationary law for rates that are given by their logarithms.

    The rates themselves may be far outside the range of doubles.  Each row is scaled by
    its largest rate, and rates below exp(-600) of that are raised to it, so every state
    reaches every other and the law is unique.

    Examples
    --------
    >>> stationary_law_of_logs([[0, 5000.0], [5000.0 + np.log(3), 0]])
    array([0.75, 0.25])
    """
    table = _square(log_rates, "log_rates", 2)
    np.fill_diagonal(table, -np.inf)
    tops = table.max(axis=1, keepdims=True)
    rates = np.exp(np.maximum(table - tops, LOWEST_LOG))
    logs = np.log(_eliminated(rates)) - tops[:, 0]
    return _normalised(np.exp(logs - logs.max()))


def _eliminated(rates: Reals) -> Reals:
    """Return the law of the chain, its largest entry 1; ``rates`` is overwritten."""
    root = _fold(rates)
    law = np.zeros(len(rates))
    law[root] = 1.0
    for k in range(root + 1, len(rates)):
        inflow, outflow = law[:k] @ rates[:k, k], rates[k, k]
        if inflow > outflow:  # rather than let entry k exceed 1, shrink those before it
            law[:k] *= outflow / inflow
            inflow = outflow
        law[k] = inflow / outflow
    return law


def _fold(rates: Reals) -> int:
    """Eliminate the last states one by one, and return the state that remains.

    Afterwards ``rates[k, k]`` is the rate at which k leaves for the states before it, and
    ``rates[:k, k]`` are their rates towards k, both with the states after k removed.
    """
    for k in range(len(rates) - 1, 0, -1):
        outflow = rates[k, :k].sum()
        if outflow == 0.0:  # k never comes back to those before it: the law is on k alone
            return k
        rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k] / outflow)
        rates[k, k] = outflow
    return 0


def _normalised(law: Reals) -> Reals:
    return np.asarray(law / law.sum())


def _square(rates: Any, name: str, smallest: int) -> Reals:
    table = numbers(rates, name, 2)
    if len(table) != table.shape[1] or len(table) < smallest:
        rule = f"a square array of at least {smallest} row(s)"
        raise InvalidInput(f"{name} must be {rule}, got shape {table.shape}")
    return table


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
    by at most ``bound(rounds)``; see :class:`~calibrant.advice.rule.Schedule` for the
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
        return np.asarray(raised / raised.sum())


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
    ``Phi = |max(R, 0)|_p^2`` (Blackwell's condition), and the p-norm is smooth enough that
    Phi then grows by at most ``(p - 1) |step|_p^2 <= (p - 1) B^2 (N - 1)^(2/p)`` a round.  Hence,
    for every sequence of losses,

        ``internal regret <= |max(R, 0)|_p <= B (N - 1)^(1/p) sqrt((p - 1) T)``.

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

    def _checked(self) -> dict[str, Any]:
        rule = "a finite number of at least 2"
        return {"power": check.real(self.power, "power", low=2.0, rule=rule)}

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
    so the bound of :class:`~calibrant.advice.rule.Schedule` holds with K = N ln(N), the
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
