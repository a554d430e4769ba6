"""The stationary law of a Markov chain, without a subtraction.

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

from typing import Any

import numpy as np

from calibrant.advice.tables import numbers, refuse
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
    scaled: Reals = law / law.sum()
    return scaled


def _square(rates: Any, name: str, smallest: int) -> Reals:
    table = numbers(rates, name, 2)
    if len(table) != table.shape[1] or len(table) < smallest:
        rule = f"a square array of at least {smallest} row(s)"
        raise InvalidInput(f"{name} must be {rule}, got shape {table.shape}")
    return table
