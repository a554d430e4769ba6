"""The old name of calibrant.advice, kept for a while."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Final

from calibrant.advice import *  # noqa: F403
from calibrant.advice import __all__ as __all__

_PARTS: Final = {
    "advice": "merging",
    "exponential_weights": "exponential_weights",
    "internal": "internal",
    "matching": "matching",
    "online": "online",
    "regret": "regret",
    "rule": "rule",
    "schedule": "schedule",
    "stationary": "stationary",
    "swap": "swap",
    "tables": "tables",
}
"""The files of this package when it was one, and what they are called now."""

warnings.warn("calibrant.experts is now calibrant.advice", DeprecationWarning, stacklevel=2)

for _old, _new in _PARTS.items():
    # Found there, a module is not looked for again: both names give the same classes.
    sys.modules[f"{__name__}.{_old}"] = globals()[_old] = import_module(f"calibrant.advice.{_new}")
