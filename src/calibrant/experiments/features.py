"""What speaks for a relation: shared words, shared letters and, if there are any, embeddings."""

from __future__ import annotations

import importlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Reals
from calibrant.errors import MissingExtra
from calibrant.experiments.embedding import embed
from calibrant.experiments.relations import Question, Relation

Floats = NDArray[np.float32]
FIELDS: Final = ("property", "type", "domain", "target")
LETTERS: Final = 4
"""Letters of a snippet."""
SCALES: Final = {"sum": 0.1, "letters": 3.0, "embedding": 5.0}
"""Chosen so that every feature is of the order of 1."""


def scipy(part: str) -> Any:
    """Return a module of SciPy, or say what is missing."""
    try:
        return importlib.import_module(f"scipy.{part}")
    except ModuleNotFoundError as error:
        told = 'the ranker needs scipy: pip install "calibrant[experiments]"'
        raise MissingExtra(told) from error


def sparse() -> Any:
    """Return SciPy's module of sparse matrices."""
    return scipy("sparse")


def agreements(
    questions: Sequence[Question], relations: Sequence[Relation], *, embeddings: bool
) -> Floats:
    """Return the features of every question with every relation, along the last axis."""
    parts: list[NDArray[Any]] = list(_shared_words(questions, relations))
    parts.append(_shared_letters(questions, relations))
    if embeddings:
        parts.append(_close_meanings(questions, relations))
    return np.stack([part.astype(np.float32) for part in parts], axis=-1)


def question_tags(question: Question) -> frozenset[str]:
    """Return words and pairs of neighbours, and a tag that all questions share."""
    framed = ("^", *question.words, "$")
    pairs = {f"{a} {b}" for a, b in itertools.pairwise(framed)}
    return frozenset({"", *question.words} | pairs)


def tag_matrix(rows: Sequence[Collection[str]], known: Sequence[str]) -> Any:
    """Return a sparse matrix with a row of length 1 for each collection of tags.

    >>> tag_matrix([{"a", "b"}, {"a"}], ["a", "b"]).toarray().round(3).tolist()
    [[0.707, 0.707], [1.0, 0.0]]
    """
    found = _incidence(rows, known)
    lengths = np.sqrt(np.maximum(np.asarray(found.sum(axis=1)).ravel(), 1.0))
    return (sparse().diags(1.0 / lengths) @ found).tocsr()


def _incidence(rows: Sequence[Collection[str]], known: Sequence[str]) -> Any:
    places = {tag: k for k, tag in enumerate(known)}
    kept = [sorted(places[tag] for tag in tags if tag in places) for tags in rows]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in kept])])
    ones = np.ones(int(starts[-1]))
    told = (ones, [place for row in kept for place in row], starts)
    return sparse().csr_matrix(told, shape=(len(rows), len(known)))


def _shared_words(questions: Sequence[Question], relations: Sequence[Relation]) -> Iterator[Reals]:
    """Yield, field by field, the weight of the words shared, alone and as shares."""
    fields = {field: [relation.words(field) for relation in relations] for field in FIELDS}
    known, weights = _weigh(fields["property"], fields["type"])
    asked = _incidence([set(question.words) for question in questions], known)
    total_asked = np.maximum(asked @ weights, 1e-9)[:, None]
    for rows in fields.values():
        held = _incidence(rows, known)
        shared = (asked @ sparse().diags(weights) @ held.T).toarray()
        total = np.maximum(held @ weights, 1e-9)[None, :]
        yield from (shared * SCALES["sum"], shared / total, shared / np.sqrt(total * total_asked))


def _weigh(*fields: Sequence[frozenset[str]]) -> tuple[list[str], Reals]:
    """Return all words of some fields, and how rare each is."""
    rows = [frozenset().union(*parts) for parts in zip(*fields, strict=True)]
    seen = Counter(word for row in rows for word in row)
    known = sorted(seen)
    return known, np.array([math.log(len(rows) / (1.0 + seen[word])) for word in known])


def _shared_letters(questions: Sequence[Question], relations: Sequence[Relation]) -> Reals:
    """Return the cosine of the snippets of questions and of properties."""
    held = [snippets(" ".join(_properties(relation))) for relation in relations]
    seen = Counter(snippet for row in held for snippet in row)
    known = sorted(seen)
    weights = sparse().diags([math.log(len(held) / seen[snippet]) for snippet in known])
    asked = [snippets(question.text) for question in questions]
    a, b = (_unit(_incidence(rows, known) @ weights) for rows in (asked, held))
    return np.asarray((a @ b.T).toarray() * SCALES["letters"])


def _unit(rows: Any) -> Any:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sparse().diags(1.0 / np.maximum(lengths, 1e-9)) @ rows


def snippets(text: str) -> frozenset[str]:
    """Return all runs of four signs, with a space before and after the text.

    >>> sorted(snippets("City-2"))
    [' cit', 'city', 'ity ', 'ty 2', 'y 2 ']
    """
    plain = f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "
    return frozenset(plain[k : k + LETTERS] for k in range(len(plain) - LETTERS + 1))


def _properties(relation: Relation) -> list[str]:
    return [name.rpartition(".")[2].replace("_", " ") for name in relation.names]


def _close_meanings(
    questions: Sequence[Question], relations: Sequence[Relation]
) -> NDArray[np.float32]:
    """Return the cosine of each question with the closer name of each relation."""
    asked = embed([question.text for question in questions])
    titles = [_titles(relation) for relation in relations]
    held = embed([title for row in titles for title in row])
    starts = np.cumsum([0, *(len(row) for row in titles[:-1])])
    return np.maximum.reduceat(asked @ held.T, starts, axis=1) * np.float32(SCALES["embedding"])


def _titles(relation: Relation) -> list[str]:
    return [" ".join(name.split(".")[1:]).replace("_", " ") for name in relation.names]
