"""States of the third version: bodies of the first form, whose reals are whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from calibrant.core.codec import Document

OLD_BODY: Final = "old body"
OLD_BODIES: Final = "old bodies"
"""What bodies of the first form are called once a document was read."""


def migrated(document: Document) -> Document:
    """Return a stream's document of the third version as one of the fourth."""
    return _renamed(document, "body", OLD_BODY)


def migrated_table(document: Document) -> Document:
    """Return a table's document of the third version as one of the fourth."""
    return _renamed(document, "bodies", OLD_BODIES)


def _renamed(document: Document, name: str, other: str) -> Document:
    arrays = {other if key == name else key: words for key, words in document.arrays.items()}
    made = replace(document, arrays=arrays, version=4)
    # What follows from the settings is remembered by the shape that was read.
    made.__dict__["origin"] = document.origin
    return made
