"""What was measured in all rows of a table, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np

from calibrant import bounds
from calibrant.bounds.game import ABOVE_ZERO, by_chance
from calibrant.calibrators import Account
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.errors import InvalidInput
from calibrant.kernels import layout as word
from calibrant.losses import get_loss
from calibrant.recalibrate.keyed import Key
from calibrant.recalibrate.secret import OLD
from calibrant.recalibrate.spec import Spec

AT_ONCE: Final = 4096
"""Rows that are measured together."""
SURE: Final = 0.05
"""How likely chance alone is to put any right key of a table beyond what it is said to leave."""


class Overall(NamedTuple):
    """What was measured in all streams of a table together.

    ``c2``, ``promised`` and losses are means over the rounds of all keys.  The mean of C2 is at
    most ``promised`` unless a promise failed; that is not a number if one key has no promise.
    """

    keys: int
    rounds: int
    open: int
    expired: int
    c2: float
    promised: float
    loss: float
    raw_loss: float


@dataclass(frozen=True, eq=False)
class Certificates:
    """What was measured in each stream of a table, and what was promised: a row a key.

    Attributes
    ----------
    key
        Whose stream.
    rounds, open, expired
        Outcomes learned, tickets that wait, and tickets that expired without an outcome.
    c1, c2
        Calibration errors of the drawn forecasts.
    loss, raw_loss
        Mean loss of the announced and of the raw forecasts; announced are draws, and raw forecasts
        where a budget asked for that.
    promised
        The bound on C2 of this very run that was promised, for that many drawn rounds with outcomes
        as late as these were.  Each promise may fail with the probability that was asked for.  Not
        a number where no theorem says anything.  A stream's own certificate, which looks at its
        counts, may promise more.
    chance
        Up to where chance alone leaves C2 of right forecasts in all keys of 95 % of such tables.

    Examples
    --------
    >>> from calibrant import Recalibrator, Table
    >>> table = Table(Recalibrator(resolution=10, buckets=10), seed=7)
    >>> _ = table.replay(["a", "b", "a"], [0.2, 0.7, 0.3], [0, 1, 0])
    >>> told = table.certificates()
    >>> told.key, told.rounds.tolist(), told.early.tolist()
    (['a', 'b'], [2, 1], [True, True])
    """

    key: list[Key]
    rounds: Words
    open: Words
    expired: Words
    c1: Reals
    c2: Reals
    loss: Reals
    raw_loss: Reals
    promised: Reals
    chance: Reals

    def __len__(self) -> int:
        return len(self.key)

    @property
    def overall(self) -> Overall:
        """All keys together: counts, and means over their rounds."""
        counts = self.rounds.sum(), self.open.sum(), self.expired.sum()
        columns = self.c2, self.promised, self.loss, self.raw_loss
        some, total = self.rounds > 0, max(int(counts[0]), 1)
        means = (float((self.rounds * column)[some].sum() / total) for column in columns)
        return Overall(len(self), *map(int, counts), *means)

    @property
    def early(self) -> Mask:
        """For which keys it is too early to promise anything."""
        return self.promised >= 1.0

    @property
    def holds(self) -> Mask:
        """For which keys something was promised, and kept."""
        return (self.promised < 1.0) & (self.c2 <= self.promised)

    @property
    def beyond(self) -> Mask:
        """Which keys have an error beyond what chance leaves."""
        return self.c2 > self.chance

    def worst(self, count: int = 10, *, least: int = 1) -> Certificates:
        """Return the rows with the largest errors, among keys with ``least`` rounds or more.

        First come those whose C2 is beyond what chance leaves, by how much; then the others, by
        how near they come to it.
        """
        some = np.flatnonzero(self.rounds >= least)
        c2, chance = self.c2[some], self.chance[some]
        order = np.lexsort(
            (-c2 / np.where(chance > 0.0, chance, 1.0), -np.maximum(c2 - chance, 0.0))
        )
        return self._chosen(some[order][:count])

    def _chosen(self, rows: Words) -> Certificates:
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        key = [self.key[k] for k in rows.tolist()]
        rest = {name: column[rows] for name, column in columns.items() if name != "key"}
        return Certificates(key, **rest)


def measured(
    spec: Spec, keys: list[Key], pieces: Iterable[Words], waiting: Words, failures: Reals
) -> Certificates:
    """Measure rows, given as tables of words, of which that many tickets are open.

    ``failures`` says with which probability each promise may fail.
    """
    made, own = [], []
    for rows in pieces:
        made.append(_measured(spec, rows))
        own.append(rows[:, : len(spec.layout.section)])
    c1, c2, loss, variance, cells = (np.concatenate(each) for each in zip(*made, strict=True))
    rows = np.concatenate(own)
    reals = rows.view(np.float64)
    rounds = rows[:, word.ROUNDS].astype(np.int64)
    paid = np.where(rows[:, word.RAW_INFINITE] > 0, np.inf, reals[:, word.RAW_LOSS])
    raw_loss = _over(paid, rounds)
    expired = rows[:, word.ISSUED] - rounds - waiting
    promised = _promised(spec, rows, failures)
    if spec.raw_safe is not None:
        # A round in which the raw forecast was announced has its loss, and is in no cell.
        whole = raw_loss + _over(reals[:, word.EXCESS], rounds)
        loss = np.where(rows[:, word.FALLBACKS] > 0, whole, loss)
    chance = _over(variance * _most(cells, SURE / max(len(keys), 1)), rounds)
    made_of = rounds, waiting, expired, c1, c2, loss, raw_loss, promised
    return Certificates(keys, *made_of, chance)


def _measured(spec: Spec, rows: Words) -> tuple[Any, ...]:
    """Return C1, C2 and mean loss of rows, the variance of outcomes, and how many cells were used.

    The rate of outcomes, from which the variance follows, is taken as if there had been one more
    of either: a few rounds that ended alike do not mean that all will.
    """
    counts, ones = spec.accounts(rows)
    counts, ones = counts.sum(1), ones.sum(1)
    values, rounds = spec.rule.lattice.values, counts.sum(1)
    gaps = ones - counts * values
    squares = np.divide(gaps**2, counts, out=np.zeros_like(gaps), where=counts > 0).sum(1)
    loss, size = get_loss(spec.loss), len(values)
    total = _paid(ones, loss(np.ones(size), values))
    total = total + _paid(counts - ones, loss(np.zeros(size), values))
    rate = (ones.sum(1) + 1.0) / (rounds + 2.0)
    errors = _over(np.abs(gaps).sum(1), rounds), _over(squares, rounds), _over(total, rounds)
    return *errors, rate * (1.0 - rate), (counts > 0).sum(1)


def _most(freedom: Words, failure: float) -> Reals:
    """Return the quantile of chi-squared that is passed with probability ``failure``.

    By the approximation of Wilson and Hilferty (1931).

    >>> _most(np.array([0, 20]), 0.05).round(1).tolist()
    [0.0, 31.4]
    """
    spread = 2.0 / (9.0 * np.maximum(freedom, 1))
    made: Reals = 1.0 - spread - NormalDist().inv_cdf(failure) * np.sqrt(spread)
    return freedom * made**3


def _paid(times: Words, price: Reals) -> Reals:
    each = np.where(times > 0, times * np.where(np.isinf(price), 1.0, price), 0.0)
    each[(times > 0) & np.isinf(price)] = np.inf
    found: Reals = each.sum(1)
    return found


def _over(total: Reals, rounds: Words) -> Reals:
    return np.divide(total, rounds, out=np.zeros(len(total)), where=rounds > 0)


def _promised(spec: Spec, rows: Words, failures: Reals) -> Reals:
    """Return what was promised about C2 of each row: the same for rows of equal history."""
    history = rows[:, [word.ROUNDS, word.LONGEST_LAG, word.MOST_OUTSTANDING, word.ROUNDS]]
    history[:, 3] = 0
    if spec.raw_safe is not None:
        history[:, 3] = rows[:, word.FALLBACKS]
        history[:, 0] -= history[:, 3]
        failures = _by_chance(failures, history[:, 0], history[:, 3] > 0)
    told = np.column_stack([history, failures.view(np.int64)])
    kinds, which = np.unique(told, axis=0, return_inverse=True)
    chances = np.ascontiguousarray(kinds[:, 4]).view(np.float64).tolist()
    pairs = zip(chances, kinds[:, :4].tolist(), strict=True)
    made = [_promise(spec, failure, *kind) for failure, kind in pairs]
    return np.array(made, np.float64)[which.reshape(-1)]


def _by_chance(failures: Reals, drawn: Words, fell: Mask) -> Reals:
    """Return with which probability promises may fail, where the budget chose how many draws."""
    made = failures.copy()
    for k in np.flatnonzero(fell).tolist():
        made[k] = by_chance(float(failures[k]), int(drawn[k]))
    return made


def shared(failure: float, keys: int) -> Reals:
    """Return with which probability the promise of each key may fail, if all share one.

    The shares of any number of keys, in the order of their coming, do not add up to more: keys
    number 2**j up to 2**(j + 1) - 1, counted from 1, share failure / ((j + 1) (j + 2)).

    >>> shared(0.05, 3).tolist()
    [0.025, 0.004166666666666667, 0.004166666666666667]
    """
    j = np.floor(np.log2(np.arange(1, keys + 1)))
    made: Reals = failure / ((j + 1) * (j + 2)) / 2.0**j
    return np.maximum(made, ABOVE_ZERO)


def _promise(
    spec: Spec, failure: float, rounds: int, lag: int, missing: int, fallbacks: int
) -> float:
    rule, zero = spec.rule, np.zeros((spec.buckets, spec.rule.lattice.cells), np.int64)
    waits = (0, 0) if spec.coins == OLD else (lag, missing)
    late: Any = min(lag, missing), *waits, spec.caution, spec.swaps, fallbacks
    account = Account(zero, zero, spec.prior, spec.centres, zero, *late)
    if not rounds or not rule.speaks(account):
        return np.nan
    try:
        found = rule.worst(account, rounds, failure)
    except InvalidInput:
        # Of late outcomes this theorem knows the expectation alone.
        return np.nan
    if found is not None and found.quantity.startswith("pseudo"):
        sizes = {"rounds": rounds, "cells": rule.lattice.cells, "buckets": spec.buckets}
        found = bounds.drawn(found, **sizes, failure=failure)
    return np.nan if found is None else found.value
