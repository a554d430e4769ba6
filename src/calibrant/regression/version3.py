"""States of the third version: what late outcomes count was not known, and ends moved evenly."""

from __future__ import annotations

from dataclasses import replace

from calibrant.core.codec import Document


def migrated(document: Document) -> Document:
    """Return a document of quantiles of the third version as one of the fourth.

    Its experts go on to learn late outcomes as if these came at once, and calibrators of levels
    to believe them by their number.
    """
    return replace(document, settings=document.settings | {"alike": False}, version=4)


def interval_migrated(document: Document) -> Document:
    """Return a document of intervals of the third version as one of the fourth.

    Its ends go on to move evenly, however far the level is away and however late outcomes are.
    """
    return replace(document, settings=document.settings | {"bent": False}, version=4)
