"""The command ``calibrant``.

This module needs nothing but the base install; everything else of the command line
needs the extra ``cli``, and says so.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import suppress
from enum import IntEnum
from typing import Final

from calibrant._version import __version__

__all__ = ["ExitCode", "main"]

NEEDED: Final = ("typer", "rich", "pyarrow", "msgspec")


class ExitCode(IntEnum):
    """How a command ended."""

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    meaning: str

    OK = 0, "everything was done"
    BUG = 1, "an error in calibrant itself; please report the traceback"
    USAGE = 2, "an option or a value that is not valid"
    INPUT = 3, "an input that cannot be read: missing, broken, empty, or without the columns"
    ROW = 4, "a row that breaks a rule, with --on-error stop"
    OUTPUT = 5, "an output that cannot be written, or already exists"
    STATE = 6, "a state or summary that is damaged, or does not match the options"
    MISSING_EXTRA = 7, "an optional part is not installed; the message says which"
    HUNG_UP = 129, "ended by SIGHUP because its terminal was closed; nothing was left behind"
    INTERRUPTED = 130, "ended by Ctrl-C; nothing was left behind"
    PIPE = 141, "the program that read the output stopped reading"
    TERMINATED = 143, "ended by SIGTERM; nothing was left behind"


SIGNALLED: Final = (ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def main() -> int:
    """Run the command line; return the exit code, or end at once where Python might abort."""
    if sys.argv[1:] == ["--version"]:
        # Told before anything slow is loaded.
        print(f"calibrant {__version__}")
        return ExitCode.OK
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        from calibrant.errors import requirement

        told = f"the command line needs {', '.join(missing)}, not installed here"
        print(f"calibrant: {told}: pip install {requirement('cli')}", file=sys.stderr)
        return ExitCode.MISSING_EXTRA
    code = _run()
    if code in SIGNALLED or _is_reading():
        _leave(code)
    return code


def _run() -> int:
    try:
        from calibrant.cli.app import run

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # A letter that a terminal does not know must not end a command.
                stream.reconfigure(errors="backslashreplace")
        return run()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.BUG
    except (KeyboardInterrupt, RuntimeError) as error:
        # While a class is made, Python wraps it.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        # It came before there was a command to guard, such as while modules were loaded.
        print("calibrant: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED


def _is_reading() -> bool:
    """Say whether an input was left before its end, so that a thread may still wait for it."""
    failure = sys.modules.get("calibrant.stream.failure")
    return failure is not None and failure.abandoned()


def _leave(code: int) -> None:
    """End at once: a thread of Arrow that still waits for input would make Python abort."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
