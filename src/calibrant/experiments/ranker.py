"""A log-linear ranker of relations, and the features that speak for one."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Reals
from calibrant.errors import needed
from calibrant.experiments.embedding import Floats, embed
from calibrant.experiments.streams import Question, Relation, Schema

Questions: TypeAlias = Sequence[Question]
Relations: TypeAlias = Sequence[Relation]
FIELDS: Final = ("property", "type", "domain", "target")
LETTERS: Final = 4
"""Letters of a snippet."""
SCALES: Final = {"sum": 0.1, "letters": 3.0, "embedding": 5.0}
"""Chosen so that every feature is of the order of 1."""


def scipy(part: str) -> Any:
    """Return a module of SciPy, or say what is missing."""
    return needed(f"scipy.{part}", "the ranker needs scipy", "experiments")


def sparse() -> Any:
    """Return SciPy's module of sparse matrices."""
    return scipy("sparse")


def agreements(questions: Questions, relations: Relations, *, embeddings: bool) -> Floats:
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
    return _unit(_incidence(rows, known), least=1.0).tocsr()


def _incidence(rows: Sequence[Collection[str]], known: Sequence[str]) -> Any:
    places = {tag: k for k, tag in enumerate(known)}
    kept = [sorted(places[tag] for tag in tags if tag in places) for tags in rows]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in kept])])
    ones = np.ones(int(starts[-1]))
    told = (ones, [place for row in kept for place in row], starts)
    return sparse().csr_matrix(told, shape=(len(rows), len(known)))


def _shared_words(questions: Questions, relations: Relations) -> Iterator[Reals]:
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


def _shared_letters(questions: Questions, relations: Relations) -> Reals:
    """Return the cosine of the snippets of questions and of properties."""
    words = ((name.rpartition(".")[2].replace("_", " ") for name in r.names) for r in relations)
    held = [snippets(" ".join(row)) for row in words]
    seen = Counter(snippet for row in held for snippet in row)
    known = sorted(seen)
    weights = sparse().diags([math.log(len(held) / seen[snippet]) for snippet in known])
    asked = [snippets(question.text) for question in questions]
    a, b = (_unit(_incidence(rows, known) @ weights) for rows in (asked, held))
    return np.asarray((a @ b.T).toarray() * SCALES["letters"])


def _unit(rows: Any, least: float = 1e-9) -> Any:
    """Return rows of length 1; one that is shorter than ``least`` stays short."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sparse().diags(1.0 / np.maximum(lengths, least)) @ rows


def snippets(text: str) -> frozenset[str]:
    """Return all runs of four signs, with a space before and after the text.

    >>> sorted(snippets("City-2"))
    [' cit', 'city', 'ity ', 'ty 2', 'y 2 ']
    """
    plain = f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "
    return frozenset(plain[k : k + LETTERS] for k in range(len(plain) - LETTERS + 1))


def _close_meanings(questions: Questions, relations: Relations) -> Floats:
    """Return the cosine of each question with the closer name of each relation."""
    asked = embed([question.text for question in questions])
    names = (relation.names for relation in relations)
    titles = [[" ".join(name.split(".")[1:]).replace("_", " ") for name in row] for row in names]
    held = embed([title for row in titles for title in row])
    starts = np.cumsum([0, *(len(row) for row in titles[:-1])])
    return np.maximum.reduceat(asked @ held.T, starts, axis=1) * np.float32(SCALES["embedding"])


PENALTY: Final = 1e-3
"""Of the squared weights of the dense features."""
STEP: Final = 60.0
MOMENTUM: Final = 0.8
EPOCHS: Final = 80
"""Over the pass, what it says is then nearly calibrated: little more than noise is left."""
OVERTRAINED: Final = 400
"""Epochs from which on the ranker only grows surer."""
SEEN: Final = 2
"""Questions, or relations, that must have a tag for it to have weights."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a ranker says to each question, those it was trained on first.

    Attributes
    ----------
    relation
        The name of its first choice.
    probability
        Of the first choice.
    margin
        The log-linear score of the first choice, less that of the second.
    right
        1 where the logical form mentions the first choice.
    """

    relation: tuple[str, ...]
    probability: Reals
    margin: Reals
    right: Bits


def rank(
    train: Sequence[Question],
    test: Sequence[Question],
    schema: Schema,
    *,
    embeddings: bool,
    tell: Callable[[str], None] | None = None,
) -> tuple[Ranking, Ranking]:
    """Train on some questions and answer all; return what the ranker says, and says over-trained.

    Parameters
    ----------
    train, test
        The questions.
    schema
        The relations to rank.
    embeddings
        Whether sentence embeddings are among the features.
    tell
        Called with a sentence before each part.

    Notes
    -----
    ``P(r | q)`` is proportional to ``exp(u . f(q, r) + a(q) . W b(r))``: f holds a dozen
    dense agreements of question and relation, a and b the tags of each, W a weight for every
    pair of tags.  u is fitted first, by maximum likelihood; then W by gradient ascent with
    momentum, and stopped early.  A question is right if its logical form mentions the
    relation or its inverse: relation accuracy, since there is no Freebase here to ask for
    the answer.
    """
    say = tell or (lambda said: None)
    say("features of the ranker")
    made = _Ranker([*train, *test], len(train), schema, embeddings)
    say("training the ranker")
    made.fit_agreements()
    made.ascend(EPOCHS)
    first = made.ranking()
    made.ascend(OVERTRAINED - EPOCHS)
    return first, made.ranking()


class _Ranker:
    """The features of all questions, and the weights so far."""

    def __init__(self, questions: Questions, seen: int, schema: Schema, embeddings: bool) -> None:
        self.schema = schema
        self.answers = [schema.answers(question) for question in questions]
        # A question whose relations the schema lacks teaches nothing.
        self.lessons = [k for k in range(seen) if self.answers[k]]
        self.features = agreements(questions, schema.relations, embeddings=embeddings)
        self.tags = _by_tag([question_tags(question) for question in questions], seen)
        self.held = _by_tag([each.tags for each in schema.relations], len(schema.relations))
        self.truth = _truth([self.answers[k] for k in self.lessons], len(schema.relations))
        self.scores = np.zeros(self.features.shape[:2], np.float32)
        self.weights = np.zeros((self.tags.shape[1], self.held.shape[1]), np.float32)
        self.speed = np.zeros_like(self.weights)

    def fit_agreements(self) -> None:
        """Fit the weights of the dense features."""
        taught = self.features[self.lessons]
        count = taught.shape[-1]
        options = {"maxiter": 100}
        found = scipy("optimize").minimize(
            _loss, np.ones(count), (taught, self.truth), "L-BFGS-B", True, options=options
        )
        self.scores = self.features @ found.x.astype(np.float32)

    def ascend(self, epochs: int) -> None:
        """Take that many steps up the likelihood of the training questions."""
        tags, held = self.tags[self.lessons], self.held
        for _ in range(epochs):
            ahead = self.weights + MOMENTUM * self.speed
            push = _push(tags @ ahead @ held.T + self.scores[self.lessons], self.truth)
            uphill = tags.T @ (push @ held) / len(self.lessons)
            self.speed = np.asarray(MOMENTUM * self.speed + STEP * uphill, np.float32)
            self.weights += self.speed

    def ranking(self) -> Ranking:
        """Return what the ranker says at present."""
        total = np.asarray(self.tags @ self.weights @ self.held.T + self.scores, np.float64)
        first, best = total.argmax(axis=1), np.partition(total, -2, axis=1)[:, -2:]
        right = [int(k in held) for k, held in zip(first, self.answers, strict=True)]
        return Ranking(
            tuple(self.schema.relations[k].names[0] for k in first),
            _softmax(total).max(axis=1),
            np.diff(best, axis=1)[:, 0],
            np.array(right, np.uint8),
        )


def _loss(u: Reals, features: NDArray[np.float32], truth: Any) -> tuple[float, Reals]:
    """Return the penalised log loss of the dense features, and its gradient."""
    chances = _softmax(features @ u.astype(np.float32))
    held = np.asarray(truth.multiply(chances).sum(axis=1)).ravel()
    push = np.asarray(truth.multiply(chances).multiply(1.0 / held[:, None]) - chances)
    uphill = np.einsum("ij,ijk->k", push, features) / len(held)
    return float(-np.log(held).mean() + PENALTY / 2.0 * u @ u), PENALTY * u - uphill


def _push(total: NDArray[np.float32], truth: Any) -> NDArray[np.float32]:
    """Return the gradient of the log likelihood in the scores."""
    chances = _softmax(np.asarray(total))
    held = truth.multiply(chances).tocsr()
    share = sparse().diags(1.0 / np.asarray(held.sum(axis=1)).ravel())
    return np.asarray((share @ held) - chances, np.float32)


def _softmax(scores: NDArray[Any]) -> NDArray[Any]:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _by_tag(rows: Sequence[frozenset[str]], taught: int) -> Any:
    """Return rows by those tags that are frequent in the first of them."""
    seen = Counter(tag for row in rows[:taught] for tag in row)
    known = sorted(tag for tag, count in seen.items() if count >= SEEN)
    return tag_matrix(rows, known).astype(np.float32)


def _truth(answers: Sequence[tuple[int, ...]], many: int) -> Any:
    rows = [k for k, held in enumerate(answers) for _ in held]
    places = [place for held in answers for place in held]
    ones = np.ones(len(rows), np.float32)
    return sparse().csr_matrix((ones, (rows, places)), shape=(len(answers), many))
