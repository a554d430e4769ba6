"""Files that appear whole or not at all: a draft is written beside its place, then renamed.

A run that is killed leaves its drafts and locks behind; the system gives the locks free, and
the next run for the same place removes them all.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from calibrant.core.files import put, sync_names
from calibrant.stream.failure import Unwritable, naming, settle, uninterrupted

LEFT_BEHIND: Final = 3600.0
"""Seconds after which a draft that nobody holds was surely left behind."""

_fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other runs from the file ``name``, by a lock on a file beside it.

    However a run ends, the system gives the lock free.  Where there are no such locks, as on
    Windows and on some network drives, runs have to be kept apart by whoever starts them.
    """
    if _fcntl is None or (os.path.exists(name) and not os.path.isfile(name)):
        yield
        return
    target = Path(os.path.realpath(name))
    place = target.with_name(f".{target.name}.lock")
    with naming(name):
        held = _hold(place)
    if held is None:
        raise Unwritable(f"{name}: is in use by another run; wait until it ends")
    try:
        yield
    finally:
        # While the lock is held: whoever waits for this very file finds it gone, and starts again.
        place.unlink(missing_ok=True)
        os.close(held)


def _hold(place: Path) -> int | None:
    """Return the locked file of that name, made if need be; None if somebody else has it."""
    while True:
        held = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
        if not _locks(held):
            os.close(held)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(place)):
                return held
        os.close(held)


def _locks(held: int) -> bool:
    """Lock an open file; say whether nobody else has it. A file without locks is nobody's."""
    try:
        if _fcntl is not None:
            _fcntl.flock(held, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


class Drafts:
    """Outputs of one run, which all come into being at its end.

    Used as a context: leaving it without :meth:`commit`, for whatever reason, removes
    everything that was written.

    Parameters
    ----------
    force
        Whether files that are there already may be replaced.
    inputs
        Files that are read: no output takes their place, forced or not.

    Notes
    -----
    A draft lies in the directory of its target, so that renaming it never copies and
    cannot run out of room.  Devices and pipes are written as they are.  Files reach the disk
    before they are renamed, and their names right after.
    """

    def __init__(self, *, force: bool = False, inputs: Iterable[str | None] = ()) -> None:
        self._force, self._inputs = force, [name for name in inputs if name]
        self._pairs: list[tuple[Path, Path]] = []
        self._held: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for draft, _ in self._pairs:
            _remove(draft)
        self._pairs.clear()
        while self._held:
            os.close(self._held.pop())

    def reserve(self, name: str, *, replace: bool = False, secret: bool = False) -> Path:
        """Return where to write what shall become the file ``name``.

        ``replace`` says that the file is meant to be replaced, forced or not, and
        ``secret`` that nobody else may read it.
        """
        if name == "-":
            raise Unwritable("-: cannot be written: only rows go to standard output (--out -)")
        with naming(name):
            if _is_special(Path(name)):
                return Path(name)
            target = Path(os.path.realpath(name))
            if target.exists() and any(_is_same(target, each) for each in self._inputs):
                raise Unwritable(f"{name}: cannot be written: it is an input")
            if target.exists() and not (replace or self._force):
                raise Unwritable(f"{name}: already exists; --force replaces it")
            draft = self._draft(name, target, 0.0 if replace else LEFT_BEHIND)
            draft.touch(0o600 if secret else 0o666, exist_ok=False)
            self._hold(draft, target)
        return draft

    def reserve_directory(self, name: str) -> Path:
        """Return a new directory, whose files shall go to the directory ``name``."""
        target = Path(os.path.realpath(name))
        if target.exists() and not target.is_dir():
            raise Unwritable(f"{name}: already exists and is not a directory")
        if target.is_dir() and any(target.iterdir()) and not self._force:
            raise Unwritable(f"{name}: already exists and is not empty; --force writes into it")
        with naming(name):
            draft = self._draft(name, target)
            draft.mkdir()
            self._hold(draft, target)
        return draft

    def forget(self, draft: Path) -> None:
        """Remove a draft that nothing shall become of; what is no draft stays."""
        for pair in [pair for pair in self._pairs if pair[0] == draft]:
            _remove(draft)
            self._pairs.remove(pair)

    def commit(self) -> None:
        """Put every draft in its place, in the order in which they were reserved.

        Signals wait until all are there, and in a command until its end.
        """
        for draft, target in self._pairs:
            with naming(str(target)):
                _sync(draft)
        with uninterrupted():
            if self._pairs:
                settle()
            while self._pairs:
                _put(*self._pairs[0])
                self._pairs.pop(0)

    def _draft(self, name: str, target: Path, age: float = LEFT_BEHIND) -> Path:
        if any(target == other for _, other in self._pairs):
            raise Unwritable(f"{name}: cannot be written: two outputs must be two files")
        _sweep(target, age)
        return target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")

    def _hold(self, draft: Path, target: Path) -> None:
        """Show others that a draft is being written."""
        self._pairs.append((draft, target))
        if _fcntl is not None:
            self._held.append(os.open(draft, os.O_RDONLY))
            _locks(self._held[-1])


def replace_file(name: str, content: bytes) -> None:
    """Replace a file that nobody else may read, at once: it holds the old or the new content.

    A device stays as it is: what shall go there goes there at the end.
    """
    with naming(name):
        if _is_special(Path(name)):
            return
        put(name, content, private=True)


def _put(draft: Path, target: Path) -> None:
    if draft.is_dir() and target.is_dir():
        for file in sorted(draft.iterdir()):
            os.replace(file, target / file.name)
        draft.rmdir()
        sync_names(target)
    else:
        os.replace(draft, target)
    sync_names(target.parent)


def _sync(draft: Path) -> None:
    """Let a draft, or each file in it, reach the disk."""
    for file in draft.iterdir() if draft.is_dir() else [draft]:
        with open(file, "r+b") as stream:
            os.fsync(stream.fileno())


def _sweep(target: Path, age: float) -> None:
    """Remove drafts for a file, of that age in seconds, that crashed runs left behind."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{12}}\.part")
    with suppress(OSError):
        for found in filter(lambda path: ours.fullmatch(path.name), target.parent.iterdir()):
            if _is_left_behind(found, age):
                _remove(found)


def _is_left_behind(draft: Path, age: float) -> bool:
    """Say whether a draft is old and nobody holds it."""
    if _fcntl is None or time.time() - draft.stat().st_mtime < age:
        return False
    held = os.open(draft, os.O_RDONLY)
    try:
        return _locks(held)
    finally:
        os.close(held)


def _is_special(target: Path) -> bool:
    """Say whether something is there that is neither a file nor, which is refused, a directory."""
    if not target.exists() or stat.S_ISREG(target.stat().st_mode):
        return False
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    return True


def _is_same(target: Path, other: str) -> bool:
    """Say whether two names are of one file."""
    with suppress(OSError):
        return os.path.samefile(target, other)
    return False


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)
