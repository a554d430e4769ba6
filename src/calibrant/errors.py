"""The exceptions of calibrant.

::

    CalibrantError
    ├── InvalidInput (ValueError)       a value breaks a rule
    ├── InvalidType (TypeError)         a value is not of a kind that could obey it
    ├── TicketError (LookupError)       an outcome that cannot be recorded
    │   ├── UnknownTicket               never issued here
    │   ├── RepeatedTicket              its outcome is known already
    │   ├── ExpiredTicket               waited for too long
    │   ├── ForeignTicket               issued by another recalibrator, or altered
    │   └── Contradiction               used before with other values
    ├── StaleForecast (RuntimeError)    the round was overtaken by another one
    ├── CorruptState (ValueError)       bytes or a dictionary that are not a state
    │   └── DamagedLog                  a log that does not say what was answered
    ├── NotStored (OSError)             what was asked for did not reach the disk
    ├── TooManyOpen (RuntimeError)      more outcomes are missing than a stream may wait for
    ├── ImproperLoss (ValueError)       a guarantee was asked for that cannot exist
    ├── MissingExtra (ImportError)      an optional part is not installed
    ├── MissingData (FileNotFoundError) a file of real data did not come along
    └── UnknownName (KeyError)          a name that no registry knows

Every message has the form ``<name> must be <constraint>, got <value!r>`` or says
what happened and what to do.  Whoever raises has changed nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

__all__ = [
    "CalibrantError",
    "Contradiction",
    "CorruptState",
    "DamagedLog",
    "ExpiredTicket",
    "ForeignTicket",
    "ImproperLoss",
    "InvalidInput",
    "InvalidType",
    "MissingData",
    "MissingExtra",
    "NotStored",
    "RepeatedTicket",
    "StaleForecast",
    "TicketError",
    "TooManyOpen",
    "UnknownName",
    "UnknownTicket",
]


class CalibrantError(Exception):
    """Base of everything that calibrant raises on purpose."""


class InvalidInput(CalibrantError, ValueError):
    """A value that breaks a rule named in the message."""


class InvalidType(CalibrantError, TypeError):
    """A value of a kind that cannot obey the rule named in the message."""


class TicketError(CalibrantError, LookupError):
    """An outcome that cannot be recorded for its ticket."""


class UnknownTicket(TicketError):
    """No ticket with that id was issued here."""


class RepeatedTicket(TicketError):
    """The ticket's outcome is known already."""


class ExpiredTicket(TicketError):
    """The ticket was dropped by the expiry rule before its outcome came."""


class ForeignTicket(TicketError):
    """The ticket was issued by another recalibrator, or was altered."""


class Contradiction(TicketError):
    """The id was used before with other values.

    ``stored`` and ``told`` say what differs, where that is known.
    """

    def __init__(self, message: str, **values: dict[str, object]) -> None:
        super().__init__(message)
        self.stored, self.told = values.get("stored"), values.get("told")


class StaleForecast(CalibrantError, RuntimeError):
    """The forecast to learn from is no longer the one that was announced."""


class CorruptState(CalibrantError, ValueError):
    """Bytes or a dictionary that do not hold a state of calibrant."""


class DamagedLog(CorruptState):
    """A log of events whose replay differs from what was answered; the message names the event."""


class NotStored(CalibrantError, OSError):
    """What was asked for did not reach the disk: it was not acknowledged, and may be repeated."""


class TooManyOpen(CalibrantError, RuntimeError):
    """More outcomes are missing than the stream may wait for."""


class ImproperLoss(CalibrantError, ValueError):
    """A guarantee was asked for under a loss that admits none (Theorem 2 of the paper)."""


class MissingExtra(CalibrantError, ImportError):
    """An optional part is not installed; the message names the extra."""


class MissingData(CalibrantError, FileNotFoundError):
    """A file of real data that is not bundled; the message says how to get it."""


class UnknownName(CalibrantError, KeyError):
    """A name that no registry knows; the message lists those it does."""

    def __str__(self) -> str:
        return str(self.args[0])


RELEASED: Final = False
"""Whether a package index has calibrant: it decides which command messages name."""


def requirement(extra: str) -> str:
    """Return what pip installs to get an extra, and where, so that the command works.

    >>> requirement("plot")
    '".[plot]" in a clone of calibrant'
    """
    return f'"calibrant[{extra}]"' if RELEASED else f'".[{extra}]" in a clone of calibrant'


@contextmanager
def needing(told: str, extra: str) -> Iterator[None]:
    """Say what to install where a module is missing; ``{}`` in ``told`` is its name."""
    try:
        yield
    except ModuleNotFoundError as error:
        wanted = f"{told.format(error.name)}: pip install {requirement(extra)}"
        raise MissingExtra(wanted) from error


def needed(module: str, told: str, extra: str) -> Any:
    """Return a module that may not be installed, or say who needs it and what to install."""
    with needing(told, extra):
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
