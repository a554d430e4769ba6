"""Mutual exclusion that costs next to nothing while nobody else is there.

A gate is a list with one token in it.  Deleting an item and ``list.append`` are atomic, so
whoever deletes the token has the gate to itself until it appends it again::

    try:
        del gate[0]
    except IndexError:
        wait(gate)
    try:
        ...
    finally:
        gate.append(None)

This takes 40 ns, a ``threading.Lock`` in a ``with`` statement 200 (measured on CPython
3.11), and a whole forecast a thousand.  The price is that waiting is by polling.

It is ``del`` and not ``pop``: CPython looks for signals after a call, and an interrupt that
came between ``pop`` and the ``try`` would take the token along.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

Gate: TypeAlias = list[None]


def wait(gate: Gate) -> None:
    """Take the token as soon as it is back, looking at most every millisecond."""
    pause = 1e-6
    while True:
        time.sleep(pause)
        try:
            del gate[0]
        except IndexError:
            pause = min(2.0 * pause, 1e-3)
        else:
            return


@contextmanager
def passing(gate: Gate) -> Iterator[None]:
    """Hold the gate for a block of code that is not in a hurry.

    >>> gate: Gate = [None]
    >>> with passing(gate):
    ...     print(len(gate))
    0
    >>> len(gate)
    1
    """
    try:
        del gate[0]
    except IndexError:
        wait(gate)
    try:
        yield
    finally:
        gate.append(None)
