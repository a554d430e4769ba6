"""What was measured in a row of a spec, whoever the row belongs to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.bounds.game import by_chance
from calibrant.calibrators import Account
from calibrant.core.arrays import Words
from calibrant.kernels import layout as word
from calibrant.losses import get_loss
from calibrant.recalibrate.certificate import Certificate, certify
from calibrant.recalibrate.chain import Budget, link
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.secret import OLD
from calibrant.recalibrate.spec import Spec


def account_of(spec: Spec, row: Words) -> Account:
    """Return the counts from which every measured quantity of a row follows."""
    counts, ones = spec.account(row)
    lag, missing = int(row[word.LONGEST_LAG]), int(row[word.MOST_OUTSTANDING])
    # No theorem is about outcomes that count by their own lag.
    waits = (0, 0) if spec.coins == OLD else (lag, missing)
    blocks = spec.layout.blocks_of(row)
    aside = int(row[word.ROUNDS]) - int(counts.sum()) if spec.swaps else 0
    told = min(lag, missing), *waits, spec.caution, spec.swaps, aside
    return Account(counts, ones, spec.prior, spec.centres, blocks, *told)


def certificate_of(spec: Spec, row: Words, waiting: int, failure: float = FAILURE) -> Certificate:
    """Return what was measured in a row with that many open tickets, and the bounds beside it.

    Behind a transform that is a whole :class:`.Chain`.
    """
    gone = int(row[word.ISSUED]) - int(row[word.ROUNDS]) - waiting
    account, loss = account_of(spec, row), get_loss(spec.loss)
    budget = None if spec.raw_safe is None else _spent(row, spec.raw_safe)
    # How many rounds were not announced in the name of the budget was left to chance.
    few = budget is not None and budget.fallbacks > 0
    chance = by_chance(failure, account.rounds) if few else failure
    made = certify(spec.rule, account, loss, _raw_loss(row), waiting, gone, chance)
    if spec.transform is None:
        return made
    mixed = (
        float("inf") if row[word.MIXED_INFINITE] else float(row.view(np.float64)[word.MIXED_LOSS])
    )
    words = _transform_words(spec, row)
    chain = link(made, spec.transform, words, mixed, budget, account.missing)
    return replace(chain, failure=failure)


def _raw_loss(row: Words) -> float:
    return float("inf") if row[word.RAW_INFINITE] else float(row.view(np.float64)[word.RAW_LOSS])


def _spent(row: Words, epsilon: float) -> Budget:
    spent = float(row.view(np.float64)[word.EXCESS])
    return Budget(epsilon, int(row[word.SETTLED]), int(row[word.FALLBACKS]), spent, _raw_loss(row))


def _transform_words(spec: Spec, row: Words) -> list[Any]:
    """Return the words of the transform's state: floats where a word is a real."""
    part = slice(spec.layout.transform, None)
    wholes, reals = row[part].tolist(), row.view(np.float64)[part].tolist()
    pairs = zip(spec.layout.real[part].tolist(), wholes, reals, strict=True)
    return [real if is_real else whole for is_real, whole, real in pairs]
