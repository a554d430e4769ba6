"""A table at work on rows that come in pieces: each key is a stream of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

import numpy as np

from calibrant.core.arrays import Mask, Reals, Words, as_words
from calibrant.core.codec import Document
from calibrant.errors import CorruptState, InvalidInput
from calibrant.monitor import GroupWatch
from calibrant.recalibrate.keyed import KeyedPending, Keys
from calibrant.recalibrate.keyed_record import Certificates
from calibrant.recalibrate.promise import EARLY, FAILURE
from calibrant.recalibrate.table import Table
from calibrant.stream.columns import Columns, Scale
from calibrant.stream.failure import StateMismatch
from calibrant.stream.pieces import Piece
from calibrant.stream.rows import Problem, Rounds, Rules, value_at
from calibrant.stream.session import Answers, Feed, Options, names_of

KIND: Final = "keyed session"
WORST: Final = 10
"""Keys with the largest errors that a summary names."""
MOST_WATCHED: Final = 10_000
"""Keys that are watched, those that come first; each takes some kilobytes."""
LEARNING: Final = 100
"""Rounds of each key that are not judged, for its model has to learn first."""
TOLERANCE: Final = 0.02
"""Forecasts that are so close to the chance of an outcome count as right."""
SAID: Final = ("method", "resolution", "buckets", "grid", "epsilon", "loss", "prior", "raw_safe")


@dataclass
class Fleet:
    """A table, and how many forecasts were made in it."""

    table: Table
    issued: int = 0


class KeyedRules(Rules):
    """Rules of rows that have a key: the text of one column."""

    def read(self, piece: Piece) -> tuple[Rounds, Mask, list[Problem]]:
        """Return the rounds of a piece, each with its key, and what is wrong with other rows."""
        (by,) = self.columns.group
        there = [value is not None and value != "" for value in _listed(piece, by)]
        rows = np.flatnonzero(there)
        if len(rows) == len(there):
            return super().read(piece)
        rounds, good, problems = super().read(piece.take(np.array(there)))
        found = np.zeros(len(there), bool)
        found[rows[good]] = True
        told = [problem._replace(row=int(rows[problem.row])) for problem in problems]
        lost = [row for row, known in enumerate(there) if not known]
        told += [Problem(row, by, value_at(piece, by, row), "a key") for row in lost]
        return rounds, found, sorted(told)


def _listed(piece: Piece, name: str) -> list[Any]:
    column = piece.column(name)
    return column if isinstance(column, list) else column.to_pylist()


@dataclass
class KeyedSession(Feed):
    """A session of a :class:`calibrant.Table`; pending outcomes are those of a table."""

    waiting: KeyedPending = field(default_factory=KeyedPending)
    by: str = ""
    """The column of keys."""
    whole: bool = True
    """Whether keys are what stands there; in some earlier states part of its name is before."""
    watch: GroupWatch | None = None
    """Who rings if the mean forecasts of a key cannot be right."""

    @classmethod
    def start(cls, options: Options, alarm: float | None = None) -> Self:
        """Return a session before its first row, with an alarm of that level over all keys."""
        table = Table(options.recalibrator(0), seed=options.seed)
        made = cls(Fleet(table), None, Scale(options.scale or "probability"), options.seed)
        if alarm is not None:
            made.watch = GroupWatch(
                alarm, learning=LEARNING, tolerance=TOLERANCE, max_keys=MOST_WATCHED
            )
        return made

    @property
    def table(self) -> Table:
        """The table that plays."""
        table: Table = self.recalibrator.table
        return table

    def rules(self, columns: Columns) -> Rules:
        (self.by,) = columns.group
        return KeyedRules(columns, self.scale, self.last)

    def play(self, rounds: Rounds) -> Answers:
        assert rounds.groups is not None
        before = len(self.by if self.whole else self.by.partition("=")[0]) + 1
        keys = Keys.of([named[before:] for (named,) in rounds.groups])
        told: dict[str, Any] = {}
        prompt = rounds.available is None and bool(rounds.known.all()) and not len(self.waiting)
        if not prompt or self.table.timed:
            told = rounds.delivery(self.recalibrator.issued) | {"carry": self.waiting}
        run = self.table.replay(keys, rounds.raw, rounds.outcomes, **told)
        self.waiting = run.pending.chosen(np.isfinite(run.pending.available))
        self.recalibrator.issued += len(rounds)
        self.unresolved += int((~rounds.known).sum())
        self._watch(keys, rounds, run.mean)
        return Answers(run.forecast, np.minimum(run.mean, 1.0), run.bucket, run.ticket)

    def _watch(self, keys: Keys, rounds: Rounds, mean: Reals) -> None:
        """Let rounds be judged whose outcomes are known, of keys that are watched."""
        if self.watch is None:
            return
        if rounds.available is not None:
            raise InvalidInput("alarm must be left out where outcomes are late, got one")
        seen = [code for code, name in enumerate(keys.names) if name not in self.watch]
        left = [*seen[MOST_WATCHED - len(self.watch) :], -1]
        rows = np.flatnonzero(rounds.known & ~np.isin(keys.codes, left))
        names = [keys.names[code] for code in keys.codes[rows].tolist()]
        self.watch.update_many(names, np.minimum(mean, 1.0)[rows], rounds.outcomes[rows])

    def check(self, options: Options, alarm: float | None = None) -> None:
        """Refuse options that are not those of the state."""
        if options.given(SAID):
            made = options.recalibrator(0)
            if not self.table.is_like(made):
                raise StateMismatch(f"options must be as in the state, got {options.given(SAID)!r}")
        rung = None if self.watch is None else self.watch.alpha
        pairs = {"seed": (options.seed, self.seed), "scale": (options.scale, self.scale.kind)}
        for name, (asked, found) in (pairs | {"alarm": (alarm, rung)}).items():
            if asked not in (None, found):
                raise StateMismatch(f"{name} must be as in the state, {found!r}, got {asked!r}")

    def dumped(self, by: str) -> bytes:
        """Return the session as bytes; treat them as secret."""
        waits, table = self.waiting, self.table.to_bytes()
        settings = {
            "by": by,
            "scale": self.scale.kind,
            "largest": self.scale.largest.hex(),
            "seed": self.seed,
            "timed": self.timed,
            "last": self.last.hex(),
            "counts": [self.recalibrator.issued, self.skipped, self.unresolved, len(table)],
            "keys": json.dumps(waits.key),
            "inputs": list(self.inputs),
        } | ({"whole": True} if self.whole and "=" in by else {})
        arrays = {
            "table": as_words(table),
            "number": waits.number,
            "available": np.ascontiguousarray(waits.available).view(np.int64),
            "outcome": waits.outcome.astype(np.int64),
        }
        if self.watch is not None:
            watch = self.watch.to_bytes()
            settings["watch"], arrays["watch"] = len(watch), as_words(watch)
        return Document(KIND, settings, arrays).to_bytes()

    @classmethod
    def loaded(cls, data: bytes, by: str) -> Self:
        """Return the session whose :meth:`dumped` this is."""
        document = Document.from_bytes(data, KIND)
        try:
            told, arrays = document.settings, document.arrays
            if told["by"] != by:
                raise StateMismatch(f"--by must be as in the state, {told['by']!r}, got {by!r}")
            issued, skipped, unresolved, size = told["counts"]
            table = Table.from_bytes(arrays["table"].astype("<i8").tobytes()[:size])
            scale = Scale(told["scale"], float.fromhex(told["largest"]))
            last = float.fromhex(told["last"])
            made = cls(Fleet(table, issued), None, scale, told["seed"], told["timed"], last)
            made.skipped, made.unresolved = skipped, unresolved
            made.inputs = names_of(told["inputs"])
            made.waiting = _pending(json.loads(told["keys"]), arrays)
            made.whole = told.get("whole", "=" not in by)
            if "watch" in arrays:
                watch = arrays["watch"].astype("<i8").tobytes()[: told["watch"]]
                made.watch = GroupWatch.from_bytes(watch)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, CorruptState):
                raise
            raise CorruptState(f"state must be of a replay by key, got {error!r}") from error
        return made

    def told(self, settings: Mapping[str, Any], timing: Mapping[str, float]) -> KeyedSummary:
        """Return what everything so far amounts to."""
        found, alarm = self.table.certificates(FAILURE, together=True), None
        if self.watch is not None:
            rung = [asdict(alarm) for alarm in self.watch.alarms]
            alarm = {"alpha": self.watch.alpha, "watched": len(self.watch), "alarms": rung}
        return KeyedSummary(found, dict(settings), self.counts, dict(timing), alarm)


def _pending(keys: Any, arrays: Mapping[str, Words]) -> KeyedPending:
    available = arrays["available"].view(np.float64)
    return KeyedPending(keys, arrays["number"], available, arrays["outcome"].astype(np.uint8))


@dataclass(frozen=True)
class KeyedSummary:
    """What a replay by key amounts to: all keys together, and those with the largest errors.

    The promises in ``certificates`` hold all at once but for one chance of failure, and ``alarm``
    says which keys cannot be right, with one chance of a false alarm over all keys; None if nobody
    asked for it.
    """

    certificates: Certificates
    settings: dict[str, Any]
    counts: dict[str, int]
    timing: dict[str, float]
    alarm: dict[str, Any] | None = None

    @property
    def total(self) -> dict[str, Any]:
        """Numbers of all keys; losses and errors are means over all rounds."""
        told = self.certificates
        rounds = int(told.rounds.sum())
        sums = {
            name: getattr(told, name) * told.rounds for name in ("loss", "raw_loss", "c1", "c2")
        }
        means = {name: float(each.sum() / max(rounds, 1)) for name, each in sums.items()}
        counts = {"keys": len(told), "n_rounds": rounds, "open": int(told.open.sum())}
        return counts | {"expired": int(told.expired.sum())} | means

    @property
    def certificate(self) -> dict[str, Any]:
        """What is promised to all keys at once, and whether it was kept.

        ``c2`` and ``bound`` are means over all rounds; where nothing is promised the bound is 1.
        """
        told = self.certificates
        spoken, kept = int((told.promised < 1.0).sum()), int(told.holds.sum())
        bound = float((told.rounds * np.fmin(told.promised, 1.0)).sum())
        verdict = "kept" if kept == spoken else f"broken for {spoken - kept} keys"
        return {
            "failure": FAILURE,
            "promised": spoken,
            "kept": kept,
            "beyond_chance": int(told.beyond.sum()),
            "c2": self.total["c2"],
            "bound": bound / max(int(told.rounds.sum()), 1),
            "verdict": verdict if spoken else EARLY,
        }

    @property
    def notes(self) -> list[str]:
        """The certificate and the alarm, in a line each."""
        told, keys = self.certificate, len(self.certificates)
        lines = [f"certificate of all keys at once: {told['verdict']}"]
        if told["promised"]:
            some = f"{told['promised']} of {keys} keys have one"
            sure = f"all hold with probability {1.0 - told['failure']:g}"
            lines[0] += f"; {some}, {sure}; mean C2 {told['c2']:.5f}, bound {told['bound']:.5f}"
        lines += [f"beyond what chance leaves: {told['beyond_chance']} of {keys} keys"]
        if self.alarm is not None:
            rung = [str(each["key"]) for each in self.alarm["alarms"]]
            names = ", ".join(rung[:WORST]) + (", ..." if len(rung) > WORST else "")
            level = f"alarm at level {self.alarm['alpha']:g} over {self.alarm['watched']} keys"
            lines.append(f"{level}: {names or 'none'}")
        return lines

    @property
    def worst(self) -> list[dict[str, Any]]:
        """The keys with the largest errors, those beyond what chance leaves first."""
        found = self.certificates.worst(WORST)
        names = ("rounds", "c1", "c2", "chance", "loss", "raw_loss", "beyond")
        columns = [getattr(found, name).tolist() for name in names]
        rows = zip(found.key, *columns, strict=True)
        return [dict(zip(("key", *names), row, strict=True)) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON-ready data."""
        told = {"kind": "keys", "version": 1, "settings": self.settings, "timing": self.timing}
        found = {"certificate": self.certificate, "alarm": self.alarm, "worst": self.worst}
        return told | self.counts | self.total | found
