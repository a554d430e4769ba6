"""Secrets that lie sealed in a store, under a key in a file of its own.

Models before their first event, snapshots and states that were handed over hold the secrets of the
coins.  They are sealed by AES-256-GCM, each with a nonce of its own and bound to where it lies.
"""

from __future__ import annotations

import importlib
import os
import secrets
from pathlib import Path
from typing import Any, Final

from calibrant.errors import CorruptState, InvalidInput, needed

MAGIC: Final = b"calibsl1"
KEY: Final = 32
"""Bytes of a key."""
NONCE: Final = 12


class Vault:
    """Seals bytes and opens them again; without a key, only tells that there should be one.

    Parameters
    ----------
    path
        A file of 32 bytes that nobody else may read; made if it is not there.  None for none.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._key: Any = None
        if path is not None:
            told = "sealed secrets need cryptography"
            found = needed("cryptography.hazmat.primitives.ciphers.aead", told, "sealed")
            self._key = found.AESGCM(_key_in(Path(os.fspath(path))))

    @property
    def sealing(self) -> bool:
        """Whether what is written is sealed."""
        return self._key is not None

    def seal(self, told: bytes, place: str) -> bytes:
        """Return bytes sealed for a place, or as they are if there is no key."""
        if self._key is None:
            return told
        nonce = secrets.token_bytes(NONCE)
        sealed: bytes = self._key.encrypt(nonce, told, place.encode())
        return MAGIC + nonce + sealed

    def open(self, told: bytes, place: str) -> bytes:
        """Return what was sealed for a place; what was never sealed is returned as it is."""
        if not is_sealed(told):
            return told
        if self._key is None:
            raise InvalidInput("secret file must be given to a store that is sealed, got None")
        nonce, sealed = told[len(MAGIC) :][:NONCE], told[len(MAGIC) + NONCE :]
        broken = importlib.import_module("cryptography.exceptions").InvalidTag
        try:
            opened: bytes = self._key.decrypt(nonce, sealed, place.encode())
        except broken:
            rule = "must have been sealed there under the key of the secret file"
            raise CorruptState(f"{place} {rule}, got other bytes") from None
        return opened


def is_sealed(told: bytes) -> bool:
    """Say whether bytes are sealed."""
    return bytes(told[: len(MAGIC)]) == MAGIC


def _key_in(path: Path) -> bytes:
    """Return the key in a file, which nobody else may read; made if it is not there."""
    try:
        held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(held, "wb") as file:
            file.write(secrets.token_bytes(KEY))
            file.flush()
            os.fsync(file.fileno())
    mode, key = path.stat().st_mode & 0o777, path.read_bytes()
    if os.name == "posix" and mode & 0o077:
        raise InvalidInput(f"secret file must be its owner's alone (600), got mode {mode:o}")
    if len(key) != KEY:
        raise InvalidInput(f"secret file must hold {KEY} bytes, got {len(key)}")
    return key
