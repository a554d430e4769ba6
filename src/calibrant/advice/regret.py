"""Regret of any run: what a better choice of experts, made afterwards, would have saved.

All three follow from one table: ``R[i, j]`` is the sum over rounds of
weights_i (loss_i - loss_j), the gain from having played j whenever i was played.  The
best single expert gains the largest column sum (external regret), the best single swap
the largest entry (internal), and the best map of experts to experts the sum of the row
maxima (swap).  Hence internal <= swap <= N internal and external <= swap.

For a run of draws pass weights that are 1 at the expert drawn and 0 elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.advice.tables import laws, numbers
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
