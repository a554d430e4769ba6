"""Files and pipes: rows in, forecasts out, in constant memory.

Needs the extra ``cli``.
"""

from calibrant.stream.class_session import ClassSession
from calibrant.stream.columns import Columns
from calibrant.stream.draft import Drafts
from calibrant.stream.failure import (
    BadRow,
    StateMismatch,
    StreamFailure,
    Unreadable,
    Unwritable,
)
from calibrant.stream.faults import OnFault, Quarantine, Skip, Stop
from calibrant.stream.group_session import GroupSession
from calibrant.stream.number_session import NumberSession
from calibrant.stream.options import Options, open_session
from calibrant.stream.replay import Job, replay
from calibrant.stream.scale import SCALES, Scale
from calibrant.stream.session import ADDED, Answers, Session
from calibrant.stream.source import FORMATS, format_of
from calibrant.stream.writers import Writer, open_output, open_writer

__all__ = [
    "ADDED",
    "FORMATS",
    "SCALES",
    "Answers",
    "BadRow",
    "ClassSession",
    "Columns",
    "Drafts",
    "GroupSession",
    "Job",
    "NumberSession",
    "OnFault",
    "Options",
    "Quarantine",
    "Scale",
    "Session",
    "Skip",
    "StateMismatch",
    "Stop",
    "StreamFailure",
    "Unreadable",
    "Unwritable",
    "Writer",
    "format_of",
    "open_output",
    "open_session",
    "open_writer",
    "replay",
]
