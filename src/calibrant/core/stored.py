"""States that can be stored: bytes, JSON-ready data, copies, pickles, equality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from calibrant.core.codec import Document

__all__ = ["Stored"]


class Stored(ABC):
    """An object that is what its document says, and nothing besides.

    Subclasses name their ``kind``, write a document and set themselves up from one.
    """

    __slots__ = ()

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """Return the whole state; treat it as secret, for it may hold the key of coins."""
        return self._document().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the object whose :meth:`to_bytes` this is."""
        return cls._from_document(Document.from_bytes(data, cls.kind))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON-ready data; treat it as secret."""
        return self._document().to_dict()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the object whose :meth:`to_dict` this is."""
        return cls._from_document(Document.from_dict(data, cls.kind))

    def copy(self) -> Self:
        """Return an independent object in the same state."""
        return self._from_document(self._document())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> bytes:
        return self.to_bytes()

    def __setstate__(self, data: bytes) -> None:
        self._restore(Document.from_bytes(data, self.kind))

    @classmethod
    def _from_document(cls, document: Document) -> Self:
        made = cls.__new__(cls)
        made._restore(document)
        return made

    @abstractmethod
    def _document(self) -> Document:
        """Return what there is to store."""

    @abstractmethod
    def _restore(self, document: Document) -> None:
        """Become what a document says."""
