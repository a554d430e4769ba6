"""The default for several classes: vectors mended online, then calibrated as they are announced."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.bounds.game import by_chance, share
from calibrant.classes.binary_reduction import BinaryReduction, Both, made_spec
from calibrant.classes.grown import grown
from calibrant.classes.mended import CONFIDENCES, MendedRun, MendedTicket
from calibrant.classes.reductions import OneVsRest, TopLabel
from calibrant.classes.ticket import letters
from calibrant.classes.vector_mixture import VectorMixture
from calibrant.classes.vectors import TOLERANCE, by_top, class_count, shared_out
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration, untold
from calibrant.kernels.crowd import GUESS, crowd_then
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS
from calibrant.kernels.mended import kept_words
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.secret import Secret, secret_of
from calibrant.recalibrate.spec import Spec

EACH: Final = 128
"""Up to so many classes each has a recalibrator of its own."""
TOO_MANY: Final = (
    f"class by class nothing is promised, for there are more than {EACH} classes: "
    "only the confidence of first classes is"
)
"""What the certificate says where no class has one."""
TOP: Final = 3
"""Which word of an open ticket is its first class."""


class ClassCalibrant(BinaryReduction[MendedTicket, MendedRun]):
    """Mend whole vectors online, and calibrate their first class and each class: the default.

    A mixture of experts mends the vector: temperature, vector and matrix scaling and a table of
    confusions, each learned online with several memories, and the raw forecast.  A second
    mixture weighs that against what the recalibrators of all classes make of it.  The result is
    ``ticket.mean``: in Brier score and log loss about as good as the best of them.

    Parameters
    ----------
    classes
        Number of classes K, numbered from 0.
    engine, **options
        ``"calibrant"`` or ``"recalibrator"``, and its own settings.
    seed, key, secret, max_open
        As in :class:`calibrant.Recalibrator`.

    Notes
    -----
    Two promises hold for what is drawn, against every adversary that chooses the class without
    seeing the draw.  ``ticket.confidence`` is calibrated for each class that comes first, as
    in :class:`TopLabel`; the first class is that of the corrected vector, so that confusions are
    put right.  ``ticket.classwise`` is calibrated class by class, as in :class:`OneVsRest`, up to
    128 classes; above that there is none.  Nothing is promised about ``ticket.mean``.

    In the certificate, part k is the number of class k, and part K + 1 + k the confidence where
    class k comes first.  A late outcome counts as one of as many as wait at a time, and experts
    learn less of it, as in :class:`calibrant.Calibrant`.  A correction puts right what
    recalibrators counted; what the mixtures learned of the wrong outcome stays learned, as in
    :class:`calibrant.Calibrant`.

    A round takes time in proportion to K, and to the square of K up to 32 classes, above which
    there are no matrices and no confusions.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks";
    Herbster and Warmuth (1998), "Tracking the best expert"; Gupta and Ramdas (2022), "Top-label
    calibration and multiclass-to-binary reductions".

    Examples
    --------
    >>> rec = ClassCalibrant(classes=3, seed=7)
    >>> for _ in range(100):
    ...     ticket = rec.forecast([0.7, 0.2, 0.1])
    ...     _ = rec.observe(ticket, 1)
    >>> ticket.top, bool(ticket.mean[1] > 0.9), len(ticket.classwise)
    (1, True, 3)
    >>> rec.rounds
    100
    """

    __slots__ = ("_mixture",)

    kind: ClassVar = "class-calibrant"
    version: ClassVar[int] = 4
    # Mixtures of the third version go on to learn late outcomes as if these came at once, and its
    # tickets keep nothing of what experts said.
    migrations: ClassVar[dict[int, Migration]] = BinaryReduction.migrations | {
        3: untold(4, alike=False)
    }
    _tickets: ClassVar[Any] = MendedTicket

    def __init__(
        self,
        classes: int,
        *,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        engine: str = "calibrant",
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        spec = made_spec(engine, options)
        self._begin(classes, spec, secret_of(seed, key, secret), max_open, (classes, True))

    def _begin(self, classes: Any, spec: Spec, secret: Secret, max_open: Any, option: Any) -> None:
        super()._begin(classes, spec, secret, max_open, option)
        self._mixture = VectorMixture(self._classes, alike=self._alike)

    @staticmethod
    def _checked(option: Any) -> Any:
        """Return the number of classes, and how many words a ticket keeps of experts."""
        classes, alike = class_count(option[0]), option[1]
        return classes, kept_words(classes) if alike else 0

    @property
    def _alike(self) -> bool:
        """Whether late outcomes count as some of many; in earlier versions they did not."""
        return bool(self._chosen[1])

    @property
    def _each(self) -> range:
        """The classes that have a recalibrator of their own in every round."""
        return range(self._classes if self._classes <= EACH else 0)

    def _compile(self) -> None:
        super()._compile()
        self._mixture.compile()

    # ----------------------------------------------------------------- a round

    def _made(self, raw: Reals, step: Any) -> MendedTicket:
        # The row of all first classes sees every round: its number is ours.
        number, (mixed, said) = self.issued, self._mixture.announced(raw)
        self._roster.reserve(len(self._each) + CONFIDENCES)
        parts = [step(k, p) for k, p in zip(self._each, mixed.tolist(), strict=False)]
        mean = mixed
        if parts:
            mean = self._mixture.blended(mixed, np.array([part.mean for part in parts]))
        top = int(mean.argmax())
        parts.append(step(self._classes, float(mean[top])))
        parts.append(step(self._classes + 1 + top, parts[-1].mean))
        head = self._counter.whose, number, number
        return MendedTicket(head, tuple(parts), top, raw, mean, said)

    def _numbers(self, ticket: MendedTicket) -> Sequence[int]:
        return *self._each, self._classes, self._classes + 1 + ticket.top

    def _told(self, ticket: MendedTicket, number: int, outcome: int | None) -> int:
        return int((number if number < self._classes else ticket.top) == outcome)

    def _learn(self, ticket: MendedTicket, outcome: int) -> None:
        learn = super()._learn
        self._with_mixture(ticket, outcome, lambda: learn(ticket, outcome))

    def _commit(self, seen: MendedTicket, rounds: int, outcome: int) -> None:
        commit = super()._commit
        self._with_mixture(seen, outcome, lambda: commit(seen, rounds, outcome))

    def _with_mixture(self, ticket: MendedTicket, outcome: int, learn: Callable[[], None]) -> None:
        """Let the mixture learn, and then the recalibrators, or neither."""
        kept, rounds = self._mixture.words(), self._own(ROUNDS)
        crowd = crowd_then(self._words(), self._row, ticket.number) if self._alike else 1
        try:
            if crowd > 1:
                said = ticket.mixed, ticket.said
                self._mixture.learn_late(ticket.raw, said, outcome, crowd)
            else:
                self._mixture.learn(ticket.raw, outcome)
            if self._each:
                self._mixture.learn_blend(ticket.mixed, ticket.classwise_mean, outcome, crowd)
            learn()
        except BaseException:
            if self._own(ROUNDS) == rounds:
                self._mixture.put_back(kept)
            raise

    def _everything(self) -> Any:
        return super()._everything(), self._mixture.words()

    def _become_again(self, kept: Any) -> None:
        rest, words = kept
        super()._become_again(rest)
        self._mixture.put_back(words)

    # ----------------------------------------------------------------- batches

    def _through(self, rows: Reals, outcomes: Any, step: Any) -> Both:
        """Return what is drawn, classes and confidence; and numbers, vector, top, confidence."""
        crowds = None if outcomes is None else self._crowds(len(rows))
        mixed = self._mixture.mend_all(rows, outcomes, crowds)
        self._roster.reserve(len(self._each) + CONFIDENCES)
        drawn, numbers = (np.empty((len(rows), len(self._each))) for _ in range(2))
        for k in self._each:
            drawn[:, k], numbers[:, k] = step(k, mixed[:, k], outcomes == k)
        mean = mixed
        if self._each:
            mean = self._mixture.blend_all(mixed, numbers, outcomes, crowds)
        tops = mean.argmax(axis=1)
        right = tops == outcomes
        common = step(self._classes, mean.max(axis=1), right)[1]
        sure = np.empty((2, len(rows)))
        for top, group in by_top(tops):
            sure[:, group] = step(self._classes + 1 + top, common[group], right[group])
        return np.column_stack([drawn, sure[0]]), np.column_stack([numbers, mean, tops, sure[1]])

    def _crowds(self, rows: int) -> Words:
        """Return among how many the outcomes of a batch count that come at once."""
        if not self._alike:
            return np.ones(rows, np.int64)
        missing, learned = self.issued - self.rounds, self.rounds + np.arange(rows)
        longest = np.maximum(self._own(LONGEST_LAG), GUESS // (1 + learned))
        return 1 + np.minimum(max(self._own(MOST_OUTSTANDING), missing), longest)

    def _listed(self, tickets: list[MendedTicket]) -> Both:
        drawn = [[*t.classwise, t.confidence] for t in tickets]
        made = [[*t.classwise_mean, *t.mean, t.top, t.confidence_mean] for t in tickets]
        width, each = self._classes + 2, len(self._each)
        return np.array(drawn).reshape(-1, each + 1), np.array(made).reshape(-1, each + width)

    def _run(self, rows: Reals, drawn: Reals, mean: Reals, first: int, left: Pending) -> MendedRun:
        each = len(self._each)
        wise, numbers, sure, expected = drawn[:, :each], mean[:, :each], drawn[:, -1], mean[:, -1]
        vectors, tops = mean[:, each : each + self._classes], mean[:, -2].astype(np.int64)
        value = shared_out(vectors, tops, sure)
        leads = sure >= value.max(axis=1)
        facts = first, tops, sure, expected, leads, wise, numbers
        return MendedRun(value, np.array(vectors), *facts, pending=left)

    def preview(self, rows: Reals) -> Both:
        """Return drawn and mean vectors of many rows, each as the next round; nothing changes."""
        run = self._run(rows, *super().preview(rows), 0, Pending())
        return run.forecast, run.mean

    # ------------------------------------------------------------------- state

    def grown(self) -> ClassCalibrant:
        """Return a recalibrator over one class more, which was as the last one is so far.

        Everything learned goes on, and so do counts and certificates.  Where classes may turn up
        on the way, keep the last one spare: give it no raw forecast and no outcome, and let the
        first new class have its number once there is another spare one.  Tickets that
        wait are observed by their id; coins are new.

        >>> rec = ClassCalibrant(classes=3, seed=7)
        >>> ticket = rec.forecast([0.7, 0.3, 0.0])
        >>> more = rec.grown()
        >>> more.observe(ticket.id, 2).outcome, more
        (2, ClassCalibrant(classes=4, engine='calibrant', rounds=1))
        """
        words = len(letters(self._spec.kept))
        return self._from_document(grown(self._document(), self._secret, words, EACH))

    def _leading(self) -> str:
        kept: int = self._chosen[1]
        return "dq" + "dd" * self._classes + "q" * kept

    def _shape(self, classes: int) -> tuple[int, int, int]:
        return classes, CONFIDENCES + (classes if classes <= EACH else 0), 2 * classes

    def _is_told(self, number: int) -> bool:
        return number != self._classes

    @property
    def _unpromised(self) -> str | None:
        return None if self._each else TOO_MANY

    def _chance(self, failure: float, number: int, row: Words) -> float:
        part = share(failure, self._classes + len(self._each))
        return part if number < self._classes else by_chance(part, int(row[ROUNDS]))

    def _waiting(self, numbers: list[int]) -> dict[int, int]:
        self._counter.file_all()
        tops = Counts(self._counter.desk.words()[:, TOP].tolist())
        each = dict.fromkeys(self._each, len(self._counter))
        return each | {n: tops[n - self._classes - 1] for n in numbers if n > self._classes}

    def _shown(self) -> dict[str, Any]:
        return {"engine": self.engine}

    def _settings(self) -> dict[str, Any]:
        return self._spec.settings | {"alike": self._alike}

    def _option_of(self, settings: dict[str, Any]) -> Any:
        return settings["classes"], settings["alike"] is True

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        settings, arrays = super()._stored()
        return settings, arrays | {"front": self._mixture.words()}

    def _restore(self, document: Document) -> None:
        super()._restore(document)
        self._mixture.load(document.arrays["front"], self.rounds)

    def _check_rows(self) -> None:
        rows = list(self._roster.used())
        self._check_sums([(n, row) for n, row in rows if n > self._classes], "first classes")
        counts = [(int(row[ISSUED]), int(row[ROUNDS])) for n, row in rows if n < self._classes]
        expected = [(self.issued, self.rounds)] * len(self._each) if self.issued else []
        if counts != expected:
            raise ValueError("classes that did not see the same rounds")

    def _numbers_fit(self, lines: Words, width: int) -> bool:
        tops, size = lines[:, TOP], self._classes
        vectors = np.ascontiguousarray(lines[:, TOP + 1 : TOP + 1 + 2 * size]).view(np.float64)
        sums = vectors.reshape(-1, 2, size).sum(axis=2)
        fits = (vectors >= 0.0).all() and (np.abs(sums - 1.0) <= TOLERANCE).all()
        if not fits or ((tops < 0) | (tops >= size)).any():
            return False
        kept = lines[:, TOP + 1 + 2 * size : TOP + 1 + 2 * size + self._chosen[1]]
        if (kept < 0).any():
            return False
        numbers = lines[:, TOP + 1 + 2 * size + self._chosen[1] :: width]
        if (numbers[:, :-1] != lines[:, 1:2]).any():
            return False
        made = {number: int(row[ISSUED]) for number, row in self._roster.used()}
        pairs = zip(tops.tolist(), numbers[:, -1].tolist(), strict=True)
        return all(own < made.get(size + 1 + top, 0) for top, own in pairs)


def recalibrator(classes: int, **options: Any) -> ClassCalibrant | OneVsRest | TopLabel:
    """Return the default for any number of classes, :class:`ClassCalibrant`.

    Or the one that an option belongs to: :class:`OneVsRest` if ``renormalise`` is given, and
    :class:`TopLabel` if ``conditional`` is.

    >>> recalibrator(3, seed=1)
    ClassCalibrant(classes=3, engine='calibrant', rounds=0)
    >>> recalibrator(10, conditional=False, seed=1)
    TopLabel(classes=10, engine='calibrant', conditional=False, rounds=0)
    """
    if "renormalise" in options:
        return OneVsRest(classes, **options)
    return (TopLabel if "conditional" in options else ClassCalibrant)(classes, **options)
