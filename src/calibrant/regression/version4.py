"""States of the fourth version: outcomes that came before others waited counted more."""

from __future__ import annotations

from dataclasses import replace

from calibrant.core.codec import Document


def migrated(document: Document) -> Document:
    """Return a document of quantiles of the fourth version as one of the fifth."""
    return replace(document, settings=document.settings | {"even": False}, version=5)
