"""How programs are compiled by a version of Numba that was not tried: as Numba does it.

The same as :mod:`calibrant.kernels.inner`, to the same bits, in more time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba import njit
from numba.core.registry import cpu_target
from numba.core.types import Dispatcher

_kept: Final[list[Any]] = []
"""Numba itself does not keep them."""


def inner(function: Callable[..., Any], force: bool) -> Any:
    """Return ``function`` for programs to call; ``force`` writes it into all its callers."""
    return njit(function, error_model="numpy", _nrt=False, forceinline=force)


def make_known(function: Callable[..., Any], instead: Callable[..., Any], force: bool) -> None:
    """Let programs call ``instead`` where their source says ``function``."""
    _kept.append(inner(instead, force))
    cpu_target.typing_context.insert_global(function, Dispatcher(_kept[-1]))


def program(function: Callable[..., Any], nogil: bool) -> Callable[..., Any]:
    """Return a program, compiled when it is first called."""
    made: Callable[..., Any] = njit(function, error_model="numpy", _nrt=False, nogil=nogil)
    return made
