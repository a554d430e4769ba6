"""The binary calibrator of one level, which starts as if the level were right."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.calibrators import Account
from calibrant.calibrators.layout import Layout, layout_of
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.kernels.layout import RAW_INFINITE, RAW_LOSS, SCALE
from calibrant.recalibrate import Recalibrator
from calibrant.recalibrate.body import packed
from calibrant.recalibrate.secret import secret_of
from calibrant.recalibrate.spec import LOSS_CODES, Spec, made_rule
from calibrant.recalibrate.version1 import moved_blocks, moved_tickets
from calibrant.regression.version1 import write_own

CENTRE: Final = 10_000
"""Common denominator of the levels at which calibrators start, so that gaps stay exact."""


@dataclass(frozen=True)
class LevelSpec(Spec):
    """One bucket that starts at ``level``; specs with one ``divisor`` can share an arena."""

    level: float = 0.5
    divisor: int = 1

    @property
    def centre(self) -> Fraction:
        """The level, as exact as gaps can be."""
        return Fraction(round(self.level * CENTRE), CENTRE)

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row, and of what all rows share."""
        code = LOSS_CODES[self.loss]
        centres = (self.centre,)
        return layout_of(self.rule, 1, self.prior, centres, loss=code, divisor=self.divisor)

    @property
    def centres(self) -> Reals:
        """The level, as the middle of the only bucket."""
        return np.array([float(self.centre)])

    def account_of(self, row: Words, delay: int) -> Account:
        """Return the counts from which every measured quantity of a row follows."""
        blocks = self.layout.blocks_of(row)
        return Account(*self.account(row), self.prior, self.centres, blocks, delay)


def _spec_of(s: dict[str, Any]) -> LevelSpec:
    """Return the spec of a level that settings describe."""
    rule, level = made_rule(s["method"], s["parameters"]), check.probability(s["level"], "level")
    buckets = check.whole(s["buckets"], "buckets", low=1, high=1)
    return LevelSpec(rule, buckets, s["prior"], s["loss"], level=level)


def level_migrated(document: Document) -> Document:
    """Return the document of one level of the first version as one of the second."""
    s, arrays = document.settings, document.arrays
    spec = _spec_of(s)
    row = spec.layout.fresh.copy()
    write_own(row, s)
    write_first(row, spec, s, arrays["touched"], arrays["blocks"])
    tickets = moved_tickets(arrays["tickets"], False, 0)
    settings = spec.settings | {"max_open": s["max_open"], "level": s["level"]}
    body = {"row": packed(row, spec.layout), "tickets": tickets}
    return Document(document.kind, settings, body, 2)


def write_first(
    row: Words, spec: LevelSpec, s: dict[str, Any], touched: Words, blocks: Words
) -> None:
    """Write losses and block of one level of the first version into its row."""
    row.view(np.float64)[RAW_LOSS] = float.fromhex(s["charged"])
    row[RAW_INFINITE] = s["endless"]
    if touched.tolist() not in ([], [0]):
        raise ValueError(f"buckets {touched.tolist()} of one")
    block = spec.layout.blocks_of(row)
    moved_blocks(block, touched, blocks, spec.rule)
    # Gaps had a smaller common denominator where no other level shared it.
    alone = dataclasses.replace(spec, divisor=1).layout
    factor = int(spec.layout.shared[SCALE]) // int(alone.shared[SCALE])
    if len(touched) and factor > 1:
        spec.rule.cells_of(block)[..., 0] *= factor
        names = [field.name for field in spec.rule.kernels.head.fields]
        if "TOTAL" in names:
            block[:, names.index("TOTAL")] *= factor


class LevelCalibrator(Recalibrator):
    """A recalibrator with one bucket, which starts as if its level were right."""

    __slots__ = ()

    kind: ClassVar = "level"
    migrations: ClassVar[dict[int, Migration]] = {1: level_migrated}

    def __init__(
        self,
        level: float,
        method: str = "foster_hart",
        *,
        seed: int | None = None,
        key: str | int | None = None,
        prior: int = 1,
        **parameters: Any,
    ) -> None:
        rule, start = made_rule(method, parameters), check.probability(level, "level")
        spec = LevelSpec(rule, 1, prior, "squared", level=start)
        self._begin(spec, secret_of(seed, key), 1_000_000)

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        assert isinstance(self._spec, LevelSpec)
        settings, more = super()._stored()
        return settings | {"level": self._spec.level}, more

    def _described(self, document: Document) -> tuple[Spec, int]:
        return _spec_of(document.settings), document.settings["max_open"]
