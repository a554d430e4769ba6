"""Files that appear whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from calibrant.stream.failure import Unwritable, naming


class Drafts:
    """Outputs of one run, which all come into being at its end.

    Used as a context: leaving it without :meth:`commit`, for whatever reason, removes
    everything that was written.

    Parameters
    ----------
    force
        Whether files that are there already may be replaced.

    Notes
    -----
    A draft lies in the directory of its target, so that renaming it never copies and
    cannot run out of room.  Devices and pipes are written as they are.
    """

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        self._pairs: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for draft, _ in self._pairs:
            _remove(draft)
        self._pairs.clear()

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
            if target.exists() and not (replace or self._force):
                raise Unwritable(f"{name}: is there already; --force replaces it")
            draft = self._draft(name, target)
            if secret:
                draft.chmod(0o600)
        return draft

    def reserve_directory(self, name: str) -> Path:
        """Return a new directory, whose files shall go to the directory ``name``."""
        target = Path(os.path.realpath(name))
        if target.exists() and not target.is_dir():
            raise Unwritable(f"{name}: is there already and is no directory")
        if target.is_dir() and any(target.iterdir()) and not self._force:
            raise Unwritable(f"{name}: is there already and not empty; --force writes into it")
        with naming(name):
            draft = self._draft(name, target)
            draft.unlink()
            draft.mkdir()
        return draft

    def commit(self) -> None:
        """Put every draft in its place, in the order in which they were reserved."""
        while self._pairs:
            draft, target = self._pairs[0]
            if draft.is_dir() and target.is_dir():
                for file in sorted(draft.iterdir()):
                    os.replace(file, target / file.name)
                draft.rmdir()
            else:
                os.replace(draft, target)
            self._pairs.pop(0)

    def _draft(self, name: str, target: Path) -> Path:
        if any(target == other for _, other in self._pairs):
            raise Unwritable(f"{name}: cannot be written: two outputs must be two files")
        draft = target.with_name(f".{target.name}.{os.getpid()}.part")
        draft.touch(exist_ok=False)
        self._pairs.append((draft, target))
        return draft


def _is_special(target: Path) -> bool:
    """Say whether something is there that is neither a file nor, which is refused, a directory."""
    if not target.exists() or stat.S_ISREG(target.stat().st_mode):
        return False
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    return True


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)
