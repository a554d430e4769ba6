"""Free917: questions, the relations of Freebase that answer them, and the words of both."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from calibrant.experiments.files import read_json, read_text, require
from calibrant.stream.failure import Unreadable

FOLDER: Final = "free917"
MENTION: Final = re.compile(r"fb:([a-z0-9_.]+)")
WORD: Final = re.compile(r"[a-z0-9]+")
ENDINGS: Final = (
    ("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")
)  # fmt: skip
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
        """What it is in all its fields, each tag with the field's first letter."""
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


def read_questions(data: Path, part: str) -> tuple[Question, ...]:
    """Return the questions of a part, ``"train"`` or ``"test"``, in the file's order."""
    path = require(data, f"{FOLDER}/free917.{part}.examples.canonicalized.json")
    try:
        return tuple(
            Question(told["utterance"], frozenset(MENTION.findall(told["targetFormula"])))
            for told in read_json(path)
        )
    except (KeyError, TypeError) as error:
        raise Unreadable(f"{path}: not a list of questions: {error!r}") from error


def read_schema(data: Path) -> Schema:
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
    for ending, rest in ENDINGS:
        left = len(word) - len(ending)
        if word.endswith(ending) and left >= SHORTEST and not (word.endswith("ss") and not rest):
            return word[:left] + rest
    return word
