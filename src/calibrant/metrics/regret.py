"""Losses and regrets of any run, from the sums per forecast value.

A loss is one of :mod:`calibrant.losses`, its name, or any function
``loss(outcome, forecast)``.  Regrets are sums over rounds, not averages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput
from calibrant.losses import LossLike, get_loss
from calibrant.metrics.calibration import calibration_error
from calibrant.metrics.cells import Cells, as_cells

_BLOCK = 1 << 20


def loss_given(loss: LossLike, outcome: int, forecasts: Reals) -> Reals:
    """Return the loss of each forecast under ``outcome``; infinity is allowed, nan is not.

    >>> loss_given("squared", 1, np.array([0.5]))
    array([0.25])
    """
    curves = get_loss(loss)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        losses = (curves.given_one if outcome else curves.given_zero)(forecasts)
    bad = np.isnan(losses) | (losses == -np.inf)
    if bad.any():
        at = f"at forecast {forecasts[bad][0].item()!r} and outcome {outcome}"
        raise InvalidInput(f"loss must be a number above -inf, got {losses[bad][0].item()!r} {at}")
    return losses


def mean_loss(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, loss: LossLike = "squared"
) -> float:
    """Return the average loss of a run.

    Parameters
    ----------
    forecasts : array_like or Cells
        What was announced, numbers in [0, 1].
    outcomes : array_like, optional
        0 or 1 each; left out beside ``Cells``.
    loss : str, Loss or callable
        A name, a loss, or a function ``loss(outcome, forecast)``.

    Returns
    -------
    float
        nan without rounds.

    Examples
    --------
    >>> round(mean_loss([1 / 3] * 3, [0, 0, 1], loss="absolute"), 12)
    0.444444444444
    """
    cells = as_cells(forecasts, outcomes)
    return cells.average(_own_loss(cells, loss).sum())


def external_regret(
    forecasts: ArrayLike | Cells,
    outcomes: ArrayLike | None = None,
    *,
    loss: LossLike = "squared",
    alternatives: ArrayLike | None = None,
) -> float:
    """Return how much the best constant forecast would have saved.

    Parameters
    ----------
    forecasts, outcomes, loss
        As in :func:`mean_loss`.
    alternatives : array_like, optional
        The constants to compare with, such as a grid; the forecasts themselves if
        left out.

    Returns
    -------
    float
        Negative if the run beat every constant; 0 without rounds.

    Examples
    --------
    >>> external_regret([0.0, 0.5, 1.0, 0.5], [1, 1, 0, 0])
    1.5
    """
    cells = as_cells(forecasts, outcomes)
    others = _alternatives(cells, alternatives)
    if not len(cells.values):
        return 0.0
    whole = Cells(np.zeros(1), cells.counts.sum(keepdims=True), cells.ones.sum(keepdims=True))
    best = _costs(whole, loss, others).min()
    return _saving(_own_loss(cells, loss).sum(), best)


def internal_regret(
    forecasts: ArrayLike | Cells,
    outcomes: ArrayLike | None = None,
    *,
    loss: LossLike = "squared",
    alternatives: ArrayLike | None = None,
) -> float:
    """Return the most that replacing one forecast value by another would have saved.

    Parameters
    ----------
    forecasts, outcomes, loss
        As in :func:`mean_loss`.
    alternatives : array_like, optional
        What a value may be replaced by; the forecasts themselves if left out.

    Returns
    -------
    float
        At least 0, since a value may also be kept.

    Examples
    --------
    >>> internal_regret([0.0, 0.5, 1.0, 0.5], [1, 1, 0, 0])
    1.0
    """
    cells = as_cells(forecasts, outcomes)
    savings = _cell_savings(cells, loss, _alternatives(cells, alternatives))
    return float(savings.max(initial=0.0))


def swap_regret(
    forecasts: ArrayLike | Cells,
    outcomes: ArrayLike | None = None,
    *,
    loss: LossLike = "squared",
    alternatives: ArrayLike | None = None,
) -> float:
    """Return what the best replacement of every forecast value would have saved.

    Each value gets a replacement of its own, so this is at least the internal and at
    most the number of values times the internal regret.

    Parameters
    ----------
    forecasts, outcomes, loss
        As in :func:`mean_loss`.
    alternatives : array_like, optional
        What a value may be replaced by; the forecasts themselves if left out.

    Examples
    --------
    >>> swap_regret([0.0, 0.5, 1.0, 0.5], [1, 1, 0, 0])
    2.0
    """
    cells = as_cells(forecasts, outcomes)
    return float(_cell_savings(cells, loss, _alternatives(cells, alternatives)).sum())


def squared_swap_regret(forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None) -> float:
    """Return the swap regret under squared loss when any number in [0, 1] may be swapped in.

    The best replacement is the frequency of 1, which saves ``n (rho - v)**2``: the
    regret is the number of rounds times C^2.

    Examples
    --------
    >>> squared_swap_regret([0.25] * 4, [0, 1, 0, 1])
    0.25
    """
    cells = as_cells(forecasts, outcomes)
    return cells.rounds * calibration_error(cells, power=2.0) if cells.rounds else 0.0


def proper_swap_regret(
    forecasts: ArrayLike | Cells, outcomes: ArrayLike | None = None, *, loss: LossLike = "squared"
) -> float:
    """Return the swap regret over all of [0, 1] under a proper loss.

    Under a proper loss no replacement beats the frequency of 1.  Per round, this is the
    calibration part of the loss; what remains is its refinement (Broecker 2009).

    Examples
    --------
    >>> round(proper_swap_regret([0.5] * 4, [1, 1, 1, 1], loss="log"), 12)
    2.77258872224
    """
    cells = as_cells(forecasts, outcomes)
    best = _weighted(cells.ones, cells.zeros, loss, cells.rho)
    return float(_savings(_own_loss(cells, loss), best).sum())


def _alternatives(cells: Cells, alternatives: ArrayLike | None) -> Reals:
    if alternatives is None:
        return cells.values
    others = check.probabilities(alternatives, "alternatives")
    if not len(others):
        raise InvalidInput("alternatives must be at least one number, got none")
    return others


def _own_loss(cells: Cells, loss: LossLike) -> Reals:
    return _weighted(cells.ones, cells.zeros, loss, cells.values)


def _weighted(ones: Reals, zeros: Reals, loss: LossLike, forecasts: Reals) -> Reals:
    # An infinite loss that never happened costs nothing: 0 * inf must be 0.
    if_zero, if_one = (loss_given(loss, outcome, forecasts) for outcome in (0, 1))
    return _product(ones, if_one) + _product(zeros, if_zero)


def _product(weight: Reals, loss: Reals) -> Reals:
    with np.errstate(invalid="ignore"):
        return np.where(weight > 0.0, weight * loss, 0.0)


def _costs(cells: Cells, loss: LossLike, others: Reals) -> Reals:
    """Return the loss of each cell (row) under each alternative (column)."""
    return _weighted(cells.ones[:, None], cells.zeros[:, None], loss, others)


def _cell_savings(cells: Cells, loss: LossLike, others: Reals) -> Reals:
    """Return for each cell what its best alternative saves, or 0 if none saves anything."""
    best = [_costs(part, loss, others).min(axis=1) for part in _blocks(cells, len(others))]
    return _savings(_own_loss(cells, loss), np.concatenate([np.empty(0), *best]))


def _blocks(cells: Cells, width: int) -> Iterator[Cells]:
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, len(cells.values), step):
        part = slice(start, start + step)
        yield Cells(cells.values[part], cells.counts[part], cells.ones[part])


def _savings(own: Reals, best: Reals) -> Reals:
    return np.array([max(_saving(a, b), 0.0) for a, b in zip(own, best, strict=True)])


def _saving(own: float, best: float) -> float:
    return 0.0 if own == best else float(own - best)
