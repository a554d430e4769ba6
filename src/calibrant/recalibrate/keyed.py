"""Keys, tickets and columns of streams that are distinguished by a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.arrays import Bits, Mask, Reals, Words
from calibrant.core.place import buckets_of
from calibrant.core.ticket import Ticket, seen
from calibrant.errors import InvalidInput, InvalidType
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.secret import plain_key

Key: TypeAlias = str | int
DENSE: Final = 4
"""Whole numbers whose range is at most this many times their count are distinguished by place."""

A_COLUMN: Final = "be a column of strings or whole numbers"


def checked_key(key: Any) -> Key:
    """Return a key, if it is one, as a plain string or number: equal keys have equal coins."""
    return int(key) if check.is_integer(key) and not isinstance(key, int) else plain_key(key)


def is_key(key: object) -> bool:
    """Say whether something could be the key of a stream."""
    return isinstance(key, str) or (check.is_integer(key) and not isinstance(key, bool))


class KeyedTicket(Ticket):
    """The ticket of a stream in a table.

    Attributes
    ----------
    key
        Which stream.
    """

    __slots__ = ("_key",)

    _key: Key
    key: Key = seen("key", "Which stream.")

    def to_dict(self) -> dict[str, Any]:
        """Return the ticket as JSON-ready data, for callers that store it."""
        return super().to_dict() | {"key": self.key}

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Self:
        made = super()._read(data)
        made._key = checked_key(data["key"])
        return made


@dataclass(frozen=True, eq=False)
class Keys:
    """A column of keys: each name once, and by number which one stands in each row.

    Make one with :meth:`of` to name the same rows in several calls.

    Attributes
    ----------
    names
        The keys, in the order in which they first come.
    codes
        For each row, the place of its key among the names.

    Examples
    --------
    >>> Keys.of(["b", "a", "b"])
    Keys(names=['b', 'a'], codes=array([0, 1, 0]))
    """

    names: list[Key]
    codes: Words
    read: bool = field(default=False, repr=False, init=False)
    """Whether :meth:`of` made this, so that no row need be looked at again."""

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, keys: Any) -> Keys:
        """Read a column of strings or whole numbers.

        A pandas categorical and a column of Arrow that is a dictionary are taken as they are;
        columns of Polars are read like lists.
        """
        if isinstance(keys, Keys) and keys.read and not keys.codes.flags.writeable:
            return keys
        return cls._read(keys)._sealed()

    def _sealed(self) -> Keys:
        """Let nobody write to the codes, which were looked at."""
        self.codes.flags.writeable = False
        object.__setattr__(self, "read", True)
        return self

    @classmethod
    def _read(cls, keys: Any) -> Keys:
        if isinstance(keys, Keys):
            return keys._checked()
        check.refuse_masked(keys, "keys")
        coded = getattr(keys, "cat", keys)
        categories = getattr(coded, "categories", None)
        if categories is not None:
            return Keys(list(categories), np.asarray(coded.codes, np.int64))._checked()
        if hasattr(keys, "combine_chunks"):
            keys = keys.combine_chunks()
        if hasattr(keys, "dictionary"):
            codes = np.asarray(keys.indices.fill_null(-1), np.int64)
            return Keys(keys.dictionary.to_pylist(), codes)._checked()
        array = keys if isinstance(keys, np.ndarray) else None
        if array is not None and array.ndim == 1 and array.dtype.kind in "iu":
            return _whole(array)
        return _listed(check.listed(keys, "keys", A_COLUMN))

    def _checked(self) -> Keys:
        """Return the same, if every row has a key, with names in the order of their coming."""
        codes = np.asarray(self.codes)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InvalidType(f"codes must be a flat column of whole numbers, got {codes!r}")
        bad = (codes < 0) | (codes >= len(self.names))
        check.refuse_first(bad, codes, "codes", f"from 0 up to {len(self.names) - 1}")
        first = np.full(len(self.names), len(codes), np.int64)
        np.minimum.at(first, codes, np.arange(len(codes)))
        used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        names = [self.names[code] for code in used.tolist()]
        if not set(map(type, names)) <= {str, int}:
            told = zip(names, used.tolist(), strict=True)
            names = [_row_key(name, f"key {code}") for name, code in told]
        if len(set(names)) < len(names):
            raise InvalidInput("names must differ, got one twice")
        if len(used) == len(self.names) and (used == np.arange(len(used))).all():
            return Keys(names, codes.astype(np.int64))
        place = np.zeros(len(self.names), np.int64)
        place[used] = np.arange(len(used))
        return Keys(names, place[codes])


def _whole(column: NDArray[Any]) -> Keys:
    if not len(column):
        return Keys([], np.empty(0, np.int64))
    low, high = int(column.min()), int(column.max())
    if high - low < DENSE * len(column):
        first = np.full(high - low + 1, len(column), np.int64)
        # In few bits a difference may be too large; in 64 bits that of any two near ones is not.
        wide = column.astype(np.int64 if column.dtype.kind == "i" else np.uint64, copy=False)
        shifted = (wide - wide.dtype.type(low)).astype(np.int64)
        np.minimum.at(first, shifted, np.arange(len(column)))
        present = np.flatnonzero(first < len(column))
        present = present[np.argsort(first[present])]
        place = np.empty(len(first), np.int64)
        place[present] = np.arange(len(present))
        return Keys([low + k for k in present.tolist()], place[shifted])
    names, where, codes = np.unique(column, return_index=True, return_inverse=True)
    order = np.argsort(where)
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return Keys(names[order].tolist(), place[codes])


def plain_keys(keys: list[Any]) -> list[Key]:
    """Return the keys of rows, if all are such, as plain strings and numbers."""
    if set(map(type, keys)) <= {str, int}:
        return keys
    return [_row_key(key, f"row {t}") for t, key in enumerate(keys)]


def _listed(keys: list[Any]) -> Keys:
    found: dict[Key, int] = {}
    codes = [found.setdefault(key, len(found)) for key in plain_keys(keys)]
    return Keys(list(found), np.array(codes, np.int64))


def _row_key(key: Any, where: str) -> Key:
    try:
        return checked_key(key)
    except InvalidType as error:
        raise InvalidType(f"{where}: {error}") from None


@dataclass(frozen=True, eq=False)
class KeyedPending:
    """Outcomes that are on record but not known yet: whose, ticket number, when, what."""

    key: list[Key] = field(default_factory=list)
    number: Words = field(default_factory=lambda: np.empty(0, np.int64))
    available: Reals = field(default_factory=lambda: np.empty(0, np.float64))
    outcome: Bits = field(default_factory=lambda: np.empty(0, np.uint8))

    def __len__(self) -> int:
        return len(self.number)

    def chosen(self, wanted: Mask) -> KeyedPending:
        """Return some of what is pending."""
        key = [self.key[k] for k in np.flatnonzero(wanted).tolist()]
        return KeyedPending(key, self.number[wanted], self.available[wanted], self.outcome[wanted])

    def joined(self, more: KeyedPending) -> KeyedPending:
        """Return this and more."""
        return KeyedPending(
            [*self.key, *more.key],
            np.concatenate([self.number, more.number]),
            np.concatenate([self.available, more.available]),
            np.concatenate([self.outcome, more.outcome]),
        )


@dataclass(frozen=True, eq=False)
class KeyedRun:
    """The forecasts of a batch of many streams, row by row.

    Attributes
    ----------
    forecast, mean
        The drawn and the expected forecasts.
    buckets, raw
        Number of buckets, and what the buckets were given.
    ticket
        The number of each row's ticket in the stream of its key.
    pending
        Outcomes that were not known by the end of the batch; their tickets are open.
    """

    forecast: Reals
    mean: Reals
    buckets: int
    raw: Reals
    ticket: Words
    pending: KeyedPending

    @property
    def bucket(self) -> Words:
        """The bucket of each raw forecast."""
        return buckets_of(self.raw, self.buckets)

    def __len__(self) -> int:
        return len(self.forecast)


def check_pattern(pattern: object) -> None:
    """Raise unless the streams of a table or of a journal can begin as this recalibrator is."""
    if not isinstance(pattern, Recalibrator) or pattern.issued:
        raise InvalidInput(f"pattern must be a recalibrator without a forecast, got {pattern!r}")
    if pattern.spec.slots:
        told = "tables, journals and Spark tell none, got one that does"
        raise InvalidInput(f"pattern must have no expert that reads context: {told}")
