"""The old name of calibrant.advice, kept for a while."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Final

from calibrant.advice import *  # noqa: F403
from calibrant.advice import __all__ as __all__

_PARTS: Final = {
    "regret": ("advice", "online", "regret"),
    "rule": ("rule", "schedule", "tables"),
    "rules": ("exponential_weights", "internal", "matching", "stationary", "swap"),
}
"""Modules, and the files of this package, when it was one, whose names they hold now."""

warnings.warn("calibrant.experts is now calibrant.advice", DeprecationWarning, stacklevel=2)

for _new, _files in _PARTS.items():
    for _old in _files:
        # Found there, a module is not looked for again: both names give the same classes.
        _module = import_module(f"calibrant.advice.{_new}")
        sys.modules[f"{__name__}.{_old}"] = globals()[_old] = _module
