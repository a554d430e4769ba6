"""Coins of a forked process: a stream whose secret nobody chose gets another one there."""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Protocol


class Renewed(Protocol):
    """What throws coins that another process must not throw too."""

    def _renew(self) -> None:
        """Throw coins of its own from now on."""


_live: dict[int, weakref.ref[Any]] = {}


def watch(thrower: Renewed) -> None:
    """Let an object throw coins of its own in any process that is forked from this one."""
    number = id(thrower)
    # No function of Python's is called at its end: an interrupt would be lost there.
    _live[number] = weakref.ref(thrower, functools.partial(_live.pop, number))


def renew_all() -> None:
    """Let every object that is watched throw coins of its own from now on."""
    for found in list(_live.values()):
        if (thrower := found()) is not None:
            thrower._renew()


# Where there is no fork, there is nothing to register with.
getattr(os, "register_at_fork", lambda **hooks: None)(after_in_child=renew_all)
