"""What can be asked of an object without making a round: found by looking at its class."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from machine_kinds import Kind

from calibrant.errors import InvalidInput, InvalidType
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.preview import Preview

__all__ = ["LOOKS", "WRITES", "ask", "reads_of"]

WRITES = frozenset(
    ("forecast", "observe", "correct", "expire", "learn_one", "replay", "compile")
).union(
    ("play", "forecast_many", "observe_many", "update", "update_many", "skip", "restart", "settle")
)
"""Public methods that are meant to change something, or to prepare for it."""
PREVIEWED = ("Preview.one", "Preview.many")
LOOKS = ("predict_one", "sample_one")
"""Reads that are noted until their round is made."""
ALWAYS = ("repr", "str", "==", "pickle.dumps", "copy.copy", "copy.deepcopy")


@functools.cache
def reads_of(kind: Kind) -> list[str]:
    """Return the names of all reads: properties, public methods that do not write, and more."""
    made = type(kind.make(0, 10))
    found = [name for name in dir(made) if not name.startswith("_") and _reads(made, name)]
    found += ["_repr_html_"] if hasattr(made, "_repr_html_") else []
    found += PREVIEWED if issubclass(made, Recalibrator) else ()
    # A rule that forgets in time makes no prediction that does not say when.
    return [*found, *ALWAYS] if kind.has("peek") else [*_without_looks(found), *ALWAYS]


def _without_looks(found: list[str]) -> list[str]:
    return [name for name in found if name not in (*LOOKS, "predict_mean_one", *PREVIEWED)]


def _reads(made: type, name: str) -> bool:
    entry = inspect.getattr_static(made, name)
    if isinstance(entry, property):
        return not (entry.__doc__ or "").startswith("The old name")
    return inspect.isfunction(entry) and name not in WRITES


def ask(kind: Kind, rec: Any, name: str, raw: Any, ticket: Any = None) -> None:
    """Read something; what needs a ticket is left out while there is none."""
    if isinstance(inspect.getattr_static(type(rec), name, None), property):
        getattr(rec, name)
    elif name == "coin_of":
        if ticket is not None and kind.has("coin"):
            kind.check_coin(rec, ticket)
    else:
        _asked(kind, rec, raw)[name]()


def _asked(kind: Kind, rec: Any, raw: Any) -> dict[str, Callable[[], Any]]:
    return {
        "certificate": lambda: _certificate(rec),
        "copy": lambda: rec.copy(),
        "grown": lambda: rec.grown(),
        "interval_one": lambda: _interval(rec, raw),
        "predict_one": lambda: kind.predict(rec, raw, "predict_one"),
        "sample_one": lambda: kind.predict(rec, raw),
        "predict_mean_one": lambda: kind.predict_mean(rec, raw),
        "preview": lambda: rec.preview(np.array([raw, raw])),
        "save": lambda: rec.save(os.devnull),
        "table": lambda: rec.table(),
        "to_bytes": lambda: rec.to_bytes(),
        "to_dict": lambda: rec.to_dict(),
        "_repr_html_": lambda: rec._repr_html_(),
        "Preview.one": lambda: Preview(rec).one(kind.number(raw)),
        "Preview.many": lambda: Preview(rec).many([kind.number(raw)] * 2),
        "repr": lambda: repr(rec),
        "str": lambda: str(rec),
        "==": lambda: rec == rec and rec != 0,
        "pickle.dumps": lambda: pickle.dumps(rec),
        "copy.copy": lambda: copy.copy(rec),
        "copy.deepcopy": lambda: copy.deepcopy(rec),
    }


def _certificate(rec: Any) -> None:
    told = rec.certificate()
    assert str(told)
    if hasattr(told, "to_dict"):
        told.to_dict()
    if hasattr(told, "bound") and callable(told.bound):
        told.bound("C2")


def _interval(rec: Any, raw: Any) -> None:
    try:
        rec.interval_one(raw)
    except (InvalidInput, InvalidType):
        assert not hasattr(rec.transform, "interval")
