"""A sparse linear classifier that learns genotypes in one pass, and the sums it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Stateful
from calibrant.errors import InvalidInput
from calibrant.kernels import compile as machine
from calibrant.kernels import margins

Alleles: TypeAlias = NDArray[np.int8]

RULE: Final = "0, 1 or 2, or below 0 if it is not known"


def alleles_of(values: ArrayLike, name: str) -> Alleles:
    """Return ``values`` as int8; what is not known, nan among it, is below 0.

    >>> alleles_of([0.0, 2.0, np.nan], "genotypes")
    array([ 0,  2, -1], dtype=int8)
    """
    row = check.numbers(values, name, f"numbers, each {RULE}")
    if row.dtype.kind == "f":
        row = np.where(np.isnan(row), -1.0, row)
    if row.dtype.kind != "b" and row.max(initial=0) > 2:
        check.refuse_first(row > 2, row, name, RULE)
    if row.dtype.kind == "f":
        check.refuse_first((row >= 0) & (row != np.floor(row)), row, name, RULE)
    return row if row.dtype == np.int8 else np.where(row < 0, np.int8(-1), row).astype(np.int8)


MANY: Final = 20_000
"""Features below which NumPy is quick enough and the compiler is not started."""


class Sums:
    """One column of whole numbers a feature; see :mod:`calibrant.kernels.margins`.

    Attributes
    ----------
    table
        The sums.
    rounds
        Rows that were added.
    broken
        Rows that were added with a sign.
    balance
        The sum of the signs.
    """

    __slots__ = ("_found", "balance", "broken", "rounds", "table")

    def __init__(self, features: int) -> None:
        self.table = np.zeros((margins.ROWS, features), np.int64)
        self.rounds = self.broken = self.balance = 0
        self._found = np.empty(features, np.int64)

    def add(self, row: NDArray[np.int8], sign: int, level: float) -> Words:
        """Add ``row`` and return the features whose evidence exceeds ``level``, in order.

        Evidence is the correlation of a feature with the signs times the root of how many
        there are: of the order of 1 by chance.
        """
        self.rounds += 1
        self.broken += abs(sign)
        self.balance += sign
        if machine.available() and len(row) >= MANY:
            told = sign, float(self.rounds), float(self.balance), self._bar(level), self._found
            count = machine.compiled(margins.learn, "margins")(self.table, row, *told)
            return self._found[:count].copy()
        self._add(row, sign)
        return self.outstanding(level)

    def outstanding(self, level: float) -> Words:
        """Return the features whose evidence exceeds ``level``, in order."""
        towards, width = self.evidence(np.s_[:])[:2]
        return np.flatnonzero(towards * towards > self._bar(level) * width)

    def evidence(self, chosen: Any) -> tuple[Reals, Reals, Reals, Reals]:
        """Return pull, spread, known rounds and mean of the ``chosen`` features."""
        part = self.table[:, chosen].astype(np.float64)
        known = self.rounds - part[margins.UNSEEN]
        signed, total = part[margins.SIGNED], part[margins.TOTAL]
        towards = margins.pull(signed, total, known, self.balance - part[margins.UNSEEN_SIGNED])
        width = margins.spread(total, part[margins.SQUARES], known)
        return towards, width, known, total / np.maximum(known, 1.0)

    def _add(self, row: NDArray[np.int8], sign: int) -> None:
        unseen = row < 0
        values = np.where(unseen, 0, row).astype(np.int64)
        self.table[margins.SIGNED] += sign * values
        self.table[margins.TOTAL] += values
        self.table[margins.SQUARES] += values * values
        self.table[margins.UNSEEN] += unseen
        self.table[margins.UNSEEN_SIGNED] += sign * unseen

    def _bar(self, level: float) -> float:
        return level * level * self.broken


REALS: Final = ("penalty", "rate", "largest", "lost")
"""Parts of a state that are stored as text, to the bit."""


class OnlineL1SVM(Stateful):
    """Learn who is ill from genotypes, in one pass: hinge loss, l1 penalty, dual averaging.

    Each feature counts alleles: 0, 1 or 2, and anything below 0 where it is not known.  Only
    features whose evidence is strong enough get a weight, so that a forecast looks at few of
    them however many there are.

    Parameters
    ----------
    features
        How many features a patient has.
    penalty
        Strength of the l1 penalty, in standard deviations: a feature without any effect
        passes it about as often as a normal variable exceeds it.
    rate
        Size of the weights: by how much one standard deviation of evidence above the penalty
        moves the score if the feature moves by one standard deviation.

    Notes
    -----
    Regularised dual averaging: let k rounds have had a margin ``sign * score`` below 1 so far,
    sign being 1 for outcome 1 and -1 for outcome 0, and let z be the sum over them of sign
    times the features.  The weights minimise ::

        -<z, w> + penalty sqrt(k) |w|_1 + sqrt(k)/(2 rate) |w|^2

    that is, ``w = rate * soft(z / sqrt(k), penalty)``, soft moving its argument towards 0 by
    the penalty.  Features are centred and scaled by their mean and deviation over all rounds
    so far: as z, sums of values and sums of squares are whole numbers, this is redone in
    each round, for the past too.  The constant is not penalised.

    A value that is not known counts as the mean: it moves neither score nor weights.

    A score s becomes a raw forecast as in the paper: ``(s + m)/2m``, m the largest absolute
    score so far, this one included; 1/2 while all are 0.

    The state is whole numbers apart from m and the sum of losses, so that it resumes exactly;
    with and without a compiler it is the same to the bit.  A round costs a few nanoseconds a
    feature.  Not made for calls from several threads at once.

    References
    ----------
    Xiao, "Dual averaging methods for regularized stochastic learning and online optimization"
    (2010), with the rate sqrt(k) and a penalty that grows like it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.integers(0, 3, (500, 40))
    >>> ill = rng.random(500) < np.array([0.2, 0.5, 0.8])[genotypes[:, 7]]
    >>> svm = OnlineL1SVM(40)
    >>> raw = svm.replay(genotypes, ill)
    >>> svm.chosen, svm.weights.round(2), round(svm.bias, 2)
    (array([7]), array([1.06]), 0.02)
    >>> round(svm.predict_one(genotypes[0]), 3)
    0.935
    """

    kind: ClassVar = "online_l1_svm"

    __slots__ = ("_features", "_largest", "_lost", "_means", "_penalty", "_rate", "_sums", "_use")

    def __init__(self, features: int, *, penalty: float = 4.0, rate: float = 0.4) -> None:
        self._begin(features, penalty, rate)

    def _begin(self, features: int, penalty: float, rate: float) -> None:
        self._features = check.whole(features, "features", low=1)
        self._penalty = _at_least_zero(penalty, "penalty")
        self._rate = _at_least_zero(rate, "rate")
        self._sums = Sums(self._features)
        self._largest = self._lost = 0.0
        self._weigh(np.empty(0, np.int64))

    # ---------------------------------------------------------------- one by one

    def score_one(self, genotypes: ArrayLike) -> float:
        """Return the score: above 0 speaks for outcome 1, and the margin is at 1."""
        return self._score(self._row(genotypes))

    def predict_one(self, genotypes: ArrayLike) -> float:
        """Return the raw forecast, a number in [0, 1]; nothing is learned."""
        return _normalised(*self._scale(self.score_one(genotypes)))

    def learn_one(self, genotypes: ArrayLike, outcome: int) -> Self:
        """Learn a round."""
        self._learn(self._row(genotypes), check.outcome(outcome))
        return self

    def replay(self, genotypes: Iterable[ArrayLike], outcomes: ArrayLike) -> Reals:
        """Return the raw forecast of each row, made before its outcome is learned.

        The rows may come from an iterator, which is asked for one after the other.  If one of
        them is refused, nothing was learned.
        """
        binary = check.outcomes(outcomes)
        forecasts, trial = np.empty(len(binary)), self.copy()
        rows = iter(genotypes)
        for k, outcome in enumerate(binary.tolist()):
            row = trial._row(_next(rows, k, len(binary)), f"genotypes[{k}]")
            forecasts[k] = trial._learn(row, outcome)
        if next(rows, None) is not None:
            raise InvalidInput(f"genotypes must be {len(binary)} rows, got more")
        for name in OnlineL1SVM.__slots__:
            setattr(self, name, getattr(trial, name))
        return forecasts

    def _learn(self, row: Alleles, outcome: int) -> float:
        score, largest = self._scale(self._score(row))
        sign = 2 * outcome - 1
        short = 1.0 - sign * score
        self._largest = largest
        self._lost += max(0.0, short)
        self._weigh(self._sums.add(row, sign if short > 0.0 else 0, self._penalty))
        return _normalised(score, largest)

    def _score(self, row: Alleles) -> float:
        chosen, weights = self._use
        values = row[chosen]
        parts = np.where(values < 0, 0.0, weights * (values - self._means))
        # Rounded once, so the order of adding does not matter on any machine.
        return math.fsum([self.bias, *parts.tolist()])

    def _scale(self, score: float) -> tuple[float, float]:
        return score, max(self._largest, abs(score))

    def _weigh(self, chosen: Words) -> None:
        """Give weights to features that stand out, and none to others."""
        towards, width, known, self._means = self._sums.evidence(chosen)
        evidence = np.abs(towards) / np.sqrt(width * self._sums.broken)
        scaled = self._rate * (evidence - self._penalty) * np.sign(towards)
        self._use = chosen, scaled * known / np.sqrt(width)

    def _row(self, genotypes: ArrayLike, name: str = "genotypes") -> Alleles:
        row = alleles_of(genotypes, name)
        if len(row) != self._features:
            raise InvalidInput(f"{name} must be {self._features} numbers, got {len(row)}")
        return row

    # --------------------------------------------------------------------- facts

    @property
    def features(self) -> int:
        """How many features a patient has."""
        return self._features

    @property
    def penalty(self) -> float:
        """Strength of the l1 penalty."""
        return self._penalty

    @property
    def rate(self) -> float:
        """Size of the weights."""
        return self._rate

    @property
    def rounds(self) -> int:
        """Rounds learned."""
        return self._sums.rounds

    @property
    def broken(self) -> int:
        """Rounds whose margin was below 1: the weights come from such rounds alone."""
        return self._sums.broken

    @property
    def chosen(self) -> Words:
        """The features that have a weight, in order."""
        return self._use[0].copy()

    @property
    def weights(self) -> Reals:
        """The weights of the chosen features: what one allele more adds to the score."""
        return self._use[1].copy()

    @property
    def bias(self) -> float:
        """The score of a patient with the mean of every feature."""
        return self._rate * self._sums.balance / math.sqrt(max(1, self._sums.broken))

    @property
    def hinge_loss(self) -> float:
        """The mean of ``max(0, 1 - sign * score)`` over all rounds, each before it was learned.

        nan before the first round.
        """
        return self._lost / self.rounds if self.rounds else math.nan

    def __repr__(self) -> str:
        told = f"penalty={self._penalty}, rate={self._rate}"
        return f"OnlineL1SVM({self._features}, {told}): {len(self._use[0])} in use"

    # --------------------------------------------------------------------- state

    def _document(self) -> Document:
        sums = self._sums
        reals = {name: getattr(self, f"_{name}").hex() for name in REALS}
        counts = [sums.rounds, sums.broken, sums.balance]
        settings = {"features": self._features, **reals, "counts": counts}
        return Document(self.kind, settings, {"table": sums.table.reshape(-1)})

    def _restore(self, document: Document) -> None:
        settings = document.settings
        penalty, rate, largest, lost = (float.fromhex(settings[name]) for name in REALS)
        self._begin(settings["features"], penalty, rate)
        sums = self._sums
        sums.rounds, sums.broken, sums.balance = map(int, settings["counts"])
        sums.table[:] = document.arrays["table"].reshape(margins.ROWS, -1)
        self._largest = _at_least_zero(largest, "largest")
        self._lost = _at_least_zero(lost, "lost")
        _verify(sums)
        self._weigh(sums.outstanding(self._penalty))


def _at_least_zero(value: float, name: str) -> float:
    return check.real(value, name, low=0.0, rule="a finite number of at least 0")


def _normalised(score: float, largest: float) -> float:
    return (score + largest) / (2.0 * largest) if largest else 0.5


def _next(rows: Any, k: int, wanted: int) -> ArrayLike:
    try:
        row: ArrayLike = next(rows)
    except StopIteration:
        raise InvalidInput(f"genotypes must be {wanted} rows, got {k}") from None
    return row


def _verify(sums: Sums) -> None:
    """Refuse numbers that no rounds can have left."""
    counts = sums.rounds >= sums.broken >= abs(sums.balance)
    known = sums.rounds - sums.table[margins.UNSEEN]
    total = sums.table[margins.TOTAL]
    if not counts or (sums.table[margins.UNSEEN] < 0).any() or (known < 0).any():
        raise ValueError("counts that do not fit together")
    if (total < 0).any() or (total > 2 * known).any():
        raise ValueError("sums that do not fit the counts")
