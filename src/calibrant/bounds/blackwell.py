"""C1 of approachability by online gradient descent (calibrator ``blackwell``)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant.bounds.game import ABOVE_ZERO, PATHWISE, Bound, Game, game, over_draws
from calibrant.core import check
from calibrant.errors import InvalidInput

_THEOREM = "Blackwell approachability by gradient descent"


def blackwell_fixed(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    step: float | None = None,
    start: ArrayLike | None = None,
    expected: bool = False,
    failure: float | None = None,
) -> Bound:
    """Bound C1 of gradient descent with one step size for all rounds.

    Parameters
    ----------
    rounds, cells, half_cell, buckets
        T, K, h and M, as in ``foster_hart``.
    step
        The step size; by default the best one for these sizes, ``sqrt(M K/T)`` from 0.
    start
        The scores theta_1 in [-1, 1] from which the cells start, all buckets together; by
        default 0.
    expected
        Whether all cells of the mixture were updated by their weights instead of the drawn
        one.  The bound then holds for the error of the mixtures, on every path.
    failure
        The probability with which the bound may fail; ``None`` bounds the expectation.

    Notes
    -----
    With ``E = sum_i (1 + |theta_1i|)^2`` over the cells in use,

        E C1 <= h + E/(2 step T) + step/2,

    which is ``h + sqrt(M K/T)`` at the best step.  Inside Algorithm 1 no instance knows its
    own number of rounds, so the step is set for all together; from measured counts, give the
    number of buckets in use and the step that was taken.

    Proof.  Let ``z_t`` be the vector with ``y - g_k`` at the played cell.  Gradient ascent
    on the cube has regret ``sum <u - theta_t, z_t> <= |u - theta_1|^2/(2 step) + step T/2``
    to every u in it, and ``sum |S_i|`` is ``sum <u, z_t>`` for the u of their signs; for a
    cell never played take u = theta_1.  The mixture makes ``E <theta_t, z_t>`` at most h for
    either outcome: for a pair at distance d it is
    ``d |theta_i theta_{i+1}|/(|theta_i| + |theta_{i+1}|) <= d/2``.  With ``failure``, the
    numbers ``<theta_t, z_t>`` lie in [-1, 1] and Azuma's inequality applies.

    References
    ----------
    Abernethy, Bartlett and Hazan (2011), Blackwell approachability and no-regret learning
    are equivalent; Zinkevich (2003).  The former prints the step with the wrong sign and
    uses the cube's diameter, which costs a factor 2.

    Examples
    --------
    >>> round(blackwell_fixed(10_000, cells=11, half_cell=0.05).value, 5)
    0.08317
    >>> round(blackwell_fixed(10_000, cells=11, half_cell=0.05, step=0.1).value, 5)
    0.1055
    """
    sizes = game(rounds, cells, half_cell, buckets)
    energy = _energy(start, sizes)
    eta = math.sqrt(energy / sizes.T)
    if step is not None:
        eta = check.real(step, "step", low=ABOVE_ZERO, rule="a number above 0")
    value = sizes.h + energy / (2.0 * eta * sizes.T) + eta / 2.0
    return _bound(value, sizes, expected, failure)


def blackwell_sqrt(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    expected: bool = False,
    failure: float | None = None,
) -> Bound:
    """Bound C1 of gradient descent with step ``sqrt(2K/t)`` in an instance's t-th round.

    Notes
    -----
    ``E C1 <= h + 2 sqrt(2 M K/T)`` from any start.  Proof as for the fixed step; steps that
    shrink cost ``(diameter)^2/(2 step_T)`` plus half their sum, the diameter of the cube is
    ``2 sqrt K``, and ``sqrt(T_1) + ... + sqrt(T_M) <= sqrt(M T)`` over the buckets.

    References
    ----------
    Zinkevich (2003), Online convex programming and generalized infinitesimal gradient ascent.

    Examples
    --------
    >>> round(blackwell_sqrt(10_000, cells=11, half_cell=0.05).value, 5)
    0.14381
    """
    sizes = game(rounds, cells, half_cell, buckets)
    value = sizes.h + 2.0 * math.sqrt(2.0 * sizes.cells / sizes.T)
    return _bound(value, sizes, expected, failure)


def blackwell_adaptive(
    rounds: int,
    cells: int,
    half_cell: float,
    *,
    buckets: int = 1,
    expected: bool = False,
    failure: float | None = None,
) -> Bound:
    """Bound C1 of gradient descent with a step of its own for each cell.

    Notes
    -----
    The step of cell i is ``sqrt(2/V_i)``, with V_i the sum of the squared increments seen
    there, the present one included.  One coordinate then has regret
    ``2^2/(2 step) + sum step z^2/2 <= 2 sqrt(2 V_i)``, so

        E C1 <= h + (2 sqrt 2/T) E sum_i sqrt(V_i) <= h + 2 sqrt(2 k/T),

    k = min(M K, T), from any start; ``blackwell_measured`` takes the V_i at hand.

    References
    ----------
    Duchi, Hazan and Singer (2011), Adaptive subgradient methods; McMahan and Streeter (2010).

    Examples
    --------
    >>> round(blackwell_adaptive(10_000, cells=11, half_cell=0.05).value, 5)
    0.14381
    """
    sizes = game(rounds, cells, half_cell, buckets)
    value = sizes.h + 2.0 * math.sqrt(2.0 * sizes.visited / sizes.T)
    return _bound(value, sizes, expected, failure)


def blackwell_measured(
    increments: ArrayLike,
    rounds: int,
    half_cell: float,
    *,
    expected: bool = False,
    failure: float | None = None,
) -> Bound:
    """Bound C1 of the adaptive step from the sums of squared increments.

    Parameters
    ----------
    increments
        V_i for each cell of all buckets; the number of visits will do, as V_i is no larger.
    rounds, half_cell, expected, failure
        As in ``blackwell_fixed``.

    Examples
    --------
    >>> round(blackwell_measured([0, 25, 16, 0], rounds=100, half_cell=0.1).value, 4)
    0.3546
    """
    V = np.asarray(increments, dtype=np.float64)
    sizes = game(rounds, max(V.size, 1), half_cell)
    if not ((V >= 0.0) & np.isfinite(V)).all():
        raise InvalidInput(f"increments must be finite numbers of at least 0, got {increments!r}")
    value = sizes.h + 2.0 * math.sqrt(2.0) * float(np.sqrt(V).sum()) / sizes.T
    return _bound(value, sizes, expected, failure)


def _bound(value: float, sizes: Game, expected: bool, failure: float | None) -> Bound:
    if expected:
        return Bound(value, "pseudo C1", PATHWISE, _THEOREM, "sharper")
    return over_draws(value, "C1", _THEOREM, sizes.T, failure)


def _energy(start: ArrayLike | None, sizes: Game) -> float:
    if start is None:
        return float(sizes.cells)
    theta = np.abs(np.asarray(start, dtype=np.float64).ravel())
    if theta.size != sizes.cells or not (theta <= 1.0).all():
        raise InvalidInput(f"start must be {sizes.cells} numbers in [-1, 1], got {start!r}")
    return float(((1.0 + theta) ** 2).sum())
