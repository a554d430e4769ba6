"""What was measured in a row of a spec, whoever the row belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.calibrators import Account
from calibrant.core.arrays import Words
from calibrant.kernels.layout import (
    EXCESS,
    FALLBACKS,
    ISSUED,
    LONGEST_LAG,
    MIXED_INFINITE,
    MIXED_LOSS,
    MOST_OUTSTANDING,
    RAW_INFINITE,
    RAW_LOSS,
    ROUNDS,
    SETTLED,
)
from calibrant.losses import get_loss
from calibrant.recalibrate.certificate import Certificate, certify
from calibrant.recalibrate.chain import Budget, link
from calibrant.recalibrate.spec import Spec


def account_of(spec: Spec, row: Words) -> Account:
    """Return the counts from which every measured quantity of a row follows."""
    counts, ones = spec.account(row)
    lag, missing = int(row[LONGEST_LAG]), int(row[MOST_OUTSTANDING])
    blocks, waits = spec.layout.blocks_of(row), (min(lag, missing), lag, missing)
    return Account(counts, ones, spec.prior, spec.centres, blocks, *waits)


def certificate_of(spec: Spec, row: Words, waiting: int) -> Certificate:
    """Return what was measured in a row with so many open tickets, and the bounds beside it.

    Behind a transform that is a whole :class:`.Chain`.
    """
    gone = int(row[ISSUED]) - int(row[ROUNDS]) - waiting
    account, loss = account_of(spec, row), get_loss(spec.loss)
    made = certify(spec.rule, account, loss, _raw_loss(row), waiting, gone)
    if spec.transform is None:
        return made
    mixed = float("inf") if row[MIXED_INFINITE] else float(row.view(np.float64)[MIXED_LOSS])
    budget = None if spec.raw_safe is None else _spent(row, spec.raw_safe)
    return link(made, spec.transform, _transform_words(spec, row), mixed, budget)


def _raw_loss(row: Words) -> float:
    return float("inf") if row[RAW_INFINITE] else float(row.view(np.float64)[RAW_LOSS])


def _spent(row: Words, epsilon: float) -> Budget:
    spent = float(row.view(np.float64)[EXCESS])
    return Budget(epsilon, int(row[SETTLED]), int(row[FALLBACKS]), spent, _raw_loss(row))


def _transform_words(spec: Spec, row: Words) -> list[Any]:
    """Return the words of the transform's state: floats where a word is a real."""
    part = slice(spec.layout.transform, None)
    wholes, reals = row[part].tolist(), row.view(np.float64)[part].tolist()
    pairs = zip(spec.layout.real[part].tolist(), wholes, reals, strict=True)
    return [real if is_real else whole for is_real, whole, real in pairs]
