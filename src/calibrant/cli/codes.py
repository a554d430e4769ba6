"""Exit codes, all of them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    meaning: str

    OK = 0, "everything was done"
    BUG = 1, "an error in calibrant itself; the traceback is worth a report"
    USAGE = 2, "an option or a value that cannot be"
    INPUT = 3, "an input that cannot be read: missing, broken, empty, or without the columns"
    ROW = 4, "a row that breaks a rule, with --on-error stop"
    OUTPUT = 5, "an output that cannot be written, or is there already"
    STATE = 6, "a state or summary that is damaged, or does not go with the options"
    MISSING_EXTRA = 7, "an optional part is not installed; the message says which"
    INTERRUPTED = 130, "ended by Ctrl-C; nothing was left behind"
    PIPE = 141, "whoever read the output stopped reading"
    TERMINATED = 143, "ended by SIGTERM; nothing was left behind"
