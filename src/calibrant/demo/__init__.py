"""The demo: ``python -m calibrant.demo``.

Without arguments it shows what calibrant does; with ``live`` the live page of three streams that
move by themselves, with ``serve`` the same through a service; with other arguments it is the
command ``calibrant``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from calibrant.cli import ExitCode
from calibrant.cli import main as command

__all__ = ["main"]


def main() -> int:
    """Run the demo in the current directory, or the command given; return the exit code."""
    if sys.argv[1:2] == ["live"]:
        from calibrant.demo.live import serve

        return serve(*map(int, sys.argv[2:3]))
    if sys.argv[1:2] == ["serve"] and all(word.isdigit() for word in sys.argv[2:]):
        from calibrant.demo.serve import serve as serve_streams

        return serve_streams(*map(int, sys.argv[2:3]))
    if sys.argv[1:]:
        return command()
    from calibrant.demo.show import show

    try:
        return show(Path("demo"))
    except KeyboardInterrupt:
        print("calibrant: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Python would complain once more when it flushes what nobody reads.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PIPE
    except OSError as error:
        print(f"calibrant: {error.filename}: cannot be written: {error.strerror}", file=sys.stderr)
        return ExitCode.OUTPUT
