"""States of the third version: what late outcomes count was not known to vectors."""

from __future__ import annotations

from dataclasses import replace

from calibrant.core.codec import Document


def migrated(document: Document) -> Document:
    """Return the default's document of the third version as one of the fourth.

    Its mixtures go on to learn late outcomes as if these came at once, and tickets keep nothing of
    what experts said.
    """
    return replace(document, settings=document.settings | {"alike": False}, version=4)
