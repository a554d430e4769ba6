"""Docstrings name their subject: no pronoun in a first sentence without a noun before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.base, pytest.mark.once]

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
Functions = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

IMPERSONAL = re.compile(r"\bit (happened|was said)\b")
"""Where nothing is stood for, as where it rains."""
PRONOUN = re.compile(
    r"\b(it|they|them|itself|themselves)\b"
    r"|\b(these|those)(?=[,.;:)]|$| (of|in|at|on|by|are|is|were|was|and|or|to|with|from|that)\b)",
    re.IGNORECASE,
)
BEGINNING = re.compile(r"(It|They|These|Those|This|Its|Their)\b")
KEEPS = re.compile(r"\bwhat (it|they) keeps?\b")
SMALL = """
a about above after again all also always among an and any apart are as asked at away back be
because been before behind below beside both but by can come comes could did do does done each
else every everything few first for from given gives go goes had has have here how if in into is
kept known last later least less let like made make makes many may more most much must need
needed needs neither never new next no nobody none nor not nothing now of off often on once one
only or other others out over own same say says seen several should since so some something soon
still such take taken takes than that the then there this those these through to together told
too two under unless until up used was well were what whatever when where which while who whole
whose will with within without worth would yet
"""
"""Words that are no nouns, and stand before pronouns."""


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line."""
    return re.split(r"\.(?:\s|$)", " ".join(text.split()))[0]


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line and first sentence of each docstring, and whether it is a function's."""
    for node in ast.walk(tree):
        if not isinstance(node, Documented | ast.If):
            continue
        for place, each in enumerate(node.body):
            value = each.value if isinstance(each, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                verb = isinstance(node, Functions) and place == 0
                yield each.lineno, first_sentence(value.value), verb


def lacks_a_noun(sentence: str, verb: bool) -> bool:
    """Say whether a pronoun of a sentence has no noun before it; of a function's, a verb is first.

    >>> lacks_a_noun("Return all of it", True), lacks_a_noun("Return a row, or part of it", True)
    (True, False)
    """
    if BEGINNING.match(sentence) or KEEPS.search(sentence):
        return True
    sentence = IMPERSONAL.sub("", sentence)
    for found in PRONOUN.finditer(sentence):
        before = re.findall(r"[a-z_0-9]+", sentence[: found.start()].lower())
        if not set(before[1:] if verb else before) - set(SMALL.split()):
            return True
    return False


def test_the_rule_finds_what_it_should() -> None:
    bad = ["Return all of it", "What it keeps", "All of them", "Which of these are open"]
    assert [lacks_a_noun(each, each.startswith("Return")) for each in bad] == [True] * 4
    good = ["Names that were given up: they still work", "Return a row of these words"]
    assert [lacks_a_noun(each, each.startswith("Return")) for each in good] == [False] * 2


def test_first_sentences_of_docstrings_name_their_subject() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {sentence}"
        for path in SOURCES
        for line, sentence, verb in docstrings(ast.parse(path.read_text()))
        if lacks_a_noun(sentence, verb)
    ]
    assert found == []
