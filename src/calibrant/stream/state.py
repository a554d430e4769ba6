"""What a nightly job keeps between two nights."""

from __future__ import annotations

import errno
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.recalibrate import Pending, Recalibrator
from calibrant.stream.failure import Unreadable
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import Collector

__all__ = ["dump", "load", "read"]

KIND: Final = "session"


def dump(session: Session) -> bytes:
    """Return a session as bytes; treat them as secret, for they hold the key of the coins."""
    pending = session.pending
    settings = {
        "recalibrator": b64encode(session.recalibrator.to_bytes()).decode(),
        "scale": session.scale.kind,
        "largest": session.scale.largest.hex(),
        "seed": session.seed,
        "timed": session.timed,
        "last": session.last.hex(),
        "skipped": session.skipped,
        "unresolved": session.unresolved,
    }
    arrays = {
        "collector": session.collector.document().arrays["words"],
        "number": pending.number,
        "available": _as_words(pending.available),
        "outcome": pending.outcome.astype(np.int64),
    }
    return Document(KIND, settings, arrays).to_bytes()


def load(data: bytes) -> Session:
    """Return the session whose :func:`dump` this is, or one around a bare recalibrator."""
    try:
        document = Document.from_bytes(data, KIND)
    except CorruptState as problem:
        if "of kind" not in str(problem):
            raise
        return _around(Recalibrator.from_bytes(data))
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


def _around(recalibrator: Recalibrator) -> Session:
    values = recalibrator.calibrator.lattice.values
    return Session(recalibrator, Collector(values), Scale(), None)


def _session(settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> Session:
    words = Document("collector", {}, {"words": arrays["collector"]})
    return Session(
        Recalibrator.from_bytes(b64decode(settings["recalibrator"])),
        Collector.from_document(words),
        Scale(settings["scale"], float.fromhex(settings["largest"])),
        settings["seed"],
        settings["timed"],
        float.fromhex(settings["last"]),
        int(settings["skipped"]),
        int(settings["unresolved"]),
        Pending(
            arrays["number"],
            arrays["available"].view(np.float64),
            arrays["outcome"].astype(np.uint8),
        ),
    )


def _as_words(reals: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(reals, np.float64).view(np.int64)
