"""What a nightly job keeps between two nights."""

from __future__ import annotations

import errno
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.classes import OneVsRest, TopLabel
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.groups import GroupRecalibrator
from calibrant.recalibrate import Pending
from calibrant.recalibrate.load import load as load_recalibrator
from calibrant.regression import QuantileRecalibrator
from calibrant.stream.class_session import ClassSession
from calibrant.stream.failure import Unreadable
from calibrant.stream.group_session import GroupSession
from calibrant.stream.number_session import NumberSession
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import Breakdown, Collector, NumberCollector, collector_for

__all__ = ["dump", "load", "read"]

KIND: Final = "session"
NUMBERS: Final = "number"


def dump(session: Session) -> bytes:
    """Return a session as bytes; treat them as secret, for they hold the key of the coins."""
    pending, followed = session.pending, session.story_parts
    settings: dict[str, Any] = {
        "recalibrator": b64encode(session.recalibrator.to_bytes()).decode(),
        "scale": session.scale.kind,
        "largest": session.scale.largest.hex(),
        "seed": session.seed,
        "timed": session.timed,
        "last": session.last.hex(),
        "skipped": session.skipped,
        "unresolved": session.unresolved,
    }
    arrays: dict[str, NDArray[np.int64]] = {
        "collector": session.collector.document().arrays["words"],
        "number": pending.number,
        "available": _as_words(pending.available),
        "outcome": pending.outcome.astype(np.int64),
    }
    if isinstance(session, (GroupSession, ClassSession)) and followed is not None:
        settings |= {"parts": followed.kind, "columns": list(session.columns)}
        settings["names"], arrays["parts"] = list(followed.names), followed.words()
    if isinstance(session, NumberSession):
        settings |= {"parts": NUMBERS, "columns": list(session.columns)}
        settings["given"] = list(session.given)
        outcomes: Any = pending.outcome
        arrays["outcome"] = _as_words(outcomes)
    return Document(KIND, settings, arrays).to_bytes()


def load(data: bytes) -> Session:
    """Return the session whose :func:`dump` this is, or one around a bare recalibrator."""
    try:
        document = Document.from_bytes(data, KIND)
    except CorruptState as problem:
        if "of kind" not in str(problem):
            raise
        return _around(data)
    try:
        return _session(document.settings, document.arrays)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CorruptState):
            raise
        raise CorruptState(f"state must be of a replay, got {error!r}") from error


def read(path: str) -> Session | None:
    """Return the session stored in a file, or None if there is no such file yet."""
    file = Path(path)
    try:
        return load(_content(file)) if file.exists() else None
    except CorruptState as problem:
        raise CorruptState(f"{path}: {problem}") from problem
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error


def _content(file: Path) -> bytes:
    # A device may have no end, and a pipe none yet.
    if not (file.is_file() or file.is_dir()):
        raise OSError(errno.ESPIPE, "it is not a plain file")
    return file.read_bytes()


def _around(data: bytes) -> Session:
    """Return a session of a recalibrator that was stored alone."""
    try:
        return NumberSession.start(QuantileRecalibrator.from_bytes(data), None)
    except CorruptState as problem:
        if "of kind" not in str(problem):
            raise
    recalibrator = load_recalibrator(data)
    return Session(recalibrator, collector_for(recalibrator), Scale(), None)


def _session(settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> Session:
    data = b64decode(settings["recalibrator"])
    kind = settings.get("parts")
    if kind is None:
        return Session(load_recalibrator(data), *_common(settings, arrays, np.uint8))
    if kind == NUMBERS:
        return _of_numbers(data, settings, arrays)
    followed = Breakdown.from_words(kind, settings["names"], arrays["parts"])
    own: dict[str, Any] = {"columns": tuple(settings["columns"]), "breakdown": followed}
    if kind == "group":
        common = _common(settings, arrays, np.uint8)
        return GroupSession(GroupRecalibrator.from_bytes(data), *common, **own)
    return ClassSession(_over_classes(data), *_common(settings, arrays, np.int64), **own)


def _of_numbers(
    data: bytes, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]
) -> NumberSession:
    words = Document("collector", {}, {"words": arrays["collector"]})
    outcomes = arrays["outcome"].view(np.float64)
    own: dict[str, Any] = {name: tuple(settings[name]) for name in ("columns", "given")}
    made = QuantileRecalibrator.from_bytes(data), NumberCollector.from_document(words)
    return NumberSession(*made, *_rest(settings, arrays, outcomes), **own)


def _over_classes(data: bytes) -> OneVsRest | TopLabel:
    try:
        return TopLabel.from_bytes(data)
    except CorruptState as problem:
        if "of kind" not in str(problem):
            raise
        return OneVsRest.from_bytes(data)


def _common(settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]], kind: Any) -> Any:
    """Return what every session has, behind the recalibrator."""
    words = Document("collector", {}, {"words": arrays["collector"]})
    outcomes = arrays["outcome"].astype(kind)
    return Collector.from_document(words), *_rest(settings, arrays, outcomes)


def _rest(
    settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]], outcomes: NDArray[Any]
) -> Any:
    """Return what follows the collector."""
    return (
        Scale(settings["scale"], float.fromhex(settings["largest"])),
        settings["seed"],
        settings["timed"],
        float.fromhex(settings["last"]),
        int(settings["skipped"]),
        int(settings["unresolved"]),
        Pending(arrays["number"], arrays["available"].view(np.float64), outcomes),
    )


def _as_words(reals: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(reals, np.float64).view(np.int64)
