"""From what an estimator says to a table of probabilities, a class a column."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals, Words

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


def numbered(y: NDArray[Any], classes: NDArray[Any]) -> Words:
    """Return labels as numbers of columns; raise if one is no known class.

    >>> numbered(np.array(["c", "a"]), np.array(["a", "b", "c"])).tolist()
    [2, 0]
    """
    strange = ~np.isin(y, classes)
    if strange.any():
        told = f"y must hold classes among {classes.tolist()}, got {y[strange][0].item()!r}"
        raise ValueError(told)
    return np.searchsorted(classes, y).astype(np.int64)
