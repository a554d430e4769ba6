"""Reading a state back without knowing who wrote it."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Final, TypeAlias

from calibrant.core.codec import kind_of
from calibrant.core.seal import opened, opened_data
from calibrant.core.stateful import Stateful, registered
from calibrant.errors import CorruptState
from calibrant.recalibrate import Table
from calibrant.recalibrate.keyed_files import MAGIC

__all__ = ["load"]

PACKAGES: Final = (
    "recalibrate",
    "groups",
    "classes",
    "regression",
    "transforms",
    "monitor",
    "learners",
    "outcomes",
    "summary",
    "kinds",
)
"""Where kinds of states are defined; imported one after the other until the kind is found."""

Source: TypeAlias = bytes | bytearray | memoryview | dict[str, Any] | str | os.PathLike[str]


def load(source: Source, *, authenticate: bytes | None = None, **options: Any) -> Any:
    """Return the object whose state this is, of whatever kind.

    Parameters
    ----------
    source
        What ``to_bytes()`` or ``to_dict()`` gave, or the path of a file with the former, or of
        one that a table's ``save()`` wrote.
    authenticate
        The key with which the state was written, if it was with one.  A state with a key is
        refused without, or with another; a state without one is refused where a key is given.
    **options
        What a kind asks for besides its state: the rules of groups, as ``groups=``.

    Notes
    -----
    Reading runs no code.  The bytes hold the secret that decides the draws.

    Examples
    --------
    >>> from calibrant import Calibrant, Recalibrator, load
    >>> [type(load(model.to_bytes())).__name__ for model in (Calibrant(), Recalibrator())]
    ['Calibrant', 'Recalibrator']
    >>> load(b"something else")
    Traceback (most recent call last):
    calibrant.errors.CorruptState: state must be bytes that to_bytes() gave, got 14 bytes
    starting with b'somethin'
    """
    if isinstance(source, (str, os.PathLike)):
        if authenticate is None and _is_snapshot(Path(source)):
            return Table.open(source, **options)
        source = Path(source).read_bytes()
    data: Any = source
    state = (opened_data if isinstance(data, dict) else opened)(data, authenticate)
    made: Any = _class_of(kind_of(state))
    if isinstance(state, dict):
        return made.from_dict(state, **options)
    return made.from_bytes(state, **options)


def _is_snapshot(path: Path) -> bool:
    """Say whether a file is the snapshot of a table."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _class_of(kind: str) -> type[Stateful]:
    """Return the class that writes states of a kind."""
    for package in PACKAGES:
        found = registered().get(kind)
        if found is not None:
            return found
        importlib.import_module(f"calibrant.{package}")
    if (found := registered().get(kind)) is not None:
        return found
    known = ", ".join(repr(name) for name in sorted(registered()))
    raise CorruptState(f"state must be of a kind among {known}, got {kind!r}{_hint(kind)}")


def _hint(kind: str) -> str:
    """Say who reads what is no state of an object."""
    if kind.endswith("ticket"):
        return ": a ticket is read by its own class, as Ticket.from_bytes"
    return ": go on from it with calibrant replay --state" if kind == "session" else ""
