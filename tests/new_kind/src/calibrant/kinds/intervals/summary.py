"""A run of intervals: how often they covered, and how wide they were."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from calibrant._version import __version__
from calibrant.core.arrays import Reals
from calibrant.core.codec import Document
from calibrant.regression import ConformalInterval
from calibrant.summary import VERSION, AnySummary, Told
from calibrant.summary.summary import bare

NAMES: Final = ("raw", "forecast")
"""Points, which are intervals without a width, and the intervals around them."""


class IntervalCollector:
    """Count what points and intervals covered, and add up widths of those that end."""

    def __init__(self) -> None:
        self.rounds, self.ending, self.width = 0, 0, 0.0
        self.covered = np.zeros(len(NAMES), np.int64)

    def update(self, points: Reals, low: Reals, high: Reals, outcomes: Reals) -> None:
        """Add rounds."""
        self.rounds += len(outcomes)
        inside = (outcomes == points, (low <= outcomes) & (outcomes <= high))
        self.covered += [int(each.sum()) for each in inside]
        for width in filter(math.isfinite, (high - low).tolist()):
            self.ending, self.width = self.ending + 1, self.width + width

    def document(self) -> Document:
        """Return the whole state."""
        counts = np.array([self.rounds, self.ending, *self.covered], np.int64)
        words = np.append(counts, np.array([self.width]).view(np.int64))
        return Document("collector of intervals", {}, {"words": words})

    @classmethod
    def from_document(cls, document: Document) -> Self:
        """Return what goes on where :meth:`document` was called."""
        made, words = cls(), document.arrays["words"]
        made.rounds, made.ending = words[:2].tolist()
        made.covered, made.width = words[2:4].copy(), float(words[4:].view(np.float64)[0])
        return made


@dataclass(frozen=True, eq=False)
class IntervalSummary(AnySummary):
    """A run of intervals from end to end."""

    @classmethod
    def of(cls, collector: IntervalCollector, made: ConformalInterval, told: Told) -> Self:
        """Return the summary of everything that was collected."""
        rounds = max(collector.rounds, 1)
        covered = (collector.covered / rounds).tolist()
        widths = 0.0, collector.width / max(collector.ending, 1)
        pairs = zip(NAMES, covered, widths, strict=True)
        numbers = {
            "version": VERSION,
            "calibrant": __version__,
            "kind": "intervals",
            "method": made.method,
            "seed": told.seed,
            "n_rounds": collector.rounds,
            **told.counts,
            "aim": made.coverage,
            **{name: {"covered": part, "width": width} for name, part, width in pairs},
            "certificate_holds": made.certificate().holds,
            "timing": dict(told.timing),
        }
        own = {"method": made.method, "coverage": made.coverage, "seed": told.seed}
        return cls(settings={**own, **told.settings}, summary=bare(numbers))

    def _detail(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _read_detail(cls, detail: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        return {}
