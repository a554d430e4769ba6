"""From labels and tables of probabilities to forecasts and outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals


def as_rounds(y_true: Any, y_proba: Any, pos_label: Any, labels: Any) -> tuple[Reals, Mask]:
    """Return forecasts in [0, 1] and whether each came true.

    A column of two is the positive class's; of a table over more classes, the forecast is the
    largest number of each row, and it comes true if its class does.

    >>> forecasts, happened = as_rounds(["a", "c"], [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], None, "abc")
    >>> forecasts.tolist(), happened.tolist()
    ([0.5, 0.6], [True, False])
    """
    told, table = column_or_1d(y_true), np.asarray(y_proba)
    check_consistent_length(told, table)
    if table.ndim == 2:
        names = np.unique(told) if labels is None else np.asarray(list(labels))
        if len(names) != table.shape[1]:
            listed = f"{table.shape[1]} labels, a column each, got {names.tolist()}"
            raise ValueError(f"labels must be {listed}")
        if len(names) > 2:
            first = names[table.argmax(axis=1)]
            return check.probabilities(table.max(axis=1), "y_proba"), np.asarray(first == told)
        pos_label, table = names[1] if pos_label is None else pos_label, table[:, 1]
    return check.probabilities(table, "y_proba"), np.asarray(told == _positive(told, pos_label))


def _positive(told: NDArray[Any], pos_label: Any) -> Any:
    found = np.unique(told).tolist()
    if pos_label is not None:
        return pos_label
    if not any(set(found) <= usual for usual in ({0, 1}, {-1, 1})):
        raise ValueError(f"pos_label must be given where labels are not 0 and 1, got {found}")
    return 1
