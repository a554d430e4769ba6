"""Which grid points to announce so that no outcome can hurt: a linear program a round."""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Reals, Words
from calibrant.errors import MissingExtra

DUST: Final = 1e-9
"""Weights below this are what the solver rounds off."""


def solver() -> Any:
    """Return SciPy's ``linprog``, or say what to install."""
    try:
        return importlib.import_module("scipy.optimize").linprog
    except ModuleNotFoundError as error:
        told = 'a grid over the simplex needs scipy: pip install "calibrant[classes]"'
        raise MissingExtra(told) from error


def prices(gaps: Reals, values: Reals) -> Reals:
    """Return by how much the potential may grow, for each grid point i and outcome y.

    With E_i the average gap and g_i the value of point i, it is
    ``2 <E_i, e_y - g_i> - |E_i|**2``: what a round at i with outcome y adds to
    ``sum_i |S_i|**2 / n_i``, apart from a term that vanishes as i is announced more often.

    >>> prices(np.array([[0.1, -0.1]]), np.array([[0.5, 0.5]])).round(3).tolist()
    [[0.18, -0.22]]
    """
    held = (gaps * values).sum(axis=1, keepdims=True)
    table: Reals = 2.0 * (gaps - held) - (gaps**2).sum(axis=1, keepdims=True)
    return table


def hedge(table: Reals, distances: Reals, allowed: float) -> tuple[Words, Reals]:
    """Return the points to mix, and their weights, that stay closest to the raw forecast.

    Among all mixtures whose expected price (``table``: a point a row, an outcome a column) is at
    most ``allowed`` whichever outcome comes, take one with the least expected distance.  There
    is such a mixture wherever every distribution of outcomes has a point that is cheap enough,
    by von Neumann's minimax theorem.  At most as many points are mixed as there are outcomes.

    Examples
    --------
    >>> table = np.array([[0.4, -0.4], [-0.4, 0.4], [0.0, 0.0]])
    >>> points, weights = hedge(table, np.array([0.0, 0.1, 0.9]), 0.0)
    >>> points.tolist(), weights.round(6).tolist()
    ([0, 1], [0.5, 0.5])
    """
    best = int(distances.argmin())
    if table[best].max() <= allowed:
        return np.array([best]), np.ones(1)
    points, weights = _cheapest(table, distances, allowed)
    if len(points) > table.shape[1]:
        # All outcomes are at the limit: some mixture of fewer of these points is as cheap.
        own, weights = _minimax(table[points])
        points = points[own]
    return points, weights


def _cheapest(table: Reals, distances: Reals, allowed: float) -> tuple[Words, Reals]:
    found = solver()(
        distances,
        A_ub=table.T,
        b_ub=np.full(table.shape[1], allowed),
        A_eq=np.ones((1, len(table))),
        b_eq=[1.0],
        method="highs-ds",
    )
    return _support(found.x)


def _minimax(table: Reals) -> tuple[Words, Reals]:
    """Return the mixture whose dearest outcome is as cheap as possible: a vertex, so few points."""
    points, outcomes = table.shape
    found = solver()(
        np.append(np.zeros(points), 1.0),
        A_ub=np.hstack([table.T, -np.ones((outcomes, 1))]),
        b_ub=np.zeros(outcomes),
        A_eq=np.append(np.ones(points), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * points + [(None, None)],
        method="highs-ds",
    )
    return _support(found.x[:-1])


def _support(weights: Reals) -> tuple[Words, Reals]:
    points = np.flatnonzero(weights > DUST)
    return points, weights[points] / weights[points].sum()
