"""What can go wrong between a file and a recalibrator.

::

    StreamFailure (CalibrantError)
    ├── Unreadable (OSError)          an input that is not there, not ours, or broken
    ├── BadRow (ValueError)           a row that breaks a rule
    ├── Unwritable (OSError)          an output that cannot be written
    └── StateMismatch (ValueError)    a state that does not go with what was asked for

Every message is one line that says where and what.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from calibrant.errors import CalibrantError


class StreamFailure(CalibrantError):
    """Base of the failures of this package."""


class Unreadable(StreamFailure, OSError):
    """An input that cannot be read."""


class BadRow(StreamFailure, ValueError):
    """A row that breaks a rule; the message names row, column, value and rule."""


class Unwritable(StreamFailure, OSError):
    """An output that cannot be written."""


class StateMismatch(StreamFailure, ValueError):
    """A stored state that does not go with the options given."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn whatever keeps ``name`` from being written into one line about it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, CalibrantError) or error.errno is None:
            raise
        raise Unwritable(f"{name}: cannot be written: {os.strerror(error.errno)}") from error
