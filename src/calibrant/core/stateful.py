"""States that can be stored: bytes, JSON-ready data, copies, pickles, equality, versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final, Self, TypeAlias

from calibrant.core.codec import WRONG, Document
from calibrant.core.files import FilePath, put
from calibrant.core.seal import opened, opened_data, sealed, sealed_data
from calibrant.errors import CorruptState

Migration: TypeAlias = Callable[[Document], Document]
"""Turns a document of one version into one of the next."""


def untold(version: int, **settings: Any) -> Migration:
    """Return what makes a document of a version of the one before, which did not tell settings."""
    return lambda document: replace(
        document, settings=document.settings | settings, version=version
    )


class Stateful(ABC):
    """An object that is what its document says, and nothing besides.

    A subclass names its ``kind`` and the ``version`` of its documents, writes a document and sets
    itself up from one.  ``migrations`` holds for each earlier version what makes the next of it:
    whatever was written once can be read for ever.
    """

    __slots__ = ()

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    migrations: ClassVar[dict[int, Migration]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            _classes[cls.kind] = cls

    def to_bytes(self, *, authenticate: bytes | None = None) -> bytes:
        """Return the whole state; treat it as secret, for it may hold the key of coins.

        With ``authenticate``, a key of 16 bytes or more, the state can only be read back with that
        key, and nobody without the key can have written or altered it.
        """
        return sealed(self._bytes(), authenticate)

    @classmethod
    def from_bytes(cls, data: bytes, *, authenticate: bytes | None = None) -> Self:
        """Return the object whose :meth:`to_bytes` this is, written with that key or without."""
        state = opened(data, authenticate)
        return cls._from_document(Document.from_bytes(state, cls.kind, cls.version))

    def save(self, path: FilePath, *, authenticate: bytes | None = None) -> None:
        """Write the whole state to a file that :func:`calibrant.load` reads; treat it as secret.

        The file is replaced in one step and is on disk once this returns; nobody else may read it.
        """
        put(path, self.to_bytes(authenticate=authenticate), private=True)

    def to_dict(self, *, authenticate: bytes | None = None) -> dict[str, Any]:
        """Return the whole state as JSON-ready data; treat it as secret."""
        document = self._document()
        told = b"" if authenticate is None else document.to_bytes()
        return sealed_data(document.to_dict(), told, authenticate)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, authenticate: bytes | None = None) -> Self:
        """Return the object whose :meth:`to_dict` this is, written with that key or without."""
        state = opened_data(data, authenticate)
        return cls._from_document(Document.from_dict(state, cls.kind, cls.version))

    def _bytes(self) -> bytes:
        """Return the whole state without a key."""
        return self._document().to_bytes()

    def copy(self) -> Self:
        """Return an independent object in the same state."""
        return self._from_document(self._document())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stateful):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> bytes:
        return self.to_bytes()

    def __setstate__(self, data: bytes) -> None:
        self._become(Document.from_bytes(data, self.kind, self.version))

    @classmethod
    def _from_document(cls, document: Document) -> Self:
        made = cls.__new__(cls)
        made._become(document)
        return made

    def _become(self, document: Document) -> None:
        """Bring a document to the present version, and become what it says."""
        try:
            for version in range(document.version, self.version):
                document = self.migrations[version](document)
            self._restore(document)
        except CorruptState:
            raise
        except DAMAGE as error:
            raise CorruptState(f"state must be of a {self.kind}, got {error}") from error

    @abstractmethod
    def _document(self) -> Document:
        """Return what there is to store."""

    @abstractmethod
    def _restore(self, document: Document) -> None:
        """Become what a document of the present version says."""


_classes: dict[str, type[Stateful]] = {}

DAMAGE: Final = (*WRONG, LookupError)
"""What reading a crafted document may run into."""


def registered() -> dict[str, type[Stateful]]:
    """Return every kind of state that was defined so far, by name."""
    return dict(_classes)
