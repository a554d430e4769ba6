"""What a stream with groups is: rule, spec, and row; and its tickets, which carry their groups."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

import numpy as np

from calibrant import bounds
from calibrant.calibrators.arena import Arena
from calibrant.calibrators.base import MAX_BUCKETS, MAX_PRIOR, Calibrator
from calibrant.calibrators.layout import Layout, layout_of
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.grid import Grid
from calibrant.core.ticket import Issuer, Ticket, seen
from calibrant.errors import CorruptState, ForeignTicket, InvalidInput
from calibrant.groups.names import Name, Period, names_of
from calibrant.kernels.groups import AVERAGE, EXPONENTIAL, GROUP_ROW, LIST, RATE, ROOM, GroupProgram
from calibrant.kernels.layout import INDEX, SCALE, SCRATCH
from calibrant.recalibrate.counter import Counter
from calibrant.recalibrate.secret import COIN_CODES, SAFE, fingerprint
from calibrant.recalibrate.spec import Spec

KIND: Final = "group recalibrator"
MAX_GROUPS: Final = 1 << 20
FORMS: Final = ("l2", "exponential")
FEW: Final = 64
"""Tuples of names up to which nothing is given back."""

Names = tuple[Name, ...]
SETTINGS: Final = (
    "form",
    "resolution",
    "grid",
    "buckets",
    "prior",
    "horizon",
    "max_groups",
    "coins",
)


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

    def shrink(self, size: int) -> None:
        """Have so many words again: those of groups that came since are gone."""
        if self.listed is not None:
            del self.listed[size:]
        else:
            self._flat = self.flat()[:size].copy()

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
        coins: str = SAFE,
    ) -> GroupSpec:
        """Return the spec of these settings; a stored state has the same ones."""
        rule = GroupRule(form=form, resolution=resolution, grid=grid)
        buckets = check.whole(buckets, "buckets", low=1, high=MAX_BUCKETS)
        prior = check.whole(prior, "prior", high=MAX_PRIOR)
        horizon = check.whole(horizon, "horizon", low=1)
        max_groups = check.whole(max_groups, "max_groups", low=1, high=MAX_GROUPS)
        own = None, None, coins, horizon, max_groups
        made = cls(rule, buckets, prior, "squared", *own)
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
        return _group_layout(self.rule, self.buckets, self.prior, COIN_CODES[self.coins])

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The spec as JSON-ready data."""
        told = *self._drawn_by, self.horizon, self.max_groups, self.coins
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
def _group_layout(rule: GroupRule, buckets: int, prior: int, coins: int) -> Layout:
    """Return the layout of a row with the own words of one with groups."""
    made = layout_of(rule, buckets, prior, own_words=GROUP_ROW, coins=coins)
    shared_real = made.shared_real.copy()
    # The list of a round's groups holds whole numbers.
    shared_real[made.shared[SCRATCH] :] = False
    return replace(made, shared_real=shared_real)


class GroupIssuer(Issuer):
    """What the tickets of one stream with groups have in common.

    ``names`` holds the groups of open tickets by key: a tuple that many tickets share is there
    once.
    """

    __slots__ = ("names",)

    def __init__(self, fingerprint: str, grid: Grid) -> None:
        super().__init__(fingerprint, grid)
        self.names: dict[int, Names] = {}


class GroupTicket(Ticket):
    """A forecast that waits for its outcome, and the groups in which it will count.

    Attributes
    ----------
    groups
        The names of its groups, those from rules included.
    """

    __slots__ = ("_groups",)

    _groups: Names
    groups: Names = seen("groups", "The names of its groups, those from rules included.")

    @classmethod
    def revived(cls, issuer: Any, id: int | str, number: int, fields: tuple[Any, ...]) -> Self:
        """Return a ticket again from what the desk kept."""
        made = super().revived(issuer, id, number, fields[:-1])
        made._groups = issuer.names[fields[-1]]
        return made

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the desk keeps of the ticket: the key of its names last."""
        return *super().fields, key_of_names(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return super().to_dict() | {"groups": [written(name) for name in self.groups]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read a ticket back from what :meth:`to_dict` gave."""
        made = super().from_dict(data)
        try:
            made._groups = names_again(data["groups"])
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptState(f"ticket must be what to_dict() gave, got {error}") from error
        return made


class GroupCounter(Counter[Any]):
    """Open tickets of a stream with groups, and their names.

    The names of tickets that are closed are dropped once they are as many as those in use.
    """

    __slots__ = ("_most",)

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self._most = FEW

    def _file(self, most: int) -> None:
        """File the oldest near tickets, their names being in the table."""
        near = [*(self._near or {}).values()]
        for ticket in near[: max(len(near) - most, 0)]:
            self.issuer.names[key_of_names(ticket.groups)] = ticket.groups
        super()._file(most)
        self._drop_names()

    def _again(self, near: Any, id: int | str) -> Any:
        """Return a near ticket as if it came from the desk, its names being in the table."""
        self._drop_names()
        self.issuer.names[key_of_names(near.groups)] = near.groups
        return super()._again(near, id)

    def _drop_names(self) -> None:
        """Drop the names of tickets that are not on the desk, if these are many."""
        if len(self.issuer.names) > self._most:
            self.issuer.names = kept = self.names_in_use()
            self._most = FEW + 2 * len(kept)

    def find(self, ticket: Any, issued: int) -> GroupTicket:
        """Return an open ticket given itself or its id, or raise what says why there is none."""
        if isinstance(ticket, Ticket) and not isinstance(ticket, GroupTicket):
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        return cast(GroupTicket, super().find(ticket, issued))

    def names_in_use(self) -> dict[int, Names]:
        """Return the names of the tickets on the desk by key, in order."""
        keys = np.unique(self.desk.words()[:, -1]).tolist()
        return {key: self.issuer.names[key] for key in keys}


@functools.lru_cache(maxsize=4096)
def key_of_names(names: Names) -> int:
    """Return 63 bits of a hash of names in their order.

    Two tuples share a key with probability 2**-63.

    >>> key_of_names(("a", 3)) == key_of_names(("a", "3"))
    False
    """
    text = json.dumps(names).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def written(name: Name) -> Any:
    """Return a name as JSON-ready data."""
    return list(name) if isinstance(name, Period) else name


def names_again(parts: Any) -> Names:
    """Return the names that were written so."""
    return names_of([Period(*part) if isinstance(part, list) else part for part in parts])


def text_words(data: Any) -> Words:
    """Return JSON-ready data as words.

    >>> text_of(text_words(["a", ["month", 3]]))
    ['a', ['month', 3]]
    """
    text = json.dumps(data).encode()
    return np.frombuffer(text.ljust(-(-len(text) // 8) * 8), "<i8").astype(np.int64)


def stored(cells: Words, names: Any, recent: Any, held: dict[int, Names]) -> dict[str, Words]:
    """Return what a state holds of groups: counts, names, recent rounds, names of open tickets."""
    texts = {"names": text_words(list(names)), "held": text_words([*held.values()])}
    return {"groups": cells.reshape(-1), "recent": recent_words(recent)} | texts


def text_of(words: Words) -> Any:
    """Return the data of which :func:`text_words` made words."""
    return json.loads(words.astype("<i8").tobytes())


def recent_words(recent: Iterable[tuple[float, int]]) -> Words:
    """Return draws and outcomes as words, two a round."""
    rounds = list(recent)
    words = np.empty((len(rounds), 2), np.int64)
    words.view(np.float64)[:, 0] = [value for value, _ in rounds]
    words[:, 1] = [outcome for _, outcome in rounds]
    return words.reshape(-1)


def recent_of(words: Words) -> list[tuple[float, int]]:
    """Return the draws and outcomes of which :func:`recent_words` made words."""
    rounds = np.ascontiguousarray(words.reshape(-1, 2))
    values, outcomes = rounds.view(np.float64)[:, 0].tolist(), rounds[:, 1].tolist()
    return [
        (check.probability(value), check.outcome(outcome))
        for value, outcome in zip(values, outcomes, strict=True)
    ]
