"""A binary recalibrator for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from calibrant.classes.base import Look
from calibrant.classes.binary_reduction import BinaryReduction, made_spec, overtaken_anywhere
from calibrant.classes.parts import letters
from calibrant.classes.run import OneVsRestRun
from calibrant.classes.simplex_points import RENORMALISE
from calibrant.classes.ticket import OneVsRestTicket
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.secret import secret_of


class OneVsRest(BinaryReduction[OneVsRestTicket, OneVsRestRun]):
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
    >>> _ = rec.observe(ticket, 0)
    >>> rec.rounds
    1
    """

    __slots__ = ("_renormalise",)

    kind: ClassVar = "one-vs-rest"
    _kind_of_tickets: ClassVar[Any] = OneVsRestTicket

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
        spec = made_spec(engine, options)
        self._begin(classes, spec, secret_of(seed, key), max_open, renormalise)

    @property
    def renormalise(self) -> str:
        """What is done to the K numbers."""
        return self._renormalise

    def preview(self, rows: Reals) -> tuple[Reals, Reals]:
        """Return draws and means of many rows, renormalised, each as the very next round.

        Nothing is noted and nothing changes.
        """
        with passing(self._gate):
            both = [self._preview_row(k, rows[:, k]) for k in self._all()]
        draws, means = (np.column_stack(columns) for columns in zip(*both, strict=True))
        return self._onto(draws), self._onto(means)

    def _onto(self, rows: Reals) -> Reals:
        return RENORMALISE[self._renormalise](rows)

    def _all(self) -> range:
        """Return the numbers of all rows; the first time this is asked, there is one."""
        self._roster.reserve(self._classes)
        return range(self._classes)

    # ----------------------------------------------------------------- a round

    def _issue(self, raw: Reals) -> OneVsRestTicket:
        values = raw.tolist()
        parts = tuple(self._issue_part(k, values[k]) for k in self._all())
        # Every row sees every round: their tickets have the same number.
        number = parts[0].number
        return OneVsRestTicket(self._counter.whose, number, number, parts, self._renormalise)

    def _numbers(self, ticket: OneVsRestTicket) -> Sequence[int]:
        return self._all()

    def _told(self, ticket: OneVsRestTicket, number: int, outcome: int | None) -> int:
        return int(number == outcome)

    def _coin(self, ticket: OneVsRestTicket) -> Reals:
        return np.array([self._coin_of_part(k, part) for k, part in self._altered(ticket)])

    def _look(self, raw: Reals) -> Look:
        values = raw.tolist()
        notes = [self._peek(k, values[k])[0] for k in self._all()]
        return self.issued, self.rounds, notes

    def _drawn(self, raw: Reals, look: Look) -> Reals:
        drawn = np.array([list(map(self._value, look[2], raw.tolist()))])
        made: Reals = self._onto(drawn)[0]
        return made

    def _expected(self, raw: Reals) -> Reals:
        values = raw.tolist()
        means = np.array([[self._peek(k, values[k])[1] for k in self._all()]])
        made: Reals = self._onto(means)[0]
        return made

    def _book(self, raw: Reals, look: Look, outcome: int) -> None:
        *then, notes = look
        rows = [(self._roster.place(k), notes[k], p) for k, p in enumerate(raw.tolist())]
        if then != [self.issued, self.rounds] or not all(self._rows.bookable(*r) for r in rows):
            raise overtaken_anywhere()
        for k, row in enumerate(rows):
            self._rows.book(*row, int(k == outcome))

    # ----------------------------------------------------------------- batches

    def _play(self, rows: Reals, outcomes: Words) -> OneVsRestRun:
        first, drawn, mean = self.issued, np.empty_like(rows), np.empty_like(rows)
        for k in self._all():
            drawn[:, k], mean[:, k] = self._replay_row(k, rows[:, k], outcomes == k)
        self._rows.use_array()
        return OneVsRestRun(self._onto(drawn), self._onto(mean), first, drawn, mean)

    def _run(self, tickets: list[OneVsRestTicket], first: int, pending: Pending) -> OneVsRestRun:
        drawn = self._stacked(ticket.classwise for ticket in tickets)
        mean = self._stacked(ticket.classwise_mean for ticket in tickets)
        made = self._onto(drawn), self._onto(mean)
        return OneVsRestRun(*made, first, drawn, mean, pending=pending)

    # ------------------------------------------------------------------- state

    def _first(self, classes: int) -> int:
        return 0

    def _width(self, classes: int) -> int:
        return classes

    def _waiting(self, numbers: list[int]) -> list[int]:
        return [len(self._counter)] * len(numbers)

    def _shown(self) -> dict[str, Any]:
        return super()._shown() | {"renormalise": self._renormalise}

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"renormalise": self._renormalise}

    def _set_up(self, document: Document, secret: bytes) -> None:
        s, spec = document.settings, self._spec_from(document)
        self._renormalise = check.choice(s["renormalise"], "renormalise", tuple(RENORMALISE))
        self._begin(s["classes"], spec, secret, s["max_open"], self._renormalise)

    def _check_rows(self) -> None:
        counts = {(int(row[ISSUED]), int(row[ROUNDS])) for _, row in self._roster.used()}
        if len(counts) > 1 or (counts and len(self._roster) < self._classes):
            raise ValueError("classes that did not see the same rounds")

    def _numbers_fit(self, lines: Words) -> bool:
        parts = lines[:, 3 :: len(letters(self._spec.kept))]
        return bool((parts == lines[:, 1:2]).all())
