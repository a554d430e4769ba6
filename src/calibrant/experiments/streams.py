"""What is read from the data directory: confidences with outcomes, questions and relations."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from calibrant.core.arrays import Bits, Reals
from calibrant.datasets.loaders import CONFIDENCES, numbers
from calibrant.datasets.shelf import path
from calibrant.errors import MissingData
from calibrant.stream.failure import Unreadable

Rows: TypeAlias = list[dict[str, str]]


def require(data: Path | None, name: str) -> Path:
    """Return the path of a file below the data directory, or say how to get it.

    Examples
    --------
    >>> require(Path("nowhere"), "free917/free917_forecasts.csv.gz")
    Traceback (most recent call last):
    calibrant.stream.failure.Unreadable: nowhere/free917/free917_forecasts.csv.gz: not there;
    leave --data out to use the bundled data
    >>> require(None, "free917/free917_forecasts.csv.gz").name
    'free917_forecasts.csv.gz'
    """
    try:
        return path(name, data)
    except MissingData as error:
        told = "" if data is None else "; leave --data out to use the bundled data"
        raise Unreadable(f"{error}{told}") from error


def read_text(path: Path) -> str:
    """Return a text file, packed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as lines:
            return str(lines.read())
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path}: cannot be read: {error}") from error


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise Unreadable(f"{path}: not JSON: {error}") from error


def read_table(path: Path, *needed: str) -> Rows:
    """Return the rows of a comma-separated file, packed or not, that has these columns."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    rows = list(reader)
    for name in needed:
        if name not in (reader.fieldnames or ()):
            raise Unreadable(f"{path}: no column {name!r}")
    return rows


FOLDER: Final = "free917"
MENTION: Final = re.compile(r"fb:([a-z0-9_.]+)")
WORD: Final = re.compile(r"[a-z0-9]+")
ENDINGS: Final = {"ies": "y", "sses": "ss", "ing": "", "ed": "", "es": "e", "s": ""}
SHORTEST: Final = 3
"""Letters that must be left of a word."""


@dataclass(frozen=True)
class Question:
    """A question, and the names that its logical form mentions."""

    text: str
    mentions: frozenset[str]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The stems of its words, in order."""
        return tuple(words_of(self.text))


@dataclass(frozen=True)
class Relation:
    """A relation of Freebase together with its inverse, if it has one.

    Attributes
    ----------
    names
        One or two, such as ``book.author.works_written`` and ``book.written_work.author``.
    targets
        The types of what they lead to.
    """

    names: tuple[str, ...]
    targets: tuple[str, ...]

    def words(self, field: str) -> frozenset[str]:
        """Return the stems in a field: ``property``, ``type``, ``domain`` or ``target``."""
        texts = {
            "property": (name.rpartition(".")[2] for name in self.names),
            "type": (" ".join(name.split(".")[1:-1]) for name in self.names),
            "domain": (name.partition(".")[0] for name in self.names),
            "target": (target.rpartition(".")[2] for target in self.targets),
        }[field]
        return frozenset(word for text in texts for word in words_of(text))

    @property
    def tags(self) -> frozenset[str]:
        """Tags of the candidate in all its fields, each with the field's first letter."""
        fields = ("property", "type", "target")
        tags = {f"{field[0]}:{word}" for field in fields for word in self.words(field)}
        tags |= {f"d:{name.partition('.')[0]}" for name in self.names}
        tags |= {f"k:{name.rpartition('.')[0]}" for name in self.names}
        return frozenset(tags | {f"x:{target}" for target in self.targets})


@dataclass(frozen=True)
class Schema:
    """All relations, a relation and its inverse counted once."""

    relations: tuple[Relation, ...]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the relation of each name stands."""
        return {name: k for k, each in enumerate(self.relations) for name in each.names}

    def answers(self, question: Question) -> tuple[int, ...]:
        """Return where the relations stand that a question's logical form mentions."""
        found = {self.places[name] for name in question.mentions if name in self.places}
        return tuple(sorted(found))


def read_questions(data: Path | None, part: str) -> tuple[Question, ...]:
    """Return the questions of a part, ``"train"`` or ``"test"``, in the file's order."""
    path = require(data, f"{FOLDER}/free917.{part}.examples.canonicalized.json")
    try:
        return tuple(
            Question(told["utterance"], frozenset(MENTION.findall(told["targetFormula"])))
            for told in read_json(path)
        )
    except (KeyError, TypeError) as error:
        raise Unreadable(f"{path}: not a list of questions: {error!r}") from error


def read_schema(data: Path | None) -> Schema:
    """Return the relations of Freebase."""
    path = require(data, f"{FOLDER}/freebase_schema.txt.gz")
    found = {name: (target, inverse) for name, target, inverse in _lines(path)}
    members: defaultdict[str, set[str]] = defaultdict(set)
    for name, (_, inverse) in found.items():
        pair = {name, inverse} if inverse in found else {name}
        members[min(pair)] |= pair
    relations = (
        Relation(tuple(sorted(names)), tuple(sorted({found[name][0] for name in names})))
        for _, names in sorted(members.items())
    )
    return Schema(tuple(relations))


def _lines(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, target and inverse of each relation."""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.startswith("\t"):
            continue
        parts = line.split("\t")
        if len(parts) != 5:
            raise Unreadable(f"{path}: line {number} is not a relation: {line!r}")
        yield parts[1], parts[2], parts[4]


def words_of(text: str) -> list[str]:
    """Return the stems of the words of a text.

    >>> words_of("what companies are traded_on the NYSE")
    ['what', 'company', 'are', 'trad', 'on', 'the', 'nyse']
    """
    return [stem(word) for word in WORD.findall(text.lower().replace("_", " "))]


def stem(word: str) -> str:
    """Return a word without its ending.

    >>> stem("cities"), stem("founded"), stem("glass"), stem("is")
    ('city', 'found', 'glass', 'is')
    """
    for ending, rest in ENDINGS.items():
        left = len(word) - len(ending)
        if word.endswith(ending) and left >= SHORTEST and not (word.endswith("ss") and not rest):
            return word[:left] + rest
    return word


MODELS: Final = ("dense", "lex", "lex_oof")
END: Final = "_confidence"
SUFFIX: Final = ".csv.gz"


@dataclass(frozen=True, eq=False)
class Stream:
    """Raw forecasts and outcomes in the order in which they came."""

    name: str
    raw: Reals
    outcomes: Bits

    def __len__(self) -> int:
        return len(self.raw)


def sound(name: str, raw: Reals, outcomes: Reals) -> Stream:
    """Return a stream of the rows in which both columns are what they should be.

    >>> sound("three", np.array([0.5, np.nan, 0.9]), np.array([1.0, 0.0, -1.0])).raw.tolist()
    [0.5]
    """
    kept = (raw >= 0.0) & (raw <= 1.0) & ((outcomes == 0.0) | (outcomes == 1.0))
    return Stream(name, raw[kept], (outcomes[kept] == 1.0).astype(np.uint8))


def free917(data: Path | None) -> Iterator[Stream]:
    """Yield the shipped forecasts of three rankers over the 917 questions."""
    needed = [f"{model}_{column}" for model in MODELS for column in ("p", "correct")]
    rows = read_table(require(data, "free917/free917_forecasts.csv.gz"), *needed)
    for model in MODELS:
        right = numbers(rows, f"{model}_correct")
        yield sound(f"free917 {model}", numbers(rows, f"{model}_p"), right)


def mmlu_pro(data: Path | None) -> Iterator[Stream]:
    """Yield what six models said of their answers, and how likely their words were."""
    for place in sorted(require(data, "llm_mmlu_pro").glob(f"*{SUFFIX}")):
        rows = read_table(place, "correct", *CONFIDENCES.values())
        for told, column in CONFIDENCES.items():
            raw = numbers(rows, column)
            if not np.isnan(raw).all():
                name = f"mmlu pro {place.name.removesuffix(SUFFIX)} {told}"
                yield sound(name, raw, numbers(rows, "correct"))


def multiple_choice(data: Path | None) -> Iterator[Stream]:
    """Yield the largest probability of each of five models on five sets of questions."""
    for place in sorted(require(data, "llm_multiple_choice").glob(f"*{SUFFIX}")):
        rows = read_table(place)
        for column in (name for name in rows[0] if name.endswith(END)):
            model = column.removesuffix(END)
            name = f"{place.name.removesuffix(SUFFIX)} {model}"
            yield sound(name, numbers(rows, column), numbers(rows, f"{model}_correct"))
