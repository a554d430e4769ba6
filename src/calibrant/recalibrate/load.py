"""Reading a state back without knowing who wrote it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, TypeAlias

from calibrant.errors import CorruptState
from calibrant.recalibrate.calibrant import Calibrant
from calibrant.recalibrate.recalibrator import Recalibrator

__all__ = ["load"]

KINDS: Final[tuple[type[Recalibrator], ...]] = (Calibrant, Recalibrator)
OTHER: Final = "state must be of kind "
"""How a state of another kind is refused; damage is told in other words."""

Source: TypeAlias = bytes | bytearray | memoryview | dict[str, Any] | str | os.PathLike[str]


def load(source: Source) -> Recalibrator:
    """Return the recalibrator whose state this is: a :class:`Calibrant` or a plain one.

    Parameters
    ----------
    source
        What ``to_bytes()`` or ``to_dict()`` gave, or the path of a file with the former.

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
    data: Any = Path(source).read_bytes() if isinstance(source, (str, os.PathLike)) else source
    found = ""
    for kind in KINDS:
        try:
            return kind.from_dict(data) if isinstance(data, dict) else kind.from_bytes(data)
        except CorruptState as problem:
            if not str(problem).startswith(OTHER):
                raise
            found = str(problem).partition(", got ")[2]
    known = " or ".join(repr(kind.kind) for kind in KINDS)
    raise CorruptState(f"{OTHER}{known}, got {found}")
