"""What a nightly job keeps between two nights."""

from __future__ import annotations

import errno
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Words
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.recalibrate import Pending
from calibrant.stream.failure import Unreadable
from calibrant.stream.scale import Scale
from calibrant.stream.session import Session
from calibrant.summary import collector_for, kinds, read_if

KIND: Final = "session"


def dump(session: Session) -> bytes:
    """Return a session as bytes; treat them as secret, for they hold the key of the coins."""
    pending, (own, parts) = session.pending, session.kept()
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
    arrays: dict[str, Words] = {
        "collector": session.collector.document().arrays["words"],
        "number": pending.number,
        "available": _as_words(pending.available),
        "outcome": _as_words(pending.outcome),
    }
    return Document(KIND, settings | own, arrays | parts).to_bytes()


def load(data: bytes) -> Session:
    """Return the session whose :func:`dump` this is, or one around a bare recalibrator."""
    document = read_if(lambda data: Document.from_bytes(data, KIND), data)
    if document is None:
        around = (kind.around(data) for kind in kinds)
        found: Session = next(session for session in around if session is not None)
        return found
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


def _session(settings: dict[str, Any], arrays: dict[str, Words]) -> Session:
    kind = kinds.known_as(settings.get("parts"))
    made = kind.read(b64decode(settings["recalibrator"]))
    follower = type(collector_for(made))
    outcomes: Any = _as_type(arrays["outcome"], kind.session_type.outcome_type)
    session: Session = kind.session_type(
        made,
        follower.from_document(Document("collector", {}, {"words": arrays["collector"]})),
        Scale(settings["scale"], float.fromhex(settings["largest"])),
        settings["seed"],
        settings["timed"],
        float.fromhex(settings["last"]),
        int(settings["skipped"]),
        int(settings["unresolved"]),
        Pending(arrays["number"], arrays["available"].view(np.float64), outcomes),
        **kind.session_type.restored(settings, arrays),
    )
    return session


def _as_words(values: NDArray[Any]) -> Words:
    if values.dtype != np.float64:
        return values.astype(np.int64)
    return np.ascontiguousarray(values).view(np.int64)


def _as_type(words: Words, wanted: type[np.generic]) -> NDArray[Any]:
    return words.view(np.float64) if wanted is np.float64 else words.astype(wanted)
