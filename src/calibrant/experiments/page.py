"""One self-contained page: the claim, our number and the verdict side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from calibrant.experiments.experiment import VERDICTS, Experiment, Result
from calibrant.plot.canvas import svg
from calibrant.plot.vector import inline
from calibrant.report.page import Figure, filled

if TYPE_CHECKING:
    pass

MARKS: Final = {True: "yes", False: "no", None: "open"}
"""Classes of the page for the verdicts."""


@dataclass(frozen=True, eq=False)
class Chapter:
    """An experiment that was run.

    Attributes
    ----------
    experiment, result
        Which, and what came of it.
    seconds
        How long it took.
    """

    experiment: Experiment
    result: Result
    seconds: float

    @property
    def headline(self) -> str:
        """How many claims hold, in words."""
        return headline([self])

    def figures(self) -> list[Figure]:
        """Return the pictures as elements of the page."""
        return [
            Figure(
                panels.title,
                panels.caption,
                inline(svg(panels.draw()), name, panels.title, panels.caption),
            )
            for name, panels in self.result.figures.items()
        ]


def headline(chapters: Sequence[Chapter]) -> str:
    """Return how many claims hold, do not, and could not be looked at.

    Examples
    --------
    >>> from calibrant.experiments import experiments
    >>> from calibrant.experiments.experiment import below, unmeasured
    >>> claims = (below("a", "", 1.0, 2.0), below("b", "", 3.0, 2.0), unmeasured("c", "", ""))
    >>> headline([Chapter(experiments.get("qa"), Result(claims), 1.0)])
    '1 of 3 claims holds, 1 does not, 1 was not measured'
    """
    found = Counter(claim.holds for each in chapters for claim in each.result.claims)
    total = sum(found.values())
    if not total:
        return "nothing could be measured here"
    told = [f"{found[True]} of {total} claims {_verb(found[True], 'hold')}"]
    if found[False]:
        told.append(f"{found[False]} {'does' if found[False] == 1 else 'do'} not")
    if found[None]:
        told.append(f"{found[None]} {'was' if found[None] == 1 else 'were'} not measured")
    return ", ".join(told)


def _verb(many: int, word: str) -> str:
    return f"{word}s" if many == 1 else word


def render(chapters: Sequence[Chapter], *, command: str | None = None) -> str:
    """Return the page."""
    return filled(
        "the page needs",
        "calibrant.experiments",
        "reproduction.html",
        extra="experiments",
        title="Estimating uncertainty online against an adversary, run again",
        headline=headline(chapters),
        chapters=chapters,
        seconds=sum(each.seconds for each in chapters),
        command=command,
        marks=MARKS,
        verdicts=VERDICTS,
    )
