"""Stored states as data: how one is loaded, how its continuation is played, what is told of it.

A golden file holds a state in every form that its class writes, and *steps*: calls of public
methods, with their arguments and the answers they must give.  Arguments that JSON cannot say are
dictionaries of one entry, such as ``{"answer": 3}``, what the fourth step returned.
"""

from __future__ import annotations

import importlib
import io
import json
import pickle
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.classes import ClassTicket
from calibrant.core.codec import Document
from calibrant.core.ticket import Ticket
from calibrant.errors import CalibrantError
from calibrant.groups import History, Period, TimeIntervals
from calibrant.loading import load
from calibrant.regression import Distribution
from calibrant.regression.ticket import NumberTicket

STATES = Path(__file__).parent / "states"

# ------------------------------------------------------------------- checking rules


def after_a_one(context: Any, history: History) -> tuple[str, ...]:
    """Name the group of rounds that follow an outcome of 1."""
    return ("after a one",) if history.outcomes[-1:] == (1,) else ()


def month(context: Any, history: History) -> Period:
    """Name the month that the context tells."""
    return Period("month", int(context))


def late(context: Any, history: History) -> bool:
    """Say whether many forecasts were made before."""
    return history.issued > 9


RULES: dict[str, Any] = {
    "intervals": TimeIntervals(shortest=4),
    "functions": [after_a_one, month],
    "mapping": {"late": late},
}
"""What a state of groups needs again when it is loaded, by the name its file has for it."""

# -------------------------------------------------------------------------- loading


class Night:
    """A session of the command line: a state file, and rows that continue it."""

    def __init__(self, session: Any) -> None:
        self.session = session

    @classmethod
    def from_bytes(cls, data: bytes) -> Night:
        from calibrant.stream.session import load as load_session

        return cls(load_session(data))

    def to_bytes(self) -> bytes:
        from calibrant.stream.session import dump

        return dump(self.session)

    def play(self, text: str, **job: Any) -> str:
        """Replay a file of this text; return the text of the file that is written."""
        from calibrant.stream import Job, Stop, open_writer, replay

        into = io.BytesIO()

        def start(source: Any, columns: Any) -> Any:
            return open_writer(into, "csv", columns, list(self.session.added(columns)))

        named = {name: tuple(columns) for name, columns in self.session.kept_columns.items()}
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "rows.csv")
            path.write_text(text)
            replay(Job((str(path),), **named, **job), self.session, Stop(), start=start)
        return into.getvalue().decode()


MOVED = {
    "calibrant.kinds.numbers.collector:NumberCollector": "calibrant.kinds.numbers:NumberCollector",
    "calibrant.summary:NumberCollector": "calibrant.kinds.numbers:NumberCollector",
    "calibrant.regression.level:LevelCalibrator": "calibrant.regression.pit:LevelCalibrator",
}
"""Classes that files name by where they were when the files were written."""


def class_of(file: dict[str, Any]) -> Any:
    """Return the class that a file names."""
    module, _, name = MOVED.get(file["class"], file["class"]).partition(":")
    return getattr(importlib.import_module(module), name)


def packed(data: bytes) -> str:
    """Return bytes as text; states are full of zeros."""
    return b64encode(zlib.compress(data, 9)).decode()


def unpacked(text: str) -> bytes:
    """Return the bytes that :func:`packed` made text of."""
    return zlib.decompress(b64decode(text))


def dictionary_of(file: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a file as a dictionary; a long one is packed."""
    stored = file["dictionary"]
    return json.loads(unpacked(stored)) if isinstance(stored, str) else stored


def from_bytes(file: dict[str, Any], data: bytes | None = None) -> Any:
    """Return what a file's bytes, or others in their place, are the state of."""
    stored = unpacked(file["bytes"]) if data is None else data
    if "document" in file:
        return class_of(file).from_document(Document.from_bytes(stored, file["document"]))
    return class_of(file).from_bytes(stored, *_again(file))


def from_dictionary(file: dict[str, Any], data: dict[str, Any] | None = None) -> Any:
    """Return what a file's dictionary, or another in its place, is the state of."""
    stored = dictionary_of(file) if data is None else data
    return class_of(file).from_dict(stored, *_again(file))


def _again(file: dict[str, Any]) -> list[Any]:
    """Return what must be given again besides the state."""
    if "beside" in file:
        return [from_bytes(file["beside"])]
    return [RULES[file["rules"]]] if "rules" in file else []


def _rules(file: dict[str, Any]) -> dict[str, Any]:
    return {"groups": RULES[file["rules"]]} if "rules" in file else {}


def _loaded(file: dict[str, Any]) -> Any:
    return from_bytes(file) if "bytes" in file else from_dictionary(file)


WAYS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "bytes": from_bytes,
    "dictionary": from_dictionary,
    "load bytes": lambda file: load(unpacked(file["bytes"]), **_rules(file)),
    "load dictionary": lambda file: load(dictionary_of(file), **_rules(file)),
    "bytes again": lambda file: from_bytes(file, from_bytes(file).to_bytes()),
    "dictionary again": lambda file: from_dictionary(
        file, json.loads(json.dumps(from_dictionary(file).to_dict()))
    ),
    "copy": lambda file: _loaded(file).copy(),
    "pickle": lambda file: pickle.loads(pickle.dumps(_loaded(file))),
    "compile": lambda file: _loaded(file).compile(),
}
"""How a state comes back; a file lists the ways that it must come back."""

# ------------------------------------------------------------------------ continuing


class Playing:
    """An object that plays the steps of a file, one after the other."""

    def __init__(self, made: Any, tickets: list[dict[str, Any]]) -> None:
        self.made, self.answers = made, list[Any]()
        self.tickets = [class_of(kept).from_dict(kept["dictionary"]) for kept in tickets]

    def play(self, steps: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield each step and what is told of its answer."""
        for step in steps:
            found = self._done(step)
            self.answers.append(found)
            # To report an outcome returned nothing once, in most kinds.
            silent = step["do"] == "observe" and "answer" in step and step["answer"] is None
            yield step, told(None if silent or found is self.made else found)

    def _done(self, step: dict[str, Any]) -> Any:
        """Return the answer to a step, or the error of one that must be refused."""
        found = self.made
        for name in step["do"].split("."):
            found = getattr(found, name)
        if not callable(found):
            return found
        given = [self.read(part) for part in step.get("give", [])]
        try:
            return found(*given, **self._named(step))
        except CalibrantError as problem:
            if not step.get("refused"):
                raise
            return problem

    def _named(self, step: dict[str, Any]) -> dict[str, Any]:
        return {name: self.read(part) for name, part in step.get("with", {}).items()}

    def read(self, part: Any) -> Any:
        """Return the argument that was written so."""
        if isinstance(part, list):
            return [self.read(each) for each in part]
        if not isinstance(part, dict):
            return part
        [(kind, said)] = part.items()
        return getattr(self, f"_{kind}")(said)

    def _answer(self, step: int) -> Any:
        return self.answers[step]

    def _ticket(self, place: int) -> Any:
        return self.tickets[place]

    def _normal(self, said: list[float]) -> Distribution:
        return Distribution.normal(*said)

    def _quantiles(self, said: list[list[float]]) -> Distribution:
        return Distribution.from_quantiles(*said)

    def _samples(self, said: list[float]) -> Distribution:
        return Distribution.from_samples(said)

    def _period(self, said: list[Any]) -> Period:
        return Period(*said)

    def _mapping(self, said: dict[str, bool]) -> dict[str, bool]:
        return said

    def _seen(self, said: list[Any]) -> Any:
        from calibrant.kinds.numbers import Seen

        return Seen(*map(np.array, said))


SHOWN = {
    "Ticket": ("id", "number", "value", "outcome"),
    "KeyedTicket": ("id", "number", "key", "value", "outcome"),
    "GroupTicket": ("id", "number", "value", "outcome", "groups"),
    "OneVsRestTicket": ("id", "number", "value", "mean", "classwise"),
    "TopTicket": ("id", "number", "value", "mean", "top", "confidence"),
    "SimplexTicket": ("id", "number", "value", "mean"),
    "QuantileTicket": ("id", "number", "quantiles", "value", "mean"),
    "IntervalTicket": ("id", "number", "low", "high"),
    "Run": ("forecast", "mean"),
    "ClassRun": ("forecast", "mean"),
    "OneVsRestRun": ("forecast", "mean"),
    "TopRun": ("forecast", "mean"),
    "QuantileRun": ("quantiles",),
    "IntervalRun": ("low", "high", "covered"),
}
"""What is told of tickets and runs."""
WORDS = ("assumption", "theorem", "source")
"""What a certificate says of its bounds for people, which may be said better one day."""


def told(found: Any) -> Any:
    """Return an answer as JSON-ready data, floats to the last bit."""
    if isinstance(found, float | np.floating):
        return float(found).hex()
    if isinstance(found, np.generic | np.ndarray):
        return told(found.tolist())
    if isinstance(found, dict):
        return {str(name): told(part) for name, part in found.items() if name not in WORDS}
    if isinstance(found, list | tuple):
        return [told(part) for part in found]
    if isinstance(found, Distribution):
        return told(found.quantile([0.1, 0.3, 0.5, 0.7, 0.9]))
    if isinstance(found, CalibrantError):
        return {"refused": type(found).__name__}
    if type(found).__name__ in SHOWN:
        return _shown(found)
    if hasattr(found, "to_dict"):
        return told(found.to_dict())
    if is_dataclass(found):
        return {part.name: told(getattr(found, part.name)) for part in fields(found)}
    return found


def _shown(found: Any) -> dict[str, Any]:
    names = SHOWN[type(found).__name__]
    if isinstance(found, ClassTicket | NumberTicket) and found.outcome is not None:
        # One that was found again by its id knows no vectors and distributions any more.
        names = ("id", "number", "outcome")
    if isinstance(found, Ticket) and found.outcome is None:
        # A ticket that was found again by its id may not know its mean any more.
        names += ("mean",)
    return {name: told(getattr(found, name)) for name in names}
