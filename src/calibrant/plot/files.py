"""Files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def put(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write ``content`` beside ``path``, then move it there in one step; return the path.

    Whatever interrupts it, ``path`` holds all of the new content or all of the old.  A link
    stays a link, and a device or a pipe is written as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     put(Path(place) / "note.txt", b"all of it").read_text()
    'all of it'
    """
    given = Path(path)
    if given.exists() and not given.is_file():
        given.write_bytes(content)
        return given
    goal = Path(os.path.realpath(given))
    beside = goal.with_name(f".{goal.name}.{secrets.token_hex(6)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        beside.replace(goal)
    finally:
        beside.unlink(missing_ok=True)
    return given
