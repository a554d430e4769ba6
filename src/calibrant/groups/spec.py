"""What a stream with groups is: its rule, its spec, and the row that grows with its groups."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from calibrant import bounds
from calibrant.calibrators.arena import Arena
from calibrant.calibrators.base import MAX_BUCKETS, MAX_PRIOR, Calibrator
from calibrant.calibrators.layout import Layout, layout_of
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.errors import InvalidInput
from calibrant.groups.ticket import GroupIssuer
from calibrant.kernels.groups import (
    AVERAGE,
    EXPONENTIAL,
    GROUP_ROW,
    LIST,
    RATE,
    ROOM,
    GroupProgram,
)
from calibrant.kernels.layout import INDEX, SCALE, SCRATCH
from calibrant.recalibrate.secret import fingerprint
from calibrant.recalibrate.spec import Spec

KIND: Final = "group recalibrator"
MAX_GROUPS: Final = 1 << 20
FORMS: Final = ("l2", "exponential")
SETTINGS: Final = ("form", "resolution", "grid", "buckets", "prior", "horizon", "max_groups")


@dataclass(frozen=True, kw_only=True)
class GroupRule(Calibrator):
    """The blocks of a calibrator with room for the list of a round's groups.

    Parameters
    ----------
    form
        ``"l2"`` adds up average gaps, ``"exponential"`` exponentials of gaps.
    rate
        The rate of the exponential form.
    """

    name = "groups"
    kernels = AVERAGE.rule

    form: str = "l2"
    rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self.form, "form", FORMS)
        object.__setattr__(self, "kernels", self.batch.rule)

    @property
    def batch(self) -> GroupProgram:
        """The batch of the form."""
        return AVERAGE if self.form == "l2" else EXPONENTIAL

    def scratch(self, cells: int) -> int:
        """Return how many words the list of a round's groups takes."""
        return LIST + ROOM

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write the rate, over the scale of gaps, into the header."""
        reals[RATE] = self.rate / int(words[SCALE])


class GroupArena(Arena):
    """One row with blocks of groups, whole numbers all, behind what its layout says."""

    __slots__ = ()

    @property
    def fixed(self) -> int:
        """Where the blocks of groups start."""
        return self.layout.row + len(self.layout.fresh)

    def snapshot(self) -> Words:
        """Return a copy as an array; nothing changes."""
        flat = super().snapshot()
        if self.listed is not None:
            flat[self.fixed :] = self.listed[self.fixed :]
        return flat

    def become(self, flat: Words) -> None:
        """Take over words that :meth:`snapshot` gave."""
        self._flat, self.listed = flat, None

    def grow(self, groups: int) -> None:
        """Make room for at least so many groups."""
        stride = self.layout.stride
        room = len(self.flat() if self.listed is None else self.listed) - self.fixed
        if room >= groups * stride:
            return
        more = (groups * 3 // 2 + 16) * stride - room
        if self.listed is not None:
            self.listed.extend([0] * more)
        else:
            self._flat = np.concatenate([self.flat(), np.zeros(more, np.int64)])


@dataclass(frozen=True)
class GroupSpec(Spec):
    """Rule, buckets and prior, and for how many groups and rounds the rule is made."""

    rule: GroupRule
    horizon: int = 100_000
    max_groups: int = 10_000

    @classmethod
    def made(
        cls,
        form: str,
        resolution: int,
        grid: str,
        buckets: int,
        prior: int,
        horizon: int,
        max_groups: int,
    ) -> GroupSpec:
        """Return the spec of these settings; a stored state has the same ones."""
        rule = GroupRule(form=form, resolution=resolution, grid=grid)
        buckets = check.whole(buckets, "buckets", low=1, high=MAX_BUCKETS)
        prior = check.whole(prior, "prior", high=MAX_PRIOR)
        horizon = check.whole(horizon, "horizon", low=1)
        max_groups = check.whole(max_groups, "max_groups", low=1, high=MAX_GROUPS)
        made = cls(rule, buckets, prior, "squared", None, None, horizon, max_groups)
        if form == "exponential":
            rate = bounds.multivalid_rate(horizon, rule.lattice.cells, buckets + max_groups)
            made = replace(made, rule=replace(rule, rate=rate))
        most = INDEX // made.layout.stride - buckets
        if max_groups > most:
            raise InvalidInput(
                f"max_groups must be at most {most} at this resolution and number of buckets, "
                f"got {max_groups}"
            )
        return made

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row without groups, and of what all rows share."""
        return _group_layout(self.rule, self.buckets, self.prior)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The spec as JSON-ready data."""
        told = *self._drawn_by, self.horizon, self.max_groups
        return dict(zip(SETTINGS, told, strict=True))

    @property
    def _drawn_by(self) -> tuple[Any, ...]:
        """What draws depend on besides the secret and the past."""
        return self.rule.form, self.rule.resolution, self.rule.grid, self.buckets, self.prior

    def issuer(self, secret: bytes) -> GroupIssuer:
        """Return what the tickets of the row with that secret have in common."""
        return GroupIssuer(fingerprint(secret, KIND, *self._drawn_by), self.rule.lattice)

    @functools.cached_property
    def fields(self) -> str:
        """What the desk keeps of a ticket: place, weight, raw, time, clock, mixed, names."""
        return "qdddqdq"

    def arena(self, secret: bytes) -> GroupArena:
        """Return an arena of one row with that secret, before its first round."""
        arena = GroupArena(self.layout)
        self.seat(arena.flat()[self.layout.row :], secret)
        return arena


@functools.lru_cache(maxsize=256)
def _group_layout(rule: GroupRule, buckets: int, prior: int) -> Layout:
    """Return the layout of a row with the own words of one with groups."""
    made = layout_of(rule, buckets, prior, own_words=GROUP_ROW)
    shared_real = made.shared_real.copy()
    # The list of a round's groups holds whole numbers.
    shared_real[made.shared[SCRATCH] :] = False
    return replace(made, shared_real=shared_real)
