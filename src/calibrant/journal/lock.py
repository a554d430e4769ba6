"""Who may work on a file: many processes that wait for each other, or one owner."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from calibrant.errors import NotStored

_fcntl: Any
try:
    import fcntl as _fcntl
except ImportError:  # pragma: no cover - not on this system
    _fcntl = None


class Lock:
    """A file beside the data that is held as long as someone works on it.

    The system lets go of it when the process ends, however it ends.
    """

    def __init__(self, path: Path, *, alone: bool) -> None:
        try:
            self._held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise NotStored(f"{path}: cannot be written now: {error.strerror}") from error
        how = 0 if _fcntl is None else _fcntl.LOCK_EX if alone else _fcntl.LOCK_SH
        try:
            if _fcntl is not None:
                _fcntl.flock(self._held, how | _fcntl.LOCK_NB)
        except OSError:
            os.close(self._held)
            told = "nobody else" if alone else "no service"
            raise NotStored(f"{told} must be at work on {path.stem}, got one that is") from None

    def close(self) -> None:
        """Let go, once."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)
