"""What an estimator says of rows, and which of their features an expert reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from calibrant.core.arrays import Reals
from calibrant.recalibrate.context import columns_of as words_of_columns

RESPONSES: Final = ("predict_proba", "decision_function")
"""What an estimator is asked for, the first that it has."""


def response_of(estimator: Any) -> str:
    """Return the name of the method that gives an estimator's scores."""
    for name in RESPONSES:
        if hasattr(estimator, name):
            return name
    listed = " or ".join(RESPONSES)
    raise AttributeError(f"estimator must have {listed}, got {estimator!r}")


def as_table(name: str, response: Any) -> Reals:
    """Return the answer of a method as rows of probabilities.

    Decisions are taken for log-odds (two classes) or logits (more): a first guess, which the
    recalibrator corrects.

    >>> as_table("decision_function", [0.0, 100.0]).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    table = np.asarray(response, dtype=np.float64)
    if not np.isfinite(table).all():
        found = table[~np.isfinite(table)][0].item()
        raise ValueError(f"{name} must give finite numbers, got {found!r}")
    if name == "predict_proba":
        # Single precision does not sum to 1 closely enough.
        return np.asarray(table / table.sum(axis=1, keepdims=True))
    if table.ndim == 1:
        table = np.column_stack([np.zeros(len(table)), table])
    raised = np.exp(table - table.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def aligned(table: Reals, own: Any, classes: NDArray[Any]) -> Reals:
    """Return a table over an estimator's ``own`` classes as one over ``classes``.

    >>> aligned(np.array([[0.25, 0.75]]), ["a", "c"], np.array(["a", "b", "c"])).tolist()
    [[0.25, 0.0, 0.75]]
    """
    theirs = np.asarray(own)
    if len(theirs) == len(classes) and (theirs == classes).all():
        return table
    if not np.isin(theirs, classes).all():
        told = f"classes of the estimator must be among {classes.tolist()}, got {theirs.tolist()}"
        raise ValueError(told)
    made = np.zeros((len(table), len(classes)))
    made[:, np.searchsorted(classes, theirs)] = table
    return made


def scores_of(estimator: Any, X: Any, classes: NDArray[Any]) -> Reals:
    """Return the probabilities that a fitted estimator gives to all classes."""
    name = response_of(estimator)
    return aligned(as_table(name, getattr(estimator, name)(X)), estimator.classes_, classes)


def columns_of(X: Any, context: Any) -> dict[str, Any] | None:
    """Return the columns of features that ``context`` names, by name or by number; None for none.

    A number k is called xk, as scikit-learn calls features without names.  What is missing there
    (nan, None) is not known.

    >>> columns_of(np.array([[1.0, 2.0], [3.0, np.nan]]), [1])
    {'x1': [2.0, None]}
    """
    keys = keys_of(context)
    made = {_name(key): _column(X, key) for key in keys}
    # Refused here, before anything learns.
    words_of_columns(made, len(made), _num_samples(X) if keys else 0)
    return made if keys else None


def keys_of(context: Any) -> list[Any]:
    """Return names or numbers of columns: one, several or none.

    >>> keys_of("hour"), keys_of((0, 3)), keys_of(None)
    (['hour'], [0, 3], [])
    """
    if context is None:
        return []
    keys = [context] if isinstance(context, str | Integral) else context
    if isinstance(keys, bool) or not isinstance(keys, Iterable):
        raise ValueError(f"context must be names or numbers of columns, got {context!r}")
    listed = list(keys)
    for key in listed:
        if isinstance(key, bool) or not isinstance(key, str | Integral):
            raise ValueError(f"context must be names or numbers of columns, got {key!r}")
    return listed


def _name(key: Any) -> str:
    return key if isinstance(key, str) else f"x{key}"


def _column(X: Any, key: Any) -> Any:
    """Return a column of numbers, or of numbers and strings with None where a value is missing."""
    rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    taken = _safe_indexing(rows, key, axis=1)
    flat = taken.toarray().ravel() if hasattr(taken, "toarray") else np.asarray(taken)
    if flat.dtype.kind in "biuf" and not np.isnan(flat).any():
        return flat
    return [None if _is_missing(value) else value for value in flat.tolist()]


def _is_missing(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    unknown = value is None or (pandas is not None and value is pandas.NA)
    # Not a number is not itself.
    return bool(unknown or value != value)
