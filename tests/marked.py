"""Which files cannot hold a test that is chosen by its marks: they need not be imported."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import product

STANDS_FOR = {"alone": "base", "base": "base", "once": "once", "plain": "plain", "slow": "slow"}
"""Marks that choose tests, and the word by which a file that holds such tests has to say so."""
MARKS = re.compile(r"mark\.(base|once|plain|slow)\b")
WHOLE = re.compile(r"^pytestmark = .*", re.MULTILINE)
"""The line that marks all tests of a file."""


def may_choose(chosen: str, text: str, wholly: Collection[str] = ()) -> bool:
    """Say whether an expression of marks may choose a test of the file with this text.

    All its tests have the marks that ``wholly`` lists.  ``alone`` is given by name: no file has it
    wholly.
    """
    said, whole = set(MARKS.findall(text)), set(wholly)
    for line in WHOLE.findall(text):
        whole.update(MARKS.findall(line))
    ways = [
        [True] if mark in whole else [True, False] if word in said else [False]
        for mark, word in STANDS_FOR.items()
    ]
    try:
        return any(
            eval(chosen, {}, dict(zip(STANDS_FOR, way, strict=True))) for way in product(*ways)
        )
    except (NameError, SyntaxError):
        return True
