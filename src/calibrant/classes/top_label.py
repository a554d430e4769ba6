"""The class that the classifier puts first, with a probability that can be believed."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.classes.base import Look
from calibrant.classes.binary_reduction import BinaryReduction, made_spec, overtaken_anywhere
from calibrant.classes.parts import letters
from calibrant.classes.run import TopRun
from calibrant.classes.simplex_points import shared_out
from calibrant.classes.ticket import TopTicket
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.errors import InvalidType
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.secret import secret_of

TOP: Final = 3
"""Which word of an open ticket is its first class."""


class TopLabel(BinaryReduction[TopTicket, TopRun]):
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
    >>> _ = rec.observe(ticket, 0)
    >>> rec.rounds
    1
    """

    __slots__ = ("_conditional",)

    kind: ClassVar = "top-label"
    _kind_of_tickets: ClassVar[Any] = TopTicket
    _lead: ClassVar[str] = "dq"

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
        self._begin(classes, made_spec(engine, options), secret_of(seed, key), max_open)

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
                sure = self._preview_row(self._classes, sure)[1]
            drawn, mean = np.empty(len(rows)), np.empty(len(rows))
            for number, group in self._groups(tops):
                drawn[group], mean[group] = self._preview_row(number, sure[group])
        return drawn, mean

    # ----------------------------------------------------------------- a round

    def _issue(self, raw: Reals) -> TopTicket:
        top = int(raw.argmax())
        parts = [self._issue_part(self._first(self._classes), float(raw[top]))]
        if self._conditional:
            parts.append(self._issue_part(top, parts[0].mean))
        # The first row sees every round: its number is ours.
        number = parts[0].number
        return TopTicket(self._counter.whose, number, number, top, tuple(parts), raw)

    def _numbers(self, ticket: TopTicket) -> Sequence[int]:
        return (self._classes, ticket.top) if self._conditional else (0,)

    def _told(self, ticket: TopTicket, number: int, outcome: int | None) -> int:
        return int(ticket.top == outcome)

    def _coin(self, ticket: TopTicket) -> float:
        return self._coin_of_part(*self._altered(ticket)[-1])

    def _look(self, raw: Reals) -> Look:
        top, sure = int(raw.argmax()), float(raw.max())
        note, mean = self._peek(self._first(self._classes), sure)
        notes = [(self._first(self._classes), note, sure)]
        if self._conditional:
            notes.append((top, self._peek(top, mean)[0], mean))
        return self.issued, self.rounds, notes

    def _drawn(self, raw: Reals, look: Look) -> Reals:
        _, note, sure = look[2][-1]
        return self._around(raw, self._value(note, sure))

    def _expected(self, raw: Reals) -> Reals:
        mean = self._peek(self._first(self._classes), float(raw.max()))[1]
        if self._conditional:
            mean = self._peek(int(raw.argmax()), mean)[1]
        return self._around(raw, mean)

    def _around(self, raw: Reals, confidence: float) -> Reals:
        made: Reals = shared_out(raw[None], raw[None].argmax(axis=1), np.array([confidence]))[0]
        return made

    def _book(self, raw: Reals, look: Look, outcome: int) -> None:
        *then, notes = look
        rows = [(self._roster.place(number), note, sure) for number, note, sure in notes]
        # What the common row says depends on every round.
        if self._conditional and then != [self.issued, self.rounds]:
            raise overtaken_anywhere()
        if not all(self._rows.bookable(*row) for row in rows):
            raise overtaken_anywhere()
        for row in rows:
            self._rows.book(*row, int(raw.argmax() == outcome))

    # ----------------------------------------------------------------- batches

    def _play(self, rows: Reals, outcomes: Words) -> TopRun:
        first, tops = self.issued, rows.argmax(axis=1)
        sure, right = rows.max(axis=1), outcomes == tops
        # Many short groups are worth the compiler as one long one is.
        self._rows.batch(len(rows))
        if self._conditional:
            sure = self._replay_row(self._classes, sure, right)[1]
        drawn, mean = np.empty(len(rows)), np.empty(len(rows))
        for number, group in self._groups(tops):
            drawn[group], mean[group] = self._replay_row(number, sure[group], right[group])
        self._rows.use_array()
        return _run_of(rows, tops, drawn, mean, first, Pending())

    def _groups(self, tops: Words) -> list[tuple[int, Words]]:
        """Return which rows belong to which recalibrator, each in order."""
        if not self._conditional:
            return [(0, np.arange(len(tops)))]
        order = np.argsort(tops, kind="stable")
        found, starts = np.unique(tops[order], return_index=True)
        ends = [*starts[1:].tolist(), len(tops)]
        cuts = zip(found.tolist(), starts.tolist(), ends, strict=len(tops) > 0)
        return [(number, order[start:end]) for number, start, end in cuts]

    def _run(self, tickets: list[TopTicket], first: int, pending: Pending) -> TopRun:
        rows = self._stacked(ticket.raw for ticket in tickets)
        drawn = np.array([ticket.confidence for ticket in tickets], np.float64)
        mean = np.array([ticket.confidence_mean for ticket in tickets], np.float64)
        return _run_of(rows, rows.argmax(axis=1), drawn, mean, first, pending)

    # ------------------------------------------------------------------- state

    def _first(self, classes: int) -> int:
        return classes if self._conditional else 0

    def _width(self, classes: int) -> int:
        return 2 if self._conditional else 1

    def _waiting(self, numbers: list[int]) -> list[int]:
        if not self._conditional:
            return [len(self._counter)] * len(numbers)
        self._counter.file_latest()
        tops = Counts(self._counter.desk.words()[:, TOP].tolist())
        return [tops[number] for number in numbers]

    def _shown(self) -> dict[str, Any]:
        return super()._shown() | {"conditional": self._conditional}

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"conditional": self._conditional}

    def _set_up(self, document: Document, secret: bytes) -> None:
        s = document.settings
        self._conditional = _flag(s["conditional"])
        self._begin(s["classes"], self._spec_from(document), secret, s["max_open"])

    @property
    def _most(self) -> int:
        return self._classes if self._conditional else 0

    def _check_rows(self) -> None:
        if not self._conditional:
            return
        rows = [row for number, row in self._roster.used() if number < self._classes]
        issued, rounds = (sum(int(row[place]) for row in rows) for place in (ISSUED, ROUNDS))
        if (issued, rounds) != (self.issued, self.rounds):
            raise ValueError("classes whose rounds are not those of all together")

    def _numbers_fit(self, lines: Words) -> bool:
        width = len(letters(self._spec.kept))
        tops, common = lines[:, TOP], lines[:, TOP + 1]
        fits = bool((common == lines[:, 1]).all() and (tops >= 0).all())
        if not self._conditional or not fits:
            return fits and bool((tops < self._classes).all())
        made = {number: int(row[ISSUED]) for number, row in self._roster.used()}
        pairs = zip(tops.tolist(), lines[:, TOP + 1 + width].tolist(), strict=True)
        return all(top < self._classes and own < made.get(top, 0) for top, own in pairs)


def _run_of(
    rows: Reals, tops: Words, drawn: Reals, mean: Reals, first: int, pending: Pending
) -> TopRun:
    value, means = shared_out(rows, tops, drawn), shared_out(rows, tops, mean)
    leads = drawn >= value.max(axis=1)
    return TopRun(value, means, first, tops, drawn, mean, leads, pending=pending)


def _flag(conditional: Any) -> bool:
    if not isinstance(conditional, (bool, np.bool_)):
        raise InvalidType(f"conditional must be True or False, got {conditional!r}")
    return bool(conditional)
