"""Files and pipes: rows in, forecasts out, in constant memory.

Needs the extra ``cli``.
"""

from calibrant._renamed import renamed
from calibrant.errors import needing

with needing("calibrant.stream needs {}, which is not installed", "cli"):
    from calibrant.stream.columns import SCALES, Columns, KindColumns, Scale
    from calibrant.stream.dialect import Asked
    from calibrant.stream.drafts import Drafts
    from calibrant.stream.failure import (
        BadRow,
        StateMismatch,
        StreamFailure,
        Unreadable,
        Unwritable,
    )
    from calibrant.stream.faults import OnFault, Quarantine, Skip, Stop
    from calibrant.stream.replay import Job, replay
    from calibrant.stream.session import ADDED, Answers, Options, Session, open_session
    from calibrant.stream.source import FORMATS, format_of
    from calibrant.stream.writers import Writer, open_output, open_writer

__all__ = [
    "ADDED", "FORMATS", "SCALES", "Answers", "Asked", "BadRow", "Columns", "Drafts", "Job",
    "KindColumns", "OnFault", "Options", "Quarantine", "Scale", "Session", "Skip",
    "StateMismatch", "Stop", "StreamFailure", "Unreadable", "Unwritable", "Writer", "format_of",
    "open_output", "open_session", "open_writer", "replay",
]  # fmt: skip

__getattr__ = renamed(
    __name__,
    {
        "ClassSession": "calibrant.kinds.classes.session:ClassSession",
        "GroupSession": "calibrant.kinds.groups.session:GroupSession",
        "NumberSession": "calibrant.kinds.numbers.session:NumberSession",
    },
)
