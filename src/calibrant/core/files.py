"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

FilePath: TypeAlias = str | os.PathLike[str]


def put(path: FilePath, content: bytes, *, private: bool = False) -> Path:
    """Write ``content`` beside ``path``, then move it there in one step; return the path.

    Whatever interrupts it, ``path`` holds all of the new content or all of the old, and once this
    returns, the new content is on disk.  A link stays a link, and a device or a pipe is written
    as it is.  Nobody else may read a ``private`` file.

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
    with replacing(given, private=private) as file:
        file.write(content)
    return given


@contextmanager
def replacing(path: FilePath, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that takes its place once all of it is on disk, and leaves no trace before."""
    goal = Path(os.path.realpath(path))
    beside = goal.with_name(f".{goal.name}.{secrets.token_hex(6)}.part")
    try:
        if private:
            beside.touch(0o600, exist_ok=False)
        with beside.open("r+b" if private else "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(goal)
    finally:
        beside.unlink(missing_ok=True)
    sync_names(goal.parent)


def sync_names(place: Path) -> None:
    """Let the names in a directory reach the disk, where the system can be asked for that."""
    with suppress(OSError):
        held = os.open(place, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)
