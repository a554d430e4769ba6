"""The class that the classifier puts first, with a probability that can be believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.classes.by_engines import ByEngines
from calibrant.classes.certificate import ClassCertificate
from calibrant.classes.run import TopRun
from calibrant.classes.simplex_points import shared_out
from calibrant.classes.ticket import TopTicket
from calibrant.classes.waiting import Entry
from calibrant.core.gate import passing
from calibrant.errors import InvalidType, StaleForecast
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.preview import Preview

__all__ = ["TopLabel"]

Reals = NDArray[np.float64]
MOST_ASKED: Final = 256
"""Predictions without an outcome that are remembered."""


class TopLabel(ByEngines[TopTicket, TopRun]):
    """Recalibrate how sure the classifier is of the class that it puts first.

    The class stays the classifier's; whether it was right is a binary outcome, and a binary
    recalibrator makes its probability honest.  The default for more than four classes.

    Parameters
    ----------
    classes
        Number of classes K, numbered from 0.
    conditional
        True: one recalibrator for all classes, and behind it one for each class that comes
        first, which makes the confidence right class by class.  False: the first alone, which
        makes it right on the whole.
    engine, **options
        ``"calibrant"`` or ``"recalibrator"``, and its own settings.
    seed, key, max_open
        As in :class:`calibrant.Recalibrator`.

    Notes
    -----
    ``ticket.confidence`` is drawn and calibrated against every adversary that does not see it
    before it chooses the class.  ``ticket.value`` is a whole distribution around it: the other
    classes share the rest in proportion to their raw probabilities, each capped below
    the confidence so that the first stays first.  With a confidence below 1/K no distribution
    can do that; then ``ticket.leads`` is False and nothing is capped.  Nothing is promised about
    the other classes.  Of equal classes the lowest number comes first.

    What all classes have in common is learned from all rounds: the recalibrator of a class gets
    the mean forecast of the common one, so a class that seldom comes first need not learn it again.
    Recalibrators are made for classes that come first at least once, so memory grows with those
    and not with K.

    References
    ----------
    Gupta and Ramdas (2022), "Top-label calibration and multiclass-to-binary reductions".

    Examples
    --------
    >>> rec = TopLabel(classes=1000, seed=7)
    >>> raw = [0.6, 0.4] + [0.0] * 998
    >>> ticket = rec.forecast(raw)
    >>> ticket.top, ticket.confidence == float(ticket.value[0]), ticket.leads
    (0, True, True)
    >>> rec.observe(ticket, 0)
    >>> rec.rounds
    1
    """

    kind: ClassVar = "top-label"

    def __init__(
        self,
        classes: int,
        *,
        conditional: bool = True,
        engine: str = "calibrant",
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        self._conditional = _flag(conditional)
        self._asked: dict[tuple[float, int], tuple[float, int, int]] = {}
        super().__init__(classes, engine, seed, key, max_open, options)

    @property
    def conditional(self) -> bool:
        """Whether each class that comes first has a recalibrator of its own."""
        return self._conditional

    def preview(self, rows: Reals) -> tuple[Reals, Reals]:
        """Return drawn and mean confidences of many rows, each as the very next round.

        Nothing is noted and nothing changes.
        """
        tops, sure = rows.argmax(axis=1), rows.max(axis=1)
        with passing(self._gate):
            if self._conditional:
                sure = Preview(self._common).many(sure)[1]
            drawn, mean = np.empty(len(rows)), np.empty(len(rows))
            for number, group in self._groups(tops):
                seen = Preview(self._engines[number]).many(sure[group])
                drawn[group], mean[group] = seen
        return drawn, mean

    @property
    def _common(self) -> Recalibrator:
        """The recalibrator of all classes, which comes first: it has the number K."""
        return self._engines[self._classes]

    def _number(self, top: int) -> int:
        return top if self._conditional else 0

    def _announce(self, raw: Reals) -> tuple[TopTicket, int, int]:
        top = int(raw.argmax())
        sure = float(raw[top])
        if self._conditional:
            # Its ticket has the number of ours: it sees every round.
            sure = self._common.forecast(sure).mean
        made = self._engines[self._number(top)].forecast(sure)
        value, mean = self._vectors(raw, top, made.value), self._vectors(raw, top, made.mean)
        ticket = self._ticket(TopTicket, raw, value, mean)
        ticket.top, ticket.confidence, ticket.confidence_mean = top, made.value, made.mean
        ticket.leads = bool(value[top] >= value.max())
        return ticket, top, made.number

    def _vectors(self, raw: Reals, top: int, confidence: float) -> Reals:
        made: Reals = shared_out(raw[None], np.array([top]), np.array([confidence]))[0]
        return made

    def _settle(self, entry: Entry, outcome: int) -> None:
        right = int(entry.place == outcome)
        if self._conditional:
            self._common.observe(entry.number, right)
        self._engines[self._number(entry.place)].observe(entry.slot, right)

    def _drop(self, entry: Entry) -> None:
        if self._conditional:
            self._engines.forget(self._classes, entry.number)
        self._engines.forget(self._number(entry.place), entry.slot)

    def _predict(self, raw: Reals) -> Reals:
        top, sure = int(raw.argmax()), float(raw.max())
        if self._conditional:
            sure = self._noted(sure, top)
        drawn = self._engines[self._number(top)].predict_one(sure)
        return self._vectors(raw, top, drawn)

    def _noted(self, sure: float, top: int) -> float:
        """Return what the common recalibrator says next, and note when that was."""
        common = self._common
        middle = Preview(common).one(sure)[1]
        self._asked[sure, top] = middle, common.issued, common.rounds
        if len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        return middle

    def _book(self, raw: Reals, outcome: int) -> None:
        top, sure, right = int(raw.argmax()), float(raw.max()), int(raw.argmax() == outcome)
        if not self._conditional:
            self._engines[0].learn_one(sure, right)
            return
        common = self._common
        middle, *then = self._asked.pop((sure, top), (None,))
        if middle is None:
            middle = Preview(common).one(sure)[1]
        elif then != [common.issued, common.rounds]:
            raise StaleForecast(
                "another round came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        self._engines[top].learn_one(middle, right)
        common.learn_one(sure, right)

    def _play(self, rows: Reals, outcomes: NDArray[np.int64]) -> TopRun:
        tops = rows.argmax(axis=1)
        sure, right = rows.max(axis=1), outcomes == tops
        if self._conditional:
            self._engines.prepare(self._classes, len(rows))
            sure = self._common.replay(sure, right).mean
        drawn, mean = np.empty(len(rows)), np.empty(len(rows))
        for number, group in self._groups(tops):
            self._engines.prepare(number, len(rows))
            run = self._engines[number].replay(sure[group], right[group])
            drawn[group], mean[group] = run.forecast, run.mean
        value, means = shared_out(rows, tops, drawn), shared_out(rows, tops, mean)
        leads = drawn >= value.max(axis=1)
        return TopRun(value, means, self.issued, tops, drawn, mean, leads)

    def _groups(self, tops: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Return which rows belong to which recalibrator, each in order."""
        if not self._conditional:
            return [(0, np.arange(len(tops)))]
        order = np.argsort(tops, kind="stable")
        found, starts = np.unique(tops[order], return_index=True)
        ends = [*starts[1:].tolist(), len(tops)]
        cuts = zip(found.tolist(), starts.tolist(), ends, strict=len(tops) > 0)
        return [(number, order[start:end]) for number, start, end in cuts]

    def certificate(self) -> ClassCertificate:
        """Return what was measured by the recalibrator of each class, and its bounds beside it."""
        made = super().certificate()
        parts = {number: part for number, part in made.parts.items() if number < self._classes}
        return replace(made, parts=parts)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"conditional": self._conditional}

    def _load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        super()._load(settings, arrays)
        self._conditional = _flag(settings["conditional"])
        self._asked = {}


def _flag(conditional: Any) -> bool:
    if not isinstance(conditional, (bool, np.bool_)):
        raise InvalidType(f"conditional must be True or False, got {conditional!r}")
    return bool(conditional)
