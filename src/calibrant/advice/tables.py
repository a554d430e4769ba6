"""Rules for the rows and tables that come in: losses, weights, rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core.arrays import Mask, Reals
from calibrant.errors import InvalidInput, InvalidType

SUM_TOLERANCE = 1e-9


def numbers(values: Any, name: str, dimensions: int) -> Reals:
    """Return ``values`` as a finite ``float64`` array of that many dimensions."""
    kind = f"an array of finite numbers with {dimensions} dimension(s)"
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidType(f"{name} must be {kind}, got ragged rows") from None
    if array.dtype.kind not in "biuf":
        raise InvalidType(f"{name} must be {kind}, got dtype {array.dtype}")
    if array.ndim != dimensions:
        raise InvalidInput(f"{name} must be {kind}, got shape {array.shape}")
    array = array.astype(np.float64)
    refuse(~np.isfinite(array), array, name, "a finite number")
    return array


def row(values: Any, name: str, length: int) -> Reals:
    """Return ``values`` as a flat array of ``length`` finite numbers."""
    array = numbers(values, name, 1)
    if len(array) != length:
        raise InvalidInput(f"{name} must be of length {length}, got length {len(array)}")
    return array


def loss_row(losses: Any, experts: int, loss_bound: float) -> Reals:
    """Return one round's losses, one per expert, each in [0, loss_bound].

    >>> loss_row([0.5, 2.0], 2, 1.0)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: losses[1] must be a number in [0, 1.0], got 2.0
    """
    array = row(losses, "losses", experts)
    outside = (array < 0.0) | (array > loss_bound)
    refuse(outside, array, "losses", f"a number in [0, {loss_bound!r}]")
    return array


def laws(weights: Any, dimensions: int) -> Reals:
    """Return ``weights`` as rows that are non-negative and sum to one, within 1e-9."""
    array = numbers(weights, "weights", dimensions)
    refuse(array < 0.0, array, "weights", "a number of at least 0")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if np.any(off):
        told = np.atleast_1d(sums)[np.atleast_1d(off)][0].item()
        raise InvalidInput(f"weights must be rows that sum to 1, got a sum of {told!r}")
    return array


def refuse(bad: Mask, array: Reals, name: str, rule: str) -> None:
    """Raise about the first entry of ``array`` that is ``bad``."""
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        shown = ", ".join(str(i) for i in place)
        raise InvalidInput(f"{name}[{shown}] must be {rule}, got {array[place].item()!r}")
