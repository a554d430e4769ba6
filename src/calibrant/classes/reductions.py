"""Several classes by binary recalibrators: one for each class, or for the one that is first."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.classes.binary_reduction import BinaryReduction, Both, made_spec
from calibrant.classes.run import OneVsRestRun, TopRun
from calibrant.classes.ticket import OneVsRestTicket, TopTicket
from calibrant.classes.vectors import RENORMALISE, by_top, shared_out
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidType
from calibrant.kernels.layout import ISSUED, ROUNDS
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.secret import secret_of

TOP: Final = 3
"""Which word of an open ticket is its first class."""


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
    seed, key, secret, max_open
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

    __slots__ = ()

    kind: ClassVar = "one-vs-rest"
    _tickets: ClassVar[Any] = OneVsRestTicket
    _option: ClassVar[str] = "renormalise"
    _carry: ClassVar[tuple[str, str]] = ("classwise", "classwise_mean")

    def __init__(
        self,
        classes: int,
        *,
        engine: str = "calibrant",
        renormalise: str = "none",
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        spec = made_spec(engine, options)
        self._begin(classes, spec, secret_of(seed, key, secret), max_open, renormalise)

    @property
    def renormalise(self) -> str:
        """What is done to the K numbers."""
        return str(self._chosen)

    @staticmethod
    def _checked(option: Any) -> str:
        return check.choice(option, "renormalise", tuple(RENORMALISE))

    def _onto(self, rows: Reals) -> Reals:
        return RENORMALISE[self._chosen](rows)

    def _all(self) -> range:
        """Return the numbers of all rows; the first time this is asked, there is one."""
        self._roster.reserve(self._classes)
        return range(self._classes)

    def _made(self, raw: Reals, step: Any) -> OneVsRestTicket:
        # Every row sees every round: their tickets have the same number.
        number, parts = self.issued, tuple(map(step, self._all(), raw.tolist()))
        return OneVsRestTicket((self._counter.whose, number, number), parts, self._chosen)

    def _numbers(self, ticket: OneVsRestTicket) -> Sequence[int]:
        return self._all()

    def _told(self, ticket: OneVsRestTicket, number: int, outcome: int | None) -> int:
        return int(number == outcome)

    def _through(self, rows: Reals, outcomes: Any, step: Any) -> Both:
        drawn, mean = np.empty(rows.shape), np.empty(rows.shape)
        for k in self._all():
            drawn[:, k], mean[:, k] = step(k, rows[:, k], outcomes == k)
        return drawn, mean

    def _run(
        self, rows: Reals, drawn: Reals, mean: Reals, first: int, left: Pending
    ) -> OneVsRestRun:
        made = self._onto(drawn), self._onto(mean)
        return OneVsRestRun(*made, first, drawn, mean, pending=left)

    def _shape(self, classes: int) -> tuple[int, int, int]:
        return 0, classes, classes

    def _check_rows(self) -> None:
        super()._check_rows()
        counts = {(int(row[ISSUED]), int(row[ROUNDS])) for _, row in self._roster.used()}
        if len(counts) > 1 or (counts and len(self._roster) < self._classes):
            raise ValueError("classes that did not see the same rounds")

    def _numbers_fit(self, lines: Words, width: int) -> bool:
        return bool((lines[:, 3::width] == lines[:, 1:2]).all())


class TopLabel(BinaryReduction[TopTicket, TopRun]):
    """Recalibrate how sure the classifier is of the class that it puts first.

    The class stays the classifier's; whether it was right is a binary outcome, and a binary
    recalibrator makes its probability honest.

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
    seed, key, secret, max_open
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

    __slots__ = ()

    kind: ClassVar = "top-label"
    _tickets: ClassVar[Any] = TopTicket
    _option: ClassVar[str] = "conditional"
    _lead: ClassVar[str] = "dq"
    _carry: ClassVar[tuple[str, str]] = ("confidence", "confidence_mean")
    _wide: ClassVar[bool] = False

    def __init__(
        self,
        classes: int,
        *,
        conditional: bool = True,
        engine: str = "calibrant",
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        spec = made_spec(engine, options)
        self._begin(classes, spec, secret_of(seed, key, secret), max_open, conditional)

    @property
    def _all_learn(self) -> bool:
        # Who chooses the raw forecasts chooses who learns.
        return not self._chosen

    @property
    def conditional(self) -> bool:
        """Whether each class that comes first has a recalibrator of its own."""
        return bool(self._chosen)

    @staticmethod
    def _checked(option: Any) -> bool:
        if not isinstance(option, (bool, np.bool_)):
            raise InvalidType(f"conditional must be True or False, got {option!r}")
        return bool(option)

    def _made(self, raw: Reals, step: Any) -> TopTicket:
        # The first row sees every round: its number is ours.
        number, top = self.issued, int(raw.argmax())
        parts = [step(self._first, float(raw[top]))]
        if self._chosen:
            parts.append(step(top, parts[0].mean))
        return TopTicket((self._counter.whose, number, number), tuple(parts), top, raw)

    def _numbers(self, ticket: TopTicket) -> Sequence[int]:
        return (self._classes, ticket.top) if self._chosen else (0,)

    def _told(self, ticket: TopTicket, number: int, outcome: int | None) -> int:
        return int(ticket.top == outcome)

    def _through(self, rows: Reals, outcomes: Any, step: Any) -> Both:
        tops, sure = rows.argmax(axis=1), rows.max(axis=1)
        right = tops == outcomes
        if self._chosen:
            sure = step(self._classes, sure, right)[1]
        drawn, mean = np.empty(len(rows)), np.empty(len(rows))
        for number, group in self._groups(tops):
            drawn[group], mean[group] = step(number, sure[group], right[group])
        return drawn, mean

    def _groups(self, tops: Words) -> list[tuple[int, Words]]:
        """Return which rows belong to which recalibrator, each in order."""
        if not self._chosen:
            return [(0, np.arange(len(tops)))]
        return by_top(tops)

    def _run(self, rows: Reals, drawn: Reals, mean: Reals, first: int, left: Pending) -> TopRun:
        tops = rows.argmax(axis=1)
        value, means = shared_out(rows, tops, drawn), shared_out(rows, tops, mean)
        leads = drawn >= value.max(axis=1)
        return TopRun(value, means, first, tops, drawn, mean, leads, pending=left)

    def _shape(self, classes: int) -> tuple[int, int, int]:
        return (classes, 2, classes) if self._chosen else (0, 1, 0)

    def _waiting(self, numbers: list[int]) -> dict[int, int]:
        if not self._chosen:
            return super()._waiting(numbers)
        self._counter.file_all()
        return Counts(self._counter.desk.words()[:, TOP].tolist())

    def _check_rows(self) -> None:
        super()._check_rows()
        if self._chosen:
            rows = [(n, row) for n, row in self._roster.used() if n < self._classes]
            self._check_sums(rows, "classes")

    def _numbers_fit(self, lines: Words, width: int) -> bool:
        tops, common = lines[:, TOP], lines[:, TOP + 1]
        inside = (tops >= 0) & (tops < self._classes) & (common == lines[:, 1])
        if not self._chosen or not inside.all():
            return bool(inside.all())
        made = {number: int(row[ISSUED]) for number, row in self._roster.used()}
        pairs = zip(tops.tolist(), lines[:, TOP + 1 + width].tolist(), strict=True)
        return all(own < made.get(top, 0) for top, own in pairs)
