"""A binary recalibrator for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.classes.by_engines import ByEngines
from calibrant.classes.run import OneVsRestRun
from calibrant.classes.simplex_points import divided, projected
from calibrant.classes.ticket import OneVsRestTicket
from calibrant.classes.waiting import Entry
from calibrant.core import check
from calibrant.errors import StaleForecast

__all__ = ["RENORMALISE", "OneVsRest"]

Reals = NDArray[np.float64]

RENORMALISE: Final[dict[str, Callable[[Reals], Reals]]] = {
    "none": lambda rows: rows,
    "divide": divided,
    "project": projected,
}
MOST_NOTED: Final = 256
"""Predictions without an outcome that are remembered."""


class OneVsRest(ByEngines[OneVsRestTicket, OneVsRestRun]):
    """Recalibrate the probability of every class on its own: K binary recalibrators.

    Class-wise calibration: whenever class k is given 0.3, it comes in 30 % of the rounds, for
    each k, whatever the outcomes.  This holds for the K drawn numbers as they are, and they
    need not sum to 1.

    Parameters
    ----------
    classes
        Number of classes K, numbered from 0.
    engine, **options
        ``"calibrant"`` or ``"recalibrator"``, and its own settings.
    renormalise
        What makes ``value`` and ``mean`` of the K numbers: ``"none"`` leaves them,
        ``"divide"`` divides by their sum, ``"project"`` takes the nearest distribution.
        Only ``"none"`` keeps the guarantee; ``ticket.classwise`` has it in any case.
    seed, key, max_open
        As in :class:`calibrant.Recalibrator`.

    Notes
    -----
    A forecast asks all K recalibrators, so time and memory are K times those of one.

    References
    ----------
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass
    probability estimates"; named as a way out in Kuleshov and Ermon (2017).

    Examples
    --------
    >>> rec = OneVsRest(classes=3, renormalise="divide", seed=7)
    >>> ticket = rec.forecast([0.7, 0.2, 0.1])
    >>> round(float(ticket.value.sum()), 12), len(ticket.classwise)
    (1.0, 3)
    >>> rec.observe(ticket, 0)
    >>> rec.rounds
    1
    """

    kind: ClassVar = "one-vs-rest"

    def __init__(
        self,
        classes: int,
        *,
        engine: str = "calibrant",
        renormalise: str = "none",
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        self._renormalise = check.choice(renormalise, "renormalise", tuple(RENORMALISE))
        super().__init__(classes, engine, seed, key, max_open, options)
        self._noted: dict[bytes, tuple[int, int]] = {}

    @property
    def renormalise(self) -> str:
        """What is done to the K numbers."""
        return self._renormalise

    def _onto(self, rows: Reals) -> Reals:
        return RENORMALISE[self._renormalise](rows)

    def _announce(self, raw: Reals) -> tuple[OneVsRestTicket, int, int]:
        made = [self._engines[k].forecast(p) for k, p in enumerate(raw.tolist())]
        drawn = np.array([[own.value for own in made]])
        mean = np.array([[own.mean for own in made]])
        ticket = self._ticket(OneVsRestTicket, raw, self._onto(drawn)[0], self._onto(mean)[0])
        ticket.classwise, ticket.classwise_mean = drawn[0], mean[0]
        # Every recalibrator sees every round: their tickets have the same number.
        return ticket, 0, made[0].number

    def _settle(self, entry: Entry, outcome: int) -> None:
        for k in range(self._classes):
            self._engines[k].observe(entry.slot, int(k == outcome))

    def _drop(self, entry: Entry) -> None:
        """Do nothing: the tickets inside expire in the same round."""

    def _predict(self, raw: Reals) -> Reals:
        drawn = self._look(raw)
        self._noted[raw.tobytes()] = self.issued, self.rounds
        if len(self._noted) > MOST_NOTED:
            del self._noted[next(iter(self._noted))]
        made: Reals = self._onto(drawn[None])[0]
        return made

    def _look(self, raw: Reals) -> Reals:
        return np.array([self._engines[k].predict_one(p) for k, p in enumerate(raw.tolist())])

    def _book(self, raw: Reals, outcome: int) -> None:
        noted = self._noted.pop(raw.tobytes(), None)
        if noted is not None and noted != (self.issued, self.rounds):
            raise StaleForecast(
                "another round came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        if noted is None:
            self._look(raw)
        for k, p in enumerate(raw.tolist()):
            self._engines[k].learn_one(p, int(k == outcome))

    def _play(self, rows: Reals, outcomes: NDArray[np.int64]) -> OneVsRestRun:
        drawn, mean = np.empty_like(rows), np.empty_like(rows)
        for k in range(self._classes):
            run = self._engines[k].replay(rows[:, k], outcomes == k)
            drawn[:, k], mean[:, k] = run.forecast, run.mean
        return OneVsRestRun(self._onto(drawn), self._onto(mean), self.issued, drawn, mean)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"renormalise": self._renormalise}

    def _load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        super()._load(settings, arrays)
        told = settings["renormalise"]
        self._renormalise = check.choice(told, "renormalise", tuple(RENORMALISE))
        self._noted = {}
