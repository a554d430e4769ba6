"""The envelope in which streaming metrics travel as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.errors import CorruptState

_VERSION = 1


def seal_state(kind: str, **content: Any) -> dict[str, Any]:
    """Return ``content`` with the name of its class and the version of the format."""
    return {"kind": kind, "version": _VERSION, **content}


def open_state(state: Any, kind: str, *names: str) -> list[Any]:
    """Return the values called ``names`` of a state of class ``kind``.

    >>> open_state({"kind": "X", "version": 1, "a": 2}, "X", "a")
    [2]
    >>> open_state({"kind": "Y"}, "X", "a")
    Traceback (most recent call last):
    calibrant.errors.CorruptState: state must be of kind 'X' and version 1, got 'Y' and None
    """
    if not isinstance(state, Mapping):
        raise CorruptState(f"state must be a dictionary, got {state!r}")
    found = (state.get("kind"), state.get("version"))
    if found != (kind, _VERSION):
        told = f"{found[0]!r} and {found[1]!r}"
        raise CorruptState(f"state must be of kind {kind!r} and version {_VERSION}, got {told}")
    missing = [name for name in names if name not in state]
    if missing:
        raise CorruptState(f"state must have an entry {missing[0]!r}, got {sorted(state)!r}")
    return [state[name] for name in names]


def whole_numbers(values: Any, name: str, length: int) -> list[int]:
    """Return ``length`` whole numbers of at least 0, given as numbers or as text.

    >>> whole_numbers([1, "1152921504606846976"], "sums", 2)
    [1, 1152921504606846976]
    """
    rule = f"{length} whole numbers of at least 0"
    if not isinstance(values, list) or len(values) != length:
        raise CorruptState(f"{name} must be {rule}, got {values!r}")
    for value in values:
        if not str(value).isdecimal():
            raise CorruptState(f"{name} must be {rule}, got {value!r}")
    return [int(value) for value in values]
