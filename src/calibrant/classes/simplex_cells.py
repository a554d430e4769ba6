"""The words of a cell of raw forecasts: counts, and how often each class came at each point."""

from __future__ import annotations

import functools

import numpy as np

from calibrant.calibrators.layout import Layout
from calibrant.kernels.layout import COUNT, ROW


@functools.lru_cache(maxsize=64)
def layout_of_cells(points: int, classes: int) -> Layout:
    """Return the layout of all cells on a grid of so many points.

    A row has its own words and then a block for each grid point: how often it was announced and
    each class came.  A cell counts its forecasts and outcomes as a stream does.

    >>> layout = layout_of_cells(6, 3)
    >>> layout.blocks_of(layout.fresh).shape
    (6, 3)
    """
    own, size = len(ROW), len(ROW) + points * classes
    fresh, nothing = np.zeros(size, np.int64), np.empty(0, np.int64)
    real, stored = np.zeros(size, bool), np.ones(size, bool)
    real[ROW.reals] = True
    low, high = np.full(size, COUNT[0]), np.full(size, COUNT[1])
    low[:own], high[:own] = np.array([field.limits for field in ROW.fields]).T
    fresh.flags.writeable = False
    none = np.empty(0, bool)
    return Layout(nothing, fresh, ROW, own, classes, 0, none, real, stored, low, high)
