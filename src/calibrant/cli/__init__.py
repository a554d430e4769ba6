"""The command ``calibrant``.

This module needs nothing but the base install; everything else of the command line
needs the extra ``cli``, and says so.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Final

from calibrant.cli.codes import ExitCode

__all__ = ["ExitCode", "main"]

NEEDED: Final = ("typer", "rich", "pyarrow", "msgspec")


def main() -> int:
    """Run the command line; return the exit code."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        told = f"the command line needs {', '.join(missing)}, not installed here"
        print(f'calibrant: {told}: pip install "calibrant[cli]"', file=sys.stderr)
        return ExitCode.MISSING_EXTRA
    from calibrant.cli.app import run

    try:
        code = run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else ExitCode.BUG
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End at once: a thread of Arrow that still waits for input would make Python abort."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(code)
