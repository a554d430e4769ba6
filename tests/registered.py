"""What tests ask of a registered rule, so that no test keeps a list of names.

The slow, obvious version of a rule is found by its name.  That of the calibrator ``foster_hart``
is the class named like its class, ``FosterHart``, in ``naive_calibrators.py`` or in a file of its
own, ``naive_foster_hart.py``; that of the transform ``bucket_means`` is the function of that name
in ``naive_transforms.py`` or in ``naive_bucket_means.py``.  What a calibrator promises is worked
out again by a function ``theorems(run)`` in its own file; ``naive_bounds.py`` has the others'.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import calibrant.calibrators
import calibrant.transforms  # noqa: F401 (both fill their registries)
from calibrant.core.grid import GRIDS
from calibrant.errors import InvalidInput
from calibrant.registry import calibrators, transforms


def bounded(name: str) -> bool:
    """Say whether a calibrator as it comes has a theorem."""
    return calibrators.get(name)().bound(100) is not None


def patient(name: str) -> bool:
    """Say whether that theorem holds while outcomes are outstanding."""
    return calibrators.get(name)().bound(100, delay=1) is not None


def on_all_cells(name: str) -> bool:
    """Say whether a calibrator announces laws over all cells, and not pairs."""
    return calibrators.get(name).kernels.full_support


def refuses(name: Any, grid: Any) -> bool:
    """Say whether this is a calibrator, and a grid that it has no use for."""
    if not isinstance(name, str) or name not in calibrators.names() or grid not in GRIDS:
        return False
    try:
        calibrators.get(name)(grid=grid)
    except InvalidInput:
        return True
    return False


def grids(name: str) -> list[str]:
    """Return the grids on which a calibrator plays."""
    return [grid for grid in GRIDS if not refuses(name, grid)]


def own(name: str, wanted: str) -> Any:
    """Return what the rule's own file of obvious versions calls ``wanted``, or None."""
    return _found(f"naive_{name}", wanted)


def obvious_calibrator(name: str) -> Callable[..., Any] | None:
    """Return the obvious version of a calibrator, or None."""
    wanted = calibrators.get(name).__name__
    shared = ("naive_calibrators", "naive_drift_rules")
    return own(name, wanted) or next(filter(None, (_found(m, wanted) for m in shared)), None)


def obvious_transform(name: str) -> Callable[..., list[float]] | None:
    """Return the obvious version of a transform, or None."""
    return own(name, name) or _found("naive_transforms", name)


def without_oracle() -> list[str]:
    """Return the rules that no obvious version is found for."""
    rules = [name for name in calibrators.names() if obvious_calibrator(name) is None]
    return rules + [name for name in transforms.names() if obvious_transform(name) is None]


def _found(module: str, wanted: str) -> Any:
    if importlib.util.find_spec(module) is None:
        return None
    return getattr(importlib.import_module(module), wanted, None)
