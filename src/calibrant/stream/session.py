"""A recalibrator at work on a stream that comes in pieces: how it is asked for and stored too."""

from __future__ import annotations

import errno
import os
import warnings
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.seal import opened
from calibrant.errors import CorruptState, ExpiredTicket, InvalidInput
from calibrant.kernels.compile import SHORT
from calibrant.recalibrate import Calibrant, Pending
from calibrant.registry import calibrators
from calibrant.stream.columns import Columns, KindColumns, Scale, declared
from calibrant.stream.failure import StateMismatch, reading
from calibrant.stream.ids import Book
from calibrant.stream.rows import Rounds, Rules
from calibrant.summary import AnySummary, Breakdown, Engine, collector_for, kinds, read_if
from calibrant.summary.kind import summarise_collected

ADDED: Final = ("forecast", "mean", "bucket", "ticket")
"""The columns that are added."""
WARM_UP: Final = 50_000
"""Forecasts for which the compiler is not worth its start."""


class Answers(NamedTuple):
    """What the recalibrator made of each row."""

    forecast: Reals
    mean: Reals
    bucket: Words
    ticket: Words

    @property
    def columns(self) -> Sequence[NDArray[Any]]:
        """What is written, a column each."""
        return self.forecast, self.mean, self.bucket.astype(np.int32), self.ticket

    @classmethod
    def none(cls) -> Answers:
        """Return the answers to no rows."""
        return cls(*np.empty((2, 0)), *np.empty((2, 0), np.int64))


@dataclass
class Feed(ABC):
    """What the rows of a file are given to, and what goes on from one piece to the next.

    Attributes
    ----------
    recalibrator
        Who makes the forecasts: a recalibrator, or one of groups, classes or numbers.
    collector
        Who follows them.
    scale
        What raw forecasts are given as.
    seed
        What the recalibrator was made with; None if its draws are a secret of its own.
    timed
        Whether rows say when they were made; None before the first one.
    last
        When the last row was made.
    skipped, unresolved
        Rows that broke a rule, and rows without an outcome.
    pending
        Outcomes that were not known yet when the last forecast was made.
    long
        Whether the stream is known to be long, so that the compiler may start at once.
    columns
        The columns that only this kind of session reads.
    breakdown
        What was seen in each group or class; None where there is one stream only.
    book
        Forecasts by their ids; None where rows have none.
    inputs
        Digests of the files that were learned.
    """

    outcome_type: ClassVar[type[np.generic]] = np.uint8
    """What outcomes are kept as until they are learned."""
    settles: ClassVar[bool] = False
    """Whether an outcome can be told, to ``settle``, of a single forecast that was made before."""

    recalibrator: Any
    collector: Any
    scale: Scale
    seed: int | None
    timed: bool | None = None
    last: float = -np.inf
    skipped: int = 0
    unresolved: int = 0
    pending: Pending = field(default_factory=Pending)
    long: bool = False
    columns: tuple[str, ...] = ()
    breakdown: Breakdown | None = None
    book: Book | None = None
    inputs: tuple[str, ...] = ()

    def rules(self, columns: Columns) -> Rules:
        """Return the rules that rows must obey from now on."""
        return Rules(columns, self.scale, self.last)

    def begin(self, name: str) -> None:  # noqa: B027
        """Take note of the input whose rows come next."""

    def call(self, names: Sequence[str]) -> None:  # noqa: B027
        """Take note of what the rows that come next are called."""

    def read_book(self) -> Book:
        """Return the forecasts that are known by their ids."""
        return self.book or Book()

    def added(self, columns: Columns) -> Sequence[str]:
        """Return the names of the columns that answers add."""
        return ADDED

    @property
    def kept_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that the rows go on with: of its groups, classes or numbers."""
        return {}

    @abstractmethod
    def play(self, rounds: Rounds) -> Any:
        """Take the next rows; return the answers."""

    def none(self) -> Any:
        """Return the answers to no rows."""
        return Answers.none()

    @property
    def counts(self) -> dict[str, int]:
        """Rows that make no round."""
        return {"n_skipped": self.skipped, "n_unresolved": self.unresolved}


class Session(Feed):
    """A feed that plays its rows: a recalibrator at work.

    Each kind of outcomes has sessions of its own, which say how forecasts are asked for and
    followed; :mod:`calibrant.kinds` has them.
    """

    def journaled(self, path: str, seed: int | None) -> Any:
        """Return this session, which is fresh, over the journal in a file."""
        raise InvalidInput(
            "--journal needs one probability per row, without groups, classes and numbers"
        )

    def play(self, rounds: Rounds) -> Any:
        """Forecast each row, and learn each outcome when it is known."""
        self.long = self.long or self.recalibrator.issued + len(rounds) > WARM_UP
        # The recalibrator starts the compiler for any batch that is not short.
        step = len(rounds) if self.long else SHORT
        starts = range(0, len(rounds), step)
        parts = [self._play(rounds.cut(slice(start, start + step))) for start in starts]
        answers = parts[0] if len(parts) == 1 else self._joined(parts)
        self.unresolved += int((~rounds.known).sum())
        self._follow(rounds, answers)
        return answers

    def asked(self, options: Any) -> dict[str, Any]:
        """Return the options that this session was made with, to be compared with new ones."""
        return {}

    def words(self) -> list[str]:
        """Return the words of a command that make this session's recalibrator again."""
        return []

    def kept(self) -> tuple[dict[str, Any], dict[str, Words]]:
        """Return settings and arrays that only this kind of session has, to be stored."""
        seen = self.breakdown
        if seen is None:
            return {}, {}
        told = {"parts": seen.kind, "columns": list(self.columns), "names": list(seen.names)}
        return told, {"parts": seen.words()}

    @classmethod
    def restored(cls, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that :meth:`kept` stored."""
        if "names" not in settings:
            return {}
        seen = Breakdown.from_words(settings["parts"], settings["names"], arrays["parts"])
        return {"columns": names_of(settings["columns"]), "breakdown": seen}

    def summary(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> AnySummary:
        """Return what everything so far amounts to."""
        told: dict[str, Any] = {"settings": settings, "counts": self.counts, "timing": timing}
        told |= {"seed": self.seed, "breakdown": self.breakdown}
        made: AnySummary = summarise_collected(self.collector, self.recalibrator, **told)
        return made

    def story(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> AnySummary:
        """Return :meth:`summary`, under its old name."""
        told = "Session.story is now Session.summary"
        warnings.warn(told, DeprecationWarning, stacklevel=2)
        return self.summary(settings, timing)

    def _joined(self, parts: list[Any]) -> Any:
        return type(parts[0])(*map(np.concatenate, zip(*parts, strict=True)))

    @abstractmethod
    def _follow(self, rounds: Rounds, answers: Any) -> None:
        """Let the collector see the rounds whose outcome is known."""

    def _play(self, rounds: Rounds) -> Any:
        if len(rounds) == 1:
            return self._play_one(rounds)
        known = rounds.available is None and rounds.known.all()
        prompt = known and not len(self.pending)
        return self._play_prompt(rounds) if prompt else self._play_late(rounds)

    @abstractmethod
    def _play_prompt(self, rounds: Rounds) -> Any:
        """Return the answers to rows whose outcomes are known before the next row."""

    def _play_late(self, rounds: Rounds) -> Any:
        """Return the answers to rows whose outcomes may come late, one row at a time."""
        rows = range(len(rounds))
        return self._joined([self._play_one(rounds.cut(slice(t, t + 1))) for t in rows])

    def _play_one(self, rounds: Rounds) -> Any:
        """Do the same for one row, without the overhead of a batch."""
        number = self.recalibrator.issued
        time = float(number if rounds.time is None else rounds.time[0])
        self._learn_until(time)
        answers = self._ask(rounds, time, number)
        if rounds.known[0]:
            known = time if rounds.available is None else float(rounds.available[0])
            outcome: Any = rounds.outcomes
            told = Pending(np.array([number]), np.array([known]), outcome)
            self.pending = expected(self.pending.joined(told))
            self._learn_until(time)
        return answers

    @abstractmethod
    def _ask(self, rounds: Rounds, time: float, number: int) -> Any:
        """Return the answers to one row, whose ticket stays open."""

    def _learn_until(self, time: float) -> None:
        """Learn what is known by ``time``, in the order in which it became known."""
        pending = self.pending
        if not len(pending) or pending.available.min() > time:
            return
        known = pending.available <= time
        for t in np.lexsort((pending.number, pending.available))[: int(known.sum())].tolist():
            try:
                self.recalibrator.observe(int(pending.number[t]), pending.outcome[t].item())
            except ExpiredTicket:
                continue
        self.pending = pending.chosen(~known)


def expected(pending: Pending) -> Pending:
    """Leave out the outcomes that will never come; their tickets expire by themselves."""
    return pending.chosen(np.isfinite(pending.available))


DEFAULT: Final = Calibrant.kind
METHODS: Final = (DEFAULT, *calibrators.names())
"""What may be asked for by name, the default first."""
LOSSES: Final = ("squared", "log")
"""Losses under which the default compares its experts."""


@dataclass(frozen=True)
@declared(["numbers"], "tuple[float, ...]", ())
class Options(KindColumns):
    """What was asked for, None where the user did not say.

    ``method`` is ``"calibrant"``, the default, or the name of a calibrator for Algorithm 1 on its
    own.  ``epsilon``, for the latter, chooses resolution and buckets so that the regret under
    ``loss`` tends to at most that.  Kinds have options of their own, with which they are asked for.
    """

    method: str | None = None
    resolution: int | None = None
    buckets: int | None = None
    grid: str | None = None
    epsilon: float | None = None
    loss: str | None = None
    prior: int | None = None
    seed: int | None = None
    secret: bytes | None = field(default=None, repr=False)
    scale: str | None = None
    raw_safe: float | None = None

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """Return some options by name, as far as the user gave any."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def refuse(self, refused: Mapping[str, str]) -> None:
        """Refuse options that make no sense; ``refused`` says why."""
        for name, told in refused.items():
            if getattr(self, name) not in (None, ()):
                raise InvalidInput(f"{name} must be left out: {told}, got {getattr(self, name)!r}")

    def drawn(self, seed: int | None) -> dict[str, Any]:
        """Return what the draws of a new recalibrator depend on: a secret goes before a seed."""
        return {"seed": seed if self.secret is None else self.seed, "secret": self.secret}

    def recalibrator(self, seed: int | None) -> Engine:
        """Return a new recalibrator.

        >>> type(Options().recalibrator(1)).__name__
        'Calibrant'
        >>> Options(method="foster_hart", epsilon=0.1).recalibrator(1).buckets
        15
        """
        return kinds.wanted(self).make(self, seed)

    def session(self) -> Any:
        """Return a new session; without a seed its draws are a secret that is told nowhere."""
        return kinds.wanted(self).session(self, self.seed)


def open_session(options: Options, stored: Session | None) -> Session:
    """Return the stored session if there is one and it is what the options ask for."""
    if stored is None:
        made: Session = options.session()
        return made
    for name, found in stored.asked(options).items():
        asked = getattr(options, name)
        if asked not in (None, (), found):
            raise StateMismatch(f"{name} must be as in the state, {found!r}, got {asked!r}")
    return stored


KIND: Final = "session"


def dump(session: Session) -> bytes:
    """Return a session as bytes; treat them as secret, unless the secret was given.

    A secret that was given is not in there: give it to :func:`load` again.
    """
    pending, (own, parts) = session.pending, session.kept()
    made = session.recalibrator
    settings: dict[str, Any] = {
        "recalibrator": b64encode(made.to_bytes(secret=not made.secret_is_given)).decode(),
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
    own |= {"inputs": list(session.inputs)} if session.inputs else {}
    parts |= {} if session.book is None else session.book.arrays()
    return Document(KIND, settings | own, arrays | parts).to_bytes()


def load(data: bytes, secret: bytes | None = None) -> Session:
    """Return the session whose :func:`dump` this is, or one around a bare recalibrator."""
    document = read_if(lambda data: Document.from_bytes(data, KIND), data)
    if document is None:
        around = (kind.around(data, secret) for kind in kinds)
        found: Session = next(session for session in around if session is not None)
        return found
    try:
        return _session(document.settings, document.arrays, secret)
    except (CorruptState, InvalidInput):
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptState(f"state must be of a replay, got {error!r}") from error


def read(path: str, secret: bytes | None = None, key: bytes | None = None) -> Session | None:
    """Return the session stored in a file, or None if there is no such file yet.

    ``key`` is that of the keyed digest, if the state shall have one.
    """
    with reading(path):
        return load(opened(state_in(path), key), secret) if Path(path).exists() else None


def state_in(path: str) -> bytes:
    """Return what a file with a state holds; refuse a file that is none."""
    data = _content(Path(path))
    if data and not data.startswith(BEGINNING):
        raise CorruptState("is not a state of calibrant")
    return data


def read_secret(path: str | None) -> bytes | None:
    """Return the secret in a file or, without one, in the environment; white space aside."""
    if path is None:
        told = os.environ.get(VARIABLE)
        return None if told is None else told.strip().encode()
    with reading(path), Path(path).open("rb") as file:
        return file.read(LONGEST).strip()


def names_of(told: Any) -> tuple[str, ...]:
    """Return names of columns that were stored, if that is what they are."""
    if not isinstance(told, list) or not all(isinstance(name, str) and name for name in told):
        raise CorruptState(f"state must hold names of columns, got {told!r}")
    return tuple(told)


def key_of(path: str) -> bytes:
    """Return the key that a file holds, without the end of its line."""
    with reading(path):
        return _content(Path(path)).rstrip(b"\r\n")


BEGINNING: Final = b"cali"
"""How all states begin."""
VARIABLE: Final = "CALIBRANT_SECRET"
"""The variable of the environment that may hold the secret of the draws."""
LONGEST: Final = 4096
"""Bytes of a file with a secret that are read: some files have no end."""


def _content(file: Path) -> bytes:
    # A device may have no end, and a pipe none yet.
    if not (file.is_file() or file.is_dir()):
        raise OSError(errno.ESPIPE, "it is not a plain file")
    return file.read_bytes()


def _session(settings: dict[str, Any], arrays: dict[str, Words], secret: bytes | None) -> Session:
    kind = kinds.known_as(settings.get("parts"))
    made = kind.read(b64decode(settings["recalibrator"]), secret)
    outcomes: Any = _as_type(arrays["outcome"], kind.session_type.outcome_type)
    seen = Document("collector", {}, {"words": arrays["collector"]})
    session: Session = kind.session_type(
        made,
        type(collector_for(made)).from_document(seen),
        Scale(settings["scale"], float.fromhex(settings["largest"])),
        *(settings[name] for name in ("seed", "timed")),
        float.fromhex(settings["last"]),
        *(int(settings[name]) for name in ("skipped", "unresolved")),
        Pending(arrays["number"], arrays["available"].view(np.float64), outcomes),
        **kind.session_type.restored(settings, arrays),
    )
    session.book = Book.from_arrays(arrays)
    session.inputs = names_of(settings.get("inputs", []))
    return session


def _as_words(values: NDArray[Any]) -> Words:
    if values.dtype != np.float64:
        return values.astype(np.int64)
    return np.ascontiguousarray(values).view(np.int64)


def _as_type(words: Words, wanted: type[np.generic]) -> NDArray[Any]:
    return words.view(np.float64) if wanted is np.float64 else words.astype(wanted)
