"""What was promised and what was measured in each group, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant import bounds
from calibrant.bounds import probable
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.seeded import Seeded
from calibrant.groups.names import Name, names_of
from calibrant.groups.spec import GroupSpec
from calibrant.kernels import layout as at
from calibrant.kernels.gaps import FIRST
from calibrant.kernels.groups import LOGS, MEMBERSHIPS
from calibrant.metrics import as_cells
from calibrant.recalibrate.promise import FAILURE, first_round, promised, tally, too_early


@dataclass(frozen=True)
class GroupRow:
    """One group's record.

    Attributes
    ----------
    group
        Its name.
    rounds
        Outcomes learned in it.
    forecast, frequency
        Mean drawn forecast, and how often the outcome was 1; nan without rounds.
    c1, c2
        Calibration errors in the group, over exact values; 0 without rounds.
    bound
        What the theorem says about C2 (form l2) or C1 (exponential) in the group: a bound in
        expectation, which under form l2 is estimated from the counts of this run; None without
        one.
    sure
        The same for this very run, in all groups at once except with the certificate's
        probability; None where that says nothing.
    """

    group: str
    rounds: int
    forecast: float
    frequency: float
    c1: float
    c2: float
    bound: float | None = None
    sure: float | None = None


@dataclass(frozen=True)
class GroupCertificate(Seeded):
    """A group recalibrator's record so far.

    Attributes
    ----------
    form
        ``"l2"`` or ``"exponential"``.
    rounds, open, expired
        Outcomes learned, tickets that wait for theirs, tickets that waited too long.
    delay
        How many outcomes that came later were outstanding when a forecast was made, at most.
    memberships
        The groups of each round learned, its bucket included, added up.
    c1, c2
        Calibration errors of all drawn forecasts, over exact values.
    loss, raw_loss
        Mean squared loss of the drawn and of the raw forecasts.
    groups
        A row for each group: those that were declared, those that appeared, and the periods
        that are running.
    largest_gap, largest_gap_bound
        The largest gap of a cell in any of these groups and in any bucket, per round; under the
        exponential form with its bound.
    failure
        How likely ``sure`` of a group may fail, at a time that was fixed beforehand.
    early
        From about which round on something is promised, if there are too few yet; None otherwise.
    seeded
        Whether a seed was given, which others may know or guess; None where that is not known.
    """

    form: str
    rounds: int
    open: int
    expired: int
    delay: int
    memberships: int
    c1: float
    c2: float
    loss: float
    raw_loss: float
    groups: tuple[GroupRow, ...]
    largest_gap: float
    largest_gap_bound: float | None
    failure: float = FAILURE
    early: int | None = None

    @property
    def worst(self) -> GroupRow | None:
        """The row with the largest C2."""
        return max(self.groups, key=lambda row: row.c2, default=None)

    @property
    def holds(self) -> bool | None:
        """Whether every group is below what is sure of this run; None if that is nothing."""
        pairs = [(self._measured(row), row.sure) for row in self.groups if row.sure is not None]
        return all(value <= bound for value, bound in pairs) if pairs else None

    def _measured(self, row: GroupRow) -> float:
        return row.c2 if self.form == "l2" else row.c1

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as JSON-ready data; what is not a number is None there."""
        data = asdict(self) | {"holds": self.holds}
        data["groups"] = [
            {name: None if value != value else value for name, value in row.items()}
            for row in data["groups"]
        ]
        return data

    @property
    def _about(self) -> str:
        return "C2" if self.form == "l2" else "C1"

    def __str__(self) -> str:
        head = f"groups, {self.form}: {tally(self.rounds, self.open, self.expired)}"
        losses = f"squared loss {self.loss:.5f}, raw {self.raw_loss:.5f}"
        measured = f"  measured: C1 {self.c1:.5f}, C2 {self.c2:.6f}, {losses}"
        return "\n".join(
            [head, f"{measured}{self._worst()}", f"  {self._promise()}", *self.foreseen(self.holds)]
        )

    def details(self) -> str:
        """Return all that is known, group by group: more than ``str`` tells."""
        return "\n".join([str(self), *_table(self.groups, self._about)])

    def _worst(self) -> str:
        row = self.worst
        return "" if row is None else f"; worst group {row.group}: C2 {row.c2:.6f}"

    def _promise(self) -> str:
        if self.rounds == 0:
            return "no rounds yet"
        found = [row.sure for row in self.groups if row.sure is not None]
        if found:
            about = f"{self._about} in {len(found)} of {len(self.groups)} groups"
            return promised({about: max(found)}, self.failure, self.holds)
        if all(row.bound is None for row in self.groups):
            return "no guarantee"
        return too_early(self.early)


def group_errors(
    forecasts: ArrayLike, outcomes: ArrayLike, groups: Any, *, declared: Sequence[Name] = ()
) -> tuple[GroupRow, ...]:
    """Measure forecasts in each group.

    Parameters
    ----------
    forecasts, outcomes
        Flat arrays of one length.
    groups
        For each round a name, several, or a mask over ``declared``; or a mapping of names to
        columns of True and False.

    Examples
    --------
    >>> rows = group_errors([0.5] * 4, [1, 1, 0, 0], ["north", "north", "south", "south"])
    >>> [(row.group, row.rounds, row.c2) for row in rows]
    [('north', 2, 0.25), ('south', 2, 0.25)]
    """
    values = check.probabilities(forecasts, "forecasts")
    told = check.outcomes(outcomes)
    check.same_length(forecasts=values, outcomes=told)
    rows: dict[Name, list[int]] = {}
    for row, names in enumerate(rows_of(groups, len(values), names_of(list(declared)))):
        for name in names:
            rows.setdefault(name, []).append(row)
    found = []
    for name, kept in rows.items():
        cells = as_cells(values[kept], told[kept])
        counts, ones = cells.counts.astype(np.int64), cells.ones.astype(np.int64)
        found.append(row_of(name, cells.values, counts, ones, None))
    return tuple(found)


def rows_of(groups: Any, rows: int, declared: tuple[Name, ...]) -> list[tuple[Name, ...]]:
    """Return the names of each row of a batch."""
    if groups is None:
        return [()] * rows
    if isinstance(groups, Mapping):
        check.same_length(rounds=range(rows), **{str(name): c for name, c in groups.items()})
        groups = [{name: column[t] for name, column in groups.items()} for t in range(rows)]
    given = check.listed(groups, "groups", "have one entry for each round")
    check.same_length(rounds=range(rows), groups=given)
    return [names_of(part, declared) for part in given]


def row_of(
    name: Name,
    values: Reals,
    counts: Words,
    ones: Words,
    bound: float | None,
    sure: float | None = None,
) -> GroupRow:
    """Return the row of a group from its counts at each grid value."""
    rounds, seen = int(counts.sum()), counts > 0
    gaps = np.abs(ones - counts * values)[seen]
    share = 1.0 / rounds if rounds else float("nan")
    means = float(counts @ values) * share, float(ones.sum()) * share
    c1 = float(gaps.sum()) / max(rounds, 1)
    c2 = float((gaps**2 / counts[seen]).sum()) / max(rounds, 1)
    return GroupRow(str(name), rounds, *means, c1, c2, bound, sure)


def _table(rows: tuple[GroupRow, ...], bounded: str) -> list[str]:
    if not rows:
        return ["  no groups yet"]
    wide = max(5, *(len(row.group) for row in rows))
    titles = f"  {'group':<{wide}} {'rounds':>9} {'forecast':>8} {'happened':>8}"
    lines = [f"{titles} {'C1':>8} {'C2':>9} {bounded + ' promised':>11}"]
    for row in rows:
        means = f"{row.forecast:8.3f} {row.frequency:8.3f}"
        bound = "" if row.sure is None else f"{row.sure:11.4f}"
        told = f"  {row.group:<{wide}} {row.rounds:9d} {means} {row.c1:8.5f} {row.c2:9.6f} {bound}"
        lines.append(told.rstrip())
    return lines


def counted(spec: GroupSpec, blocks: Words) -> tuple[Words, Words]:
    """Return rounds and ones of each block (row) and grid point, prior left out."""
    layout, cells = spec.layout, spec.rule.lattice.cells
    gained = blocks[:, FIRST:].copy()
    gained[: spec.buckets] -= layout.blocks_of(layout.fresh)[:, FIRST:]
    gaps, counts = gained[:, 0::2], gained[:, 1::2]
    table = int(layout.shared[at.TABLE])
    numerators = layout.shared[table : table + cells]
    return counts, (gaps + counts * numerators) // layout.shared[at.SCALE]


def certificate_of(
    spec: GroupSpec,
    row: Words,
    blocks: Words,
    names: list[Name],
    waiting: int,
    failure: float = FAILURE,
) -> GroupCertificate:
    """Return what was measured in each group, with each theorem's bound beside it.

    Parameters
    ----------
    row
        The row's own words.
    blocks
        The blocks of all buckets and groups, a block a row.
    names
        The groups by name, in the order of their blocks.
    waiting
        Tickets that wait for their outcome.
    failure
        How likely what is sure of this run may fail.
    """
    counts, ones = counted(spec, blocks)
    values, rounds = spec.rule.lattice.values, int(row[at.ROUNDS])
    delay = int(min(row[at.LONGEST_LAG], row[at.MOST_OUTSTANDING]))
    visits, hits = (part[: spec.buckets].sum(0) for part in (counts, ones))
    all_rounds = row_of("all", values, visits, hits, None)
    lost = float(hits @ (1.0 - values) ** 2 + (visits - hits) @ values**2)
    largest = float(np.abs(ones - counts * values).max())
    gap = _gap_bound(spec, rounds, delay, len(names))
    total = _promised(spec, row, delay, counts, ones, gap) if rounds else None
    excess = None if total is None else total + _excess(spec, row, len(names), probable(failure))
    found = zip(names, counts[spec.buckets :], ones[spec.buckets :], strict=True)
    groups = tuple(
        row_of(name, values, n, y, *_limits(total, excess, int(n.sum()))) for name, n, y in found
    )
    most = max((group.rounds for group in groups), default=0)
    silent = bool(most) and total is not None and all(group.sure is None for group in groups)
    return GroupCertificate(
        form=spec.rule.form,
        rounds=rounds,
        open=waiting,
        expired=int(row[at.ISSUED]) - rounds - waiting,
        delay=delay,
        memberships=int(row[MEMBERSHIPS]),
        c1=all_rounds.c1,
        c2=all_rounds.c2,
        loss=lost / max(rounds, 1),
        raw_loss=float(row.view(np.float64)[at.RAW_LOSS]) / max(rounds, 1),
        groups=groups,
        largest_gap=largest / max(rounds, 1),
        largest_gap_bound=gap,
        failure=probable(failure),
        early=_first(spec, rounds, delay, len(names), most, failure) if silent else None,
    )


def _limits(
    total: float | None, excess: float | None, rounds: int
) -> tuple[float | None, float | None]:
    """Return what is promised of a group, in expectation and of this run."""
    if total is None or excess is None or rounds == 0:
        return None, None
    # No error is above 1, whatever a theorem says.
    sure = excess / rounds
    return min(total / rounds, 1.0), sure if sure < 1.0 else None


def _excess(spec: GroupSpec, row: Words, groups: int, failure: float) -> float:
    """Return what a single run may add to the bound in expectation, times its rounds."""
    rounds = int(row[at.ROUNDS])
    if spec.rule.form == "l2":
        return bounds.group_excess(rounds, int(row[MEMBERSHIPS]), 1 + groups, failure)
    gaps = [_gap_bound(spec, rounds, 0, groups, chance) or 0.0 for chance in (failure, None)]
    return (gaps[0] - gaps[1]) * spec.rule.lattice.cells * rounds


def _first(
    spec: GroupSpec, rounds: int, delay: int, groups: int, most: int, failure: float
) -> int | None:
    """Return from about which round on the theorem says something of the largest group."""
    rule, grid = spec.rule, spec.rule.lattice
    told: dict[str, Any] = {"groups": spec.buckets + groups, "prior": spec.prior}

    def says(later: int) -> bool:
        own = {"group_rounds": max(1, later * most // rounds), "failure": failure, **told}
        sizes = later, grid.cells, grid.half_cell
        if rule.form == "l2":
            return bounds.group_average_gap(*sizes, overlap=2, delay=delay, **own).value < 1.0
        return bounds.multivalid(*sizes, rate=rule.rate, **own).value < 1.0

    return first_round(says, rounds)


def _promised(
    spec: GroupSpec, row: Words, delay: int, counts: Words, ones: Words, gap: float | None
) -> float | None:
    """Return the bound on C2 (l2) or C1 of a group, times its rounds."""
    rounds, prior, lattice = int(row[at.ROUNDS]), spec.prior, spec.rule.lattice
    if spec.rule.form == "exponential":
        return None if gap is None else gap * lattice.cells * rounds
    n = counts[: spec.buckets]
    means = ones[: spec.buckets] / np.maximum(n, 1)
    bias = prior * n / np.maximum(n + prior, 1) * (means - spec.centres[:, None]) ** 2
    bound = bounds.group_average_gap_measured(
        int(row[MEMBERSHIPS]),
        float(row.view(np.float64)[LOGS]),
        lattice.half_cell,
        rounds=rounds,
        bias=float(bias.sum()),
        delay=delay,
    )
    return bound.value * rounds


def _gap_bound(
    spec: GroupSpec, rounds: int, delay: int, groups: int, failure: float | None = None
) -> float | None:
    rule, lattice = spec.rule, spec.rule.lattice
    if rule.form == "l2" or rounds == 0 or delay > 0:
        return None
    return bounds.multivalid_gap(
        rounds,
        lattice.cells,
        lattice.half_cell,
        groups=spec.buckets + groups,
        rate=rule.rate,
        prior=spec.prior,
        failure=failure,
    )
