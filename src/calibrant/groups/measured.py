"""From the words of a stream with groups to its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import bounds
from calibrant.core.arrays import Words
from calibrant.groups.certificate import GroupCertificate, GroupRow, row_of
from calibrant.groups.names import Name
from calibrant.groups.spec import GroupSpec
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import LOGS, MEMBERSHIPS
from calibrant.kernels.layout import (
    ISSUED,
    LONGEST_LAG,
    MOST_OUTSTANDING,
    RAW_LOSS,
    ROUNDS,
    SCALE,
    TABLE,
)


def counted(spec: GroupSpec, blocks: Words) -> tuple[Words, Words]:
    """Return rounds and ones of each block (row) and grid point, prior left out."""
    layout, cells = spec.layout, spec.rule.lattice.cells
    gained = blocks[:, FIRST:].copy()
    gained[: spec.buckets] -= layout.blocks_of(layout.fresh)[:, FIRST:]
    gaps, counts = gained[:, 0::2], gained[:, 1::2]
    table = int(layout.shared[TABLE])
    numerators = layout.shared[table : table + cells]
    return counts, (gaps + counts * numerators) // layout.shared[SCALE]


@dataclass(frozen=True)
class Measured:
    """What was counted in a row, and what follows from it.

    Attributes
    ----------
    row
        The row's own words.
    blocks
        The blocks of all buckets and groups, a block a row.
    names
        The groups by name, in the order of their blocks.
    open
        Tickets that wait for their outcome.
    """

    spec: GroupSpec
    row: Words
    blocks: Words
    names: list[Name]
    open: int

    @property
    def rounds(self) -> int:
        """Outcomes learned."""
        return int(self.row[ROUNDS])

    @property
    def delay(self) -> int:
        """How many outcomes that came later were outstanding at a forecast, at most."""
        return int(min(self.row[LONGEST_LAG], self.row[MOST_OUTSTANDING]))

    def certificate(self) -> GroupCertificate:
        """Return what was measured in each group, with each theorem's bound beside it."""
        counts, ones = counted(self.spec, self.blocks)
        values, rounds = self.spec.rule.lattice.values, self.rounds
        visits, hits = (part[: self.spec.buckets].sum(0) for part in (counts, ones))
        all_rounds = row_of("all", values, visits, hits, None)
        lost = float(hits @ (1.0 - values) ** 2 + (visits - hits) @ values**2)
        largest = float(np.abs(ones - counts * values).max())
        return GroupCertificate(
            form=self.spec.rule.form,
            rounds=rounds,
            open=self.open,
            expired=int(self.row[ISSUED]) - rounds - self.open,
            delay=self.delay,
            memberships=int(self.row[MEMBERSHIPS]),
            c1=all_rounds.c1,
            c2=all_rounds.c2,
            loss=lost / max(rounds, 1),
            raw_loss=float(self.row.view(np.float64)[RAW_LOSS]) / max(rounds, 1),
            groups=self._rows(counts, ones),
            largest_gap=largest / max(rounds, 1),
            largest_gap_bound=self._gap_bound(),
        )

    def _rows(self, counts: Words, ones: Words) -> tuple[GroupRow, ...]:
        """Return a row for each group; no error is above 1, whatever a theorem says."""
        groups, values = slice(self.spec.buckets, None), self.spec.rule.lattice.values
        total = self._promised(counts, ones)
        return tuple(
            row_of(name, values, n, y, min(total / n.sum(), 1.0) if total and n.any() else None)
            for name, n, y in zip(self.names, counts[groups], ones[groups], strict=True)
        )

    def _promised(self, counts: Words, ones: Words) -> float | None:
        """Return the bound on C2 (l2) or C1 of a group, times its rounds."""
        rounds, buckets, prior = self.rounds, self.spec.buckets, self.spec.prior
        lattice = self.spec.rule.lattice
        if rounds == 0:
            return None
        if self.spec.rule.form == "exponential":
            gap = self._gap_bound()
            return None if gap is None else gap * lattice.cells * rounds
        n, centres = counts[:buckets], (2 * np.arange(buckets) + 1) / (2 * buckets)
        means = ones[:buckets] / np.maximum(n, 1)
        bias = prior * n / np.maximum(n + prior, 1) * (means - centres[:, None]) ** 2
        bound = bounds.group_average_gap_measured(
            int(self.row[MEMBERSHIPS]),
            float(self.row.view(np.float64)[LOGS]),
            lattice.half_cell,
            rounds=rounds,
            bias=float(bias.sum()),
            delay=self.delay,
        )
        return bound.value * rounds

    def _gap_bound(self) -> float | None:
        rule = self.spec.rule
        if rule.form == "l2" or self.rounds == 0 or self.delay > 0:
            return None
        return bounds.multivalid_gap(
            self.rounds,
            rule.lattice.cells,
            rule.lattice.half_cell,
            groups=self.spec.buckets + len(self.names),
            rate=rule.rate,
            prior=self.spec.prior,
        )
