"""Streams whose calls are on disk before they are answered: a log, and what follows from it."""

from calibrant.journal.journal import Journal
from calibrant.journal.settings import Settings

__all__ = ["Journal", "Settings"]
