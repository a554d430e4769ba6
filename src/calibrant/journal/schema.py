"""The tables of a log, and how those of earlier versions become those of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

VERSION: Final = 3
"""Version of the tables."""

SNAPSHOT: Final = """create table snapshot (
    stream {int} not null, seq {big} not null, part {int} not null, parts {int} not null,
    shape text not null, body {blob} not null, primary key (stream, seq, part)
)"""
MOMENT: Final = "create table moment (seq {big} primary key, time {real} not null)"
INDEX: Final = "create index event_by_stream on event (stream, seq)"
TABLES: Final = (
    "create table schema (version {int} not null{epoch})",
    """create table stream (
        number {int} primary key, name text not null unique, settings text not null,
        body {blob} not null, gone {real}, seq {big} not null default 0
    )""",
    """create table event (
        seq {big} primary key, stream {int} not null, kind {small} not null, id text not null,
        key text, x {real} not null, time {real}, answer {blob} not null, code {big} not null,
        more text, unique (stream, kind, id)
    )""",
    INDEX,
    SNAPSHOT,
    """create table token (
        hash {blob} primary key, name text not null, scope text not null, streams text not null,
        made {real} not null, revoked {real}
    )""",
    MOMENT,
)
MIGRATIONS: Final[dict[int, tuple[str, ...]]] = {
    # Pages of a stream by an index, snapshots in pieces, streams that begin behind purged events.
    1: (
        INDEX,
        "alter table stream add column seq {big} not null default 0",
        "create table kept as select stream, seq, shape, body from snapshot",
        "drop table snapshot",
        SNAPSHOT,
        "insert into snapshot select stream, seq, 0, 1, shape, body from kept",
        "drop table kept",
        MOMENT,
    ),
    # Forecasts with groups, with classes, or whose draw is told later.
    2: ("alter table event add column more text",),
}
"""What is done with tables of a version, each in one transaction."""


def schema(types: Mapping[str, str]) -> list[str]:
    """Return what makes the tables of today, in a database with these types."""
    return [statement.format(**types) for statement in TABLES]
