"""The rules of rows that forecast a number: by quantiles, or by mean and standard deviation."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.core.arrays import Mask, Reals
from calibrant.stream.columns import Numbers, numbers
from calibrant.stream.readers import Piece
from calibrant.stream.rows import VectorRules


class NumberRules(VectorRules):
    """Check rows with quantiles, or with mean and standard deviation, and read them."""

    def _numbers(self, piece: Piece) -> tuple[Numbers, Numbers]:
        return self._table(piece), numbers(piece.column(self.columns.outcome))

    def _wrong(self, raw: Numbers, outcome: Numbers) -> dict[str, Mask]:
        table = raw.values
        with np.errstate(invalid="ignore"):
            rises = (table[:, 1:] >= table[:, :-1]).all(axis=1)
            wide = table[:, 1] > 0.0
        shaped: Mask = np.asarray(rises if self.columns.quantiles else wide)
        right = np.isfinite(table).all(axis=1) & shaped
        return {"raw": ~right, "outcome": ~(outcome.missing | np.isfinite(outcome.values))}

    def _outcomes(self, values: Reals) -> Any:
        return np.nan_to_num(values)

    def _rules(self) -> dict[str, tuple[str | None, str]]:
        many = len(self.columns.quantiles)
        rising = f"{many} finite numbers that never fall"
        rule = rising if many else "a finite mean and a standard deviation above 0"
        return {"raw": (self.name, rule), "outcome": (self.columns.outcome, "a finite number")}
