"""States of the second version: their coins stay, and where secrets came from is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from calibrant.core.codec import Document
from calibrant.recalibrate.secret import OLD

TOLD: Final = {"coins": OLD, "secret_from": None}


def migrated(document: Document) -> Document:
    """Return a stream's document of the second version as one of the third: coins stay."""
    return replace(document, settings=document.settings | TOLD, version=3)


def migrated_table(document: Document) -> Document:
    """Return a table's document of the first version as one of the second."""
    s = document.settings
    told = {"pattern": s["pattern"] | TOLD, "secret_from": None}
    return replace(document, settings=s | told, version=2)
