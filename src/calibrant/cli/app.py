"""All commands together, and what becomes of their errors."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any, Final, NoReturn

import pyarrow as pa
import typer

from calibrant._version import __version__
from calibrant.cli import ExitCode, screen
from calibrant.cli.capacity import capacity
from calibrant.cli.compare import compare
from calibrant.cli.methods import bound, methods
from calibrant.cli.play import play
from calibrant.cli.products import report
from calibrant.cli.replay import replay
from calibrant.cli.reproduce import reproduce
from calibrant.cli.service import backup, demo, mcp, migrate, purge, restore, serve, token, verify
from calibrant.errors import CalibrantError, CorruptState, MissingExtra, NotStored
from calibrant.kernels.compile import tellers
from calibrant.stream import BadRow, StateMismatch, Unreadable, Unwritable
from calibrant.stream.failure import SIGNALS, noting, settled

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What keeps standard output from being written."""

LIKE: Final = ("Did you mean", "Possible options")
"""How words that are known are proposed for one that is not."""

app = typer.Typer(
    name="calibrant",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose failures are one line and an exit code."""

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        tellers[:] = [_compiling]
        try:
            command(**arguments)
            _flush()
        except BrokenPipeError:
            screen.give_up(sys.stdout)
            raise typer.Exit(ExitCode.PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except CalibrantError as error:
            screen.say(" ".join(str(error).split()))
            raise typer.Exit(code_of(error)) from None

    return run


def _compiling() -> None:
    screen.say("compiling for a few seconds: there is no machine code on disk yet")


COMMANDS: Final = (replay, play, compare, bound, methods, report, reproduce, capacity)
for command in (*COMMANDS, demo, serve, mcp, verify, backup, restore, migrate, purge, token):
    app.command()(guarded(command))


def _version(asked: bool) -> None:
    if asked:
        print(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def calibrant(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Probabilities you can trust on a live stream.

    \b
    Example:
      calibrant replay games.csv --report games.html
    """


def run(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    heard = (n for n in SIGNALS[1:] if signal.getsignal(n) is not signal.SIG_IGN)
    before = {number: signal.signal(number, _terminate) for number in heard}
    # Arrow's own handlers lose a signal that comes while it waits for a slow pipe.
    pa.enable_signal_handlers(False)
    # Alone, the command is a question.
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with noting(lasting=arguments is None):
            code = int(app(args=words, standalone_mode=False, prog_name="calibrant") or 0)
        if code == ExitCode.INTERRUPTED:
            # Here, as typer gives this code by itself while it reads the words.
            screen.say("interrupted")
        _flush()
        return code
    except SystemExit as ended:
        # Below, a pipe that nobody reads ends help with a code of its own.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        screen.give_up(sys.__stdout__)
        return ExitCode.PIPE
    except OSError as error:
        if error.errno not in FULL:
            raise
        # Files are named where they are written; what is left is standard output.
        screen.give_up(sys.stdout)
        screen.say(f"standard output: cannot be written: {os.strerror(error.errno)}")
        return ExitCode.OUTPUT
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        screen.say(" ".join(error.format_message().split()) + _where_to_look(error))
        return ExitCode.USAGE
    finally:
        for number in before:
            if arguments is not None or not settled():
                signal.signal(number, before[number])


def _where_to_look(error: Any) -> str:
    """Say where words are described, if one is missing or nothing like it is known."""
    told = error.format_message()
    unknown = told.startswith("No such ") and not any(word in told for word in LIKE)
    if type(error).__name__ != "MissingParameter" and not unknown:
        return ""
    pipe = " A file, or - for standard input?" if "'INPUT'" in told else ""
    return f"{pipe} See {error.ctx.command_path} --help"


def code_of(error: CalibrantError) -> ExitCode:
    """Return the exit code of an error."""
    kinds = {
        Unreadable: ExitCode.INPUT,
        BadRow: ExitCode.ROW,
        Unwritable: ExitCode.OUTPUT,
        StateMismatch: ExitCode.STATE,
        CorruptState: ExitCode.STATE,
        NotStored: ExitCode.OUTPUT,
        MissingExtra: ExitCode.MISSING_EXTRA,
    }
    found = (code for kind, code in kinds.items() if isinstance(error, kind))
    return next(found, ExitCode.USAGE)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
