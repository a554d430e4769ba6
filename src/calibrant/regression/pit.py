"""One binary calibrator a level, fed with whether the PIT was below it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.bounds import Bound
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.errors import InvalidInput
from calibrant.recalibrate import Certificate, Recalibrator
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.level_method import LevelMethod, Played, Said, Ties, events_of
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import ask
from calibrant.regression.tables import Reals

__all__ = ["LevelCalibrator", "Pit"]

CENTRE: Final = 10_000
"""Common denominator of the levels at which calibrators start, so that gaps stay exact."""
TAILS: Final = (0.0001, 0.001, 0.01, 0.03, 0.97, 0.99, 0.999, 0.9999)
"""Raw levels that are learned besides: where the raw distributions are too narrow, the outer
quantiles of the recalibrated ones lie there."""


class LevelCalibrator(Recalibrator):
    """The calibrator of one level: one bucket, which starts as if the level were right."""

    __slots__ = ("_level",)

    kind: ClassVar = "level"

    def __init__(self, level: float, method: str, **options: Any) -> None:
        self._level = level
        super().__init__(method, buckets=1, **options)

    def _centres(self) -> list[Fraction]:
        return [Fraction(round(self._level * CENTRE), CENTRE)]

    def _more_state(
        self, flat: NDArray[np.int64]
    ) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        return {"level": self._level}, {}

    def _restore(self, document: Document) -> None:
        self._level = check.probability(document.settings["level"], "level")
        super()._restore(document)


@quantile_methods.add("pit")
class Pit(LevelMethod):
    """Learn for each level how often outcomes really fall below the raw quantile there.

    The raw distribution says that the outcome is below its quantile at p with probability p; a
    two-point calibrator turns that into a probability that is right.  The recalibrated CDF goes
    through these, sorted.  Eight levels in the tails are learned besides.

    Parameters
    ----------
    calibrator, **parameters
        Name of a calibrator and its own parameters (``resolution``, ``grid``...).
    prior
        Pseudo-rounds with which each grid point starts, as if the raw quantile were right.
    """

    name = "pit"
    guarantee = "of the calibrator, for each level: E C2 of the chances drawn there"
    assumption = "the adversary does not see the draw"
    reference = "Kuleshov, Fenner and Ermon (2018); Kuleshov and Ermon (2017)"

    def __init__(
        self,
        levels: Reals,
        secret: bytes,
        max_open: int,
        *,
        calibrator: str = "foster_hart",
        prior: int = 1,
        resolution: int = 50,
        **parameters: Any,
    ) -> None:
        seed = int.from_bytes(secret, "little", signed=True)
        shared = {"prior": prior, "max_open": max_open, "resolution": resolution} | parameters
        _check_name(calibrator)
        self.levels = levels
        self._learned = np.union1d(levels, TAILS)
        self._engines = [
            LevelCalibrator(level, calibrator, seed=seed, key=k, **shared)
            for k, level in enumerate(self._learned.tolist())
        ]
        self._options = {"calibrator": calibrator, "prior": prior, "resolution": resolution}
        self._options |= parameters
        self._hits = np.zeros(len(levels), np.int64)

    @property
    def width(self) -> int:
        """All raw levels, to learn from, and the positions to announce."""
        return len(self._learned) + len(self.levels)

    def announce(self) -> Said:
        """Draw a chance for each raw level."""
        pairs = zip(self._engines, self._learned.tolist(), strict=True)
        made = [engine.forecast(p) for engine, p in pairs]
        drawn, mean = [t.value for t in made], [t.mean for t in made]
        # Every calibrator sees every round: their tickets have the same number.
        return self._said(np.array(drawn), np.array(mean), made[0].number)

    def look(self) -> Said:
        """Return what would be drawn."""
        pairs = zip(self._engines, self._learned.tolist(), strict=True)
        drawn = np.array([engine.predict_one(p) for engine, p in pairs])
        return self._said(drawn, drawn, 0)

    def _said(self, drawn: Reals, mean: Reals, slot: int) -> Said:
        outer = np.sort(drawn)
        asked = np.append(self._learned, self._positions(outer[None])[0])
        return Said(asked, self._learned, outer, np.sort(mean), drawn, slot)

    def _positions(self, outer: Reals) -> Reals:
        """Return which raw levels become ours: where the moved levels reach them."""
        knots = np.hstack([np.zeros((len(outer), 1)), outer, np.ones((len(outer), 1))])
        raw = np.tile([0.0, *self._learned.tolist(), 1.0], (len(outer), 1))
        return ask(raw, knots, self.levels[None])[0]

    def learn(self, slot: int, events: list[int]) -> None:
        """Tell each calibrator whether the outcome was below its raw quantile."""
        many = len(self._learned)
        for engine, event in zip(self._engines, events[:many], strict=True):
            engine.observe(slot, event)
        self._hits += np.array(events[many:])

    def play(self, raw: Distributions, outcomes: Reals, first: int, ties: Ties) -> Played:
        """Play a batch level by level."""
        events = self._events(raw, outcomes, self._learned[None], first, ties)[1]
        drawn, mean = np.empty(events.shape), np.empty(events.shape)
        for k, level in enumerate(self._learned.tolist()):
            run = self._engines[k].replay(np.full(len(outcomes), level), events[:, k])
            drawn[:, k], mean[:, k] = run.forecast, run.mean
        outer = np.sort(drawn, axis=1)
        quantiles, covered = self._events(raw, outcomes, self._positions(outer), first, ties)
        self._hits += covered.sum(axis=0)
        inner = np.tile(self._learned, (len(outcomes), 1))
        return Played(quantiles, inner, outer, np.sort(mean, axis=1), drawn)

    def _events(
        self, raw: Distributions, outcomes: Reals, asked: Reals, first: int, ties: Ties
    ) -> tuple[Reals, NDArray[np.bool_]]:
        quantiles, shares = ask(raw.values, raw.levels, asked, random=ties.random)
        return quantiles, events_of(quantiles, shares, outcomes, first, ties.key)

    def rows(self, rounds: int, delay: int) -> tuple[LevelRow, ...]:
        """Return coverage, and the calibration error of the chances drawn at each level."""
        hits = (self._hits / rounds).tolist() if rounds else [float("nan")] * len(self.levels)
        places = np.searchsorted(self._learned, self.levels).tolist()
        found = zip(self.levels.tolist(), hits, places, strict=True)
        return tuple(_row(p, hit, self._engines[k].certificate()) for p, hit, k in found)

    def options(self) -> dict[str, Any]:
        """Return what it was made with."""
        return dict(self._options)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        """Return the documents of all calibrators."""
        documents = [engine._document() for engine in self._engines]
        arrays = {
            f"level {k} {name}": words
            for k, document in enumerate(documents)
            for name, words in document.arrays.items()
        }
        told = {"engines": [document.settings for document in documents]}
        return told, arrays | {"hits": self._hits}

    def load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        """Read all calibrators back."""
        self._hits = arrays["hits"].copy()
        many = len(self._learned)
        if len(self._hits) != len(self.levels) or len(settings["engines"]) != many:
            raise ValueError(f"levels other than {len(self.levels)}")
        self._engines = [self._read(k, settings["engines"][k], arrays) for k in range(many)]

    def _read(self, k: int, settings: dict[str, Any], arrays: dict[str, Any]) -> LevelCalibrator:
        start = f"level {k} "
        own = {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
        fresh = self._engines[k]._document().settings
        fixed = ("secret", "level", "method", "parameters")
        if any(settings[name] != fresh[name] for name in fixed):
            raise ValueError(f"another's calibrator at level {k}")
        return LevelCalibrator._from_document(Document(LevelCalibrator.kind, settings, own))


def _check_name(calibrator: Any) -> None:
    if not isinstance(calibrator, str):
        raise InvalidInput(f"calibrator must be the name of one, got {calibrator!r}")


def _row(level: float, coverage: float, record: Certificate) -> LevelRow:
    for quantity, measured in (("C2", record.c2), ("C1", record.c1)):
        bounds = [b for b in record.bounds if b.quantity == quantity]
        if bounds:
            least: Bound = min(bounds, key=float)
            return LevelRow(level, coverage, quantity, measured, least)
    return LevelRow(level, coverage, "C2", record.c2, None)
